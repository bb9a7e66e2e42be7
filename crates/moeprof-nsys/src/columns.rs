//! Growing columns, and the record batches made of them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};

/// A column of numbers that may be absent.
#[derive(Debug)]
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    /// One bit a row, in words of 64.
    bits: Vec<u64>,
    absent: usize,
}

impl<T: ArrowPrimitiveType> Default for Numbers<T> {
    fn default() -> Self {
        Self { values: Vec::new(), bits: Vec::new(), absent: 0 }
    }
}

impl<T: ArrowPrimitiveType> Numbers<T> {
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

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.values.reserve_exact(rows);
        self.bits.reserve_exact(rows.div_ceil(64) + 1);
    }

    /// Adds the values of another column behind these.
    pub(crate) fn append(&mut self, other: &Self, change: impl Fn(T::Native) -> T::Native) {
        let shift = self.values.len() % 64;
        self.values.extend(other.values.iter().map(|&value| change(value)));
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

    pub(crate) fn into_array(self) -> ArrayRef {
        let rows = self.values.len();
        let nulls = (self.absent > 0).then(|| {
            let words = self.bits.into_iter().map(u64::to_le).collect::<Vec<_>>();
            NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows))
        });
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(self.values), nulls))
    }
}

/// Column of whole numbers.
pub(crate) type Integers = Numbers<Int64Type>;
/// Column of numbers of distinct texts.
pub(crate) type Codes = Numbers<UInt32Type>;

/// A hash for short texts, eight bytes at a time; the texts come from a trace, not from an adversary on a network.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0_u8; 8];
            if let Some(part) = word.get_mut(..chunk.len()) {
                part.copy_from_slice(chunk);
            }
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    #[inline]
    fn write_usize(&mut self, size: usize) {
        self.write_u64(size as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

/// Distinct texts, numbered in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    codes: HashMap<Arc<[u8]>, u32, BuildHasherDefault<Mix>>,
    distinct: Vec<Arc<[u8]>>,
    last: Option<u32>,
}

impl Texts {
    /// Returns the number of a text; none where there are more than numbers for them.
    #[inline]
    pub(crate) fn insert(&mut self, text: &[u8]) -> Option<u32> {
        if let Some(last) = self.last.filter(|&last| self.distinct.get(last as usize).is_some_and(|own| **own == *text))
        {
            return Some(last);
        }
        if let Some(&code) = self.codes.get(text) {
            self.last = Some(code);
            return Some(code);
        }
        let code = u32::try_from(self.distinct.len()).ok().filter(|&code| code < u32::MAX)?;
        let text: Arc<[u8]> = text.into();
        self.distinct.push(Arc::clone(&text));
        self.codes.insert(text, code);
        self.last = Some(code);
        Some(code)
    }

    /// Takes in the texts of another; returns the number here of each number there.
    pub(crate) fn merge(&mut self, other: &Self) -> Option<Vec<u32>> {
        other.distinct.iter().map(|text| self.insert(text)).collect()
    }

    /// Returns the texts as a column, and how many of them are not valid UTF-8 (bad bytes are replaced).
    pub(crate) fn into_batch(self) -> Result<(RecordBatch, u64), ArrowError> {
        let mut column = StringViewBuilder::new();
        let mut invalid = 0;
        for text in &self.distinct {
            let valid = String::from_utf8_lossy(text);
            invalid += u64::from(matches!(valid, std::borrow::Cow::Owned(_)));
            column.append_value(valid);
        }
        let array: ArrayRef = Arc::new(column.finish());
        Ok((batch(vec![("text".to_owned(), array)])?, invalid))
    }
}

/// Makes a record batch of named columns.
pub(crate) fn batch(columns: Vec<(String, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        columns.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
