//! The files of one simulated shard: as a process sees them, and as a power failure leaves them.
//!
//! A file exists twice: *now*, as it is read, and *kept*, as it is on disk. In between are
//! *changes* in their order, each with the sectors it touched as they were after it. A sync brings
//! the kept file up to the present one. A power failure leaves of each sector, and of the length,
//! what it was at some *moment* of that sequence, from "no change" to "all changes", and that is
//! then the file. A sync that fails does the same to the kept file, but the present one stays as it
//! is, and the changes are forgotten: only what is written again will be synced.
//!
//! The directory is kept likewise, only that its changes are names, and outlast a sync that failed.
//!
//! Example. A file of two kept sectors `aa`; the first is overwritten by `b`, then both by `c`. The
//! kept file can become `aa`, `ba`, `ca`, `ac`, `bc` or `cc`.

use std::collections::BTreeMap;

use super::draw::Draw;
use crate::disk::{DiskFault, FileName, SECTOR};

/// Bytes in whole sectors; zeros beyond the size.
#[derive(Clone, Default)]
struct Image {
    bytes: Vec<u8>,
    size: usize,
}

impl Image {
    fn resize(&mut self, size: usize) {
        let end = size.min(self.bytes.len());
        self.bytes[end..].fill(0);
        self.bytes.resize(size.next_multiple_of(SECTOR), 0);
        self.size = size;
    }

    /// Takes a sector over, beyond the size as well.
    fn put(&mut self, sector: usize, content: &[u8]) {
        let at = sector * SECTOR;
        if self.bytes.len() < at + SECTOR {
            self.bytes.resize(at + SECTOR, 0);
        }
        self.bytes[at..at + SECTOR].copy_from_slice(content);
    }
}

/// Sectors as they were after something was written or cut, and the length.
struct Change {
    first: usize,
    sectors: Vec<u8>,
    size: usize,
}

impl Change {
    fn sectors(&self) -> impl Iterator<Item = (usize, &[u8])> {
        (self.first..).zip(self.sectors.chunks_exact(SECTOR))
    }
}

#[derive(Default)]
struct File {
    now: Image,
    kept: Image,
    changes: Vec<Change>,
}

impl File {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.now.size {
            self.now.resize(end);
        }
        self.now.bytes[offset..end].copy_from_slice(bytes);
        self.changed(offset / SECTOR, end.next_multiple_of(SECTOR));
    }

    fn cut(&mut self, size: usize) {
        if size < self.now.size {
            let end = self.now.bytes.len();
            self.now.resize(size);
            self.now.bytes.resize(end, 0);
            self.changed(size / SECTOR, end);
            self.now.resize(size);
        }
    }

    fn changed(&mut self, first: usize, end: usize) {
        let sectors = self.now.bytes[first * SECTOR..end.max(first * SECTOR)].to_vec();
        self.changes.push(Change { first, sectors, size: self.now.size });
    }

    fn sync(&mut self) {
        let changes = self.changes.len();
        self.keep(|| changes);
    }

    /// Of every sector, and of the size, as many changes are kept as `moment` says; all changes are
    /// forgotten.
    fn keep(&mut self, mut moment: impl FnMut() -> usize) {
        let mut moments = BTreeMap::new();
        let size_moment = moment();
        for (index, change) in std::mem::take(&mut self.changes).iter().enumerate() {
            for (sector, content) in change.sectors() {
                if index < *moments.entry(sector).or_insert_with(&mut moment) {
                    self.kept.put(sector, content);
                }
            }
            if index < size_moment {
                self.kept.size = change.size;
            }
        }
        self.kept.resize(self.kept.size);
    }
}

/// Names that begin or cease to lead to a file.
type Renaming = Vec<(FileName, Option<u32>)>;

type Names = BTreeMap<FileName, u32>;

fn apply(names: &mut Names, renaming: &Renaming) {
    for &(name, file) in renaming {
        match file {
            Some(file) => drop(names.insert(name, file)),
            None => drop(names.remove(&name)),
        }
    }
}

/// The directory of one shard with its files.
#[derive(Default)]
pub(super) struct Platter {
    files: BTreeMap<u32, File>,
    made: u32,
    now: Names,
    kept: Names,
    changes: Vec<Renaming>,
}

/// How much of what was not synced survives: nothing, everything, or something in between, each
/// often.
fn moment(draw: &mut Draw, changes: usize) -> usize {
    match draw.below(4) {
        0 => 0,
        1 => changes,
        _ => draw.below(changes as u64 + 1) as usize,
    }
}

