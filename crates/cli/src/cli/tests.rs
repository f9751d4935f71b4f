//! Every command is sound and teaches; and of `sim` one test for each reason to refuse, and one for
//! each way to say yes.

use super::*;

#[test]
fn the_command_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_level_of_help_teaches() {
    let help = |line: &str| {
        let error = Cli::try_parse_from(line.split(' ')).expect_err("help is not a command");
        assert_eq!(error.exit_code(), 0);
        error.to_string()
    };
    let bench = ["plimsoll bench --help", "plimsoll bench -h"];
    for line in ["plimsoll --help"].into_iter().chain(bench.into_iter().filter(|_| cfg!(feature = "bench"))) {
        let text = help(line);
        assert!(text.contains("Examples:\n"), "{text}");
        assert!(text.contains("  rc      Read committed, NOT serializable"), "{text}");
    }
}

/// Lines that a narrow terminal would break anywhere cannot be copied. Prose may break.
#[test]
fn examples_and_lists_in_help_fit_on_every_terminal() {
    fn check(command: &clap::Command) {
        let text = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// The commands in the examples of a command's help, without what a shell does with their output.
fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
    let (_, list) = text.split_once("Examples:\n").unwrap_or_default();
    let whole = list.replace(" \\\n    ", " ");
    let lines =
        whole.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.starts_with("plimsoll "));
    let parsed = |line: &str| line.split(['>', '|']).next().unwrap_or_default().trim_end().to_owned();
    lines.map(parsed).collect()
}

#[test]
fn every_command_has_examples_and_the_program_understands_them() {
    fn check(command: &clap::Command) {
        let examples = examples(command);
        assert!(!examples.is_empty(), "{} has no examples", command.get_name());
        for line in examples {
            if let Err(error) = Cli::try_parse_from(line.split(' ')) {
                assert_eq!(error.exit_code(), 0, "{line}: {error}");
            }
        }
        command.get_subcommands().filter(|command| !command.is_hide_set()).for_each(check);
    }
    check(&Cli::command());
}
