//! Runs the models of `docs/models`: each searches all interleavings of a few processes for what
//! the rules of durability forbid, and finds it as soon as one of the rules is removed.
//!
//! The small run of each only; `python3 docs/models/votes.py --all` adds the large cases of a
//! model. Without `python3` the test says NOT RUN, and fails if `PLIMSOLL_MODELS_REQUIRED` is set.

use std::path::{Path, PathBuf};
use std::process::Command;

/// If it is set, `python3` has to be there.
const REQUIRED: &str = "PLIMSOLL_MODELS_REQUIRED";
/// What the models share.
const SHARED: &str = "search.py";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models")
}

/// The names of the models' files.
fn models() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("there are models");
    let names = files.map(|file| file.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut models: Vec<String> = names.filter(|name| name.ends_with(".py") && name != SHARED).collect();
    models.sort();
    models
}

#[test]
fn models_hold_and_catch_every_mutant() {
    let version = Command::new("python3").arg("--version").output();
    if !version.as_ref().is_ok_and(|output| output.status.success()) {
        let why = format!("this test needs `python3`: {version:?}");
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and {why}");
        eprintln!("NOT RUN: {why}");
        return;
    }
    for model in models() {
        let output = Command::new("python3")
            .args(["-B", &model])
            .current_dir(folder())
            .output()
            .expect("it was there just now");
        let said = String::from_utf8_lossy(&output.stdout);
        let heard = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{model}:\n{said}{heard}");
        assert!(said.lines().any(|line| line.starts_with("all rules")), "{model} searches:\n{said}");
    }
}

#[test]
fn models_and_their_mutants_are_in_the_table() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).expect("it is there");
    let table = read("README.md");
    for model in models() {
        let row = table.lines().find(|line| line.starts_with(&format!("| [{model}]({model}) |")));
        let row = row.unwrap_or_else(|| panic!("{model} has no row"));
        let source = read(&model);
        let (_, mutants) = source.split_once("MUTANTS = {").expect("a model has mutants");
        let (mutants, _) = mutants.split_once("\n}").expect("a table ends");
        let named = |line: &str| Some(line.trim().strip_prefix('"')?.split_once("\":")?.0.to_owned());
        let mutants: Vec<String> = mutants.lines().filter_map(named).collect();
        let (head, _) = source[3..].split_once("\"\"\"").expect("a file begins with its essay");
        assert!(!mutants.is_empty(), "{model} has mutants");
        for mutant in mutants {
            assert!(row.contains(&format!("`{mutant}`")), "{mutant} is not in the row of {model}");
            assert!(head.contains(&format!("  {mutant} ")), "{mutant} is not in the head of {model}");
        }
    }
}
