//! Protocols and timestamp schemes by name, and which go together.
//!
//! This is the one place that names protocols and schemes together. What starts shards is generic
//! over the type of a shard's participant, and [`with_pair`](crate::with_pair) is where a name
//! becomes a type. Everything above holds an [`AnyShard`]. A new protocol or scheme is a variant
//! here, and a word in the list of pairs for each pair.
//!
//! ```
//! use plimsoll_txn::pairs::Pair;
//! use plimsoll_txn::protocol::Protocol;
//! use plimsoll_txn::with_pair;
//!
//! assert_eq!(with_pair!(Pair::default(), P => <P as Protocol>::NAME), "occ");
//! ```

use std::fmt;
use std::rc::Rc;

use plimsoll_runtime::{Handled, Logged, Participant, ShardEnv, Suspect};
use plimsoll_types::{
    Abort, ColumnGroup, IndexKind, Key, Partitioning, ShardId, TableId, TableSpec, Ticket, Timestamp,
};

use crate::any_shard::{AnyPair, AnyShard, InteractiveShard};
use crate::attempt::{Attempt, Committed, First};
use crate::executable::Executable;
use crate::execute::{self, CompiledSteps};
use crate::interactive::{CompiledOperations, Rows, Step, Transaction};
use crate::logging;
use crate::procedure::Scan;
use crate::protocol::{self, Protocol as _};
use crate::protocols;
use crate::rounds;
use crate::timestamp::{ReadOnly, Scheme as _};
use crate::work::Footprint;

/// The concurrency-control protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// OCC.
    #[default]
    Occ,
    /// 2PL.
    TwoPl,
    /// Client-driven two-phase commit (RAMCloud).
    Client2pc,
    /// ROCOCO.
    Rococo,
}

/// The timestamp schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// DST.
    #[default]
    Dst,
    /// GTS.
    Gts,
    /// VTS.
    Vts,
    /// RC, which is not serializable.
    Rc,
    /// No timestamps at all.
    None,
}

/// A protocol with a timestamp scheme: [`Pair::default`] is `occ/dst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The protocol.
    pub protocol: Protocol,
    /// The scheme.
    pub scheme: Scheme,
}

/// The types of the schemes, by the names of [`Scheme`]'s variants.
#[doc(hidden)]
pub mod scheme_types {
    pub use crate::timestamps::{Dst, Gts, NoTimestamps as None, Rc, Vts};
}

/// A legal pair: a participant, and transactions that its shard coordinates.
///
/// It is implemented below for each pair by itself, and not for all schemes of a protocol at once:
/// so this crate has the compiled code of every pair, and what starts shards of a pair, in a
/// process or in a simulated world, only calls it.
pub trait LegalPair: AnyPair {}

/// A legal pair that runs transactions whose operations come one by one.
pub trait InteractivePair: LegalPair + CompiledOperations {}

