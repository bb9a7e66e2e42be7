//! Events to rows: values are checked and converted here, once an event is known to be whole.

mod output;
mod predicted;
mod tracks;

pub(crate) use output::Rows;
pub use output::{Batch, DeviceTable, EventCount};
pub(crate) use predicted::{Fixed, Known};
use tracks::{RECENT_TRACKS, RecentTrack};

use crate::columns::{CollectiveArgs, DeviceArgs, Events, Labels, Row, SHAPE, shape_of};
use crate::event::Event;
use crate::fields::{COLLECTIVE_IDS, COLLECTIVE_NUMBERS, COLLECTIVE_TEXTS, FIELDS, Field};
use crate::intern::Interner;
use crate::json::{Cause, Kind, Quirk, Scalar};
use crate::notices::Slug;
use crate::spellings::{Context, Spellings};
use crate::values::{id, integer, time, unsigned};

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
}

#[inline]
fn text_or_empty(event: &Event, field: Field) -> &Scalar {
    const EMPTY: &Scalar = &Scalar { kind: Kind::Plain, ..Scalar::NONE };
    event.get(field).filter(|value| value.is_text()).unwrap_or(EMPTY)
}

#[cold]
fn note_missing_time(event: &Event, context: &Context<'_>, quirks: &mut Vec<Quirk>) {
    if event.get(Field::Phase).is_some_and(|phase| phase.is_text() && *context.bytes(phase) == *b"X") {
        let name = event.get(Field::Name).copied().unwrap_or(Scalar::NONE);
        quirks.push(Quirk { slug: Slug::MissingTime, at: event.start, start: name.start, end: name.end });
    }
}
