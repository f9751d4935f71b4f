//! What a benchmark is: one TOML file, and flags over it.
//!
//! Every parameter has a default, so an empty file is a plain TPC-C run on a PostgreSQL at home.
//! The commented template that `plimsoll dike template` prints *is* the reference: it holds every
//! parameter at its default, with its unit and its meaning, and a test keeps it and these
//! structures equal. `--set run.terminals=64` overrides one parameter without a second file.
//!
//! Nothing is read that means nothing: unknown keys are refused by name, numbers outside of their
//! range are refused with the range, mixes have to sum to 100. What contradicts (a fixed home for
//! more terminals than warehouses, skewed districts that leave a warehouse without one) is refused
//! before anything is connected.
//!
//! No refusal repeats a password: not its own value, not a line of the file.
//!
//! Left out: including other files. A result carries its whole configuration, but for the password,
//! which is also the only thing that may come from the environment.

mod controls;
mod parts;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::chaos::machines::Machines;
use crate::chaos::schedule::Schedule;
use crate::collect;
use crate::run::Plan;
use crate::transactions::Transaction;

pub use controls::{
    Access, Arrivals, Choice, CoAccess, Contention, Distribution, MixChange, Phase, Placement, Shape, Skew,
};
pub use parts::{Data, Home, Load, LoadMethod, Mix, Retry, Run, Schema, Secret, Target, Test, Tls, Workload};

/// The commented template of a plain TPC-C run, which is also the reference of all parameters.
pub const TPCC_TEMPLATE: &str = include_str!("tpcc.toml");

/// Names and texts of the templates: the reference, and the experiments of the paper's appendix.
pub const TEMPLATES: &[(&str, &str)] = &[
    ("tpcc", TPCC_TEMPLATE),
    ("paper", include_str!("templates/paper.toml")),
    ("distributed-transactions", include_str!("templates/distributed-transactions.toml")),
    ("distributed-queries", include_str!("templates/distributed-queries.toml")),
    ("contention", include_str!("templates/contention.toml")),
    ("dynamic-load", include_str!("templates/dynamic-load.toml")),
    ("dynamic-mix", include_str!("templates/dynamic-mix.toml")),
    ("optimizations", include_str!("templates/optimizations.toml")),
    ("broadcast", include_str!("templates/broadcast.toml")),
    ("scalability", include_str!("templates/scalability.toml")),
    ("data-balance", include_str!("templates/data-balance.toml")),
    ("hot-spot", include_str!("templates/hot-spot.toml")),
    ("co-access", include_str!("templates/co-access.toml")),
    ("fault-cpu", include_str!("templates/fault-cpu.toml")),
    ("fault-memory", include_str!("templates/fault-memory.toml")),
    ("fault-disk-read", include_str!("templates/fault-disk-read.toml")),
    ("fault-disk-write", include_str!("templates/fault-disk-write.toml")),
    ("fault-network-delay", include_str!("templates/fault-network-delay.toml")),
    ("fault-network-loss", include_str!("templates/fault-network-loss.toml")),
    ("fault-network-partition", include_str!("templates/fault-network-partition.toml")),
    ("fault-pause", include_str!("templates/fault-pause.toml")),
    ("fault-kill", include_str!("templates/fault-kill.toml")),
    ("fault-shutdown", include_str!("templates/fault-shutdown.toml")),
    ("fault-clock-skew", include_str!("templates/fault-clock-skew.toml")),
    ("fault-timestamp-source", include_str!("templates/fault-timestamp-source.toml")),
];

/// Everything about one benchmark.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What is measured and how it is reached.
    pub target: Target,
    /// How its tables are laid out.
    pub schema: Schema,
    /// How large the database is.
    pub data: Data,
    /// How it is loaded.
    pub load: Load,
    /// How long and with how many terminals it is used.
    pub run: Run,
    /// In per cent, which transactions are run.
    pub mix: Mix,
    /// What they do.
    pub workload: Workload,
    /// Where warehouses live.
    pub placement: Placement,
    /// How transactions spread over warehouses.
    pub distribution: Distribution,
    /// How many of them compete.
    pub contention: Contention,
    /// How often each warehouse is the home.
    pub access: Access,
    /// Warehouses that are changed together.
    pub co_access: CoAccess,
    /// When transactions start.
    pub arrivals: Arrivals,
    /// What happens after conflicts and outages.
    pub retry: Retry,
    /// The functional tests.
    pub test: Test,
    /// Where faults happen and samples come from.
    pub machines: Machines,
    /// The faults of a run.
    pub chaos: Schedule,
    /// What is recorded of machines during a run.
    pub collect: collect::Settings,
}

