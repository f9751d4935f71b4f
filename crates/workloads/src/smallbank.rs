//! SmallBank: six tiny banking transactions over two tables (Alomari, Cahill, Fekete, Röhm: "The
//! Cost of Serializability on Platforms That Use Snapshot Isolation", ICDE 2008), in the form the
//! DST and DrTM authors run it.
//!
//! Every customer has a savings and a checking balance. Balances are 64-bit integers, in cents.
//!
//! | transaction | mix | what it does to accounts a and b |
//! |---|---|---|
//! | send_payment | 25 | moves 5.00 from C(a) to C(b); too little money: the transaction's own abort |
//! | deposit_checking | 15 | C(a) += 1.30 |
//! | balance | 15 | reads C(a) + S(a) |
//! | transact_savings | 15 | S(a) += 20.20 |
//! | write_check | 15 | C(a) -= 5.00, or 6.00 if C(a) + S(a) < 5.00 |
//! | amalgamate | 15 | all money of a to C(b) |
//!
//! write_check reads S(a) and writes C(a) only: the write skew that tells serializable from
//! snapshot isolation. send_payment and amalgamate conserve money, so with these and balance alone
//! ([`Parameters::closed`]) a snapshot of all accounts must show exactly the money that was loaded,
//! at every moment. That is the sharpest test of a snapshot there is.
//!
//! **Access.** Accounts are dealt out in *blocks* of [`Parameters::accounts_per_shard`] consecutive
//! numbers, one block per slot, so block b lives on shard b. The first 4 % of a block are its *hot
//! set*, which 90 % of the transactions use; both accounts of a transfer come from the same set. In
//! the local style a client works on its shard's block, and transfers take the second account from
//! another shard with a small probability; in the global style every account comes from any block,
//! and the other 10 % of the transactions draw from the whole of it.
//!
//! **Stages.** A transfer within a block is one piece. send_payment across two blocks credits the
//! remote account first and takes the money afterwards, from the account at home: if there is too
//! little, the abort takes the credit back as well. amalgamate knows what to credit only after it
//! has emptied a.
//!
//! **What differs from the original.** The ACCOUNTS table (name to number) is left out, as DrTM and
//! DST leave it out. transact_savings always deposits. A write_check that overdraws pays 1.00
//! *more*, as the paper defines it; DrTM and BenchBase charge 1.00 less. send_payment with too
//! little money aborts; DrTM commits without an effect. The hot set gets 90 %, while the released
//! global generator gives it 10 % by mistake.

mod audit;
mod flags;
mod transaction;

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::shipped::{Unpack, unpack};
use plimsoll_types::{IndexKind, Key, Partitioning, SLOTS, ShardId, Slot, TableId, TableSpec};

pub use audit::Audit;
pub use flags::SmallBankFlags;
pub use transaction::Transaction;

pub use crate::blocks::Client;
use crate::{Check, Kind, Sink, Tally, Workload};
use audit::{AUDIT_PIECE, audit_of_rows, same_total};
use plimsoll_types::random::Rng;
use transaction::Type;

/// Savings balances: account number (u64) → cents (i64, little-endian).
pub const SAVINGS: TableId = TableId(0);
/// Checking balances: account number (u64) → cents (i64, little-endian).
pub const CHECKING: TableId = TableId(1);

/// Loaded balances are uniform between these, in whole units of 100 cents.
const LOADED_UNITS: std::ops::RangeInclusive<u64> = 10_000..=50_000;

/// What a SmallBank database looks like and how its clients behave.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// How many blocks of accounts there are; block b lives in slot b, hence on shard `b % shards`.
    pub shards: u64,
    /// Accounts in a block.
    pub accounts_per_shard: u64,
    /// Accounts in a block's hot set, its first ones.
    pub hot_per_shard: u64,
    /// Share of the transactions that use the hot set, in per cent.
    pub hot_pct: f64,
    /// Local style: share of the transfers whose second account is on another shard, in per cent.
    pub distributed_pct: f64,
    /// Global style: every account comes from any block.
    pub global: bool,
    /// No hot set: all accounts are equal.
    pub uniform: bool,
    /// Only send_payment, amalgamate and balance: the sum of all balances never changes.
    pub closed: bool,
    /// Seed of loading and clients.
    pub seed: u64,
}

impl Parameters {
    /// The DST authors' setting for so many shards: hot set 4 %, 90 % of the accesses, 1 %
    /// distributed. They use 100,000 accounts per node.
    pub fn new(shards: u64, accounts_per_shard: u64) -> Parameters {
        Parameters {
            shards,
            accounts_per_shard,
            hot_per_shard: (accounts_per_shard / 25).max(2),
            hot_pct: 90.0,
            distributed_pct: 1.0,
            global: false,
            uniform: false,
            closed: false,
            seed: 1,
        }
    }

