//! One event: its values as places in the window. Nothing is stored before the whole event has been read.

use crate::fields::{EVENT_LEVEL, FIELDS, Field};
use crate::json::{Cause, Cursor, Kind, List, Scalar, Stop, is_not_finite};
use crate::layout::{Layout, Level, gap};
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
    values: [Scalar; FIELDS],
    layout: Layout,
}

impl Event {
    pub(crate) fn new() -> Self {
        Self { start: 0, end: 0, empty: true, present: 0, values: [Scalar::NONE; FIELDS], layout: Layout::new() }
    }

    #[inline]
    pub(crate) fn get(&self, field: Field) -> Option<Scalar> {
        if self.present & field.bit() == 0 { None } else { self.values.get(field as usize).copied() }
    }

    /// Tells whether any of the fields, given as bits, has a value.
    #[inline]
    pub(crate) fn has_any(&self, bits: u64) -> bool {
        self.present & bits != 0
    }

    #[inline]
    fn set(&mut self, field: Field, value: Scalar) {
        if let Some(place) = self.values.get_mut(field as usize) {
            *place = value;
            self.present |= field.bit();
        }
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
        let mut step = Level::Start as usize;
        let mut value = Scalar::NONE;
        loop {
            let turn = if let Some((number, turn)) = self.layout.predict(step, cursor) {
                step = number;
                turn
            } else {
                let start = cursor.at;
                let quirks = cursor.quirks.len();
                let turn = gap(cursor, level, value)?;
                step = if cursor.quirks.len() == quirks {
                    let text = cursor.bytes.get(start..cursor.at).unwrap_or_default();
                    self.layout.learn(step, level, text, turn)
                } else {
                    turn.level as usize
                };
                turn
            };
            self.empty &= !turn.key;
            if turn.args {
                self.present &= EVENT_LEVEL;
            }
            level = turn.level;
            let depth = match level {
                Level::End => return Ok(()),
                Level::Args => EVENT_DEPTH + 1,
                Level::Start | Level::Event => EVENT_DEPTH,
            };
            value = match turn.field {
                Field::Ignored => cursor.value(depth)?,
                field => self.member(cursor, field, depth)?,
            };
        }
    }

    /// Reads the value of a key of interest. The last of several counts, whatever it is.
    #[inline]
    fn member(&mut self, cursor: &mut Cursor<'_, '_>, field: Field, depth: u32) -> Result<Scalar, Stop> {
        if let Some(fields) = field.triple() {
            self.unset(field);
            if cursor.token()? == b'[' {
                return self.triple(cursor, fields, depth);
            }
            return cursor.value(depth);
        }
        let value = cursor.value(depth)?;
        if matches!(value.kind, Kind::NonFinite | Kind::Other) {
            self.unset(field);
        } else if value.is_text() && field.is_numeric() {
            self.text_as_number(cursor, field, value);
        } else {
            self.set(field, value);
        }
        Ok(value)
    }

    /// Reads an array of numbers, of which the first three count.
    fn triple(&mut self, cursor: &mut Cursor<'_, '_>, fields: [Field; 3], depth: u32) -> Result<Scalar, Stop> {
        cursor.at += 1;
        let list = List::ARRAY;
        let mut index = 0;
        while list.next(cursor)? {
            let value = cursor.value(depth + 1)?;
            if let (Some(field), Kind::Number | Kind::Long) = (fields.get(index), value.kind) {
                self.set(*field, value);
            }
            index += 1;
            list.after(cursor, value)?;
        }
        Ok(Scalar::NONE)
    }

    /// Takes the text of a string for a number where it is one.
    fn text_as_number(&mut self, cursor: &mut Cursor<'_, '_>, field: Field, text: Scalar) {
        self.unset(field);
        let raw = cursor.slice(text);
        if is_not_finite(raw) {
            cursor.quirk(Slug::NonFiniteNumber, text.start, text.start, text.end);
        } else if text.kind == Kind::Plain && !raw.is_empty() {
            // A number ends at a delimiter; the closing quote is none, so it is read from a copy that has one.
            let mut copy = raw.to_vec();
            copy.push(b',');
            let mut quirks = Vec::new();
            let mut inner = Cursor { bytes: &copy, at: 0, valid: copy.len(), quirks: &mut quirks };
            if let Ok(number) = inner.number()
                && inner.at == raw.len()
                && number.kind != Kind::NonFinite
            {
                self.set(field, Scalar { start: text.start, end: text.end, ..number });
            }
        }
    }
}
