//! A database: its tables and their columns, and the rows of one table as Arrow columns.

use std::path::{Path, PathBuf};
use std::thread;

use arrow_array::RecordBatch;

use crate::columns::{Codes, Integers, Texts, batch};
use crate::error::{Failure, NsysError};
use crate::pages::{self, Layout};
use crate::record::{self, Value};
use crate::schema::{self, Columns};
use crate::source::Source;

/// The table of tables lies at the first page.
const SCHEMA_PAGE: u32 = 1;
/// Pages below which a thread more costs more than it brings.
const LEAST_PAGES: usize = 64;
const MOST_THREADS: usize = 8;

/// An `SQLite` database, read only: a file, or a gzip file of one.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    source: Source,
    layout: Layout,
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    name: String,
    root: u32,
    columns: Columns,
}

/// Some columns of a table.
#[derive(Debug)]
pub struct TableColumns {
    /// Whole numbers as `Int64`, texts as numbers (`UInt32`) of `texts`.
    pub columns: RecordBatch,
    /// The distinct texts of all text columns, column `text`.
    pub texts: RecordBatch,
    /// Values of another type than asked for; they are null.
    pub mismatched: u64,
    /// Texts that are not valid UTF-8; their bad bytes were replaced.
    pub invalid_utf8: u64,
}

impl Database {
    /// Opens a database and reads which tables there are.
    pub fn open(path: &Path) -> Result<Self, NsysError> {
        Self::opened(path).map_err(|failure| failure.of(path))
    }

    fn opened(path: &Path) -> Result<Self, Failure> {
        let source = Source::open(path)?;
        let layout = Layout::read(&source)?;
        refuse_unfinished(path, layout)?;
        let tables = tables(&source, &layout)?;
        Ok(Self { path: path.to_path_buf(), source, layout, tables })
    }

    /// Returns the names of the tables and of their columns, in the order of the file.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.tables.iter().map(|table| (table.name.as_str(), table.columns.names.as_slice()))
    }

    /// Counts the rows of a table; a table that is not there has none.
    pub fn rows(&self, table: &str) -> Result<u64, NsysError> {
        let Some(table) = self.table(table) else { return Ok(0) };
        let count = || pages::count(&self.source, &self.layout, &self.leaves(table)?);
        count().map_err(|failure| failure.of(&self.path))
    }

    /// Reads some columns of a table, those that are there, in the order asked for.
    ///
    /// A table that is not there gives no column.
    pub fn read(&self, table: &str, integers: &[String], texts: &[String]) -> Result<TableColumns, NsysError> {
        self.columns(table, integers, texts).map_err(|failure| failure.of(&self.path))
    }

    fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    fn leaves(&self, table: &Table) -> Result<Vec<u32>, Failure> {
        if table.columns.without_rowid {
            return Err(Failure::Unsupported(format!("table {} is WITHOUT ROWID: nsys writes none", table.name)));
        }
        pages::leaves(&self.source, &self.layout, table.root)
    }

    fn columns(&self, name: &str, integers: &[String], texts: &[String]) -> Result<TableColumns, Failure> {
        let Some(table) = self.table(name) else { return finished(Part::default(), &[]) };
        let plan = Plan::new(&table.columns, integers, texts);
        let leaves = self.leaves(table)?;
        let threads = threads(leaves.len());
        let share = leaves.len().div_ceil(threads).max(1);
        let parts: Vec<Result<Part, Failure>> = if threads == 1 {
            vec![self.part(&plan, &leaves)]
        } else {
            thread::scope(|scope| {
                let plan = &plan;
                let running: Vec<_> =
                    leaves.chunks(share).map(|leaves| scope.spawn(move || self.part(plan, leaves))).collect();
                let lost = || Err(Failure::Unsupported("a thread of the reader ended early".to_owned()));
                running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
            })
        };
        let parts = parts.into_iter().collect::<Result<Vec<Part>, Failure>>()?;
        let whole = joined(parts).ok_or_else(|| Failure::Unsupported(format!("table {name} has too many texts")))?;
        finished(whole, &plan.names)
    }

    fn part(&self, plan: &Plan, leaves: &[u32]) -> Result<Part, Failure> {
        let mut part = Part::new(plan);
        pages::rows(&self.source, &self.layout, leaves, |row, record| part.push(plan, row, record))?;
        Ok(part)
    }
}

