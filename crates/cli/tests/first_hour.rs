//! What a new user does first: completions, the manual.

use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(words).output().expect("the binary is there")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn completions_of_a_shell_complete_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&run(&["completions", shell]));
        for word in ["status", "table", "listen"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    // The shell itself can read it, and offers what there is.
    let script = said(&run(&["completions", "bash"]));
    let ask = "COMP_WORDS=(plimsoll stat); COMP_CWORD=1; _plimsoll plimsoll stat plimsoll; echo \"${COMPREPLY[@]}\"";
    let offered =
        Command::new("bash").arg("-c").arg(format!("{script}\n{ask}")).output().expect("bash is there");
    assert_eq!(said(&offered).trim(), "status");
}

#[test]
fn an_unknown_shell_is_refused_with_those_that_there_are() {
    let output = run(&["completions", "csh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("possible values: bash"), "{output:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("share/man1");
    assert!(said(&run(&["man"])).contains(".TH plimsoll 1"));
    said(&run(&["man", pages.to_str().expect("text")]));
    for page in ["plimsoll.1", "plimsoll-start.1", "plimsoll-status.1"] {
        let text = std::fs::read_to_string(pages.join(page)).expect(page);
        assert!(
            text.contains(".SH OPTIONS") && text.contains("Exit status") | text.contains("EXTRA"),
            "{page}: {text}"
        );
    }
    let output = run(&["man", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .starts_with("plimsoll: cannot write manual pages into /proc/nowhere")
    );
}
