//! What values and transactions are limited to.

/// Maximum length of a value, in bytes.
pub const VALUE_MAX: usize = 8 << 20;
/// Maximum that one transaction may write, in bytes of keys and values.
pub const WRITTEN_MAX: usize = 1 << 30;
/// The same for a client of a cluster, where every write counts 64 bytes more: all that a
/// transaction writes on one node travels in one message.
pub const WRITTEN_MAX_CLUSTER: usize = 32 << 20;
