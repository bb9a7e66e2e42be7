//! The native readers for Python: [`moeprof_trace`] and [`moeprof_nsys`] behind Arrow capsules. No parsing happens here.

mod batches;
mod error;
mod nsys;
mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use moeprof_trace::ReadOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::batches::{KinetoBatch, KinetoBatches};
use crate::error::TraceFormatError;
use crate::nsys::{NsysDatabase, NsysTable};
use crate::stream::ArrowTable;

/// One Kineto file in columns. See docs/native.md for the tables.
#[pyclass(frozen, module = "moeprof._native")]
struct KinetoFile {
    #[pyo3(get)]
    events: Py<ArrowTable>,
    #[pyo3(get)]
    names: Py<ArrowTable>,
    #[pyo3(get)]
    tracks: Py<ArrowTable>,
    #[pyo3(get)]
    device_args: Py<ArrowTable>,
    #[pyo3(get)]
    collective_args: Py<ArrowTable>,
    #[pyo3(get)]
    labels: Py<ArrowTable>,
    #[pyo3(get)]
    categories: Vec<String>,
    #[pyo3(get)]
    phases: Vec<String>,
    #[pyo3(get)]
    metadata_json: String,
    #[pyo3(get)]
    notices: Vec<(String, u64, u64, u64, String)>,
    #[pyo3(get)]
    event_counts: Vec<(String, u64, u64)>,
    #[pyo3(get)]
    partial: bool,
    #[pyo3(get)]
    bytes_read: u64,
}

impl KinetoFile {
    fn new(py: Python<'_>, file: moeprof_trace::KinetoFile) -> PyResult<Self> {
        let table = |batch| Py::new(py, ArrowTable::new(vec![batch]));
        let notices = file.notices.into_iter();
        let counts = file.event_counts.into_iter();
        Ok(Self {
            events: Py::new(py, ArrowTable::new(file.events))?,
            names: table(file.names)?,
            tracks: table(file.tracks)?,
            device_args: Py::new(py, ArrowTable::device(file.device_args))?,
            collective_args: table(file.collective_args)?,
            labels: table(file.labels)?,
            categories: file.categories,
            phases: file.phases,
            metadata_json: file.metadata_json,
            notices: notices
                .map(|notice| {
                    (notice.slug.to_owned(), notice.count, notice.first.byte, notice.first.line, notice.example)
                })
                .collect(),
            event_counts: counts.map(|count| (count.category, count.kept, count.skipped)).collect(),
            partial: file.partial,
            bytes_read: file.bytes_read,
        })
    }
}

/// Runs the reader; None where it panics, which must not become Python's.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    // Nothing that the reader had is looked at again.
    catch_unwind(AssertUnwindSafe(read)).ok()
}

fn options(
    recover: bool,
    skip_categories: Vec<String>,
    time_range: Option<(i64, i64)>,
    max_event_bytes: u64,
) -> ReadOptions {
    let options = ReadOptions::new().recover(recover).skip_categories(skip_categories).max_event_bytes(max_event_bytes);
    match time_range {
        Some((from, until)) => options.time_range(from..until),
        None => options,
    }
}

/// Read a Kineto trace, plain or gzip, into columns.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "arguments are converted from Python, so they come by value")]
#[pyo3(
    signature = (path, *, recover = false, skip_categories = Vec::new(), time_range = None, max_event_bytes = 1 << 30),
    text_signature = "(path, *, recover=False, skip_categories=(), time_range=None, max_event_bytes=1073741824)"
)]
fn read_kineto(
    py: Python<'_>,
    path: PathBuf,
    recover: bool,
    skip_categories: Vec<String>,
    time_range: Option<(i64, i64)>,
    max_event_bytes: u64,
) -> PyResult<KinetoFile> {
    let options = options(recover, skip_categories, time_range, max_event_bytes);
    let file = py
        .detach(|| guarded(|| moeprof_trace::read_kineto(&path, &options)))
        .ok_or_else(error::failed)?
        .map_err(|error| error::to_python(py, &error))?;
    KinetoFile::new(py, file)
}

/// Read a Kineto trace in batches of about so many events, of which no more than a few are in memory.
#[pyfunction]
#[pyo3(
    signature = (
        path, *, rows = 1 << 18, recover = false, skip_categories = Vec::new(), time_range = None, max_event_bytes = 1 << 30
    ),
    text_signature = "(path, *, rows=262144, recover=False, skip_categories=(), time_range=None, max_event_bytes=1073741824)"
)]
fn read_kineto_batches(
    path: PathBuf,
    rows: usize,
    recover: bool,
    skip_categories: Vec<String>,
    time_range: Option<(i64, i64)>,
    max_event_bytes: u64,
) -> KinetoBatches {
    KinetoBatches::new(path, options(recover, skip_categories, time_range, max_event_bytes), rows)
}

/// Tell version, profile and features of the compiled module.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
    info.set_item("features", "abi3-py311")?;
    Ok(info)
}

/// The native reader of moeprof.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TraceFormatError", TraceFormatError::class(py)?)?;
    module.add_class::<ArrowTable>()?;
    module.add_class::<KinetoBatch>()?;
    module.add_class::<KinetoBatches>()?;
    module.add_class::<KinetoFile>()?;
    module.add_class::<NsysDatabase>()?;
    module.add_class::<NsysTable>()?;
    module.add_function(wrap_pyfunction!(read_kineto, module)?)?;
    module.add_function(wrap_pyfunction!(read_kineto_batches, module)?)?;
    module.add_function(wrap_pyfunction!(nsys::open_nsys, module)?)?;
    module.add_function(wrap_pyfunction!(build_info, module)?)?;
    let names = [
        "ArrowTable",
        "KinetoBatch",
        "KinetoBatches",
        "KinetoFile",
        "NsysDatabase",
        "NsysTable",
        "TraceFormatError",
        "build_info",
        "open_nsys",
        "read_kineto",
        "read_kineto_batches",
    ];
    module.add("__all__", PyList::new(py, names)?)?;
    Ok(())
}
