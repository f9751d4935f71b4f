//! Predictions in the terminal.

use std::path::Path;

use plimsoll_page::table::Columns;
use plimsoll_page::terminal::{Terminal, wrap};
use plimsoll_page::units;

use super::calibrate::Proof;
use super::{Comparison, Predicted};
use crate::predict::Prediction;
use crate::predict::model::CostModel;
use crate::predict::published::{At, Quantity};

/// What stands for the ratio of a prediction that a longer window would change.
const NOT_STATIONARY: &str = "not stationary";
/// An oracle that is busy more than this much of the time is what limits the cluster.
const SATURATED: f64 = 0.95;

/// One series: a table, and what the paper says.
pub fn series(predicted: &Predicted, terminal: Terminal) -> String {
    let series = predicted.series;
    let mut text = terminal.bold(wrap(&series.title, terminal.width, 0).trim_end()) + "\n\n";
    let reference = series.schemes[0];
    let [first, others @ ..] = predicted.shows() else { return text };
    let to_reference = format!("to {reference}");
    let mut titles = vec![(series.axis, 0), ("scheme", 0), (first.name(), 0), (to_reference.as_str(), 0)];
    titles.extend(others.iter().map(|what| (what.name(), 0)));
    titles.extend([
        ("per shard", 4),
        ("p50", 3),
        ("p99", 0),
        ("aborted", 0),
        ("cores busy", 2),
        ("oracle busy", 0),
        ("messages", 5),
        ("bytes", 6),
    ]);
    let mut columns = Columns::new(&titles, false);
    for (place, row) in predicted.predictions.iter().enumerate() {
        for (number, (scheme, prediction)) in series.schemes.iter().zip(row).enumerate() {
            let shards = series.configurations[place][number].cluster.shards() as f64;
            let committed = prediction.committed.max(1) as f64;
            let at = if number == 0 { units::thousands(series.at[place]) } else { String::new() };
            let mut cells = vec![
                at,
                (*scheme).to_owned(),
                first.of(prediction).map_or_else(String::new, units::rate),
                match predicted.ratio(*first, place, scheme, reference) {
                    Some(ratio) => units::ratio(ratio),
                    None if !prediction.stationary => NOT_STATIONARY.to_owned(),
                    None => String::new(),
                },
            ];
            let figure = |what: &Quantity| what.of(prediction).map_or_else(String::new, units::three_digits);
            cells.extend(others.iter().map(figure));
            cells.extend([
                units::short(prediction.throughput() / shards),
                latency(prediction, 0.5),
                latency(prediction, 0.99),
                units::percent(prediction.abort_rate()),
                units::percent(prediction.busy),
                oracle(prediction),
                units::three_digits(prediction.messages as f64 / committed),
                units::three_digits(prediction.bytes as f64 / committed),
            ]);
            columns.push(cells);
        }
    }
    text.push_str(&columns.render(terminal.width));
    text.push('\n');
    let mut notes = String::new();
    if series.schemes.contains(&"rc") {
        notes.push_str("rc is not serializable, only a yardstick. ");
    }
    if predicted.predictions.iter().flatten().any(|prediction| prediction.oracle_busy > SATURATED) {
        notes.push_str("*: the oracle is saturated. ");
    }
    if predicted.predictions.iter().flatten().any(|prediction| !prediction.stationary) {
        notes.push_str(
            "Not stationary: in the longest window that was tried some transaction type's share of what ends was not yet its \
             share of the mix, or one half differed from the other; no ratio is made of it. ",
        );
    }
    notes.push_str("Messages and bytes are per committed transaction.");
    text.push_str(&wrap(&notes, terminal.width, 0));
    let comparisons = predicted.comparisons();
    if !comparisons.is_empty() {
        let mut columns =
            Columns::new(&[("ratio", 0), (series.axis, 0), ("published", 0), ("predicted", 0)], false);
        for comparison in &comparisons {
            columns.push(vec![
                name(comparison),
                place(comparison.published.at),
                between(comparison.published.low, comparison.published.high),
                ours(comparison),
            ]);
        }
        text.push('\n');
        text.push_str(&columns.render(terminal.width));
    }
    text + "\n"
}

fn latency(prediction: &Prediction, quantile: f64) -> String {
    units::duration_us(f64::from(prediction.latency_ns(quantile)) / 1e3)
}

