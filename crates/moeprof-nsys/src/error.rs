//! What can go wrong with a database file, as one enum: slug, sentence, file and, where known, the byte.

use std::io;
use std::path::{Path, PathBuf};

/// Why a database could not be read.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum NsysError {
    /// The operating system refused the file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file, or the compressed data in it, ends inside the database.
    #[error("{} (byte {byte}): {message}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the bytes end.
        byte: u64,
        /// One sentence for a person.
        message: String,
    },
    /// Bytes that the file format does not allow.
    #[error("{} (byte {byte}): {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where the fault is, in the uncompressed file.
        byte: u64,
        /// One sentence for a person.
        message: String,
    },
    /// A database with a feature that is not read.
    #[error("{}: {message}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// One sentence for a person.
        message: String,
    },
    /// Not a `SQLite` database at all.
    #[error("{}: {message}", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// One sentence for a person.
        message: String,
    },
}

impl NsysError {
    /// Returns the stable identifier of the kind of error.
    #[must_use]
    pub fn slug(&self) -> &'static str {
        match self {
            Self::Io { .. } => "input-not-found",
            Self::Truncated { .. } => "trace-truncated",
            Self::Malformed { .. } => "trace-malformed",
            Self::Unsupported { .. } => "format-unsupported",
            Self::NotADatabase { .. } => "not-a-trace",
        }
    }

    /// Returns the sentence without file and position.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::Truncated { message, .. }
            | Self::Malformed { message, .. }
            | Self::Unsupported { message, .. }
            | Self::NotADatabase { message, .. } => message.clone(),
        }
    }

    /// Returns the file that the error is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Truncated { path, .. }
            | Self::Malformed { path, .. }
            | Self::Unsupported { path, .. }
            | Self::NotADatabase { path, .. } => path,
        }
    }

    /// Returns where in the uncompressed file the fault is, if it is anywhere.
    #[must_use]
    pub fn byte(&self) -> Option<u64> {
        match self {
            Self::Truncated { byte, .. } | Self::Malformed { byte, .. } => Some(*byte),
            Self::Io { .. } | Self::Unsupported { .. } | Self::NotADatabase { .. } => None,
        }
    }
}

/// An `NsysError` that does not know its file yet.
#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Truncated(u64, String),
    Malformed(u64, String),
    Unsupported(String),
    NotADatabase(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    pub(crate) fn of(self, path: &Path) -> NsysError {
        let path = path.to_path_buf();
        match self {
            Self::Io(source) => NsysError::Io { path, source },
            Self::Truncated(byte, message) => NsysError::Truncated { path, byte, message },
            Self::Malformed(byte, message) => NsysError::Malformed { path, byte, message },
            Self::Unsupported(message) => NsysError::Unsupported { path, message },
            Self::NotADatabase(message) => NsysError::NotADatabase { path, message },
        }
    }
}
