//! What can go wrong, as one enum: each error has a stable slug, a sentence, the file and, where known, the position.

use std::io;
use std::path::{Path, PathBuf};

/// A place in the uncompressed text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Offset from 0.
    pub byte: u64,
    /// Line from 1.
    pub line: u64,
}

/// Why a file could not be read.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused the file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No bytes, or only white space.
    #[error("{}: {message}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// One sentence for a person.
        message: String,
    },
    /// The text or the compressed data ends inside the document.
    #[error("{}:{} (byte {}): {message}", path.display(), at.line, at.byte)]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the text ends.
        at: Position,
        /// One sentence for a person.
        message: String,
    },
    /// Another document follows the first.
    #[error("{}:{} (byte {}): {message}", path.display(), at.line, at.byte)]
    ManyDocuments {
        /// The file.
        path: PathBuf,
        /// Where the second document begins.
        at: Position,
        /// One sentence for a person.
        message: String,
    },
    /// Anything else that is not the grammar.
    #[error("{}:{} (byte {}): {message}", path.display(), at.line, at.byte)]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where the fault is.
        at: Position,
        /// One sentence for a person.
        message: String,
    },
    /// A format that is known, and not read.
    #[error("{}: {message}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Short name of the format: `SQLite`, `Parquet`, `zstd`, ...
        format: &'static str,
        /// One sentence for a person.
        message: String,
    },
    /// Well-formed perhaps, but not a Kineto trace.
    #[error("{}: {message}", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// One sentence for a person.
        message: String,
    },
}

impl TraceError {
    /// Returns the stable identifier of the kind of error.
    #[must_use]
    pub fn slug(&self) -> &'static str {
        match self {
            Self::Io { .. } => "input-not-found",
            Self::Empty { .. } => "trace-empty",
            Self::Truncated { .. } => "trace-truncated",
            Self::ManyDocuments { .. } => "trace-many-documents",
            Self::Malformed { .. } => "trace-malformed",
            Self::Unsupported { .. } => "format-unsupported",
            Self::NotATrace { .. } => "not-a-trace",
        }
    }

    /// Returns the sentence without file and position.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::Empty { message, .. }
            | Self::Truncated { message, .. }
            | Self::ManyDocuments { message, .. }
            | Self::Malformed { message, .. }
            | Self::Unsupported { message, .. }
            | Self::NotATrace { message, .. } => message.clone(),
        }
    }

    /// Returns the file that the error is about; empty where a plain reader was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Empty { path, .. }
            | Self::Truncated { path, .. }
            | Self::ManyDocuments { path, .. }
            | Self::Malformed { path, .. }
            | Self::Unsupported { path, .. }
            | Self::NotATrace { path, .. } => path,
        }
    }

    /// Returns where in the text the fault is, if it is anywhere.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Truncated { at, .. } | Self::ManyDocuments { at, .. } | Self::Malformed { at, .. } => Some(*at),
            Self::Io { .. } | Self::Empty { .. } | Self::Unsupported { .. } | Self::NotATrace { .. } => None,
        }
    }
}

/// A `TraceError` that does not know its file yet.
#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Empty(String),
    Truncated(Position, String),
    ManyDocuments(Position, String),
    Malformed(Position, String),
    Unsupported(&'static str, String),
    NotATrace(String),
    /// Not an error: a part of the text ended between two events, as it should.
    PartEnd,
    /// Not an error: whoever takes batches wants no more.
    Stopped,
    /// Not an error: a part of the text cannot be read by itself, so the file must be read as one.
    Indivisible,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    pub(crate) fn of(self, path: &Path) -> TraceError {
        let path = path.to_path_buf();
        match self {
            Self::Io(source) => TraceError::Io { path, source },
            Self::Empty(message) => TraceError::Empty { path, message },
            Self::Truncated(at, message) => TraceError::Truncated { path, at, message },
            Self::ManyDocuments(at, message) => TraceError::ManyDocuments { path, at, message },
            Self::Malformed(at, message) => TraceError::Malformed { path, at, message },
            Self::Unsupported(format, message) => TraceError::Unsupported { path, format, message },
            Self::NotATrace(message) => TraceError::NotATrace { path, message },
            Self::PartEnd | Self::Indivisible | Self::Stopped => {
                TraceError::Io { path, source: io::Error::other("parts") }
            }
        }
    }
}