fn oracle(prediction: &Prediction) -> String {
    match prediction.oracle_busy {
        busy if busy <= 0.0 => String::new(),
        busy if busy > SATURATED => format!("{}*", units::percent(busy.min(1.0))),
        busy => units::percent(busy),
    }
}

/// Of what to what, and in what if it is not all that is committed.
fn name(Comparison { published, .. }: &Comparison) -> String {
    let ratio = format!("{} / {}", published.of, published.to);
    match published.what {
        Quantity::Committed => ratio,
        what => format!("{}: {ratio}", what.name()),
    }
}

/// A ratio, or from where to where.
pub fn between(low: f64, high: f64) -> String {
    match (low, high) {
        (low, high) if high - low < 0.005 => units::three_digits(low),
        (low, high) if low <= 0.0 => format!("below {}", units::three_digits(high)),
        (low, high) => format!("{} to {}", units::three_digits(low), units::three_digits(high)),
    }
}

/// What one comparison says, for a page.
pub fn sentence(comparison: &Comparison, axis: &str) -> [String; 4] {
    [
        name(comparison),
        match comparison.published.at {
            At::All => format!("all {axis}"),
            At::Peak => "peaks".to_owned(),
            At::Place(at) => format!("{axis}: {}", units::thousands(at)),
        },
        between(comparison.published.low, comparison.published.high),
        ours(comparison),
    ]
}

/// Where a ratio is.
pub fn place(at: At) -> String {
    match at {
        At::All => "all".to_owned(),
        At::Peak => "peaks".to_owned(),
        At::Place(at) => units::thousands(at),
    }
}

/// The ratio that is predicted.
fn ours(comparison: &Comparison) -> String {
    comparison.predicted.map_or_else(|| NOT_STATIONARY.to_owned(), |(low, high)| between(low, high))
}

/// A model that was measured.
pub fn model(model: &CostModel, path: &Path) -> String {
    let ns = |ns: f64| format!("{} ns", units::three_digits(ns));
    let mut columns = Columns::new(
        &[
            ("workload", 0),
            ("lookup", 0),
            ("scanned row", 0),
            ("insert", 0),
            ("update", 0),
            ("mark", 0),
            ("pin", 0),
            ("lock", 0),
            ("crowded", 0),
        ],
        false,
    );
    for (name, access) in &model.access {
        columns.push(vec![
            name.clone(),
            ns(access.lookup_ns),
            ns(access.scanned_ns),
            ns(access.link_ns),
            ns(access.install_ns),
            ns(access.mark_ns),
            ns(access.pin_ns),
            ns(access.lock_ns),
            format!("× {}", units::three_digits(access.crowded)),
        ]);
    }
    format!(
        "{}\n\n{}\npass {}, poll {}, request {}, message {}, batch {}; over a socket: batch {}, one way {}\n\
         Written to {}: use it with `plimsoll sim scale --machine {}`.\n",
        model.machine,
        columns.render(100),
        ns(model.pass_ns),
        ns(model.poll_ns),
        ns(model.handled_ns),
        ns(model.message_ns),
        ns(model.batch_ns),
        ns(model.remote_batch_ns),
        units::duration_us(model.latency_ns as f64 / 1e3),
        path.display(),
        path.display()
    )
}

/// Predicted against measured.
pub fn proofs(proofs: &[Proof], terminal: Terminal) -> String {
    if proofs.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new(
        &[
            ("workload", 0),
            ("shards", 0),
            ("pair", 0),
            ("predicted/s", 0),
            ("measured/s", 0),
            ("error", 0),
            ("aborts predicted", 2),
            ("measured", 1),
        ],
        false,
    );
    for proof in proofs {
        columns.push(vec![
            proof.workload.to_owned(),
            proof.shards.to_string(),
            format!("{}/{}", proof.protocol, proof.scheme),
            units::rate(proof.predicted_tps),
            units::rate(proof.measured_tps),
            format!("{:+.1}%", 100.0 * proof.error()),
            units::percent(proof.predicted_aborts),
            units::percent(proof.measured_aborts),
        ]);
    }
    let mut errors: Vec<f64> = proofs.iter().map(|proof| proof.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|&&error| error <= 0.2).count();
    format!(
        "\n{}\n{}",
        columns.render(terminal.width),
        wrap(
            &format!(
                "Error of the predicted throughput: median {}, largest {}; {within} of {} within 20%.",
                units::percent(errors[errors.len() / 2]),
                units::percent(errors[errors.len() - 1]),
                errors.len()
            ),
            terminal.width,
            0
        )
    )
}
