//! Random numbers.
