//! What must hold of the tables when all sessions are over.
//!
//! * What a transaction did that was acknowledged is there, what one did that has failed is not,
//!   and of one that was not answered all is there or nothing ([`deeds`]). A row that was removed
//!   is not there again.
//! * Lists tell a strictly serializable history ([`super::lists`]).
//! * A seat has one ticket, no child is without its parent, the balances are what the transfers
//!   say, and no number of the sequence was given out twice.
//! * Every index has the entries of the rows that there are, and no others ([`indexes`]); one that
//!   its session has not lived to finish may lack some.
//! * No session has left a row reserved.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_sql::catalog::{Relation, Table};
use plimsoll_sql::encoding::descriptor::descriptors_prefix;
use plimsoll_sql::encoding::{entry, row};
use plimsoll_types::ShardId;

use super::client::numbers;
use super::connection::{Reply, Sent};
use super::deed::{Deed, Deeds, Effect, Rows};
use super::lists::{self, Lists};
use super::{BALANCE, Nodes, TABLES};
use crate::client::ClientResults;
use crate::judge::{Findings, clocks_are_far_apart};
use crate::run::Setting;
use crate::workload::append::End;

/// How long what could not be looked at is left alone, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000;

/// What a last look shows, each a table's rows.
struct Look {
    lists: Lists,
    balances: BTreeMap<u64, i64>,
    /// Ids with the other columns.
    rows: BTreeMap<Rows, BTreeMap<u64, Vec<i64>>>,
    parents: BTreeSet<i64>,
}

/// Looks at everything.
pub(crate) fn judge(setting: &mut Setting, nodes: &Nodes, left: &mut ClientResults, found: &mut Findings) {
    let deeds = &left.deeds;
    let reserved = nodes.reserved();
    found.add(
        "row left reserved",
        (reserved > 0).then(|| format!("{reserved} rows are reserved or waited for")),
    );
    let Some(look) = look(setting, nodes) else {
        return found.add("stuck", ["the tables cannot be read although nobody runs".to_owned()]);
    };
    found.add("in part", in_part(deeds, &look));
    found.add("lost or resurrected write", rows(deeds, &look));
    found.add("wrong value", values(deeds, &look));
    found.add("index differs", indexes(setting));
    let sessions = !clocks_are_far_apart(setting.world.clock_error_ns());
    for (kind, why) in lists::judge(&deeds.all, &look.lists, sessions) {
        found.add(&kind, [why]);
    }
}

/// Reads all tables in a session of its own, in one transaction, when every clock has passed what
/// was stamped.
fn look(setting: &mut Setting, nodes: &Nodes) -> Option<Look> {
    const TEXTS: [&str; 6] = [
        "select id, v from list",
        "select id, balance from account",
        "select id, source, target, amount from transfer",
        "select id, seat from ticket",
        "select id, parent from child",
        "select id from parent",
    ];
    let settled_ns = setting.settled_ns();
    let node = nodes.present(0)?;
    let replies = setting.run_on(ShardId(0), move |shard| async move {
        shard.sleep(settled_ns).await;
        loop {
            let mut connection = node.connect(&shard);
            connection.answer(None).await;
            let mut replies: Vec<Reply> = Vec::new();
            for text in ["begin read only"].into_iter().chain(TEXTS) {
                replies.extend(connection.ask(text, Sent::Simple, None).await);
            }
            if replies.len() == 1 + TEXTS.len() && replies.iter().all(|reply| reply.error.is_none()) {
                return replies.split_off(1);
            }
            shard.sleep(PAUSE_NS).await;
        }
    })?;
    let mut texts = replies.into_iter().map(|reply| {
        let row = |row: Vec<Option<String>>| row.into_iter().flatten().collect::<Vec<String>>();
        reply.rows.into_iter().map(row).collect::<Vec<_>>()
    });
    let mut next = || texts.next().unwrap_or_default();
    let number = |text: &String| text.parse::<i64>().unwrap_or(i64::MIN);
    let lists =
        next().iter().map(|row| (number(&row[0]) as u64, numbers(row.get(1).map_or("", |v| v)))).collect();
    let balances = next().iter().map(|row| (number(&row[0]) as u64, number(&row[1]))).collect();
    let mut rows = BTreeMap::new();
    for table in Rows::ALL {
        let all = next();
        let all = all.iter().map(|row| (number(&row[0]) as u64, row[1..].iter().map(number).collect()));
        rows.insert(table, all.collect::<BTreeMap<u64, Vec<i64>>>());
    }
    let parents = next().iter().map(|row| number(&row[0])).collect();
    Some(Look { lists, balances, rows, parents })
}

/// Whether what a transaction has written is there; `None` if that is not to be seen any more.
fn is_there(effect: &Effect, look: &Look, removed: &BTreeSet<(Rows, u64)>) -> Option<bool> {
    match effect {
        Effect::Append(list, number) => Some(look.lists.get(list).is_some_and(|it| it.contains(number))),
        Effect::Insert(rows, id) if look.rows[rows].contains_key(id) => Some(true),
        Effect::Insert(rows, id) if !removed.contains(&(*rows, *id)) => Some(false),
        _ => None,
    }
}

/// Rows that were removed by transactions that may have committed.
fn removed(deeds: &Deeds, how: &[End]) -> BTreeSet<(Rows, u64)> {
    let all = deeds.all.iter().filter(|deed| how.contains(&deed.how));
    let ids = all.flat_map(|deed| &deed.effects).flat_map(|effect| match effect {
        Effect::Remove(rows, ids) => ids.iter().map(|id| (*rows, *id)).collect(),
        _ => Vec::new(),
    });
    ids.collect()
}

