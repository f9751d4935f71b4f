//! What a world is made of, all drawn from a seed unless somebody says otherwise.

use std::ops::{Range, RangeInclusive};

use plimsoll_runtime::sim::{Faults, Hardware};
use plimsoll_txn::attempt::LockPolicy;
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair};
use plimsoll_types::mutants::Mutant;
use plimsoll_types::random::Rng;

use crate::workload::{append, cycle, pieces, random};

/// The protocols, 2PL by the name of its lock policy too.
pub const PROTOCOLS: [&str; 7] =
    ["occ", "two_pl", "wait_die", "wound_wait", "no_wait", "client_2pc", "rococo"];
/// The timestamp schemes. The last is not serializable, and never drawn.
pub const SCHEMES: [&str; 5] = ["dst", "gts", "vts", "none", "rc"];

/// The schemes that a protocol can run with, in the order of [`SCHEMES`].
pub fn schemes(protocol: &str) -> Vec<&'static str> {
    let protocol = without_policy(protocol);
    let legal = |scheme: &str| {
        LEGAL_PAIRS.iter().any(|pair| (pair.protocol.name(), pair.scheme.name()) == (protocol, scheme))
    };
    SCHEMES.into_iter().filter(|scheme| legal(scheme)).collect()
}

/// The protocol that one of [`PROTOCOLS`] is, whatever its lock policy.
fn without_policy(protocol: &str) -> &str {
    match protocol {
        "wait_die" | "wound_wait" | "no_wait" => "two_pl",
        other => other,
    }
}

/// The size of a shard's disk in bytes, if shards log.
const DISK_BYTES: u64 = 1 << 28;

/// The one fault that only happens to machines without data, unless shards log.
const CRASHES: &str = "crashes_per_s";

/// Whether a fault, or a property of machines, is about disks. Only shards that log use one.
fn about_disks(name: &str) -> bool {
    const OTHERS: [&str; 6] =
        ["power_failures", "torn_writes", "read_errors", "corrupt_reads", "write_errors", "sync_errors"];
    name.starts_with("disk_") || OTHERS.contains(&name)
}

/// All faults, or all properties of machines, that make a difference here, with their meaning.
pub fn knobs(all: &'static [(&str, &str)]) -> impl Iterator<Item = (&'static str, &'static str)> {
    all.iter().copied().filter(|(name, _)| !about_disks(name))
}

/// What runs in a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkloadName {
    /// [`crate::workload::random`]
    Random,
    /// [`crate::workload::cycle`]
    Cycle,
    /// [`crate::workload::append`]
    Append,
    /// [`crate::workload::pieces`]
    Pieces,
    /// SmallBank.
    SmallBank,
    /// The microbenchmarks, on few tuples.
    Micro,
    /// TPC-C, small.
    Tpcc,
    /// TPC-E, thin. No seed draws it: it came later than the seeds.
    Tpce,
    /// [`crate::workload::random`] with scans in either order. No seed draws it: it came later than
    /// the seeds.
    Reverse,
    /// [`crate::sql`]. No seed draws it.
    #[cfg(feature = "sql")]
    Sql,
}