impl Platter {
    fn file(&mut self, name: FileName) -> Result<&mut File, DiskFault> {
        let number = self.now.get(&name).ok_or(DiskFault::NotFound)?;
        Ok(self.files.get_mut(number).expect("a name leads to a file"))
    }

    fn change(&mut self, renaming: Renaming) {
        apply(&mut self.now, &renaming);
        self.changes.push(renaming);
    }

    /// Bytes of all files that have names.
    pub(super) fn used(&self) -> u64 {
        self.now.values().map(|number| self.files[number].now.size as u64).sum()
    }

    /// The size of a file; `None` if there is none.
    pub(super) fn size(&self, name: FileName) -> Option<u64> {
        self.now.get(&name).map(|number| self.files[number].now.size as u64)
    }

    pub(super) fn read(&mut self, name: FileName, offset: u64, length: usize) -> Result<Vec<u8>, DiskFault> {
        let image = &self.file(name)?.now;
        let begin = offset.min(image.size as u64) as usize;
        Ok(image.bytes[begin..image.size.min(begin.saturating_add(length))].to_vec())
    }

    /// `offset` is at most the size; where there is no file, one is made.
    pub(super) fn write(&mut self, name: FileName, offset: u64, bytes: &[u8]) {
        if !self.now.contains_key(&name) {
            self.made += 1;
            self.files.insert(self.made, File::default());
            self.change(vec![(name, Some(self.made))]);
        }
        let file = self.file(name).expect("the file was just made");
        assert!(offset <= file.now.size as u64, "files have no holes");
        file.write(offset as usize, bytes);
    }

    pub(super) fn truncate(&mut self, name: FileName, size: u64) -> Result<(), DiskFault> {
        let file = self.file(name)?;
        file.cut(size.min(file.now.size as u64) as usize);
        Ok(())
    }

    pub(super) fn sync(&mut self, name: FileName) -> Result<(), DiskFault> {
        self.file(name)?.sync();
        Ok(())
    }

    /// A sync that fails: what was not synced is kept or not, and will not be synced again.
    pub(super) fn fail_sync(&mut self, name: FileName, draw: &mut Draw) {
        if let Ok(file) = self.file(name) {
            let changes = file.changes.len();
            file.keep(|| moment(draw, changes));
        }
    }

    pub(super) fn rename(&mut self, from: FileName, to: FileName) -> Result<(), DiskFault> {
        let file = *self.now.get(&from).ok_or(DiskFault::NotFound)?;
        self.change(vec![(from, None), (to, Some(file))]);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: FileName) -> Result<(), DiskFault> {
        self.file(name)?;
        self.change(vec![(name, None)]);
        Ok(())
    }

    pub(super) fn sync_directory(&mut self) {
        self.changes.clear();
        self.kept = self.now.clone();
        self.forget();
    }

    pub(super) fn list(&self) -> Vec<(FileName, u64)> {
        self.now.iter().map(|(&name, number)| (name, self.files[number].now.size as u64)).collect()
    }

    /// The power fails, and comes back: what was not synced is kept or not. `torn`: each sector and
    /// each name by itself; otherwise each file as it was at one moment, and so the directory.
    pub(super) fn fail_power(&mut self, torn: bool, draw: &mut Draw) {
        for file in self.files.values_mut() {
            let changes = file.changes.len();
            let one = moment(draw, changes);
            file.keep(|| if torn { moment(draw, changes) } else { one });
            file.now = file.kept.clone();
        }
        let until = moment(draw, self.changes.len());
        for (index, renaming) in std::mem::take(&mut self.changes).iter().enumerate() {
            if if torn { draw.chance(0.5) } else { index < until } {
                apply(&mut self.kept, renaming);
            }
        }
        self.now = self.kept.clone();
        self.forget();
    }

    /// Files without a name are gone; nothing is left to bring one back.
    fn forget(&mut self) {
        assert!(self.changes.is_empty() && self.now == self.kept, "a file may get its name back");
        let named: Vec<u32> = self.now.values().copied().collect();
        self.files.retain(|number, _| named.contains(number));
    }

