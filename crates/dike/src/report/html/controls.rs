//! Intended against achieved: one small chart per control, and all of them in a table.

use plimsoll_page::html::{escape, section, table};
use plimsoll_page::svg;

use super::Shown;
use crate::control::track::Control;
use crate::report::charts::over_time::{self, Line};
use crate::report::units;

/// A deviation that is marked.
const FAR: f64 = 0.1;

/// All controls, in the order in which runs first name them.
pub fn intended_and_achieved(shown: &[Shown<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for control in shown.iter().flat_map(|one| &one.middle.controls) {
        if !names.contains(&control.name.as_str()) {
            names.push(&control.name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut figures = String::new();
    let mut rows = Vec::new();
    for name in names {
        let of: Vec<(&Shown<'_>, &Control)> = shown
            .iter()
            .filter_map(|one| {
                let control = one.middle.controls.iter().find(|control| control.name == name)?;
                Some((one, control))
            })
            .collect();
        // What is and was to be nothing is in the table.
        let mut values = of.iter().flat_map(|(_, control)| control.intended.iter().chain(&control.achieved));
        if values.any(|value| *value != 0.0) {
            figures.push_str(&figure(name, &of, shown.len()));
        }
        rows.extend(of.iter().filter_map(|(one, control)| row(one, control, shown.len())));
    }
    let legend = svg::legend(legend_of(shown));
    let mut headers = vec!["control", "intended", "achieved", "deviation", "worst second", "unit"];
    if shown.len() > 1 {
        headers.insert(1, "run");
    }
    let content = format!("<div class=\"grid\">{figures}</div>\n{legend}{}", table("", &headers, &rows));
    let note = "What the load was meant to be and what it was. Deviations are of the measured time as a whole and of \
                its worst second, where chance and changes of what is intended show most.";
    section("Intended and achieved", note, &content)
}

fn legend_of<'a>(shown: &'a [Shown<'_>]) -> Vec<(&'a str, Option<usize>)> {
    let mut entries = vec![("intended", None)];
    match shown {
        [only] => entries.push(("achieved", Some(only.series))),
        several => entries.extend(several.iter().map(|one| (one.label(), Some(one.series)))),
    }
    entries
}

fn figure(name: &str, of: &[(&Shown<'_>, &Control)], labels: usize) -> String {
    let Some((_, first)) = of.first() else { return String::new() };
    // A second in which nothing was observed interrupts the line: it is neither much nor little.
    let observed = |values: &[f64], control: &Control, one: &Shown<'_>| -> Vec<f64> {
        let known = |(value, weight): (&f64, &f64)| if *weight > 0.0 { *value } else { f64::NAN };
        values.iter().zip(&control.weight).map(known).take(one.middle.seconds as usize).collect()
    };
    let mut lines: Vec<Line> = of
        .iter()
        .map(|(one, control)| Line {
            name: if labels == 1 { "achieved".to_owned() } else { one.label().to_owned() },
            series: Some(one.series),
            values: observed(&control.achieved, control, one),
            faint: false,
        })
        .collect();
    // What was intended may differ between series: then each has its own.
    let mut intended: Vec<Vec<f64>> = Vec::new();
    for (one, control) in of {
        let values = observed(&control.intended, control, one);
        let same = |known: &Vec<f64>| {
            known.len() == values.len() && known.iter().zip(&values).all(|(a, b)| a.total_cmp(b).is_eq())
        };
        if !intended.iter().any(same) {
            intended.push(values);
        }
    }
    lines.extend(intended.into_iter().map(|values| Line {
        name: "intended".to_owned(),
        series: None,
        values,
        faint: false,
    }));
    let chart = over_time::lines(name, &lines, &[], 110);
    format!(
        "<figure><figcaption>{} <span class=\"soft\">{}</span></figcaption>{chart}</figure>\n",
        escape(name),
        escape(&first.unit)
    )
}

fn row(one: &Shown<'_>, control: &Control, labels: usize) -> Option<Vec<String>> {
    let measured = one.middle.measured();
    let overall = control.overall(measured.clone())?;
    let deviation = overall.deviation();
    let said = match overall.intended {
        0.0 => units::value(overall.achieved),
        _ => units::deviation(deviation),
    };
    let said = if deviation.abs() > FAR { format!("<span class=\"fail\">{said}</span>") } else { said };
    let mut cells = vec![
        escape(&control.name),
        units::value(overall.intended),
        units::value(overall.achieved),
        said,
        units::percent(control.worst_deviation(measured)),
        escape(&control.unit),
    ];
    if labels > 1 {
        cells.insert(1, escape(one.label()));
    }
    Some(cells)
}
