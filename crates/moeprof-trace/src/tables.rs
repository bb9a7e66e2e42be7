//! Events to rows: values are checked and converted here, once an event is known to be whole.

use arrow_array::RecordBatch;
use arrow_array::builder::StringViewBuilder;
use arrow_schema::ArrowError;

use crate::columns::{self, CollectiveArgs, DeviceArgs, Events, Labels};
use crate::error::Position;
use crate::event::Event;
use crate::fields::Field;
use crate::intern::Interner;
use crate::json::{Cause, Kind, Scalar, decode};
use crate::notices::{Notices, Slug};
use crate::time;

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

/// What an event's values are read from.
pub(crate) struct Context<'a> {
    pub(crate) window: &'a [u8],
    pub(crate) place: &'a dyn Fn(usize) -> Position,
}

impl Context<'_> {
    fn raw(&self, value: &Scalar) -> &[u8] {
        self.window.get(value.start..value.end).unwrap_or_default()
    }

    pub(crate) fn text(&self, value: &Scalar) -> String {
        let mut text = String::new();
        if value.kind == Kind::Coded {
            decode(self.raw(value), &mut text);
        } else {
            text.push_str(&String::from_utf8_lossy(self.raw(value)));
        }
        text
    }
}

#[derive(Debug)]
struct Category {
    count: EventCount,
    skip: bool,
    code: Option<u16>,
}

/// Strings by their spelling in the file: escapes are decoded once for each new spelling.
#[derive(Debug, Default)]
struct Spellings {
    /// The spelling before this one; categories and phases come in runs.
    last: (Vec<u8>, u32),
    raw: Interner,
    decoded: Interner,
}

impl Spellings {
    /// Returns the code of a value, and its text where it is new and gets the code `next`.
    #[inline]
    fn code(&mut self, context: &Context<'_>, value: &Scalar, next: usize) -> Result<(u32, Option<String>), Cause> {
        let raw = context.raw(value);
        if self.last.0 == raw && next > 0 {
            return Ok((self.last.1, None));
        }
        let (code, new) = match self.raw.get(raw) {
            Some(code) => (code, None),
            None => self.new_code(context, value, next)?,
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(raw);
        self.last.1 = code;
        Ok((code, new))
    }

    #[cold]
    fn new_code(&mut self, context: &Context<'_>, value: &Scalar, next: usize) -> Result<(u32, Option<String>), Cause> {
        let text = context.text(value);
        let known = self.decoded.get(text.as_bytes());
        let code = match known {
            Some(code) => code,
            None => u32::try_from(next).ok().filter(|&code| code < u32::MAX).ok_or(Cause::TooMany("names"))?,
        };
        self.raw.insert(context.raw(value), code);
        if known.is_some() {
            return Ok((code, None));
        }
        self.decoded.insert(text.as_bytes(), code);
        Ok((code, Some(text)))
    }
}

/// All tables of a file while they grow.
#[derive(Default)]
pub(crate) struct Tables {
    skip: Vec<String>,
    events: Events,
    device: DeviceArgs,
    collective: CollectiveArgs,
    labels: Labels,
    category_spellings: Spellings,
    categories: Vec<Category>,
    kept_categories: Vec<String>,
    phase_spellings: Spellings,
    phases: Vec<String>,
    name_spellings: Spellings,
    names: StringViewBuilder,
    name_count: usize,
    track_codes: Interner,
    track_key: Vec<u8>,
    last_track: (Vec<u8>, u32),
    processes: Vec<String>,
    threads: Vec<String>,
}

/// The tables as record batches and lists.
pub(crate) struct Finished {
    pub(crate) events: RecordBatch,
    pub(crate) names: RecordBatch,
    pub(crate) tracks: RecordBatch,
    pub(crate) device_args: RecordBatch,
    pub(crate) collective_args: RecordBatch,
    pub(crate) labels: RecordBatch,
    pub(crate) categories: Vec<String>,
    pub(crate) phases: Vec<String>,
    pub(crate) event_counts: Vec<EventCount>,
}

const DEVICE_NUMBERS: [Field; 11] = [
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
    Field::Bytes,
];
const COLLECTIVE_TEXTS: [Field; 5] =
    [Field::Collective, Field::DataType, Field::GroupName, Field::GroupDescription, Field::GroupRanks];
const COLLECTIVE_NUMBERS: [Field; 5] =
    [Field::InElements, Field::OutElements, Field::GroupSize, Field::SourceRank, Field::DestinationRank];

impl Tables {
    pub(crate) fn new(skip: &[String]) -> Self {
        Self { skip: skip.to_vec(), ..Self::default() }
    }

