//! How large messages are.
//!
//! [`Size::bytes`] is what a compact encoding needs: numbers and stamps take 8 bytes, keys and values their length and
//! 2 and 4 bytes to say so, names of tables, variants and flags 1 or 2. In memory messages are larger; this is for
//! those who have to know what travels: a vector timestamp goes with every read, and that is what it costs (DST paper,
//! §2.3).

use std::convert::Infallible;
use std::sync::Arc;

use plimsoll_store::Holder;
use plimsoll_types::{ColumnGroup, Key, Timestamp, TxnId};

use crate::base::{Common, CommonReply, Linked};
use crate::fetched::{Fetched, Got, ReadRef, Scanned};
use crate::procedure::{Intent, Reads, Scan};
use crate::timestamp::Scheme;
use crate::work::{Packed, Write};

/// Has a size on the wire.
pub trait Size {
    /// Its bytes.
    fn bytes(&self) -> u64;
}

/// Types whose values all have one size.
macro_rules! fixed {
    ($($type:ty = $bytes:literal),+ $(,)?) => {
        $(impl Size for $type {
            fn bytes(&self) -> u64 {
                $bytes
            }
        })+
    };
}

fixed! {
    () = 0,
    bool = 1,
    u32 = 4,
    u64 = 8,
    Intent = 1,
    ColumnGroup = 2,
    Timestamp = 8,
    TxnId = 10,
    Holder = 18,
    Linked = 40,
}

impl Size for Infallible {
    fn bytes(&self) -> u64 {
        match *self {}
    }
}

impl Size for Key {
    fn bytes(&self) -> u64 {
        2 + self.len() as u64
    }
}

impl<T: Size> Size for Option<T> {
    fn bytes(&self) -> u64 {
        1 + self.as_ref().map_or(0, T::bytes)
    }
}

impl<T: Size> Size for Arc<T> {
    fn bytes(&self) -> u64 {
        T::bytes(self)
    }
}

impl<T: Size> Size for Vec<T> {
    fn bytes(&self) -> u64 {
        4 + self.iter().map(T::bytes).sum::<u64>()
    }
}

impl<A: Size, B: Size> Size for (A, B) {
    fn bytes(&self) -> u64 {
        self.0.bytes() + self.1.bytes()
    }
}

impl<A: Size, B: Size, C: Size> Size for (A, B, C) {
    fn bytes(&self) -> u64 {
        self.0.bytes() + self.1.bytes() + self.2.bytes()
    }
}

impl Size for Scan {
    fn bytes(&self) -> u64 {
        self.column.bytes() + self.low.bytes() + self.high.bytes() + 8
    }
}

impl Size for Reads {
    fn bytes(&self) -> u64 {
        self.gets.bytes() + self.scans.bytes()
    }
}

impl Size for ReadRef {
    fn bytes(&self) -> u64 {
        match self {
            ReadRef::Row { head, .. } => 8 + head.bytes(),
            ReadRef::Cover { .. } => 16,
            ReadRef::Stale | ReadRef::Immutable => 1,
        }
    }
}

impl Size for Got {
    fn bytes(&self) -> u64 {
        self.value.map_or(1, |_| 5) + self.version.bytes() + self.read.bytes()
    }
}

impl Size for Scanned {
    fn bytes(&self) -> u64 {
        self.rows.bytes() + self.reads.bytes()
    }
}

impl<S: Scheme> Size for Fetched<S> {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
            + self.gets.bytes()
            + self.scans.bytes()
            + self.also.bytes()
            + self.observed.bytes()
    }
}

impl Size for Write {
    /// A write to be locked; its value travels later.
    fn bytes(&self) -> u64 {
        self.column.bytes() + self.key.bytes() + 1 + self.expected.bytes()
    }
}

impl Size for Packed {
    fn bytes(&self) -> u64 {
        self.iter()
            .map(|(column, key, value)| {
                column.bytes() + key.bytes() + 5 + value.map_or(0, |v| v.len() as u64)
            })
            .sum()
    }
}

impl<S: Scheme> Size for Common<S> {
    fn bytes(&self) -> u64 {
        1 + match self {
            // What the shard notes in it does not travel.
            Common::ReadAt { txn, snapshot, reads, waited: _ } => {
                txn.bytes() + snapshot.bytes() + reads.bytes()
            }
            Common::Snapshot(_) | Common::Stamp { .. } => 0,
            Common::Scheme(message) => message.bytes(),
            Common::LowWater(told) => told.bytes(),
        }
    }
}

impl<S: Scheme> Size for CommonReply<S> {
    fn bytes(&self) -> u64 {
        1 + match self {
            CommonReply::Fetched(fetched) => fetched.bytes(),
            CommonReply::Snapshot(..) | CommonReply::Stamp(_) => 0,
        }
    }
}
