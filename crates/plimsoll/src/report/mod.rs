//! What a benchmark shows while it runs and leaves behind when it is done.
//!
//! * [`model`]: the document, which is also the JSON that scripts read;
//! * [`table`]: the same for a terminal;
//! * [`html`] and [`charts`]: the same as one self-contained page;
//! * [`pieces`]: how transactions are cut, for the page and the document;
//! * [`progress`]: what the line that moves meanwhile says of loading and running.
//!
//! What pages, charts and tables are made of is [`plimsoll_page`].
//!
//! Standard output belongs to the result: the final table, or with `--json` and no file the document and
//! nothing else. Everything else goes to standard error.

pub mod charts;
pub mod html;
pub mod model;
pub mod pieces;
pub mod progress;
#[cfg(test)]
pub mod sample;
pub mod table;

use std::io::{self, Write};

use plimsoll_page::file::write_whole;
use serde::Serialize;

use crate::cli::plan::JsonOutput;

/// Writes a JSON document where it was asked for, and to standard output what people read unless the document goes there.
pub fn publish(
    output: &JsonOutput,
    document: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Box<dyn std::error::Error>> {
    let json = || serde_json::to_string_pretty(document).map(|text| text + "\n");
    if let JsonOutput::File(path) = output {
        write_whole(path, &json()?)?;
    }
    let said = if *output == JsonOutput::Stdout { json()? } else { text() };
    // A reader who has seen enough and closed the pipe is no error.
    let _ = io::stdout().write_all(said.as_bytes());
    Ok(())
}
