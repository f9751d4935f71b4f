//! How two descriptions of a cluster differ, in what all its processes must agree on.

use std::fmt::Debug;

use plimsoll_types::TableSpec;

use crate::cluster::{Cluster, describe_tables};

/// Differences that are named; a number stands for further ones.
const NAMED: usize = 4;

/// One difference in a sentence, if there is one.
fn of<T: PartialEq + Debug>(what: &str, here: &T, there: &T) -> Option<String> {
    (here != there).then(|| format!("{what} is {here:?} here and {there:?} there"))
}

/// How the description of another process differs from that of this one; `None` if they agree.
pub fn difference(here: &Cluster, there: &Cluster) -> Option<String> {
    let oracle = |cluster: &Cluster| cluster.oracle.as_ref().map(|oracle| oracle.options);
    let mut all: Vec<String> = [
        of("the name of the cluster", &here.name, &there.name),
        of("the protocol", &here.pair.protocol.name(), &there.pair.protocol.name()),
        of("the scheme", &here.pair.scheme.name(), &there.pair.scheme.name()),
        of("one_round", &here.one_round, &there.one_round),
        of("clients", &here.clients, &there.clients),
        of("max_staleness_ms", &here.max_staleness.as_millis(), &there.max_staleness.as_millis()),
        of("[oracle]", &oracle(here), &oracle(there)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let shards = |cluster: &Cluster, id: u16| cluster.node(id).map(|node| node.shards);
    for node in here.nodes.iter().chain(&there.nodes) {
        let id = node.id;
        let sentence = match (shards(here, id), shards(there, id)) {
            (Some(_), None) => Some(format!("node {id} is in the description here only")),
            (None, Some(_)) => Some(format!("node {id} is in the description there only")),
            (Some(here), Some(there)) => of(&format!("shards of node {id}"), &here, &there),
            (None, None) => None,
        };
        all.extend(sentence.filter(|sentence| !all.contains(sentence)));
    }
    all.extend(of_tables(&here.tables, &there.tables));
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

fn of_tables(here: &[TableSpec], there: &[TableSpec]) -> Vec<String> {
    let mut all = Vec::new();
    for (place, one) in here.iter().enumerate() {
        let name = &one.name;
        match there.iter().position(|other| other.name == *name) {
            None => all.push(format!("table {name:?} is in the description here only")),
            Some(at) if there[at] != *one => {
                let (here, there) = (lines(one), lines(&there[at]));
                let differ = |all: &[String], others: &[String]| {
                    let some = all.iter().filter(|line| !others.contains(line));
                    some.cloned().collect::<Vec<_>>().join(", ")
                };
                let (mine, theirs) = (differ(&here, &there), differ(&there, &here));
                let said = |text: String| if text.is_empty() { "nothing".to_owned() } else { text };
                all.push(format!("table {name:?} has {} here and {} there", said(mine), said(theirs)));
            }
            Some(at) if at != place && here.len() == there.len() => {
                all.push(format!("table {name:?} is number {place} here and number {at} there"));
            }
            Some(_) => {}
        }
    }
    let only = there.iter().filter(|other| here.iter().all(|one| one.name != other.name));
    all.extend(only.map(|other| format!("table {:?} is in the description there only", other.name)));
    if all.is_empty() && here != there {
        all.push("the tables are in another order".to_owned());
    }
    all
}

/// What a file says of a table, line by line.
fn lines(spec: &TableSpec) -> Vec<String> {
    describe_tables(std::slice::from_ref(spec)).lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:1\"\n";
    const TABLES: &str = "[[table]]\nname = \"a\"\nindex = \"hash\"\n[[table]]\nname = \"b\"\n";

    fn cluster(text: &str) -> Cluster {
        Cluster::parse(text).expect("it describes a cluster")
    }

    #[test]
    fn whatever_two_descriptions_disagree_on_is_named() {
        let text = format!("{NODES}{TABLES}");
        let here = cluster(&text);
        for (there, said) in [
            (format!("clients = 3\n{text}"), "clients is 64 here and 3 there"),
            (text.replace("\"c\"", "\"d\""), "the name of the cluster is \"c\" here and \"d\" there"),
            (format!("protocol = \"two_pl\"\n{text}"), "the protocol is \"occ\" here and \"two_pl\" there"),
            (format!("max_staleness_ms = 7\n{text}"), "max_staleness_ms is 1000 here and 7 there"),
            (format!("{NODES}shards = 2\n{TABLES}"), "shards of node 1 is 1 here and 2 there"),
            (
                format!("{NODES}[[node]]\nid = 2\naddress = \"127.0.0.1:2\"\n{TABLES}"),
                "node 2 is in the description there only",
            ),
            (format!("{text}[[table]]\nname = \"x\"\n"), "table \"x\" is in the description there only"),
            (text.replace("\"b\"", "\"x\""), "table \"b\" is in the description here only"),
            (
                text.replace("hash", "ordered"),
                "table \"a\" has index = \"hash\" here and index = \"ordered\" there",
            ),
            (format!("{text}immutable = true\n"), "table \"b\" has nothing here and immutable = true there"),
        ] {
            let there = cluster(&there);
            assert_ne!(here.id, there.id, "{said}");
            let difference = difference(&here, &there).expect("they differ");
            assert!(difference.contains(said), "{difference}");
        }
        let turned = format!("{NODES}[[table]]\nname = \"b\"\n[[table]]\nname = \"a\"\nindex = \"hash\"\n");
        let turned = difference(&here, &cluster(&turned)).expect("they differ");
        assert!(turned.contains("table \"a\" is number 0 here and number 1 there"), "{turned}");
        let moved = cluster(&text.replace("127.0.0.1", "[::1]"));
        assert_eq!(difference(&here, &moved), None, "addresses may differ");
    }
}
