//! The directory of a database that outlives its process: whose it is, and a directory with the log
//! of each shard.
//!
//! ```text
//! DIR/owner          what has it: a database in one process, or a node of a cluster
//! DIR/shard-00000/   the log of a shard, locked as long as a process has it
//! ```
//!
//! The file `owner` is written when the directory is new. A directory of another database or node,
//! or of another number of shards, is refused: rows would be on other shards than where they are
//! looked for.
//!
//! The number that a directory is given when it is made tells its data from any other. Nodes of a
//! cluster tell each other theirs and note them, so a node that comes back with an empty directory
//! is refused by the others instead of answering that no row exists
//! ([`plimsoll_runtime::real::Network::memory`]).

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use plimsoll_replication::{Identity, Report};
use plimsoll_runtime::real::{Directory, Runtime, Who};
use plimsoll_runtime::{Echo, Env};
use plimsoll_txn::pairs::{Pair, Protocol, Scheme};
use plimsoll_types::ShardId;
use serde::{Deserialize, Serialize};

use crate::{Cluster, Durability, OpenError};

/// The version of the directory.
const FORMAT: u32 = 1;

/// What the file `owner` says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    format: u32,
    /// Tells its data from any other.
    database: u64,
    pair: String,
    /// The shards that it has, by their numbers in the whole database.
    shards: Range<usize>,
    node: Option<Member>,
    /// What outlives a process that has it.
    #[serde(default = "sync")]
    durability: Durability,
    /// Whether every shard has a log.
    begun: bool,
    /// The numbers of the directories of other nodes, by node.
    met: Vec<(u16, u64)>,
}

/// What directories keep whose file `owner` does not say it.
fn sync() -> Durability {
    Durability::Sync
}

/// A node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Member {
    id: u16,
    /// The cluster's name and checksum.
    cluster: String,
    checksum: String,
}

/// A directory that is open.
pub(crate) struct DataDir {
    path: PathBuf,
    owner: Owner,
    /// By shard of this process.
    pub(crate) directories: Vec<Directory>,
}

/// Whether a database goes back to one timestamp under a pair: if timestamps order all that its
/// transactions do. What has started under ROCOCO has to be finished, and has no timestamp yet.
pub fn has_cut(pair: Pair) -> bool {
    matches!(pair.scheme, Scheme::Dst | Scheme::Gts) && pair.protocol != Protocol::Rococo
}

impl Owner {
    /// A database in one process, whose shards are these with an oracle's. `new` is its number if
    /// the directory is new.
    pub(crate) fn alone(pair: Pair, durability: Durability, shards: Range<usize>, new: u64) -> Owner {
        let pair = pair.to_string();
        Owner {
            format: FORMAT,
            database: new,
            pair,
            shards,
            node: None,
            durability,
            begun: false,
            met: Vec::new(),
        }
    }

    /// A node of a cluster with these shards.
    pub(crate) fn member(cluster: &Cluster, id: u16, shards: Range<usize>, new: u64) -> Owner {
        let checksum = format!("{:016x}", cluster.id);
        let node = Some(Member { id, cluster: cluster.name.clone(), checksum });
        Owner { node, ..Owner::alone(cluster.pair, cluster.durability, shards, new) }
    }

    /// What a shard's log belongs to.
    fn identity(&self, shard: u16) -> Identity {
        Identity { database: self.database, shard, lineage: 0 }
    }

    /// What it is, in a sentence.
    fn describe(&self) -> String {
        let Owner { format, pair, shards, node, durability, .. } = self;
        if *format != FORMAT {
            return format!("format {format}, where this program has {FORMAT}");
        }
        match node {
            None => {
                let oracle = Pair::parse(pair).is_ok_and(Pair::has_oracle);
                let shards = shards.len().saturating_sub(usize::from(oracle));
                format!("{shards} shards under {pair}, durability {durability}")
            }
            Some(Member { id, cluster, checksum }) => {
                format!("{} of cluster {cluster:?} with checksum {checksum}", Who::Node(*id))
            }
        }
    }
}

