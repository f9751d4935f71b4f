//! From flags to a plan, or to a refusal.
//!
//! [`BenchArgs::validate`] judges all flags together: workload and pairs first, then flags that
//! would have no effect, then sizes, then the outputs. The first thing wrong is the one reported; a
//! sentence about one mistake is easier to act on than a list. What is judged needs only the flags,
//! the number of cores, the free memory and the output's directory, so every sentence has a test in
//! `tests.rs`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_args::{JsonOutput, Refusal, Switch, json_output, refuse, within};
use plimsoll_engine::{Cluster, Durability, has_cut, machine};
use plimsoll_page::file::check_writable;
use plimsoll_page::units;
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair, Protocol, Scheme};
use plimsoll_workloads::registry::{Registration, Scale, Setting, WORKLOADS};
use serde_json::Value;

use super::axis::{self, Load};
use super::{BenchArgs, LockPolicy, display};
use crate::report::model::Named;

/// Threads beyond this serve no purpose on any machine, and a shard needs a slot of its own.
const SHARDS_MAX: usize = 1024;
/// Every shard is connected to every shard of all other processes.
const PROCESSES_MAX: u64 = 64;
/// Transactions in flight over all shards. Each is a client's, and the number of a client has 16
/// bits ([`plimsoll_workloads::Workload::client`]).
pub const CLIENTS_MAX: usize = 65_535;
/// What a benchmark may be told to keep.
const DURABILITIES: [Durability; 3] = [Durability::None, Durability::Async, Durability::Sync];
/// More transactions per second than any machine runs.
const RATE_MAX: u64 = 1_000_000_000;

/// A benchmark to run, complete and without contradictions.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// What to run, at which scale.
    pub scale: Arc<dyn Scale>,
    /// Under what: one pair, or the pairs of a comparison with the reference first. Never empty.
    pub pairs: Vec<Pair>,
    /// For `two_pl`.
    pub lock_policy: LockPolicy,
    /// For `occ/dst`: reads are validated along with the locks.
    pub one_round: bool,
    /// How far in the past read-only transactions read under `dst`.
    pub staleness: Duration,
    /// For `gts` and `vts`.
    pub oracle: OraclePlan,
    /// For `rc`: no version chains.
    pub rc_single_version: bool,
    /// Number of shards, over all processes.
    pub shards: usize,
    /// Processes to start; none: all shards are in this one. Divides the number of shards.
    pub processes: Option<usize>,
    /// The running cluster that it is run on, as a client, instead of one that is started.
    pub cluster: Option<Cluster>,
    /// Whether rows are loaded into that cluster, and nothing is run.
    pub fill: bool,
    /// The loads of an axis: at each it is run, and `concurrency` and `rate` are those of the load.
    /// Empty without an axis.
    pub loads: Vec<Load>,
    /// Transactions in flight per shard that coordinates.
    pub concurrency: usize,
    /// Shards that coordinate transactions: the first ones of all processes, or, on a cluster, this
    /// client.
    pub coordinators: usize,
    /// Where what is committed is kept, in a directory for each run; none: in memory only.
    pub data_dir: Option<PathBuf>,
    /// What of a database with a directory outlives its process.
    pub kept: Durability,
    /// Which are compared, the reference first; empty without such a comparison. Of a plan for one
    /// run `data_dir` and `kept` say which of them it has.
    pub durabilities: Vec<Durability>,
    /// Whether what logs write is then written to bare files.
    pub replay_raw: bool,
    /// Bytes that the data may take in all processes; none: most of what there is.
    pub memory: Option<u64>,
    /// Transactions per second to start over all shards; none: one after the other, as fast as they
    /// come.
    pub rate: Option<u64>,
    /// Time before measuring.
    pub warmup: Duration,
    /// Time of measuring, not zero.
    pub duration: Duration,
    /// Repetitions, at least one.
    pub runs: u32,
    /// Seed of all random inputs.
    pub seed: u64,
    /// Whether to record and check the history.
    pub check: bool,
    /// Snapshot audits per second while writers run; 0 is none.
    pub check_online_per_second: u32,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Where the HTML page goes.
    pub report: Option<PathBuf>,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Protocol and scheme.
    pub pair: Pair,
    /// What outlives the database, if that is compared.
    pub durability: Option<Durability>,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pair)?;
        self.durability.map_or(Ok(()), |durability| write!(f, " {durability}"))
    }
}

