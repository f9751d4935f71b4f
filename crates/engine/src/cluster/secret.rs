//! The secret of a cluster, in a file of its own.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{ClusterError, content};

/// Bits of a file's mode by which others than its owner and its group read it, or others than its
/// owner write it.
const TOO_OPEN: u32 = 0o027;

/// Reads a secret, which no other user of the machine may read or change.
pub(super) fn secret(path: &Path) -> Result<Vec<u8>, ClusterError> {
    let place = path.display();
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|mut file| {
        file.read_to_end(&mut bytes)?;
        Ok(file.metadata()?.permissions().mode())
    });
    let mode = match read {
        Ok(mode) => mode,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return content(format!(
                "there is no secret in {place}: make one with `plimsoll secret {place}`"
            ));
        }
        Err(error) => return Err(ClusterError::Read(path.to_owned(), error)),
    };
    if mode & TOO_OPEN != 0 {
        return content(format!(
            "{place}: other users of this machine can read or change the secret; close it with `chmod 600 {place}`"
        ));
    }
    // Editors end the line.
    let secret = bytes.trim_ascii_end().to_vec();
    match secret.len() {
        16.. => Ok(secret),
        n => content(format!(
            "{place}: a secret of {n} bytes can be guessed; give 16 or more, as `plimsoll secret` makes them"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cluster, tests::NODE};
    use super::*;

    #[test]
    fn a_secret_is_found_beside_the_file_and_is_not_short() {
        let directory = std::env::temp_dir().join(format!("plimsoll-cluster-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("cluster.toml");
        std::fs::write(&path, format!("secret_file = \"secret\"\n{NODE}")).unwrap();
        let why = Cluster::read(&path).unwrap_err().to_string();
        assert!(why.contains("make one with `plimsoll secret "), "{why}");
        std::fs::write(directory.join("secret"), "0123456789abcdef\n").unwrap();
        let set_mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.join("secret"), permissions).unwrap();
        };
        for open in [0o644, 0o604, 0o602, 0o660, 0o666, 0o777, 0o620] {
            set_mode(open);
            let why = Cluster::read(&path).unwrap_err().to_string();
            assert!(why.contains("close it with `chmod 600 "), "{open:o}: {why}");
        }
        for closed in [0o600, 0o400, 0o640, 0o440] {
            set_mode(closed);
            assert_eq!(Cluster::read(&path).unwrap().secret.unwrap(), b"0123456789abcdef");
        }
        set_mode(0o600);
        std::fs::write(directory.join("secret"), "short\n").unwrap();
        let why = Cluster::read(&path).unwrap_err().to_string();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(why.contains("5 bytes"), "{why}");
    }
}
