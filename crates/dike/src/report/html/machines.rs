//! The sections about machines: what was done to them, step by step, and what they did over time.

use plimsoll_page::html::{escape, section, table};
use plimsoll_page::svg;

use super::Shown;
use super::figures::bands;
use crate::collect::sample::{ProcessSample, Reading, Sample};
use crate::control::SECOND_NS;
use crate::metrics::document::Run;
use crate::report::charts::over_time::{self, Line};
use crate::report::units;

const MIB: f64 = (1 << 20) as f64;

/// A figure of a host in a sample; nothing if it is not known.
type OfHost = fn(&Sample) -> Option<f64>;
/// The same of a process.
type OfProcess = fn(&ProcessSample, f64) -> Option<f64>;

const HOSTS: [(&str, OfHost); 4] = [
    ("busy processors, %", |sample| sample.cpu.map(|cpu| 100.0 * (1.0 - cpu.idle - cpu.iowait))),
    ("used memory, MiB", |sample| sample.memory.map(|memory| memory.used_bytes as f64 / MIB)),
    ("disks read and written, MiB/s", |sample| {
        let bytes = sample.disks.iter().map(|disk| disk.read_bytes + disk.written_bytes).sum();
        (!sample.disks.is_empty()).then(|| mib_per_second(bytes, sample))
    }),
    ("network received and sent, MiB/s", |sample| {
        let bytes = sample.interfaces.iter().map(|of| of.received_bytes + of.sent_bytes).sum();
        (!sample.interfaces.is_empty()).then(|| mib_per_second(bytes, sample))
    }),
];

const PROCESSES: [(&str, OfProcess); 3] = [
    ("processes: busy cores", |process, _| Some(process.cores)),
    ("processes: memory, MiB", |process, _| Some(process.memory_bytes as f64 / MIB)),
    ("processes: disks read and written, MiB/s", |process, seconds| {
        let bytes = process.read_bytes.zip(process.written_bytes).map(|(read, written)| read + written);
        bytes.map(|bytes| bytes as f64 / MIB / seconds)
    }),
];

fn seconds_of(sample: &Sample) -> f64 {
    sample.interval_ns.max(1) as f64 / SECOND_NS as f64
}

fn mib_per_second(bytes: u64, sample: &Sample) -> f64 {
    bytes as f64 / MIB / seconds_of(sample)
}

/// A host of a run.
struct Host<'a> {
    name: &'a str,
    /// Until when everything is known, or said to be unknown.
    last_ns: u64,
    pieces: Vec<Piece<'a>>,
}

/// A sample and the time that it is for: since the reading before.
struct Piece<'a> {
    time_ns: std::ops::Range<u64>,
    sample: &'a Sample,
}

impl Host<'_> {
    /// A figure by second; no number where nothing is known.
    fn by_second(&self, seconds: u64, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        let at = |second: u64| {
            let middle_ns = second * SECOND_NS + SECOND_NS / 2;
            let from = self.pieces.partition_point(|piece| piece.time_ns.end <= middle_ns);
            let piece = self.pieces.get(from).filter(|piece| piece.time_ns.contains(&middle_ns))?;
            figure(piece.sample)
        };
        (0..seconds).map(|second| at(second).unwrap_or(f64::NAN)).collect()
    }
}

/// The hosts of a run, in the order in which they were heard of.
fn hosts(run: &Run) -> Vec<Host<'_>> {
    let mut hosts: Vec<Host<'_>> = Vec::new();
    for reading in &run.readings {
        let at = hosts.iter().position(|host| host.name == reading.host()).unwrap_or_else(|| {
            hosts.push(Host { name: reading.host(), last_ns: 0, pieces: Vec::new() });
            hosts.len() - 1
        });
        let host = &mut hosts[at];
        if let Reading::Sample(sample) = reading {
            host.pieces.push(Piece { time_ns: host.last_ns..sample.at_ns, sample });
        }
        host.last_ns = reading.at_ns();
    }
    hosts
}

