//! Which crate may use which, and what must not come into them.
//!
//! * Dependencies between the crates of the workspace are those of [`MAY_USE`], no more and no
//!   fewer. They are read from the `Cargo.toml` files; those of tests and examples do not count.
//! * Whoever embeds the library compiles few crates, and neither a server nor a command line nor a
//!   driver.
//! * Command lines are read in crates that have one.
//! * Protocols and timestamp schemes are named together in one file.
//! * A new protocol, scheme or workload is added to the lists that CONTRIBUTING.md names, and to no
//!   other.
//! * Modules of txn form no circle, and its folders use only those before them.
//!
//! Left out: which module of another crate may use which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// By folder below `crates`: the crates of the workspace that it depends on. Each is below those
/// that use it.
const MAY_USE: [(&str, &[&str]); 20] = [
    ("types", &[]),
    ("page", &[]),
    ("store", &["types"]),
    ("runtime", &["types"]),
    ("checker", &["types"]),
    ("replication", &["runtime", "types"]),
    ("txn", &["replication", "runtime", "store", "types"]),
    ("args", &["page", "txn"]),
    ("workloads", &["args", "page", "txn", "types"]),
    ("sql", &["types"]),
    ("sessions", &["runtime", "sql", "txn", "types"]),
    ("sim", &["checker", "replication", "runtime", "sessions", "sql", "store", "txn", "types", "workloads"]),
    ("timeline", &["page", "runtime", "sim", "store", "txn", "types"]),
    ("engine", &["replication", "runtime", "store", "txn", "types"]),
    ("plimsoll", &["engine", "runtime", "store", "txn", "types"]),
    ("node", &["args", "engine", "page", "plimsoll", "runtime", "sessions", "sql", "txn", "types"]),
    (
        "bench",
        &["args", "checker", "engine", "node", "page", "plimsoll", "runtime", "txn", "types", "workloads"],
    ),
    ("scale", &["args", "bench", "engine", "page", "runtime", "txn", "types", "workloads"]),
    ("dike", &["checker", "page", "types"]),
    (
        "cli",
        &["args", "bench", "dike", "engine", "node", "page", "runtime", "scale", "sim", "timeline", "types"],
    ),
];

/// What a crate must not use, directly or through others.
const NEVER: [(&str, &[&str]); 3] = [
    // It measures databases of others.
    ("dike", &["engine", "runtime", "store", "txn"]),
    // A node starts without the benchmark's code.
    ("node", &["bench", "scale", "sim", "workloads"]),
    ("plimsoll", &["args", "bench", "node", "page", "sim", "workloads"]),
];

/// Crates with a command line.
const COMMAND_LINES: [&str; 7] = ["args", "bench", "cli", "dike", "node", "scale", "workloads"];

/// Maximum number of crates that an embedder of the library compiles.
const EMBEDDED_MAX: usize = 60;
/// What the library must not bring along.
const NOT_EMBEDDED: [&str; 8] =
    ["axum", "clap", "mysql_async", "ring", "rustls", "tokio", "tokio-postgres", "tracing-subscriber"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace exists")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

/// The dependencies of a crate, tests left out.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let manifest = read(&root().join("crates").join(folder).join("Cargo.toml"));
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    let named = |table: &toml::Value| table.as_table().expect("a table").keys().cloned().collect::<Vec<_>>();
    manifest.get("dependencies").map(named).unwrap_or_default().into_iter().collect()
}

/// The folder of a crate of the workspace; none if it comes from elsewhere.
fn folder(package: &str) -> Option<&str> {
    let folder = package.strip_prefix("plimsoll-").unwrap_or(package);
    (package.starts_with("plimsoll")).then_some(folder)
}

fn used(of: &str) -> &'static [&'static str] {
    MAY_USE.iter().find(|(name, _)| *name == of).map_or(&[], |(_, used)| used)
}

#[test]
fn crates_use_those_below_them_that_they_may() {
    let folders = fs::read_dir(root().join("crates")).expect("there are crates");
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    let known: BTreeSet<String> = MAY_USE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders, known, "every crate has its line");
    let mut below: Vec<&str> = Vec::new();
    for (name, may) in MAY_USE {
        let uses: BTreeSet<String> =
            dependencies(name).iter().filter_map(|name| folder(name)).map(str::to_owned).collect();
        let may: BTreeSet<String> = may.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(uses, may, "what {name} uses, and what it may use");
        assert!(may.iter().all(|used| below.contains(&used.as_str())), "{name} comes after all that it uses");
        below.push(name);
    }
}

