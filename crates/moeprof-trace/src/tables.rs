//! Events to rows: values are checked and converted here, once an event is known to be whole.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use crate::columns::{
    self, Codes as NewCodes, CollectiveArgs, DeviceArgs, Events, Labels, Row, SHAPE, Texts, shape_of,
};
use crate::event::Event;
use crate::fields::{COLLECTIVE_IDS, COLLECTIVE_NUMBERS, COLLECTIVE_TEXTS, FIELDS, Field};
use crate::intern::Interner;
use crate::json::{Cause, Kind, Quirk, Scalar};
use crate::notices::Slug;
use crate::shapes::Shapes;
use crate::spellings::{Context, Spellings};
use crate::values::{id, integer, time, unsigned};

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

#[derive(Debug, Default)]
struct Category {
    kept: u64,
    skipped: u64,
    skip: bool,
    code: Option<u16>,
}

/// All tables of a file while they grow.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    skip: Vec<String>,
    events: Events,
    device: DeviceArgs,
    collective: CollectiveArgs,
    labels: Labels,
    pub(crate) category_spellings: Spellings,
    categories: Vec<Category>,
    /// Codes into `category_spellings` by code of a kept category.
    kept_categories: Vec<u32>,
    pub(crate) phases: Spellings,
    pub(crate) names: Spellings,
    /// Process and thread, the length of the former before it.
    tracks: Interner,
    track_key: Vec<u8>,
    recent_tracks: [Option<RecentTrack>; RECENT_TRACKS],
    track_bytes: usize,
    range: Option<TimeRange>,
    /// Rows, names and tracks that were handed on in batches.
    given: Given,
}

/// From one time on, until before another, in ns.
pub(crate) type TimeRange = (i64, i64);

#[derive(Debug, Default, Clone, Copy)]
struct Given {
    rows: usize,
    names: usize,
    tracks: usize,
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

/// A track whose process and thread are natural numbers: most are, and few take turns.
#[derive(Debug, Clone, Copy)]
struct RecentTrack {
    process: u64,
    thread: u64,
    code: u32,
}

const RECENT_TRACKS: usize = 16;

/// What all events of a kind have in common, where they are predicted: the codes of their phase and category among the
/// spellings, and which fields have values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    phase: u8,
    pub(crate) category: u32,
    present: u64,
    /// Of phase M: kept whatever its time.
    is_label: bool,
}

impl Fixed {
    #[inline]
    fn has(&self, field: Field) -> bool {
        self.present & field.bit() != 0
    }
}

/// What every event that is predicted has.
const NEEDED: u64 = Field::Phase.bit()
    | Field::Category.bit()
    | Field::Name.bit()
    | Field::Process.bit()
    | Field::Thread.bit()
    | Field::Start.bit();

/// The values of an event that was predicted: numbers as they are, times in ns.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) numbers: [u64; FIELDS + 1],
    /// The code of the name, or where it stands.
    pub(crate) name: Option<u32>,
    pub(crate) name_at: usize,
    pub(crate) name_end: usize,
}

impl Known {
    #[inline]
    fn get(&self, field: Field) -> u64 {
        self.numbers[field as usize]
    }

    /// The code of a text of the args of collectives.
    fn text(&self, fixed: &Fixed, field: Field) -> Option<u32> {
        u32::try_from(self.get(field)).ok().filter(|_| fixed.has(field))
    }
}

/// The codes of an event's strings.
struct Codes {
    phase: u8,
    category: u16,
    name: u32,
    track: u32,
}

const MOST_PHASES: usize = 1 << u8::BITS;
const MOST_CATEGORIES: usize = 1 << u16::BITS;

impl Tables {
    pub(crate) fn new(skip: &[String], range: Option<TimeRange>) -> Self {
        Self { skip: skip.to_vec(), range, ..Self::default() }
    }

    /// Tells whether an event lies in the time that is asked for, at least in part.
    #[inline]
    fn is_outside(&self, start: Option<i64>, duration: Option<i64>) -> bool {
        let (Some((from, until)), Some(start)) = (self.range, start) else { return false };
        start >= until || start.saturating_add(duration.unwrap_or(0).max(0)) < from
    }

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

