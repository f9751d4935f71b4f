//! Faults injected on purpose, on a schedule, and undone.
//!
//! The paper (§4.4, §6.4) measures availability as what is left of the throughput while a fault
//! holds and as the time it takes to come back afterwards. For both one has to know exactly when a
//! fault held, and everybody has to be sure that nothing of it holds in the next run. So a fault
//! here has three parts:
//!
//! * a line of the [schedule]: [what](fault), where ([machines]: hosts and processes; endpoints),
//!   from when to when;
//! * somebody who does it and undoes it: a guard outside of this process for hosts and processes,
//!   here, by ssh or by a command of the user; the [proxy] before an endpoint for the network;
//! * entries in the [journal]: when it was confirmed to hold, when it was confirmed to be undone.
//!
//! **Every fault is undone**, and this is how:
//!
//! | what happens | who undoes |
//! |---|---|
//! | its time is over; `stop` of [`Chaos::run`]: the run ends or is interrupted | Dike, through the guard |
//! | it cannot be put in place somewhere | the guard, what was done of it; Dike, at its other places |
//! | Dike panics, is killed, or drops the future | the guard, whose standard input ends; proxies end too |
//! | the connection to a host dies | the guard there, in the same way, or when its own time limit is over |
//! | the guard is killed | Dike, by the guard's last hint, over the same way |
//! | that fails too | the user, with the command that the journal and the standard error name |
//!
//! Left out: a guard and Dike both killed with SIGKILL within one fault. Loads end even then; a
//! process that was paused or killed, a clock that was set and what a hook did stay as they are.

pub mod fault;
pub(crate) mod guard;
pub mod journal;
pub(crate) mod lines;
pub mod machines;
pub(crate) mod orders;
pub mod proxy;
pub mod schedule;
pub mod stress;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use fault::Fault;
use guard::{Guard, LeftBehind, Orders};
use journal::{Entry, Journal, Phase};
use machines::Machines;
use proxy::Switch;
use schedule::{Occurrence, Schedule, ScheduleError};
use stress::Worker;

/// A schedule that was checked and can be run.
#[derive(Debug)]
pub struct Chaos {
    occurrences: Vec<Occurrence>,
    machines: Machines,
    switches: BTreeMap<String, Switch>,
    worker: Worker,
    limit: Duration,
    grace: Duration,
}

impl Chaos {
    /// Takes a schedule, if it is in order.
    ///
    /// * `switches`: those of the proxies before the endpoints.
    /// * `worker`: how this program is started to load this machine.
    /// * `run_s`: how long the run lasts, in seconds.
    pub fn new(
        schedule: &Schedule,
        machines: &Machines,
        switches: Vec<Switch>,
        worker: Worker,
        run_s: Option<f64>,
    ) -> Result<Chaos, ScheduleError> {
        let switches: BTreeMap<String, Switch> =
            switches.into_iter().map(|switch| (switch.endpoint().to_owned(), switch)).collect();
        let endpoints: Vec<String> = switches.keys().cloned().collect();
        schedule.check(machines, &endpoints, run_s)?;
        Ok(Chaos {
            occurrences: schedule.occurrences(machines),
            machines: machines.clone(),
            switches,
            worker,
            limit: Duration::from_secs_f64(schedule.limit_s),
            grace: Duration::from_secs_f64(schedule.grace_s),
        })
    }

    /// Without what is done to hosts and processes.
    pub fn only_on_the_way(mut self) -> Chaos {
        let switches = &self.switches;
        self.occurrences.retain_mut(|occurrence| {
            occurrence.places.retain(|place| switches.contains_key(place));
            occurrence.fault.aim() == fault::Aim::Endpoints && !occurrence.places.is_empty()
        });
        self
    }