/// Refuses a database whose newest rows lie in a file beside it.
fn refuse_unfinished(path: &Path, layout: Layout) -> Result<(), Failure> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_os_string();
        name.push(suffix);
        std::fs::metadata(name).is_ok_and(|file| file.len() > 0)
    };
    if beside("-journal") {
        let message = "its writer was killed or is still running: a rollback journal lies beside the database";
        return Err(Failure::Truncated(0, message.to_owned()));
    }
    if layout.logs && beside("-wal") {
        let message = "rows are still in the write-ahead log beside the database";
        return Err(Failure::Truncated(0, message.to_owned()));
    }
    Ok(())
}

fn tables(source: &Source, layout: &Layout) -> Result<Vec<Table>, Failure> {
    let mut found = Vec::new();
    pages::rows(source, layout, &pages::leaves(source, layout, SCHEMA_PAGE)?, |_, record| {
        let (mut kind, mut name, mut root, mut sql) = (&b""[..], &b""[..], 0, &b""[..]);
        record::walk(
            record,
            &[(); 5],
            |()| true,
            |column, (), value| match (column, value) {
                (0, Value::Text(text)) => kind = text,
                (1, Value::Text(text)) => name = text,
                (3, Value::Integer(page)) => root = page,
                (4, Value::Text(text)) => sql = text,
                _ => {}
            },
        )?;
        let columns = schema::columns(&String::from_utf8_lossy(sql));
        if let (b"table", Some(columns), Ok(root @ 1..)) = (kind, columns, u32::try_from(root)) {
            found.push(Table { name: String::from_utf8_lossy(name).into_owned(), root, columns });
        }
        Some(())
    })?;
    Ok(found)
}

fn threads(leaves: usize) -> usize {
    let available = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    available.min(leaves / LEAST_PAGES).max(1)
}

/// Where the value of a stored column goes.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Integer(usize),
    Text(usize),
}

/// Which stored columns are wanted.
#[derive(Debug)]
struct Plan {
    slots: Vec<Option<Slot>>,
    key: Option<usize>,
    names: Vec<(String, Slot)>,
    integers: usize,
    texts: usize,
}

impl Plan {
    fn new(columns: &Columns, integers: &[String], texts: &[String]) -> Self {
        let mut plan = Self { slots: Vec::new(), key: None, names: Vec::new(), integers: 0, texts: 0 };
        let wanted = integers.iter().map(|name| (name, true)).chain(texts.iter().map(|name| (name, false)));
        for (name, is_integer) in wanted {
            let Some(at) = columns.names.iter().position(|own| own.eq_ignore_ascii_case(name)) else { continue };
            if plan.slots.len() <= at {
                plan.slots.resize(at + 1, None);
            }
            let slot = if is_integer { Slot::Integer(plan.integers) } else { Slot::Text(plan.texts) };
            if let Some(free @ None) = plan.slots.get_mut(at) {
                *free = Some(slot);
                plan.integers += usize::from(is_integer);
                plan.texts += usize::from(!is_integer);
                plan.names.push((name.clone(), slot));
                if columns.key == Some(at) {
                    plan.key = Some(at);
                }
            }
        }
        plan
    }
}

/// The columns that one thread has read.
#[derive(Debug, Default)]
struct Part {
    integers: Vec<Integers>,
    codes: Vec<Codes>,
    texts: Texts,
    rows: usize,
    mismatched: u64,
    /// A text found no room, so nothing here may be used.
    full: bool,
}

impl Part {
    fn new(plan: &Plan) -> Self {
        let mut part = Self::default();
        part.integers.resize_with(plan.integers, Integers::default);
        part.codes.resize_with(plan.texts, Codes::default);
        part
    }

