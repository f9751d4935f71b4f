//! `plimsoll secret`: makes the secret of a cluster.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use clap::Args;
use plimsoll_args::{Refusal, refuse};
use plimsoll_page::help;

/// Random bytes of a secret; as text it has twice as many.
const BYTES: usize = 32;

const EXAMPLES: &[(&str, &str)] = &[(
    "plimsoll secret bank.secret",
    "A new secret, for `secret_file = \"bank.secret\"` in a cluster's file. Copy it to every machine of the cluster.",
)];

/// The flags of `plimsoll secret`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct SecretArgs {
    /// The file to make. One that is there already is left as it is.
    pub file: PathBuf,
}

/// Makes a secret that nobody can guess, in a file that nobody else can read.
pub fn make(SecretArgs { file }: SecretArgs) -> Result<(), Refusal> {
    let place = file.display();
    let mut random = [0; BYTES];
    let drawn = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random));
    if let Err(error) = drawn {
        refuse!("the operating system gives no random numbers: {error}");
    }
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    let written = made.and_then(|mut made| {
        made.write_all(text.as_bytes())?;
        made.write_all(b"\n")?;
        made.sync_all()
    });
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            refuse!("{place} exists already: use it as it is, or give another name for a new secret")
        }
        Err(error) => refuse!("{place} cannot be written: {error}"),
    }
}
