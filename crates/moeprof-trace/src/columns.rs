//! Growing columns and the record batches made of them. Values are moved into Arrow buffers, not copied.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field as Column, Schema};

use crate::fields::{COLLECTIVE_IDS, COLLECTIVE_NUMBERS, COLLECTIVE_TEXTS, DEVICE_IDS, DEVICE_NUMBERS};
use crate::intern::Interner;

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

    /// Adds the values of another column behind these.
    pub(crate) fn append(&mut self, other: &Self) {
        let shift = self.values.len() % 64;
        self.values.extend_from_slice(&other.values);
        self.absent += other.absent;
        for &word in &other.bits {
            match self.bits.last_mut() {
                Some(last) if shift > 0 => {
                    *last |= word << shift;
                    self.bits.push(word >> (64 - shift));
                }
                _ => self.bits.push(word),
            }
        }
        self.bits.truncate(self.values.len().div_ceil(64));
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

/// A column of texts: each distinct one is kept once, and Arrow's array is made at the end.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    distinct: Interner,
    codes: Vec<Option<u32>>,
    /// Bytes that the array will take.
    bytes: usize,
}

impl Texts {
    /// Offsets of an Arrow string array are `i32`.
    const MOST: usize = i32::MAX as usize;

    /// Tells whether so many bytes more fit into the array.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= Self::MOST
    }

    pub(crate) fn push(&mut self, text: Option<&[u8]>) {
        self.bytes += text.map_or(0, <[u8]>::len);
        self.codes.push(text.and_then(|text| self.distinct.insert(text)));
    }

    /// Adds the texts of another column behind these; false where they do not fit.
    pub(crate) fn append(&mut self, other: &Self) -> bool {
        if !self.has_room(other.bytes) {
            return false;
        }
        let codes: Vec<Option<u32>> = other.distinct.iter().map(|text| self.distinct.insert(text)).collect();
        let code = |code: Option<u32>| codes.get(code? as usize).copied().flatten();
        self.codes.extend(other.codes.iter().map(|&old| code(old)));
        self.bytes += other.bytes;
        true
    }

    fn into_array(self) -> ArrayRef {
        let text = |code| std::str::from_utf8(self.distinct.bytes(code)).unwrap_or_default();
        Arc::new(self.codes.iter().map(|code| code.map(text)).collect::<StringArray>())
    }
}

/// What args say about the device, for some events.
#[derive(Debug, Default)]
pub(crate) struct DeviceArgs {
    pub(crate) row: Vec<u32>,
    pub(crate) numbers: [Sparse<Int64Type>; DEVICE_NUMBERS.len()],
    pub(crate) ids: [Sparse<UInt64Type>; DEVICE_IDS.len()],
}

impl DeviceArgs {
    pub(crate) fn append(&mut self, other: &Self, rows: u32) {
        self.row.extend(other.row.iter().map(|row| row + rows));
        append_all(&mut self.numbers, &other.numbers);
        append_all(&mut self.ids, &other.ids);
    }

    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![("row", false, dense::<UInt32Type>(self.row))];
        for (field, column) in DEVICE_NUMBERS.into_iter().zip(self.numbers) {
            columns.push((field.column(), true, column.into_array()));
        }
        for (field, column) in DEVICE_IDS.into_iter().zip(self.ids) {
            columns.push((field.column(), true, column.into_array()));
        }
        batch(columns)
    }
}

/// What args say about a collective, for few events.
#[derive(Debug, Default)]
pub(crate) struct CollectiveArgs {
    pub(crate) row: Vec<u32>,
    pub(crate) texts: [Texts; COLLECTIVE_TEXTS.len()],
    pub(crate) numbers: [Sparse<Int64Type>; COLLECTIVE_NUMBERS.len()],
    pub(crate) ids: [Sparse<UInt64Type>; COLLECTIVE_IDS.len()],
}

impl CollectiveArgs {
    pub(crate) fn append(&mut self, other: &Self, rows: u32) -> bool {
        self.row.extend(other.row.iter().map(|row| row + rows));
        append_all(&mut self.numbers, &other.numbers);
        append_all(&mut self.ids, &other.ids);
        self.texts.iter_mut().zip(&other.texts).all(|(column, other)| column.append(other))
    }

    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![("row", false, dense::<UInt32Type>(self.row))];
        for (field, column) in COLLECTIVE_TEXTS.into_iter().zip(self.texts) {
            columns.push((field.column(), true, column.into_array()));
        }
        for (field, column) in COLLECTIVE_NUMBERS.into_iter().zip(self.numbers) {
            columns.push((field.column(), true, column.into_array()));
        }
        for (field, column) in COLLECTIVE_IDS.into_iter().zip(self.ids) {
            columns.push((field.column(), true, column.into_array()));
        }
        batch(columns)
    }
}

fn append_all<T: ArrowPrimitiveType, const N: usize>(columns: &mut [Sparse<T>; N], others: &[Sparse<T>; N]) {
    for (column, other) in columns.iter_mut().zip(others) {
        column.append(other);
    }
}

/// Names and labels of processes and threads.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    pub(crate) row: Vec<u32>,
    pub(crate) value: Texts,
}

impl Labels {
    pub(crate) fn append(&mut self, other: &Self, rows: u32) -> bool {
        self.row.extend(other.row.iter().map(|row| row + rows));
        self.value.append(&other.value)
    }

    pub(crate) fn into_batch(self) -> Result<RecordBatch, ArrowError> {
        batch(vec![("row", false, dense::<UInt32Type>(self.row)), ("value", false, self.value.into_array())])
    }
}

/// Distinct names.
pub(crate) fn names(names: &Interner) -> Result<RecordBatch, ArrowError> {
    let mut column = StringViewBuilder::new();
    for name in names.iter() {
        column.append_value(std::str::from_utf8(name).unwrap_or_default());
    }
    batch(vec![("name", false, Arc::new(column.finish()) as ArrayRef)])
}

/// Distinct pairs of process and thread.
pub(crate) fn tracks(processes: Texts, threads: Texts) -> Result<RecordBatch, ArrowError> {
    batch(vec![("process", false, processes.into_array()), ("thread", false, threads.into_array())])
}

fn batch(columns: Vec<(&str, bool, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Column>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, nullable, array)| (Column::new(name, array.data_type().clone(), nullable), array))
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
