//! Tables of Nsight Systems exports for Python: [`moeprof_nsys`] behind Arrow capsules.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error;
use crate::stream::ArrowTable;

/// An nsys export as `SQLite`, plain or gzip: its tables, and the rows of one as columns.
#[pyclass(frozen, module = "moeprof._native")]
pub(crate) struct NsysDatabase {
    database: moeprof_nsys::Database,
}

/// Some columns of one table: whole numbers, and texts as numbers of the distinct ``texts``.
#[pyclass(frozen, module = "moeprof._native")]
pub(crate) struct NsysTable {
    #[pyo3(get)]
    columns: Py<ArrowTable>,
    #[pyo3(get)]
    texts: Py<ArrowTable>,
    #[pyo3(get)]
    mismatched: u64,
    #[pyo3(get)]
    invalid_utf8: u64,
}

#[pymethods]
impl NsysDatabase {
    /// Return the tables with the names of their columns.
    fn tables(&self) -> Vec<(String, Vec<String>)> {
        self.database.tables().map(|(name, columns)| (name.to_owned(), columns.to_vec())).collect()
    }

    /// Count the rows of a table.
    fn rows(&self, py: Python<'_>, table: &str) -> PyResult<u64> {
        py.detach(|| self.database.rows(table)).map_err(|failure| error::of_nsys(py, &failure))
    }

    /// Read those of the named columns that the table has.
    #[allow(clippy::needless_pass_by_value, reason = "arguments are converted from Python, so they come by value")]
    fn read(&self, py: Python<'_>, table: &str, integers: Vec<String>, texts: Vec<String>) -> PyResult<NsysTable> {
        let read = py
            .detach(|| self.database.read(table, &integers, &texts))
            .map_err(|failure| error::of_nsys(py, &failure))?;
        Ok(NsysTable {
            columns: Py::new(py, ArrowTable::new(vec![read.columns]))?,
            texts: Py::new(py, ArrowTable::new(vec![read.texts]))?,
            mismatched: read.mismatched,
            invalid_utf8: read.invalid_utf8,
        })
    }
}

/// Open an nsys export as `SQLite`, plain or gzip.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "arguments are converted from Python, so they come by value")]
#[pyo3(signature = (path), text_signature = "(path)")]
pub(crate) fn open_nsys(py: Python<'_>, path: PathBuf) -> PyResult<NsysDatabase> {
    let opened = py.detach(|| moeprof_nsys::Database::open(&path));
    Ok(NsysDatabase { database: opened.map_err(|failure| error::of_nsys(py, &failure))? })
}