    /// Stores an event, or counts it where its category is skipped.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event, context: &Context<'_>, notices: &mut Notices) -> Result<(), Cause> {
        let category = self.category(event, context)?;
        let Some(entry) = self.categories.get_mut(category) else { return Ok(()) };
        if entry.skip {
            entry.count.skipped += 1;
            return Ok(());
        }
        let row = u32::try_from(self.events.phase.len()).map_err(|_| Cause::TooMany("events"))?;
        let mut times = [None; 2];
        for (time, field) in times.iter_mut().zip([Field::Start, Field::Duration]) {
            if let Some(value) = number(event, field) {
                let read = time::nanoseconds(value, context.raw(value)).map_err(|_| Cause::TimeRange)?;
                *time = Some(read.value);
                if read.rounded {
                    notices.add(Slug::SubNanosecond, || ((context.place)(value.start), context.text(value)));
                }
            }
        }
        let phase = self.phase(event, context)?;
        let name = self.name(event, context)?;
        let track = self.track(event, context)?;
        let code = self.keep(category)?;
        if times[0].is_none() && event.get(Field::Phase).is_some_and(|phase| context.raw(phase) == b"X") {
            notices.add(Slug::MissingTime, || {
                let name = event.get(Field::Name).map(|name| context.text(name)).unwrap_or_default();
                ((context.place)(event.start), name)
            });
        }
        self.events.phase.push(phase);
        self.events.category.push(code);
        self.events.name.push(name);
        self.events.track.push(track);
        self.events.start.push(times[0]);
        self.events.duration.push(times[1]);
        self.events.correlation.push(id(event, Field::Correlation, context, notices));
        self.events.external_id.push(id(event, Field::ExternalId, context, notices));
        self.push_args(event, context, row);
        Ok(())
    }

    #[inline]
    fn push_args(&mut self, event: &Event, context: &Context<'_>, row: u32) {
        if event.has_any(Field::Device.bit() | Field::Stream.bit() | Field::Bytes.bit()) {
            self.push_device(event, context, row);
        }
        if event.get(Field::Collective).is_some_and(Scalar::is_text) {
            self.push_collective(event, context, row);
        }
        if event.has_any(Field::LabelName.bit() | Field::Labels.bit() | Field::SortIndex.bit()) {
            self.push_label(event, context, row);
        }
    }

    fn push_device(&mut self, event: &Event, context: &Context<'_>, row: u32) {
        let numbers = DEVICE_NUMBERS.map(|field| integer(event, field, context));
        let [device, stream, .., bytes] = numbers;
        if device.or(stream).or(bytes).is_none() {
            return;
        }
        self.device.row.push(row);
        for (column, number) in self.device.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        self.device.graph_id.push(unsigned(event, Field::GraphId, context));
        self.device.graph_node_id.push(unsigned(event, Field::GraphNodeId, context));
    }

    #[cold]
    fn push_collective(&mut self, event: &Event, context: &Context<'_>, row: u32) {
        self.collective.row.push(row);
        for (column, field) in self.collective.texts.iter_mut().zip(COLLECTIVE_TEXTS) {
            column.push(event.get(field).filter(|value| value.is_text()).map(|value| context.text(value)));
        }
        for (column, field) in self.collective.numbers.iter_mut().zip(COLLECTIVE_NUMBERS) {
            column.push(integer(event, field, context));
        }
        self.collective.sequence.push(unsigned(event, Field::Sequence, context));
        self.collective.comms_id.push(unsigned(event, Field::CommsId, context));
    }

    #[cold]
    fn push_label(&mut self, event: &Event, context: &Context<'_>, row: u32) {
        if event.get(Field::Phase).is_none_or(|phase| context.text(phase) != "M") {
            return;
        }
        let text = |field| event.get(field).filter(|value| value.is_text());
        if let Some(value) =
            text(Field::LabelName).or_else(|| text(Field::Labels)).or_else(|| event.get(Field::SortIndex))
        {
            self.labels.row.push(row);
            self.labels.value.push(context.text(value));
        }
    }

    #[inline]
    fn category(&mut self, event: &Event, context: &Context<'_>) -> Result<usize, Cause> {
        let value = text_or_empty(event, Field::Category);
        let (code, new) = self.category_spellings.code(context, value, self.categories.len())?;
        if let Some(category) = new {
            let skip = self.skip.contains(&category);
            let count = EventCount { category, kept: 0, skipped: 0 };
            self.categories.push(Category { count, skip, code: None });
        }
        Ok(code as usize)
    }

    /// Counts a kept event of a category and returns its code.
    #[inline]
    fn keep(&mut self, index: usize) -> Result<u16, Cause> {
        let Some(category) = self.categories.get_mut(index) else { return Err(Cause::TooMany("categories")) };
        let code = if let Some(code) = category.code {
            code
        } else {
            let code = u16::try_from(self.kept_categories.len()).map_err(|_| Cause::TooMany("categories"))?;
            self.kept_categories.push(category.count.category.clone());
            *category.code.insert(code)
        };
        category.count.kept += 1;
        Ok(code)
    }