/// Compiles a pair. The closure says what it is where operations come one by one.
macro_rules! compile {
    ($pair:ty, $interactive:expr) => {
        impl Participant for $pair {
            fn begins(env: &ShardEnv<Self>) {
                logging::begins(env);
                rounds::follows(env);
                Self::start_tasks(env);
            }

            fn handle(
                &mut self,
                from: ShardId,
                request: &mut Self::Request,
                ticket: Ticket,
            ) -> Handled<Self::Reply> {
                protocol::handle(self, from, request, ticket)
            }

            fn released(&mut self) -> &mut Vec<Ticket> {
                &mut self.base().released
            }

            fn pass(&mut self, clock: Timestamp) {
                self.tick(clock);
            }

            fn arrives(&mut self, from: ShardId, clock: impl FnOnce() -> Timestamp) {
                let base = self.base();
                if base.votes.in_another_process(from) {
                    base.read_clock(clock());
                }
            }

            fn suspect(&mut self) -> Option<Suspect> {
                self.base().suspect()
            }

            fn connected(&mut self, peer: ShardId, life: Option<u64>) {
                protocol::connected(self, peer, life);
            }

            fn logged(&mut self) -> Logged {
                self.base().logged()
            }

            fn outgoing(&mut self, send: &mut Vec<(ShardId, Self::Request)>) {
                protocol::outgoing(self, send);
            }

            fn park(&mut self) {
                self.base().park();
            }

            fn due(&mut self) -> Option<u64> {
                self.base().due()
            }

            fn is_over(&mut self) -> bool {
                self.base().is_over()
            }
        }

        impl LegalPair for $pair {}

        impl CompiledSteps for $pair {
            fn first_step(
                env: &ShardEnv<Self>,
                attempt: Attempt,
                procedure: &mut dyn Executable<Self::Scheme>,
                work: &mut Footprint<Self::Scheme>,
            ) -> First<Self::Scheme> {
                execute::first_step(env, attempt, procedure, work)
            }

            fn other_steps<'a>(
                env: &'a ShardEnv<Self>,
                first: First<Self::Scheme>,
                attempt: Attempt,
                procedure: &'a mut dyn Executable<Self::Scheme>,
                work: &'a mut Footprint<Self::Scheme>,
            ) -> Step<'a, Result<(), Abort>> {
                Box::pin(execute::other_steps(env, first, attempt, procedure, work))
            }
        }

        impl AnyPair for $pair {
            fn any(env: ShardEnv<Self>) -> Rc<dyn AnyShard> {
                Rc::new(env)
            }

            fn interactive(env: &ShardEnv<Self>) -> Option<&dyn InteractiveShard> {
                let interactive: fn(&ShardEnv<Self>) -> Option<&dyn InteractiveShard> = $interactive;
                interactive(env)
            }
        }
    };
}

/// Compiles what an interactive pair has besides.
macro_rules! compile_interactive {
    ($pair:ty) => {
        impl InteractivePair for $pair {}

        impl CompiledOperations for $pair {
            fn begin_transaction(
                env: &ShardEnv<Self>,
                attempt: Attempt,
                read_only: bool,
            ) -> Step<'_, Result<Transaction<Self::Scheme>, Abort>> {
                Box::pin(Transaction::begin_on(env, attempt, read_only))
            }

            fn get_record<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                column: ColumnGroup,
                key: &'a Key,
            ) -> Step<'a, Result<Option<Vec<u8>>, Abort>> {
                Box::pin(txn.get_on(env, column, key))
            }

            fn get_records<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                column: ColumnGroup,
                keys: &'a [Key],
            ) -> Step<'a, Result<Vec<Option<Vec<u8>>>, Abort>> {
                Box::pin(txn.get_many_on(env, column, keys))
            }

            fn scan_range<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                scan: &'a Scan,
            ) -> Step<'a, Result<Rows, Abort>> {
                Box::pin(txn.scan_on(env, scan))
            }

            fn scan_rows<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                scan: &'a Scan,
            ) -> Step<'a, Result<(Rows, Option<Scan>), Abort>> {
                Box::pin(txn.scan_batch_on(env, scan))
            }

            fn put_record<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                column: ColumnGroup,
                key: &'a Key,
                value: &'a [u8],
            ) -> Step<'a, Result<(), Abort>> {
                Box::pin(txn.put_on(env, column, key, value))
            }

            fn insert_row<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                table: TableId,
                key: &'a Key,
                values: &'a [&'a [u8]],
            ) -> Step<'a, Result<(), Abort>> {
                Box::pin(txn.insert_on(env, table, key, values))
            }

            fn delete_row<'a>(
                txn: &'a mut Transaction<Self::Scheme>,
                env: &'a ShardEnv<Self>,
                table: TableId,
                key: &'a Key,
            ) -> Step<'a, Result<(), Abort>> {
                Box::pin(txn.delete_on(env, table, key))
            }

            fn commit_transaction(
                txn: Transaction<Self::Scheme>,
                env: &ShardEnv<Self>,
            ) -> Step<'_, Result<Committed, Abort>> {
                Box::pin(txn.commit_on(env))
            }

            fn roll_back(txn: Transaction<Self::Scheme>, env: &ShardEnv<Self>) -> Step<'_, ()> {
                Box::pin(txn.rollback_on(env))
            }
        }
    };
}