    /// Says in one sentence what is wrong with the parameters.
    pub fn validate(&self) -> Result<(), String> {
        if !(1..=SLOTS as u64).contains(&self.shards) {
            return Err(format!("SmallBank needs 1 to {SLOTS} shards, not {}.", self.shards));
        }
        if !(4..=1 << 40).contains(&self.accounts_per_shard) {
            return Err(format!(
                "SmallBank needs at least 4 accounts per shard (and at most 2^40), not {}.",
                self.accounts_per_shard
            ));
        }
        if !self.uniform && !(2..=self.accounts_per_shard - 2).contains(&self.hot_per_shard) {
            return Err(format!(
                "The hot set has at least 2 accounts and leaves at least 2 of {} outside, so it cannot have {}.",
                self.accounts_per_shard, self.hot_per_shard
            ));
        }
        for (name, percent) in [("hot share", self.hot_pct), ("distributed share", self.distributed_pct)] {
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("The {name} is between 0 and 100 per cent, not {percent}."));
            }
        }
        Ok(())
    }
}

/// The SmallBank workload.
#[derive(Clone, Debug)]
pub struct SmallBank {
    parameters: Parameters,
    /// The sum of all balances after the load, in cents.
    loaded_total: i64,
}

impl SmallBank {
    /// The workload with these parameters, or what is wrong with them.
    pub fn new(parameters: Parameters) -> Result<SmallBank, String> {
        parameters.validate()?;
        let mut bank = SmallBank { parameters, loaded_total: 0 };
        let mut total = 0;
        for block in 0..bank.parameters.shards {
            bank.balances(block, |_, savings, checking| total += savings + checking);
        }
        bank.loaded_total = total;
        Ok(bank)
    }

    /// What it was made with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The number of accounts.
    pub fn accounts(&self) -> u64 {
        self.parameters.shards * self.parameters.accounts_per_shard
    }

    /// The sum of all balances after the load, in cents.
    pub fn loaded_total(&self) -> i64 {
        self.loaded_total
    }

    /// Calls `visit(account, savings, checking)` for what is loaded into a block.
    fn balances(&self, block: u64, mut visit: impl FnMut(u64, i64, i64)) {
        let mut rng = Rng::new(self.parameters.seed, block);
        let first = block * self.parameters.accounts_per_shard;
        for account in first..first + self.parameters.accounts_per_shard {
            let mut balance = || 100 * rng.uniform(LOADED_UNITS) as i64;
            visit(account, balance(), balance());
        }
    }
}

impl Workload for SmallBank {
    type Procedure = Transaction;
    type Client = Client;
    type Audit = Audit;