/// How shards talk to the timestamp oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OraclePlan {
    /// Whether requests that are ready at the same time share a message.
    pub batch: bool,
    /// Whether a machine has one vector slot (`vts`).
    pub compress: bool,
    /// Whether snapshots are fetched ahead of their use.
    pub prefetch: bool,
}

impl BenchArgs {
    /// Judges all flags together. `cores` are those the process may use, `memory_bytes` is what is
    /// free for data (0: unknown). Makes and removes temporary files beside the outputs to see
    /// whether they can be written.
    pub fn validate(mut self, cores: usize, memory_bytes: u64) -> Result<BenchPlan, Refusal> {
        if let Some(place) = self.cluster.take() {
            return self.on_cluster(&place, cores);
        }
        let workload = self.workload()?;
        if self.load == Some(None) {
            refuse!(
                "--load without a value fills a cluster that runs: name it with --cluster; or give --load 1,2,4,8 to \
                 measure at each of these loads"
            );
        }
        let pairs = self.pairs()?;
        self.of_the_workload.refuse_others(workload)?;
        self.refuse_flags_without_effect(&pairs)?;
        self.refuse_what_is_not_kept()?;
        let durabilities = self.durabilities(&pairs)?;
        let kept = self.kept(&pairs)?;
        let (processes, shards) = self.shards(cores)?;
        let seed = self.seed.unwrap_or(1);
        let distributed = self.distributed;
        let setting = Setting {
            shards,
            processes: processes.unwrap_or(1),
            seed,
            distributed,
            rounds_in: machine::rounds_in,
        };
        let scale = self.of_the_workload.scale(workload, &setting)?;
        refuse_more_than_memory(scale.bytes_estimate(), memory_bytes)?;
        if let Some(memory) = self.memory
            && scale.bytes_estimate() > memory
        {
            refuse!(
                "the data would take about {} but --memory allows {}: choose a smaller scale, or raise it",
                units::bytes(scale.bytes_estimate()),
                units::bytes(memory)
            );
        }

        let loads = self.loads()?;
        let concurrency = within(self.concurrency.unwrap_or(8), "concurrency", 1, CLIENTS_MAX as u64)?;
        let coordinators =
            within(self.coordinators.unwrap_or(shards as u64), "coordinators", 1, shards as u64)? as usize;
        let (flag, most) = match loads.last() {
            Some(&Load::InFlight(most)) => ("load", most),
            _ => ("concurrency", concurrency),
        };
        if coordinators as u64 * most > CLIENTS_MAX as u64 {
            refuse!(
                "{} are too many in flight: lower --{flag} or --coordinators until all shards together have at \
                 most {}",
                units::plural(coordinators as u64 * most, "transaction", "transactions"),
                units::thousands(CLIENTS_MAX as u64)
            );
        }
        let duration = self.duration.unwrap_or(Duration::from_secs(10));
        if duration.is_zero() {
            refuse!("--duration 0s measures nothing: give a time such as 10s");
        }
        let runs_default = if pairs.len() > 1 || !durabilities.is_empty() { 3 } else { 1 };
        let runs = within(self.runs.unwrap_or(runs_default), "runs", 1, 1000)?;
        let online = within(self.check_online.unwrap_or(2), "check-online", 0, 1000)?;
        let on = |switch: Option<Switch>, default| switch.unwrap_or(default) == Switch::On;
        Ok(BenchPlan {
            scale,
            pairs,
            data_dir: self.data_dir.clone(),
            kept,
            durabilities,
            replay_raw: self.replay_raw,
            memory: self.memory,
            lock_policy: self.lock_policy.unwrap_or(LockPolicy::WaitDie),
            one_round: self.one_round,
            staleness: self.staleness.unwrap_or_default(),
            oracle: OraclePlan {
                batch: on(self.oracle_batch, Switch::On),
                compress: on(self.oracle_compress, Switch::On),
                prefetch: on(self.oracle_prefetch, Switch::Off),
            },
            rc_single_version: self.rc_single_version,
            shards,
            processes,
            cluster: None,
            fill: false,
            loads,
            concurrency: concurrency as usize,
            coordinators,
            rate: self.rate.map(|rate| within(rate, "rate", 1, RATE_MAX)).transpose()?,
            warmup: self.warmup.unwrap_or(Duration::from_secs(2)),
            duration,
            runs: runs as u32,
            seed,
            check: self.check,
            check_online_per_second: online as u32,
            json: json_output(self.json.as_ref())?,
            report: self.report_output()?,
            quiet: self.quiet,
        })
    }