impl WorkloadName {
    /// All of them.
    pub const ALL: &'static [WorkloadName] = {
        use WorkloadName::*;
        &[
            Random,
            Reverse,
            Cycle,
            Append,
            Pieces,
            SmallBank,
            Micro,
            Tpcc,
            Tpce,
            #[cfg(feature = "sql")]
            Sql,
        ]
    };

    /// The workload of this name.
    pub fn named(name: &str) -> Option<WorkloadName> {
        WorkloadName::ALL.iter().copied().find(|workload| workload.name() == name)
    }

    /// Whether its transactions are those of sessions of SQL.
    pub fn is_sql(self) -> bool {
        #[cfg(feature = "sql")]
        if self == WorkloadName::Sql {
            return true;
        }
        false
    }

    /// Whether it runs under a protocol, which may have a lock policy, and a scheme.
    pub fn runs_under(self, protocol: &str, scheme: &str) -> bool {
        match without_policy(protocol) {
            "rococo" => self.one_shot(),
            protocol if self.is_sql() => {
                Pair::parse(&format!("{protocol}/{scheme}")).is_ok_and(Pair::has_sql)
            }
            _ => true,
        }
    }

    /// Whether its transactions are those of [`crate::workload::random`].
    pub fn is_random(self) -> bool {
        matches!(self, WorkloadName::Random | WorkloadName::Reverse)
    }

    /// Whether all its transactions are cut into pieces that name what they touch.
    pub fn one_shot(self) -> bool {
        matches!(self, WorkloadName::Pieces | WorkloadName::Micro | WorkloadName::Tpcc)
    }

    /// How many keys it can have; it has the most unless somebody says otherwise. What counts as a
    /// key is told at [`Plan::keys`].
    pub fn keys(self) -> RangeInclusive<u64> {
        match self {
            WorkloadName::Random | WorkloadName::Reverse => 1..=random::ROWS,
            WorkloadName::Cycle => cycle::KEYS_MIN..=cycle::KEYS,
            WorkloadName::Append => 1..=append::KEYS,
            WorkloadName::Pieces => 1..=pieces::ROWS,
            // Two of them hot, and two that are not.
            WorkloadName::SmallBank => 4..=8,
            // A transaction takes four different ones.
            WorkloadName::Micro => 4..=8,
            WorkloadName::Tpcc => 100..=100,
            WorkloadName::Tpce => 5..=5,
            #[cfg(feature = "sql")]
            WorkloadName::Sql => 2..=crate::sql::KEYS,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadName::Random => "random",
            WorkloadName::Reverse => "reverse",
            WorkloadName::Cycle => "cycle",
            WorkloadName::Append => "append",
            WorkloadName::Pieces => "pieces",
            WorkloadName::SmallBank => "smallbank",
            WorkloadName::Micro => "micro",
            WorkloadName::Tpcc => "tpcc",
            WorkloadName::Tpce => "tpce",
            #[cfg(feature = "sql")]
            WorkloadName::Sql => "sql",
        }
    }
}

/// Which faults there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultsName {
    /// None.
    None,
    /// Packets and links.
    Network,
    /// Everything that a cluster without durable state survives: no machine with data crashes.
    All,
    /// A mixture of those that differs from seed to seed.
    Drawn,
}

/// What is not left to the seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// One of [`PROTOCOLS`].
    pub protocol: Option<&'static str>,
    /// One of [`SCHEMES`].
    pub scheme: Option<&'static str>,
    /// The workload.
    pub workload: Option<WorkloadName>,
    /// Shards that hold data.
    pub shards: Option<usize>,
    /// Machines that hold none.
    pub fronts: Option<usize>,
    /// Keys of the workload, which has to be selected then.
    pub keys: Option<u64>,
    /// Times that slots are asked to move.
    pub moves: Option<usize>,
    /// Whether OCC validates along with its locks.
    pub one_round: Option<bool>,
    /// Clients per shard.
    pub clients: Option<usize>,
    /// Transactions that each client runs.
    pub transactions: Option<usize>,
    /// See [`Plan::only`].
    pub only: Vec<Nth>,
    /// Faults that are left out, by their numbers.
    pub skip: Vec<u32>,
    /// Which faults.
    pub faults: FaultsName,
    /// Single faults, by name and value.
    pub knobs: Vec<(String, String)>,
    /// A planted bug.
    pub mutant: Option<Mutant>,
    /// See [`Plan::logs`].
    pub logs: bool,
    /// See [`Plan::to_cut`].
    pub to_cut: bool,
}

