//! Procedures that travel: one-shot transactions whose pieces execute where their data is.
//!
//! Interactive protocols fetch what a piece reads and execute it at the coordinator. ROCOCO sends
//! the procedure, with the outputs of its earlier pieces, to the servers; each executes its pieces
//! on its copy, and the coordinator takes over their outputs ([`OneShot::absorb`]). For that a
//! procedure has to say more than [`Procedure`] does: which *type* each of its pieces has
//! ([`crate::chopping`]), and which *items* it touches, before it executes.
//!
//! [`Shipped`] is the same without types: a shard does not know its workload's.

use std::any::Any;
use std::ops::ControlFlow;

use plimsoll_types::wire::{Input, Malformed, Wire, blob};
use plimsoll_types::{Abort, ColumnGroup, Key, Slot, TableId};

use crate::procedure::{Access, Piece, Procedure, Scan};

/// One item of a piece: a record; or, of an immediate piece, all records whose keys begin with
/// these bytes, if every piece that touches the column group names it by keys of that length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Table and column group.
    pub column: ColumnGroup,
    /// The key, or what the keys have in common.
    pub key: Key,
    /// Whether it may be written.
    pub write: bool,
}

impl Item {
    /// Whether a record is this item, or one of it.
    pub fn covers(&self, column: ColumnGroup, key: &Key) -> bool {
        let longer = key.len() > self.key.len();
        self.column == column
            && (self.key == *key || longer && key.to_bytes().starts_with(&self.key.to_bytes()))
    }
}

plimsoll_types::wire!(struct Item { column, key, write });

/// The items of a piece.
#[derive(Debug, Default)]
pub struct Items(pub Vec<Item>);

impl Items {
    /// The piece reads it.
    pub fn read(&mut self, column: ColumnGroup, key: Key) {
        self.0.push(Item { column, key, write: false });
    }

    /// The piece may write it, and may read it.
    pub fn write(&mut self, column: ColumnGroup, key: Key) {
        self.0.push(Item { column, key, write: true });
    }
}

/// A procedure whose pieces can be executed one by one, on different servers, in an order that is
/// found out on the way.
///
/// Inputs and outputs are all there is to it: `execute` on a copy does what it would have done
/// here. Pieces of one type that follow each other in stages of their own, at one home, execute as
/// one.
///
/// It is asked for its stages and the types, homes and items of its pieces before it runs as well,
/// without any outputs ([`crate::chopping::Chopping::check`]): what it does not know then it leaves
/// out.
pub trait OneShot: Procedure + Clone + Send + Wire {
    /// The type of a piece: a position in [`crate::chopping::Chopping::types`].
    fn piece_type(&self, piece: Piece) -> usize;

    /// What a piece touches, but for what never changes. A piece that is deferred names every
    /// record that it may write.
    fn items(&self, piece: Piece, items: &mut Items);

    /// Takes over the outputs of a piece that was executed on a copy.
    fn absorb(&mut self, piece: Piece, executed: &Self);

    /// Whether it makes sense. One from another process may not, and must not do harm.
    fn is_sound(&self) -> bool {
        true
    }
}

