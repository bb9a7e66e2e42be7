//! Growing columns and the record batches made of them. Values are moved into Arrow buffers, not copied.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field as Column, Schema};

use crate::fields::{COLLECTIVE_IDS, COLLECTIVE_NUMBERS, COLLECTIVE_TEXTS, DEVICE_IDS, DEVICE_NUMBERS, FIELDS, Field};
use crate::intern::Interner;
use crate::shapes::Shapes;

/// A column of numbers without absent values.
pub(crate) fn dense<T: ArrowPrimitiveType>(mut values: Vec<T::Native>) -> ArrayRef {
    values.shrink_to_fit();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None))
}

/// A column of numbers that may be absent. As long as none is present, only their count is kept.
#[derive(Debug)]
pub(crate) struct Sparse<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    /// One bit a row, in words of 64.
    bits: Vec<u64>,
    rows: usize,
    absent: usize,
    /// Room for so many rows is made at once.
    expected: usize,
}

impl<T: ArrowPrimitiveType> Default for Sparse<T> {
    fn default() -> Self {
        Self::expecting(0)
    }
}

impl<T: ArrowPrimitiveType> Sparse<T> {
    fn expecting(expected: usize) -> Self {
        Self { values: Vec::new(), bits: Vec::new(), rows: 0, absent: 0, expected }
    }

    pub(crate) fn push(&mut self, value: Option<T::Native>) {
        self.extend([value.unwrap_or_default()].iter(), u64::from(value.is_some()));
    }

    /// Adds at most 64 values, of which those with a bit are present.
    #[inline]
    pub(crate) fn extend<'v>(&mut self, values: impl ExactSizeIterator<Item = &'v T::Native>, bits: u64)
    where
        T::Native: 'v,
    {
        let count = values.len();
        let absent = count - bits.count_ones() as usize;
        if absent == count && self.absent == self.rows {
            self.rows += count;
            self.absent += count;
            return;
        }
        if self.values.is_empty() {
            self.values.reserve_exact(self.expected.max(self.rows + count));
            self.values.resize(self.rows, T::Native::default());
            self.bits.resize(self.rows.div_ceil(64), 0);
        }
        let shift = self.rows % 64;
        match self.bits.last_mut() {
            Some(last) if shift > 0 => {
                *last |= bits << shift;
                if shift + count > 64 {
                    self.bits.push(bits >> (64 - shift));
                }
            }
            _ => self.bits.push(bits),
        }
        self.values.extend(values.copied());
        self.rows += count;
        self.absent += absent;
    }

    /// Adds the values of another column behind these.
    pub(crate) fn append(&mut self, other: &Self) {
        for (index, word) in (0..other.rows.div_ceil(64)).map(|index| (index, other.bits.get(index).copied())) {
            let from = index * 64;
            let until = (from + 64).min(other.rows);
            match other.values.get(from..until) {
                Some(values) => self.extend(values.iter(), word.unwrap_or_default()),
                None => self.extend(vec![T::Native::default(); until - from].iter(), 0),
            }
        }
    }

    fn to_array(&self) -> ArrayRef {
        let (values, bits) = (self.values.clone(), self.bits.clone());
        let copy = Self { values, bits, rows: self.rows, absent: self.absent, expected: 0 };
        copy.into_array()
    }

    fn into_array(self) -> ArrayRef {
        let rows = self.rows;
        let (mut values, mut bits) = (self.values, self.bits);
        if values.is_empty() {
            // Zeros that nobody has touched take no memory.
            (values, bits) = (vec![T::Native::default(); rows], vec![0; rows.div_ceil(64)]);
        }
        let nulls = (self.absent > 0).then(|| {
            for word in &mut bits {
                *word = word.to_le();
            }
            NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows))
        });
        values.shrink_to_fit();
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
    }
}

/// Rows that are gathered before they go to the columns.
const BLOCK: usize = 64;

/// One event as a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Row {
    pub(crate) phase: u8,
    pub(crate) category: u16,
    pub(crate) name: u32,
    pub(crate) track: u32,
    pub(crate) start: Option<i64>,
    pub(crate) duration: Option<i64>,
    pub(crate) correlation: Option<u64>,
    pub(crate) external_id: Option<u64>,
}

