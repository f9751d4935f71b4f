//! Tables: what is known of them, and where that is kept.

pub mod descriptor;

pub use descriptor::{Column, Placement, Table};

/// The schema of tables whose schema is not named.
pub const PUBLIC: &str = "public";

impl Table {
    /// Its columns that are there, with their positions.
    pub fn live(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.dropped)
    }

    /// The position among the columns that are there of a column's position among all.
    pub fn live_place(&self, position: usize) -> Option<usize> {
        self.live().position(|(at, _)| at == position)
    }
}
