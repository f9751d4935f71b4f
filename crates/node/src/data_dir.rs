//! The directory of a node: whose it is, and that no other process has it.
//!
//! A lock on one file, held as long as the process lives and dropped by the operating system
//! whatever ends it; and a file that names the cluster and the node, written when the directory is
//! new. Two processes that wrote to one directory, or a node that began from another's files, would
//! be found out much later.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use plimsoll_engine::Cluster;
use plimsoll_runtime::real::Who;
use serde::{Deserialize, Serialize};

/// The version of the directory.
const FORMAT: u32 = 1;

/// Whose a directory is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Owner {
    format: u32,
    /// The cluster's name and checksum.
    cluster: String,
    cluster_id: String,
    node: u16,
}

/// Why a node may not have a directory.
#[derive(Debug)]
pub enum Refused {
    /// Another process has it.
    InUse(PathBuf),
    /// It belongs to another node, or to another cluster: to whom.
    Owned(PathBuf, String),
    /// It cannot be used at all.
    Io(PathBuf, io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::InUse(path) => write!(
                f,
                "the data directory {} is in use by another process: give each node one of its own",
                path.display()
            ),
            Refused::Owned(path, owner) => write!(
                f,
                "the data directory {} belongs to {owner}: give this node another, or remove that one if nobody needs it",
                path.display()
            ),
            Refused::Io(path, error) => {
                write!(f, "the data directory cannot be used: {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for Refused {}

/// A directory that no other process has.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
}

/// Takes a directory for a node, and makes it if there is none.
pub fn claim(path: &Path, cluster: &Cluster, node: u16) -> Result<Claim, Refused> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| Refused::Io(path, error)
    };
    fs::create_dir_all(path).map_err(at(path))?;
    let lock_path = path.join("lock");
    let lock = File::options().create(true).append(true).open(&lock_path).map_err(at(&lock_path))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Refused::InUse(path.to_owned()),
        TryLockError::Error(error) => Refused::Io(lock_path, error),
    })?;
    let me = Owner {
        format: FORMAT,
        cluster: cluster.name.clone(),
        cluster_id: format!("{:016x}", cluster.id),
        node,
    };
    let owner_path = path.join("node.json");
    match fs::read(&owner_path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            write_whole(path, &owner_path, &me).map_err(at(&owner_path))?;
        }
        Err(error) => return Err(Refused::Io(owner_path, error)),
        Ok(bytes) => {
            let owned = |what: String| Err(Refused::Owned(path.to_owned(), what));
            match serde_json::from_slice::<Owner>(&bytes) {
                Ok(owner) if owner == me => {}
                Ok(owner) if owner.format != FORMAT => {
                    return owned(format!("another version of plimsoll, with format {}", owner.format));
                }
                Ok(Owner { cluster, cluster_id, node, .. }) if (&cluster, node) == (&me.cluster, me.node) => {
                    return owned(format!(
                        "another version of cluster {cluster:?}, with checksum {cluster_id}"
                    ));
                }
                Ok(Owner { cluster, node, .. }) => {
                    return owned(format!("{} of cluster {cluster:?}", Who::Node(node)));
                }
                Err(error) => return owned(format!("nobody knows whom: node.json makes no sense, {error}")),
            }
        }
    }
    Ok(Claim { _lock: lock })
}

/// Either there is all of it, whatever happens meanwhile, or there is no such file.
fn write_whole(directory: &Path, path: &Path, owner: &Owner) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = File::create(&draft)?;
    file.write_all(serde_json::to_string(owner)?.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_nodes_and_one_process_has_it() {
        let path = std::env::temp_dir().join(format!("plimsoll-data-dir-{}", std::process::id()));
        let cluster = |name: &str, extra: &str| {
            let node = "[[node]]\nid = 1\naddress = \"127.0.0.1:7001\"\n";
            Cluster::parse(&format!("cluster = \"{name}\"\n{extra}{node}")).unwrap()
        };
        let bank = cluster("bank", "");
        let refused = |cluster: &Cluster, node| claim(&path, cluster, node).unwrap_err().to_string();
        let held = claim(&path, &bank, 1).unwrap();
        assert!(refused(&bank, 1).contains("in use by another process"));
        drop(held);
        drop(claim(&path, &bank, 1).expect("its own"));
        assert!(refused(&bank, 2).contains("belongs to node 1 of cluster \"bank\""));
        let oracle = path.join("oracle");
        drop(claim(&oracle, &bank, plimsoll_engine::ORACLE_ID).unwrap());
        let said = claim(&oracle, &bank, 1).unwrap_err().to_string();
        assert!(said.contains("belongs to the oracle of cluster \"bank\""), "{said}");
        assert!(refused(&cluster("shop", ""), 1).contains("belongs to node 1 of cluster \"bank\""));
        assert!(
            refused(&cluster("bank", "clients = 2\n"), 1).contains("another version of cluster \"bank\"")
        );
        fs::write(path.join("node.json"), "{").unwrap();
        assert!(refused(&bank, 1).contains("makes no sense"));
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(refused(&bank, 1).contains("cannot be used"));
        fs::remove_file(&path).unwrap();
    }
}
