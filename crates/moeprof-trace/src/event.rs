//! One event: its values as places in the window. Nothing is stored before the whole event has been read.

use crate::fields::{EVENT_LEVEL, FIELDS, Field};
use crate::gap::{Level, gap};
use crate::json::{Cause, Cursor, Kind, List, Scalar, Stop};
use crate::notices::Slug;

/// Brackets open around the members of an event (document, traceEvents, event).
const EVENT_DEPTH: u32 = 3;

/// The values of one event, reused for the next.
pub(crate) struct Event {
    /// Where the event begins and ends in the window.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// No member at all, or null.
    pub(crate) empty: bool,
    present: u64,
    /// One more than there are fields: values that nobody asks for go there.
    values: [Scalar; FIELDS + 1],
    /// Whether to note the steps.
    pub(crate) record: bool,
    /// The way through the event, and whether an event with the same gaps means the same.
    pub(crate) steps: Vec<Step>,
    pub(crate) regular: bool,
}

/// A value and the gap before it; the value's first byte (of a string, its quote) is at `at`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) at: usize,
    pub(crate) reads: Reads,
    /// The gap holds the key args, so what earlier args said no longer counts.
    pub(crate) args: bool,
    pub(crate) value: Scalar,
}

/// What follows a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// A value inside so many brackets.
    Value(Field, u32),
    /// The first number of an array, which takes the place of what an earlier array said.
    First(Field),
    /// Nothing: the event is over.
    End,
}

impl Event {
    pub(crate) fn new() -> Self {
        Self {
            start: 0,
            end: 0,
            empty: true,
            present: 0,
            values: [Scalar::NONE; FIELDS + 1],
            record: false,
            steps: Vec::new(),
            regular: false,
        }
    }

    #[inline]
    pub(crate) fn get(&self, field: Field) -> Option<&Scalar> {
        if self.present & field.bit() == 0 { None } else { self.values.get(field as usize) }
    }

    /// Tells whether any of the fields, given as bits, has a value.
    #[inline]
    pub(crate) fn has_any(&self, bits: u64) -> bool {
        self.present & bits != 0
    }

    fn unset(&mut self, field: Field) {
        for member in field.triple().unwrap_or([field; 3]) {
            self.present &= !member.bit();
        }
    }

    /// Reads the element of traceEvents at the cursor.
    #[inline]
    pub(crate) fn read(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<(), Stop> {
        self.present = 0;
        self.empty = true;
        self.steps.clear();
        self.regular = self.record;
        let byte = cursor.token()?;
        self.start = cursor.at;
        if byte == b'{' {
            cursor.at += 1;
            self.members(cursor)?;
        } else {
            let value = cursor.value(EVENT_DEPTH - 1)?;
            if cursor.slice(value) != b"null" || value.kind != Kind::Other {
                return Err(Stop::Bad(self.start, Cause::NotAnEvent));
            }
        }
        self.end = cursor.at;
        if self.empty {
            cursor.quirk(Slug::EmptyEvent, self.start, self.start, self.end);
        }
        Ok(())
    }

    fn members(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<(), Stop> {
        let mut level = Level::Start;
        let mut value = Scalar::NONE;
        loop {
            let turn = gap(cursor, level, value)?;
            self.empty &= !turn.key;
            if turn.args {
                self.present &= EVENT_LEVEL;
            }
            level = turn.level;
            let depth = match level {
                Level::End => {
                    self.step(cursor.at, Reads::End, turn.args, Scalar::NONE);
                    return Ok(());
                }
                Level::Args => EVENT_DEPTH + 1,
                Level::Start | Level::Event => EVENT_DEPTH,
            };
            self.regular &= !turn.by_value;
            value = self.member(cursor, turn.field, depth, turn.args)?;
        }
    }

    /// Notes a value and the gap before it, for the prediction of later events.
    fn step(&mut self, at: usize, reads: Reads, args: bool, value: Scalar) {
        if self.record {
            self.steps.push(Step { at, reads, args, value });
        }
    }

    /// Reads the value of a key. The last of several counts, whatever it is.
    fn member(&mut self, cursor: &mut Cursor<'_, '_>, field: Field, depth: u32, args: bool) -> Result<Scalar, Stop> {
        if matches!(field, Field::GridX | Field::BlockX)
            && let Some(fields) = field.triple()
        {
            self.unset(field);
            if cursor.token()? == b'[' {
                self.triple(cursor, fields, depth, args)?;
                return Ok(Scalar::NONE);
            }
            self.regular = false;
        }
        let at = cursor.at;
        let value = cursor.value(depth)?;
        match value.kind {
            _ if field == Field::Ignored => {}
            Kind::NonFinite | Kind::Other => {
                self.unset(field);
                self.regular = false;
            }
            _ if field.triple().is_none() => self.present |= field.bit(),
            _ => self.unset(field),
        }
        if let Some(place) = self.values.get_mut(field as usize) {
            *place = value;
        }
        self.step(at, Reads::Value(field, depth), args, value);
        Ok(value)
    }

    /// Reads an array of numbers, of which the first three count.
    fn triple(&mut self, cursor: &mut Cursor<'_, '_>, fields: [Field; 3], depth: u32, args: bool) -> Result<(), Stop> {
        cursor.at += 1;
        let list = List::ARRAY;
        let mut index = 0;
        while list.next(cursor)? {
            let field = fields.get(index).copied().unwrap_or(Field::Ignored);
            let at = cursor.at;
            let value = cursor.value(depth + 1)?;
            let is_number = matches!(value.kind, Kind::Number | Kind::Long);
            if field != Field::Ignored && is_number {
                self.present |= field.bit();
            }
            if let Some(place) = self.values.get_mut(field as usize) {
                *place = value;
            }
            let reads = if index == 0 { Reads::First(field) } else { Reads::Value(field, depth + 1) };
            self.regular &= is_number;
            self.step(at, reads, args && index == 0, value);
            index += 1;
            list.after(cursor, value)?;
        }
        // Where nothing stood in the array there is no step that clears what an earlier one said.
        self.regular &= index > 0;
        Ok(())
    }
}