impl DataDir {
    /// Opens the directory of a database or a node, or makes it.
    pub(crate) fn open(path: &Path, pair: Pair, here: Owner) -> Result<DataDir, OpenError> {
        if here.durability == Durability::Async && !has_cut(pair) {
            return Err(OpenError::NoCut(pair));
        }
        let failed = |path: PathBuf| move |error| OpenError::DataDir(path, error);
        fs::create_dir_all(path).map_err(failed(path.to_owned()))?;
        let owner_path = path.join("owner");
        // Before any lock is taken, so that a stranger's directory gets no directories of shards;
        // and again when the first lock is there: of two processes that begin at the same time one
        // makes the file.
        let check = |owner: &Owner| {
            let Owner { database, begun, ref met, .. } = *owner;
            match *owner == (Owner { database, begun, met: met.clone(), ..here.clone() }) {
                true => Ok(()),
                false => Err(OpenError::OtherDatabase { path: path.to_owned(), is: owner.describe() }),
            }
        };
        read(&owner_path)?.as_ref().map(check).transpose()?;
        let directory = |shard: usize| {
            Directory::open(&of(path, shard)).map_err(|error| OpenError::Directory(error.to_string()))
        };
        let first = directory(here.shards.start)?;
        let owner = match read(&owner_path)? {
            Some(owner) => owner,
            None => {
                write(path, &owner_path, &here).map_err(failed(owner_path.clone()))?;
                here.clone()
            }
        };
        check(&owner)?;
        let others = here.shards.clone().skip(1).map(directory).collect::<Result<Vec<_>, _>>()?;
        let directories = [first].into_iter().chain(others).collect();
        // A process may have ended between making a directory and making its name durable.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        for directory in [parent.unwrap_or(Path::new(".")), path] {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(failed(directory.to_owned()))?;
        }
        if owner.begun
            && let Some(shard) = here.shards.clone().find(|&shard| !has_log(path, shard))
        {
            let why = format!("the directory {} has none: bring its files back", of(path, shard).display());
            return Err(OpenError::Log { shard: shard as u16, why });
        }
        Ok(DataDir { path: path.to_owned(), owner, directories })
    }

    /// The number that tells its data from any other.
    pub(crate) fn memory(&self) -> u64 {
        self.owner.database
    }

    /// Whether its logs go to a cut.
    pub(crate) fn is_to_cut(&self) -> bool {
        self.owner.durability == Durability::Async
    }

    /// The same of other nodes, by node, as far as they were met.
    pub(crate) fn met(&self) -> Vec<(u16, u64)> {
        self.owner.met.clone()
    }

    /// What a shard's log belongs to.
    pub(crate) fn log_of(&self, shard: u16) -> Identity {
        self.owner.identity(shard)
    }

    /// What changes the file `owner` later. The directories stay with the shards.
    pub(crate) fn notes(&self) -> Notes {
        Notes { path: self.path.clone(), owner: self.owner.clone() }
    }
}

/// What a process notes in its directory while it runs.
pub(crate) struct Notes {
    path: PathBuf,
    owner: Owner,
}

impl Notes {
    /// See [`DataDir::memory`].
    pub(crate) fn memory(&self) -> u64 {
        self.owner.database
    }

    /// Every shard has a log by now. From now on a directory without one has lost it.
    pub(crate) fn begun(&mut self) -> Result<(), OpenError> {
        let all = self.owner.shards.clone().all(|shard| has_log(&self.path, shard));
        self.note(Owner { begun: all, ..self.owner.clone() })
    }

    /// Other nodes, by their numbers, have directories with these numbers.
    pub(crate) fn met(&mut self, met: Vec<(u16, u64)>) -> Result<(), OpenError> {
        self.note(Owner { met, ..self.owner.clone() })
    }

    fn note(&mut self, owner: Owner) -> Result<(), OpenError> {
        if owner != self.owner {
            let path = self.path.join("owner");
            write(&self.path, &path, &owner).map_err(|error| OpenError::DataDir(path, error))?;
            self.owner = owner;
        }
        Ok(())
    }
}

/// What there is to say of a data directory.
#[derive(Debug)]
pub struct Verified {
    /// Whose it is.
    pub owner: String,
    /// By shard.
    pub shards: Vec<VerifiedShard>,
}

/// What there is to say of the directory of a shard.
#[derive(Debug)]
pub struct VerifiedShard {
    /// Its number in the whole database.
    pub shard: usize,
    /// The directory.
    pub directory: PathBuf,
    /// `None` if it has no log.
    pub report: Option<Report>,
    /// Whether something is wrong.
    pub good: bool,
}

