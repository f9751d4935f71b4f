//! The benchmarks' workloads, small: the same procedures, audits and invariants.

use plimsoll_workloads::{AnyClient, AnyWorkload, Kind};

use crate::client::{Client, Ended, Observer, Seen};

/// One transaction in so many is an audit of what must hold at every moment.
const AUDIT_ONE_IN: u64 = 16;

impl<O: Observer> Client<O> {
    /// One transaction of a benchmark's mix, or an audit. `client` is the workload's part of this
    /// client.
    pub async fn benchmark(&mut self, workload: &dyn AnyWorkload, client: &mut dyn AnyClient) {
        let (begin, attempt, seen) = (self.begin(), self.attempt(0), Seen::new());
        let kind = client.draw(self.shard.clock().0);
        if self.one_in(AUDIT_ONE_IN) {
            let number = self.rng.below(1 << 20) as usize;
            let mut audit = workload.online_audit(number, self.last_audit.as_deref());
            if let Ok(Some(committed)) = self.procedure("audit", attempt, audit.procedure()).await {
                for check in workload.judge_snapshot(&*audit).into_iter().filter(|check| !check.ok) {
                    self.left.torn.push(format!("{:?}: {}: {}", committed.id, check.name, check.detail));
                }
                self.record(Ended { label: "audit", read_only: true, begin, number: 0, seen, committed });
                self.last_audit = Some(audit);
            }
            return client.done(false);
        }
        let Kind { name: label, read_only, .. } = workload.kinds()[kind];
        let committed = self.procedure(label, attempt, client.procedure()).await.ok().flatten();
        let has_committed = committed.is_some();
        if let Some(committed) = committed {
            let tally = &mut self.left.tally;
            if tally.committed.is_empty() {
                *tally = workload.no_tally();
            }
            tally.committed[kind] += 1;
            client.tally(&mut tally.sums);
            self.record(Ended { label, read_only, begin, number: 0, seen, committed });
        }
        client.done(has_committed);
    }
}
