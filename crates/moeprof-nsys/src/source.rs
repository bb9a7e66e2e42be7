//! The bytes of a database: a plain file read by position, or a gzip file inflated into memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::Failure;

const GZIP: [u8; 2] = [0x1f, 0x8b];
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Where pages come from. Reads go by position, so that threads share it.
#[derive(Debug)]
pub(crate) enum Source {
    File { file: File, bytes: u64 },
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file; what is no database is told apart by its first bytes, before anything is inflated in full.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let mut file = File::open(path)?;
        let mut head = [0_u8; 16];
        let known = fill(&mut file, &mut head)?;
        if head.get(..known).is_some_and(|head| head.starts_with(&GZIP)) {
            return Self::inflated(path);
        }
        check(head.get(..known).unwrap_or_default())?;
        let bytes = file.metadata()?.len();
        Ok(Self::File { file, bytes })
    }

    fn inflated(path: &Path) -> Result<Self, Failure> {
        let mut text = MultiGzDecoder::new(File::open(path)?);
        let mut head = [0_u8; 16];
        let known = fill(&mut text, &mut head).map_err(|error| cut(0, &error))?;
        let head = head.get(..known).unwrap_or_default();
        check(head)?;
        let mut all = head.to_vec();
        match text.read_to_end(&mut all) {
            Ok(_) => Ok(Self::Memory(all)),
            Err(error) => Err(cut(all.len() as u64, &error)),
        }
    }

    /// Returns how many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Memory(all) => all.len() as u64,
        }
    }

    /// Fills a buffer from a position on.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<(), Failure> {
        match self {
            Self::File { file, bytes } => read_file(file, buffer, at).map_err(|error| ended(error, *bytes)),
            Self::Memory(all) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX);
                let part = all.get(from..).and_then(|rest| rest.get(..buffer.len()));
                let part = part.ok_or_else(|| ended(io::ErrorKind::UnexpectedEof.into(), all.len() as u64))?;
                buffer.copy_from_slice(part);
                Ok(())
            }
        }
    }
}

#[cfg(unix)]
fn read_file(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_file(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, buffer, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[read..];
        at += read as u64;
    }
    Ok(())
}

fn ended(error: io::Error, bytes: u64) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Failure::Truncated(bytes, "the file ends inside the database".to_owned());
    }
    Failure::Io(error)
}

fn cut(at: u64, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Failure::Truncated(at, "the gzip stream ends early".to_owned());
    }
    Failure::Malformed(at, format!("the gzip stream is damaged: {error}"))
}

fn check(head: &[u8]) -> Result<(), Failure> {
    if head.starts_with(MAGIC) {
        return Ok(());
    }
    Err(Failure::NotADatabase("the file is no SQLite database".to_owned()))
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut known = 0;
    while let Some(rest) = buffer.get_mut(known..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(read) => known += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(known)
}
