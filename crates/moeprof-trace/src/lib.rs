//! Reads Kineto traces (the JSON of `torch.profiler`, plain or gzip) into Arrow columns, in one pass over the bytes.
//!
//! ```
//! use moeprof_trace::{ReadOptions, read_kineto_from};
//!
//! let text = br#"{"traceEvents": [
//!   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5.120, "dur": 1.001,
//!    "args": {"device": 0, "stream": 7, "correlation": 42}}
//! ], "baseTimeNanoseconds": 1000}"#;
//! let file = read_kineto_from(&text[..], &ReadOptions::new())?;
//! assert_eq!(file.events.num_rows(), 1);
//! assert_eq!(file.categories, ["kernel"]);
//! assert_eq!(file.metadata_json, r#"{"baseTimeNanoseconds":1000}"#);
//! # Ok::<(), moeprof_trace::TraceError>(())
//! ```
//!
//! The text is never in memory as a whole: [`source`] refills a buffer of about 1 MiB, [`json`] reads tokens from it,
//! [`event`] finds the values of one event, [`tables`] turns them into rows. The columns are what is kept.
//! `docs/native.md` says what each table holds, what is accepted with a notice and what is refused.
#![forbid(unsafe_code)]

mod columns;
mod document;
mod error;
mod event;
mod fields;
mod intern;
mod json;
mod layout;
mod metadata;
mod notices;
mod recover;
mod source;
mod tables;
mod time;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use arrow_array::RecordBatch;

pub use crate::error::{Position, TraceError};
pub use crate::notices::Notice;
pub use crate::tables::EventCount;

use crate::document::Reader;
use crate::error::Failure;
use crate::source::Source;

/// How to read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    recover: bool,
    skip_categories: Vec<String>,
    chunk: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { recover: false, skip_categories: Vec::new(), chunk: source::CHUNK }
    }
}

impl ReadOptions {
    /// Strict, all categories.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops malformed events and accepts a cut file; [`KinetoFile::partial`] then tells.
    #[must_use]
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Counts events of these categories without storing them.
    #[must_use]
    pub fn skip_categories<S: Into<String>>(mut self, categories: impl IntoIterator<Item = S>) -> Self {
        self.skip_categories = categories.into_iter().map(Into::into).collect();
        self
    }

    /// Asks for this many bytes at a time.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk = bytes;
        self
    }
}

/// One file in columns; `docs/native.md` describes the tables.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KinetoFile {
    /// One row for each event that is kept.
    pub events: RecordBatch,
    /// Distinct names.
    pub names: RecordBatch,
    /// Distinct pairs of process and thread.
    pub tracks: RecordBatch,
    /// Device, stream, grid and the like, for some events.
    pub device_args: RecordBatch,
    /// Collective communication, for few events.
    pub collective_args: RecordBatch,
    /// Names of processes and threads.
    pub labels: RecordBatch,
    /// Categories of the events that are kept.
    pub categories: Vec<String>,
    /// Phases of the events that are kept.
    pub phases: Vec<String>,
    /// Every top-level key but `traceEvents`, as one JSON object.
    pub metadata_json: String,
    /// What was accepted although it is not as it should be.
    pub notices: Vec<Notice>,
    /// Events by category.
    pub event_counts: Vec<EventCount>,
    /// Whether something was dropped or cut off.
    pub partial: bool,
    /// Size of the uncompressed text.
    pub bytes_read: u64,
}

/// Reads a file, which is gzip where its first two bytes say so.
pub fn read_kineto(path: &Path, options: &ReadOptions) -> Result<KinetoFile, TraceError> {
    let file = File::open(path).map_err(|error| Failure::Io(error).of(path))?;
    read(Box::new(file), options).map_err(|failure| failure.of(path))
}

/// Reads from anywhere; errors then name no file.
pub fn read_kineto_from(reader: impl Read, options: &ReadOptions) -> Result<KinetoFile, TraceError> {
    read(Box::new(reader), options).map_err(|failure| failure.of(Path::new("")))
}

fn read<'a>(input: Box<dyn Read + 'a>, options: &'a ReadOptions) -> Result<KinetoFile, Failure> {
    let source = Source::new(input, options.chunk).map_err(Failure::Io)?;
    let mut reader = Reader::new(source, options.recover, &options.skip_categories);
    reader.read()?;
    let bytes_read = reader.bytes_read();
    let tables = reader.tables.finish().map_err(|error| Failure::Io(std::io::Error::other(error)))?;
    Ok(KinetoFile {
        events: tables.events,
        names: tables.names,
        tracks: tables.tracks,
        device_args: tables.device_args,
        collective_args: tables.collective_args,
        labels: tables.labels,
        categories: tables.categories,
        phases: tables.phases,
        metadata_json: reader.metadata.into_json(),
        notices: reader.notices.into_vec(),
        event_counts: tables.event_counts,
        partial: reader.partial,
        bytes_read,
    })
}
