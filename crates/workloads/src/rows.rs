//! Rows as packed structures, one for each column group.
//!
//! A structure that no transaction writes, or that other transactions write than those that read
//! the rest of the row, is a record of its own, so that they do not conflict. That is a switch of a
//! workload: without it a row is one record, the concatenation of its structures. [`Rows`] hides
//! the difference; [`Columns`] says where a structure sits in either form.

use plimsoll_txn::procedure::{Access, Reads};
use plimsoll_types::{Abort, ColumnGroup, Key, TableId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::NOT_LOADED;

/// Maximum length of a row that holds several structures, in bytes.
pub const ROW_MAX: usize = 1536;

/// A structure in a row: a column group, or a part of the row if groups are not split.
pub trait Columns: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy {
    /// The table.
    const TABLE: TableId;
    /// The group it is, if groups are split.
    const GROUP: u8 = 0;
    /// Where it starts in the row, if they are not: after the groups before.
    const OFFSET: usize = 0;
}

/// How the rows of a workload are stored.
pub trait Rows: Copy {
    /// Whether each structure is a record; otherwise the concatenation of all of a row is.
    fn is_split(self) -> bool;

    /// The record that holds a structure.
    #[inline]
    fn column<C: Columns>(self) -> ColumnGroup {
        C::TABLE.group(if self.is_split() { C::GROUP } else { 0 })
    }

    /// Declares that a piece reads one structure of a row and updates another; without groups these
    /// are the same record.
    #[inline]
    fn declare<Read: Columns, Updated: Columns>(self, reads: &mut Reads, key: impl Fn() -> Key) {
        if self.is_split() {
            reads.get(self.column::<Read>(), key());
        }
        reads.update(self.column::<Updated>(), key());
    }

    /// The structure in its record, and the text that follows if its row ends in one.
    #[inline]
    fn view<C: Columns>(self, record: &[u8]) -> (&C, &[u8]) {
        let at = if self.is_split() { 0 } else { C::OFFSET };
        C::ref_from_prefix(&record[at..]).expect("a record holds the columns it was written with")
    }

    /// Reads a structure whose row may be absent.
    #[inline]
    fn find<C: Columns, A: Access>(self, access: &mut A, key: &Key) -> Result<Option<C>, Abort> {
        Ok(access.get(self.column::<C>(), key)?.map(|record| *self.view::<C>(record).0))
    }

    /// Reads a structure of a row that was loaded and is never deleted, and gives it to `read` with
    /// the text that follows.
    #[inline]
    fn read<C: Columns, A: Access, R>(
        self,
        access: &mut A,
        key: &Key,
        read: impl FnOnce(&C, &[u8]) -> R,
    ) -> Result<R, Abort> {
        let record = access.get(self.column::<C>(), key)?.ok_or(NOT_LOADED)?;
        let (columns, text) = self.view(record);
        Ok(read(columns, text))
    }

    /// Reads, changes and writes a structure of a row that was loaded and is never deleted.
    #[inline]
    fn update<C: Columns, A: Access, R>(
        self,
        access: &mut A,
        key: &Key,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Abort> {
        if !self.is_split() {
            return self.update_whole(access, key, change);
        }
        let column = self.column::<C>();
        let record = access.get(column, key)?.ok_or(NOT_LOADED)?;
        let mut columns = C::read_from_bytes(record).expect("a written group has no tail");
        let result = change(&mut columns);
        access.put(column, key, columns.as_bytes())?;
        Ok(result)
    }

    /// [`Rows::update`], if a row is one record.
    fn update_whole<C: Columns, A: Access, R>(
        self,
        access: &mut A,
        key: &Key,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Abort> {
        let column = self.column::<C>();
        let record = access.get(column, key)?.ok_or(NOT_LOADED)?;
        let mut row = [0; ROW_MAX];
        let row = &mut row[..record.len()];
        row.copy_from_slice(record);
        let (columns, _) = C::mut_from_prefix(&mut row[C::OFFSET..]).expect("a row holds all its columns");
        let result = change(columns);
        access.put(column, key, row)?;
        Ok(result)
    }
}

/// A zero-padded text without its padding.
#[inline]
pub fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    &text[..end]
}

/// Declares structures of rows.
macro_rules! columns {
    ($($(#[$about:meta])* $name:ident in $table:ident $(group $group:literal after $($before:ident),+)?
        { $($(#[$column:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
            zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$column])* pub $field: $type,)* }

        impl $crate::rows::Columns for $name {
            const TABLE: plimsoll_types::TableId = $table;
            $(const GROUP: u8 = $group;
            const OFFSET: usize = 0 $(+ size_of::<$before>())+;)?
        }
    )*};
}

pub(crate) use columns;