/// Makes [`LEGAL_PAIRS`] and the macros that turn a pair into a type of one list. `$d` is a dollar
/// sign.
macro_rules! pairs {
    (
        $d:tt
        interactive { $($protocol:ident: $($scheme:ident)*;)* }
        one_shot { $($one_shot:ident: $($its_scheme:ident)*;)* }
    ) => {
        /// The pairs that run transactions whose operations come one by one, in the order of the
        /// help.
        const INTERACTIVE_PAIRS: &[Pair] =
            &[$($(Pair { protocol: Protocol::$protocol, scheme: Scheme::$scheme }),*),*];

        /// The protocols and the timestamp schemes that each can run with, in the order of the
        /// help.
        pub const LEGAL_PAIRS: &[Pair] = &[
            $($(Pair { protocol: Protocol::$protocol, scheme: Scheme::$scheme },)*)*
            $($(Pair { protocol: Protocol::$one_shot, scheme: Scheme::$its_scheme },)*)*
        ];

        $($(
            compile!(protocols::$protocol<scheme_types::$scheme>, |env| Some(env));
            compile_interactive!(protocols::$protocol<scheme_types::$scheme>);
        )*)*
        $($(compile!(protocols::$one_shot<scheme_types::$its_scheme>, |_| None);)*)*

        /// An expression in which a name stands for the participant of a legal pair.
        #[macro_export]
        macro_rules! with_pair {
            ($d pair:expr, $d P:ident => $d body:expr) => {{
                let pair: $crate::pairs::Pair = $d pair;
                match (pair.protocol, pair.scheme) {
                    $($(($crate::pairs::Protocol::$protocol, $crate::pairs::Scheme::$scheme) => {
                        type $d P = $crate::protocols::$protocol<$crate::pairs::scheme_types::$scheme>;
                        $d body
                    })*)*
                    $($(($crate::pairs::Protocol::$one_shot, $crate::pairs::Scheme::$its_scheme) => {
                        type $d P = $crate::protocols::$one_shot<$crate::pairs::scheme_types::$its_scheme>;
                        $d body
                    })*)*
                    _ => unreachable!("{pair} was refused when it was named"),
                }
            }};
        }
    };
}

pairs! {
    $
    interactive {
        Occ: Dst Gts Vts Rc None;
        TwoPl: Dst Gts Vts Rc None;
        Client2pc: Dst None;
    }
    one_shot {
        Rococo: Dst None;
    }
}

/// Why there is no such pair: a sentence with those that there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairError(String);

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PairError {}

impl Protocol {
    /// All of them, in the order of the help.
    pub const ALL: [Protocol; 4] = [Protocol::Occ, Protocol::TwoPl, Protocol::Client2pc, Protocol::Rococo];

    /// Its name, on command lines and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Occ => "occ",
            Protocol::TwoPl => "two_pl",
            Protocol::Client2pc => "client_2pc",
            Protocol::Rococo => "rococo",
        }
    }

    /// What it does, in a line of help.
    pub fn about(self) -> &'static str {
        match self {
            Protocol::Occ => {
                "Optimistic: read freely, lock what is written at commit, validate what was read"
            }
            Protocol::TwoPl => "Two-phase locking: lock everything before touching it",
            Protocol::Client2pc => {
                "Client-driven two-phase commit: check, lock and vote in one message to each shard (dst and none only)"
            }
            Protocol::Rococo => {
                "Reorder instead of abort: pieces start, and execute in the order in which they met (dst and none only)"
            }
        }
    }

    /// The protocol of this name.
    pub fn named(text: &str) -> Result<Protocol, PairError> {
        Protocol::ALL.into_iter().find(|protocol| protocol.name() == text).ok_or_else(|| {
            let names = Protocol::ALL.map(Protocol::name);
            PairError(format!("there is no protocol `{text}`: the protocols are {}", listed(&names)))
        })
    }
}

