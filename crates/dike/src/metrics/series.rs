//! Which runs are repetitions of one another, and what a report calls them.
//!
//! Contents decide, not labels: runs of one label are repetitions only if everything that bears on
//! a result is the same, the database and its version, its settings, the clients and their
//! machines, and every parameter but those that say how often, with which random numbers and under
//! which name it was run, how the tables were loaded and what was watched. Runs of one label that
//! differ are series of their own, and the name of each says what differs:
//!
//! ```text
//! postgresql, isolation serializable
//! postgresql, isolation read_committed
//! ```

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{Document, Run};
use super::summary::{ClusterThroughput, Spread, scalability};

/// Parameters, or parts of them, that two repetitions may differ in. The kind and the number of
/// nodes, terminals and clients are those of the whole run.
const OF_A_REPETITION: [&str; 14] = [
    "run.label",
    "run.repeats",
    "run.seed",
    "run.client",
    "run.clients",
    "run.terminals",
    "chaos.seed",
    "target.kind",
    "target.user",
    "target.password",
    "placement.nodes",
    "load.",
    "collect.",
    "test.",
];

/// What clusters of different sizes may differ in, and still be the same database under the same
/// load: the load grows with the cluster.
const OF_A_SIZE: [&str; 11] = [
    "nodes",
    "clients",
    "terminals",
    "arrivals.rate_per_s",
    "data.warehouses",
    "machines.",
    "placement.",
    "run.connections",
    "schema.partitions",
    "target.endpoints",
    "warehouses",
];

/// Longest value in a name, in characters, and the most values.
const VALUE_MAX: usize = 32;
const VALUES_MAX: usize = 3;

/// Everything that bears on a result, by name.
pub(super) type Contents = BTreeMap<String, String>;

/// Whether a name is one of these, or in one of these parts, which end in a dot.
fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| name == *known || known.ends_with('.') && name.starts_with(known))
}

/// What decides whether a run is a repetition of another.
pub(super) fn contents(run: &Run) -> Contents {
    let about = &run.about;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let set = about.config.iter().filter(|(name, _)| !is_one_of(name, &OF_A_REPETITION));
    let mut contents: Contents = set.map(|(name, value)| (name.clone(), text(value))).collect();
    let machines: Vec<String> = about.client_machines.iter().map(ToString::to_string).collect();
    contents.extend([
        ("database".to_owned(), about.database.clone()),
        ("version".to_owned(), about.database_version.clone()),
        ("nodes".to_owned(), about.nodes.to_string()),
        ("clients".to_owned(), about.clients.to_string()),
        ("terminals".to_owned(), about.terminals.to_string()),
        ("client machine".to_owned(), machines.join("; ")),
    ]);
    // A setting that all nodes share has one entry; one that follows from a parameter has none.
    for (node, settings) in &about.server {
        for (name, value) in settings {
            if name.ends_with("version") || name.ends_with("transaction_isolation") || name == "tx_isolation"
            {
                continue;
            }
            let shared = about.server.values().all(|other| other.get(name) == Some(value));
            let name = if shared { format!("server.{name}") } else { format!("server.{node}.{name}") };
            contents.insert(name, value.clone());
        }
    }
    contents
}

/// Runs that are repetitions of one another.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// What it is called: the label, and what sets it apart from others of that label.
    pub name: String,
    /// Its repetitions.
    pub runs: Vec<&'a Run>,
    contents: Contents,
}

impl<'a> Group<'a> {
    /// The run of median throughput, of an even number the better one: the one whose details are
    /// shown.
    pub fn middle(&self) -> &'a Run {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| a.throughput_tps().total_cmp(&b.throughput_tps()));
        runs[runs.len() / 2]
    }

    /// Whether it differs from another in nothing but the size of the cluster and what grows with
    /// it.
    fn is_same_but_for_size(&self, other: &Group<'_>) -> bool {
        let names = self.contents.keys().chain(other.contents.keys());
        let mut differing = names.filter(|name| self.contents.get(*name) != other.contents.get(*name));
        // A setting that not all nodes share is under the name of its node, which only one has.
        let of_one = |name: &String| {
            let known = |of: &Contents| of.contains_key(name);
            name.starts_with("server.") && !(known(&self.contents) && known(&other.contents))
        };
        differing.all(|name| is_one_of(name, &OF_A_SIZE) || of_one(name))
    }
}

impl Document {
    /// Repetitions together, in the order in which the first of each ran.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for run in &self.runs {
            let contents = contents(run);
            let same = |group: &&mut Group<'_>| group.name == run.about.label && group.contents == contents;
            match groups.iter_mut().find(same) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group { name: run.about.label.clone(), runs: vec![run], contents }),
            }
        }
        let names: Vec<String> = (0..groups.len()).map(|at| name(&groups, at)).collect();
        for at in 0..groups.len() {
            // Long values may differ in what a name does not show.
            let before = names[..at].iter().filter(|name| **name == names[at]).count();
            groups[at].name = match before {
                0 => names[at].clone(),
                _ => format!("{} ({})", names[at], before + 1),
            };
        }
        groups
    }
}

