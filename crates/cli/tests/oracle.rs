//! `plimsoll bench oracle`, as its users see it.

use std::process::{Command, Output};

use serde_json::Value;

fn oracle(flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["bench", "oracle"]).args(flags).output().expect("the binary is there")
}

#[test]
fn it_tells_what_an_oracle_can_do() {
    let flags = ["--duration", "100ms", "--threads", "1,2", "--in-flight", "1,8"];
    let output = oracle(&[&flags[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else");
    let rows = |name: &str| document[name].as_array().cloned().unwrap_or_default();
    assert_eq!(rows("memory").len(), 2 * 2 + 2, "{document}");
    assert!(rows("memory").iter().all(|row| row["per_second"].as_f64().unwrap_or_default() > 0.0));
    let service = rows("service");
    assert_eq!(service.len(), 2 * 2 * 2, "{document}");
    for row in service {
        let number = |name: &str| row[name].as_f64().unwrap_or_default();
        assert!(number("snapshots_per_second") > 0.0 && number("commits_per_second") > 0.0, "{row}");
        if row["in_flight"] == 1 {
            // A report and a question; under gts a number is fetched besides.
            let commit = if row["scheme"] == "gts" { 3.0 } else { 2.0 };
            let shares = [number("messages_per_snapshot"), number("messages_per_commit") / commit];
            assert!(shares.iter().all(|share| (0.9..2.0).contains(share)), "{row}");
        }
    }
}

#[test]
fn what_it_cannot_do_it_says_in_a_sentence() {
    for (flags, word) in [
        (&["--duration", "1ms"][..], "--duration"),
        (&["--in-flight", "0"][..], "--in-flight"),
        (&["--threads", "0"][..], "--threads"),
        (&["--member", "dst"][..], "dst has no oracle"),
        (&["--warehouses", "2"][..], "--warehouses"),
    ] {
        let output = oracle(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(word), "{flags:?}");
    }
}