/// The last rows. They go to the columns by the block, so that nothing has to grow for a single one.
#[derive(Debug)]
struct Block {
    rows: usize,
    phase: [u8; BLOCK],
    category: [u16; BLOCK],
    name: [u32; BLOCK],
    track: [u32; BLOCK],
    start: [i64; BLOCK],
    duration: [i64; BLOCK],
    correlation: [u64; BLOCK],
    external_id: [u64; BLOCK],
    /// One bit a row for each of the last four.
    present: [u64; 4],
}

impl Default for Block {
    fn default() -> Self {
        Self {
            rows: 0,
            phase: [0; BLOCK],
            category: [0; BLOCK],
            name: [0; BLOCK],
            track: [0; BLOCK],
            start: [0; BLOCK],
            duration: [0; BLOCK],
            correlation: [0; BLOCK],
            external_id: [0; BLOCK],
            present: [0; 4],
        }
    }
}

/// Rows in one batch. Columns are begun anew after so many, so that none is ever copied because it grows.
const CHUNK: usize = 1 << 18;

/// The columns of one batch.
#[derive(Debug, Default)]
struct EventColumns {
    phase: Vec<u8>,
    category: Vec<u16>,
    name: Vec<u32>,
    track: Vec<u32>,
    start: Sparse<Int64Type>,
    duration: Sparse<Int64Type>,
    correlation: Sparse<UInt64Type>,
    external_id: Sparse<UInt64Type>,
}

impl EventColumns {
    fn with_room(rows: usize) -> Self {
        Self {
            phase: Vec::with_capacity(rows),
            category: Vec::with_capacity(rows),
            name: Vec::with_capacity(rows),
            track: Vec::with_capacity(rows),
            start: Sparse::expecting(rows),
            duration: Sparse::expecting(rows),
            correlation: Sparse::expecting(rows),
            external_id: Sparse::expecting(rows),
        }
    }

    fn renumber(&mut self, codes: &Codes) -> bool {
        let narrow = |code: u8| u8::try_from(*codes.phases.get(usize::from(code))?).ok();
        let wide = |code: u16| codes.categories.get(usize::from(code)).copied();
        self.phase.iter_mut().all(|code| replace(code, narrow(*code)))
            && self.category.iter_mut().all(|code| replace(code, wide(*code)))
            && renumber(&mut self.name, &codes.names)
            && renumber(&mut self.track, &codes.tracks)
    }