impl Selection {
    /// Whether crashes are asked for by name.
    fn asks_for_crashes(&self) -> bool {
        let rate = self.knobs.iter().rev().find(|(name, _)| name == CRASHES);
        rate.is_some_and(|(_, rate)| rate.parse().is_ok_and(|rate: f64| rate > 0.0))
    }

    /// The faults that are set by name and mean something in a world.
    pub fn knobs_of(&self, plan: &Plan) -> impl Iterator<Item = &(String, String)> {
        let fronts = plan.fronts;
        let crashes = fronts > 0 || plan.logs;
        self.knobs.iter().filter(move |(name, _)| crashes || name != CRASHES)
    }
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            protocol: None,
            scheme: None,
            workload: None,
            shards: None,
            fronts: None,
            keys: None,
            moves: None,
            one_round: None,
            clients: None,
            transactions: None,
            only: Vec::new(),
            skip: Vec::new(),
            faults: FaultsName::Drawn,
            knobs: Vec::new(),
            mutant: None,
            logs: false,
            to_cut: false,
        }
    }
}

/// A transaction of a world: which client's, and its place among all that this client runs, from 1
/// on. Clients are numbered from 0 on, through all shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nth {
    /// The client.
    pub client: usize,
    /// The place.
    pub place: usize,
}

/// A world, complete.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Where all randomness of the world comes from.
    pub seed: u64,
    /// `occ`, `two_pl`, `client_2pc` or `rococo`.
    pub protocol: &'static str,
    /// For 2PL.
    pub lock_policy: LockPolicy,
    /// One of [`SCHEMES`].
    pub scheme: &'static str,
    /// Whether OCC under DST validates along with its locks.
    pub one_round: bool,
    /// What runs.
    pub workload: WorkloadName,
    /// Whether TPC-C's warehouses are spread over the shards; then there are fewer than shards.
    pub spread: bool,
    /// Shards that hold data.
    pub shards: usize,
    /// Machines that hold none: their clients coordinate what happens elsewhere. They crash, and
    /// start again; others do so only if shards log.
    pub fronts: usize,
    /// Rows that a partition has of each table (random, pieces), keys of the ring (cycle), lists
    /// (append, sql), accounts or tuples of a shard (SmallBank, micro), items (TPC-C), customers of
    /// a load unit (TPC-E).
    pub keys: u64,
    /// Times that some slots of a shard are asked to move to another.
    pub moves: usize,
    /// Clients on each shard.
    pub clients: usize,
    /// Transactions that each client runs.
    pub transactions: usize,
    /// If it is not empty, all others are left out. What those that run do is what they would do
    /// anyway.
    pub only: Vec<Nth>,
    /// How many times as long as usual clients pause before they try again: long pauses waste fewer
    /// attempts, and short ones make more conflicts.
    pub pauses: u64,
    /// How long a shard waits at least for word of another machine's transaction that holds locks
    /// there, in nanoseconds. See [`Plan::patience_ns`].
    pub least_patience_ns: u64,
    /// What machines and the network are like.
    pub hardware: Hardware,
    /// What goes wrong.
    pub faults: Faults,
    /// Faults that are left out, by their numbers.
    pub skip: Vec<u32>,
    /// Whether messages between machines are encoded, and what is decoded arrives: in every eighth
    /// world, for it takes a fifth of the time. Nothing else depends on it.
    pub encoded: bool,
    /// A planted bug.
    pub mutant: Option<Mutant>,
    /// Whether shards keep a log, and every machine crashes. No seed draws it: it came later than
    /// the seeds.
    pub logs: bool,
    /// If they log, whether answers do not wait for that: then all machines crash at a time, and
    /// the database goes back to a cut.
    pub to_cut: bool,
}