/// Transactions of which a part is there.
fn in_part(deeds: &Deeds, look: &Look) -> Vec<String> {
    let removed = removed(deeds, &[End::Committed, End::Unknown]);
    let is_in_part = |deed: &&Deed| {
        let seen: BTreeSet<bool> =
            deed.effects.iter().filter_map(|effect| is_there(effect, look, &removed)).collect();
        seen.len() == 2
    };
    deeds.all.iter().filter(is_in_part).map(|deed| format!("{deed:?}")).collect()
}

/// Rows that are not there and should, or are and should not.
fn rows(deeds: &Deeds, look: &Look) -> Vec<String> {
    let mut wrong = Vec::new();
    let gone = removed(deeds, &[End::Committed]);
    let perhaps = removed(deeds, &[End::Committed, End::Unknown]);
    let mut known: BTreeSet<(Rows, u64)> = BTreeSet::new();
    for deed in &deeds.all {
        for effect in &deed.effects {
            let Effect::Insert(rows, id) = effect else { continue };
            let (there, table) = (look.rows[rows].contains_key(id), rows.table());
            known.extend((deed.how != End::Aborted).then_some((*rows, *id)));
            match deed.how {
                End::Committed if !there && !perhaps.contains(&(*rows, *id)) => {
                    wrong.push(format!("{id} was inserted into {table} and acknowledged, and is not there"));
                }
                _ if there && gone.contains(&(*rows, *id)) => {
                    wrong.push(format!("{id} was removed from {table}, and is there"));
                }
                _ => {}
            }
        }
    }
    let there = look.rows.iter().flat_map(|(rows, ids)| ids.keys().map(|id| (*rows, *id)));
    let unknown = there.chain(gone).filter(|row| !known.contains(row));
    wrong.extend(unknown.map(|(rows, id)| format!("{id} was in {}, and nothing inserted it", rows.table())));
    wrong
}

/// Values that do not fit each other.
fn values(deeds: &Deeds, look: &Look) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut balances: BTreeMap<u64, i64> = look.balances.keys().map(|id| (*id, BALANCE)).collect();
    for values in look.rows[&Rows::Transfers].values() {
        let [source, target, amount] = values[..] else { continue };
        *balances.entry(source as u64).or_default() -= amount;
        *balances.entry(target as u64).or_default() += amount;
    }
    if balances != look.balances {
        wrong.push(format!("the accounts have {:?}, and transfers say {balances:?}", look.balances));
    }
    let mut seats = BTreeSet::new();
    let twice = look.rows[&Rows::Tickets].values().filter(|seat| !seats.insert((*seat).clone()));
    wrong.extend(twice.map(|seat| format!("seat {seat:?} is taken twice")));
    let orphans = look.rows[&Rows::Children].iter().filter(|(_, it)| !look.parents.contains(&it[0]));
    wrong.extend(orphans.map(|(id, parent)| format!("child {id} has no parent {parent:?}")));
    let mut given = BTreeSet::new();
    let again = deeds.numbers.iter().filter(|number| !given.insert(**number));
    wrong.extend(again.map(|number| format!("number {number} was given out twice")));
    wrong
}

/// Indexes that do not have the entries of the rows.
fn indexes(setting: &Setting) -> Vec<String> {
    let [parted, copied] = TABLES.map(|table| table.row());
    let mut pairs: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for shard in setting.shards() {
        let Some(home) = setting.world.shard(shard) else { continue };
        // What was there before its slot moved does not count.
        let mut rows = setting.world.newest_rows(shard, parted).unwrap_or_default();
        rows.retain(|(key, ..)| home.home(TABLES[0], key) == shard);
        pairs.extend(rows.into_iter().map(|(key, _, value)| (key.to_bytes(), value)));
    }
    let descriptors = setting.world.newest_rows(ShardId(0), copied).unwrap_or_default();
    let mut wrong = Vec::new();
    for (key, _, bytes) in descriptors {
        if !key.to_bytes().starts_with(&descriptors_prefix(None)) {
            continue;
        }
        match Relation::from_bytes(&bytes) {
            Ok(Relation::Table(table)) => wrong.extend(indexes_of(&table, &pairs)),
            Ok(_) => {}
            Err(error) => wrong.push(format!("a descriptor cannot be read: {error:?}")),
        }
    }
    wrong
}

fn indexes_of(table: &Table, pairs: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<String> {
    let of = |number: u32| {
        let prefix = number.to_be_bytes();
        pairs.range(prefix.to_vec()..).take_while(move |(key, _)| key.starts_with(&prefix))
    };
    let mut wrong = Vec::new();
    for index in &table.indexes {
        let mut expected = BTreeMap::new();
        for (key, value) in of(table.rows) {
            let entry =
                row::read_row(table, key, value).and_then(|values| entry::entry(table, index, &values, key));
            match entry {
                Ok(entry) => expected.extend([(entry.key, entry.value)]),
                Err(error) => wrong.push(format!("a row of {} cannot be read: {error:?}", table.name)),
            }
        }
        let actual: BTreeMap<Vec<u8>, Vec<u8>> =
            of(index.rows).map(|(key, value)| (key.clone(), value.clone())).collect();
        let too_many = actual.iter().filter(|(key, value)| expected.get(*key) != Some(value)).count();
        let missing = expected.keys().filter(|key| !actual.contains_key(*key)).count();
        if too_many > 0 || missing > 0 && index.is_ready {
            wrong.push(format!(
                "index {} of {} has {too_many} entries of no row, and lacks {missing} of {}",
                index.name,
                table.name,
                expected.len()
            ));
        }
    }
    wrong
}
