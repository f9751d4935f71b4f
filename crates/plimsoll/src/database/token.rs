//! Tokens: what a session has seen, for another process to continue from.
//!
//! A session is a timestamp: the largest that its client was told of. Written down as a *token* it
//! can travel with a request from one server to the next, or in a browser's cookie. A session that
//! is begun with the token sees everything that the first session has written and read, whatever
//! the two clocks say and however old a snapshot is to be.
//!
//! Example. A's clock shows 100, and A commits at 100 and hands on a token that ends in
//! `-0000000000000064`. B's clock shows 98. A snapshot that B takes on its own is at 98 and does
//! not contain A's write; in a session with the token it is at 100.
//!
//! The token names its database: a timestamp of one says nothing about another. All that are
//! connected to one cluster have the same name for it, a checksum of the cluster's file; a database
//! within a process has that of its directory, or a random one, as its data is in no other. Of a
//! database whose transactions do not wait for the disk it also has the *era*, which is another
//! whenever the database is opened, or one of its nodes started again: then it goes back to a
//! timestamp.
//!
//! A token is not signed. A forged one can only make a snapshot fresher, at the price of waiting.
//! So a token may be half a second ahead of this process's clock at most, which is as far as clocks
//! may be apart. If a genuine token is further ahead, some clock is wrong, and the session could
//! not keep its promise: it is refused.
//!
//! Left out: gts, whose numbers begin at 1 again with the next life of its oracle, so that a
//! snapshot would wait for an old token for ever; and vts, whose snapshots are vectors. Under these
//! schemes a session ends with its process.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use plimsoll_txn::pairs::Scheme;
use plimsoll_txn::timestamp::MAX_OFFSET_NS;
use plimsoll_types::Timestamp;

use super::Database;

/// The beginning of every token: the version of the format.
const PREFIX: &str = "v2-";
/// Hexadecimal digits of each of its two numbers.
const DIGITS: usize = 16;

/// What a session has seen. As text it can be handed to another process: `v2-`, 16 hexadecimal
/// digits for the database, 16 for the time, and 16 more if the database has eras.
///
/// ```
/// # use plimsoll::{Database, IndexKind, Options, Schema, Token};
/// # let mut schema = Schema::new();
/// # schema.table("stock", IndexKind::Ordered)?;
/// # let db = Database::open(schema, Options::default())?;
/// let text = db.token()?.to_string();
/// // Elsewhere:
/// let session = db.session_with(text.parse()?)?;
/// # assert_eq!(session.token()?, text.parse::<Token>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// Which database's it is.
    database: u64,
    seen: Timestamp,
    /// Which of its histories; 0 if it has never lost what it answered.
    era: u64,
}

/// Why a session cannot be handed on, or continued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// The text is no token.
    Malformed,
    /// It is a token of another version of this library.
    Version,
    /// It is a token of another database.
    OtherDatabase,
    /// The database has gone back to a timestamp since: what the session has seen may be lost.
    Lost,
    /// Under this scheme a token has no meaning in another process.
    Scheme(Scheme),
    /// It is ahead of this process's clock by this duration, which is more than clocks may be
    /// apart.
    Ahead(Duration),
    /// The database was closed.
    Closed,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:0DIGITS$x}-{:0DIGITS$x}", self.database, self.seen.0)?;
        if self.era > 0 { write!(f, "-{:0DIGITS$x}", self.era) } else { Ok(()) }
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let Some(digits) = text.strip_prefix(PREFIX) else {
            let version = text.strip_prefix('v').and_then(|rest| rest.split_once('-'));
            let other = version.is_some_and(|(version, _)| version.parse::<u32>().is_ok());
            return Err(if other { TokenError::Version } else { TokenError::Malformed });
        };
        let (database, seen) = digits.split_once('-').ok_or(TokenError::Malformed)?;
        let (seen, era) = match seen.split_once('-') {
            Some((seen, era)) => match number(era)? {
                0 => return Err(TokenError::Malformed),
                era => (seen, era),
            },
            None => (seen, 0),
        };
        Ok(Token { database: number(database)?, seen: Timestamp(number(seen)?), era })
    }
}

