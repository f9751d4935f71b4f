//! Every command is sound and teaches; and of `sim` one test for each reason to refuse, and one for
//! each way to say yes.

use super::*;

#[test]
fn the_command_definition_is_sound() {
    use clap::CommandFactory;
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
