//! Tables in the file of a cluster: read from it, and written for it.

use plimsoll_types::{IndexKind, Partitioning, TableSpec};
use serde::{Deserialize, Serialize};

use super::{ClusterError, content};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableEntry {
    name: String,
    #[serde(default)]
    index: Index,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    partition: PartitionEntry,
    #[serde(default)]
    immutable: bool,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Index {
    Hash,
    #[default]
    Ordered,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    #[default]
    Hash,
    Modulo,
    Range,
    Spread,
    Everywhere,
    Own,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionEntry {
    #[serde(default)]
    by: By,
    bytes: Option<u8>,
    span: Option<u64>,
    within: Option<u8>,
    parts: Option<u16>,
}

pub(super) fn table(entry: TableEntry) -> Result<TableSpec, ClusterError> {
    let index = match entry.index {
        Index::Hash => IndexKind::Hash,
        Index::Ordered => IndexKind::Ordered,
    };
    let PartitionEntry { by, bytes, span, within, parts } = entry.partition;
    let (partitioning, takes): (_, &[&str]) = match by {
        By::Hash => (Partitioning::Hash { bytes: bytes.unwrap_or(0) }, &["bytes"]),
        By::Modulo => (Partitioning::Modulo { bytes: bytes.unwrap_or(0) }, &["bytes"]),
        By::Range => {
            let (bytes, span) = (bytes.unwrap_or(0), span.unwrap_or(0));
            (Partitioning::Range { bytes, span }, &["bytes", "span"])
        }
        By::Spread => {
            let (bytes, within, parts) = (bytes.unwrap_or(0), within.unwrap_or(0), parts.unwrap_or(0));
            (Partitioning::Spread { bytes, within, parts }, &["bytes", "within", "parts"])
        }
        By::Everywhere => (Partitioning::Everywhere, &[]),
        By::Own => (Partitioning::Own, &[]),
    };
    let given = [
        ("bytes", bytes.is_some()),
        ("span", span.is_some()),
        ("within", within.is_some()),
        ("parts", parts.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(key, given)| *given && !takes.contains(key)) {
        return content(format!(
            "table {:?}: {key} has no meaning there; leave {key} out, or partition it by another rule",
            entry.name
        ));
    }
    let mut spec = TableSpec::new(&entry.name, index, partitioning);
    if !entry.groups.is_empty() {
        spec.groups = entry.groups;
    }
    spec.immutable = entry.immutable;
    Ok(spec)
}

/// The part of a file that describes these tables: `[[table]]` entries, to be appended to the rest
/// of it.
///
/// ```
/// use plimsoll_engine::{Cluster, describe_tables};
/// use plimsoll_types::{IndexKind, Partitioning, TableSpec};
///
/// let items = TableSpec::new("item", IndexKind::Hash, Partitioning::Everywhere).immutable();
/// let file = "cluster = \"shop\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:7401\"\n".to_owned();
/// assert_eq!(Cluster::parse(&(file + &describe_tables(&[items.clone()])))?.tables, [items]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn describe_tables(tables: &[TableSpec]) -> String {
    // A string of JSON is one of TOML, but for one character.
    let quoted = |text: &str| serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f");
    let mut text = String::new();
    for TableSpec { name, index, groups, partitioning, immutable } in tables {
        let index = match index {
            IndexKind::Hash => "hash",
            IndexKind::Ordered => "ordered",
        };
        let partition = match partitioning {
            Partitioning::Hash { bytes } => format!("by = \"hash\", bytes = {bytes}"),
            Partitioning::Modulo { bytes } => format!("by = \"modulo\", bytes = {bytes}"),
            Partitioning::Range { bytes, span } => format!("by = \"range\", bytes = {bytes}, span = {span}"),
            Partitioning::Spread { bytes, within, parts } => {
                format!("by = \"spread\", bytes = {bytes}, within = {within}, parts = {parts}")
            }
            Partitioning::Everywhere => "by = \"everywhere\"".to_owned(),
            Partitioning::Own => "by = \"own\"".to_owned(),
        };
        text += &format!("\n[[table]]\nname = {}\nindex = \"{index}\"\n", quoted(name));
        if groups != &TableSpec::new(name, IndexKind::Hash, Partitioning::Everywhere).groups {
            let groups: Vec<String> = groups.iter().map(|group| quoted(group)).collect();
            text += &format!("groups = [{}]\n", groups.join(", "));
        }
        text += &format!("partition = {{ {partition} }}\n");
        if *immutable {
            text += "immutable = true\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Cluster, tests::NODE};
    use super::*;

    #[test]
    fn tables_are_what_their_description_says() {
        let odd = TableSpec::new("a \"b\"\\\n\u{7f}é", IndexKind::Ordered, Partitioning::Hash { bytes: 0 });
        let mut tables = vec![odd];
        for partitioning in [
            Partitioning::Hash { bytes: 12 },
            Partitioning::Modulo { bytes: 8 },
            Partitioning::Range { bytes: 8, span: u64::from(u32::MAX) },
            Partitioning::Spread { bytes: 4, within: 2, parts: 3 },
            Partitioning::Everywhere,
            Partitioning::Own,
        ] {
            for index in [IndexKind::Hash, IndexKind::Ordered] {
                let spec = |number: usize| TableSpec::new(&format!("t{number}"), index, partitioning);
                tables.push(spec(tables.len()).with_groups(&["only \t one"]));
                tables.push(spec(tables.len()).with_groups(&["a", "b", "\""]).immutable());
            }
        }
        let cluster = Cluster::parse(&format!("{NODE}{}", describe_tables(&tables))).unwrap();
        assert_eq!(cluster.tables, tables);
        let again = Cluster::from_description(&cluster.description).unwrap();
        assert_eq!(again, cluster, "and nodes tell clients so");
    }
}
