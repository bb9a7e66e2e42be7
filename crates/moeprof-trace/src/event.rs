//! One event: its values as places in the window. Nothing is stored before the whole event has been read.

use crate::fields::{EVENT_LEVEL, FIELDS, Field};
use crate::json::{Cause, Cursor, Kind, List, Scalar, Stop};
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
    /// One more than there are fields: values that nobody asks for go there.
    values: [Scalar; FIELDS + 1],
    layout: Layout,
}

impl Event {
    pub(crate) fn new() -> Self {
        Self { start: 0, end: 0, empty: true, present: 0, values: [Scalar::NONE; FIELDS + 1], layout: Layout::new() }
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
        let mut last = Field::Ignored;
        loop {
            let turn = if let Some((number, turn)) = self.layout.predict(step, cursor) {
                step = number;
                turn
            } else {
                let start = cursor.at;
                let quirks = cursor.quirks.len();
                // Where an array stood, its place holds one of its numbers.
                let scalar = self.values.get(last as usize).filter(|_| last.triple().is_none());
                let value = scalar.copied().unwrap_or(Scalar::NONE);
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
            last = turn.field;
            self.member(cursor, last, depth)?;
        }
    }

    /// Reads the value of a key. The last of several counts, whatever it is.
    #[inline]
    fn member(&mut self, cursor: &mut Cursor<'_, '_>, field: Field, depth: u32) -> Result<(), Stop> {
        if matches!(field, Field::GridX | Field::BlockX)
            && let Some(fields) = field.triple()
        {
            self.unset(field);
            if cursor.token()? == b'[' {
                return self.triple(cursor, fields, depth);
            }
        }
        let Some(value) = self.values.get_mut(field as usize) else { return Ok(()) };
        cursor.value_into(depth, value)?;
        match value.kind {
            _ if field == Field::Ignored => {}
            Kind::NonFinite | Kind::Other => self.unset(field),
            _ if field.triple().is_none() => self.present |= field.bit(),
            _ => self.unset(field),
        }
        Ok(())
    }

    /// Reads an array of numbers, of which the first three count.
    fn triple(&mut self, cursor: &mut Cursor<'_, '_>, fields: [Field; 3], depth: u32) -> Result<(), Stop> {
        cursor.at += 1;
        let list = List::ARRAY;
        let mut index = 0;
        while list.next(cursor)? {
            let field = fields.get(index).copied().unwrap_or(Field::Ignored);
            let Some(value) = self.values.get_mut(field as usize) else { return Ok(()) };
            cursor.value_into(depth + 1, value)?;
            if field != Field::Ignored && matches!(value.kind, Kind::Number | Kind::Long) {
                self.present |= field.bit();
            }
            index += 1;
            if cursor.bytes.get(cursor.at) == Some(&b',') && cursor.bytes.get(cursor.at + 1) == Some(&b' ') {
                // What mostly stands there; a bracket behind the blank is for the list to see.
                if cursor.bytes.get(cursor.at + 2).is_some_and(u8::is_ascii_digit) {
                    cursor.at += 2;
                    continue;
                }
            }
            let value = *value;
            list.after(cursor, value)?;
        }
        Ok(())
    }
}
