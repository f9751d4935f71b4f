//! The rows of all tables as files, for databases that are loaded by tools of their own.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::encode::{Encoded, Encoder, Form};
use super::scale::Scale;
use super::{LoadError, population};
use crate::config::Data;
use crate::progress::Progress;
use crate::target::ddl;

/// Writes a file of comma-separated rows for each table; NULL is `\N`. Returns how many rows there
/// are.
pub fn write_csv(
    data: &Data,
    directory: &Path,
    stop: &AtomicBool,
    progress: Progress,
) -> Result<u64, LoadError> {
    let scale = Scale::new(data);
    let wrong = |path: &Path, error: std::io::Error| {
        LoadError::File(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| wrong(directory, error))?;
    let mut files = BTreeMap::new();
    for table in ddl::TABLES {
        let path = directory.join(format!("{}.csv", table.name));
        let file = std::fs::File::create(&path).map_err(|error| wrong(&path, error))?;
        files.insert(table.name, (path, file));
    }
    let mut line = progress.line("writing", u64::from(scale.warehouses) + 1);
    let mut rows = 0;
    for unit in 0..=scale.warehouses {
        for piece in population::pieces(&scale, unit) {
            if stop.load(Relaxed) {
                return Err(LoadError::File("interrupted: the files are not complete".to_owned()));
            }
            let mut encoder = Encoder::new(Form::Csv, piece.table());
            piece.write(&scale, &mut encoder);
            rows += encoder.rows();
            let (path, file) = files.get_mut(piece.table()).expect("every piece belongs to a table");
            if let Encoded::Csv(bytes) = encoder.finish() {
                file.write_all(&bytes).map_err(|error| wrong(path, error))?;
            }
        }
        line.show(u64::from(unit), || format!("{unit}/{} warehouses · {rows} rows", scale.warehouses));
    }
    Ok(rows)
}
