//! What help ends with: examples, and lists of names with their meaning.
//!
//! The parser of command lines breaks a line that is wider than the terminal between any two words,
//! and goes on at its left edge; a command that was broken this way cannot be copied. So this
//! module breaks lines itself, to the 80 columns that every terminal has. Commands break before a
//! flag, the way a shell reads them.

use crate::terminal::{fill, wrap};

const WIDTH: usize = 80;

/// Commands, each with what it is for, or nothing where it speaks for itself.
pub fn examples(list: &[(&str, &str)]) -> String {
    let mut text = "Examples:\n".to_owned();
    for (command, purpose) in list {
        text.push_str(&broken(command));
        if !purpose.is_empty() {
            text.push_str("      ");
            text.push_str(&wrap(purpose, WIDTH, 6));
        }
    }
    text
}

/// Names with their meaning, in columns; the second begins at `indent`.
pub fn meanings<'a>(list: impl IntoIterator<Item = (&'a str, &'a str)>, indent: usize) -> String {
    let entry = |(name, meaning)| {
        let left = format!("  {name}");
        format!("{left:<width$}{}", wrap(meaning, WIDTH, indent), width = indent)
    };
    list.into_iter().map(entry).collect()
}

/// A command in as few lines as it needs: all but the last end with a backslash, and all but the
/// first begin with a flag, or with where the output goes.
fn broken(command: &str) -> String {
    let opens = |word: &str| word.starts_with("--") || word.starts_with('>');
    let mut parts: Vec<String> = Vec::new();
    for word in command.split(' ') {
        match parts.last_mut() {
            Some(part) if !opens(word) => *part += &format!(" {word}"),
            _ => parts.push(word.to_owned()),
        }
    }
    format!("  {}", fill(parts.iter().map(String::as_str), WIDTH, 2, 4, " \\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_breaks_before_flags_as_a_shell_reads_it() {
        let flags =
            "--one 1 --two-of-them 2 --three-and-more 3 --four-is-long 4 --five-is-it 5 --six 6 > file";
        let text = examples(&[(&format!("plimsoll {flags}"), "What it is for.")]);
        assert_eq!(
            text,
            "Examples:\n  plimsoll --one 1 --two-of-them 2 --three-and-more 3 --four-is-long 4 \\\n    \
             --five-is-it 5 --six 6 > file\n      What it is for.\n"
        );
    }

    #[test]
    fn a_meaning_stays_in_its_column() {
        let text = meanings([("name", &*"word ".repeat(16)), ("b", "short")], 10);
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("          word")));
    }
}
