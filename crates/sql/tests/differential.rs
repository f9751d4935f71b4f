//! Statements whose outcome has to be PostgreSQL's, to the letter: values, types, names, errors and
//! their places. They stand in `tests/statements`, one a line; `--` begins a comment.

mod beside;

use beside::{Server, ours, theirs};

/// What differs, and why it may.
const DIFFERENCES: &[(&str, &str)] = &[
    ("select cbrt(27), ||/ 27", "3, of which the C library of PostgreSQL makes 3.0000000000000004"),
    ("select * from (select 1)", "the grammar is that of PostgreSQL 18, which has lost this error's place"),
    ("select 1 as a union select 2 as b order by b", "no hint that another query has such a column"),
    ("select unistr('\\0064at\\+0000E5')", "not there yet"),
];

fn statements() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/statements");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("statements")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("statements");
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("--")) {
            all.push((name.clone(), line.trim_end_matches(';').to_owned()));
        }
    }
    all
}

#[test]
fn statements_come_to_what_postgresql_makes_of_them() {
    let Some(server) = Server::start() else {
        eprintln!("NOT RUN: PostgreSQL 15 is not installed (apt-get install postgresql-15)");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = server.connect().await;
        let mut failures = Vec::new();
        let all = statements();
        for (file, statement) in &all {
            let theirs = theirs(&client, statement).await;
            let ours = ours(statement);
            let expected = DIFFERENCES.iter().any(|(known, _)| known == statement);
            if (ours == theirs) == expected {
                failures.push(format!("{file}: {statement}\n  PostgreSQL: {theirs}\n  here:       {ours}"));
            }
        }
        let count = all.len();
        assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
        assert!(count > 300, "{count} statements");
    });
}
