//! What a benchmark shows while it runs and leaves behind when it is done.
//!
//! * [`model`]: the document, which is also the JSON that scripts read;
//! * [`table`]: the same for a terminal;
//! * [`html`] and [`charts`]: the same as one self-contained page;
//! * [`points`]: what each pair reaches at each load, for the three of them;
//! * [`pieces`]: how transactions are cut, for the page and the document;
//! * [`progress`]: what the line that moves meanwhile says of loading and running.
//!
//! What pages, charts and tables are made of is [`plimsoll_page`].
//!
//! Standard output belongs to the result: the final table, or with `--json` and no file the
//! document and nothing else. Everything else goes to standard error.

pub mod charts;
pub mod html;
pub mod model;
pub mod pieces;
pub mod points;
pub mod progress;
#[cfg(test)]
pub mod sample;
pub mod table;
