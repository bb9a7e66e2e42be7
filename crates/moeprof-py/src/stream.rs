//! A record batch behind the Arrow C stream interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use moeprof_trace::DeviceTable;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table that hands its columns over through the Arrow C stream interface, without a copy: ``pl.DataFrame(table)``.
#[pyclass(frozen, module = "moeprof._native")]
pub(crate) struct ArrowTable {
    columns: Columns,
}

enum Columns {
    /// At least one batch.
    Ready(Vec<RecordBatch>),
    /// Columns that are written out when somebody asks for them, and not kept.
    Small(DeviceTable),
}

impl ArrowTable {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> Self {
        Self { columns: Columns::Ready(batches) }
    }

    pub(crate) fn device(table: DeviceTable) -> Self {
        Self { columns: Columns::Small(table) }
    }
}

#[pymethods]
impl ArrowTable {
    /// Return a capsule that yields the table in record batches; a requested schema is not honoured.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let failed = |text: String| PyRuntimeError::new_err(text);
        let batches = match &self.columns {
            Columns::Ready(batches) => batches.clone(),
            Columns::Small(table) => {
                py.detach(|| table.to_batches()).map_err(|error| failed(format!("Arrow: {error}")))?
            }
        };
        let first = batches.first().ok_or_else(|| failed("a table without batches".to_owned()))?;
        let schema = first.schema();
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        match &self.columns {
            Columns::Ready(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
            Columns::Small(table) => table.num_rows(),
        }
    }
}
