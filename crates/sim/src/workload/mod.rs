//! What runs in a simulated world.

pub mod append;
pub mod benchmark;
pub mod cycle;
mod operation;
pub mod pieces;
pub mod random;