/// Looks all files of a data directory through, and changes nothing. `begins` is called with the
/// position of each shard among those of the directory, and how many there are. Fails if the
/// directory cannot be read, or a process has it.
pub fn verify(path: &Path, mut begins: impl FnMut(usize, usize)) -> Result<Verified, OpenError> {
    let owner_path = path.join("owner");
    let Some(owner) = read(&owner_path)? else {
        return Err(OpenError::DataDir(owner_path, ErrorKind::NotFound.into()));
    };
    if owner.format != FORMAT {
        return Err(OpenError::OtherDatabase { path: path.to_owned(), is: owner.describe() });
    }
    if owner.shards.end > usize::from(u16::MAX) {
        let error = std::io::Error::new(ErrorKind::InvalidData, "it names more shards than there can be");
        return Err(OpenError::DataDir(owner_path, error));
    }
    let (count, mut shards) = (owner.shards.len(), Vec::new());
    for (position, shard) in owner.shards.clone().enumerate() {
        begins(position, count);
        let directory = of(path, shard);
        let report = match has_log(path, shard) {
            true => Some(look_through(&directory, shard, owner.identity(shard as u16))?),
            false => None,
        };
        let good = report.as_ref().map_or(!owner.begun, Report::is_good);
        shards.push(VerifiedShard { shard, directory, report, good });
    }
    Ok(Verified { owner: owner.describe(), shards })
}

fn look_through(path: &Path, shard: usize, identity: Identity) -> Result<Report, OpenError> {
    let directory = Directory::open(path).map_err(|error| OpenError::Directory(error.to_string()))?;
    let maker = Box::new(Echo::default) as plimsoll_runtime::real::Maker<Echo>;
    let runtime = Runtime::with_disks(vec![maker], 1, None, vec![directory]).map_err(OpenError::Threads)?;
    let report = runtime.run_on(ShardId(0), move |env| async move {
        let disk = env.disk().expect("the shard has a directory");
        plimsoll_replication::verify(&disk, Some(identity)).await
    });
    report.map_err(|error| OpenError::Log { shard: shard as u16, why: error.to_string() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_nodes_and_one_process_has_it() {
        let path = std::env::temp_dir().join(format!("plimsoll-data-dir-{}", std::process::id()));
        let cluster = |name: &str, extra: &str| {
            let node = |id| format!("[[node]]\nid = {id}\naddress = \"127.0.0.1:700{id}\"\n");
            let text = format!("cluster = \"{name}\"\ndurability = \"sync\"\n{extra}{}{}", node(1), node(2));
            Cluster::parse(&text).unwrap()
        };
        let bank = cluster("bank", "");
        let claim = |path: &Path, cluster: &Cluster, node: u16| {
            let shard = usize::from(node) - 1;
            DataDir::open(path, cluster.pair, Owner::member(cluster, node, shard..shard + 1, 7))
        };
        let refused =
            |cluster: &Cluster, node| claim(&path, cluster, node).err().expect("refused").to_string();
        let held = claim(&path, &bank, 1).unwrap();
        let said = refused(&bank, 1);
        assert!(said.contains("in use"), "{said}");
        let mut notes = held.notes();
        notes.met(vec![(2, 11)]).unwrap();
        notes.begun().unwrap();
        drop(held);
        let again = claim(&path, &bank, 1).expect("its own");
        assert_eq!((again.memory(), again.met()), (7, vec![(2, 11)]));
        drop(again);
        let of_node_1 = "node 1 of cluster \"bank\"";
        for (cluster, node) in [(&bank, 2), (&cluster("shop", ""), 1), (&cluster("bank", "clients = 2\n"), 1)]
        {
            let said = refused(cluster, node);
            assert!(said.contains(of_node_1), "{said}");
        }
        assert!(!path.join("shard-00001").exists(), "who is refused leaves nothing behind");
        fs::write(path.join("owner"), "{").unwrap();
        assert!(refused(&bank, 1).contains("cannot be used"));
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(refused(&bank, 1).contains("cannot be used"));
        fs::remove_file(&path).unwrap();
    }
}