    #[inline]
    fn push(&mut self, plan: &Plan, row: i64, record: &[u8]) -> Option<()> {
        record::walk(record, &plan.slots, Option::is_some, |column, slot, value| {
            let Some(slot) = *slot else { return };
            let value = if plan.key == Some(column) && value == Value::Null { Value::Integer(row) } else { value };
            self.put(slot, value);
        })?;
        self.rows += 1;
        self.fill_up();
        Some(())
    }

    #[inline]
    fn put(&mut self, slot: Slot, value: Value<'_>) {
        match slot {
            Slot::Integer(index) => {
                let known = match value {
                    Value::Integer(number) => Some(number),
                    Value::Null => None,
                    other => self.unusual(other),
                };
                let Some(column) = self.integers.get_mut(index) else { return };
                match known {
                    Some(number) => column.push(number),
                    None => column.push_absent(),
                }
            }
            Slot::Text(index) => {
                let code = match value {
                    Value::Text(text) => {
                        let code = self.texts.insert(text);
                        self.full |= code.is_none();
                        code
                    }
                    Value::Null => None,
                    _ => {
                        self.mismatched += 1;
                        None
                    }
                };
                let Some(column) = self.codes.get_mut(index) else { return };
                match code {
                    Some(code) => column.push(code),
                    None => column.push_absent(),
                }
            }
        }
    }

    /// A whole number that is written as a real number or a text is that number; anything else is counted.
    #[cold]
    fn unusual(&mut self, value: Value<'_>) -> Option<i64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let known = match value {
            #[allow(clippy::cast_possible_truncation, reason = "whole and below 2^53, so nothing is cut off")]
            Value::Real(real) if real.fract() == 0.0 && real.abs() <= EXACT => Some(real as i64),
            Value::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        self.mismatched += u64::from(known.is_none());
        known
    }

    /// A row may hold fewer values than the table has columns: those that were added later.
    #[inline]
    fn fill_up(&mut self) {
        let rows = self.rows;
        for column in &mut self.integers {
            if column.len() < rows {
                column.push_absent();
            }
        }
        for column in &mut self.codes {
            if column.len() < rows {
                column.push_absent();
            }
        }
    }
}

fn joined(parts: Vec<Part>) -> Option<Part> {
    if parts.iter().any(|part| part.full) {
        return None;
    }
    let total: usize = parts.iter().map(|part| part.rows).sum();
    let mut parts = parts.into_iter();
    let mut whole = parts.next()?;
    let more = total - whole.rows;
    whole.integers.iter_mut().for_each(|column| column.reserve(more));
    whole.codes.iter_mut().for_each(|column| column.reserve(more));
    for part in parts {
        let numbers = whole.texts.merge(&part.texts)?;
        for (column, other) in whole.integers.iter_mut().zip(&part.integers) {
            column.append(other, |value| value);
        }
        for (column, other) in whole.codes.iter_mut().zip(&part.codes) {
            column.append(other, |code| numbers.get(code as usize).copied().unwrap_or_default());
        }
        whole.rows += part.rows;
        whole.mismatched += part.mismatched;
    }
    Some(whole)
}

fn finished(part: Part, names: &[(String, Slot)]) -> Result<TableColumns, Failure> {
    let failed = |error: arrow_schema::ArrowError| Failure::Unsupported(error.to_string());
    let mut integers: Vec<_> = part.integers.into_iter().map(Some).collect();
    let mut codes: Vec<_> = part.codes.into_iter().map(Some).collect();
    let mut columns = Vec::new();
    for (name, slot) in names {
        let array = match *slot {
            Slot::Integer(index) => integers.get_mut(index).and_then(Option::take).map(Integers::into_array),
            Slot::Text(index) => codes.get_mut(index).and_then(Option::take).map(Codes::into_array),
        };
        columns.extend(array.map(|array| (name.clone(), array)));
    }
    let columns = if columns.is_empty() {
        RecordBatch::new_empty(std::sync::Arc::new(arrow_schema::Schema::empty()))
    } else {
        batch(columns).map_err(failed)?
    };
    let (texts, invalid_utf8) = part.texts.into_batch().map_err(failed)?;
    Ok(TableColumns { columns, texts, mismatched: part.mismatched, invalid_utf8 })
}