impl Scheme {
    /// All of them, in the order of the help.
    pub const ALL: [Scheme; 5] = [Scheme::Dst, Scheme::Gts, Scheme::Vts, Scheme::Rc, Scheme::None];

    /// Its name, on command lines and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Dst => "dst",
            Scheme::Gts => "gts",
            Scheme::Vts => "vts",
            Scheme::Rc => "rc",
            Scheme::None => "none",
        }
    }

    /// What it does, in a line of help.
    pub fn about(self) -> &'static str {
        match self {
            Scheme::Dst => {
                "Decentralized scalar timestamps: snapshots without an oracle; readers never abort"
            }
            Scheme::Gts => "A global counter: an oracle numbers every commit; readers see its stable prefix",
            Scheme::Vts => "A vector of counters, kept by an oracle; readers see its stable part",
            Scheme::Rc => "Read committed, NOT serializable: the yardstick, readers for whom nothing is done",
            Scheme::None => "No timestamps: readers are validated or locked like all other transactions",
        }
    }

    /// The scheme of this name.
    pub fn named(text: &str) -> Result<Scheme, PairError> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == text).ok_or_else(|| {
            let names = Scheme::ALL.map(Scheme::name);
            PairError(format!("there is no scheme `{text}`: the schemes are {}", listed(&names)))
        })
    }
}

impl Pair {
    /// Reads `occ/dst`.
    pub fn parse(text: &str) -> Result<Pair, PairError> {
        let Some((protocol, scheme)) = text.split_once('/') else {
            let what = format!("`{text}` is not a pair: write protocol/scheme, such as occ/dst");
            return Err(PairError(what));
        };
        Ok(Pair { protocol: Protocol::named(protocol)?, scheme: Scheme::named(scheme)? })
    }

    /// The pair itself if it is among `legal`.
    pub fn legal(self, legal: &[Pair]) -> Result<Pair, PairError> {
        if legal.contains(&self) {
            return Ok(self);
        }
        let pairs: Vec<String> = legal.iter().map(Pair::to_string).collect();
        Err(PairError(format!("{self} is not a legal pair: choose one of {}", pairs.join(", "))))
    }

    /// The pair itself if it is legal, and runs transactions whose operations come one by one.
    pub fn interactive(self) -> Result<Pair, PairError> {
        let pair = self.legal(LEGAL_PAIRS)?;
        if !INTERACTIVE_PAIRS.contains(&pair) {
            return Err(PairError(format!(
                "{self} runs whole procedures, whose pieces are known before they execute, and not transactions whose \
                 operations come one by one: choose occ, two_pl or client_2pc"
            )));
        }
        Ok(pair)
    }

    /// Whether all its transactions are serializable.
    pub fn serializable(self) -> bool {
        with_pair!(self, P => <P as crate::protocol::Protocol>::Scheme::SERIALIZABLE)
    }

    /// Whether it needs a timestamp oracle.
    pub fn has_oracle(self) -> bool {
        with_pair!(self, P => <P as crate::protocol::Protocol>::Scheme::ORACLE)
    }

    /// Whether there are snapshots that do not change while they are read.
    pub fn has_snapshots(self) -> bool {
        let read_only = with_pair!(self, P => <P as crate::protocol::Protocol>::Scheme::READ_ONLY);
        read_only == ReadOnly::Snapshot && self.serializable()
    }

    /// Whether read-only transactions read at snapshots, also at some that change while they are
    /// read, and are neither validated nor locked.
    pub fn reads_at_snapshots(self) -> bool {
        let read_only = with_pair!(self, P => <P as crate::protocol::Protocol>::Scheme::READ_ONLY);
        read_only == ReadOnly::Snapshot
    }

