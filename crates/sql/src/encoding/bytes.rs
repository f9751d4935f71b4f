//! A reader for bytes that may be torn: each step may find that they end too early.

use crate::types::Oid;
use crate::{SqlError, SqlState};

/// The error of bytes that nothing here has written.
pub fn corrupted(detail: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "data corrupted").detail(detail)
}

/// The error of a value that is not of its column's type, which is a mistake of the caller.
pub fn mismatched(oid: Oid) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("a value is not of its type {}", oid.display()))
}

/// What is left to be read.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// A reader from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// An error if anything is left.
    pub fn end(&self) -> Result<(), SqlError> {
        if self.0.is_empty() { Ok(()) } else { Err(corrupted("There are bytes behind the last value.")) }
    }

    /// The next bytes.
    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], SqlError> {
        let (head, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(head)
    }

    /// The next bytes as an array.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(short)?;
        self.0 = rest;
        Ok(*head)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, SqlError> {
        self.take().map(|[byte]| byte)
    }

    /// A big endian number of two bytes.
    pub fn u16(&mut self) -> Result<u16, SqlError> {
        self.take().map(u16::from_be_bytes)
    }

    /// A big endian number of four bytes.
    pub fn u32(&mut self) -> Result<u32, SqlError> {
        self.take().map(u32::from_be_bytes)
    }

    /// A signed big endian number of four bytes.
    pub fn i32(&mut self) -> Result<i32, SqlError> {
        self.take().map(i32::from_be_bytes)
    }

    /// A signed big endian number of eight bytes.
    pub fn i64(&mut self) -> Result<i64, SqlError> {
        self.take().map(i64::from_be_bytes)
    }
}

fn short() -> SqlError {
    corrupted("The bytes end within a value.")
}

/// The text of some bytes.
pub fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|_| corrupted("A text is not UTF-8."))
}