#[test]
fn what_a_crate_must_not_use_is_not_below_it() {
    for (name, never) in NEVER {
        let mut all: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = vec![name];
        while let Some(by) = next.pop() {
            for used in used(by) {
                if all.insert(used, by).is_none() {
                    next.push(used);
                }
            }
        }
        for never in never {
            assert!(!all.contains_key(never), "{name} uses {never}, by way of {}", all[never]);
        }
    }
}

#[test]
fn whoever_embeds_the_library_compiles_few_crates() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["tree", "--offline", "--package", "plimsoll", "--edges", "normal", "--prefix", "none"];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let tree = String::from_utf8(output.stdout).expect("UTF-8");
    let crates: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    assert!(crates.contains("plimsoll-txn"), "{tree}");
    assert!(crates.len() <= EMBEDDED_MAX, "{} crates: {crates:?}", crates.len());
    for not in NOT_EMBEDDED {
        assert!(!crates.contains(not), "the library brings {not}");
    }
}

#[test]
fn command_lines_are_read_where_there_is_one() {
    for (name, _) in MAY_USE {
        let has = dependencies(name).contains("clap");
        assert_eq!(has, COMMAND_LINES.contains(&name), "whether {name} reads a command line");
    }
}

/// Lines of code of a crate's sources with their files, without comments and tests.
fn code(folder: &str) -> Vec<(PathBuf, String)> {
    let mut code = Vec::new();
    let mut folders = vec![root().join("crates").join(folder).join("src")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder can be read") {
            let path = entry.expect("an entry").path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "testing");
            match path.is_dir() {
                _ if is_test => {}
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => {
                    let source = read(&path);
                    let (before_tests, _) =
                        source.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&source, ""));
                    let lines = before_tests.lines().filter(|line| !line.trim_start().starts_with("//"));
                    code.extend(lines.map(|line| (path.clone(), line.to_owned())));
                }
                false => {}
            }
        }
    }
    code
}

#[test]
fn protocols_and_schemes_are_named_together_in_one_file() {
    let protocols = ["Occ", "TwoPl", "Client2pc", "Rococo"];
    let schemes = ["Dst", "Gts", "Vts", "Rc", "ReadCommitted", "NoTimestamps"];
    for (name, _) in MAY_USE {
        for (path, line) in code(name) {
            for (protocol, scheme) in
                protocols.iter().flat_map(|protocol| schemes.map(|scheme| (protocol, scheme)))
            {
                let pair = [format!("{protocol}<{scheme}>"), format!("{protocol}::<{scheme}>")];
                let named = pair.iter().any(|pair| line.contains(pair));
                assert!(!named, "{} names a pair: {line}", path.display());
            }
        }
    }
}

/// Words that stand beside each other in every list of all protocols, of all schemes, of all
/// workloads; the paragraph of CONTRIBUTING.md that says where such lists are; and files that name
/// them all without being a list: they describe certain experiments.
const LISTS: [(&[&str], &str, &[&str]); 7] = [
    (&["Occ", "TwoPl", "Client2pc", "Rococo"], "**A protocol.**", &[]),
    (&["\"two_pl\"", "\"client_2pc\"", "\"rococo\""], "**A protocol.**", &[]),
    (&["Dst", "Gts", "Vts", "Rc"], "**A timestamp scheme.**", &["scale/src/calibrate.rs"]),
    (
        &["\"dst\"", "\"gts\"", "\"vts\"", "\"rc\""],
        "**A timestamp scheme.**",
        &["bench/src/report/sample.rs", "scale/src/page.rs", "scale/src/predict/published.rs"],
    ),
    (&["MicroFlags", "SmallBankFlags", "TpccFlags"], "**A workload.**", &[]),
    (&["Micro", "SmallBank", "Tpcc"], "**A workload.**", &["scale/src/calibrate.rs"]),
    (&["\"micro\"", "\"smallbank\"", "\"tpcc\""], "**A workload.**", &[]),
];

