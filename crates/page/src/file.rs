//! Files that appear wholly or not at all.
//!
//! A report is written to a temporary file beside its destination and renamed over it, so that a
//! reader never sees half of one and a failed run leaves the previous one untouched.
//! [`check_writable`] finds out *before* a long run whether that will work, by making such a
//! temporary file and removing it again.
//!
//! A destination that exists and is not a regular file (`/dev/stdout`, a named pipe) is written to
//! directly: renaming over it would replace the device itself. A symbolic link is followed.
//!
//! Left out: `fsync`. A report that a power failure takes away can be made again.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a file cannot be written, as a sentence.
#[derive(Debug)]
pub struct Unwritable {
    /// What cannot be written.
    pub path: PathBuf,
    /// Why.
    pub cause: Cause,
}

/// The causes that deserve words of their own, and the rest.
#[derive(Debug)]
pub enum Cause {
    /// The path names a directory, or nothing at all.
    NotAFile,
    /// The directory does not exist.
    NoDirectory(PathBuf),
    /// What the operating system said.
    Io(io::Error),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.cause {
            Cause::NotAFile => write!(f, "cannot write {path}: it is not the name of a file"),
            Cause::NoDirectory(directory) => {
                write!(f, "cannot write {path}: the directory {} does not exist", directory.display())
            }
            Cause::Io(error) => write!(f, "cannot write {path}: {error}"),
        }
    }
}

impl std::error::Error for Unwritable {}

/// Where the bytes go first.
enum Destination {
    /// Beside the final place, which a rename then fills.
    Renamed { temporary: PathBuf, to: PathBuf },
    /// Straight to a device or a pipe.
    Direct(PathBuf),
}

/// Whether [`write_whole`] would succeed now. Leaves nothing behind.
pub fn check_writable(path: &Path) -> Result<(), Unwritable> {
    let error = |cause| Unwritable { path: path.to_owned(), cause };
    let destination = destination(path).map_err(error)?;
    // A pipe is not tried: opening one waits for its reader.
    let Destination::Renamed { temporary, .. } = destination else { return Ok(()) };
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|_| fs::remove_file(&temporary))
        .map_err(|cause| error(Cause::Io(cause)))
}

/// Writes a whole file, or leaves what was there as it was.
pub fn write_whole(path: &Path, contents: &str) -> Result<(), Unwritable> {
    let error = |cause| Unwritable { path: path.to_owned(), cause };
    let result = match destination(path).map_err(error)? {
        Destination::Direct(device) => OpenOptions::new()
            .write(true)
            .open(device)
            .and_then(|mut file| file.write_all(contents.as_bytes())),
        Destination::Renamed { temporary, to } => {
            let written = fs::write(&temporary, contents).and_then(|()| fs::rename(&temporary, &to));
            if written.is_err() {
                // The first error is the one to report; the file may not even exist.
                let _ = fs::remove_file(&temporary);
            }
            written
        }
    };
    result.map_err(|cause| error(Cause::Io(cause)))
}

fn destination(path: &Path) -> Result<Destination, Cause> {
    let to = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(Cause::NotAFile),
        Ok(metadata) if !metadata.is_file() => return Ok(Destination::Direct(path.to_owned())),
        Ok(_) => fs::canonicalize(path).map_err(Cause::Io)?,
        Err(_) => path.to_owned(),
    };
    let Some(name) = to.file_name() else { return Err(Cause::NotAFile) };
    let directory = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(Cause::NoDirectory(directory.to_owned()));
    }
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.part", std::process::id()));
    Ok(Destination::Renamed { temporary: directory.join(temporary), to })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fresh directory of this test's own.
    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("plimsoll-file-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a scratch directory");
        directory
    }

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).expect("readable").count()
    }

    #[test]
    fn checking_a_path_leaves_nothing_behind() {
        let directory = scratch("check");
        check_writable(&directory.join("report.html")).expect("writable");
        assert_eq!(entries(&directory), 0);
    }

    #[test]
    fn a_file_is_replaced_wholly() {
        let directory = scratch("replace");
        let path = directory.join("report.html");
        write_whole(&path, "long old contents").expect("written");
        write_whole(&path, "new").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "new");
        assert_eq!(entries(&directory), 1);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let directory = scratch("missing");
        let path = directory.join("no/such/report.html");
        let sentence = check_writable(&path).expect_err("refused").to_string();
        assert!(sentence.ends_with("no/such does not exist"), "{sentence}");
        assert!(write_whole(&path, "").is_err());
    }

    #[test]
    fn a_directory_is_not_a_file() {
        let directory = scratch("directory");
        let sentence = check_writable(&directory).expect_err("refused").to_string();
        assert!(sentence.ends_with("is not the name of a file"), "{sentence}");
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_links_are_written_through() {
        write_whole(Path::new("/dev/null"), "gone").expect("written");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
        let directory = scratch("link");
        let (target, link) = (directory.join("target"), directory.join("link"));
        fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        write_whole(&link, "new").expect("written");
        assert_eq!(fs::read_to_string(&target).expect("readable"), "new");
    }
}
