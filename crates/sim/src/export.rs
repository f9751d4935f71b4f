//! Histories of list-append for checkers that know nothing of this database.
//!
//! One committed transaction per line, as a JSON object in the form that Elle and its kin read: `process` is the session,
//! `value` the list of operations, `["append", list, number]` or `["r", list, [numbers]]`. Lines are in the order in
//! which transactions were answered, `time` is that moment in virtual nanoseconds.
//!
//! Left out: aborted attempts, and the beginnings of transactions; so real-time order is not in it.

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_runtime::sim::EPOCH_NS;
use plimsoll_types::TxnId;

use crate::run::Outcome;
use crate::workload::append::Operation;

/// The history of a world whose workload is list-append; empty for others.
pub fn lines(outcome: &Outcome) -> String {
    let operations: BTreeMap<TxnId, &Vec<Operation>> =
        outcome.appended.iter().map(|(id, operations)| (*id, operations)).collect();
    let mut transactions: Vec<_> = outcome.history.transactions.iter().collect();
    transactions.sort_by_key(|transaction| (transaction.end, transaction.session));
    let mut text = String::new();
    for (index, transaction) in transactions.into_iter().enumerate() {
        let Some(operations) = operations.get(&transaction.id) else { continue };
        let value: Vec<String> = operations.iter().map(operation).collect();
        let _ = writeln!(
            text,
            r#"{{"index":{index},"type":"ok","f":"txn","process":{},"time":{},"value":[{}]}}"#,
            transaction.session,
            transaction.end.saturating_sub(EPOCH_NS),
            value.join(",")
        );
    }
    text
}

fn operation(operation: &Operation) -> String {
    match operation {
        Operation::Append(list, number) => format!(r#"["append",{list},{number}]"#),
        Operation::Read(list, numbers) => {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!(r#"["r",{list},[{}]]"#, numbers.join(","))
        }
    }
}