/// A world of a sweep lasts for some hundred virtual milliseconds: what goes wrong has to do so
/// quickly.
fn condense(faults: &mut Faults) {
    for rate in [
        &mut faults.partitions_per_s,
        &mut faults.slowdowns_per_s,
        &mut faults.clogs_per_s,
        &mut faults.steps_per_s,
        &mut faults.resets_per_s,
        &mut faults.pauses_per_s,
        &mut faults.crashes_per_s,
        &mut faults.disk_slowdowns_per_s,
        &mut faults.disk_stalls_per_s,
        &mut faults.disk_fulls_per_s,
    ] {
        *rate *= 10.0;
    }
    for duration_ns in [
        &mut faults.partition_ns,
        &mut faults.slowdown_ns,
        &mut faults.clog_ns,
        &mut faults.pause_ns,
        &mut faults.down_ns,
        &mut faults.disk_slowdown_ns,
        &mut faults.disk_stall_ns,
        &mut faults.disk_full_ns,
    ] {
        *duration_ns /= 10;
    }
}

/// What does not go with logs yet.
fn refuse_with_logs(selection: &Selection) -> Result<(), String> {
    if selection.protocol == Some("rococo") && selection.to_cut {
        return Err(
            "rococo has no cut to go back to: choose another protocol, or --durability sync".to_owned()
        );
    }
    if let Some(scheme) =
        selection.scheme.filter(|scheme| selection.to_cut && !["dst", "gts"].contains(scheme))
    {
        return Err(format!("{scheme} has no cut to go back to: choose dst or gts, or --durability sync"));
    }
    if selection.to_cut && selection.moves.is_some_and(|moves| moves > 0) {
        return Err(
            "slots do not move under --durability async: leave --moves out, or choose sync".to_owned()
        );
    }
    match selection.workload {
        Some(workload) if workload.is_sql() && selection.to_cut => {
            Err("clients of sql go by what they were told: choose --durability sync, or another workload"
                .to_owned())
        }
        Some(workload) if counts(workload) => Err(format!(
            "clients of {} count what they were told, and where shards log they crash: choose another workload",
            workload.name()
        )),
        _ => Ok(()),
    }
}

/// Whether the clients of a workload count what they were told, or every machine has a copy of some
/// of its tables.
fn counts(workload: WorkloadName) -> bool {
    matches!(workload, WorkloadName::Tpcc | WorkloadName::Tpce | WorkloadName::Micro)
}

/// The error of SQL where there is none.
fn no_sql(under: &str) -> String {
    format!("there is no SQL under {under}: choose occ/dst or two_pl/dst, or another workload")
}

impl Plan {
    /// Protocol and scheme.
    pub fn legal_pair(&self) -> Pair {
        let pair = Pair::parse(&format!("{}/{}", self.protocol, self.scheme));
        pair.and_then(|pair| pair.legal(LEGAL_PAIRS)).expect("a planned pair is legal")
    }

    /// The pair as it is written everywhere, 2PL by its lock policy.
    pub fn pair(&self) -> String {
        let protocol = match (self.protocol, self.lock_policy) {
            ("two_pl", LockPolicy::WaitDie) => "wait_die",
            ("two_pl", LockPolicy::WoundWait) => "wound_wait",
            ("two_pl", LockPolicy::NoWait) => "no_wait",
            (other, _) => other,
        };
        let one_round = if self.one_round { " in one round" } else { "" };
        format!("{protocol}/{}{one_round}", self.scheme)
    }

    /// All shards: those with data, those of machines without, and such as share a machine with the
    /// last of the first.
    pub fn shards_in_all(&self) -> usize {
        match self.fronts {
            0 => self.shards,
            _ => self.without_data().end * self.hardware.shards_per_machine as usize,
        }
    }

    /// Clients of all shards.
    pub fn clients_in_all(&self) -> usize {
        self.shards_in_all() * self.clients
    }

    /// Whether a transaction runs.
    pub fn runs(&self, nth: Nth) -> bool {
        self.only.is_empty() || self.only.contains(&nth)
    }

