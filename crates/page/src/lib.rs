//! What every result is shown with: on a page, on a terminal, and on the line that moves meanwhile.
//!
//! * [`units`]: figures as people read them;
//! * [`html`]: a page that needs nothing but a browser, and what pages are made of;
//! * [`svg`]: charts, and what charts are made of;
//! * [`curves`]: latency over throughput;
//! * [`table`]: tables for a terminal, and [`terminal`]: how wide it is;
//! * [`help`]: what help ends with, examples and lists;
//! * [`progress`]: the line that moves while something long goes on;
//! * [`mod@file`]: writing a file wholly or not at all.
//!
//! A leaf: it knows neither what was measured nor why. What only one report shows is drawn there,
//! with the parts from here; its rules of style come after those of every page.

pub mod curves;
pub mod file;
pub mod help;
pub mod html;
pub mod progress;
pub mod svg;
pub mod table;
pub mod terminal;
pub mod units;