    /// The loads of an axis, if there is one.
    fn loads(&self) -> Result<Vec<Load>, Refusal> {
        let Some(Some(text)) = &self.load else { return Ok(Vec::new()) };
        if self.concurrency.is_some() {
            refuse!("--load and --concurrency both say how much is in flight: leave one of them out");
        }
        if self.rate.is_some() {
            refuse!("--load and --rate both say how much is asked for: leave one of them out");
        }
        axis::loads(text, CLIENTS_MAX as u64)
    }

    /// The workload, also where `--json tpcc` took it for a file's name, or `--load tpcc` for a
    /// load.
    pub(super) fn workload(&mut self) -> Result<&'static Registration, Refusal> {
        if let Some(name) = self.workload {
            return Ok(name);
        }
        if let Some(Some(load)) = &self.load
            && let Some(name) = Registration::named(load)
        {
            (self.load, self.workload) = (Some(None), Some(name));
            return Ok(name);
        }
        if let Some(Some(file)) = &self.json
            && let Some(name) = file.to_str().and_then(Registration::named)
        {
            (self.json, self.workload) = (Some(None), Some(name));
            return Ok(name);
        }
        let [first, others @ ..] = WORKLOADS else { refuse!("there are no workloads") };
        let others: String = others.iter().map(|workload| format!(", or {}", workload.name)).collect();
        refuse!("no workload is named: say `plimsoll bench {}`, for example{others}", first.name);
    }

    fn pairs(&self) -> Result<Vec<Pair>, Refusal> {
        let Some(list) = &self.compare else {
            let protocol = self.protocol.unwrap_or(Protocol::Occ);
            let scheme = self.scheme.unwrap_or(Scheme::Dst);
            return Ok(vec![Pair { protocol, scheme }.legal(LEGAL_PAIRS)?]);
        };
        let mut pairs = Vec::new();
        for text in list.split(',') {
            let pair = Pair::parse(text.trim())?.legal(LEGAL_PAIRS)?;
            if pairs.contains(&pair) {
                refuse!("--compare names {pair} twice: leave one out");
            }
            pairs.push(pair);
        }
        if pairs.len() < 2 {
            refuse!("--compare needs at least two pairs, such as occ/dst,occ/rc");
        }
        Ok(pairs)
    }

    fn refuse_flags_without_effect(&self, pairs: &[Pair]) -> Result<(), Refusal> {
        let scheme = |schemes: &[Scheme]| pairs.iter().any(|pair| schemes.contains(&pair.scheme));
        let two_pl = pairs.iter().any(|pair| pair.protocol == Protocol::TwoPl);
        let occ_dst = pairs.contains(&Pair { protocol: Protocol::Occ, scheme: Scheme::Dst });
        let oracle = scheme(&[Scheme::Gts, Scheme::Vts]);
        for (flag, given, in_play, needs) in [
            ("lock-policy", self.lock_policy.is_some(), two_pl, "--protocol two_pl"),
            ("one-round", self.one_round, occ_dst, "--protocol occ --scheme dst"),
            ("staleness", self.staleness.is_some(), scheme(&[Scheme::Dst]), "--scheme dst"),
            ("oracle-batch", self.oracle_batch.is_some(), oracle, "--scheme gts or --scheme vts"),
            ("oracle-prefetch", self.oracle_prefetch.is_some(), oracle, "--scheme gts or --scheme vts"),
            ("oracle-compress", self.oracle_compress.is_some(), scheme(&[Scheme::Vts]), "--scheme vts"),
            ("rc-single-version", self.rc_single_version, scheme(&[Scheme::Rc]), "--scheme rc"),
        ] {
            if given && !in_play {
                refuse!("--{flag} has no effect here: add {needs} or leave it out");
            }
        }
        Ok(())
    }

    /// The durabilities of a comparison, if there is one.
    fn durabilities(&self, pairs: &[Pair]) -> Result<Vec<Durability>, Refusal> {
        let Some(list) = &self.compare_durability else { return Ok(Vec::new()) };
        let mut durabilities = Vec::new();
        for text in list.split(',').map(str::trim) {
            let durability = durability("compare-durability", text, pairs)?;
            if durabilities.contains(&durability) {
                refuse!("--compare-durability names {durability} twice: leave one out");
            }
            durabilities.push(durability);
        }
        if durabilities.len() < 2 {
            refuse!("--compare-durability needs at least two durabilities, such as none,sync");
        }
        Ok(durabilities)
    }

    /// What outlives a database with a data directory, unless durabilities are compared.
    fn kept(&self, pairs: &[Pair]) -> Result<Durability, Refusal> {
        let Some(text) = &self.durability else { return Ok(Durability::Sync) };
        let kept = durability("durability", text, pairs)?;
        match (kept, &self.data_dir) {
            (Durability::None, Some(_)) => refuse!("--durability none keeps nothing: leave --data-dir out"),
            (Durability::Async | Durability::Sync, None) => {
                refuse!("--durability {kept} needs a disk: say with --data-dir where data is kept")
            }
            _ => Ok(kept),
        }
    }

    /// Judges `--data-dir`, and what needs it.
    fn refuse_what_is_not_kept(&self) -> Result<(), Refusal> {
        let Some(directory) = &self.data_dir else {
            for (flag, given) in
                [("compare-durability", self.compare_durability.is_some()), ("replay-raw", self.replay_raw)]
            {
                if given {
                    refuse!("--{flag} needs a disk: say with --data-dir where data is kept");
                }
            }
            return Ok(());
        };
        if !directory.is_dir() {
            refuse!(
                "--data-dir {}: there is no such directory; make it, or give another",
                directory.display()
            );
        }
        Ok(())
    }

    /// The number of processes, and of shards over all of them.
    fn shards(&self, cores: usize) -> Result<(Option<usize>, usize), Refusal> {
        let processes = self.processes.map(|n| within(n, "processes", 1, PROCESSES_MAX)).transpose()?;
        let Some(processes) = processes.map(|n| n as usize) else {
            return Ok((None, self.shards_here(cores)?));
        };
        let each = self.shards.unwrap_or((cores / processes).clamp(1, SHARDS_MAX / processes) as u64);
        let each = within(each, "shards", 1, (SHARDS_MAX / processes) as u64)? as usize;
        let shards = processes * each;
        if shards > cores && !self.oversubscribe {
            refuse!(
                "--processes {processes} with {each} {} each is more than the {cores} cores of this machine: give fewer, \
                 or add --oversubscribe",
                if each == 1 { "shard" } else { "shards" }
            );
        }
        Ok((Some(processes), shards))
    }

    fn shards_here(&self, cores: usize) -> Result<usize, Refusal> {
        let shards = self.shards.unwrap_or(cores.clamp(1, SHARDS_MAX) as u64);
        let shards = within(shards, "shards", 1, SHARDS_MAX as u64)? as usize;
        if shards > cores && !self.oversubscribe {
            refuse!(
                "--shards {shards} is more than the {cores} cores of this machine: give at most {cores}, or \
                 add --oversubscribe"
            );
        }
        Ok(shards)
    }

    fn report_output(&self) -> Result<Option<PathBuf>, Refusal> {
        let Some(file) = &self.report else { return Ok(None) };
        if self.json == Some(Some(file.clone())) {
            refuse!("--json and --report both name {}: give them different files", file.display());
        }
        check_writable(file)?;
        Ok(Some(file.clone()))
    }
}

