//! Looking a directory through without changing it.

use std::fmt;

use plimsoll_runtime::{Disk, FileName};

use crate::disk::{patiently, read_surely};
use crate::format::{Beginning, Link, SEGMENT_HEADER, beginning, number};
use crate::image::{check, finished, unfinished, whose};
use crate::read::{Segment, Walk, begun, limits};
use crate::{Identity, ImageError, LogError};

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A segment of the log.
    Segment {
        /// The index of its first entry.
        first: u64,
        /// The index behind its last one.
        next: u64,
        /// Bytes of a torn tail behind that, as far as can be told.
        torn: u64,
    },
    /// A segment that later ones replace.
    Void,
    /// A file with the name of a segment that was not begun.
    Unbegun,
    /// A spare.
    Spare,
    /// An image.
    Image {
        /// How many blocks it has.
        blocks: u64,
        /// Their bytes before they are compressed, and those of the header.
        bytes: u64,
    },
    /// An image that was not finished.
    Unfinished,
    /// A segment or an image that cannot be read.
    Unreadable,
    /// A file that belongs to neither.
    Other,
}

/// What is wrong with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// With a segment.
    Log(LogError),
    /// With an image.
    Image(ImageError),
}

/// What there is to say of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// The file.
    pub file: FileName,
    /// Its length in bytes.
    pub bytes: u64,
    /// What it is.
    pub what: What,
    /// What is wrong with it, if anything.
    pub wrong: Option<Wrong>,
}

/// What there is to say of a directory. As text it has a line for each file.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the files belong to; `None` if no file says that.
    pub identity: Option<Identity>,
    /// By name.
    pub lines: Vec<Line>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.lines.iter().all(|line| line.wrong.is_none())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes, ", self.file, self.bytes)?;
        match self.what {
            What::Segment { first, next, torn } => {
                write!(f, "entries {first} to {next}, the last not included")?;
                if torn > 0 {
                    write!(f, ", then {torn} bytes of a batch that is not whole")?;
                }
            }
            What::Void => f.write_str("a segment that later ones replace")?,
            What::Unbegun => f.write_str("a segment that was not begun")?,
            What::Spare => f.write_str("a spare segment")?,
            What::Image { blocks, bytes } => write!(f, "an image of {blocks} blocks with {bytes} bytes")?,
            What::Unfinished => f.write_str("an image that was not finished")?,
            What::Unreadable => f.write_str("unreadable")?,
            What::Other => f.write_str("a file of something else")?,
        }
        match self.wrong {
            Some(Wrong::Log(error)) => write!(f, ": {error}"),
            Some(Wrong::Image(error)) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

/// Looks all files of a log and all images through, and changes nothing. Without an identity they
/// are compared with the first one that a file names. The error is of the disk.
pub async fn verify(disk: &Disk, identity: Option<Identity>) -> Result<Report, LogError> {
    let files = patiently(|| disk.list()).await?;
    let mut identity = identity;
    for (file, _) in &files {
        let bytes = read_surely(disk, *file, 0, SEGMENT_HEADER).await?;
        if number(*file, "log-").is_some()
            && let Ok(Beginning::Header(header)) = beginning(&bytes)
        {
            identity = identity.or(Some(header.identity));
        } else if let Ok(Some((own, _))) = whose(&bytes) {
            identity = identity.or(Some(own));
        }
    }
    let mut lines = Vec::new();
    let mut segments: Vec<Segment> = Vec::new();
    // Without any identity there is nothing that could be whole.
    let own = identity.unwrap_or(Identity { database: 0, shard: 0, lineage: 0 });
    for (file, bytes) in files {
        let mut line = Line { file, bytes, what: What::Other, wrong: None };
        if let Some(sequence) = number(file, "log-") {
            line.what = What::Unbegun;
            match begun(disk, file, bytes, sequence, &own).await {
                Ok(Some(first)) => segments.push(Segment { file, size: bytes, sequence, first }),
                Ok(None) => {}
                Err(LogError::Disk(error)) => return Err(error.into()),
                Err(error) => (line.what, line.wrong) = (What::Unreadable, Some(Wrong::Log(error))),
            }
        } else if let Some(number) = finished(file) {
            match check(disk, &own, number, (file, bytes)).await {
                Ok((blocks, bytes)) => line.what = What::Image { blocks, bytes },
                Err(ImageError::Disk(error)) => return Err(error.into()),
                Err(error) => (line.what, line.wrong) = (What::Unreadable, Some(Wrong::Image(error))),
            }
        } else if number(file, "spare-").is_some() {
            line.what = What::Spare;
        } else if unfinished(file).is_some() {
            line.what = What::Unfinished;
        }
        lines.push(line);
    }
    let mut before: Option<Link> = None;
    for (segment, limit) in segments.iter().zip(limits(&segments)) {
        let line = lines.iter_mut().find(|line| line.file == segment.file).expect("a line for each file");
        if segment.first.at >= limit {
            line.what = What::Void;
            continue;
        }
        let link = segment.first;
        let mut walk = Walk::new(link, u64::MAX, |_, _: &[u8]| Ok(()));
        let (torn, mut wrong) = match walk.segment(disk, &own, segment, limit).await {
            Ok(tail) => (tail.torn(walk.link), None),
            Err(LogError::Disk(error)) => return Err(error.into()),
            Err(error) => (0, Some(error)),
        };
        if before.is_some_and(|before| before.at == link.at && before != link) {
            wrong = Some(LogError::Damaged { file: segment.file, offset: 0, index: link.at.index });
        }
        line.what = What::Segment { first: link.at.index, next: walk.link.at.index, torn };
        line.wrong = wrong.map(Wrong::Log);
        before = Some(walk.link);
    }
    Ok(Report { identity, lines })
}