/// What machines and processes did over time.
pub fn machines(shown: &[Shown<'_>]) -> String {
    let mut content = String::new();
    for one in shown {
        let charts = charts(one);
        if shown.len() > 1 && !charts.is_empty() {
            content.push_str(&format!("<h3>{}</h3>\n", escape(one.label())));
        }
        content.push_str(&charts);
    }
    if content.is_empty() {
        return String::new();
    }
    let note = "What the machines did, all processes included, and the processes that the configuration names. A line is \
                interrupted where nothing is known.";
    section("Machines", note, &content)
}

fn charts(one: &Shown<'_>) -> String {
    let run = one.middle;
    let hosts = hosts(run);
    let bands = bands(std::slice::from_ref(one));
    let (mut html, mut rows) = (String::new(), Vec::new());
    let mut chart = |title: &str, named: Vec<(String, Vec<f64>)>| {
        let named: Vec<_> = named.into_iter().filter(|(_, of)| of.iter().any(|of| !of.is_nan())).collect();
        if named.is_empty() {
            return;
        }
        let line = |(series, (name, values)): (usize, &(String, Vec<f64>))| Line {
            name: format!("{name}: {title}"),
            series: Some(series),
            values: values.clone(),
            faint: false,
        };
        let lines: Vec<Line> = named.iter().enumerate().map(line).collect();
        let svg = over_time::lines(title, &lines, &bands, 110);
        let legend = svg::legend(named.iter().enumerate().map(|(i, (name, _))| (name.as_str(), Some(i))));
        html.push_str(&format!("<figure><figcaption>{}</figcaption>{svg}{legend}</figure>\n", escape(title)));
        for (name, values) in &named {
            let known: Vec<f64> = values.iter().copied().filter(|of| !of.is_nan()).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let most = known.iter().copied().fold(0.0, f64::max);
            let say = |of: f64| units::value(of);
            rows.push(vec![escape(name), escape(title), say(mean), say(most)]);
        }
    };
    for (title, figure) in HOSTS {
        let of = |host: &Host<'_>| (host.name.to_owned(), host.by_second(run.seconds, figure));
        chart(title, hosts.iter().map(of).collect());
    }
    let mut names: Vec<&str> = Vec::new();
    let samples = hosts.iter().flat_map(|host| &host.pieces).map(|piece| piece.sample);
    for process in samples.flat_map(|sample| &sample.processes) {
        if !names.contains(&process.name.as_str()) {
            names.push(&process.name);
        }
    }
    for (title, figure) in PROCESSES {
        let of = |name: &&str| {
            let figure = |sample: &Sample| {
                let process = sample.processes.iter().find(|process| process.name == **name)?;
                figure(process, seconds_of(sample))
            };
            // They are all on one host.
            let mut values = hosts.iter().map(|host| host.by_second(run.seconds, figure));
            let known = values.find(|values| values.iter().any(|value| !value.is_nan()));
            ((*name).to_owned(), known.unwrap_or_default())
        };
        chart(title, names.iter().map(of).collect());
    }
    if html.is_empty() {
        return html;
    }
    let table = table("", &["who", "what", "mean", "most"], &rows);
    format!("<div class=\"grid\">{html}</div>\n<details><summary>In figures</summary>{table}</details>\n")
}

/// Every step of every fault, as the journal has it.
pub fn journal(shown: &[Shown<'_>]) -> String {
    let mut rows = Vec::new();
    for one in shown {
        for entry in &one.middle.journal.entries {
            let said = if entry.detail.is_empty() { String::new() } else { format!(": {}", entry.detail) };
            let what = format!("{} at {}", entry.fault, entry.place);
            let what = if shown.len() == 1 { what } else { format!("{}: {what}", one.label()) };
            let done = entry.phase.say() + &said;
            rows.push(vec![escape(&what), format!("{:.3} s", entry.at_ns as f64 / 1e9), escape(&done)]);
        }
    }
    match rows.is_empty() {
        true => String::new(),
        false => {
            let table = table("words", &["fault", "when", "step"], &rows);
            format!("<details><summary>Every step of every fault</summary>{table}</details>\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::sample::{Gap, Memory};

    #[test]
    fn a_sample_counts_for_its_seconds_and_a_gap_for_none() {
        let sample = |at_ns, used_bytes| {
            Reading::Sample(Sample {
                host: "n1".to_owned(),
                at_ns,
                interval_ns: SECOND_NS,
                cpu: None,
                memory: Some(Memory { used_bytes, total_bytes: 1 << 30 }),
                disks: Vec::new(),
                interfaces: Vec::new(),
                processes: Vec::new(),
            })
        };
        let gap =
            Gap { host: "n1".to_owned(), from_ns: 2_000_000_000, to_ns: 4_000_000_000, why: String::new() };
        let readings =
            vec![sample(2_000_000_000, 1 << 20), Reading::Gap(gap), sample(5_100_000_000, 3 << 20)];
        let run = Run { seconds: 6, readings, ..Run::default() };
        let hosts = hosts(&run);
        let memory = hosts[0].by_second(run.seconds, HOSTS[1].1);
        assert_eq!(memory[..2], [1.0, 1.0]);
        assert!(memory[2].is_nan() && memory[3].is_nan());
        assert_eq!(memory[4], 3.0);
        assert!(memory[5].is_nan(), "the end of the run is not known");
        assert!(hosts[0].by_second(run.seconds, HOSTS[0].1).iter().all(|value| value.is_nan()));
    }
}
