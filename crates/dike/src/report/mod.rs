//! What people look at during and after a run.
//!
//! * [`live`]: the line that moves meanwhile;
//! * [`table`]: the result on a terminal;
//! * [`html`] and [`charts`]: the result as one page that needs nothing but a browser;
//! * [`units`]: figures as people read them.
//!
//! All are functions of [`crate::metrics::Document`] or, while the run goes on, of its counters.

pub mod charts;
pub mod html;
pub mod live;
pub mod table;
pub mod units;
