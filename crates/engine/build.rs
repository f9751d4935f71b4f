//! Tells the program which commit it is built from.
//!
//! Outside a checkout, or without git, the commit is `unknown`; the build goes on. The script runs
//! again when a commit is made or checked out and when sources change, not when git merely
//! refreshes its index.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=PLIMSOLL_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    let mut inputs = vec!["build.rs".to_owned(), "../../Cargo.toml".to_owned()];
    if let Some(directory) = git(&["rev-parse", "--absolute-git-dir"]) {
        inputs.extend(["HEAD", "logs/HEAD"].map(|file| format!("{directory}/{file}")));
    }
    for entry in std::fs::read_dir("..").into_iter().flatten().flatten() {
        inputs.push(entry.path().join("src").display().to_string());
    }
    // A path that does not exist would make every build run this script.
    for input in inputs.iter().filter(|input| Path::new(input).exists()) {
        println!("cargo::rerun-if-changed={input}");
    }
}

fn commit() -> Option<String> {
    // Sources unpacked inside somebody else's checkout are not theirs.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changes = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// What git prints, without the line's end; `None` if it fails or is not there.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