    /// Stores an event, or counts it where its category is skipped. An event that is refused leaves no trace.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event, context: &Context<'_>, quirks: &mut Vec<Quirk>) -> Result<(), Cause> {
        let category_text = text_or_empty(event, Field::Category);
        let category = self.category_spellings.get(context, category_text);
        if self.is_skipped(category, context, category_text) {
            return self.skip(category, context, category_text);
        }
        let start = time(event, Field::Start, context)?;
        let duration = time(event, Field::Duration, context)?;
        let is_label = || event.get(Field::Phase).is_some_and(|phase| *context.bytes(phase) == *b"M");
        if self.is_outside(start.value(), duration.value()) && !is_label() {
            return self.skip(category, context, category_text);
        }
        let row = u32::try_from(self.given.rows + self.events.len()).map_err(|_| Cause::TooMany("events"))?;
        self.check_args(event, context)?;
        let codes = self.codes(event, context, category)?;
        for (time, field) in [(&start, Field::Start), (&duration, Field::Duration)] {
            if let (Some(slug), Some(value)) = (time.slug(), event.get(field)) {
                quirks.push(Quirk::of(slug, value));
            }
        }
        if start.value().is_none() {
            note_missing_time(event, context, quirks);
        }
        self.events.push(&Row {
            phase: codes.phase,
            category: codes.category,
            name: codes.name,
            track: codes.track,
            start: start.value(),
            duration: duration.value(),
            correlation: id(event, Field::Correlation, context, quirks),
            external_id: id(event, Field::ExternalId, context, quirks),
        });
        self.push_args(event, context, row, quirks);
        Ok(())
    }

    #[inline]
    fn is_skipped(&self, category: Option<u32>, context: &Context<'_>, text: &Scalar) -> bool {
        match category.and_then(|code| self.categories.get(code as usize)) {
            Some(category) => category.skip,
            None => !self.skip.is_empty() && self.skip.contains(&context.text(text)),
        }
    }

    fn skip(&mut self, category: Option<u32>, context: &Context<'_>, text: &Scalar) -> Result<(), Cause> {
        let index = self.category(category, context, text)?;
        if let Some(category) = self.categories.get_mut(index as usize) {
            category.skipped += 1;
        }
        Ok(())
    }

    /// Returns the number of a category, which may be new.
    #[inline]
    fn category(&mut self, known: Option<u32>, context: &Context<'_>, text: &Scalar) -> Result<u32, Cause> {
        if let Some(code) = known {
            return Ok(code);
        }
        let code = self.category_spellings.add(context, text).ok_or(Cause::TooMany("categories"))?;
        let skip = self.skip.contains(&context.text(text));
        self.categories.push(Category { skip, ..Category::default() });
        Ok(code)
    }

    /// Looks the strings of an event up. Only where all of them fit are new ones added, and the event is counted.
    #[inline]
    fn codes(&mut self, event: &Event, context: &Context<'_>, category: Option<u32>) -> Result<Codes, Cause> {
        let (phase_text, name_text) = (text_or_empty(event, Field::Phase), text_or_empty(event, Field::Name));
        let phase = self.phases.get(context, phase_text);
        let name = self.names.get(context, name_text);
        let track = self.find_track(event, context);
        let kept = category.and_then(|code| self.categories.get(code as usize)).and_then(|category| category.code);
        if phase.is_none() || kept.is_none() || name.is_none() || track.is_none() {
            self.check_room(phase.is_none(), kept.is_none(), track.is_none())?;
        }
        let name = match name {
            Some(code) => code,
            None => self.names.add(context, name_text).ok_or(Cause::TooMany("names"))?,
        };
        let phase = match phase {
            Some(code) => code,
            None => self.phases.add(context, phase_text).ok_or(Cause::TooMany("phases"))?,
        };
        let track = match track {
            Some(code) => code,
            None => self.add_track()?,
        };
        let index = self.category(category, context, text_or_empty(event, Field::Category))?;
        let phase = u8::try_from(phase).map_err(|_| Cause::TooMany("phases"))?;
        Ok(Codes { phase, category: self.keep(index)?, name, track })
    }

    /// Refuses an event whose new strings would be more than the codes can tell apart.
    #[cold]
    fn check_room(&self, phase: bool, category: bool, track: bool) -> Result<(), Cause> {
        if phase && self.phases.texts.len() >= MOST_PHASES {
            return Err(Cause::TooMany("phases"));
        }
        if category && self.kept_categories.len() >= MOST_CATEGORIES {
            return Err(Cause::TooMany("categories"));
        }
        if track && self.track_bytes + self.track_key.len() > i32::MAX as usize {
            return Err(Cause::TooMany("tracks"));
        }
        Ok(())
    }

    /// Looks up what events of a kind have in common; None where they are not to be predicted.
    pub(crate) fn fixed(&self, phase: &[u8], category: &[u8], present: u64) -> Option<Fixed> {
        let category = self.category_spellings.texts.get(category)?;
        let is_skipped = self.categories.get(category as usize)?.skip;
        // The phase of an event that is skipped has no code, and needs none.
        let code = self.phases.texts.get(phase).or(is_skipped.then_some(0))?;
        let fixed = Fixed { phase: u8::try_from(code).ok()?, category, present, is_label: phase == b"M" };
        (present & NEEDED == NEEDED).then_some(fixed)
    }

    /// Stores an event of which everything is known; false, and nothing done, where anything is out of the ordinary.
    #[inline(always)]
    pub(crate) fn push_known(&mut self, fixed: &Fixed, known: &Known, text: &[u8]) -> bool {
        let Some(category) = self.categories.get_mut(fixed.category as usize) else { return false };
        if category.skip {
            category.skipped += 1;
            return true;
        }
        let number = |field| if fixed.has(field) { Some(known.get(field)) } else { None };
        if let Some((from, until)) = self.range
            && !fixed.is_label
        {
            let (start, duration) = (known.get(Field::Start), number(Field::Duration).unwrap_or(0));
            let (start, duration) = (start.cast_signed(), duration.cast_signed());
            if start >= until || start.saturating_add(duration) < from {
                category.skipped += 1;
                return true;
            }
        }
        let Some(code) = category.code else { return false };
        let Ok(row) = u32::try_from(self.given.rows + self.events.len()) else { return false };
        let Some(track) = known_track(
            &mut self.recent_tracks,
            &self.tracks,
            &mut self.track_key,
            known.get(Field::Process),
            known.get(Field::Thread),
        ) else {
            return false;
        };
        let is_collective = fixed.has(Field::Collective);
        if is_collective && !collective_fits(&self.collective, fixed, known) {
            return false;
        }
        let name = match known.name {
            Some(code) => code,
            None => match self.names.texts.insert(text.get(known.name_at..known.name_end).unwrap_or_default()) {
                Some(code) => code,
                None => return false,
            },
        };
        category.kept += 1;
        self.events.push(&Row {
            phase: fixed.phase,
            category: code,
            name,
            track,
            start: number(Field::Start).map(u64::cast_signed),
            duration: number(Field::Duration).map(u64::cast_signed),
            correlation: number(Field::Correlation),
            external_id: number(Field::ExternalId),
        });
        if fixed.present & (Field::Device.bit() | Field::Stream.bit() | Field::Bytes.bit()) != 0 {
            let bytes = number(Field::Bytes).map(u64::cast_signed);
            self.device.push(row, &shape_of(&known.numbers, fixed.present), bytes, number(Field::GraphNodeId));
        }
        if is_collective {
            self.push_known_collective(fixed, known, row);
        }
        true
    }

    /// Returns the code of a text of the args of collectives.
    #[inline(never)]
    pub(crate) fn collective_text(&self, field: Field, text: &[u8]) -> Option<u32> {
        let column = COLLECTIVE_TEXTS.iter().position(|&member| member == field)?;
        self.collective.texts.get(column)?.code(text)
    }

    #[inline(never)]
    fn push_known_collective(&mut self, fixed: &Fixed, known: &Known, row: u32) {
        let number = |field| if fixed.has(field) { Some(known.get(field)) } else { None };
        self.collective.row.push(row);
        for (column, field) in self.collective.texts.iter_mut().zip(COLLECTIVE_TEXTS) {
            column.push_code(known.text(fixed, field));
        }
        for (column, field) in self.collective.numbers.iter_mut().zip(COLLECTIVE_NUMBERS) {
            column.push(number(field).map(u64::cast_signed));
        }
        for (column, field) in self.collective.ids.iter_mut().zip(COLLECTIVE_IDS) {
            column.push(number(field));
        }
    }

    /// Looks a track up; where it is not among the recent ones, `track_key` is its key afterwards.
    #[inline]
    fn find_track(&mut self, event: &Event, context: &Context<'_>) -> Option<u32> {
        let numbers = natural(event, Field::Process).zip(natural(event, Field::Thread));
        let place = numbers.map(|(process, thread)| recent_place(process, thread));
        let place = place.and_then(|place| self.recent_tracks.get_mut(place));
        if let (Some(Some(recent)), Some((process, thread))) = (&place, numbers)
            && recent.process == process
            && recent.thread == thread
        {
            return Some(recent.code);
        }
        track_key(event, context, &mut self.track_key);
        let code = self.tracks.get(&self.track_key)?;
        if let (Some(place), Some((process, thread))) = (place, numbers) {
            *place = Some(RecentTrack { process, thread, code });
        }
        Some(code)
    }

    #[cold]
    fn add_track(&mut self) -> Result<u32, Cause> {
        self.track_bytes += self.track_key.len();
        self.tracks.insert(&self.track_key).ok_or(Cause::TooMany("tracks"))
    }

    /// Counts a kept event of a category and returns its code.
    #[inline]
    fn keep(&mut self, index: u32) -> Result<u16, Cause> {
        const TOO_MANY: Cause = Cause::TooMany("categories");
        let category = self.categories.get_mut(index as usize).ok_or(TOO_MANY)?;
        category.kept += 1;
        if let Some(code) = category.code {
            return Ok(code);
        }
        let code = u16::try_from(self.kept_categories.len()).map_err(|_| TOO_MANY)?;
        self.kept_categories.push(index);
        Ok(*category.code.insert(code))
    }

    /// Refuses an event whose texts do not fit into their columns.
    #[inline]
    fn check_args(&self, event: &Event, context: &Context<'_>) -> Result<(), Cause> {
        // A byte becomes at most three: U+FFFD.
        let size = |field| event.get(field).map_or(0, |value| context.raw(value).len().saturating_mul(3));
        let labels = [Field::LabelName, Field::Labels, Field::SortIndex];
        if event.has_any(labels[0].bit() | labels[1].bit() | labels[2].bit())
            && !self.labels.value.has_room(labels.map(size).into_iter().max().unwrap_or_default())
        {
            return Err(Cause::TooMany("bytes of labels"));
        }
        if event.has_any(Field::Collective.bit())
            && !self.collective.texts.iter().zip(COLLECTIVE_TEXTS).all(|(column, field)| column.has_room(size(field)))
        {
            return Err(Cause::TooMany("bytes of text in the args of collectives"));
        }
        Ok(())
    }

    #[inline]
    fn push_args(&mut self, event: &Event, context: &Context<'_>, row: u32, quirks: &mut Vec<Quirk>) {
        if event.has_any(Field::Device.bit() | Field::Stream.bit() | Field::Bytes.bit()) {
            self.push_device(event, context, row, quirks);
        }
        if event.get(Field::Collective).is_some_and(Scalar::is_text) {
            self.push_collective(event, context, row, quirks);
        }
        if event.has_any(Field::LabelName.bit() | Field::Labels.bit() | Field::SortIndex.bit()) {
            self.push_label(event, context, row);
        }
    }

    fn push_device(&mut self, event: &Event, context: &Context<'_>, row: u32, quirks: &mut Vec<Quirk>) {
        let numbers = [Field::Device, Field::Stream, Field::Bytes].map(|field| integer(event, field, context, quirks));
        if numbers == [None; 3] {
            return;
        }
        let [device, stream, bytes] = numbers;
        let (mut values, mut present) = ([0; FIELDS + 1], 0);
        for field in SHAPE {
            let number = match field {
                Field::Device => device.map(i64::cast_unsigned),
                Field::Stream => stream.map(i64::cast_unsigned),
                Field::GraphId => unsigned(event, field, context, quirks),
                other => integer(event, other, context, quirks).map(i64::cast_unsigned),
            };
            if let (Some(number), Some(place)) = (number, values.get_mut(field as usize)) {
                *place = number;
                present |= field.bit();
            }
        }
        let shape = shape_of(&values, present);
        let node = unsigned(event, Field::GraphNodeId, context, quirks);
        self.device.push(row, &shape, bytes, node);
    }

    #[cold]
    fn push_collective(&mut self, event: &Event, context: &Context<'_>, row: u32, quirks: &mut Vec<Quirk>) {
        self.collective.row.push(row);
        for (column, field) in self.collective.texts.iter_mut().zip(COLLECTIVE_TEXTS) {
            let text = event.get(field).filter(|value| value.is_text()).map(|value| context.bytes(value));
            column.push(text.as_deref());
        }
        for (column, field) in self.collective.numbers.iter_mut().zip(COLLECTIVE_NUMBERS) {
            column.push(integer(event, field, context, quirks));
        }
        for (column, field) in self.collective.ids.iter_mut().zip(COLLECTIVE_IDS) {
            column.push(unsigned(event, field, context, quirks));
        }
    }

    #[cold]
    fn push_label(&mut self, event: &Event, context: &Context<'_>, row: u32) {
        if event.get(Field::Phase).is_none_or(|phase| *context.bytes(phase) != *b"M") {
            return;
        }
        let text = |field| event.get(field).filter(|value| value.is_text());
        if let Some(value) =
            text(Field::LabelName).or_else(|| text(Field::Labels)).or_else(|| event.get(Field::SortIndex))
        {
            self.labels.row.push(row);
            self.labels.value.push(Some(&context.bytes(value)));
        }
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

/// Tells whether the texts of an event fit into their columns.
#[inline(never)]
fn collective_fits(columns: &CollectiveArgs, fixed: &Fixed, known: &Known) -> bool {
    columns.texts.iter().zip(COLLECTIVE_TEXTS).all(|(column, field)| {
        let code = known.text(fixed, field);
        code.is_none_or(|code| column.has_room(column.size(code)))
    })
}

/// Finds the track of two natural numbers, first among the recent ones.
#[inline(always)]
fn known_track(
    recent: &mut [Option<RecentTrack>; RECENT_TRACKS],
    tracks: &Interner,
    key: &mut Vec<u8>,
    process: u64,
    thread: u64,
) -> Option<u32> {
    let place = recent.get_mut(recent_place(process, thread))?;
    if let Some(recent) = place
        && recent.process == process
        && recent.thread == thread
    {
        return Some(recent.code);
    }
    let code = find_track(tracks, key, process, thread)?;
    *place = Some(RecentTrack { process, thread, code });
    Some(code)
}

#[inline(never)]
fn find_track(tracks: &Interner, key: &mut Vec<u8>, process: u64, thread: u64) -> Option<u32> {
    let process_text = process.to_string();
    key.clear();
    key.extend_from_slice(&(process_text.len() as u64).to_le_bytes());
    key.extend_from_slice(process_text.as_bytes());
    key.extend_from_slice(thread.to_string().as_bytes());
    tracks.get(key)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
fn recent_place(process: u64, thread: u64) -> usize {
    (process.wrapping_add(thread.wrapping_mul(7)) % RECENT_TRACKS as u64) as usize
}

fn batches_of(parts: impl Iterator<Item = Events>) -> Result<Vec<RecordBatch>, ArrowError> {
    let parts: Vec<Vec<RecordBatch>> = parts.map(Events::into_batches).collect::<Result<_, _>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Adds the strings of another interner; returns the new code of each.
fn append_texts(texts: &mut Interner, others: &Interner) -> Option<Vec<u32>> {
    others.iter().map(|text| texts.insert(text)).collect()
}

#[inline]
fn text_or_empty(event: &Event, field: Field) -> &Scalar {
    const EMPTY: &Scalar = &Scalar { kind: Kind::Plain, ..Scalar::NONE };
    event.get(field).filter(|value| value.is_text()).unwrap_or(EMPTY)
}

/// Returns a number whose digits are its only spelling.
#[inline]
fn natural(event: &Event, field: Field) -> Option<u64> {
    event
        .get(field)
        .filter(|value| value.kind == Kind::Number && value.places == 0 && !value.negative)
        .map(|v| v.mantissa)
}

/// Writes process and thread as one string of bytes: the length of the former first.
#[inline]
fn track_key(event: &Event, context: &Context<'_>, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&[0; 8]);
    for field in [Field::Process, Field::Thread] {
        if let Some(value) = event.get(field) {
            key.extend_from_slice(&context.bytes(value));
        }
        if field == Field::Process {
            let length = (key.len() - 8) as u64;
            if let Some(place) = key.first_chunk_mut::<8>() {
                *place = length.to_le_bytes();
            }
        }
    }
}

fn split_track(key: &[u8]) -> (&[u8], &[u8]) {
    let (length, texts) = key.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or_default();
    texts.split_at_checked(length).unwrap_or_default()
}

#[cold]
fn note_missing_time(event: &Event, context: &Context<'_>, quirks: &mut Vec<Quirk>) {
    if event.get(Field::Phase).is_some_and(|phase| phase.is_text() && *context.bytes(phase) == *b"X") {
        let name = event.get(Field::Name).copied().unwrap_or(Scalar::NONE);
        quirks.push(Quirk { slug: Slug::MissingTime, at: event.start, start: name.start, end: name.end });
    }
}
