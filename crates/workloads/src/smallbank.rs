//! SmallBank.
