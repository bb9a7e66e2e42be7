//! The reader as its callers see it. Every text is read whole and in small pieces, and both must agree.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    reason = "these are tests"
)]

mod batches;
mod errors;
mod gzip;
mod layouts;
mod limits;
mod notices;
mod outcome;
mod parts;
mod predicted;
mod properties;
mod recovery;
mod tables;

use std::io::Read;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, UInt32Type};
use moeprof_trace::{KinetoFile, ReadOptions, TraceError, read_kineto_from};

pub use crate::outcome::outcome;

/// Gives its bytes away in pieces of at most so many.
pub struct Drip<'a>(pub &'a [u8], pub usize);

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(out.len()).min(self.0.len());
        let (now, later) = self.0.split_at(count);
        out[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

pub fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<KinetoFile, TraceError> {
    let whole = read_kineto_from(bytes, options);
    for piece in [1, 2, 3, 7] {
        let pieces = read_kineto_from(Drip(bytes, piece), &options.clone().chunk_bytes(piece));
        assert_eq!(outcome(&pieces), outcome(&whole), "in pieces of {piece}");
    }
    let plodding = read_kineto_from(bytes, &options.clone().predict(false));
    assert_eq!(outcome(&plodding), outcome(&whole), "without prediction");
    whole
}

pub fn read(text: impl AsRef<[u8]>) -> KinetoFile {
    read_with(text.as_ref(), &ReadOptions::new()).unwrap_or_else(|error| panic!("{error}"))
}

pub fn recover(text: impl AsRef<[u8]>) -> KinetoFile {
    read_with(text.as_ref(), &ReadOptions::new().recover(true)).unwrap_or_else(|error| panic!("{error}"))
}

/// Slug, byte, line and message of the error that a text must give.
pub fn refuse(text: impl AsRef<[u8]>) -> (&'static str, Option<(u64, u64)>, String) {
    let error = read_with(text.as_ref(), &ReadOptions::new()).expect_err("a text to be refused");
    (error.slug(), error.position().map(|at| (at.byte, at.line)), error.message())
}

/// Slug, count and first byte of each notice.
pub fn notices(file: &KinetoFile) -> Vec<(&'static str, u64, u64)> {
    file.notices.iter().map(|notice| (notice.slug, notice.count, notice.first.byte)).collect()
}

/// An object with these events and nothing else.
pub fn events(list: &str) -> String {
    format!("{{\"traceEvents\":[{list}]}}")
}

pub fn numbers<T: ArrowPrimitiveType>(batch: &RecordBatch, column: &str) -> Vec<Option<T::Native>> {
    batch.column_by_name(column).unwrap().as_primitive::<T>().iter().collect()
}

pub fn texts(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let array = batch.column_by_name(column).unwrap();
    match array.as_string_opt::<i32>() {
        Some(array) => array.iter().map(|text| text.map(str::to_owned)).collect(),
        None => array.as_string_view().iter().map(|text| text.map(str::to_owned)).collect(),
    }
}

pub fn names(file: &KinetoFile) -> Vec<String> {
    texts(&file.names, "name").into_iter().flatten().collect()
}

/// The events of a file that was read as one.
pub fn events_of(file: &KinetoFile) -> &RecordBatch {
    let [events] = &file.events[..] else { panic!("{} batches", file.events.len()) };
    events
}

/// The device args of a file that was read as one.
pub fn device_of(file: &KinetoFile) -> RecordBatch {
    file.device_args.to_batches().unwrap().remove(0)
}

/// The name of each event.
pub fn event_names(file: &KinetoFile) -> Vec<String> {
    let names = names(file);
    numbers::<UInt32Type>(events_of(file), "name")
        .into_iter()
        .map(|code| names[code.unwrap() as usize].clone())
        .collect()
}
