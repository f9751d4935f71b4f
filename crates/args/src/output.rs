//! Where a document goes: to standard output, to a file, or nowhere.

use std::path::PathBuf;

use plimsoll_page::file::{check_writable, write_whole};
use plimsoll_page::terminal::say;
use serde::Serialize;

use crate::Refusal;

/// Where the JSON document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonOutput {
    /// Nowhere.
    None,
    /// To standard output, and nothing else with it.
    Stdout,
    /// To a file.
    File(PathBuf),
}

/// Where `--json`, `--json -` and `--json FILE` write. The file is tried.
pub fn json_output(flag: Option<&Option<PathBuf>>) -> Result<JsonOutput, Refusal> {
    match flag {
        None => Ok(JsonOutput::None),
        Some(None) => Ok(JsonOutput::Stdout),
        Some(Some(file)) if file.as_os_str() == "-" => Ok(JsonOutput::Stdout),
        Some(Some(file)) => {
            check_writable(file)?;
            Ok(JsonOutput::File(file.clone()))
        }
    }
}

/// Writes a JSON document where it was asked for, and to standard output what people read unless
/// the document goes there.
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
    Ok(say(&said)?)
}
