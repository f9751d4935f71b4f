//! Why a database cannot be opened.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_runtime::real::Who;
use plimsoll_txn::pairs::{Pair, PairError, Scheme};

use crate::Durability;
use crate::schema::{SHARDS_MAX, STALENESS_MAX};

/// Why a database cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A database needs at least one shard.
    NoShards,
    /// A database has to admit at least one transaction.
    NoTransactions,
    /// More than [`SHARDS_MAX`] shards.
    TooManyShards {
        /// How many were asked for.
        shards: usize,
    },
    /// Versions cannot be kept for longer than [`STALENESS_MAX`].
    MaxStaleness {
        /// How long was asked for.
        asked: Duration,
    },
    /// There is no such protocol with such a scheme.
    Pair(PairError),
    /// Old versions were asked for, but the scheme has no snapshots of the past.
    NoStaleness {
        /// The scheme.
        scheme: Scheme,
    },
    /// An option of a client that its cluster decides, and has decided otherwise.
    ClusterDecides {
        /// The option.
        option: &'static str,
        /// What was asked for.
        asked: String,
        /// What the cluster has.
        has: String,
    },
    /// The operating system refused a thread, or a socket.
    Threads(io::Error),
    /// Without waiting for a disk nothing can be kept under this pair.
    NoCut(Pair),
    /// A database without a directory is to outlive its process.
    NoDirectory(Durability),
    /// A directory is given, and nothing is to be kept in it.
    DirectoryForNothing(PathBuf),
    /// A node of a cluster that keeps its data has no data directory.
    NoDataDir,
    /// A data directory for a node of a cluster that keeps nothing.
    NothingKept,
    /// A file of the data directory cannot be read or written.
    DataDir(PathBuf, io::Error),
    /// A shard's directory cannot be used; the text says which, and why.
    Directory(String),
    /// The data directory is that of another database.
    OtherDatabase {
        /// The directory.
        path: PathBuf,
        /// What it has.
        is: String,
    },
    /// The data directory has other tables.
    OtherTables {
        /// The position of the first table that differs, its name there, and its name here.
        table: (usize, String, String),
    },
    /// A shard's log cannot be read.
    Log {
        /// The shard.
        shard: u16,
        /// What is wrong, where, and the way out.
        why: String,
    },
    /// Nodes of a cluster could not be reached in time.
    Unreachable {
        /// Their numbers.
        nodes: Vec<u16>,
        /// How long it took to give up.
        waited: Duration,
    },
    /// All nodes are there, and do not serve the same state of the database yet: one of them was
    /// started again, and all go back to one timestamp.
    NotBack {
        /// How long it took to give up.
        waited: Duration,
    },
    /// A node refuses this client; the text says why.
    Refused(String),
    /// The cluster was found by addresses and has a secret, which nodes do not tell.
    NoSecret,
    /// All places for clients are taken.
    Full {
        /// How many there are.
        clients: usize,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoShards => write!(f, "a database needs at least one shard"),
            OpenError::NoTransactions => write!(f, "a database needs room for at least one transaction"),
            OpenError::TooManyShards { shards } => {
                write!(f, "{shards} shards are too many: at most {SHARDS_MAX}, better one per core")
            }
            OpenError::MaxStaleness { asked } => {
                write!(f, "old versions can be kept for {STALENESS_MAX:?}, not for {asked:?}")
            }
            OpenError::Pair(error) => error.fmt(f),
            OpenError::NoStaleness { scheme } => write!(
                f,
                "no snapshot begins in the past under {scheme}: ask for the newest, or choose the scheme dst"
            ),
            OpenError::ClusterDecides { option, asked, has } => write!(
                f,
                "a client cannot have `{option}` {asked}: its cluster decides, and has {has}; leave the option as it is by \
                 default"
            ),
            OpenError::NoCut(pair) => write!(
                f,
                "under {pair} a database cannot go back to one timestamp: choose occ or two_pl with dst or \
                 gts, client_2pc with dst, or durability sync"
            ),
            OpenError::NoDirectory(durability) => {
                write!(f, "durability {durability} needs a directory: give one, or leave the durability out")
            }
            OpenError::DirectoryForNothing(path) => write!(
                f,
                "durability none keeps nothing in {}: leave it or the directory out",
                path.display()
            ),
            OpenError::NoDataDir => f.write_str(
                "the nodes of this cluster keep what is committed (durability = \"sync\"): give this one a data directory",
            ),
            OpenError::NothingKept => f.write_str(
                "the nodes of this cluster keep nothing, so a data directory would stay empty: write \
                 durability = \"sync\" into the cluster's file, or leave the directory out",
            ),
            OpenError::DataDir(path, error) => {
                write!(f, "the data directory cannot be used: {}: {error}", path.display())
            }
            OpenError::Directory(why) => f.write_str(why),
            OpenError::OtherDatabase { path, is } => write!(
                f,
                "the data directory {} is of another database ({is}): open it as that, or choose another directory",
                path.display()
            ),
            OpenError::OtherTables { table: (position, there, here) } => write!(
                f,
                "table {position} is {there:?} in the data directory and {here:?} here, or is declared otherwise: \
                 declare the tables as they were"
            ),
            OpenError::Log { shard, why } => write!(f, "the log of shard {shard} cannot be read: {why}"),
            OpenError::Threads(error) => write!(f, "the shards' threads cannot be started: {error}"),
            OpenError::Unreachable { nodes, waited } => {
                let nodes: Vec<String> = nodes.iter().map(|&id| Who::Node(id).to_string()).collect();
                let nodes = nodes.join(", ");
                write!(f, "{nodes} could not be reached for {waited:.1?}: see that all of the cluster runs")
            }
            OpenError::NotBack { waited } => write!(
                f,
                "the nodes have not all come back to one timestamp after {waited:.1?}: `plimsoll status` says which of them \
                 reads its logs"
            ),
            OpenError::Refused(why) => write!(f, "a node refuses this client: {why}"),
            OpenError::NoSecret => write!(
                f,
                "the cluster has a secret, and this client was told none: give the file that \
                 has it when you look for the cluster"
            ),
            OpenError::Full { clients } => {
                write!(f, "all {clients} places for clients are taken; raise `clients` in the cluster's file")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Threads(error) => Some(error),
            _ => None,
        }
    }
}