/// Why a configuration is refused, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// Refuses with a sentence.
macro_rules! refuse {
    ($($sentence:tt)*) => { return Err($crate::config::Refusal(format!($($sentence)*))) };
}
pub(crate) use refuse;

impl Config {
    /// Reads a configuration and what is set over it, each `part.name=value`. Where the parameter
    /// is a text, the value is that text as it stands; elsewhere it is TOML.
    pub fn parse(text: &str, set: &[String]) -> Result<Config, Refusal> {
        let wrong = |error: toml::de::Error| Refusal(describe(&error, text));
        let mut table: toml::Table = toml::from_str(text).map_err(wrong)?;
        for assignment in set {
            assign(&mut table, assignment)?;
        }
        // Without overrides the text is read as it is: its errors then have a line.
        let config: Config =
            if set.is_empty() { toml::from_str(text) } else { table.try_into() }.map_err(wrong)?;
        config.validate()?;
        Ok(config)
    }

    /// Says in one sentence what is wrong with it.
    pub fn validate(&self) -> Result<(), Refusal> {
        self.target.validate()?;
        self.schema.validate()?;
        self.data.validate()?;
        self.load.validate()?;
        self.run.validate()?;
        self.mix.validate()?;
        self.workload.validate(&self.data)?;
        self.placement.validate()?;
        self.distribution.validate()?;
        self.contention.validate()?;
        self.access.validate()?;
        self.co_access.validate()?;
        self.arrivals.validate()?;
        self.retry.validate()?;
        self.test.validate()?;
        let run_s = (self.run.warmup_s + self.run.duration_s) as f64;
        let said = |error: &dyn fmt::Display| Refusal(error.to_string());
        self.machines.check().map_err(|error| said(&format_args!("machines: {error}")))?;
        let scheduled = self.chaos.check(&self.machines, &self.target.endpoints, Some(run_s));
        scheduled.map_err(|error| said(&format_args!("chaos: {error}")))?;
        self.collect.check(&self.machines).map_err(|error| said(&error))?;
        if self.run.home == Home::Fixed && self.run.all_terminals() > self.data.warehouses {
            refuse!(
                "run.home = \"fixed\" gives each terminal a warehouse of its own, and there are {} terminals \
                 but {} \
                 warehouses: use fewer terminals or more warehouses",
                self.run.all_terminals(),
                self.data.warehouses
            );
        }
        if self.run.home == Home::Fixed && self.access.skew != Skew::Uniform {
            refuse!(
                "access.skew says how homes are drawn, and run.home = \"fixed\" draws none: use one of them"
            );
        }
        if self.run.connections > self.run.terminals {
            refuse!(
                "run.connections is {}, but {} terminals can use no more than one each: lower it, or 0 for \
                 one each",
                self.run.connections,
                self.run.terminals
            );
        }
        let updates = self.mix.ever(Transaction::UpdateBalance);
        if self.data.warehouses == 1 && updates && self.workload.balance_warehouses > 1 {
            refuse!("workload.balance_warehouses needs as many warehouses: there is 1");
        }
        Plan::new(self).map(|_| ())
    }
}

