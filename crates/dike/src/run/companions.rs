//! What goes on beside the terminals of a run: faults by their schedule, and looks at machines.
//!
//! The companions are made ready before anything is connected, begin with the run's clock, and end
//! with the run, whatever ended it: at its deadline or a Ctrl-C every fault that still holds is
//! undone, and the run waits for that. If the run is dropped or the program ends without asking (a
//! second Ctrl-C, a panic, SIGKILL), the guards of [`chaos`](crate::chaos) undo their faults by
//! themselves and proxies end with the program.
//!
//! Proxies stand before the endpoints only if the schedule aims a fault of the network at one of
//! them, and then before all, so that a comparison of endpoints compares what is behind them.
//!
//! If several clients drive the run, each does to its own way to the database what the schedule
//! asks of the network; hosts and processes are the first one's, which also looks at machines.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::chaos::Chaos;
use crate::chaos::fault::Aim;
use crate::chaos::journal::{Entry, Journal, Phase};
use crate::chaos::machines::Machines;
use crate::chaos::proxy::Proxy;
use crate::chaos::stress::Worker;
use crate::cli::WORKER;
use crate::collect::sample::Reading;
use crate::collect::{self, Collector};
use crate::config::{Config, Refusal};
use crate::control::SECOND_NS;
use crate::metrics::document::{Check, Fault, Run};

/// Faults and looks at machines that wait for a run to begin.
pub struct Companions {
    proxies: BTreeMap<String, Proxy>,
    chaos: Chaos,
    collect: Option<collect::Settings>,
    machines: Machines,
}

/// Faults and looks at machines of a run that goes on.
pub struct Accompanied {
    /// Open connections go through them.
    _proxies: BTreeMap<String, Proxy>,
    /// Ends the schedule.
    stop: Option<oneshot::Sender<()>>,
    /// One task: the schedule. If it is dropped, guards undo what holds.
    schedule: JoinSet<Journal>,
    holding: Arc<Mutex<Vec<String>>>,
    collector: Option<Collector>,
    readings: mpsc::UnboundedReceiver<Reading>,
}

/// What was done to the database, and what was seen of its machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Witnessed {
    journal: Journal,
    /// By time.
    readings: Vec<Reading>,
}

impl Witnessed {
    /// Enters all of it into the run.
    pub fn enter(self, run: &mut Run) {
        let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
        run.faults = (self.journal.bands().into_iter())
            .map(|band| Fault {
                name: band.fault,
                target: band.place,
                from_seconds: seconds(band.from_ns),
                to_seconds: band.to_ns.map(seconds),
            })
            .collect();
        if !self.journal.is_empty() {
            let problems: Vec<String> = self.journal.problems().map(Entry::line).collect();
            let detail = match problems.len() {
                0 => "all that were due".to_owned(),
                _ => problems.join("; "),
            };
            let name = "every fault is put in place and undone".to_owned();
            run.checks.push(Check { name, ok: problems.is_empty(), detail });
        }
        run.journal = self.journal;
        run.readings = self.readings;
    }
}

impl Companions {
    /// Makes ready what the configuration asks for. Fails if it contradicts itself, or if there is
    /// no port for a proxy.
    pub async fn prepare(config: &Config) -> Result<Companions, Refusal> {
        let refused = |error: &dyn std::fmt::Display| Refusal(error.to_string());
        let endpoints: BTreeSet<&String> = config.target.endpoints.iter().collect();
        let of_network = config.chaos.faults.iter().filter(|entry| entry.fault.aim() == Aim::Endpoints);
        let mut proxies = BTreeMap::new();
        if of_network.flat_map(|entry| &entry.places).any(|place| endpoints.contains(place)) {
            for endpoint in endpoints {
                let proxy = Proxy::place(endpoint, endpoint, config.chaos.seed).await;
                let proxy =
                    proxy.map_err(|error| refused(&format_args!("no proxy for {endpoint}: {error}")))?;
                proxies.insert(endpoint.clone(), proxy);
            }
        }
        let switches = proxies.values().map(Proxy::switch).collect();
        let worker = Worker::of_this_program(&WORKER)
            .map_err(|error| refused(&format_args!("this program does not know where it is: {error}")))?;
        let run_s = (config.run.warmup_s + config.run.duration_s) as f64;
        let chaos = Chaos::new(&config.chaos, &config.machines, switches, worker, Some(run_s));
        let chaos = chaos.map_err(|error| refused(&format_args!("chaos: {error}")))?;
        config.collect.check(&config.machines).map_err(|error| refused(&error))?;
        let is_first = config.run.client == 1;
        let chaos = if is_first { chaos } else { chaos.only_on_the_way() };
        let collect = is_first.then(|| config.collect.clone());
        let machines = config.machines.clone();
        Ok(Companions { proxies, chaos, collect, machines })
    }

    /// Where to connect instead of to an endpoint.
    pub fn proxies(&self) -> BTreeMap<String, SocketAddr> {
        self.proxies.iter().map(|(endpoint, proxy)| (endpoint.clone(), proxy.address())).collect()
    }

    /// The run has begun at this time.
    pub fn begin(self, begun: Instant) -> Accompanied {
        let start = begun.into();
        let (sender, readings) = mpsc::unbounded_channel();
        let collector = self.collect.map(|settings| {
            Collector::start(&settings, &self.machines, start, &sender)
                .expect("what is looked at was checked before the run")
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let holding = Arc::new(Mutex::new(Vec::new()));
        let mut schedule = JoinSet::new();
        let (chaos, known) = (self.chaos, holding.clone());
        schedule.spawn(async move {
            let stopped = async { drop(stopped.await) };
            chaos.run(start, stopped, |entry| note(&mut lock(&known), entry)).await
        });
        Accompanied { _proxies: self.proxies, stop: Some(stop), schedule, holding, collector, readings }
    }
}

impl Accompanied {
    /// The faults that hold now, for people.
    pub fn holding(&self) -> Vec<String> {
        lock(&self.holding).clone()
    }

    /// The time of the run is over: what holds is being undone from now on.
    pub fn stop(&mut self) {
        // Nobody hears it if all faults have ended.
        self.stop.take().map(|stop| stop.send(()));
    }

    /// Waits until everything is undone.
    pub async fn end(mut self) -> Witnessed {
        self.stop();
        let journal = match self.schedule.join_next().await {
            Some(Ok(journal)) => journal,
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => unreachable!("the schedule is one task"),
        };
        if let Some(collector) = self.collector {
            collector.stop().await;
        }
        let mut seen = Vec::new();
        while let Ok(reading) = self.readings.try_recv() {
            seen.push(reading);
        }
        seen.sort_by_key(Reading::at_ns);
        Witnessed { journal, readings: seen }
    }
}

fn lock(holding: &Mutex<Vec<String>>) -> std::sync::MutexGuard<'_, Vec<String>> {
    // A list of names cannot be half changed.
    holding.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(holding: &mut Vec<String>, entry: &Entry) {
    let name = format!("{} {}", entry.fault, entry.place);
    match entry.phase {
        Phase::Started => holding.push(name),
        Phase::Undone | Phase::EndedEarly | Phase::LeftDown => {
            if let Some(at) = holding.iter().position(|known| *known == name) {
                holding.remove(at);
            }
        }
        _ => {}
    }
}
