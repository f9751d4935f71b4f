//! The smallest schedules in which a rule matters, played step by step.
//!
//! For each rule that makes a protocol correct there is a smallest history that breaks if the rule
//! is broken. Here every such history is a script (`script.rs`) in which the messages of a few
//! transactions arrive in a fixed order, at the protocols' real code in a simulated world. Without
//! a bug the history is serializable, its timestamps agree with it, and who should commit commits.
//! With the rule broken, by a planted bug, the checker names the anomaly, in this very schedule.
//!
//! The page about the simulator has a table of all of them, which is compared with this code;
//! `UPDATE_DOCS=1` writes it.
//!
//! Left out: votes and moving slots, whose scripts are in `tests/lives`; failover, for which there
//! is no code yet.

mod absence;
mod client_2pc;
mod occ;
mod oracle;
mod rococo;
mod script;
mod snapshots;
mod two_pl;

use std::path::Path;

use plimsoll_types::mutants::Mutant;

/// A script and what is expected of it.
pub struct Litmus {
    /// The name of its test.
    name: &'static str,
    /// The rule as it is broken.
    broken: &'static str,
    /// Protocols and schemes under which the rule matters.
    setups: &'static [&'static str],
    /// Others under which the same script must pass, although its messages may be others.
    also: &'static [&'static str],
    /// Bugs that break the rule, and what the checker says to them.
    caught: &'static [(Mutant, &'static str)],
    /// The script.
    script: &'static str,
}

impl Litmus {
    fn play(&self) {
        let commits = script::Script::parse(self.script).commits;
        for setup in self.setups.iter().chain(self.also) {
            let outcome = script::play(setup, self.script, self.setups.contains(setup));
            assert!(outcome.violations.is_empty(), "{setup}: {:#?}", outcome.violations);
            if self.setups.contains(setup) {
                assert_eq!(outcome.committed, commits, "{setup}: left have committed, right should have");
            }
        }
        let in_one_round = script::play(script::IN_ONE_ROUND, self.script, false);
        assert!(in_one_round.violations.is_empty(), "in one round: {:#?}", in_one_round.violations);
        for (mutant, kind) in self.caught {
            for setup in self.setups {
                plimsoll_types::mutants::plant(Some(*mutant));
                let outcome = script::play(setup, self.script, false);
                plimsoll_types::mutants::plant(None);
                let caught = outcome.violations.iter().any(|(found, _)| found == kind);
                assert!(caught, "{setup} with {}: {outcome:#?}", mutant.name());
            }
        }
    }

    /// Its line in the table: rule, smallest history, test, bugs.
    fn line(&self) -> String {
        let head = self.script.lines().map(str::trim).skip_while(|line| line.is_empty());
        let history: Vec<&str> = head.take_while(|line| !line.is_empty()).collect();
        let bugs: Vec<String> =
            self.caught.iter().map(|(mutant, kind)| format!("`{}`: {kind}", mutant.name())).collect();
        format!(
            "| {} | {} | `{}` ({}) | {} |\n",
            self.broken,
            history.join("<br>"),
            self.name,
            self.setups.join(", "),
            bugs.join("; ")
        )
    }
}

/// Defines tests and lists them.
#[macro_export]
macro_rules! litmus {
    ($($name:ident { $($field:ident: $value:expr,)+ })+) => {
        /// All of this file.
        pub const ALL: &[$crate::Litmus] =
            &[$($crate::Litmus { name: stringify!($name), $($field: $value,)+ },)+];
        $(#[test]
        fn $name() {
            ALL.iter().find(|litmus| litmus.name == stringify!($name)).expect("it is listed").play();
        })+
    };
}

#[test]
fn the_page_lists_every_litmus() {
    let all =
        [occ::ALL, snapshots::ALL, two_pl::ALL, client_2pc::ALL, rococo::ALL, absence::ALL, oracle::ALL];
    let lines: String = all.into_iter().flatten().map(Litmus::line).collect();
    let table = format!("| the rule, broken | history | test | planted bug |\n|---|---|---|---|\n{lines}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let begin = "<!-- litmus: generated -->\n";
    let start = text.find(begin).expect("the page has a place for the table") + begin.len();
    let stop = start + text[start..].find("<!-- end -->").expect("the table has an end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = format!("{}{table}{}", &text[..start], &text[stop..]);
        std::fs::write(&page, text).expect("the page can be written");
    } else {
        assert_eq!(&text[start..stop], table, "run this test with UPDATE_DOCS=1");
    }
}