/// What a reader of TOML finds wrong and in which line. The line itself is not shown: it may hold a
/// password.
fn describe(error: &toml::de::Error, text: &str) -> String {
    let mut message = error.message().trim_end().to_owned();
    // Of a text in the wrong place it is enough to know that it is one.
    if let (Some(from), Some(to)) = (message.find("string \""), message.rfind("\", expected")) {
        message.replace_range(from + "string".len()..=to, "");
    }
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

fn assign(table: &mut toml::Table, assignment: &str) -> Result<(), Refusal> {
    // What stands behind the `=`, or all of it without one, may be a password.
    let Some((path, value)) = assignment.split_once('=') else {
        refuse!(
            "--set takes part.name=value, such as run.terminals=64, and there is no `=` in what it was given"
        );
    };
    let Some((part, name)) = path.trim().split_once('.') else {
        refuse!("`{}` names no parameter: write part.name=value, such as run.terminals=64", path.trim());
    };
    let by_default = toml::Table::try_from(Config::default()).unwrap_or_default();
    let by_default = by_default.get(part).and_then(|part| part.get(name));
    // With blanks around the `=`, the one behind it does not belong to a text.
    let text = if path.ends_with(' ') { value.strip_prefix(' ').unwrap_or(value) } else { value };
    let value = match by_default {
        Some(toml::Value::String(_)) => toml::Value::String(text.to_owned()),
        by_default => {
            let value = value.trim();
            // What is no TOML value is a text that a shell has stripped of its quotes.
            let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
            let parsed = parsed.filter(|parsed| parsed.len() == 1).and_then(|mut it| it.remove("value"));
            let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
            match (by_default, value) {
                (Some(toml::Value::Array(texts)), toml::Value::String(one))
                    if texts.first().is_some_and(toml::Value::is_str) =>
                {
                    toml::Value::Array(vec![toml::Value::String(one)])
                }
                (_, value) => value,
            }
        }
    };
    let part_of = table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    let Some(part_of) = part_of.as_table_mut() else {
        refuse!("`{part}` is no section of the configuration: write [{part}] above its parameters");
    };
    part_of.insert(name.to_owned(), value);
    Ok(())
}

/// Refuses a number outside of a range.
pub(crate) fn within<N: PartialOrd + fmt::Display>(
    name: &str,
    value: N,
    least: N,
    most: N,
) -> Result<(), Refusal> {
    if value >= least && value <= most {
        return Ok(());
    }
    refuse!("{name} is {value}: it has to be {least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_the_default_and_names_every_parameter() {
        let parsed = Config::parse(TPCC_TEMPLATE, &[]).expect("the template is valid");
        assert_eq!(parsed, Config::default());
        let json = serde_json::to_value(Config::default()).expect("a configuration is plain");
        let mut part = String::new();
        let mut found = std::collections::BTreeSet::new();
        for line in TPCC_TEMPLATE.lines() {
            if let Some(list) = line.strip_prefix("#[[") {
                // Lists that are empty by default have examples.
                found.insert(list.trim_end_matches(']').to_owned());
            } else if let Some(name) = line.strip_prefix('[') {
                part = name.trim_end_matches(']').to_owned();
            } else if let Some((name, _)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
                found.insert(format!("{part}.{}", name.trim()));
            }
        }
        for (part, names) in json.as_object().expect("parts") {
            for name in names.as_object().expect("names").keys() {
                assert!(found.remove(&format!("{part}.{name}")), "{part}.{name} is not in the template");
            }
        }
        assert!(found.is_empty(), "{found:?}");
    }

    /// The names that a reader takes after this beginning of a table, as its refusal of another
    /// lists them.
    fn names_after<T: for<'a> Deserialize<'a>>(beginning: &str) -> Vec<String> {
        let read = toml::from_str::<T>(&format!("{beginning}\nunheard_of = 1"));
        let refusal = read.err().expect("nothing has such a name").message().to_owned();
        let list = refusal.split("expected").nth(1).unwrap_or_default().to_owned();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_template_names_what_lists_are_made_of() {
        let has = |name: &str, wanted: &[&str]| {
            let lines = TPCC_TEMPLATE.lines().filter(|line| line.starts_with('#'));
            let mut lines =
                lines.filter(|line| name.is_empty() || line.split_whitespace().nth(1) == Some(name));
            let any = |line: &str| wanted.iter().any(|wanted| line.contains(wanted));
            assert!(lines.any(any), "{name} {wanted:?} is not in the template");
        };
        let mut named = names_after::<crate::chaos::machines::Host>("");
        named.extend(names_after::<crate::chaos::machines::Process>(""));
        named.extend(names_after::<Phase>(""));
        named.extend(names_after::<MixChange>(""));
        named.extend(["at_s", "for_s", "every_s", "times", "where", "fault"].map(str::to_owned));
        assert_eq!(named.len(), 5 + 7 + 2 + 2 + 6, "{named:?}");
        named.iter().for_each(|name| has("", &[&format!("#{name} = "), &format!("{name} = ")]));
        let faults = names_after::<crate::chaos::fault::Fault>("fault = \"unheard_of\"");
        assert_eq!(faults.len(), 16, "{faults:?}");
        for fault in &faults {
            let parameters = names_after::<crate::chaos::fault::Fault>(&format!("fault = \"{fault}\""));
            has(fault, &[""]);
            parameters.iter().for_each(|parameter| has(fault, &[parameter]));
        }
    }

    #[test]
    fn every_template_is_a_valid_configuration_of_its_own() {
        for (name, text) in TEMPLATES {
            let config = Config::parse(text, &[]).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            assert!(*name == "tpcc" || config != Config::default(), "{name}");
            assert!(text.starts_with("# "), "{name} does not say what it is");
        }
    }

    #[test]
    fn the_examples_in_the_template_are_valid() {
        let example = |line: &str| match line.strip_prefix('#') {
            Some(said) if said.starts_with(' ') => String::new(),
            Some(example) => format!("{example}\n"),
            None => format!("{line}\n"),
        };
        let text: String = TPCC_TEMPLATE.lines().map(example).collect();
        let config = Config::parse(&text, &[]).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!((config.machines.hosts.len(), config.machines.processes.len()), (1, 1));
        assert_eq!(config.chaos.faults.len(), 2);
    }

    #[test]
    fn a_schedule_is_judged_with_the_rest() {
        let fault = |rest: &str| format!("[[chaos.faults]]\nat_s = 5\nfor_s = 2\n{rest}");
        let delay = "fault = \"network_delay\"\ndelay_ms = 5\nwhere = [\"10.0.0.9:5432\"]";
        refused(&fault(delay), "chaos: fault 1 (network_delay): it cannot be aimed at `10.0.0.9:5432`");
        let there = "[target]\nendpoints = [\"10.0.0.9:5432\"]\n";
        assert!(Config::parse(&format!("{there}{}", fault(delay)), &[]).is_ok());
        let short = "run.warmup_s=1,run.duration_s=4".split(',').map(str::to_owned).collect::<Vec<_>>();
        let late = Config::parse(&format!("{there}{}", fault(delay)), &short).expect_err("too late").0;
        assert!(late.contains("after the run, which lasts 5 s"), "{late}");
        refused(&fault("fault = \"pause\"\nwhere = [\"db\"]"), "there is nothing that it acts on");
        refused("[[machines.hosts]]\nname = \"n1\"", "machines: host n1 cannot be reached");
        refused("[collect]\ninterval_s = 0", "collect: `interval_s` is 0");
        let set = r#"chaos.faults=[{ at_s = 1, for_s = 1, fault = "cpu", where = ["localhost"] }]"#;
        assert_eq!(Config::parse("", &[set.to_owned()]).expect("valid").chaos.faults.len(), 1);
    }

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let refusal = Config::parse(text, &[]).expect_err("refused").to_string();
        assert!(refusal.contains(why), "{refusal}");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        refused("[run]\nterminal = 4", "terminal");
        refused("[mix]\nnew_order = 46", "sum to 101");
        refused("[data]\nwarehouses = 0", "data.warehouses is 0: it has to be 1 to");
        refused("[data]\nwarehouses = 4\ndistrict_skew = -1.0", "district_skew");
        refused("[run]\nterminals = 20\nhome = \"fixed\"\n[data]\nwarehouses = 10", "warehouse of its own");
        refused("[run]\nwarmup_s = 0.5", "u64");
        refused("[run]\nconnections = 20\nterminals = 10", "no more than one each");
        refused("[target]\nendpoints = []", "endpoint");
        refused("[target]\nendpoints = [\"nowhere\"]", "host:port");
        refused("[target]\nkind = \"oracle\"", "oracle");
        refused("[target]\ntls_ca = \"ca.pem\"", "target.tls = \"verify\"");
        refused("[target]\ntls = \"verify\"\ntls_cert = \"me.pem\"", "belong together");
        refused("[target]\ntls_cert = \"me.pem\"\ntls_key = \"me.key\"", "over TLS");
        refused("[workload]\nremote_line_pct = 101.0", "remote_line_pct");
        let change = "changes = [{ at_s = 5, weights = { payment = 100 } }]";
        refused(&format!("[mix]\nby_terminal = true\n{change}"), "use one of them");
    }

    #[test]
    fn flags_override_single_parameters() {
        let set = ["run.terminals=3", "target.password=se=cret", "target.isolation=serializable"];
        let config = Config::parse(TPCC_TEMPLATE, &set.map(str::to_owned)).expect("valid");
        assert_eq!(config.run.terminals, 3);
        assert_eq!(config.target.password.reveal(), "se=cret");
        assert_eq!(config.target.isolation, crate::target::Isolation::Serializable);
        let refusal = Config::parse("", &["run.bogus=1".to_owned()]).expect_err("refused").to_string();
        assert!(refusal.contains("bogus"), "{refusal}");
        assert!(Config::parse("", &["terminals".to_owned()]).is_err());
    }

    #[test]
    fn a_text_is_set_as_it_stands() {
        let set = |assignment: &str| Config::parse(TPCC_TEMPLATE, &[assignment.to_owned()]);
        for text in
            ["12345678", "true", "4e1", "[1]", "{a=1}", "\"quoted\"", "a\nb=1", " x ", "2026-01-01", "'", "#"]
        {
            let password = set(&format!("target.password={text}")).expect("a text").target.password;
            assert_eq!(password.reveal(), text);
            assert_eq!(set(&format!("run.label={text}")).expect("a text").run.label, text);
            assert_eq!(set(&format!("target.user={text}")).expect("a text").target.user, text);
            assert_eq!(set(&format!("target.database={text}")).expect("a text").target.database, text);
        }
        assert_eq!(set("target.tls = unverified").expect("valid").target.tls, Tls::Unverified);
        assert_eq!(set("run.terminals = 3").expect("valid").run.terminals, 3);
        let one = set("target.endpoints=localhost:5433").expect("valid").target.endpoints;
        assert_eq!(one, ["localhost:5433"]);
        let two = set("target.endpoints=['a:1', 'b:2']").expect("valid").target.endpoints;
        assert_eq!(two, ["a:1", "b:2"]);
    }

    #[test]
    fn no_refusal_repeats_a_password() {
        const PASSWORD: &str = "hunter2";
        let texts = [
            "[target]\npassword = hunter2",
            "[target]\npassword = \"hunter2",
            "[target]\npassword = \"hunter2\" x",
            "[target]\npassword = [\"hunter2\"]",
            "[target]\npassword = { a = \"hunter2\" }",
            "[target]\npasswort = \"hunter2\"",
            "target = \"hunter2\"",
            "target = { password = \"hunter2\", bogus = 1 }",
            "[target]\nendpoints = [\"dike:hunter2@localhost:5432\"]",
            "[target]\nendpoints = [\"postgres://dike:hunter2@localhost/dike\"]",
            "[target]\nendpoints = [\"localhost:5432?password=hunter2\"]",
        ];
        for text in texts {
            let refusal = Config::parse(text, &[]).expect_err(text).to_string();
            assert!(!refusal.contains(PASSWORD) && !refusal.contains('\n'), "{text}: {refusal}");
        }
        let sets = [
            "hunter2",
            "target.password:hunter2",
            "password=hunter2",
            "target.passwort=hunter2",
            "target={password=\"hunter2\"}",
            "target.password.x=hunter2",
            "target.endpoints=dike:hunter2@localhost:5432",
        ];
        for set in sets {
            let refusal = Config::parse("", &[set.to_owned()]).expect_err(set).to_string();
            assert!(!refusal.contains(PASSWORD) && !refusal.contains('\n'), "{set}: {refusal}");
        }
        for number in ["12345678", "1.5", "true", "2026-01-01"] {
            let refusal = Config::parse(&format!("[target]\npassword = {number}"), &[]).expect_err("no text");
            assert_eq!(refusal.to_string(), "line 2: a password is a text: write it in quotes");
        }
        let config = Config::parse("[target]\npassword = \"hunter2\"", &[]).expect("valid");
        assert!(!format!("{config:?}").contains(PASSWORD));
        assert!(!serde_json::to_string(&config).expect("plain").contains(PASSWORD));
    }
}
