//! What a shard answers to a batch of reads.

use plimsoll_store::{At, Cover, SnapshotTooOld};
use plimsoll_types::wire::{Input, Malformed, Sink, Wire};
use plimsoll_types::{Key, TableId, Timestamp};

use crate::timestamp::Scheme;

/// What must still be so when the read is validated. Row numbers are the participant's own; they
/// are good for as long as it lives, because a row that was unlinked or reused never has the stamp
/// it had before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReadRef {
    /// The newest version of this record has this stamp (a value, or the tombstone that was read as
    /// absent).
    Row {
        /// The record.
        at: At,
        /// Its newest stamp; `None` if nothing was ever installed.
        head: Option<Timestamp>,
    },
    /// No key was linked here since: stands for an absent key, or for a range.
    Cover {
        /// The table.
        table: TableId,
        /// What covers the key.
        cover: Cover,
        /// Its version.
        version: u64,
    },
    /// What was read is already not the newest, or about to change: good for a read-only
    /// transaction, never valid for another.
    Stale,
    /// Nothing can change.
    Immutable,
}

plimsoll_types::wire!(enum ReadRef {
    Row { at, head } = 0, Cover { table, cover, version } = 1, Stale = 2, Immutable = 3
});

impl ReadRef {
    /// Whether it is a record, which can be locked; absent keys and ranges cannot.
    pub(crate) fn is_record(&self) -> bool {
        matches!(self, ReadRef::Row { .. })
    }
}

/// A range of keys; without an end it goes to the end of the table.
pub(crate) type Range = (TableId, Key, Option<Key>);

/// One record read.
#[derive(Clone, Debug)]
pub struct Got {
    /// Position and length of the value in [`Fetched::bytes`]; `None` if the record is absent.
    pub value: Option<(u32, u32)>,
    /// The version's stamp, if there is a value.
    pub version: Option<Timestamp>,
    /// What to validate.
    pub read: ReadRef,
}

/// Where the value is follows from those before it: only its length travels.
impl Wire for Got {
    fn encode(&self, out: &mut impl Sink) {
        self.value.map(|(_, length)| length).encode(out);
        self.version.encode(out);
        self.read.encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Got, Malformed> {
        let length = Option::<u32>::decode(input)?;
        let (version, read) = (Wire::decode(input)?, Wire::decode(input)?);
        Ok(Got { value: length.map(|length| (0, length)), version, read })
    }
}

/// One range read.
#[derive(Clone, Debug, Default)]
pub struct ScanResult {
    /// The live rows, in the order of the scan, up to the scan's limit or
    /// [`Reads::most`](crate::procedure::Reads::most).
    pub rows: Vec<(Key, Got)>,
    /// Whether it ended behind the last of them, and nothing is known of the rest of the range.
    pub more: bool,
    /// Further things to validate: the leaves that cover the range, rows that are there but absent.
    pub reads: Vec<ReadRef>,
}

/// Rows are searched by their keys.
impl Wire for ScanResult {
    fn encode(&self, out: &mut impl Sink) {
        self.rows.encode(out);
        self.more.encode(out);
        self.reads.encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<ScanResult, Malformed> {
        let rows = Vec::<(Key, Got)>::decode(input)?;
        if !rows.is_sorted_by(|(a, _), (b, _)| a < b) && !rows.is_sorted_by(|(a, _), (b, _)| a > b) {
            return Err(Malformed("rows that are not in the order of their keys"));
        }
        Ok(ScanResult { rows, more: Wire::decode(input)?, reads: Wire::decode(input)? })
    }
}

/// The values of a batch of reads, in the order of the batch.
#[derive(Debug)]
pub struct Fetched<S: Scheme> {
    /// All values, one after the other in the order of the reads.
    pub bytes: Vec<u8>,
    /// One per get, up to [`Reads::most`](crate::procedure::Reads::most).
    pub gets: Vec<Got>,
    /// One per scan.
    pub scans: Vec<ScanResult>,
    /// Further things to validate for the gets.
    pub also: Vec<ReadRef>,
    /// What a transaction that relies on these reads is ordered after.
    pub observed: S::Observed,
}

/// The values come last, and are as long as they are together.
impl<S: Scheme> Wire for Fetched<S> {
    fn encode(&self, out: &mut impl Sink) {
        self.gets.encode(out);
        self.scans.encode(out);
        self.also.encode(out);
        self.observed.encode(out);
        let rows = self.scans.iter().flat_map(|scan| scan.rows.iter().map(|(_, got)| got));
        let end = self.gets.iter().chain(rows).filter_map(|got| got.value).fold(0, |end, (start, length)| {
            assert_eq!(start, end, "values follow one another in the order of the reads");
            end + length
        });
        assert_eq!(end as usize, self.bytes.len(), "every value belongs to a read");
        out.put(&self.bytes);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (mut gets, mut scans) = (Vec::<Got>::decode(input)?, Vec::<ScanResult>::decode(input)?);
        let (also, observed) = (Wire::decode(input)?, Wire::decode(input)?);
        let rows = scans.iter_mut().flat_map(|scan| scan.rows.iter_mut().map(|(_, got)| got));
        let mut end = 0u32;
        for (start, length) in gets.iter_mut().chain(rows).filter_map(|got| got.value.as_mut()) {
            *start = end;
            end = end.checked_add(*length).ok_or(Malformed("more values than fit into a message"))?;
        }
        Ok(Fetched { bytes: input.take(end as usize)?.to_vec(), gets, scans, also, observed })
    }
}

impl<S: Scheme> Default for Fetched<S> {
    fn default() -> Self {
        Fetched {
            bytes: Vec::new(),
            gets: Vec::new(),
            scans: Vec::new(),
            also: Vec::new(),
            observed: S::Observed::default(),
        }
    }
}

impl<S: Scheme> Fetched<S> {
    /// Appends a value and tells where it is.
    pub(crate) fn store(&mut self, value: &[u8]) -> (u32, u32) {
        let start = u32::try_from(self.bytes.len()).expect("one batch of reads is smaller than 4 GiB");
        self.bytes.extend_from_slice(value);
        (start, value.len() as u32)
    }