    const NAME: &'static str = "smallbank";
    const KINDS: &'static [Kind] = &[
        Kind::writing("send_payment"),
        Kind::writing("deposit_checking"),
        Kind::reading("balance"),
        Kind::writing("transact_savings"),
        Kind::writing("write_check"),
        Kind::writing("amalgamate"),
    ];
    /// In cents.
    const SUMS: &'static [&'static str] = &["deposits", "withdrawals", "moved"];

    fn tables(&self) -> Vec<TableSpec> {
        let blocks = Partitioning::Range { bytes: 8, span: self.parameters.accounts_per_shard };
        vec![
            TableSpec::new("savings", IndexKind::Hash, blocks),
            TableSpec::new("checking", IndexKind::Hash, blocks),
        ]
    }

    fn pieces(&self) -> Option<(Vec<PieceType>, Unpack)> {
        let Parameters { shards, distributed_pct, global, .. } = self.parameters;
        let distributed = shards > 1 && (global || distributed_pct > 0.0);
        Some((transaction::pieces(distributed), unpack::<Transaction>))
    }

    fn units(&self) -> usize {
        self.parameters.shards as usize
    }

    fn unit_slot(&self, unit: usize) -> Option<Slot> {
        Some(Slot(unit as u16))
    }

    fn load(&self, unit: usize, sink: Sink<'_>) {
        self.balances(unit as u64, |account, savings, checking| {
            sink(SAVINGS, Key::of_u64(account), &[&savings.to_le_bytes()]);
            sink(CHECKING, Key::of_u64(account), &[&checking.to_le_bytes()]);
        });
    }

    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Client {
        Client::new(self.parameters.seed, client, self.parameters.shards, shard, owner)
    }

    #[inline]
    fn next(&self, client: &mut Client, _: u64) -> Transaction {
        let parameters = &self.parameters;
        let Client { rng, blocks } = client;
        let kind = if parameters.closed {
            match rng.below(55) {
                0..25 => Type::SendPayment,
                25..40 => Type::Balance,
                _ => Type::Amalgamate,
            }
        } else {
            match rng.below(100) {
                0..25 => Type::SendPayment,
                25..40 => Type::DepositChecking,
                40..55 => Type::Balance,
                55..70 => Type::TransactSavings,
                70..85 => Type::WriteCheck,
                _ => Type::Amalgamate,
            }
        };
        let span = parameters.accounts_per_shard;
        let (low, count) = if parameters.uniform {
            (0, span)
        } else if rng.pct(parameters.hot_pct) {
            (0, parameters.hot_per_shard)
        } else if parameters.global {
            (0, span)
        } else {
            (parameters.hot_per_shard, span - parameters.hot_per_shard)
        };

        let home = blocks.home(rng);
        let any_block = |rng: &mut Rng| rng.below(parameters.shards) as u16;
        let block_a = if parameters.global { any_block(rng) } else { home };
        let draw_a = rng.below(count);
        let a = u64::from(block_a) * span + low + draw_a;
        let (block_b, b) = if matches!(kind, Type::SendPayment | Type::Amalgamate) {
            let block_b = if parameters.global {
                any_block(rng)
            } else if blocks.elsewhere() > 0 && rng.pct(parameters.distributed_pct) {
                blocks.other(rng)
            } else {
                home
            };
            let draw_b = if block_b == block_a {
                // One of the others: `count - 1` numbers, with a gap where a is.
                let draw = rng.below(count - 1);
                draw + u64::from(draw >= draw_a)
            } else {
                rng.below(count)
            };
            (block_b, u64::from(block_b) * span + low + draw_b)
        } else {
            (block_a, a)
        };
        let (home, slot_a, slot_b) = (Slot(home), Slot(block_a), Slot(block_b));
        Transaction { kind, home, slot_a, slot_b, a, b, amount: 0 }
    }

    #[inline]
    fn kind(procedure: &Transaction) -> usize {
        procedure.kind as usize
    }

    #[inline]
    fn tally(procedure: &Transaction, sums: &mut [i64]) {
        match procedure.kind {
            Type::DepositChecking | Type::TransactSavings => sums[0] += procedure.amount,
            Type::WriteCheck => sums[1] += procedure.amount,
            Type::SendPayment | Type::Amalgamate => sums[2] += procedure.amount,
            Type::Balance => {}
        }
    }

    fn audits(&self) -> Vec<Audit> {
        let span = self.parameters.accounts_per_shard;
        (0..self.parameters.shards).map(|block| Audit::new(span, block..block + 1, 0..span)).collect()
    }

    /// Closed: all accounts in one snapshot. Open: a piece of one block, of which no more can be
    /// said than that no savings are negative.
    fn online_audit(&self, number: usize) -> Audit {
        let Parameters { shards, accounts_per_shard, .. } = self.parameters;
        if self.parameters.closed {
            return Audit::new(accounts_per_shard, 0..shards, 0..accounts_per_shard);
        }
        let block = number as u64 % shards;
        let from = number as u64 / shards * AUDIT_PIECE % accounts_per_shard;
        let accounts = from..(from + AUDIT_PIECE).min(accounts_per_shard);
        Audit::new(accounts_per_shard, block..block + 1, accounts)
    }

    fn judge_snapshot(&self, audit: &Audit) -> Vec<Check> {
        let mut checks = vec![audit_of_rows([audit])];
        if self.parameters.closed && audit.blocks() == self.parameters.shards {
            checks.push(same_total(audit.total(), self.loaded_total, "a snapshot"));
        }
        checks
    }

    /// The effects of all together, as if they were of deposits only. A closed bank has none.
    fn found(&self, audits: &[&Audit]) -> Tally {
        let total: i64 = audits.iter().map(|audit| audit.total()).sum();
        let effects = if self.parameters.closed { 0 } else { total - self.loaded_total };
        Tally { committed: Vec::new(), sums: vec![effects, 0] }
    }

    fn judge(&self, audits: &[Audit], tally: &Tally) -> Vec<Check> {
        let total: i64 = audits.iter().map(Audit::total).sum();
        let effects = match tally.sums[..] {
            [deposits, withdrawals, ..] => deposits - withdrawals,
            _ => 0,
        };
        vec![
            audit_of_rows(audits),
            same_total(total, self.loaded_total + effects, "the load and all effects"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_txn::procedure::{Piece, Procedure};
    use plimsoll_types::Abort;

    use super::*;
    use crate::testing::{Database, run_audit};
    use plimsoll_types::Placement;

    fn client(bank: &SmallBank, number: usize, shard: u16) -> Client {
        let placement = Placement::even(bank.parameters.shards as usize);
        bank.client(number, ShardId(shard), &|slot| placement.shard(slot))
    }

    /// Runs so many transactions and returns what a driver would have counted, and the user aborts.
    fn run(bank: &SmallBank, database: &mut Database, transactions: usize) -> (Tally, u64) {
        let mut tally = Tally { committed: vec![0; 6], sums: vec![0; 3] };
        let mut aborted = 0;
        let mut clients: Vec<_> =
            (0..bank.parameters.shards as u16).map(|shard| client(bank, shard.into(), shard)).collect();
        for i in 0..transactions {
            let clients_len = clients.len();
            let mut transaction = bank.next(&mut clients[i % clients_len], 0);
            match database.run(&mut transaction) {
                Ok(()) => {
                    tally.committed[SmallBank::kind(&transaction)] += 1;
                    SmallBank::tally(&transaction, &mut tally.sums);
                }
                Err(abort) => {
                    assert_eq!(abort, Abort::User);
                    aborted += 1;
                }
            }
        }
        (tally, aborted)
    }

    fn judged(bank: &SmallBank, database: &mut Database, tally: &Tally) -> Vec<Check> {
        let audits: Vec<_> =
            bank.audits().into_iter().map(|mut audit| run_audit(database, &mut audit)).collect();
        bank.judge(&audits, tally)
    }

    #[test]
    fn money_adds_up_after_any_run() {
        for (global, uniform) in [(false, false), (true, false), (false, true)] {
            let mut parameters = Parameters::new(3, 700);
            (parameters.global, parameters.uniform, parameters.distributed_pct) = (global, uniform, 30.0);
            let bank = SmallBank::new(parameters).expect("the parameters are valid");
            let mut database = Database::load(&bank);
            let (tally, aborted) = run(&bank, &mut database, 50_000);
            assert_eq!(tally.committed.iter().sum::<u64>() + aborted, 50_000);
            assert!(aborted > 0, "amalgamate leaves accounts without money");
            assert!(tally.sums.iter().all(|&sum| sum > 0));
            for check in judged(&bank, &mut database, &tally) {
                assert!(check.ok, "{check:?}");
            }
            database.interrupt_after = Some(77);
            assert!(judged(&bank, &mut database, &tally).iter().all(|check| check.ok));
            let mut cheated = tally.clone();
            cheated.sums[0] += 1;
            assert!(!judged(&bank, &mut database, &cheated)[1].ok);
        }
    }

    #[test]
    fn a_closed_bank_shows_the_loaded_money_in_every_snapshot() {
        let mut parameters = Parameters::new(2, 1100);
        (parameters.closed, parameters.distributed_pct) = (true, 50.0);
        let bank = SmallBank::new(parameters).expect("the parameters are valid");
        let mut database = Database::load(&bank);
        for round in 0..10 {
            let audit = run_audit(&mut database, &mut bank.online_audit(round));
            let checks = bank.judge_snapshot(&audit);
            assert_eq!(checks.len(), 2);
            assert!(checks.iter().all(|check| check.ok), "{checks:?}");
            let (tally, _) = run(&bank, &mut database, 1000);
            assert_eq!((tally.committed[1], tally.committed[3], tally.committed[4]), (0, 0, 0));
        }
        database.write(CHECKING.row(), Key::of_u64(7), b"\x01\0\0\0\0\0\0\0");
        let audit = run_audit(&mut database, &mut bank.online_audit(0));
        assert!(!bank.judge_snapshot(&audit)[1].ok);
        database.write(SAVINGS.row(), Key::of_u64(8), &(-1i64).to_le_bytes());
        let audit = run_audit(&mut database, &mut bank.online_audit(0));
        assert!(!bank.judge_snapshot(&audit)[0].ok);
    }

    #[test]
    fn the_mix_and_the_hot_set_are_as_published() {
        let bank = SmallBank::new(Parameters::new(4, 1000)).expect("the parameters are valid");
        let mut client = client(&bank, 9, 2);
        let (mut kinds, mut hot, mut transfers, mut distributed) = ([0u32; 6], 0, 0, 0);
        for _ in 0..200_000 {
            let transaction = bank.next(&mut client, 0);
            kinds[SmallBank::kind(&transaction)] += 1;
            assert_eq!(transaction.a / 1000, 2);
            let is_hot = transaction.a % 1000 < 40;
            hot += u32::from(is_hot);
            assert_eq!(transaction.b % 1000 < 40, is_hot, "both accounts come from one set");
            if matches!(transaction.kind, Type::SendPayment | Type::Amalgamate) {
                assert_ne!(transaction.a, transaction.b);
                transfers += 1;
                distributed += u32::from(transaction.slot_a != transaction.slot_b);
            }
        }
        for (kind, &count) in kinds.iter().enumerate() {
            let expected = if kind == 0 { 50_000 } else { 30_000 };
            assert!(count.abs_diff(expected) < 1000, "{kinds:?}");
        }
        assert!(hot.abs_diff(180_000) < 1000, "{hot}");
        assert!((transfers / 125..transfers / 80).contains(&distributed), "{distributed} of {transfers}");
    }

    #[test]
    fn in_the_global_style_a_client_is_at_home_nowhere() {
        let parameters = Parameters { global: true, ..Parameters::new(4, 1000) };
        let bank = SmallBank::new(parameters).expect("the parameters are valid");
        let mut client = client(&bank, 9, 2);
        let (mut blocks, mut hot, mut transfers, mut distributed) = ([[0u32; 4]; 6], 0, 0, 0);
        for _ in 0..200_000 {
            let transaction = bank.next(&mut client, 0);
            assert_eq!((u64::from(transaction.slot_a.0), transaction.home), (transaction.a / 1000, Slot(2)));
            blocks[SmallBank::kind(&transaction)][usize::from(transaction.slot_a.0)] += 1;
            hot += u32::from(transaction.a % 1000 < 40);
            if matches!(transaction.kind, Type::SendPayment | Type::Amalgamate) {
                assert_ne!(transaction.a, transaction.b);
                transfers += 1;
                distributed += u32::from(transaction.slot_a != transaction.slot_b);
            }
        }
        for (kind, counts) in blocks.iter().enumerate() {
            let expected = if kind == 0 { 12_500 } else { 7_500 };
            assert!(counts.iter().all(|count| count.abs_diff(expected) < 500), "{blocks:?}");
        }
        // The others draw from all accounts, of which 4 % are hot.
        assert!(hot.abs_diff(180_800) < 1000, "{hot}");
        assert!(distributed.abs_diff(transfers / 4 * 3) < 500, "{distributed} of {transfers}");
    }

    #[test]
    fn a_transfer_between_shards_ends_at_home() {
        let slots = |home, a, b, kind| {
            let transaction = Transaction {
                kind,
                home: Slot(home),
                slot_a: Slot(a),
                slot_b: Slot(b),
                a: 1,
                b: 2,
                amount: 0,
            };
            let mut stages = Vec::new();
            while transaction.stage(stages.len()) > 0 {
                let stage = stages.len();
                stages.push(
                    (0..transaction.stage(stage))
                        .map(|number| transaction.home(Piece { stage, number }).0)
                        .collect::<Vec<_>>(),
                );
            }
            stages
        };
        assert_eq!(slots(1, 1, 1, Type::SendPayment), [vec![1]]);
        assert_eq!(slots(1, 1, 2, Type::SendPayment), [vec![2], vec![1]]);
        assert_eq!(slots(2, 1, 2, Type::SendPayment), [vec![1], vec![2]]);
        assert_eq!(slots(3, 1, 2, Type::SendPayment), [vec![1, 2]]);
        assert_eq!(slots(1, 1, 2, Type::Amalgamate), [vec![1], vec![2]]);
        assert_eq!(slots(3, 1, 2, Type::Amalgamate), [vec![1], vec![2]]);
        assert!(size_of::<Transaction>() <= 48);
    }

    #[test]
    fn bad_parameters_are_refused_in_a_sentence() {
        let bad = |change: fn(&mut Parameters)| {
            let mut parameters = Parameters::new(2, 100);
            change(&mut parameters);
            SmallBank::new(parameters).expect_err("the parameters are bad")
        };
        assert!(bad(|p| p.shards = 0).starts_with("SmallBank needs 1 to 4096 shards"));
        assert!(bad(|p| p.accounts_per_shard = 3).contains("at least 4 accounts"));
        assert!(bad(|p| p.hot_per_shard = 99).contains("hot set"));
        assert!(bad(|p| p.hot_pct = 101.0).contains("hot share"));
        assert!(bad(|p| p.distributed_pct = f64::NAN).contains("distributed share"));
    }
}