    fn into_batch(self) -> Result<RecordBatch, ArrowError> {
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

/// One row for each event.
#[derive(Debug, Default)]
pub(crate) struct Events {
    block: Block,
    columns: EventColumns,
    full: Vec<EventColumns>,
}

impl Events {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.full.len() * CHUNK + self.columns.phase.len() + self.block.rows
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, row: &Row) {
        let block = &mut self.block;
        // The remainder changes nothing, and shows that the place is inside.
        let at = block.rows % BLOCK;
        block.phase[at] = row.phase;
        block.category[at] = row.category;
        block.name[at] = row.name;
        block.track[at] = row.track;
        block.start[at] = row.start.unwrap_or_default();
        block.duration[at] = row.duration.unwrap_or_default();
        block.correlation[at] = row.correlation.unwrap_or_default();
        block.external_id[at] = row.external_id.unwrap_or_default();
        block.present[0] |= u64::from(row.start.is_some()) << at;
        block.present[1] |= u64::from(row.duration.is_some()) << at;
        block.present[2] |= u64::from(row.correlation.is_some()) << at;
        block.present[3] |= u64::from(row.external_id.is_some()) << at;
        block.rows += 1;
        if block.rows >= BLOCK {
            self.flush();
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        let (block, columns) = (&mut self.block, &mut self.columns);
        let rows = block.rows.min(BLOCK);
        columns.phase.extend(block.phase.iter().take(rows));
        columns.category.extend(block.category.iter().take(rows));
        columns.name.extend(block.name.iter().take(rows));
        columns.track.extend(block.track.iter().take(rows));
        columns.start.extend(block.start.iter().take(rows), block.present[0]);
        columns.duration.extend(block.duration.iter().take(rows), block.present[1]);
        columns.correlation.extend(block.correlation.iter().take(rows), block.present[2]);
        columns.external_id.extend(block.external_id.iter().take(rows), block.present[3]);
        block.rows = 0;
        block.present = [0; 4];
        // A block is a part of a chunk.
        if columns.phase.len() == CHUNK {
            self.full.push(std::mem::replace(columns, EventColumns::with_room(CHUNK)));
        }
    }

    /// Gives every code the one that the tables of the whole file have for it; false where one has none.
    pub(crate) fn renumber(&mut self, codes: &Codes) -> bool {
        self.flush();
        self.full.iter_mut().chain([&mut self.columns]).all(|columns| columns.renumber(codes))
    }

    /// Makes at least one batch.
    pub(crate) fn into_batches(mut self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.flush();
        if !self.columns.phase.is_empty() || self.full.is_empty() {
            self.full.push(self.columns);
        }
        self.full.into_iter().map(EventColumns::into_batch).collect()
    }
}

/// The codes of the whole file by those of a part of it.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    pub(crate) phases: Vec<u32>,
    pub(crate) categories: Vec<u16>,
    pub(crate) names: Vec<u32>,
    pub(crate) tracks: Vec<u32>,
    pub(crate) shapes: Vec<u32>,
    /// Rows of events before this part.
    pub(crate) rows: u32,
}

fn renumber(column: &mut [u32], codes: &[u32]) -> bool {
    if (0..).zip(codes).all(|(old, &new): (u32, &u32)| old == new) {
        return column.iter().all(|&code| (code as usize) < codes.len());
    }
    column.iter_mut().all(|code| replace(code, codes.get(*code as usize).copied()))
}

fn replace<T>(place: &mut T, new: Option<T>) -> bool {
    new.map(|new| *place = new).is_some()
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

    pub(crate) fn code(&self, text: &[u8]) -> Option<u32> {
        self.distinct.get(text)
    }

    /// Adds a text that has a code.
    pub(crate) fn push_code(&mut self, code: Option<u32>) {
        self.bytes += code.map_or(0, |code| self.distinct.bytes(code).len());
        self.codes.push(code);
    }

    pub(crate) fn size(&self, code: u32) -> usize {
        self.distinct.bytes(code).len()
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

    /// Makes an array of the rows so far and forgets them; the codes of texts stay what they are.
    fn take_array(&mut self) -> ArrayRef {
        let text = |code| std::str::from_utf8(self.distinct.bytes(code)).unwrap_or_default();
        let array = Arc::new(self.codes.iter().map(|code| code.map(text)).collect::<StringArray>());
        self.codes.clear();
        self.bytes = 0;
        array
    }

    fn into_array(self) -> ArrayRef {
        let text = |code| std::str::from_utf8(self.distinct.bytes(code)).unwrap_or_default();
        Arc::new(self.codes.iter().map(|code| code.map(text)).collect::<StringArray>())
    }
}

/// How a GPU activity was launched: the numbers of its args that many rows have in common.
///
/// They are neighbours among the fields, which [`shape_of`] relies on.
pub(crate) const SHAPE: [Field; 11] = [
    Field::Device,
    Field::Stream,
    Field::GridX,
    Field::GridY,
    Field::GridZ,
    Field::BlockX,
    Field::BlockY,
    Field::BlockZ,
    Field::Registers,
    Field::SharedMemory,
    Field::GraphId,
];
const SHAPE_AT: usize = Field::Device as usize;
const SHAPE_BITS: u64 = (1 << SHAPE.len()) - 1;
const WORDS: usize = SHAPE.len() + 1;
const _: () = {
    let mut index = 0;
    while index < SHAPE.len() {
        assert!(SHAPE[index] as usize == SHAPE_AT + index, "the fields of a shape are neighbours");
        index += 1;
    }
};

/// The numbers of a shape behind a word with one bit for each that is present; the others are 0.
pub(crate) type Shape = [u64; WORDS];

/// Returns the shape among the values of an event; `present` has a bit for each field with a value.
#[inline(always)]
pub(crate) fn shape_of(values: &[u64; FIELDS + 1], present: u64) -> Shape {
    let present = present >> SHAPE_AT & SHAPE_BITS;
    let mut shape = [present; WORDS];
    let (_, words) = shape.split_at_mut(1);
    if let Some(values) = values.get(SHAPE_AT..SHAPE_AT + SHAPE.len()) {
        for ((index, word), value) in words.iter_mut().enumerate().zip(values) {
            *word = value & 0u64.wrapping_sub(present >> index & 1);
        }
    }
    shape
}

/// What args say about the device, for some events.
///
/// The rows of a graph replay have few shapes among them, so each distinct one is kept once.
#[derive(Debug, Default)]
pub(crate) struct DeviceArgs {
    row: Vec<u32>,
    shape: Vec<u32>,
    bytes: Sparse<Int64Type>,
    node: Sparse<UInt64Type>,
    pub(crate) shapes: Shapes,
}

impl DeviceArgs {
    pub(crate) fn len(&self) -> usize {
        self.row.len()
    }

    #[inline]
    pub(crate) fn push(&mut self, row: u32, shape: &Shape, bytes: Option<i64>, node: Option<u64>) {
        // There are no more shapes than rows, and no more rows than codes.
        let code = self.shapes.code(shape).unwrap_or_default();
        self.row.push(row);
        self.shape.push(code);
        self.bytes.push(bytes);
        self.node.push(node);
    }

    pub(crate) fn renumber(&mut self, codes: &Codes) -> bool {
        self.row.iter_mut().all(|row| replace(row, row.checked_add(codes.rows)))
            && renumber(&mut self.shape, &codes.shapes)
    }

    /// Makes a batch of the rows so far and forgets them.
    pub(crate) fn take_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let batch = self.to_batch(&self.shapes)?;
        self.row.clear();
        self.shape.clear();
        (self.bytes, self.node) = Default::default();
        Ok(batch)
    }

    /// Writes the numbers of the shapes out, one column after the other.
    pub(crate) fn to_batch(&self, shapes: &Shapes) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![("row", false, dense::<UInt32Type>(self.row.clone()))];
        for field in DEVICE_NUMBERS {
            let column = match SHAPE.iter().position(|&member| member == field) {
                Some(index) => {
                    self.spread::<Int64Type>(shapes, |shape| Shapes::number(shape, index).map(u64::cast_signed))
                }
                None => self.bytes.to_array(),
            };
            columns.push((field.column(), true, column));
        }
        for field in DEVICE_IDS {
            let column = match SHAPE.iter().position(|&member| member == field) {
                Some(index) => self.spread::<UInt64Type>(shapes, |shape| Shapes::number(shape, index)),
                None => self.node.to_array(),
            };
            columns.push((field.column(), true, column));
        }
        batch(columns)
    }