    /// A number that differs if anything that can be read does.
    pub(super) fn checksum(&self) -> u64 {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        for (name, number) in &self.now {
            name.as_str().bytes().for_each(&mut add);
            let image = &self.files[number].now;
            image.size.to_le_bytes().into_iter().for_each(&mut add);
            image.bytes.iter().copied().for_each(&mut add);
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const A: FileName = FileName::new("a").unwrap();
    const B: FileName = FileName::new("b").unwrap();

    fn read(platter: &mut Platter, name: FileName) -> Option<Vec<u8>> {
        platter.read(name, 0, usize::MAX).ok()
    }

    /// What can be left of files and names, by the first letter of each sector.
    fn left(torn: bool, prepare: impl Fn(&mut Platter)) -> BTreeSet<String> {
        let after = |seed| {
            let mut platter = Platter::default();
            prepare(&mut platter);
            platter.fail_power(torn, &mut Draw::new(seed, "left", 0));
            let mut text = String::new();
            for (name, size) in platter.list() {
                let bytes = read(&mut platter, name).unwrap();
                assert_eq!(bytes.len() as u64, size);
                let letter = |sector: &[u8]| if sector[0] == 0 { '0' } else { char::from(sector[0]) };
                text += &format!("{name}={} ", bytes.chunks(SECTOR).map(letter).collect::<String>());
            }
            text.trim_end().to_owned()
        };
        (0..300).map(after).collect()
    }

    fn set<const N: usize>(all: [&str; N]) -> BTreeSet<String> {
        all.map(str::to_owned).into()
    }

    fn kept(platter: &mut Platter, name: FileName, bytes: &[u8]) {
        platter.write(name, 0, bytes);
        platter.sync(name).unwrap();
        platter.sync_directory();
    }

    #[test]
    fn sectors_are_each_as_they_were_at_some_moment_since_the_sync() {
        let prepare = |platter: &mut Platter| {
            kept(platter, A, &[b'a'; 2 * SECTOR]);
            platter.write(A, 0, &[b'b'; SECTOR]);
            platter.write(A, 0, &[b'c'; 2 * SECTOR]);
        };
        assert_eq!(left(true, prepare), set(["a=aa", "a=ba", "a=ca", "a=ac", "a=bc", "a=cc"]));
        assert_eq!(left(false, prepare), set(["a=aa", "a=ba", "a=cc"]));
    }

    #[test]
    fn what_was_added_can_be_there_in_part_and_zeros_in_between() {
        let prepare = |platter: &mut Platter| {
            kept(platter, A, b"");
            platter.write(A, 0, &[b'x'; 2 * SECTOR]);
        };
        assert_eq!(left(true, prepare), set(["a=", "a=00", "a=x0", "a=0x", "a=xx"]));
    }

    #[test]
    fn what_was_cut_off_can_be_back_until_that_is_synced() {
        let cut = |platter: &mut Platter| {
            kept(platter, A, &[b'a'; 2 * SECTOR]);
            platter.truncate(A, 0).unwrap();
            platter.write(A, 0, &[b'b'; SECTOR]);
        };
        let left_over = left(true, cut);
        assert!(left_over.contains("a=ba") && left_over.contains("a=b") && left_over.contains("a=00"));
        let synced = |platter: &mut Platter| {
            cut(platter);
            platter.sync(A).unwrap();
        };
        assert_eq!(left(true, synced), set(["a=b"]));
    }

    #[test]
    fn names_last_once_the_directory_is_synced() {
        let prepare = |platter: &mut Platter| {
            kept(platter, A, b"a");
            kept(platter, B, b"b");
            platter.rename(A, B).unwrap();
        };
        assert_eq!(left(true, prepare), set(["a=a b=b", "b=a"]));
        let then_make = |platter: &mut Platter| {
            prepare(platter);
            platter.write(A, 0, b"c");
            platter.sync(A).unwrap();
        };
        assert_eq!(left(true, then_make), set(["a=a b=b", "b=a", "a=c b=a", "a=c b=b"]));
        assert_eq!(left(false, then_make), set(["a=a b=b", "b=a", "a=c b=a"]));
        let synced = |platter: &mut Platter| {
            then_make(platter);
            platter.sync_directory();
        };
        assert_eq!(left(true, synced), set(["a=c b=a"]));
    }

    #[test]
    fn a_sync_that_failed_leaves_what_was_written_readable_and_lost() {
        let mut lost = 0;
        for seed in 0..100 {
            let mut platter = Platter::default();
            kept(&mut platter, A, b"old");
            platter.write(A, 0, b"new");
            platter.fail_sync(A, &mut Draw::new(seed, "sync", 0));
            assert_eq!(read(&mut platter, A).unwrap(), b"new");
            let again = seed % 2 == 0;
            if again {
                platter.write(A, 0, b"new");
            }
            platter.sync(A).unwrap();
            platter.fail_power(true, &mut Draw::new(seed, "power", 0));
            let is_lost = read(&mut platter, A).unwrap() == b"old";
            assert!(!(again && is_lost), "what was written again is synced again");
            lost += usize::from(is_lost);
        }
        assert!(lost > 0, "a second sync repairs nothing");
    }
}