/// The durability of this name, which a flag was given for these pairs.
fn durability(flag: &str, text: &str, pairs: &[Pair]) -> Result<Durability, Refusal> {
    let Some(durability) = DURABILITIES.into_iter().find(|known| known.to_string() == text) else {
        let known = DURABILITIES.map(|known| known.to_string()).join(", ");
        refuse!("--{flag}: there is no durability {text:?}; there are {known}");
    };
    if durability == Durability::Async
        && let Some(pair) = pairs.iter().find(|&&pair| !has_cut(pair))
    {
        refuse!(
            "--{flag}: under {pair} a database cannot go back to one timestamp; choose occ or two_pl with dst or gts, or client_2pc with dst"
        );
    }
    Ok(durability)
}

impl BenchPlan {
    /// Shards of each process.
    pub fn shards_per_process(&self) -> usize {
        self.shards / self.processes.unwrap_or(1)
    }

    /// What outlives a database of this plan.
    pub fn durability(&self) -> Durability {
        if self.data_dir.is_some() { self.kept } else { Durability::None }
    }

    /// What is compared: every pair with every durability. The reference is the first.
    pub fn sides(&self) -> Vec<Side> {
        let durabilities: Vec<Option<Durability>> = match self.durabilities.as_slice() {
            [] => vec![None],
            several => several.iter().copied().map(Some).collect(),
        };
        let of = |&pair: &Pair| durabilities.iter().map(move |&durability| Side { pair, durability });
        self.pairs.iter().flat_map(of).collect()
    }