    fn spread<T: ArrowPrimitiveType>(&self, shapes: &Shapes, number: impl Fn(&Shape) -> Option<T::Native>) -> ArrayRef {
        let numbers: Vec<Option<T::Native>> = shapes.iter().map(number).collect();
        let mut column = Sparse::<T>::default();
        for codes in self.shape.chunks(64) {
            let mut values = [T::Native::default(); 64];
            let mut bits = 0;
            for ((index, &code), value) in codes.iter().enumerate().zip(&mut values) {
                if let Some(number) = numbers.get(code as usize).copied().flatten() {
                    *value = number;
                    bits |= 1 << index;
                }
            }
            column.extend(values.iter().take(codes.len()), bits);
        }
        column.into_array()
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

    /// Makes a batch of the rows so far and forgets them.
    pub(crate) fn take_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns = vec![("row", false, dense::<UInt32Type>(std::mem::take(&mut self.row)))];
        for (field, column) in COLLECTIVE_TEXTS.into_iter().zip(&mut self.texts) {
            columns.push((field.column(), true, column.take_array()));
        }
        for (field, column) in COLLECTIVE_NUMBERS.into_iter().zip(&mut self.numbers) {
            columns.push((field.column(), true, std::mem::take(column).into_array()));
        }
        for (field, column) in COLLECTIVE_IDS.into_iter().zip(&mut self.ids) {
            columns.push((field.column(), true, std::mem::take(column).into_array()));
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

    /// Makes a batch of the rows so far and forgets them.
    pub(crate) fn take_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.row);
        batch(vec![("row", false, dense::<UInt32Type>(rows)), ("value", false, self.value.take_array())])
    }
}

/// Distinct names, from some code on.
pub(crate) fn names(names: &Interner, from: usize) -> Result<RecordBatch, ArrowError> {
    let mut column = StringViewBuilder::new();
    for name in names.iter().skip(from) {
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
