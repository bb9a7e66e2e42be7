//! A file in batches: another thread reads, and Python takes one batch after the other.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

use moeprof_trace::{Batch, ReadOptions, TraceError};
use pyo3::prelude::*;

use crate::error::{failed, to_python};
use crate::stream::ArrowTable;
use crate::{KinetoFile, guarded};

/// Some events of a file with what belongs to them. See docs/native.md.
#[pyclass(frozen, module = "moeprof._native")]
pub(crate) struct KinetoBatch {
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
}

impl KinetoBatch {
    fn new(py: Python<'_>, batch: Batch) -> PyResult<Self> {
        let table = |batch| Py::new(py, ArrowTable::new(vec![batch]));
        Ok(Self {
            events: Py::new(py, ArrowTable::new(batch.events))?,
            names: table(batch.names)?,
            tracks: table(batch.tracks)?,
            device_args: table(batch.device_args)?,
            collective_args: table(batch.collective_args)?,
            labels: table(batch.labels)?,
            categories: batch.categories,
            phases: batch.phases,
        })
    }
}

enum Message {
    Batch(Box<Batch>),
    /// The end: what belongs to the whole file, an error, or nothing where reading failed in itself.
    End(Box<Option<Result<Option<moeprof_trace::KinetoFile>, TraceError>>>),
}

/// The batches of a file, one after the other; ``rest`` holds what belongs to the whole file once they are through.
#[pyclass(module = "moeprof._native")]
pub(crate) struct KinetoBatches {
    /// None once the end was reached. The mutex is never waited for: the class is only used through one reference.
    messages: Option<Mutex<Receiver<Message>>>,
    #[pyo3(get)]
    rest: Option<Py<KinetoFile>>,
}

impl KinetoBatches {
    pub(crate) fn new(path: PathBuf, options: ReadOptions, rows: usize) -> Self {
        // One batch waits while Python works on another.
        let (sender, receiver) = sync_channel(1);
        std::thread::spawn(move || {
            let take = |batch| sender.send(Message::Batch(Box::new(batch))).is_ok();
            let end = guarded(|| moeprof_trace::read_kineto_batches(&path, &options, rows, take));
            // Where nobody listens any more, nobody is to be told.
            let _ = sender.send(Message::End(Box::new(end)));
        });
        Self { messages: Some(Mutex::new(receiver)), rest: None }
    }
}

#[pymethods]
impl KinetoBatches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<KinetoBatch>> {
        let Some(messages) = &mut self.messages else { return Ok(None) };
        let received = py.detach(|| messages.get_mut().ok().and_then(|messages| messages.recv().ok()));
        if let Some(Message::Batch(batch)) = received {
            return KinetoBatch::new(py, *batch).map(Some);
        }
        self.messages = None;
        let Some(Message::End(end)) = received else { return Err(failed()) };
        match end.ok_or_else(failed)? {
            Ok(Some(file)) => {
                self.rest = Some(Py::new(py, KinetoFile::new(py, file)?)?);
                Ok(None)
            }
            Ok(None) => Ok(None),
            Err(error) => Err(to_python(py, &error)),
        }
    }
}
