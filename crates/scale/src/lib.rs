//! `plimsoll sim scale` and `plimsoll calibrate`: how fast a cluster would be, and what that is
//! derived from.
//!
//! Predictions are made by [`predict`]; here they are asked for, shown, and held against the DST
//! paper and against this machine.

mod calibrate;
mod chart;
pub mod cli;
mod executor;
mod fit;
mod loopback;
pub mod machines;
mod oracle;
mod page;
pub mod predict;
mod show;
mod turns;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use plimsoll_args::JsonOutput;
use plimsoll_engine::machine;
use plimsoll_page::file;
use plimsoll_page::progress::Progress;
use plimsoll_page::terminal::{Terminal, say};
use serde_json::{Value, json};

use calibrate::Calibration;
use cli::{CalibratePlan, ScalePlan, Series, Target};
use predict::published::{At, IN_FLIGHT, Published, Quantity};
use predict::study::Load;
use predict::{Cluster, Prediction};

/// What was predicted of a series: by place, by scheme. Shorter than planned if it was interrupted.
pub struct Predicted<'a> {
    /// What was asked.
    pub series: &'a Series,
    /// What came of it.
    pub predictions: Vec<Vec<Prediction>>,
}

/// A published ratio, and ours.
pub struct Comparison {
    /// What the paper says.
    pub published: Published,
    /// What is predicted, from the least to the largest; nothing if no prediction that it needs is
    /// stationary.
    pub predicted: Option<(f64, f64)>,
}

impl Predicted<'_> {
    /// The prediction for a scheme at the n-th place.
    pub fn at(&self, place: usize, scheme: &str) -> Option<&Prediction> {
        let number = self.series.schemes.iter().position(|&known| known == scheme)?;
        self.predictions.get(place)?.get(number)
    }

    /// What it shows.
    pub fn shows(&self) -> &'static [Quantity] {
        self.series.figure.map_or(&[Quantity::Committed], |figure| figure.shows)
    }

    /// What a scheme has of something at the n-th place, if that is stationary.
    pub fn figure(&self, what: Quantity, place: usize, scheme: &str) -> Option<f64> {
        what.of(self.at(place, scheme).filter(|prediction| prediction.stationary)?)
    }

    /// How much more one scheme has of something than another, at the n-th place, if both are
    /// stationary.
    pub fn ratio(&self, what: Quantity, place: usize, of: &str, to: &str) -> Option<f64> {
        Some(self.figure(what, place, of)? / self.figure(what, place, to)?)
    }

    /// The most that a scheme has of something, at any place.
    fn peak(&self, what: Quantity, scheme: &str) -> Option<f64> {
        let places = 0..self.predictions.len();
        places.filter_map(|place| self.figure(what, place, scheme)).reduce(f64::max)
    }

    /// Whether it shows latency over throughput.
    pub fn is_curve(&self) -> bool {
        self.series.axis == IN_FLIGHT
    }

    /// The published ratios with ours.
    pub fn comparisons(&self) -> Vec<Comparison> {
        let published = self.series.figure.map_or(&[][..], |figure| figure.published);
        let compare = |published: &Published| {
            let Published { what, at, of, to, .. } = *published;
            let ratio = |place| self.ratio(what, place, of, to);
            let all = 0..self.predictions.len();
            let ratios: Vec<f64> = match at {
                At::Peak => {
                    self.peak(what, of).zip(self.peak(what, to)).map(|(of, to)| of / to).into_iter().collect()
                }
                At::All => all.filter_map(ratio).collect(),
                At::Place(at) => all.filter(|&place| self.series.at[place] == at).filter_map(ratio).collect(),
            };
            let least = ratios.iter().copied().reduce(f64::min);
            let predicted = least.zip(ratios.iter().copied().reduce(f64::max));
            Comparison { published: *published, predicted }
        };
        // What was interrupted says nothing of what is missing.
        let complete = self.predictions.len() == self.series.at.len();
        published.iter().map(compare).filter(|ours| complete || ours.predicted.is_some()).collect()
    }
}

