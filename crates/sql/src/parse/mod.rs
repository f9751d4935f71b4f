//! From text to parse trees.
//!
//! The grammar is PostgreSQL's own, compiled from its sources by the crate `pg_query`: what it
//! accepts and what it refuses is what PostgreSQL does, message and position included, and it
//! answers hostile text with an error. Its tree comes out of C as bytes of protobuf. Two things
//! stand between them and a caller:
//!
//! * The crate's own `parse` drops where an error is, so `grammar` calls the C function itself.
//! * A tree is decoded by recursion. The decoder's limit of 100 levels would refuse a sum of fifty
//!   terms, and no limit would let a text of a few kilobytes overflow the stack, which ends the
//!   process. So `depth` counts the levels of the bytes in a loop, and the decoder then runs on a
//!   stack that suffices, or not at all (54001).
//!
//! Every statement keeps where it stands in the text. Positions of errors count characters from 1
//! over the whole text, not over the statement, as PostgreSQL's do.
#![cfg_attr(
    not(test),
    deny(
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

mod depth;
mod grammar;
pub mod literals;

use std::ops::Range;
use std::rc::Rc;

use pg_query::protobuf::{Node, ParseResult, Token};
use prost::Message;

use crate::{SqlError, SqlState};

/// Levels of a tree that are decoded at most, in messages. A level of an expression is two of them,
/// one of a subquery four.
const LEVELS_MAX: usize = 4_000;

/// Bytes of stack that decoding takes per level, rounded up. Without optimization each level has a
/// place for every kind of node.
const STACK_BYTES_PER_LEVEL: usize = if cfg!(debug_assertions) { 36 << 10 } else { 4 << 10 };

/// Bytes of stack that decoding takes below its first level.
const STACK_BYTES: usize = 64 << 10;

/// A statement of a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Its tree, which is shared: to copy it takes a stack as deep as it is. Locations in it are
    /// bytes of the whole text.
    pub node: Rc<Node>,
    /// Which bytes of the text it is, without the semicolon.
    pub text: Range<usize>,
}

/// The statements of a text with where each stands. An error carries its position in characters.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    if text.contains('\0') {
        let error = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, error));
    }
    let bytes = grammar::parse(text)?;
    let levels = depth::levels(&bytes);
    if levels > LEVELS_MAX {
        return Err(too_deep());
    }
    let stack_bytes = STACK_BYTES + levels * STACK_BYTES_PER_LEVEL;
    let tree = stacker::maybe_grow(stack_bytes, stack_bytes, || ParseResult::decode(bytes.as_slice()));
    // The one thing that the decoder can object to is text that is not UTF-8, made by escapes.
    let tree = tree.map_err(|_| {
        let error = "invalid byte sequence for encoding \"UTF8\"";
        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, error)
    })?;
    let statements = tree.stmts.into_iter().filter_map(|raw| {
        let begin = usize::try_from(raw.stmt_location).unwrap_or(0);
        // The last statement has no length if nothing ends it.
        let end = match usize::try_from(raw.stmt_len) {
            Ok(length) if length > 0 => begin.saturating_add(length).min(text.len()),
            _ => text.len(),
        };
        Some(Statement { node: Rc::new(*raw.stmt?), text: begin..end.max(begin) })
    });
    Ok(statements.collect())
}

/// The first parameter in a part of a text: its number, and where it is in characters from 1.
pub fn parameter(text: &str, part: Range<usize>) -> Option<(u32, u32)> {
    let tokens = pg_query::scan(text).ok()?.tokens;
    tokens.iter().filter(|token| token.token() == Token::Param).find_map(|token| {
        let begin = usize::try_from(token.start).ok().filter(|begin| part.contains(begin))?;
        let name = text.get(begin..usize::try_from(token.end).ok()?)?;
        let position = text.get(..begin)?.chars().count() + 1;
        Some((name.strip_prefix('$')?.parse().ok()?, u32::try_from(position).ok()?))
    })
}

/// What a tree is refused with that nests too deeply, in PostgreSQL's words.
fn too_deep() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
}

#[cfg(test)]
mod tests {
    use pg_query::NodeEnum;

    use super::*;

    fn refused(text: &str) -> (String, String, Option<u32>) {
        let error = parse(text).expect_err("refused");
        (error.state.as_str().to_owned(), error.message, error.position)
    }