    #[inline]
    fn phase(&mut self, event: &Event, context: &Context<'_>) -> Result<u8, Cause> {
        let value = text_or_empty(event, Field::Phase);
        let (code, new) = self.phase_spellings.code(context, value, self.phases.len())?;
        if let Some(phase) = new {
            self.phases.push(phase);
        }
        u8::try_from(code).map_err(|_| Cause::TooMany("phases"))
    }

    #[inline]
    fn name(&mut self, event: &Event, context: &Context<'_>) -> Result<u32, Cause> {
        let value = text_or_empty(event, Field::Name);
        let (code, new) = self.name_spellings.code(context, value, self.name_count)?;
        if let Some(name) = new {
            self.names.append_value(&name);
            self.name_count += 1;
        }
        Ok(code)
    }

    #[inline]
    fn track(&mut self, event: &Event, context: &Context<'_>) -> Result<u32, Cause> {
        let mut key = std::mem::take(&mut self.track_key);
        key.clear();
        for field in [Field::Process, Field::Thread] {
            let length = key.len();
            key.extend_from_slice(&[0; 8]);
            if let Some(value) = event.get(field) {
                if value.kind == Kind::Coded {
                    key.extend_from_slice(context.text(value).as_bytes());
                } else {
                    key.extend_from_slice(context.raw(value));
                }
            }
            let bytes = (key.len() - length - 8) as u64;
            if let Some(place) = key.get_mut(length..length + 8) {
                place.copy_from_slice(&bytes.to_le_bytes());
            }
        }
        let code = if self.last_track.0 == key { Some(self.last_track.1) } else { self.track_codes.get(&key) };
        let code = match code {
            Some(code) => code,
            None => self.new_track(event, context, &key)?,
        };
        if self.last_track.0 != key {
            self.last_track.0.clone_from(&key);
            self.last_track.1 = code;
        }
        self.track_key = key;
        Ok(code)
    }

    #[cold]
    fn new_track(&mut self, event: &Event, context: &Context<'_>, key: &[u8]) -> Result<u32, Cause> {
        let code = u32::try_from(self.processes.len()).map_err(|_| Cause::TooMany("tracks"))?;
        let text = |field| event.get(field).map(|value| context.text(value)).unwrap_or_default();
        self.processes.push(text(Field::Process));
        self.threads.push(text(Field::Thread));
        self.track_codes.insert(key, code);
        Ok(code)
    }

    pub(crate) fn finish(self) -> Result<Finished, ArrowError> {
        Ok(Finished {
            events: self.events.into_batch()?,
            names: columns::names(self.names)?,
            tracks: columns::tracks(self.processes, self.threads)?,
            device_args: self.device.into_batch()?,
            collective_args: self.collective.into_batch()?,
            labels: self.labels.into_batch()?,
            categories: self.kept_categories,
            phases: self.phases,
            event_counts: self
                .categories
                .into_iter()
                .map(|category| category.count)
                .filter(|count| count.kept + count.skipped > 0)
                .collect(),
        })
    }
}

#[inline]
fn text_or_empty(event: &Event, field: Field) -> &Scalar {
    const EMPTY: &Scalar = &Scalar { kind: Kind::Plain, ..Scalar::NONE };
    event.get(field).filter(|value| value.is_text()).unwrap_or(EMPTY)
}

#[inline]
fn number(event: &Event, field: Field) -> Option<&Scalar> {
    event.get(field).filter(|value| matches!(value.kind, Kind::Number | Kind::Long))
}

/// Returns an integer as sign and size; None for fractions, exponents and what 64 bits cannot hold.
#[inline]
fn whole(value: &Scalar, context: &Context<'_>) -> Option<(bool, u64)> {
    if value.kind == Kind::Number {
        return (value.places == 0).then_some((value.negative, value.mantissa));
    }
    let text = std::str::from_utf8(context.raw(value)).ok()?;
    text.trim_start_matches('-').parse().ok().map(|size| (value.negative, size))
}

#[inline]
fn integer(event: &Event, field: Field, context: &Context<'_>) -> Option<i64> {
    match whole(number(event, field)?, context)? {
        (true, size) => 0i64.checked_sub_unsigned(size),
        (false, size) => i64::try_from(size).ok(),
    }
}

#[inline]
fn unsigned(event: &Event, field: Field, context: &Context<'_>) -> Option<u64> {
    whole(number(event, field)?, context).filter(|&(negative, size)| !negative || size == 0).map(|(_, size)| size)
}

#[inline]
fn id(event: &Event, field: Field, context: &Context<'_>, notices: &mut Notices) -> Option<u64> {
    let value = number(event, field)?;
    let id = unsigned(event, field, context);
    if id.is_none() {
        notices.add(Slug::BadId, || ((context.place)(value.start), context.text(value)));
    }
    id
}