/// What one of the groups, which still have their labels for names, is called.
fn name(groups: &[Group<'_>], at: usize) -> String {
    let group = &groups[at];
    let rivals: Vec<&Group<'_>> = groups.iter().filter(|other| other.name == group.name).collect();
    let mut names: Vec<&String> = rivals.iter().flat_map(|rival| rival.contents.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| rivals.iter().any(|rival| rival.contents.get(*name) != group.contents.get(*name)));
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let mut said = group.name.clone();
    for name in names.iter().take(VALUES_MAX) {
        let alone = names.iter().filter(|other| last(other) == last(name)).count() == 1;
        let short = if alone { last(name) } else { (*name).clone() };
        let value = group.contents.get(*name).map_or("not set", |value| value.as_str());
        let mut shown: String = value.chars().take(VALUE_MAX).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        said += &format!(", {short} {shown}");
    }
    if names.len() > VALUES_MAX {
        said += ", …";
    }
    said
}

/// Equation 3 for each series and the next larger cluster that is otherwise the same.
pub fn scalabilities<'g>(groups: &'g [Group<'_>]) -> Vec<(&'g str, &'g str, f64)> {
    let nodes = |group: &Group<'_>| group.runs[0].about.nodes;
    let throughput = |group: &Group<'_>| ClusterThroughput {
        nodes: nodes(group),
        tps: Spread::of(group.runs.iter().map(|run| run.throughput_tps())).median,
    };
    let mut sorted: Vec<&Group<'_>> = groups.iter().collect();
    sorted.sort_by_key(|group| (group.runs[0].about.database.as_str(), nodes(group)));
    let next = |(at, small): (usize, &&'g Group<'_>)| {
        let mut larger = sorted[at + 1..].iter();
        let large = larger.find(|large| nodes(large) > nodes(small) && small.is_same_but_for_size(large))?;
        Some((small.name.as_str(), large.name.as_str(), scalability(throughput(small), throughput(large))?))
    };
    sorted.iter().enumerate().filter_map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::document::About;

    fn run(label: &str, nodes: u32, set: &[(&str, &str)], committed: u64) -> Run {
        let config = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let about = About { label: label.into(), database: "db".into(), nodes, config, ..About::default() };
        let kind = crate::metrics::document::Kind { committed: vec![committed], ..Default::default() };
        Run { about, seconds: 1, kinds: vec![kind], ..Run::default() }
    }

    fn names(runs: Vec<Run>) -> Vec<(String, usize)> {
        let document = Document { runs };
        document.groups().into_iter().map(|group| (group.name, group.runs.len())).collect()
    }

    #[test]
    fn contents_decide_what_is_a_repetition_and_names_say_what_differs() {
        let at = |isolation: &str, seed: &str| {
            run("pg", 1, &[("target.isolation", isolation), ("run.seed", seed), ("mix.payment", "43")], 1)
        };
        assert_eq!(names(vec![at("serializable", "1"), at("serializable", "2")]), [("pg".to_owned(), 2)]);
        let named = names(vec![at("serializable", "1"), at("read_committed", "1"), at("serializable", "3")]);
        let expected = [("pg, isolation serializable", 2), ("pg, isolation read_committed", 1)];
        assert_eq!(named, expected.map(|(name, runs)| (name.to_owned(), runs)));
        // Other labels have nothing to be told apart from.
        let mut other = at("read_committed", "1");
        other.about.label = "maria".into();
        assert_eq!(names(vec![at("serializable", "1"), other])[1].0, "maria");
    }

    #[test]
    fn everything_that_bears_on_a_result_makes_a_series_of_its_own() {
        type Change = fn(&mut Run);
        let changes: [Change; 8] = [
            |run| run.about.database = "other".into(),
            |run| run.about.database_version = "16".into(),
            |run| run.about.nodes = 3,
            |run| run.about.terminals = 9,
            |run| run.about.clients = 2,
            |run| drop(run.about.config.insert("chaos.faults".into(), "[pause]".into())),
            |run| drop(run.about.server.insert("a".into(), [("fsync".into(), "off".into())].into())),
            |run| run.about.client_machines.push(crate::metrics::environment::Machine::default()),
        ];
        for change in changes {
            let mut other = run("pg", 1, &[("data.warehouses", "2")], 1);
            change(&mut other);
            let named = names(vec![run("pg", 1, &[("data.warehouses", "2")], 1), other]);
            assert_eq!(named.len(), 2, "{named:?}");
            assert!(named[0].0 != named[1].0, "{named:?}");
        }
        // What a name has no room for.
        let long = |end: &str| run("pg", 1, &[("chaos.faults", &format!("{}{end}", "x".repeat(50)))], 1);
        let named = names(vec![long("1"), long("2")]);
        assert!(named[1].0.ends_with("… (2)"), "{named:?}");
    }

    #[test]
    fn cluster_sizes_compare_if_nothing_else_differs() {
        let at = |nodes: u32, isolation: &str, committed| {
            let warehouses = (20 * nodes).to_string();
            run("pg", nodes, &[("target.isolation", isolation), ("data.warehouses", &warehouses)], committed)
        };
        let runs = vec![at(3, "weak", 300), at(3, "strong", 90), at(9, "weak", 900), at(9, "strong", 90)];
        let document = Document { runs };
        let groups = document.groups();
        let grown: Vec<f64> = scalabilities(&groups).into_iter().map(|(_, _, grown)| grown).collect();
        assert!(grown.len() == 2 && grown.contains(&1.0), "{grown:?}");
        assert!(grown.iter().any(|grown| (grown - 1.0 / 3.0).abs() < 1e-9), "{grown:?}");
    }
}
