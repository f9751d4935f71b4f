//! Transaction protocols and timestamp schemes.
pub mod procedure;
