//! From a world that fails to a smaller one that fails.
//!
//! Tries, in this order and as long as anything helps: fewer transactions, fewer clients, fewer
//! shards, no machines without data, fewer keys, fewer moves, fewer faults; then single
//! transactions are left out, and after that again what does not change which are meant: keys,
//! moves, faults. A candidate is kept if it has a violation of the same kind; that it is another
//! occurrence of it does not matter. Faults and transactions are left out by halves and then one by
//! one, and a few transactions in pairs: of two that need each other neither can be left out alone.
//! All others stay what they were, for each is drawn by itself.
//!
//! Every candidate is a world that can be drawn: whoever selects what it has by hand gets this very
//! plan.

use crate::plan::{Nth, Plan};
use crate::run::Outcome;

/// Worlds that are tried at most.
const TRIES: usize = 1000;
/// Of so many transactions, or fewer, all pairs are tried.
const PAIRED: usize = 20;

/// A smaller plan that fails the same way, and what came of it. `run` runs a world.
pub fn shrink(plan: &Plan, outcome: Outcome, run: impl Fn(&Plan) -> Outcome) -> (Plan, Outcome) {
    let Some(kind) = outcome.violations.first().map(|violation| violation.kind.clone()) else {
        return (plan.clone(), outcome);
    };
    let mut search = Search { best: plan.clone(), outcome, kind, run, tries: 0 };
    if plan.only.is_empty() {
        search.until_nothing_helps(|search| {
            search.counts();
            search.details();
        });
    }
    search.until_nothing_helps(|search| {
        search.transactions();
        search.details();
    });
    (search.best, search.outcome)
}

/// The smallest world so far that fails in this way.
struct Search<R> {
    best: Plan,
    outcome: Outcome,
    kind: String,
    run: R,
    tries: usize,
}

impl<R: Fn(&Plan) -> Outcome> Search<R> {
    /// Keeps a candidate if it fails, and tells.
    fn keeps(&mut self, candidate: Plan) -> bool {
        self.tries += 1;
        if self.tries > TRIES {
            return false;
        }
        let outcome = (self.run)(&candidate);
        let fails = outcome.violations.iter().any(|violation| violation.kind == self.kind);
        if fails {
            (self.best, self.outcome) = (candidate, outcome);
        }
        fails
    }

    fn until_nothing_helps(&mut self, step: impl Fn(&mut Self)) {
        loop {
            let before = self.best.clone();
            step(self);
            if self.best == before {
                return;
            }
        }
    }

    /// Fewer of everything that clients and shards are numbered by.
    fn counts(&mut self) {
        for less in [|n: usize| n / 2, |n: usize| n - n / 4, |n: usize| n - 1] {
            while self.best.transactions > 1 {
                let transactions = less(self.best.transactions).max(1);
                if transactions == self.best.transactions
                    || !self.keeps(Plan { transactions, ..self.best.clone() })
                {
                    break;
                }
            }
        }
        while self.best.clients > 1
            && self.keeps(Plan { clients: self.best.clients - 1, ..self.best.clone() })
        {}
        while self.best.shards > 1 && self.keeps(Plan { shards: self.best.shards - 1, ..self.best.clone() }) {
        }
        if self.best.fronts > 0 {
            self.keeps(self.best.clone().without_fronts());
        }
    }

    /// Fewer keys, moves and faults.
    fn details(&mut self) {
        let least = *self.best.workload.keys().start();
        for keys in [least, self.best.keys / 2, self.best.keys - 1] {
            if (least..self.best.keys).contains(&keys) {
                self.keeps(Plan { keys, ..self.best.clone() });
            }
        }
        for moves in [0, self.best.moves / 2, self.best.moves.saturating_sub(1)] {
            if moves < self.best.moves {
                self.keeps(Plan { moves, ..self.best.clone() });
            }
        }
        let mut begun: Vec<u32> = self.outcome.faults.iter().map(|fault| fault.index).collect();
        begun.retain(|index| !self.best.skip.contains(index));
        self.without(begun, |mut plan, without, _| {
            plan.skip.extend(without);
            Some(plan)
        });
    }

    /// Single transactions are left out.
    fn transactions(&mut self) {
        let every = |place| (0..self.best.clients_in_all()).map(move |client| Nth { client, place });
        let all = (1..=self.best.transactions).flat_map(every).filter(|&nth| self.best.runs(nth));
        // A world in which nothing runs is none.
        self.without(all.collect(), |plan, _, left| {
            (!left.is_empty()).then(|| Plan { only: left.to_vec(), ..plan })
        });
        while self.best.only.len() <= PAIRED && self.leaves_out_a_pair() {}
    }

    /// Leaves out two transactions, if there are two that can be.
    fn leaves_out_a_pair(&mut self) -> bool {
        let left = self.best.only.clone();
        (0..left.len()).any(|second| {
            (0..second).any(|first| {
                let rest = (left.iter().enumerate()).filter(|&(nth, _)| nth != first && nth != second);
                let only: Vec<Nth> = rest.map(|(_, &nth)| nth).collect();
                !only.is_empty() && self.keeps(Plan { only, ..self.best.clone() })
            })
        })
    }

    /// Leaves out some of these, by halves and then one by one; `leave` makes a candidate, given
    /// those that are left out and those that are left.
    fn without<T: Copy + PartialEq>(
        &mut self,
        all: Vec<T>,
        leave: impl Fn(Plan, &[T], &[T]) -> Option<Plan>,
    ) {
        let mut size = all.len();
        let mut left = all;
        while size > 0 {
            for group in left.clone().chunks(size) {
                let rest: Vec<T> = left.iter().copied().filter(|one| !group.contains(one)).collect();
                if leave(self.best.clone(), group, &rest).is_some_and(|candidate| self.keeps(candidate)) {
                    left = rest;
                }
            }
            size /= 2;
        }
    }
}