    /// The plan of the runs of one side.
    pub fn of(&self, side: Side) -> BenchPlan {
        let mut plan = self.clone();
        match side.durability {
            Some(Durability::None) => plan.data_dir = None,
            Some(kept) => plan.kept = kept,
            None => {}
        }
        plan
    }

    /// Everything that was set, as the report shows it for a run of this pair. Settings that have
    /// no effect on the pair are left out.
    pub fn config(&self, pair: Pair) -> Named<Value> {
        let mut config = Named::default();
        let mut set = |name: &str, value: Value| config.push(name, value);
        self.scale.config().into_iter().for_each(|(name, value)| set(name, value));
        if let Some(processes) = self.processes {
            set("processes", processes.into());
        }
        if let Some(cluster) = &self.cluster {
            set("cluster", cluster.name.as_str().into());
            set("nodes", cluster.nodes.len().into());
        }
        set("shards", self.shards_per_process().into());
        set("concurrency", self.concurrency.into());
        if self.cluster.is_none() {
            set("coordinators", self.coordinators.into());
        }
        if let Some(rate) = self.rate {
            set("rate", rate.into());
        }
        if !self.loads.is_empty() {
            set("load", axis::listed(&self.loads).into());
        }
        if pair.protocol == Protocol::TwoPl {
            set("lock_policy", display(&self.lock_policy).into());
        }
        if pair == (Pair { protocol: Protocol::Occ, scheme: Scheme::Dst }) {
            set("one_round", self.one_round.into());
        }
        match pair.scheme {
            Scheme::Dst => set("staleness_seconds", self.staleness.as_secs_f64().into()),
            Scheme::Rc => set("rc_single_version", self.rc_single_version.into()),
            Scheme::Gts | Scheme::Vts => {
                set("oracle_batch", self.oracle.batch.into());
                set("oracle_prefetch", self.oracle.prefetch.into());
                if pair.scheme == Scheme::Vts {
                    set("oracle_compress", self.oracle.compress.into());
                }
            }
            Scheme::None => {}
        }
        if self.data_dir.is_some() || !self.durabilities.is_empty() {
            set("durability", self.durability().to_string().into());
        }
        if let Some(memory) = self.memory {
            set("memory_bytes", memory.into());
        }
        set("warmup_seconds", self.warmup.as_secs_f64().into());
        set("duration_seconds", self.duration.as_secs_f64().into());
        set("runs", self.runs.into());
        set("seed", self.seed.into());
        set("check", self.check.into());
        set("check_online", self.check_online_per_second.into());
        config
    }
}

/// Refuses data that cannot fit.
pub(super) fn refuse_more_than_memory(needed_bytes: u64, memory_bytes: u64) -> Result<(), Refusal> {
    if memory_bytes > 0 && needed_bytes > memory_bytes {
        refuse!(
            "the data would take about {} but only {} of memory are free: choose a smaller scale",
            units::bytes(needed_bytes),
            units::bytes(memory_bytes)
        );
    }
    Ok(())
}