/// Predicts what is planned.
pub fn scale(plan: &ScalePlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn std::error::Error>> {
    let progress = Progress::stderr(plan.quiet);
    let begin = Instant::now();
    let total: usize = plan.series.iter().map(|series| series.at.len() * series.schemes.len()).sum();
    let mut line = progress.line("predicting", total as u64);
    let mut made = 0u64;
    let mut all = Vec::new();
    for series in &plan.series {
        let mut predictions = Vec::new();
        for (at, configurations) in series.at.iter().zip(&series.configurations) {
            let mut row = Vec::new();
            for configuration in configurations {
                if interrupted.load(SeqCst) {
                    break;
                }
                let Cluster { protocol, scheme, .. } = configuration.cluster;
                line.show(made, || format!("{made}/{total} · {protocol}/{scheme} at {at} {}", series.axis));
                let prediction = configuration.predict(&series.model, &|| interrupted.load(SeqCst))?;
                if !interrupted.load(SeqCst) {
                    row.push(prediction);
                    made += 1;
                }
            }
            if row.len() == configurations.len() {
                predictions.push(row);
            }
        }
        all.push(Predicted { series, predictions });
    }
    drop(line);
    let seconds = begin.elapsed().as_secs_f64();
    let document = document(&all, seconds, interrupted.load(SeqCst));
    let text = || serde_json::to_string_pretty(&document).expect("a document of plain values") + "\n";
    match &plan.json {
        JsonOutput::Stdout => say(&text())?,
        JsonOutput::File(path) => file::write_whole(path, &text())?,
        JsonOutput::None => {}
    }
    if plan.json != JsonOutput::Stdout {
        all.iter().try_for_each(|predicted| say(&show::series(predicted, Terminal::stdout())))?;
    }
    if let Some(path) = &plan.report {
        file::write_whole(path, &page::render(&all, &document))?;
    }
    Ok(true)
}

fn document(all: &[Predicted], seconds: f64, interrupted: bool) -> Value {
    let series = all.iter().map(|predicted| {
        let series = predicted.series;
        let points = predicted.predictions.iter().enumerate().flat_map(|(place, row)| {
            row.iter().enumerate().map(move |(scheme, prediction)| point(series, place, scheme, prediction))
        });
        let comparisons = predicted.comparisons().into_iter().map(|Comparison { published, predicted }| {
            let at = match published.at {
                At::Place(at) => json!(at),
                At::All => Value::Null,
                At::Peak => json!("peak"),
            };
            json!({
                "what": published.what.name(), "at": at, "of": published.of, "to": published.to,
                "published": {"least": published.low, "largest": published.high},
                "predicted": predicted.map(|(least, largest)| json!({"least": least, "largest": largest})),
            })
        });
        json!({
            "title": series.title,
            "figure": series.figure.map(|figure| figure.number),
            "axis": series.axis,
            "model": series.model,
            "points": points.collect::<Vec<_>>(),
            "comparisons": comparisons.collect::<Vec<_>>(),
            "published_curves": series.figure.map_or(&[][..], |figure| figure.curves).iter().map(|curve| json!({
                "scheme": curve.scheme,
                "peak_tps": curve.peak,
                "tps_and_p50_us": curve.points,
            })).collect::<Vec<_>>(),
        })
    });
    json!({
        "plimsoll": env!("CARGO_PKG_VERSION"),
        "commit": machine::COMMIT,
        "date": machine::utc_now(),
        "command": machine::command_line(),
        "seconds": seconds,
        "interrupted": interrupted,
        "series": series.collect::<Vec<_>>(),
    })
}

fn point(series: &Series, place: usize, scheme: usize, prediction: &Prediction) -> Value {
    let configuration = &series.configurations[place][scheme];
    let cluster = &configuration.cluster;
    let committed = prediction.committed.max(1) as f64;
    let of_class =
        |median: Quantity, p99: Quantity| json!({"p50": median.of(prediction), "p99": p99.of(prediction)});
    json!({
        "at": series.at[place],
        "workload": configuration.load.name(),
        "spread": matches!(configuration.load, Load::Tpcc { spread: Some(_), .. }),
        "protocol": cluster.protocol,
        "scheme": cluster.scheme,
        "serializable": cluster.scheme != "rc",
        "nodes": cluster.nodes,
        "shards": cluster.shards(),
        "concurrency": cluster.concurrency,
        "rows_per_shard": configuration.rows(),
        "virtual_seconds": prediction.seconds,
        "committed": prediction.committed,
        "stationary": prediction.stationary,
        "throughput_tps": prediction.throughput(),
        "abort_share": prediction.abort_rate(),
        "read_only_aborts": prediction.read_only_aborts,
        "transactions": prediction.latencies.iter().zip(&prediction.aborts_by).map(|((name, latencies), aborts)| {
            json!({
                "name": name,
                "committed": latencies.len(),
                "throughput_tps": prediction.throughput_of(name),
                "aborts": aborts,
                "p50_us": f64::from(prediction.latency_of_ns(name, 0.5)) / 1e3,
            })
        }).collect::<Vec<_>>(),
        "distributed_share": prediction.distributed as f64 / committed,
        "latency_us": {
            "p50": f64::from(prediction.latency_ns(0.5)) / 1e3,
            "p90": f64::from(prediction.latency_ns(0.9)) / 1e3,
            "p99": f64::from(prediction.latency_ns(0.99)) / 1e3,
        },
        "read_write_latency_us": of_class(Quantity::ReadWriteMedian, Quantity::ReadWriteP99),
        "read_only_latency_us": of_class(Quantity::ReadOnlyMedian, Quantity::ReadOnlyP99),
        "cores_busy": prediction.busy,
        "oracle_busy": prediction.oracle_busy,
        "messages_per_transaction": prediction.messages as f64 / committed,
        "bytes_per_transaction": prediction.bytes as f64 / committed,
        "work_per_transaction": prediction.done.share(committed),
    })
}

/// Measures what is planned. Returns true: an error of a prediction is a figure, not a failure.
pub fn calibrate(plan: &CalibratePlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn std::error::Error>> {
    let calibration = Calibration { time: plan.time, progress: Progress::stderr(plan.quiet), interrupted };
    let (model, proofs, measured) = match &plan.target {
        Target::Prove(model) => {
            let (proofs, measured) = calibration.prove(model)?;
            ((**model).clone(), proofs, measured)
        }
        Target::Write(path) => {
            let (model, proofs, measured) = calibration.model(plan.proof)?;
            file::write_whole(path, &(serde_json::to_string_pretty(&model)? + "\n"))?;
            (model, proofs, measured)
        }
    };
    let document = json!({
        "plimsoll": env!("CARGO_PKG_VERSION"),
        "commit": machine::COMMIT,
        "machine": machine::describe(),
        "model": model,
        "proofs": proofs,
        "measured": measured,
        "interrupted": interrupted.load(SeqCst),
    });
    let text = || serde_json::to_string_pretty(&document).expect("a document of plain values") + "\n";
    match &plan.json {
        JsonOutput::Stdout => say(&text())?,
        JsonOutput::File(path) => file::write_whole(path, &text())?,
        JsonOutput::None => {}
    }
    if plan.json != JsonOutput::Stdout {
        if let Target::Write(path) = &plan.target {
            say(&show::model(&model, path))?;
        }
        say(&show::proofs(&proofs, Terminal::stdout()))?;
    }
    Ok(true)
}
