//! Growing columns and the record batches made of them. Values are moved into Arrow buffers, not copied.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};

/// A column of numbers without absent values.
pub(crate) fn dense<T: ArrowPrimitiveType>(mut values: Vec<T::Native>) -> ArrayRef {
    values.shrink_to_fit();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None))
}

/// A column of numbers that may be absent.
#[derive(Debug)]
pub(crate) struct Sparse<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    /// One bit a row, in words of 64.
    bits: Vec<u64>,
    absent: usize,
}

impl<T: ArrowPrimitiveType> Default for Sparse<T> {
    fn default() -> Self {
        Self { values: Vec::new(), bits: Vec::new(), absent: 0 }
    }
}

impl<T: ArrowPrimitiveType> Sparse<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: Option<T::Native>) {
        let bit = self.values.len() % 64;
        if bit == 0 {
            self.bits.push(0);
        }
        if let Some(word) = self.bits.last_mut() {
            *word |= u64::from(value.is_some()) << bit;
        }
        self.absent += usize::from(value.is_none());
        self.values.push(value.unwrap_or_default());
    }

    fn into_array(self) -> ArrayRef {
        let rows = self.values.len();
        let nulls = (self.absent > 0).then(|| {
            let words = self.bits.into_iter().map(u64::to_le).collect::<Vec<_>>();
            NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows))
        });
        let mut values = self.values;
        values.shrink_to_fit();
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
    }
}

/// One row for each event.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) phase: Vec<u8>,
    pub(crate) category: Vec<u16>,
    pub(crate) name: Vec<u32>,
    pub(crate) track: Vec<u32>,
    pub(crate) start: Sparse<Int64Type>,
    pub(crate) duration: Sparse<Int64Type>,
    pub(crate) correlation: Sparse<UInt64Type>,
    pub(crate) external_id: Sparse<UInt64Type>,
}

impl Events {
    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        batch(vec![
            ("ph", false, dense::<UInt8Type>(self.phase)),
            ("category", false, dense::<UInt16Type>(self.category)),
            ("name", false, dense::<UInt32Type>(self.name)),
            ("track", false, dense::<UInt32Type>(self.track)),
            ("start_ns", true, self.start.into_array()),
            ("duration_ns", true, self.duration.into_array()),
            ("correlation", true, self.correlation.into_array()),
            ("external_id", true, self.external_id.into_array()),
        ])
    }
}

/// What args say about the device, for some events.
#[derive(Debug, Default)]
pub(crate) struct DeviceArgs {
    pub(crate) row: Vec<u32>,
    pub(crate) numbers: [Sparse<Int64Type>; DeviceArgs::NUMBERS.len()],
    pub(crate) graph_id: Sparse<UInt64Type>,
    pub(crate) graph_node_id: Sparse<UInt64Type>,
}

impl DeviceArgs {
    pub(crate) const NUMBERS: [&'static str; 11] = [
        "device",
        "stream",
        "grid_x",
        "grid_y",
        "grid_z",
        "block_x",
        "block_y",
        "block_z",
        "registers_per_thread",
        "shared_memory",
        "bytes",
    ];

    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![("row", false, dense::<UInt32Type>(self.row))];
        for (name, column) in Self::NUMBERS.into_iter().zip(self.numbers) {
            columns.push((name, true, column.into_array()));
        }
        columns.push(("graph_id", true, self.graph_id.into_array()));
        columns.push(("graph_node_id", true, self.graph_node_id.into_array()));
        batch(columns)
    }
}

/// What args say about a collective, for few events.
#[derive(Debug, Default)]
pub(crate) struct CollectiveArgs {
    pub(crate) row: Vec<u32>,
    pub(crate) texts: [Vec<Option<String>>; CollectiveArgs::TEXTS.len()],
    pub(crate) numbers: [Sparse<Int64Type>; CollectiveArgs::NUMBERS.len()],
    pub(crate) sequence: Sparse<UInt64Type>,
    pub(crate) comms_id: Sparse<UInt64Type>,
}

impl CollectiveArgs {
    pub(crate) const TEXTS: [&'static str; 5] =
        ["collective", "dtype", "group_name", "group_description", "group_ranks"];
    pub(crate) const NUMBERS: [&'static str; 5] =
        ["in_elements", "out_elements", "group_size", "source_rank", "destination_rank"];

    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![("row", false, dense::<UInt32Type>(self.row))];
        for (name, column) in Self::TEXTS.into_iter().zip(self.texts) {
            columns.push((name, true, Arc::new(StringArray::from(column)) as ArrayRef));
        }
        for (name, column) in Self::NUMBERS.into_iter().zip(self.numbers) {
            columns.push((name, true, column.into_array()));
        }
        columns.push(("sequence", true, self.sequence.into_array()));
        columns.push(("comms_id", true, self.comms_id.into_array()));
        batch(columns)
    }
}

/// Names and labels of processes and threads.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    pub(crate) row: Vec<u32>,
    pub(crate) value: Vec<String>,
}

impl Labels {
    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        let value: ArrayRef = Arc::new(StringArray::from(self.value));
        batch(vec![("row", false, dense::<UInt32Type>(self.row)), ("value", false, value)])
    }
}

/// Distinct names.
pub(crate) fn names(names: StringViewBuilder) -> Result<RecordBatch, ArrowError> {
    let mut names = names;
    batch(vec![("name", false, Arc::new(names.finish()) as ArrayRef)])
}

/// Distinct pairs of process and thread.
pub(crate) fn tracks(processes: Vec<String>, threads: Vec<String>) -> Result<RecordBatch, ArrowError> {
    let processes: ArrayRef = Arc::new(StringArray::from(processes));
    let threads: ArrayRef = Arc::new(StringArray::from(threads));
    batch(vec![("process", false, processes), ("thread", false, threads)])
}

fn batch(columns: Vec<(&str, bool, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, nullable, array)| (Field::new(name, array.data_type().clone(), nullable), array))
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
