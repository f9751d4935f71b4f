//! Ordered index.
