//! Where the password of a user comes from: the configuration, or the environment's
//! `DIKE_PASSWORD`, or, where PostgreSQL's protocol is spoken, the [password file][pgpass] that
//! PostgreSQL's own programs read. So it need not stand in a command line, which every user of the
//! machine can read, nor in the file of a benchmark, which is passed on.
//!
//! A line of the password file is `host:port:database:user:password`. The first line whose four
//! fields are equal, or `*`, is taken; `\\` and `\:` stand for a backslash and a colon. A file that
//! others than its owner may read is passed over, as PostgreSQL does, and the refusal of the server
//! then says so.
//!
//! [pgpass]: https://www.postgresql.org/docs/current/libpq-pgpass.html

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Family;
use crate::config::{Secret, Target};

/// What the environment says, by name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A password, or why a file that may hold one was not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Nothing if there is none.
    pub password: Secret,
    /// What is said behind the server's refusal.
    pub remark: Option<String>,
}

/// Finds the password for an endpoint of a target.
pub fn find(target: &Target, host: &str, port: u16, environment: Environment<'_>) -> Found {
    let here = |password: Secret| Found { password, remark: None };
    if target.password.is_there() {
        return here(target.password.clone());
    }
    if let Some(password) = environment("DIKE_PASSWORD").filter(|password| !password.is_empty()) {
        return match password.to_str() {
            Some(password) => here(password.into()),
            None => Found { remark: Some("DIKE_PASSWORD is not UTF-8".to_owned()), ..Found::default() },
        };
    }
    let file = environment("PGPASSFILE").filter(|file| !file.is_empty()).map(PathBuf::from);
    let file = file.or_else(|| Some(Path::new(&environment("HOME")?).join(".pgpass")));
    match file.filter(|_| target.kind.family() == Family::Postgres) {
        Some(file) => in_file(&file, [host, &port.to_string(), &target.database, &target.user]),
        None => Found::default(),
    }
}

/// What a password file says of an endpoint.
fn in_file(file: &Path, wanted: [&str; 4]) -> Found {
    // A file that is not there is the usual case.
    let Ok(metadata) = std::fs::metadata(file) else { return Found::default() };
    let passed_over = |why: &str| {
        let remark = format!("the password file {} was passed over, {why}", file.display());
        Found { remark: Some(remark), ..Found::default() }
    };
    if !metadata.is_file() {
        return passed_over("because it is no plain file");
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return passed_over("because others than its owner may use it: `chmod 600` it");
    }
    match std::fs::read_to_string(file) {
        Ok(text) => Found { password: look_up(&text, wanted).unwrap_or_default(), remark: None },
        Err(error) => passed_over(&format!("because it cannot be read: {error}")),
    }
}

/// The password of the first line that fits.
fn look_up(text: &str, wanted: [&str; 4]) -> Option<Secret> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, names) = fields.split_last().filter(|(_, names)| names.len() == wanted.len())?;
        let fits =
            names.iter().zip(wanted).all(|((name, plain), wanted)| (*plain && name == "*") || name == wanted);
        fits.then(|| Secret::from(password.0.as_str()))
    })
}

/// The fields of a line, and whether each stands there without a backslash: `\*` is no wildcard.
/// The last one takes all that is left.
fn fields(line: &str) -> Vec<(String, bool)> {
    const COUNT: usize = 5;
    let mut fields = vec![(String::new(), true)];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let count = fields.len();
        let Some((field, plain)) = fields.last_mut() else { break };
        match letter {
            ':' if count < COUNT => fields.push((String::new(), true)),
            '\\' => {
                field.extend(letters.next());
                *plain = false;
            }
            _ => field.push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Kind;

    const WANTED: [&str; 4] = ["db1", "5432", "dike", "me"];

    fn looked_up(text: &str) -> Option<String> {
        look_up(text, WANTED).map(|password| password.reveal().to_owned())
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        assert_eq!(looked_up("db1:5432:dike:me:a\ndb1:5432:dike:me:b").as_deref(), Some("a"));
        assert_eq!(looked_up("# db1:5432:dike:me:a\n\ndb2:*:*:*:b\n*:*:*:me:c").as_deref(), Some("c"));
        assert_eq!(looked_up("db1:5432:dike:me:a\\:b\\\\c:d\r\n").as_deref(), Some("a:b\\c:d"));
        assert_eq!(looked_up("db1:5433:*:*:a\ndb1:5432:dike:me\n\\*:*:*:*:b"), None);
    }

    #[test]
    fn what_is_nearer_goes_before() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(".pgpass");
        std::fs::write(&file, "127.0.0.1:5432:dike:dike:of the file\n").expect("written");
        let mode =
            |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
        mode(0o600);
        let home = directory.path().as_os_str().to_owned();
        let at_home = |name: &str| (name == "HOME").then(|| home.clone());
        let outside = |name: &str| match name {
            "DIKE_PASSWORD" => Some("of the environment".into()),
            _ => at_home(name),
        };
        let found =
            |target: &Target, environment: Environment<'_>| find(target, "127.0.0.1", 5432, environment);
        let mut target = Target::default();
        assert_eq!(found(&target, &at_home).password.reveal(), "of the file");
        assert_eq!(found(&target, &outside).password.reveal(), "of the environment");
        let elsewhere = |name: &str| (name == "PGPASSFILE").then(|| file.as_os_str().to_owned());
        assert_eq!(found(&target, &elsewhere).password.reveal(), "of the file");
        assert_eq!(found(&target, &|_| None), Found::default());
        target.password = "of the configuration".into();
        assert_eq!(found(&target, &outside).password.reveal(), "of the configuration");
        let mysql = Target { kind: Kind::Mysql, ..Target::default() };
        assert_eq!(found(&mysql, &at_home), Found::default());

        // What others may read is not used.
        mode(0o640);
        let open = found(&Target::default(), &at_home);
        assert!(!open.password.is_there());
        assert!(open.remark.expect("a remark").contains("`chmod 600` it"));
    }
}
