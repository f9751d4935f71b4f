//! Keys, rows and descriptors as bytes.
//!
//! | file | has |
//! |---|---|
//! | [`bytes`] | a reader for bytes that may be torn |
//! | [`order`] | values whose bytes are ordered as the values are |
//! | [`decimal`] | the same for `numeric` |
//! | [`key`] | keys of rows, and their partition part |
//! | [`entry`] | entries of indexes |
//! | [`value`] | values that need no order |
//! | [`row`] | what is stored under a row's key |
//! | [`sequence`] | states of sequences |
//! | [`descriptor`] | tables, and the keys of the catalog |
//!
//! Bytes that are read come from a disk or from another process. Reading them gives a value or the
//! error XX001 and never panics, so the module forbids itself what could.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod bytes;
pub mod decimal;
pub mod descriptor;
pub mod entry;
pub mod key;
pub mod order;
pub mod row;
pub mod sequence;
pub mod value;

#[cfg(test)]
mod tests;
