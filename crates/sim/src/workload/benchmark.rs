//! The benchmarks' workloads, small: the same procedures, audits and invariants.

use plimsoll_txn::pairs::LegalPair;
use plimsoll_workloads::Workload;

use crate::client::{Client, Ended, Observer, Seen};

/// One transaction in so many is an audit of what must hold at every moment.
const AUDIT_ONE_IN: u64 = 16;

impl<P: LegalPair, O: Observer> Client<P, O> {
    /// One transaction of a benchmark's mix, or an audit.
    pub async fn benchmark<W: Workload>(&mut self, workload: &W, client: &mut W::Client) {
        let (begin, attempt, seen) = (self.begin(), self.attempt(0), Seen::new());
        let mut procedure = workload.next(client);
        if self.one_in(AUDIT_ONE_IN) {
            let mut audit = workload.online_audit(self.rng.below(1 << 20) as usize);
            if let Ok(Some(committed)) = self.procedure("audit", attempt, &mut audit).await {
                for check in workload.judge_snapshot(&audit).into_iter().filter(|check| !check.ok) {
                    self.left.torn.push(format!("{:?}: {}: {}", committed.id, check.name, check.detail));
                }
                self.record(Ended { label: "audit", read_only: true, begin, number: 0, seen, committed });
            }
            return;
        }
        let kind = W::kind(&procedure);
        let declared = W::KINDS[kind];
        let (label, read_only) = (declared.name, declared.read_only);
        if let Ok(Some(committed)) = self.procedure(label, attempt, &mut procedure).await {
            let tally = &mut self.left.tally;
            tally.committed.resize(W::KINDS.len(), 0);
            tally.sums.resize(W::SUMS.len(), 0);
            tally.committed[kind] += 1;
            W::tally(&procedure, &mut tally.sums);
            self.record(Ended { label, read_only, begin, number: 0, seen, committed });
        }
    }
}
