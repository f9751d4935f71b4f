//! `plimsoll bench net`, as its users see it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn net(flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["bench", "net"]).args(flags).output().expect("the binary is there")
}

#[test]
fn it_tells_what_a_call_costs() {
    let output = net(&["--duration", "20ms", "--runs", "1", "--in-flight", "1,4", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else");
    let number = |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap_or_default();
    assert!(number("/raw/p50_us") > 0.0 && number("/call/p50_us") > 0.0, "{document}");
    assert!((number("/ratio") / (number("/call/p50_us") / number("/raw/p50_us")) - 1.0).abs() < 1e-9);
    assert_eq!([number("/throughput/0/in_flight"), number("/throughput/1/in_flight")], [1.0, 4.0]);
    assert!(number("/throughput/1/messages_per_second") > 0.0, "{document}");
}

#[test]
fn the_process_that_answers_ends_with_its_standard_input() {
    for (said, well) in [("127.0.0.1:9\n", true), ("nobody\n", false), ("", false)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["bench", "net", "--member"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut member = command.spawn().expect("the binary is there");
        member.stdin.take().expect("it is piped").write_all(said.as_bytes()).expect("it reads");
        let output = member.wait_with_output().expect("it ends");
        assert_eq!(output.status.success(), well, "{said:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).split_whitespace().count(), 2, "two addresses");
    }
}

#[test]
fn what_it_cannot_do_it_says_in_a_sentence() {
    for (flags, word) in [
        (&["--duration", "1ms"][..], "--duration"),
        (&["--in-flight", "0"][..], "--in-flight"),
        (&["--runs", "0"][..], "--runs"),
        (&["--warehouses", "2"][..], "--warehouses"),
    ] {
        let output = net(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(word), "{flags:?}");
    }
}
