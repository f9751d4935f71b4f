//! The directory of a database that outlives its process: whose it is, and a directory with the log
//! of each shard.
//!
//! ```text
//! DIR/owner          what the database is: its number, its shards, its protocol and scheme
//! DIR/shard-00000/   the log of a shard, locked as long as a process has it
//! ```
//!
//! The file `owner` is written when the directory is new. A directory of another database, or of
//! another number of shards, is refused: rows would be on other shards than where they are looked
//! for.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use plimsoll_replication::{Identity, Settings};
use plimsoll_runtime::real::Directory;
use plimsoll_txn::pairs::{Pair, Protocol, Scheme};
use serde::{Deserialize, Serialize};

use crate::OpenError;

/// The version of the directory.
const FORMAT: u32 = 1;

/// What the file `owner` says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Owner {
    format: u32,
    database: u64,
    shards: usize,
    pair: String,
    /// Whether every shard has a log.
    begun: bool,
}

/// A directory that is open.
pub(crate) struct DataDir {
    database: u64,
    /// By shard.
    pub(crate) directories: Vec<Directory>,
}

impl DataDir {
    /// Opens the directory of a database, or makes it. `new` is the number of a new database.
    pub(crate) fn open(path: &Path, pair: Pair, shards: usize, new: u64) -> Result<DataDir, OpenError> {
        let Pair { protocol, scheme } = pair;
        if protocol == Protocol::Rococo || !matches!(scheme, Scheme::Dst | Scheme::None | Scheme::Rc) {
            return Err(OpenError::NotLogged(pair));
        }
        let failed = |path: PathBuf| move |error| OpenError::DataDir(path, error);
        fs::create_dir_all(path).map_err(failed(path.to_owned()))?;
        // The locks first: two processes that begin at the same time make one database.
        let directory = |shard: usize| {
            Directory::open(&of(path, shard)).map_err(|error| OpenError::Directory(error.to_string()))
        };
        let first = directory(0)?;
        let owner_path = path.join("owner");
        let here = Owner { format: FORMAT, database: new, shards, pair: pair.to_string(), begun: false };
        let owner = match read(&owner_path)? {
            Some(owner) => owner,
            None => {
                write(path, &owner_path, &here).map_err(failed(owner_path.clone()))?;
                here.clone()
            }
        };
        if owner != (Owner { database: owner.database, begun: owner.begun, ..here }) {
            let Owner { format, shards, pair, .. } = owner;
            let is = format!("format {format}, with {shards} shards under {pair}");
            return Err(OpenError::OtherDatabase { path: path.to_owned(), is });
        }
        let others = (1..shards).map(directory).collect::<Result<Vec<_>, _>>()?;
        let directories = [first].into_iter().chain(others).collect();
        // A process may have ended between making a directory and making its name durable.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        for directory in [parent.unwrap_or(Path::new(".")), path] {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(failed(directory.to_owned()))?;
        }
        if owner.begun
            && let Some(shard) = (0..shards).find(|&shard| !has_log(path, shard))
        {
            let why = format!("the directory {} has none: bring its files back", of(path, shard).display());
            return Err(OpenError::Log { shard: shard as u16, why });
        }
        Ok(DataDir { database: owner.database, directories })
    }

    /// Every shard has a log by now. From now on a directory without one has lost it.
    pub(crate) fn begun(path: &Path, shards: usize) -> Result<(), OpenError> {
        let owner_path = path.join("owner");
        match read(&owner_path)? {
            Some(owner) if !owner.begun && (0..shards).all(|shard| has_log(path, shard)) => {
                let begun = write(path, &owner_path, &Owner { begun: true, ..owner });
                begun.map_err(|error| OpenError::DataDir(owner_path, error))
            }
            _ => Ok(()),
        }
    }

    /// What a shard's log belongs to, and how it is kept.
    pub(crate) fn log(&self, shard: u16) -> (Identity, Settings) {
        (Identity { database: self.database, shard, lineage: 0 }, Settings::default())
    }
}

/// The directory of a shard.
fn of(path: &Path, shard: usize) -> PathBuf {
    path.join(format!("shard-{shard:05}"))
}

/// Whether a shard has a file of a log.
fn has_log(path: &Path, shard: usize) -> bool {
    let files = fs::read_dir(of(path, shard)).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("log-"))
}

/// Reads the file `owner`; `None` if there is none.
fn read(path: &Path) -> Result<Option<Owner>, OpenError> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| OpenError::DataDir(path.to_owned(), error.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::DataDir(path.to_owned(), error)),
    }
}

/// Writes the file `owner`, which is there whole or not at all.
fn write(directory: &Path, path: &Path, owner: &Owner) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(serde_json::to_string_pretty(owner)?.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}