    /// The machines that crash. An oracle without a log does not: nothing makes up for what it
    /// forgets.
    pub fn mortal(&self) -> Range<usize> {
        let without_data = self.without_data();
        match self.logs {
            true if self.legal_pair().has_oracle() => 0..self.machine(self.shards_in_all()) + 1,
            true => 0..without_data.end,
            false => without_data,
        }
    }

    /// The machine of a shard; that of the oracle comes after all others.
    pub(crate) fn machine(&self, shard: usize) -> usize {
        shard / self.hardware.shards_per_machine as usize
    }

    /// The machines that hold no data.
    pub fn without_data(&self) -> Range<usize> {
        let first = self.shards.div_ceil(self.hardware.shards_per_machine as usize);
        first..first + self.fronts
    }

    /// How long a shard waits for word of another machine's transaction that holds locks there, in
    /// nanoseconds. Who reads and writes everything, message by message, must be done by then, and
    /// random transactions insert rows.
    pub fn patience_ns(&self) -> u64 {
        let latency_ns = self.hardware.latency_ns.saturating_add(self.hardware.jitter_ns).min(1_000_000_000);
        let messages = match self.workload {
            WorkloadName::Random | WorkloadName::Reverse => {
                400 + self.shards * self.clients * self.transactions / 4
            }
            // A statement sends several, and waits for its client.
            workload if workload.is_sql() => 200,
            _ => 20,
        };
        // What a shard sends waits for its log.
        let log_ns = if self.logs { 4 * self.hardware.disk_sync_ns } else { 0 };
        self.least_patience_ns.max(messages as u64 * (latency_ns + log_ns))
    }

    /// The same without machines that hold no data; nothing is left that crashes.
    pub fn without_fronts(self) -> Plan {
        Plan { fronts: 0, faults: Faults { crashes_per_s: 0.0, ..self.faults }, ..self }
    }