    #[test]
    fn statements_know_where_they_stand() {
        let text = "select 1; /* é */ select 'é' ;;  values (1)";
        let statements = parse(text).expect("valid");
        let texts: Vec<&str> = statements.iter().map(|it| text[it.text.clone()].trim()).collect();
        assert_eq!(texts, ["select 1", "select 'é'", "values (1)"]);
        assert!(statements.iter().all(|it| matches!(it.node.node, Some(NodeEnum::SelectStmt(_)))));
        assert_eq!(parse(" -- nothing").expect("valid"), []);
    }

    #[test]
    fn errors_are_where_postgresql_says() {
        let syntax = |message: &str, at| ("42601".to_owned(), message.to_owned(), Some(at));
        assert_eq!(refused("selec 1"), syntax("syntax error at or near \"selec\"", 1));
        assert_eq!(refused("select 'é' frm t x"), syntax("syntax error at or near \"t\"", 16));
        assert_eq!(refused("select (1"), syntax("syntax error at end of input", 10));
        assert_eq!(refused("select 1; sélect"), syntax("syntax error at or near \"sélect\"", 11));
        assert_eq!(refused("select 'abc"), syntax("unterminated quoted string at or near \"'abc\"", 8));
        assert_eq!(refused("select 1 /* x"), syntax("unterminated /* comment at or near \"/* x\"", 10));
        assert_eq!(refused("select 1 limit 1, 2").1, "LIMIT #,# syntax is not supported");
    }

    #[test]
    fn parameters_are_found_where_they_are() {
        let text = "select 1; select 'é$7', $2 + $1";
        assert_eq!(parameter(text, 9..text.len()), Some((2, 25)));
        assert_eq!(parameter(text, 0..8), None);
    }

    #[test]
    fn errors_that_are_not_of_syntax_have_their_own_states() {
        assert_eq!(refused("select 1\0").0, "22021");
        assert_eq!(refused(r"select E'\xff'").0, "22021");
        assert_eq!(refused("create assertion a check (true)").0, "0A000");
        assert_eq!(refused(r"select U&'\zzzz'").0, "42601");
        assert_eq!(refused(r"select E'\uzzzz'").0, "22025");
    }

    /// Texts whose trees are deep, by how deep.
    fn deep(levels: usize) -> [String; 6] {
        [
            format!("select {}1", "1+".repeat(levels)),
            format!("select {}1{}", "(".repeat(levels), ")".repeat(levels)),
            format!("select {}1{}", "f(".repeat(levels), ")".repeat(levels)),
            format!("select {}1{}", "(select ".repeat(levels), ")".repeat(levels)),
            format!("select 1{}", " union select 1".repeat(levels)),
            format!("select 1 from t{}", " join t on true".repeat(levels)),
        ]
    }

    #[test]
    fn fifty_levels_are_parsed_on_a_small_stack() {
        let parser = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
            for text in deep(50) {
                parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            }
        });
        parser.expect("a thread").join().expect("no panic");
    }

    #[test]
    fn what_nests_too_deeply_is_an_error_whatever_the_stack() {
        for stack_bytes in [256 << 10, 2 << 20, 1 << 30] {
            let parser = std::thread::Builder::new().stack_size(stack_bytes).spawn(|| {
                for levels in [200, 900, 3_000, 30_000] {
                    for text in deep(levels) {
                        if let Err(error) = parse(&text) {
                            let state = error.state.as_str();
                            assert!(["54001", "42601"].contains(&state), "{error}");
                        }
                    }
                }
            });
            parser.expect("a thread").join().expect("no panic");
        }
    }

    #[test]
    fn parsing_leaves_the_standard_error_alone() {
        // The grammar of a thread must not redirect what the whole process writes to.
        let before = std::fs::read_link("/proc/self/fd/2").expect("it is open");
        let parsers: Vec<_> = (0..4)
            .map(|_| {
                let before = before.clone();
                std::thread::Builder::new().spawn(move || {
                    for _ in 0..200 {
                        parse(r"select 'a\'").expect("valid");
                        assert_eq!(std::fs::read_link("/proc/self/fd/2").expect("open"), before);
                    }
                })
            })
            .collect();
        for parser in parsers {
            parser.expect("a thread").join().expect("no panic");
        }
    }
}
