//! A large plain file in several parts at once, each by a thread of its own.
//!
//! The file is cut where an event seems to begin. That is a guess until the part before the cut has been read: a part
//! must end behind the comma that follows an event. The first part begins where the document does, so by induction
//! every cut is where the file, read as one, has an event. Where a part does not end so, or holds anything that stops
//! the reading, the file is read again as one, and that reading alone decides what is wrong with it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::ReadOptions;
use crate::document::{Part, Reader};
use crate::error::Failure;
use crate::metadata::Metadata;
use crate::notices::Notices;
use crate::recover::{Resume, Scan};
use crate::source::Source;
use crate::tables::{Rows, Tables};

/// How far an event is looked for behind the place where a cut should be.
const REACH: u64 = 1 << 20;

/// What was read from all parts.
pub(crate) struct Joined {
    pub(crate) tables: Tables,
    /// The rows of later parts.
    pub(crate) rows: Vec<Rows>,
    pub(crate) notices: Notices,
    pub(crate) metadata: Metadata,
    pub(crate) bytes_read: u64,
}

struct Piece {
    joined: Joined,
    lines: u64,
}

/// Reads a file in parts; None where it must be read as one.
pub(crate) fn read(path: &Path, size: u64, threads: u64, options: &ReadOptions) -> Option<Joined> {
    let bare = is_bare(path).ok()??;
    let mut cuts = vec![0];
    for index in 1..threads {
        let cut = find_cut(path, size / threads * index).ok()??;
        if cuts.last().is_some_and(|&last| cut > last) {
            cuts.push(cut);
        }
    }
    if cuts.len() < 2 {
        return None;
    }
    let ends = cuts.iter().skip(1).copied().map(Some).chain([None]);
    let pieces: Vec<Option<Piece>> = std::thread::scope(|scope| {
        let workers: Vec<_> = cuts
            .iter()
            .zip(ends)
            .map(|(&start, end)| scope.spawn(move || read_piece(path, start, end, bare, options)))
            .collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).collect()
    });
    join(pieces)
}

/// Puts the parts one behind the other. Their codes are made those of the whole file by a thread for each part; the rows
/// stay where they are.
fn join(pieces: Vec<Option<Piece>>) -> Option<Joined> {
    let mut pieces = pieces.into_iter();
    let Piece { mut joined, mut lines } = pieces.next()??;
    let mut total = joined.tables.num_events();
    let mut others = Vec::new();
    for piece in pieces {
        let Piece { joined: other, lines: more } = piece?;
        let codes = joined.tables.append(&other.tables, total)?;
        total += other.tables.num_events();
        joined.notices.append(other.notices, lines);
        joined.metadata.append(other.metadata);
        joined.bytes_read = other.bytes_read;
        lines += more;
        others.push((other.tables.into_rows(), codes));
    }
    let renumber = |mut rows: Rows, codes| rows.renumber(&codes).then_some(rows);
    let rows: Option<Vec<Rows>> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            others.into_iter().map(|(rows, codes)| scope.spawn(move || renumber(rows, codes))).collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).collect()
    });
    joined.rows = rows?;
    Some(joined)
}

fn read_piece(path: &Path, start: u64, end: Option<u64>, bare: bool, options: &ReadOptions) -> Option<Piece> {
    let part = match (start, end) {
        (0, _) => Part::First,
        (_, Some(_)) => Part::Middle,
        (_, None) => Part::Last,
    };
    let file = open_at(path, start).ok()?;
    let input: Box<dyn Read> = match end {
        Some(end) => Box::new(file.take(end - start)),
        None => Box::new(file),
    };
    let mut reader = Reader::new(Source::part(input, options.chunk, start), options.orders(), part);
    let outcome = if part == Part::First { reader.read() } else { reader.read_on(bare) };
    let whole = match outcome {
        Ok(()) => part == Part::Last && !reader.partial,
        Err(Failure::PartEnd) => part != Part::Last && Some(reader.bytes_read()) == end,
        Err(_) => false,
    };
    let (bytes_read, lines) = (reader.bytes_read(), reader.lines_read());
    let Reader { tables, notices, metadata, .. } = reader;
    whole.then_some(Piece { joined: Joined { tables, rows: Vec::new(), notices, metadata, bytes_read }, lines })
}

fn open_at(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

/// Tells whether the document is a bare array; None where it is neither an array nor an object.
fn is_bare(path: &Path) -> io::Result<Option<bool>> {
    let mut head = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut head)?;
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    Ok(match text.iter().find(|byte| !b" \n\r\t".contains(byte)) {
        Some(b'[') => Some(true),
        Some(b'{') => Some(false),
        _ => None,
    })
}

/// Finds a place where an event seems to begin.
fn find_cut(path: &Path, from: u64) -> io::Result<Option<u64>> {
    let mut text = Vec::new();
    open_at(path, from)?.take(REACH).read_to_end(&mut text)?;
    Ok(match Scan::new(&text, None, 0, false).resume(&text, true) {
        Resume::Event(at) => Some(from + at as u64),
        Resume::End(_) | Resume::Unknown(_) => None,
    })
}
