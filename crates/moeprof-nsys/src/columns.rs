//! Growing columns, and the record batches made of them.

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
    /// One bit a row, in words of 64: kept from the first absent value on.
    present: Option<Vec<u64>>,
}

impl<T: ArrowPrimitiveType> Default for Numbers<T> {
    fn default() -> Self {
        Self { values: Vec::new(), present: None }
    }
}

/// Bits that say that each of some rows is there.
fn all_present(rows: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; rows.div_ceil(64)];
    if let (Some(last), rest @ 1..) = (words.last_mut(), rows % 64) {
        *last = (1 << rest) - 1;
    }
    words
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: T::Native) {
        if self.present.is_some() {
            self.mark(1);
        }
        self.values.push(value);
    }

    #[inline]
    pub(crate) fn push_absent(&mut self) {
        if self.present.is_none() {
            self.present = Some(all_present(self.values.len()));
        }
        self.mark(0);
        self.values.push(T::Native::default());
    }

    #[inline]
    fn mark(&mut self, bit: u64) {
        let Some(words) = &mut self.present else { return };
        let at = self.values.len() % 64;
        match words.last_mut() {
            Some(last) if at > 0 => *last |= bit << at,
            _ => words.push(bit),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.values.reserve_exact(rows);
    }

    /// Adds the values of another column behind these.
    pub(crate) fn append(&mut self, other: &Self, change: impl Fn(T::Native) -> T::Native) {
        let shift = self.values.len() % 64;
        if other.present.is_some() || self.present.is_some() {
            let mut words = self.present.take().unwrap_or_else(|| all_present(self.values.len()));
            let whole;
            let added = if let Some(present) = &other.present {
                present
            } else {
                whole = all_present(other.values.len());
                &whole
            };
            for &word in added {
                match words.last_mut() {
                    Some(last) if shift > 0 => {
                        *last |= word << shift;
                        words.push(word >> (64 - shift));
                    }
                    _ => words.push(word),
                }
            }
            words.truncate((self.values.len() + other.values.len()).div_ceil(64));
            self.present = Some(words);
        }
        self.values.extend(other.values.iter().map(|&value| change(value)));
    }

    pub(crate) fn into_array(self) -> ArrayRef {
        let rows = self.values.len();
        let nulls = self.present.map(|present| {
            let words = present.into_iter().map(u64::to_le).collect::<Vec<_>>();
            NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows))
        });
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(self.values), nulls))
    }
}

/// Column of whole numbers.
pub(crate) type Integers = Numbers<Int64Type>;
/// Column of numbers of distinct texts.
pub(crate) type Codes = Numbers<UInt32Type>;

const EMPTY: u32 = u32::MAX;
const FEWEST_SLOTS: usize = 1024;

/// Mixes a text, eight bytes at a time; the texts come from a trace, not from an adversary on a network.
#[inline]
fn mixed(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let mut add = |word: [u8; 8]| {
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    };
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        add(*word);
    }
    let mut last = [0_u8; 8];
    if let Some(part) = last.get_mut(..rest.len()) {
        part.copy_from_slice(rest);
    }
    add(last);
    hash ^ (hash >> 29)
}

/// Distinct texts, numbered in the order in which they came; their bytes lie one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<u32>,
    hashes: Vec<u64>,
    /// Numbers of texts by their hash; as many slots as a power of two.
    slots: Vec<u32>,
    last: Option<u32>,
}

impl Texts {
    /// Returns the number of a text; none where they are more, or longer together, than 32 bits count.
    #[inline]
    pub(crate) fn insert(&mut self, text: &[u8]) -> Option<u32> {
        if let Some(last) = self.last.filter(|&last| self.text(last) == text) {
            return Some(last);
        }
        let code = self.place(text, mixed(text))?;
        self.last = Some(code);
        Some(code)
    }

    #[inline]
    fn text(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let from = if code == 0 { 0 } else { self.ends.get(code - 1).map_or(0, |&end| end as usize) };
        let to = self.ends.get(code).map_or(from, |&end| end as usize);
        self.bytes.get(from..to).unwrap_or_default()
    }

    fn place(&mut self, text: &[u8], hash: u64) -> Option<u32> {
        if self.slots.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let last = self.slots.len() - 1;
        let mut slot = Self::first_slot(hash, last);
        loop {
            match self.slots.get(slot).copied() {
                Some(EMPTY) => break,
                Some(code) if self.hashes.get(code as usize) == Some(&hash) && self.text(code) == text => {
                    return Some(code);
                }
                _ => slot = (slot + 1) & last,
            }
        }
        let code = u32::try_from(self.ends.len()).ok().filter(|&code| code < EMPTY)?;
        let end = u32::try_from(self.bytes.len() + text.len()).ok()?;
        self.bytes.extend_from_slice(text);
        self.ends.push(end);
        self.hashes.push(hash);
        if let Some(free) = self.slots.get_mut(slot) {
            *free = code;
        }
        Some(code)
    }

    #[inline]
    fn first_slot(hash: u64, last: usize) -> usize {
        usize::try_from(hash & last as u64).unwrap_or_default()
    }

    #[cold]
    fn grow(&mut self) {
        let size = (4 * (self.ends.len() + 1)).next_power_of_two().max(FEWEST_SLOTS);
        self.slots = vec![EMPTY; size];
        for (code, &hash) in (0_u32..).zip(&self.hashes) {
            let mut slot = Self::first_slot(hash, size - 1);
            while self.slots.get(slot).is_some_and(|&taken| taken != EMPTY) {
                slot = (slot + 1) & (size - 1);
            }
            if let Some(free) = self.slots.get_mut(slot) {
                *free = code;
            }
        }
    }

    /// Takes in the texts of another; returns the number here of each number there.
    pub(crate) fn merge(&mut self, other: &Self) -> Option<Vec<u32>> {
        (0_u32..).zip(&other.hashes).map(|(code, &hash)| self.place(other.text(code), hash)).collect()
    }

    /// Returns the texts as a column, and how many of them are not valid UTF-8 (bad bytes are replaced).
    pub(crate) fn into_batch(self) -> Result<(RecordBatch, u64), ArrowError> {
        let mut column = StringViewBuilder::with_capacity(self.ends.len());
        let codes = 0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let mut invalid = 0;
        // Texts that are valid each, and stand in valid bytes, need no copy.
        if std::str::from_utf8(&self.bytes).is_ok() && codes.clone().all(|code| is_whole(self.text(code))) {
            let block = column.append_block(Buffer::from_vec(self.bytes));
            let mut from = 0;
            for end in self.ends {
                column.try_append_view(block, from, end - from)?;
                from = end;
            }
        } else {
            for text in codes.map(|code| String::from_utf8_lossy(self.text(code))) {
                invalid += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
                column.append_value(text);
            }
        }
        let array: ArrayRef = Arc::new(column.finish());
        Ok((batch(vec![("text".to_owned(), array)])?, invalid))
    }
}

/// Tells whether a text begins with a whole character, as part of valid bytes; its end is the next one's begin.
fn is_whole(text: &[u8]) -> bool {
    text.first().is_none_or(|&byte| byte & 0xc0 != 0x80)
}

/// Makes a record batch of named columns.
pub(crate) fn batch(columns: Vec<(String, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        columns.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
