//! A simulated database under all controls at once, from the first draw to the run's document.
//!
//! Terminals run transactions one after the other. A transaction elsewhere takes a few
//! milliseconds, more the more nodes it touches. A hot one waits its turn at the hot item. For a
//! while the network is slow; later a node dies, nothing commits for some seconds, and then less
//! than before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_dike::control::SECOND_NS;
use plimsoll_dike::control::contention::{Contender, Controller, HotSpots, Phase, Schedule};
use plimsoll_dike::control::distribution::{Distribution, DistributionTally, Target};
use plimsoll_dike::control::load::{Arrivals, Load, LoadTally, Pacer, Shape};
use plimsoll_dike::control::mix::{MixTally, Mixes};
use plimsoll_dike::control::placement::Placement;
use plimsoll_dike::control::skew::{Chooser, Moving, Skew, SkewTally};
use plimsoll_dike::metrics::document::{About, Check};
use plimsoll_dike::metrics::recorder::{Committed, Layout};
use plimsoll_dike::metrics::summary::{ClientCpu, NodeFigures};
use plimsoll_dike::metrics::{Fault, Recorder, Run};
use plimsoll_types::random::Rng;

const MS: f64 = 1e6;
const KINDS: [&str; 3] = ["new_order", "payment", "stock_level"];

/// What is simulated.
pub struct World {
    pub label: &'static str,
    pub database: &'static str,
    pub nodes: u32,
    pub seconds: u64,
    /// Mean time of a transaction on one node.
    pub latency_ms: f64,
    /// How long nothing commits after the node died.
    pub outage_seconds: u64,
    /// Whether arrivals wait for the database.
    pub arrivals: Arrivals,
    /// How the load changes.
    pub shape: Shape,
}

impl Default for World {
    fn default() -> World {
        World {
            label: "nine nodes",
            database: "simulated",
            nodes: 9,
            seconds: 150,
            latency_ms: 12.0,
            outage_seconds: 7,
            arrivals: Arrivals::Open,
            shape: Shape::Gaussian { mean: 0.5, deviation: 0.35 },
        }
    }
}

/// Two cluster sizes of one database and another database, three repetitions each.
pub fn comparison(seconds: u64) -> Vec<Run> {
    let worlds = [
        World { label: "harbour, 3 nodes", database: "harbour", nodes: 3, seconds, ..World::default() },
        World {
            label: "harbour, 9 nodes",
            database: "harbour",
            latency_ms: 13.5,
            seconds,
            ..World::default()
        },
        World {
            label: "lagoon, 9 nodes",
            database: "lagoon",
            latency_ms: 21.0,
            outage_seconds: 10,
            seconds,
            ..World::default()
        },
    ];
    worlds.iter().flat_map(|world| (1..=3).map(move |repetition| steady(world, repetition))).collect()
}

fn steady(world: &World, repetition: u32) -> Run {
    World { arrivals: Arrivals::Closed, shape: Shape::Constant, ..*world }.run(repetition)
}

struct Terminal {
    rng: Rng,
    pacer: Pacer,
    recorder: Recorder,
    distribution: DistributionTally,
    skew: SkewTally,
    mix: MixTally,
    load: LoadTally,
    place: Option<Contender>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Look,
    Start { intended_ns: u64 },
    End { kind: usize, intended_ns: u64, started_ns: u64, outcome: Outcome },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Committed,
    Retry,
    Lost,
}