    /// The world of a seed. The error names what the selection has wrong.
    pub fn drawn(seed: u64, selection: &Selection) -> Result<Plan, String> {
        if selection.one_round == Some(true)
            && (selection.protocol, selection.scheme) != (Some("occ"), Some("dst"))
        {
            return Err("--one-round true is for OCC under DST: add --protocol occ --scheme dst".to_owned());
        }
        if selection.logs {
            refuse_with_logs(selection)?;
        }
        // A stream of its own for each decision: what is selected by hand changes nothing else.
        let draw = |stream: u64, n: u64| Rng::new(seed, stream << 32).below(n) as usize;
        // A protocol that few schemes go with has each of them as often as the others.
        let few = selection.protocol.map(schemes).filter(|schemes| schemes.len() < SCHEMES.len());
        let scheme = selection.scheme.unwrap_or_else(|| match few {
            Some(few) => few[draw(2, few.len() as u64)],
            None if selection.to_cut || selection.workload.is_some_and(WorkloadName::is_sql) => "dst",
            None if selection.logs => ["dst", "dst", "none"][draw(2, 3)],
            None => ["dst", "dst", "dst", "gts", "vts", "none"][draw(2, 6)],
        });
        let protocols = ["occ", "wait_die", "wound_wait", "no_wait", "client_2pc", "rococo"];
        // Of what ROCOCO cannot do it is not asked.
        let fits = |protocol: &str| {
            schemes(protocol).contains(&scheme)
                // Its log came later than the seeds.
                && !(selection.logs && protocol == "rococo")
                && selection.workload.is_none_or(|workload| workload.runs_under(protocol, scheme))
                && (protocol != "rococo" || selection.moves.is_none_or(|moves| moves == 0))
        };
        let legal: Vec<_> = protocols.into_iter().filter(|protocol| fits(protocol)).collect();
        if legal.is_empty() && selection.workload.is_some_and(WorkloadName::is_sql) {
            return Err(no_sql(scheme));
        }
        let protocol = selection.protocol.unwrap_or(legal[draw(1, legal.len() as u64)]);
        if !schemes(protocol).contains(&scheme) {
            let legal: Vec<String> =
                schemes(protocol).iter().map(|scheme| format!("{protocol}/{scheme}")).collect();
            let legal = legal.join(", ");
            return Err(format!("{protocol}/{scheme} is not a legal pair: choose one of {legal}"));
        }
        // Who asks for crashes asks for somebody who crashes.
        let fronts = selection.fronts.or(selection.asks_for_crashes().then_some(1));
        let workload = selection.workload.unwrap_or({
            use WorkloadName::*;
            match fronts {
                _ if selection.logs && protocol == "rococo" => Pieces,
                _ if selection.logs => [Random, Random, Cycle, Append, SmallBank][draw(3, 5)],
                Some(1..) if protocol == "rococo" => Pieces,
                _ if protocol == "rococo" => [Pieces, Pieces, Pieces, Micro, Tpcc][draw(3, 5)],
                None | Some(0) => {
                    let small = [SmallBank, Micro][draw(7, 2)];
                    [Random, Random, Random, Random, Cycle, Append, small, Tpcc][draw(3, 8)]
                }
                Some(_) => [Random, Random, Cycle, Append, SmallBank][draw(3, 5)],
            }
        });
        if workload.is_sql() && !workload.runs_under(protocol, scheme) {
            return Err(no_sql(&format!("{protocol}/{scheme}")));
        }
        if protocol == "rococo" && !workload.one_shot() {
            let fit = WorkloadName::ALL.iter().copied().filter(|workload| workload.one_shot());
            let fit: Vec<_> = fit.map(WorkloadName::name).collect();
            return Err(format!(
                "rococo runs one-shot transactions, and {} has others: choose one of {}",
                workload.name(),
                fit.join(", ")
            ));
        }
        let shards = selection.shards.unwrap_or(1 + draw(4, 4));
        let clients = selection.clients.unwrap_or(1 + draw(5, 5));
        // Those of SQL are many statements each.
        let most = if workload.is_sql() { 30 } else { 90 };
        let transactions = selection.transactions.unwrap_or(5 + draw(6, most));
        let mut hardware = Hardware::drawn(seed);
        let mut faults = match selection.faults {
            FaultsName::None => Faults::none(),
            FaultsName::Network => Faults::network(),
            FaultsName::All => Faults::all(),
            FaultsName::Drawn => Faults::drawn(seed),
        };
        if selection.faults == FaultsName::None {
            hardware.tail = 0.0;
        }
        if selection.logs {
            hardware.disk_bytes = DISK_BYTES;
        }
        if selection.faults == FaultsName::Drawn {
            condense(&mut faults);
        }
        let counted = counts(workload);
        let fronts = match fronts {
            Some(1..) if counted && selection.fronts.is_some() => {
                return Err(format!(
                    "no machine may crash under {}: choose others, or leave the choice open",
                    workload.name()
                ));
            }
            _ if counted => 0,
            Some(fronts) => fronts,
            None => usize::from(draw(9, 3) == 0),
        };
        let keys = match selection.keys {
            None => *workload.keys().end(),
            Some(_) if selection.workload.is_none() => {
                return Err("--keys needs to know of which workload: add --workload".to_owned());
            }
            Some(keys) if workload.keys().contains(&keys) => keys,
            Some(keys) => {
                let (least, most) = workload.keys().into_inner();
                return Err(format!(
                    "--keys {keys} is not possible under {}: give a number from {least} to {most}",
                    workload.name()
                ));
            }
        };
        for (name, value) in &selection.knobs {
            let known = |all: &'static [(&str, &str)]| knobs(all).any(|(knob, _)| knob == name);
            match (known(Faults::KNOBS), known(Hardware::KNOBS)) {
                (true, _) => faults.set(name, value)?,
                (_, true) => hardware.set(name, value)?,
                _ if about_disks(name) && selection.logs => {
                    match Faults::KNOBS.iter().any(|(knob, _)| knob == name) {
                        true => faults.set(name, value)?,
                        false => hardware.set(name, value)?,
                    }
                }
                _ if about_disks(name) => {
                    return Err(format!(
                        "{name} makes no difference: no transaction uses a disk without --durability sync"
                    ));
                }
                _ => {
                    let names: Vec<&str> =
                        knobs(Faults::KNOBS).chain(knobs(Hardware::KNOBS)).map(|(knob, _)| knob).collect();
                    return Err(format!("there is no fault {name}: choose among {}", names.join(", ")));
                }
            }
        }
        if selection.asks_for_crashes() {
            if counted && selection.workload.is_some() {
                return Err(format!(
                    "no machine may crash under {}: leave {CRASHES} out, or choose another workload",
                    workload.name()
                ));
            }
            if selection.fronts == Some(0) && !selection.logs {
                return Err(format!(
                    "only machines without data crash, and there are none: give --fronts 1 or more, add \
                     --durability sync, or leave {CRASHES} out"
                ));
            }
        }
        if protocol == "rococo" && selection.moves.is_some_and(|moves| moves > 0) {
            return Err("slots do not move under rococo: leave --moves out".to_owned());
        }
        if let Some(nth) = (selection.only.iter()).find(|nth| nth.place == 0 || nth.place > transactions) {
            return Err(format!(
                "--only {}.{} is not among the {transactions} transactions of a client, the first of which is 1",
                nth.client, nth.place
            ));
        }
        // An audit that locks what it reads, on all shards in turn, takes longer than some of them
        // have patience.
        let reads_lock = scheme == "none" && without_policy(protocol) == "two_pl";
        let plan = Plan {
            seed,
            protocol: without_policy(protocol),
            lock_policy: match protocol {
                "wound_wait" => LockPolicy::WoundWait,
                "no_wait" => LockPolicy::NoWait,
                _ => LockPolicy::WaitDie,
            },
            scheme,
            one_round: (protocol, scheme) == ("occ", "dst")
                && selection.one_round.unwrap_or(draw(12, 3) == 0),
            workload,
            spread: workload == WorkloadName::Tpcc && !reads_lock && draw(13, 3) == 0,
            shards,
            fronts,
            keys,
            moves: selection.moves.unwrap_or(
                match workload {
                    _ if protocol == "rococo" || selection.to_cut => [0; 4],
                    // A warehouse has thousands of rows: each move takes as long as many
                    // transactions.
                    WorkloadName::Tpcc => [0, 0, 2, 4],
                    _ => [0, 0, 10, 100],
                }[draw(10, 4)],
            ),
            clients,
            transactions,
            only: selection.only.clone(),
            pauses: match workload {
                // A turn takes three keys of eight.
                WorkloadName::Cycle => [2, 8],
                _ => [1, 4],
            }[draw(15, 2)],
            least_patience_ns: match workload {
                WorkloadName::Random | WorkloadName::Reverse => [80_000_000, 200_000_000][draw(8, 2)],
                workload if workload.is_sql() => [20_000_000, 200_000_000][draw(8, 2)],
                _ => [1_000_000, 5_000_000, 50_000_000][draw(8, 3)],
            },
            hardware,
            faults,
            skip: selection.skip.clone(),
            encoded: draw(14, 8) == 0,
            mutant: selection.mutant,
            logs: selection.logs,
            to_cut: selection.to_cut,
        };
        let clients = plan.clients_in_all();
        if let Some(nth) = plan.only.iter().find(|nth| nth.client >= clients) {
            return Err(format!(
                "--only names client {}, and there are {clients}, numbered from 0 on",
                nth.client
            ));
        }
        // A shard that forgets needs a log to make up for it.
        Ok(if fronts == 0 && !plan.logs { plan.without_fronts() } else { plan })
    }
}
