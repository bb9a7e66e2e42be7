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
//! assert_eq!(file.num_events(), 1);
//! assert_eq!(file.categories, ["kernel"]);
//! assert_eq!(file.metadata_json, r#"{"baseTimeNanoseconds":1000}"#);
//! # Ok::<(), moeprof_trace::TraceError>(())
//! ```
//!
//! The text is never in memory as a whole: [`source`] refills a buffer of about 1 MiB, [`json`] reads tokens from it,
//! [`event`] finds the values of one event, [`tables`] turns them into rows. The columns are what is kept.
//! `docs/native.md` says what each table holds, what is accepted with a notice and what is refused.
// One module may hold unsafe code: `predict::vectors`, which says why it is sound.
#![deny(unsafe_code)]

mod columns;
mod digits;
mod document;
mod error;
mod event;
mod fields;
mod formats;
mod gap;
mod inflate;
mod intern;
mod json;
mod metadata;
mod notices;
mod parts;
mod predict;
mod recover;
mod shapes;
mod source;
mod spellings;
mod tables;
mod text;
mod time;
mod values;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use arrow_array::RecordBatch;

pub use crate::error::{Position, TraceError};
pub use crate::notices::Notice;
pub use crate::tables::{Batch, DeviceTable, EventCount};

use crate::document::{Orders, Part, Reader, Sink};
use crate::error::Failure;
use crate::inflate::InflateLimits;
use crate::parts::Joined;
use crate::source::Source;

/// Threads that pay: further ones mostly wait for memory.
const MOST_THREADS: usize = 8;
/// Plain files from this size on are read in parts, and compressed ones from the other on a thread beside.
const PARTS_FROM: u64 = 16 << 20;
const INFLATE_BESIDE_FROM: u64 = 1 << 18;

/// How to read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    recover: bool,
    skip_categories: Vec<String>,
    chunk: usize,
    max_event_bytes: u64,
    inflate: InflateLimits,
    threads: usize,
    parts_from: u64,
    predict: bool,
    time_range: Option<(i64, i64)>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            recover: false,
            skip_categories: Vec::new(),
            chunk: source::CHUNK,
            max_event_bytes: 1 << 30,
            inflate: InflateLimits::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS),
            parts_from: PARTS_FROM,
            predict: true,
            time_range: None,
        }
    }
}

impl KinetoFile {
    /// Number of events.
    #[must_use]
    pub fn num_events(&self) -> usize {
        self.events.iter().map(RecordBatch::num_rows).sum()
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

    /// Keeps only events that lie in this time at least in part, from its start on and until before its end: ns as in
    /// `start_ns`. The others are only counted. Events without a time and those of phase M are kept.
    #[must_use]
    pub fn time_range(mut self, range: std::ops::Range<i64>) -> Self {
        self.time_range = Some((range.start, range.end));
        self
    }

    /// Asks for this many bytes at a time.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk = bytes;
        self
    }

    /// Refuses a single event or metadata value that is longer; 1 GiB by default, and never more than 2 GiB.
    #[must_use]
    pub fn max_event_bytes(mut self, bytes: u64) -> Self {
        self.max_event_bytes = bytes.min(i32::MAX as u64);
        self
    }

    /// Refuses compressed data that inflates to more; 64 GiB by default.
    #[must_use]
    pub fn max_inflated_bytes(mut self, bytes: u64) -> Self {
        self.inflate.max_bytes = bytes;
        self
    }

    /// Refuses compressed data that inflates to more than `ratio` times its size once there are `from` bytes of text;
    /// 400 times from 1 GiB on by default.
    #[must_use]
    pub fn max_inflate_ratio(mut self, ratio: u64, from: u64) -> Self {
        self.inflate.max_ratio = ratio;
        self.inflate.ratio_from = from;
        self
    }

    /// Uses at most so many threads; by default as many as there are cores, and at most 8. The result is the same.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Reads plain files of this size in parts, one for each thread; 16 MiB by default.
    #[must_use]
    pub fn parts_from(mut self, bytes: u64) -> Self {
        self.parts_from = bytes;
        self
    }

    /// Reads every event in the general way, which is slow; for tests, since the result is the same.
    #[doc(hidden)]
    #[must_use]
    pub fn predict(mut self, predict: bool) -> Self {
        self.predict = predict;
        self
    }

    fn orders(&self) -> Orders<'_> {
        Orders {
            recover: self.recover,
            skip: &self.skip_categories,
            max_event_bytes: self.max_event_bytes,
            predict: self.predict,
            range: self.time_range,
        }
    }
}

