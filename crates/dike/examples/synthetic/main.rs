//! Writes what a run leaves behind, without a database: a JSON document and its page, of one
//! simulated run and of three databases compared. `cargo run -p plimsoll-dike --example
//! synthetic -- FOLDER`

mod world;

use std::path::PathBuf;

use plimsoll_dike::metrics::Document;
use plimsoll_dike::report::{html, table};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let documents = [
        ("single", Document { runs: vec![world::World::default().run(1)] }),
        ("comparison", Document { runs: world::comparison(120) }),
    ];
    for (name, document) in documents {
        std::fs::write(folder.join(format!("{name}.json")), document.to_json())?;
        std::fs::write(folder.join(format!("{name}.html")), html::render(&document))?;
        println!("{}", table::render(&document, 100));
    }
    Ok(())
}
