//! A terminal: how wide it is, and whether it has colours.
//!
//! Colour marks only what went wrong or must not be overlooked, and only on a terminal without
//! `NO_COLOR`. Without a terminal the width is 100, so that a captured result is the same
//! everywhere.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Where a table is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns of text.
    pub width: usize,
    /// Whether escape sequences for colour are understood and wanted.
    pub colour: bool,
}

impl Terminal {
    /// Standard output as it is.
    pub fn stdout() -> Terminal {
        if !std::io::stdout().is_terminal() {
            return Terminal { width: 100, colour: false };
        }
        let width = console::Term::stdout().size_checked().map_or(100, |(_, columns)| usize::from(columns));
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Terminal { width: width.max(40), colour: !set("NO_COLOR") && !dumb }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Makes a heading of it.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// As of something that went wrong.
    pub fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// As of something that holds.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }
}

/// Why standard output does not have what it was to have.
#[derive(Debug)]
pub struct Unsaid(io::Error);

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to standard output, and its result is lost: {}", self.0)
    }
}

impl std::error::Error for Unsaid {}

/// Writes a text to standard output. A reader that has seen enough and closed the pipe is no error.
pub fn say(text: &str) -> Result<(), Unsaid> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Unsaid(error)),
        _ => Ok(()),
    }
}

/// Breaks text between words. `indent` columns are taken: the first line's by whatever precedes the
/// text, the others' by spaces. Words longer than a line stay whole.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    fill(text.split_whitespace(), width, indent, indent, "")
}

/// Puts parts one after another, with a space between two, into lines of at most `width` columns; a
/// longer part stays whole. `column` columns of the first line are taken. The other lines begin
/// with `indent` spaces, and all but the last end with `end`.
pub(crate) fn fill<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    width: usize,
    mut column: usize,
    indent: usize,
    end: &str,
) -> String {
    let room = width - end.chars().count();
    let mut lines = String::new();
    for part in parts {
        let length = part.chars().count();
        if lines.is_empty() {
            column += length;
        } else if column + 1 + length > room {
            lines.push_str(end);
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            column = indent + length;
        } else {
            lines.push(' ');
            column += 1 + length;
        }
        lines.push_str(part);
    }
    lines.push('\n');
    lines
}