/// One file in columns; `docs/native.md` describes the tables.
#[derive(Debug)]
#[non_exhaustive]
pub struct KinetoFile {
    /// One row for each event that is kept, in as many batches as there were parts of the file.
    pub events: Vec<RecordBatch>,
    /// Distinct names.
    pub names: RecordBatch,
    /// Distinct pairs of process and thread.
    pub tracks: RecordBatch,
    /// Device, stream, grid and the like, for some events.
    pub device_args: DeviceTable,
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
    read_path(path, options).map_err(|failure| failure.of(path))
}

/// Reads from anywhere, on the calling thread; errors then name no file.
pub fn read_kineto_from(reader: impl Read, options: &ReadOptions) -> Result<KinetoFile, TraceError> {
    let read = || read_source(Source::new(Box::new(reader), options.chunk, options.inflate)?, options, None);
    read().map_err(|failure| failure.of(Path::new("")))
}

/// Reads a file and hands its events on in batches of about `rows` rows, so that no more than one is in memory.
///
/// `take` gets each batch; where it returns false, reading ends and None is returned. Otherwise what is returned has
/// everything but the events and the tables that belong to rows: names, tracks, metadata, notices, counts.
pub fn read_kineto_batches(
    path: &Path,
    options: &ReadOptions,
    rows: usize,
    mut take: impl FnMut(Batch) -> bool,
) -> Result<Option<KinetoFile>, TraceError> {
    let mut read = || {
        let file = File::open(path)?;
        let zipped = options.threads > 1 && is_zipped(&file)?;
        let sink = Sink { rows: rows.max(1), take: &mut take };
        let file = File::open(path)?;
        if zipped {
            return beside(file, options, |source| read_source(source, options, Some(sink)));
        }
        read_source(Source::new(Box::new(file), options.chunk, options.inflate)?, options, Some(sink))
    };
    match read() {
        Ok(file) => Ok(Some(file)),
        Err(Failure::Stopped) => Ok(None),
        Err(failure) => Err(failure.of(path)),
    }
}

fn is_zipped(file: &File) -> Result<bool, Failure> {
    let mut magic = Vec::with_capacity(inflate::GZIP.len());
    file.take(inflate::GZIP.len() as u64).read_to_end(&mut magic)?;
    Ok(magic == inflate::GZIP)
}

fn read_path(path: &Path, options: &ReadOptions) -> Result<KinetoFile, Failure> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    let size = if about.is_file() && options.threads > 1 { about.len() } else { 0 };
    if size >= options.parts_from.min(INFLATE_BESIDE_FROM) {
        let zipped = is_zipped(&file)?;
        file.rewind()?;
        if zipped {
            return beside(file, options, |source| read_source(source, options, None));
        }
        if size >= options.parts_from
            && let Some(joined) = parts::read(path, size, options.threads as u64, options)
        {
            return finish(joined, false);
        }
    }
    read_source(Source::new(Box::new(file), options.chunk, options.inflate)?, options, None)
}

/// Reads a compressed file, which another thread inflates.
fn beside<'a, T>(
    file: File,
    options: &ReadOptions,
    read: impl FnOnce(Source<'a>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let limits = options.inflate;
    std::thread::scope(|scope| {
        let (pipe, piped) = inflate::pipe();
        scope.spawn(move || inflate::inflate(file, limits, &pipe));
        read(Source::piped(piped, options.chunk))
    })
}

fn read_source<'a>(
    source: Source<'a>,
    options: &'a ReadOptions,
    sink: Option<Sink<'a>>,
) -> Result<KinetoFile, Failure> {
    let mut reader = Reader::new(source, options.orders(), Part::Whole);
    if let Some(sink) = sink {
        reader = reader.into_sink(sink);
    }
    reader.read()?;
    reader.hand_on_rest()?;
    let (bytes_read, partial) = (reader.bytes_read(), reader.partial);
    let Reader { tables, notices, metadata, .. } = reader;
    finish(Joined { tables, rows: Vec::new(), notices, metadata, bytes_read }, partial)
}

fn finish(joined: Joined, partial: bool) -> Result<KinetoFile, Failure> {
    let tables = joined.tables.finish(joined.rows).map_err(|error| Failure::Io(std::io::Error::other(error)))?;
    Ok(KinetoFile {
        events: tables.events,
        names: tables.names,
        tracks: tables.tracks,
        device_args: tables.device_args,
        collective_args: tables.collective_args,
        labels: tables.labels,
        categories: tables.categories,
        phases: tables.phases,
        metadata_json: joined.metadata.into_json(),
        notices: joined.notices.into_vec(),
        event_counts: tables.event_counts,
        partial,
        bytes_read: joined.bytes_read,
    })
}