/// The number of the era in which nodes have these lives, which all end with it. It is never 0.
pub(super) fn era(lives: &[u64]) -> u64 {
    let mixed = |sum: u64, life: &u64| (sum ^ life).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    lives.iter().fold(0, mixed).max(1)
}

fn number(digits: &str) -> Result<u64, TokenError> {
    // `from_str_radix` would accept a sign.
    if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(TokenError::Malformed);
    }
    u64::from_str_radix(digits, 16).map_err(|_| TokenError::Malformed)
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Malformed => {
                let one = Token { database: 0, seen: Timestamp::ZERO, era: 0 };
                write!(f, "this is no token of a session: one looks like {one}")
            }
            TokenError::Version => write!(
                f,
                "the token was made by another version of plimsoll: begin a session without it, or use the same version on both \
                 sides"
            ),
            TokenError::OtherDatabase => write!(
                f,
                "the token comes from another database, or from a former life of this one: begin a session without it"
            ),
            TokenError::Lost => write!(
                f,
                "the database was opened again after the token was made, and may have lost what the session has seen: look \
                 what is there, and begin a session without it"
            ),
            TokenError::Scheme(scheme) => write!(
                f,
                "a session cannot be handed to another process under {scheme}: choose the scheme dst, or read where it was written"
            ),
            TokenError::Ahead(by) => write!(
                f,
                "the token is {by:.1?} ahead of the clock here, and {:.1?} is the most: set the clocks right (`plimsoll status` shows \
                 those of the nodes), try again when that time is over, or begin a session without it",
                Duration::from_nanos(MAX_OFFSET_NS)
            ),
            TokenError::Closed => write!(f, "the database was closed"),
        }
    }
}

impl std::error::Error for TokenError {}

impl Database {
    /// What this session has seen so far, to be handed to another process:
    /// [`Database::session_with`]. [`TokenError::Scheme`] under gts and vts.
    pub fn token(&self) -> Result<Token, TokenError> {
        self.portable()?;
        Ok(Token {
            database: self.inner.identity,
            seen: Timestamp(self.seen.load(SeqCst)),
            era: self.inner.era,
        })
    }

    /// A handle with a session of its own that continues another session, of this process or of
    /// another that is connected to the same cluster: its snapshots and transactions see everything
    /// that was written or read there. [`TokenError::Scheme`] under gts and vts,
    /// [`TokenError::OtherDatabase`], [`TokenError::Lost`] if the database has gone back to a
    /// timestamp since, [`TokenError::Ahead`] if the promise could not be kept.
    pub fn session_with(&self, token: Token) -> Result<Database, TokenError> {
        self.portable()?;
        if token.database != self.inner.identity {
            return Err(TokenError::OtherDatabase);
        }
        if token.era != self.inner.era {
            return Err(TokenError::Lost);
        }
        // If the client cannot connect anew at present, the clock of its last engine will do.
        let running = self.inner.running().or_else(|_| self.inner.lives.as_it_is());
        let clock = running.map_err(|_| TokenError::Closed)?.clock();
        let ahead_ns = token.seen.0.saturating_sub(clock.0);
        if ahead_ns > MAX_OFFSET_NS {
            return Err(TokenError::Ahead(Duration::from_nanos(ahead_ns)));
        }
        let session = self.session();
        session.saw(token.seen);
        Ok(session)
    }

    /// Fails under gts and vts, where what a session has seen is not a time.
    fn portable(&self) -> Result<(), TokenError> {
        let pair = self.inner.options.pair;
        if pair.has_oracle() { Err(TokenError::Scheme(pair.scheme)) } else { Ok(()) }
    }
}