/// [`Access`] without types.
pub trait AnyAccess {
    /// [`Access::get`]
    fn get_any(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort>;
    /// [`Access::put`]
    fn put_any(&mut self, column: ColumnGroup, key: &Key, value: &[u8]) -> Result<(), Abort>;
    /// [`Access::insert`]
    fn insert_any(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Abort>;
    /// [`Access::delete`]
    fn delete_any(&mut self, table: TableId, key: &Key) -> Result<(), Abort>;
    /// [`Access::scan`]
    fn scan_any(
        &mut self,
        scan: &Scan,
        visit: &mut dyn FnMut(&Key, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort>;
}

/// Gives types back.
struct Typed<'a>(&'a mut dyn AnyAccess);

impl Access for Typed<'_> {
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        self.0.get_any(column, key)
    }

    fn put(&mut self, column: ColumnGroup, key: &Key, value: &[u8]) -> Result<(), Abort> {
        self.0.put_any(column, key, value)
    }

    fn insert(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Abort> {
        self.0.insert_any(table, key, values)
    }

    fn delete(&mut self, table: TableId, key: &Key) -> Result<(), Abort> {
        self.0.delete_any(table, key)
    }

    fn scan(
        &mut self,
        scan: &Scan,
        mut visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.0.scan_any(scan, &mut visit)
    }
}

/// A one-shot procedure of any type.
pub trait Shipped: Any + Send {
    /// A copy, to be sent or kept.
    fn copy(&self) -> Box<dyn Shipped>;
    /// [`Procedure::read_only`]
    fn read_only(&self) -> bool;
    /// [`Procedure::stage`]
    fn stage(&self, stage: usize) -> usize;
    /// [`Procedure::home`]
    fn home(&self, piece: Piece) -> Slot;
    /// [`OneShot::piece_type`]
    fn piece_type(&self, piece: Piece) -> usize;
    /// [`OneShot::items`]
    fn items(&self, piece: Piece, items: &mut Items);
    /// [`Procedure::execute`]
    fn execute(&mut self, piece: Piece, access: &mut dyn AnyAccess) -> Result<(), Abort>;
    /// [`OneShot::absorb`]; `executed` is a copy of this.
    fn absorb(&mut self, piece: Piece, executed: &dyn Shipped);
    /// Appends its encoding.
    fn encode(&self, out: &mut Vec<u8>);
    /// As what it is.
    fn as_any(&self) -> &dyn Any;
}

impl<T: OneShot> Shipped for T {
    fn copy(&self) -> Box<dyn Shipped> {
        Box::new(self.clone())
    }

    fn read_only(&self) -> bool {
        Procedure::read_only(self)
    }

    fn stage(&self, stage: usize) -> usize {
        Procedure::stage(self, stage)
    }

    fn home(&self, piece: Piece) -> Slot {
        Procedure::home(self, piece)
    }

    fn piece_type(&self, piece: Piece) -> usize {
        OneShot::piece_type(self, piece)
    }

    fn items(&self, piece: Piece, items: &mut Items) {
        OneShot::items(self, piece, items);
    }

    fn execute(&mut self, piece: Piece, access: &mut dyn AnyAccess) -> Result<(), Abort> {
        Procedure::execute(self, piece, &mut Typed(access))
    }

    fn absorb(&mut self, piece: Piece, executed: &dyn Shipped) {
        let there = |procedure: &T| piece.number < Procedure::stage(procedure, piece.stage);
        // A copy that comes back from another process may be another procedure's.
        if let Some(executed) = executed.as_any().downcast_ref::<T>()
            && there(self)
            && there(executed)
        {
            OneShot::absorb(self, piece, executed);
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Wire::encode(self, out);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A procedure on its way.
pub enum Cargo {
    /// Within a process.
    Whole(Box<dyn Shipped>),
    /// From another.
    Encoded(Vec<u8>),
}

/// Makes procedures of one workload from their encodings.
pub type Unpack = fn(&[u8]) -> Result<Box<dyn Shipped>, Malformed>;

/// [`Unpack`] for procedures of this type.
pub fn unpack<T: OneShot>(bytes: &[u8]) -> Result<Box<dyn Shipped>, Malformed> {
    let procedure = plimsoll_types::wire::whole::<T>(bytes)?;
    match procedure.is_sound() {
        true => Ok(Box::new(procedure)),
        false => Err(Malformed("a procedure that makes no sense")),
    }
}

impl Cargo {
    /// A copy of a procedure, to be sent.
    pub fn of(procedure: &dyn Shipped) -> Cargo {
        Cargo::Whole(procedure.copy())
    }

    /// The same again.
    pub fn copy(&self) -> Cargo {
        match self {
            Cargo::Whole(procedure) => Cargo::of(&**procedure),
            Cargo::Encoded(bytes) => Cargo::Encoded(bytes.clone()),
        }
    }

    /// The procedure; an error if there is none of this workload in it.
    pub fn open(self, unpack: Option<Unpack>) -> Result<Box<dyn Shipped>, Malformed> {
        match (self, unpack) {
            (Cargo::Whole(procedure), _) => Ok(procedure),
            (Cargo::Encoded(bytes), Some(unpack)) => unpack(&bytes),
            (Cargo::Encoded(_), None) => Err(Malformed("a procedure, where no workload is known")),
        }
    }
}

impl Wire for Cargo {
    fn encode(&self, out: &mut impl plimsoll_types::wire::Sink) {
        match self {
            Cargo::Whole(procedure) => {
                let mut bytes = Vec::new();
                procedure.encode(&mut bytes);
                blob(&bytes, out);
            }
            Cargo::Encoded(bytes) => blob(bytes, out),
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Cargo, Malformed> {
        Vec::<u8>::decode(input).map(Cargo::Encoded)
    }
}
