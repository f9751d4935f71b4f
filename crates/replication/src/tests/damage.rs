//! Directories that are damaged.