impl World {
    /// One run.
    pub fn run(&self, repetition: u32) -> Run {
        let (terminals, warehouses) = (20 * self.nodes, 20 * self.nodes);
        let run_ns = self.seconds * SECOND_NS;
        let at = |share: f64| (share * self.seconds as f64).round();
        let (slow_from, slow_to, died) = (at(0.35), at(0.5), at(0.7));
        let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;

        let placement =
            Placement::exact((0..warehouses).map(|w| w * 7 % self.nodes).collect()).expect("a placement");
        let target = Target { ratio: 0.3, degree: 3.0 };
        let distribution = Distribution::drawn(&placement, None, target).expect("possible");
        let moving = Moving { every_ns: run_ns / 4, by: u64::from(warehouses / 3) };
        let homes = Chooser::new(Skew::Zipf { s: 0.6 }, u64::from(warehouses))
            .and_then(|chooser| chooser.moving(moving))
            .expect("sensible");
        let later = if self.shape == Shape::Constant { [50.0, 45.0, 5.0] } else { [60.0, 25.0, 15.0] };
        let mixes =
            Mixes::new(&[(0, vec![50.0, 45.0, 5.0]), (run_ns / 2, later.to_vec())]).expect("sensible");
        let most = f64::from(terminals);
        let shares = if self.shape == Shape::Constant { [0.2; 3] } else { [0.15, 0.5, 0.3] };
        let phases = shares.iter().enumerate().map(|(i, share)| Phase {
            at_ns: i as u64 * run_ns / 3,
            intensities: vec![(share * most).round()],
        });
        let schedule = Schedule::new(phases.collect(), terminals).expect("possible");
        let spots = HotSpots::new(1);
        let mut contention = Controller::new(Arc::clone(&spots), schedule, 1.0);
        let peak_tps = (self.arrivals == Arrivals::Open).then_some(most * 25.0);
        let load = Load::new(self.shape, run_ns, peak_tps).expect("sensible");

        let layout = Arc::new(Layout {
            kinds: KINDS.map(str::to_owned).to_vec(),
            aborts: vec!["serialization".into(), "deadlock".into()],
            errors: vec!["connection lost".into()],
            warm_up_seconds: self.seconds / 10,
        });
        let mut all: Vec<Terminal> = (0..terminals)
            .map(|number| {
                let mut rng = Rng::new(u64::from(repetition), u64::from(number));
                Terminal {
                    pacer: Pacer::new(load, self.arrivals, terminals, &mut rng),
                    rng,
                    recorder: Recorder::new(Arc::clone(&layout)),
                    distribution: DistributionTally::default(),
                    skew: SkewTally::default(),
                    mix: MixTally::default(),
                    load: LoadTally::new(),
                    place: None,
                }
            })
            .collect();

        let mut events = BinaryHeap::from([Reverse((0, 0, Event::Look))]);
        for (number, terminal) in all.iter_mut().enumerate() {
            if let Some(at_ns) = terminal.pacer.next_ns(0) {
                events.push(Reverse((at_ns, number, Event::Start { intended_ns: at_ns })));
            }
        }
        let mut item_free_ns = 0;
        let mut chosen = Vec::new();
        while let Some(Reverse((now_ns, number, event))) = events.pop() {
            if now_ns >= run_ns {
                break;
            }
            let terminal = &mut all[number];
            let now = seconds(now_ns);
            match event {
                Event::Look => {
                    contention.look(now_ns);
                    events.push(Reverse((now_ns + 10_000_000, 0, Event::Look)));
                }
                Event::Start { intended_ns } => {
                    let kind = mixes.draw(now_ns, &mut terminal.rng);
                    terminal.mix.record(now_ns, &mixes, kind);
                    let home = homes.draw(now_ns, &mut terminal.rng);
                    terminal.skew.record(now_ns, &homes, home);
                    distribution.choose(1 + home as u32, &mut terminal.rng, &mut chosen);
                    let nodes = placement.nodes_of(&chosen);
                    terminal.distribution.record(now_ns, &distribution, &chosen, nodes);
                    let slower = if (slow_from..slow_to).contains(&now) { 1.8 } else { 1.0 };
                    let degraded = if now >= died { 1.25 } else { 1.0 };
                    let tail = -(1.0 - terminal.rng.below(1 << 30) as f64 / f64::from(1 << 30)).ln();
                    let touched = 0.8 + 0.2 * nodes.unwrap_or(1) as f64;
                    let takes = self.latency_ms * MS * slower * degraded * touched * (0.5 + 0.5 * tail);
                    let mut ended_ns = now_ns + takes as u64;
                    terminal.place = if kind == 0 { spots.start() } else { None };
                    if let Some(place) = &mut terminal.place {
                        place.reach();
                        item_free_ns = item_free_ns.max(now_ns) + (0.12 * takes) as u64;
                        ended_ns = item_free_ns;
                    }
                    let down = died..died + self.outage_seconds as f64;
                    let outcome = if down.contains(&seconds(ended_ns)) {
                        ended_ns = ended_ns.max(now_ns + SECOND_NS);
                        Outcome::Lost
                    } else if terminal.rng.pct(2.0) {
                        Outcome::Retry
                    } else {
                        Outcome::Committed
                    };
                    let end = Event::End { kind, intended_ns, started_ns: now_ns, outcome };
                    events.push(Reverse((ended_ns, number, end)));
                }
                Event::End { kind, intended_ns, started_ns, outcome } => {
                    terminal.place = None;
                    terminal.load.record(started_ns, now_ns);
                    match outcome {
                        Outcome::Committed => {
                            let intended_ns = (self.arrivals == Arrivals::Open).then_some(intended_ns);
                            terminal.recorder.committed(Committed {
                                kind,
                                intended_ns,
                                started_ns,
                                ended_ns: now_ns,
                            });
                        }
                        Outcome::Retry => {
                            terminal.recorder.aborted(now_ns, kind, usize::from(terminal.rng.pct(20.0)));
                            terminal.recorder.retried(now_ns);
                        }
                        Outcome::Lost => {
                            terminal.recorder.failed(now_ns, kind, 0);
                            terminal.recorder.given_up(now_ns, kind);
                            terminal.recorder.offline(started_ns, now_ns);
                        }
                    }
                    terminal.pacer.ran(started_ns, now_ns, &mut terminal.rng);
                    if let Some(at_ns) = terminal.pacer.next_ns(now_ns) {
                        let start = Event::Start { intended_ns: at_ns };
                        events.push(Reverse((at_ns.max(now_ns), number, start)));
                    }
                }
            }
        }

        let mut terminals = all.into_iter();
        let mut first = terminals.next().expect("a terminal");
        for other in terminals {
            first.recorder.merge(&other.recorder);
            first.distribution.merge(&other.distribution);
            first.skew.merge(&other.skew);
            first.mix.merge(&other.mix);
            first.load.merge(&other.load);
        }
        let about = About {
            label: self.label.into(),
            database: self.database.into(),
            database_version: "1.0".into(),
            nodes: self.nodes,
            repetition,
            clients: 1,
            terminals: 20 * self.nodes,
            config: [
                ("warehouses".to_owned(), warehouses.into()),
                ("distribution".to_owned(), "30% over 3 nodes".into()),
                ("isolation".to_owned(), "serializable".into()),
            ]
            .into(),
            ..About::default()
        };
        let mut run = Run::new(about, first.recorder, run_ns);
        run.controls = first.distribution.finish("new_order");
        run.controls.extend(contention.finish());
        run.controls.push(first.skew.finish(&homes, "homes"));
        run.controls.push(first.load.finish(&load, 1.0, self.seconds as usize));
        run.controls.extend(first.mix.finish(&KINDS));
        let fault = |name: &str, target: &str, from_seconds, to_seconds| Fault {
            name: name.into(),
            target: target.into(),
            from_seconds,
            to_seconds,
        };
        run.faults = vec![
            fault("network delay", "node 2", slow_from, Some(slow_to)),
            fault("kill", "node 1", died, None),
        ];
        let mut rng = Rng::new(u64::from(repetition), 1 << 40);
        run.nodes = (1..=self.nodes)
            .map(|node| NodeFigures {
                node: format!("node {node}"),
                data_bytes: Some(2_000_000_000 + rng.below(900_000_000)),
                operations_per_second: Some(10_000.0 + rng.below(6_000) as f64),
            })
            .collect();
        let share: Vec<f64> = (0..self.seconds).map(|_| 0.3 + rng.below(100) as f64 / 1e3).collect();
        let own = share.iter().map(|busy| busy - 0.1).collect();
        run.client_cpu = ClientCpu { share, own };
        run.checks.push(Check {
            name: "tpcc consistency 1".into(),
            ok: true,
            detail: "180 warehouses".into(),
        });
        run
    }
}
