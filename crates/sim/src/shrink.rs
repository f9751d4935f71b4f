//! From a world that fails to a smaller one that fails.
//!
//! Tries, in this order and as long as anything helps: fewer transactions, fewer clients, fewer shards, no machines without
//! data, fewer keys, fewer moves, fewer faults. A candidate is kept if it has a violation of the same kind; that it is
//! another occurrence of it does not matter. Faults are left out by halves and then one by one; all others stay what they
//! were, for each is drawn by itself.
//!
//! Every candidate is a world that can be drawn: whoever selects what it has by hand gets this very plan.

use crate::plan::Plan;
use crate::run::Outcome;

/// Worlds that are tried at most.
const TRIES: usize = 400;

/// A smaller plan that fails the same way, and what came of it. `run` runs a world.
pub fn shrink(plan: &Plan, outcome: Outcome, run: impl Fn(&Plan) -> Outcome) -> (Plan, Outcome) {
    let Some(kind) = outcome.violations.first().map(|violation| violation.kind.clone()) else {
        return (plan.clone(), outcome);
    };
    let mut best = (plan.clone(), outcome);
    let mut tries = 0;
    let mut attempt = |best: &mut (Plan, Outcome), candidate: Plan| {
        tries += 1;
        if tries > TRIES {
            return false;
        }
        let outcome = run(&candidate);
        let fails = outcome.violations.iter().any(|violation| violation.kind == kind);
        if fails {
            *best = (candidate, outcome);
        }
        fails
    };
    loop {
        let before = best.0.clone();
        for less in [|n: usize| n / 2, |n: usize| n - n / 4, |n: usize| n - 1] {
            while best.0.transactions > 1 {
                let candidate = Plan { transactions: less(best.0.transactions).max(1), ..best.0.clone() };
                if candidate == best.0 || !attempt(&mut best, candidate) {
                    break;
                }
            }
        }
        while best.0.clients > 1 {
            let candidate = Plan { clients: best.0.clients - 1, ..best.0.clone() };
            if !attempt(&mut best, candidate) {
                break;
            }
        }
        while best.0.shards > 1 {
            let candidate = Plan { shards: best.0.shards - 1, ..best.0.clone() };
            if !attempt(&mut best, candidate) {
                break;
            }
        }
        if best.0.fronts > 0 {
            let candidate = best.0.clone().without_fronts();
            attempt(&mut best, candidate);
        }
        let least = *best.0.workload.keys().start();
        for keys in [least, best.0.keys / 2, best.0.keys - 1] {
            if (least..best.0.keys).contains(&keys) {
                let candidate = Plan { keys, ..best.0.clone() };
                attempt(&mut best, candidate);
            }
        }
        for moves in [0, best.0.moves / 2, best.0.moves.saturating_sub(1)] {
            if moves < best.0.moves {
                let candidate = Plan { moves, ..best.0.clone() };
                attempt(&mut best, candidate);
            }
        }
        let mut left: Vec<u32> = best.1.faults.iter().map(|fault| fault.index).collect();
        left.retain(|index| !best.0.skip.contains(index));
        let mut size = left.len();
        while size > 0 {
            for group in left.clone().chunks(size) {
                let mut candidate = best.0.clone();
                candidate.skip.extend(group);
                if attempt(&mut best, candidate) {
                    left.retain(|index| !group.contains(index));
                }
            }
            size /= 2;
        }
        if best.0 == before {
            return best;
        }
    }
}
