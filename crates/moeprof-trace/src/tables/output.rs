//! What is handed on: whole tables, batches of them, and the tables of several parts put together.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::tracks::split_track;
use super::{Category, Given, MOST_PHASES, Tables};
use crate::columns::{self, Codes as NewCodes, DeviceArgs, Events, Texts};
use crate::intern::Interner;
use crate::shapes::Shapes;

/// How many events of a category were kept and skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCount {
    /// The category, "" where an event has none.
    pub category: String,
    /// Events that are rows.
    pub kept: u64,
    /// Events that were only counted.
    pub skipped: u64,
}

/// Some events with what belongs to them. Codes go on from batch to batch, and `row` counts from the first event of all.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The events.
    pub events: Vec<RecordBatch>,
    /// Names that are new; the first one's code is the number of names in the batches before.
    pub names: RecordBatch,
    /// Tracks that are new.
    pub tracks: RecordBatch,
    /// Device, stream, grid and the like.
    pub device_args: RecordBatch,
    /// Collective communication.
    pub collective_args: RecordBatch,
    /// Names of processes and threads.
    pub labels: RecordBatch,
    /// All categories so far.
    pub categories: Vec<String>,
    /// All phases so far.
    pub phases: Vec<String>,
}

/// The tables as record batches and lists.
pub(crate) struct Finished {
    pub(crate) events: Vec<RecordBatch>,
    pub(crate) names: RecordBatch,
    pub(crate) tracks: RecordBatch,
    pub(crate) device_args: DeviceTable,
    pub(crate) collective_args: RecordBatch,
    pub(crate) labels: RecordBatch,
    pub(crate) categories: Vec<String>,
    pub(crate) phases: Vec<String>,
    pub(crate) event_counts: Vec<EventCount>,
}

/// The rows of one part of a file.
#[derive(Debug)]
pub(crate) struct Rows {
    events: Events,
    device: DeviceArgs,
}

impl Rows {
    /// Gives the rows the codes of the whole file; false where a code has none.
    pub(crate) fn renumber(&mut self, codes: &NewCodes) -> bool {
        self.events.renumber(codes) && self.device.renumber(codes)
    }
}

/// The table `device_args`, kept small: the columns of `docs/native.md` are made when they are asked for.
#[derive(Debug)]
pub struct DeviceTable {
    shapes: Shapes,
    parts: Vec<DeviceArgs>,
}

impl DeviceTable {
    /// Makes the record batches; all of them have the same columns, and there is at least one.
    pub fn to_batches(&self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.parts.iter().map(|part| part.to_batch(&self.shapes)).collect()
    }

    /// Number of rows.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.parts.iter().map(DeviceArgs::len).sum()
    }
}

impl Tables {
    /// Hands on the rows so far, with the names and tracks that are new.
    pub(crate) fn take_batch(&mut self) -> Result<Batch, ArrowError> {
        let given = self.given;
        self.given =
            Given { rows: given.rows + self.events.len(), names: self.names.texts.len(), tracks: self.tracks.len() };
        let categories = self.kept_categories.iter();
        let text = |&code: &u32| String::from_utf8_lossy(self.category_spellings.texts.bytes(code)).into_owned();
        Ok(Batch {
            categories: categories.map(text).collect(),
            phases: self.phases.list(),
            names: columns::names(&self.names.texts, given.names)?,
            tracks: self.tracks_from(given.tracks)?,
            device_args: self.device.take_batch()?,
            collective_args: self.collective.take_batch()?,
            labels: self.labels.take_batch()?,
            events: std::mem::take(&mut self.events).into_batches()?,
        })
    }

    /// Tells whether rows were handed on.
    pub(crate) fn has_given(&self) -> bool {
        self.given.rows > 0
    }

    fn tracks_from(&self, from: usize) -> Result<RecordBatch, ArrowError> {
        let (mut processes, mut threads) = (Texts::default(), Texts::default());
        for key in self.tracks.iter().skip(from) {
            let (process, thread) = split_track(key);
            processes.push(Some(process));
            threads.push(Some(thread));
        }
        columns::tracks(processes, threads)
    }