    /// Whether there is SQL under it. Its statements read at snapshots and come one by one, and
    /// clocks tell its sessions what they have to see.
    pub fn has_sql(self) -> bool {
        self.scheme == Scheme::Dst && matches!(self.protocol, Protocol::Occ | Protocol::TwoPl)
    }

    /// Whether timestamps are times: readers wait for writers that may commit within their
    /// snapshot, and answers wait until the clock has reached their timestamp.
    pub fn has_times(self) -> bool {
        with_pair!(self, P => <P as crate::protocol::Protocol>::Scheme::WAITS)
    }

    /// Whether a snapshot may begin in the past: its timestamps are times.
    pub fn has_staleness(self) -> bool {
        self.has_times()
    }

    /// Whether its timestamps are numbers.
    pub fn has_scalars(self) -> bool {
        with_pair!(self, P => <P as crate::protocol::Protocol>::Scheme::SCALAR)
    }

    /// Whether a transaction that meets a lock may wait for it instead of aborting.
    pub fn has_locks(self) -> bool {
        with_pair!(self, P => <P as crate::protocol::Protocol>::LOCKS)
    }

    /// Whether it orders transactions by a dependency graph.
    pub fn has_graph(self) -> bool {
        with_pair!(self, P => P::GRAPH)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.protocol, self.scheme)
    }
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// The two tables that all tables of SQL are in: one whose rows are each on one shard, and one with
/// a copy on every shard. Both are ordered and have one column group.
pub fn sql_tables() -> [TableSpec; 2] {
    [("plimsoll.sql", Partitioning::Own), ("plimsoll.sql.copies", Partitioning::Everywhere)]
        .map(|(name, partitioning)| TableSpec::new(name, IndexKind::Ordered, partitioning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_are_the_same_list() {
        for &pair in LEGAL_PAIRS {
            let (protocol, scheme) = with_pair!(pair, P => {
                (P::NAME, <P as crate::protocol::Protocol>::Scheme::NAME)
            });
            assert_eq!(pair.to_string(), format!("{protocol}/{scheme}"));
            assert_eq!(Pair::parse(&pair.to_string()), Ok(pair));
        }
    }

    #[test]
    fn what_a_scheme_can_do_is_known_by_its_name() {
        let with = |property: fn(Pair) -> bool| -> Vec<&str> {
            let occ = LEGAL_PAIRS.iter().copied().filter(|pair| pair.protocol == Protocol::Occ);
            occ.filter(|&pair| property(pair)).map(|pair| pair.scheme.name()).collect()
        };
        assert_eq!(with(Pair::serializable), ["dst", "gts", "vts", "none"]);
        assert_eq!(with(Pair::has_oracle), ["gts", "vts"]);
        assert_eq!(with(Pair::has_snapshots), ["dst", "gts", "vts"]);
        assert_eq!(with(Pair::reads_at_snapshots), ["dst", "gts", "vts", "rc"]);
        assert_eq!(with(Pair::has_scalars), ["dst", "gts"]);
        assert_eq!(with(Pair::has_times), ["dst"]);
        assert_eq!(with(Pair::has_staleness), ["dst"]);
    }

    #[test]
    fn sql_is_there_under_pairs_that_can_run_it() {
        let with: Vec<Pair> = LEGAL_PAIRS.iter().copied().filter(|pair| pair.has_sql()).collect();
        assert_eq!(with.iter().map(Pair::to_string).collect::<Vec<_>>(), ["occ/dst", "two_pl/dst"]);
        for pair in with {
            assert!(pair.interactive().is_ok() && pair.has_snapshots() && pair.has_times(), "{pair}");
        }
    }

    #[test]
    fn one_shot_protocols_are_refused_where_operations_come_one_by_one() {
        let rococo = Pair { protocol: Protocol::Rococo, scheme: Scheme::Dst };
        assert!(rococo.legal(LEGAL_PAIRS).is_ok());
        assert!(rococo.interactive().is_err());
        assert!(Pair::default().interactive().is_ok());
    }
}