    /// The value of a record read.
    pub fn value(&self, got: &Got) -> Option<&[u8]> {
        got.value.map(|(start, len)| &self.bytes[start as usize..(start + len) as usize])
    }

    /// Everything that has to be validated.
    pub fn read_refs(&self) -> impl Iterator<Item = ReadRef> + '_ {
        let scanned = self
            .scans
            .iter()
            .flat_map(|scan| scan.rows.iter().map(|(_, got)| got.read).chain(scan.reads.iter().copied()));
        let gets = self.gets.iter().map(|got| got.read).chain(self.also.iter().copied());
        gets.chain(scanned).filter(|read| *read != ReadRef::Immutable)
    }

    /// The same, to change what it is validated against.
    pub(crate) fn read_refs_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut ReadRef> {
        let rows = |scan: &'a mut ScanResult| {
            let ScanResult { rows, reads, .. } = scan;
            rows.iter_mut().map(|(_, got)| &mut got.read).chain(reads)
        };
        let gets = self.gets.iter_mut().map(|got| &mut got.read).chain(&mut self.also);
        gets.chain(self.scans.iter_mut().flat_map(rows))
    }
}

/// Why a batch could not be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BatchFailure {
    /// The snapshot is older than the watermark.
    TooOld,
    /// The owner of this record may commit within the snapshot.
    Wait(At),
}

impl From<SnapshotTooOld> for BatchFailure {
    fn from(_: SnapshotTooOld) -> BatchFailure {
        BatchFailure::TooOld
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::wire::{encoded, whole};

    use super::*;
    use crate::timestamps::Dst;

    fn got(fetched: &mut Fetched<Dst>, value: Option<&[u8]>) -> Got {
        let value = value.map(|value| fetched.store(value));
        Got { value, version: value.map(|_| Timestamp(7)), read: ReadRef::Stale }
    }

    fn fetched(keys: [u64; 2]) -> Fetched<Dst> {
        let mut fetched = Fetched::default();
        fetched.gets = [Some(&b"one"[..]), None, Some(b"")].map(|value| got(&mut fetched, value)).into();
        let rows = keys.map(|key| (Key::of_u64(key), got(&mut fetched, Some(&key.to_be_bytes())))).into();
        fetched.scans =
            vec![ScanResult::default(), ScanResult { rows, more: true, reads: vec![ReadRef::Immutable] }];
        fetched
    }

    #[test]
    fn values_travel_without_their_places_and_are_found_where_they_arrive() {
        let sent = fetched([4, 5]);
        let arrived: Fetched<Dst> = whole(&encoded(&sent)).expect("what is encoded is decoded");
        let values = |fetched: &Fetched<Dst>| -> Vec<Option<Vec<u8>>> {
            let rows = fetched.scans.iter().flat_map(|scan| scan.rows.iter().map(|(_, got)| got));
            fetched.gets.iter().chain(rows).map(|got| fetched.value(got).map(<[u8]>::to_vec)).collect()
        };
        assert_eq!(values(&arrived), values(&sent));
        assert_eq!(values(&arrived)[4], Some(5u64.to_be_bytes().to_vec()));
    }

    #[test]
    fn an_answer_without_all_its_values_or_with_rows_out_of_order_is_refused() {
        for order in [[4, 5], [5, 4]] {
            assert!(
                whole::<Fetched<Dst>>(&encoded(&fetched(order))).is_ok(),
                "either order may be asked for"
            );
        }
        let refused = |bytes: &[u8]| whole::<Fetched<Dst>>(bytes).expect_err("it is no answer").0;
        let out_of_order = "rows that are not in the order of their keys";
        assert_eq!(refused(&encoded(&fetched([4, 4]))), out_of_order);
        let bytes = encoded(&fetched([4, 5]));
        assert_eq!(refused(&bytes[..bytes.len() - 1]), "it ends too early");
        let long = Got { value: Some((0, u32::MAX)), version: None, read: ReadRef::Stale };
        let gets = encoded(&vec![long.clone(), long]);
        // Nothing was scanned, nothing else is to be validated, nothing was observed.
        assert_eq!(refused(&[&gets[..], &[0; 4 + 4 + 8]].concat()), "more values than fit into a message");
    }
}