#[test]
fn what_is_added_to_lists_is_added_to_those_that_contributing_names() {
    let contributing = read(&root().join("CONTRIBUTING.md"));
    for (words, paragraph, others) in LISTS {
        let paragraph = contributing.split("\n\n").find(|text| text.starts_with(paragraph)).expect(paragraph);
        let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
        for (path, line) in MAY_USE.into_iter().flat_map(|(name, _)| code(name)) {
            *files.entry(path).or_default() += &(line + "\n");
        }
        for (path, code) in files {
            let file =
                path.strip_prefix(root().join("crates")).expect("a crate is here").display().to_string();
            let named = |word: &&str| {
                let inside = |c: char| c.is_alphanumeric() || c == '_';
                code.match_indices(*word).any(|(at, word)| {
                    !code[..at].ends_with(inside) && !code[at + word.len()..].starts_with(inside)
                })
            };
            if words.iter().all(named) && !others.contains(&file.as_str()) {
                assert!(
                    paragraph.contains(&format!("(crates/{file})")),
                    "{file} lists {words:?}: {paragraph}"
                );
            }
        }
    }
}

#[test]
fn an_error_of_the_library_names_no_flag() {
    for (path, line) in ["engine", "plimsoll", "runtime", "txn"].into_iter().flat_map(code) {
        let flag = line
            .match_indices("--")
            .any(|(at, _)| line[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()));
        assert!(!flag, "{} names a flag: {line}", path.display());
    }
}

/// The folders of txn, each before those that may use it. The modules in the sorted ones are named
/// without them.
const TXN_FOLDERS: [&str; 6] = ["words", "timestamps", "shard", "commit", "protocols", "pairs"];
const TXN_SORTED: [&str; 3] = ["words", "shard", "commit"];

/// By module of txn: its folder, and the modules that its code names after `crate::`. What `impl`
/// blocks of one type in several modules call of each other is not seen.
fn modules_of_txn() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let source = root().join("crates/txn/src");
    let mut modules: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for (path, line) in code("txn") {
        let below = path.strip_prefix(&source).expect("it is a source of txn").with_extension("");
        let mut parts = below.iter().map(|part| part.to_str().expect("UTF-8"));
        let folder = parts.next().expect("a file has a name");
        let module =
            if TXN_SORTED.contains(&folder) { parts.next().expect("a folder has files") } else { folder };
        if module == "mod" || module == "lib" {
            continue;
        }
        let (_, used) =
            modules.entry(module.to_owned()).or_insert_with(|| (folder.to_owned(), BTreeSet::new()));
        for (at, name) in line.match_indices("crate::").map(|(at, name)| (at, &line[at + name.len()..])) {
            assert!(!name.starts_with('{'), "{} imports several modules at once: {line}", path.display());
            let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            // A macro is expanded elsewhere.
            if !line[..at].ends_with('$') && name != module {
                used.insert(name);
            }
        }
    }
    modules
}

#[test]
fn modules_of_txn_form_no_circle() {
    let mut left: BTreeMap<String, BTreeSet<String>> =
        modules_of_txn().into_iter().map(|(module, (_, used))| (module, used)).collect();
    for (module, used) in &left {
        let unknown = used.iter().find(|used| !left.contains_key(*used));
        assert!(unknown.is_none(), "{module} names {unknown:?}, which is no module");
    }
    // A procedure may be one that is shipped, and what is shipped is a procedure.
    left.get_mut("procedure").expect("there are procedures").remove("shipped");
    let ends = |left: &BTreeMap<String, BTreeSet<String>>| {
        let mut all = left.iter();
        all.find(|(_, used)| !used.iter().any(|used| left.contains_key(used))).map(|(end, _)| end.clone())
    };
    while let Some(end) = ends(&left) {
        left.remove(&end);
    }
    // All that is left uses something that is left.
    let mut way: Vec<&str> = left.keys().map(String::as_str).take(1).collect();
    while let Some(last) = way.last() {
        let next = left[*last].iter().find(|used| left.contains_key(*used)).expect("it is no end");
        if let Some(first) = way.iter().position(|known| known == next) {
            panic!("a circle: {} -> {next}", way[first..].join(" -> "));
        }
        way.push(next);
    }
}

#[test]
fn folders_of_txn_use_only_those_before_them() {
    let modules = modules_of_txn();
    let place = |module: &str| TXN_FOLDERS.iter().position(|folder| *folder == modules[module].0);
    for (module, (folder, used)) in &modules {
        assert!(place(module).is_some(), "{folder} is no folder of txn");
        for used in used {
            assert!(place(used) <= place(module), "{module} uses {used}, whose folder comes after {folder}");
        }
    }
}