    pub(crate) fn num_events(&self) -> usize {
        self.events.len()
    }

    /// Takes in the tables of the text that follows, but for their rows of events and devices: these get the codes that
    /// are returned. None where both together are more than tables can hold.
    pub(crate) fn append(&mut self, other: &Self, rows: usize) -> Option<NewCodes> {
        let total = u32::try_from(rows + other.events.len()).ok()?;
        let rows = total - u32::try_from(other.events.len()).ok()?;
        let names = append_texts(&mut self.names.texts, &other.names.texts)?;
        let phases = append_texts(&mut self.phases.texts, &other.phases.texts)?;
        let tracks = append_texts(&mut self.tracks, &other.tracks)?;
        let shapes = other.device.shapes.iter().map(|shape| self.device.shapes.code(shape)).collect::<Option<_>>()?;
        self.track_bytes += other.track_bytes;
        if self.phases.texts.len() > MOST_PHASES || self.track_bytes > i32::MAX as usize {
            return None;
        }
        let categories = self.append_categories(other)?;
        let fits = self.collective.append(&other.collective, rows) && self.labels.append(&other.labels, rows);
        fits.then_some(NewCodes { phases, categories, names, tracks, shapes, rows })
    }

    /// Takes the rows of events and devices out.
    pub(crate) fn into_rows(self) -> Rows {
        Rows { events: self.events, device: self.device }
    }

    /// Adds the counts of categories; returns the new code of each kept one.
    fn append_categories(&mut self, other: &Self) -> Option<Vec<u16>> {
        let codes = append_texts(&mut self.category_spellings.texts, &other.category_spellings.texts)?;
        self.categories.resize_with(self.category_spellings.texts.len(), Category::default);
        for (&code, category) in codes.iter().zip(&other.categories) {
            let sum = self.categories.get_mut(code as usize)?;
            sum.kept += category.kept;
            sum.skipped += category.skipped;
            sum.skip = category.skip;
        }
        let mut kept = Vec::new();
        for &index in &other.kept_categories {
            let code = *codes.get(index as usize)?;
            let category = self.categories.get_mut(code as usize)?;
            if category.code.is_none() {
                category.code = Some(u16::try_from(self.kept_categories.len()).ok()?);
                self.kept_categories.push(code);
            }
            kept.push(category.code?);
        }
        Some(kept)
    }

    /// Makes record batches of these tables, with the rows of later parts behind their own.
    pub(crate) fn finish(mut self, others: Vec<Rows>) -> Result<Finished, ArrowError> {
        let shapes = std::mem::take(&mut self.device.shapes);
        let (collective_args, labels) = (self.collective.take_batch()?, self.labels.take_batch()?);
        let texts = &self.category_spellings.texts;
        let text = |code: u32| String::from_utf8_lossy(texts.bytes(code)).into_owned();
        let count = |(code, category): (u32, &Category)| EventCount {
            category: text(code),
            kept: category.kept,
            skipped: category.skipped,
        };
        let (events, devices): (Vec<_>, Vec<_>) = others.into_iter().map(|rows| (rows.events, rows.device)).unzip();
        Ok(Finished {
            categories: self.kept_categories.iter().map(|&code| text(code)).collect(),
            event_counts: (0..).zip(&self.categories).map(count).collect(),
            names: columns::names(&self.names.texts, 0)?,
            tracks: self.tracks_from(0)?,
            phases: self.phases.list(),
            device_args: DeviceTable { shapes, parts: std::iter::once(self.device).chain(devices).collect() },
            events: batches_of(std::iter::once(self.events).chain(events))?,
            collective_args,
            labels,
        })
    }
}

fn batches_of(parts: impl Iterator<Item = Events>) -> Result<Vec<RecordBatch>, ArrowError> {
    let parts: Vec<Vec<RecordBatch>> = parts.map(Events::into_batches).collect::<Result<_, _>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Adds the strings of another interner; returns the new code of each.
fn append_texts(texts: &mut Interner, others: &Interner) -> Option<Vec<u32>> {
    others.iter().map(|text| texts.insert(text)).collect()
}
