//! Patterns of regular expressions: flags, and PostgreSQL's escapes in those of the library.

use fancy_regex::{Regex, RegexBuilder};

use crate::functions::refuse;
use crate::{SqlError, SqlState};

/// What flags say of a regular expression.
#[derive(Clone, Default)]
pub struct Flags {
    /// `i`: upper and lower case are the same.
    pub fold: bool,
    /// `g`: all matches, not only the first.
    pub global: bool,
    /// `q`: the pattern is a plain text.
    pub literal: bool,
    /// `x`: blanks and comments in the pattern mean nothing.
    pub expanded: bool,
    /// `n`: a newline is no character of `.`, and `^` and `$` match at lines.
    pub lines: bool,
}

/// The flags of their letters.
pub fn flags_of(text: &str) -> Result<Flags, SqlError> {
    let mut flags = Flags::default();
    for c in text.chars() {
        match c {
            'g' => flags.global = true,
            'i' => flags.fold = true,
            'c' => flags.fold = false,
            'n' | 'm' => flags.lines = true,
            's' => flags.lines = false,
            'q' => flags.literal = true,
            'x' => flags.expanded = true,
            't' | 'e' | 'b' | 'p' | 'w' => {}
            _ => {
                return refuse(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{c}\""),
                );
            }
        }
    }
    Ok(flags)
}

/// Instructions of a compiled pattern that backtracks at most.
const INSTRUCTIONS_MAX: usize = 1 << 14;

/// Bytes that a compiled pattern takes at most.
const SIZE_MAX: usize = 256 << 10;

/// Compiles a pattern that may take so many steps of backtracking for a match.
pub fn compile(pattern: &str, flags: &Flags, steps: usize) -> Result<Regex, SqlError> {
    let invalid = |what: &str| {
        SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
    };
    let (mut prefix, mut body) = (String::new(), pattern);
    if let Some(rest) = body.strip_prefix("***=") {
        let literal = Flags { literal: true, fold: flags.fold, ..Flags::default() };
        return compile(rest, &literal, steps);
    }
    body = body.strip_prefix("***:").unwrap_or(body);
    if flags.literal {
        let escaped: String = body
            .chars()
            .flat_map(|c| if c.is_ascii_punctuation() { vec!['\\', c] } else { vec![c] })
            .collect();
        return build(&escaped, flags, steps).map_err(|_| invalid("invalid escape \\ sequence"));
    }
    if let Some(rest) = body.strip_prefix("(?")
        && let Some((letters, rest)) = rest.split_once(')')
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        if letters.contains('i') {
            prefix.push_str("(?i)");
        }
        body = rest;
    }
    let translated = prefix + &translate(body);
    build(&translated, flags, steps).map_err(|error| {
        let text = error.to_string();
        invalid(
            if text.contains("paren") || text.contains("unclosed group") || text.contains("unopened group") {
                "parentheses () not balanced"
            } else if text.contains("class") || text.contains("bracket") {
                "brackets [] not balanced"
            } else if text.contains("epetition") || text.contains("repeat") || text.contains("arget") {
                "quantifier operand invalid"
            } else if text.contains("scape") || text.contains("backslash") {
                "invalid escape \\ sequence"
            } else if text.contains("ackref") || text.contains("ack ref") {
                "invalid backreference number"
            } else {
                "invalid character range"
            },
        )
    })
}

fn build(pattern: &str, flags: &Flags, steps: usize) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(pattern)
        .case_insensitive(flags.fold)
        .multi_line(flags.lines)
        .dot_matches_new_line(!flags.lines)
        .ignore_whitespace(flags.expanded)
        .backtrack_limit(steps)
        .delegate_size_limit(SIZE_MAX)
        .max_prog_size(INSTRUCTIONS_MAX)
        .build()
}

/// PostgreSQL's escapes in those of the library.
fn translate(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('m') => out.push_str(r"\b(?=\w)"),
                Some('M') => out.push_str(r"\b(?<=\w)"),
                Some('y') => out.push_str(r"\b"),
                Some('Y') => out.push_str(r"\B"),
                Some('A') => out.push_str(r"\A"),
                Some('Z') => out.push_str(r"\z"),
                Some('B') => out.push_str(r"\\"),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' if in_class && !matches!(chars.peek(), Some(':' | '.' | '=')) => out.push_str(r"\["),
            '[' if in_class => {
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' => {
                match chars.as_str_prefix() {
                    Some("[:<:]]") => {
                        out.push_str(r"\b(?=\w)");
                        chars.by_ref().take(6).for_each(drop);
                        continue;
                    }
                    Some("[:>:]]") => {
                        out.push_str(r"\b(?<=\w)");
                        chars.by_ref().take(6).for_each(drop);
                        continue;
                    }
                    _ => {}
                }
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '{' if !in_class && !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str(r"\{"),
            '$' if !in_class => out.push('$'),
            _ => out.push(c),
        }
    }
    out
}

/// The next six characters, if they are one of the two word boundaries that look like classes.
trait Ahead {
    fn as_str_prefix(&self) -> Option<&'static str>;
}

impl Ahead for std::iter::Peekable<std::str::Chars<'_>> {
    fn as_str_prefix(&self) -> Option<&'static str> {
        let ahead: String = self.clone().take(6).collect();
        ["[:<:]]", "[:>:]]"].into_iter().find(|known| *known == ahead)
    }
}