    /// Puts the faults in place and undoes them, until all have ended or `stop` is ready; then what
    /// holds is undone.
    ///
    /// * `start`: the start of the run, which times in the schedule and in the journal refer to.
    /// * `stop`: the end of the run, or a Ctrl-C.
    /// * `seen`: sees every entry of the journal when it is written.
    ///
    /// What cannot be undone is written to the standard error as well. If the future is dropped,
    /// everything is undone without anybody waiting for it.
    pub async fn run(
        &self,
        start: Instant,
        stop: impl Future<Output = ()>,
        mut seen: impl FnMut(&Entry),
    ) -> Journal {
        let stopping = watch::Sender::new(false);
        let (sender, mut entries) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for occurrence in &self.occurrences {
            let given_up = Arc::new(watch::Sender::new(false));
            for place in &occurrence.places {
                let act = self.act(occurrence, place, start, &stopping, &given_up, &sender);
                tasks.spawn(act.perform());
            }
        }
        drop(sender);
        tokio::pin!(stop);
        let mut journal = Journal::default();
        loop {
            tokio::select! {
                entry = entries.recv() => match entry {
                    Some(entry) => {
                        if matches!(entry.phase, Phase::UndoFailed { .. }) {
                            eprintln!("{}", Entry::line(&entry));
                        }
                        seen(&entry);
                        journal.entries.push(entry);
                    }
                    None => break,
                },
                () = &mut stop, if !*stopping.borrow() => drop(stopping.send_replace(true)),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(panic) = ended.map_err(tokio::task::JoinError::into_panic) {
                std::panic::resume_unwind(panic);
            }
        }
        journal.entries.sort_by_key(|entry| entry.at_ns);
        journal
    }

    fn act(
        &self,
        occurrence: &Occurrence,
        place: &str,
        start: Instant,
        stopping: &watch::Sender<bool>,
        given_up: &Arc<watch::Sender<bool>>,
        journal: &mpsc::UnboundedSender<Entry>,
    ) -> Act {
        let fault = &occurrence.fault;
        let length = occurrence.to_ns.map(|to_ns| Duration::from_nanos(to_ns - occurrence.from_ns));
        // What stays is watched for as long as the run may last.
        let watched = length.map_or(WATCH_MAX, |length| length + self.grace);
        let means = match self.switches.get(place) {
            Some(switch) if fault.aim() == fault::Aim::Endpoints => Means::Switch(switch.clone()),
            _ => {
                let limit_s = watched.as_secs_f64().ceil() as u64;
                Means::Guard(orders::orders(fault, place, &self.machines, limit_s, &self.worker))
            }
        };
        Act {
            number: occurrence.entry + 1,
            fault: fault.clone(),
            place: place.to_owned(),
            start,
            from: start + Duration::from_nanos(occurrence.from_ns),
            length,
            means,
            limit: self.limit,
            stopping: stopping.subscribe(),
            given_up: given_up.clone(),
            journal: journal.clone(),
        }
    }
}

/// How long what stays down is watched, at most.
const WATCH_MAX: Duration = Duration::from_secs(30 * 86_400);

/// Who does it.
#[derive(Debug)]
enum Means {
    Guard(Orders),
    Switch(Switch),
}

/// One fault at one place, once.
#[derive(Debug)]
struct Act {
    number: usize,
    fault: Fault,
    place: String,
    start: Instant,
    from: Instant,
    length: Option<Duration>,
    means: Means,
    limit: Duration,
    stopping: watch::Receiver<bool>,
    /// The same fault could not be put in place elsewhere.
    given_up: Arc<watch::Sender<bool>>,
    journal: mpsc::UnboundedSender<Entry>,
}

impl Act {
    async fn perform(mut self) {
        tokio::select! {
            () = sleep_until(self.from) => {}
            () = stopped(&mut self.stopping) => return,
        }
        self.note(Phase::Starting, String::new());
        match &self.means {
            Means::Switch(switch) => {
                let holding = switch.turn_on(&self.fault);
                self.note(Phase::Started, String::new());
                self.wait_for_end(std::future::pending()).await;
                self.note(Phase::Undoing, String::new());
                drop(holding);
                self.note(Phase::Undone, String::new());
            }
            Means::Guard(orders) => match Guard::start(orders).await {
                Ok(guard) => self.with_guard(guard).await,
                Err(error) => self.fail(format!("{}: {error}", orders.words[0])),
            },
        }
    }

    async fn with_guard(&mut self, mut guard: Guard) {
        let limit = self.limit;
        let stopping = &mut self.stopping;
        let holds = tokio::select! {
            holds = timeout(limit, guard.holds()) => holds,
            () = stopped(stopping) => return self.undo(guard, 0).await,
        };
        if holds != Ok(true) {
            let why = if holds.is_err() {
                format!("not within {} s; ", limit.as_secs_f64())
            } else {
                String::new()
            };
            let undone = guard.undo(limit).await;
            let detail = match &undone {
                Ok(detail) => detail,
                Err(left) => &left.detail,
            };
            self.fail(why + detail);
            if let Err(left) = undone {
                self.leave(left);
            }
            return;
        }
        self.note(Phase::Started, guard.detail());
        let said = guard.detail().len();
        if self.wait_for_end(guard.ends()).await {
            self.note(Phase::EndedEarly, guard.detail());
        }
        self.undo(guard, said).await;
    }

    /// Has it undone, and notes what was said after this many bytes.
    async fn undo(&mut self, guard: Guard, said: usize) {
        self.note(Phase::Undoing, String::new());
        match guard.undo(self.limit).await {
            Ok(_) if self.fault.stays() => self.note(Phase::LeftDown, String::new()),
            Ok(detail) => {
                let detail = detail.get(said..).unwrap_or("").trim_matches([';', ' ']);
                self.note(Phase::Undone, detail.to_owned());
            }
            Err(left) => self.leave(left),
        }
    }

    /// Waits until the fault has to be undone. Returns true if it has ended by itself.
    async fn wait_for_end(&mut self, ends: impl Future<Output = ()>) -> bool {
        let length = self.length;
        let over = async move {
            match length {
                Some(length) => tokio::time::sleep(length).await,
                None => std::future::pending().await,
            }
        };
        let mut given_up = self.given_up.subscribe();
        tokio::select! {
            () = over => false,
            () = stopped(&mut self.stopping) => false,
            () = stopped(&mut given_up) => false,
            () = ends => true,
        }
    }

    fn fail(&self, detail: String) {
        self.note(Phase::StartFailed, detail);
        self.given_up.send_replace(true);
    }

    fn leave(&self, left: LeftBehind) {
        self.note(Phase::UndoFailed { command: left.command }, left.detail);
    }

    fn note(&self, phase: Phase, detail: String) {
        let at_ns = self.start.elapsed().as_nanos() as u64;
        let (fault, place) = (self.fault.name(), self.place.clone());
        // Nobody receives it if the run was dropped.
        let _ = self.journal.send(Entry { at_ns, number: self.number, fault, place, phase, detail });
    }
}

/// Waits until this is so.
async fn stopped(watched: &mut watch::Receiver<bool>) {
    if watched.wait_for(|stopped| *stopped).await.is_err() {
        // Whoever could say so is gone, and drops us too.
        std::future::pending::<()>().await;
    }
}
