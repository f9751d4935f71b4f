//! How much stack a recursion has used.
//!
//! A statement decides how deeply analysis and evaluation nest, and a stack that overflows ends the
//! program. How much a level takes depends on what it is and on the compiler, so bytes are counted
//! and not levels, as PostgreSQL does (`max_stack_depth`): the address of a local says where the
//! stack is. A shard's stack has 2 MiB; half of it is for a statement, the rest for what is below
//! and for recursions that take less than the one that was checked, such as dropping a tree.

use crate::{SqlError, SqlState};

/// Bytes that a recursion may use.
const BYTES_MAX: usize = 1 << 20;

/// Where a recursion has begun.
#[derive(Clone, Copy, Debug)]
pub struct Stack(usize);

fn here() -> usize {
    let local = 0u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

impl Stack {
    /// Here.
    pub fn begin() -> Stack {
        Stack(here())
    }

    /// An error if too much has been used since.
    pub fn check(self) -> Result<(), SqlError> {
        if self.0.abs_diff(here()) <= BYTES_MAX {
            return Ok(());
        }
        Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"))
    }
}
