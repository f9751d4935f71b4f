//! What runs in a simulated world.

pub mod append;
pub mod benchmark;
pub mod cycle;
pub mod pieces;
pub mod random;
