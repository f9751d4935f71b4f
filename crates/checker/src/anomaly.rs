//! The names of cycles, and how they are told.
//!
//! A cycle is named by its anti-dependencies (rw edges), following Adya, Liskov and O'Neil (ICDE
//! 2000) and, for the finer names, Fekete, O'Neil and O'Neil, *A Read-Only Transaction Anomaly
//! Under Snapshot Isolation* (SIGMOD Record 2004), and Bailis et al., *Scalable Atomic Visibility
//! with RAMP Transactions* (SIGMOD 2014):
//!
//! | rw edges | and | name |
//! |---|---|---|
//! | 0 | only ww | write cycle (G0) |
//! | 0 | | circular information flow (G1c) |
//! | 1 | two transactions, rw and ww on one record | lost update (G-single) |
//! | 1 | two transactions, rw and wr | fractured read (G-single) |
//! | 1 | otherwise | read skew (G-single) |
//! | 2+ | no two of them adjacent | long fork (G2-item) |
//! | 2+ | two adjacent ones, the first from an RO | read-only anomaly (G2-item) |
//! | all | | write skew (G2-item) |
//! | 2+ | otherwise | anti-dependency cycle (G2-item) |
//! | any | one of a predicate | phantom (G-single or G2) |
//! | any | a step in a session, or in real time | session order, real-time order violated |

use crate::cycles::Step;
use crate::graph::{Edge, Kind, Reasons};
use crate::index::Index;
use crate::words::Words;

/// Names a cycle and picks, for each step, the reason to tell.
pub(crate) fn name(index: &Index, cycle: &[Step], reasons: &Reasons) -> (&'static str, Vec<Edge>) {
    let of = |step: &Step| &reasons[&(step.from, step.to, step.kind)];
    let mut edges: Vec<Edge> = cycle.iter().map(|step| of(step)[0]).collect();
    let kinds: Vec<Kind> = cycle.iter().map(|step| step.kind).collect();
    let has = |kind| kinds.contains(&kind);
    let antis = kinds.iter().filter(|kind| kind.anti()).count();
    let name = match (cycle.len(), antis) {
        _ if has(Kind::Time) => "real-time order violated",
        _ if has(Kind::Session) => "session order violated",
        (_, 0) if !has(Kind::Wr) => "write cycle (G0)",
        (_, 0) => "circular information flow (G1c)",
        (_, 1) if has(Kind::Phantom) => "phantom (G-single)",
        _ if has(Kind::Phantom) => "phantom (G2)",
        (2, 1) if has(Kind::Ww) => match same_record(of(&cycle[0]), of(&cycle[1])) {
            Some(pair) => {
                edges = pair;
                "lost update (G-single)"
            }
            None => "read skew (G-single)",
        },
        (2, 1) => "fractured read (G-single)",
        (_, 1) => "read skew (G-single)",
        _ => several(index, cycle),
    };
    (name, edges)
}

/// A reason for each of two steps, both on one record.
fn same_record(first: &[Edge], second: &[Edge]) -> Option<Vec<Edge>> {
    first.iter().find_map(|one| {
        let other = second.iter().find(|other| other.record == one.record)?;
        Some(vec![*one, *other])
    })
}

/// The name of a cycle with several anti-dependencies between records.
fn several(index: &Index, cycle: &[Step]) -> &'static str {
    let next = |at: usize| cycle[(at + 1) % cycle.len()].kind;
    let adjacent = |at: usize| cycle[at].kind.anti() && next(at).anti();
    let read_only = |txn: u32| index.transaction(txn).is_some_and(|txn| txn.read_only);
    if !(0..cycle.len()).any(adjacent) {
        "long fork (G2-item)"
    } else if (0..cycle.len()).any(|at| adjacent(at) && read_only(cycle[at].from)) {
        "read-only anomaly (G2-item)"
    } else if cycle.iter().all(|step| step.kind.anti()) {
        "write skew (G2-item)"
    } else {
        "anti-dependency cycle (G2-item)"
    }
}

/// How many steps of a cycle are told.
const STEPS_TOLD: usize = 12;

/// Tells a cycle: each step with its reason.
pub(crate) fn tell(words: &Words, edges: &[Edge]) -> String {
    words.begin();
    let mut text = String::new();
    for edge in &edges[..edges.len().min(STEPS_TOLD)] {
        text += &words.edge(edge);
        text += "; ";
    }
    if edges.len() > STEPS_TOLD {
        text += &format!("and so on over {} more; ", edges.len() - STEPS_TOLD);
    }
    text + &format!("so {} would have to come before itself", words.txn(edges[0].from))
}
