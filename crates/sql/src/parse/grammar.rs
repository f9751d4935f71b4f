//! The call into PostgreSQL's grammar, and what its errors are.
//!
//! This is the one file of the workspace that has `unsafe` code: the binding in Rust drops the
//! position of an error, so the C function is called here.
//!
//! The C interface gives an error's message and position but not its SQLSTATE, hint or detail, so
//! those come from a table of messages here: all that the scanner and the grammar raise with
//! another state than `syntax_error`.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};

use super::too_deep;
use crate::{SqlError, SqlState};

/// `PgQueryError` of `pg_query.h`.
#[repr(C)]
struct RawError {
    message: *mut c_char,
    function: *mut c_char,
    file: *mut c_char,
    line: c_int,
    position: c_int,
    context: *mut c_char,
}

/// `PgQueryProtobuf`.
#[repr(C)]
struct RawBytes {
    length: usize,
    data: *mut c_char,
}

/// `PgQueryProtobufParseResult`.
#[repr(C)]
struct RawResult {
    tree: RawBytes,
    stderr: *mut c_char,
    error: *mut RawError,
}

/// `PG_QUERY_DISABLE_ESCAPE_STRING_WARNING`: nobody would see the warning.
const NO_ESCAPE_STRING_WARNING: c_int = 64;

unsafe extern "C" {
    fn pg_query_parse_protobuf_opts(input: *const c_char, options: c_int) -> RawResult;
    fn pg_query_free_protobuf_parse_result(result: RawResult);
}

/// The parse tree of a text as bytes of protobuf.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, SqlError> {
    let Ok(input) = CString::new(text) else {
        return Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, "a text has a zero byte"));
    };
    // SAFETY: The three structures are those of `pg_query.h` in the version that Cargo.lock pins,
    // field by field. The function reads the input up to its zero byte, keeps no pointer to it,
    // and catches its own long jumps; all that it works with is local to the thread. Of its result
    // either `error` is set, and then its message and function are C strings, or `tree` has
    // `length` bytes. Both belong to the result and are copied before it is freed, which happens
    // once.
    unsafe {
        let result = pg_query_parse_protobuf_opts(input.as_ptr(), NO_ESCAPE_STRING_WARNING);
        let parsed = if let Some(error) = result.error.as_ref() {
            let message = CStr::from_ptr(error.message).to_string_lossy().into_owned();
            let function = CStr::from_ptr(error.function).to_string_lossy();
            Err(refusal(message, &function, error.position))
        } else if result.tree.data.is_null() || result.tree.length == 0 {
            Ok(Vec::new())
        } else {
            Ok(std::slice::from_raw_parts(result.tree.data.cast::<u8>(), result.tree.length).to_vec())
        };
        pg_query_free_protobuf_parse_result(result);
        parsed
    }
}

/// An error of the grammar. Positions are characters from 1; 0 is none.
fn refusal(message: String, function: &str, position: c_int) -> SqlError {
    const TOO_DEEP: [&str; 2] =
        ["stack depth limit exceeded", "parse tree is nested too deeply to serialize to protobuf"];
    if TOO_DEEP.contains(&message.as_str()) {
        return too_deep();
    }
    let (state, hint) = state_of(&message, function);
    let error = SqlError::new(state, message);
    let error = match hint {
        Some(hint) => error.hint(hint),
        None => error,
    };
    match u32::try_from(position) {
        Ok(position) if position > 0 => error.at(position),
        _ => error,
    }
}

/// The state and the hint that a function of PostgreSQL raises a message with.
fn state_of(message: &str, function: &str) -> (SqlState, Option<&'static str>) {
    let is = |part: &str| message.contains(part);
    if is("invalid byte sequence for encoding") {
        (SqlState::CHARACTER_NOT_IN_REPERTOIRE, None)
    } else if is("unsafe use of \\' in a string literal") {
        let hint = "Use '' to write quotes in strings. \\' is insecure in client-only encodings.";
        (SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, Some(hint))
    } else if message == "invalid Unicode escape" && function == "str_udeescape" {
        (SqlState::SYNTAX_ERROR, Some("Unicode escapes must be \\XXXX or \\+XXXXXX."))
    } else if message == "invalid Unicode escape" {
        let hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX.";
        (SqlState::INVALID_ESCAPE_SEQUENCE, Some(hint))
    } else if is("LIMIT #,# syntax is not supported") {
        (SqlState::SYNTAX_ERROR, Some("Use separate LIMIT and OFFSET clauses."))
    } else if is("not implemented") || is("not yet implemented") || is("not supported") {
        (SqlState::FEATURE_NOT_SUPPORTED, None)
    } else {
        (SqlState::SYNTAX_ERROR, None)
    }
}
