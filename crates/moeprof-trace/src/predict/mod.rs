//! Reading events by prediction: a writer lays its events out alike, so most of the text of one is expected.
//!
//! [`Predictor::run`] goes on as long as events are as they were before; the first that is not is left to the general
//! path, from which the predictor then learns. What it accepts means what the general path would make of it, and needs
//! no notice: `docs/performance.md` says how that is known, and the tests read everything in both ways.

mod literal;
mod names;
mod program;
mod shortcuts;
mod vectors;

use self::names::Names;
use self::program::{Draft, Group, Program, Value};
use self::shortcuts::Shortcuts;
use crate::digits::{natural, thousandths};
use crate::event::Event;
use crate::fields::{FIELDS, Field};
use crate::intern::hash;
use crate::json::{Cursor, Kind, Quirk, Scalar, find_special};
use crate::tables::{Known, Tables};

/// Irregular files have any number of layouts; beyond so many nothing is learned.
const MOST_PROGRAMS: usize = 256;
/// So many programs that begin alike are tried before an event is left to the general path.
const MOST_TRIES: usize = 8;
const LONGEST_BETWEEN: usize = 64;
/// So many sequences of programs are told apart.
const HISTORIES: usize = 1024;

/// A window of the text, of which the bytes before `valid` are valid UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) valid: usize,
}

/// What was seen of the events so far.
pub(crate) struct Predictor {
    programs: Vec<Program>,
    /// The programs that were of use last, first.
    order: Vec<usize>,
    /// The programs of the last events, the latest in the lowest bits, and the one that followed when they were last so.
    history: u32,
    next: Vec<usize>,
    reading: Reading,
    /// The text from the end of one event to the brace of the next, both included.
    between: Vec<u8>,
    /// Numbers given to groups of steps so far.
    numbers: u32,
}

/// What the reading of one event needs and what it finds.
struct Reading {
    shortcuts: Shortcuts,
    names: Names,
    known: Known,
    /// The code of the name of the event before.
    last_name: u32,
    quirks: Vec<Quirk>,
    /// Values turned out not to stay.
    regroup: bool,
}

impl Predictor {
    pub(crate) fn new() -> Self {
        Self {
            programs: Vec::new(),
            order: Vec::new(),
            history: 0,
            next: vec![0; HISTORIES],
            reading: Reading {
                shortcuts: Shortcuts::new(),
                names: Names::new(),
                known: Known { numbers: [0; FIELDS + 1], name: None, name_at: 0, name_end: 0 },
                last_name: 0,
                quirks: Vec::new(),
                regroup: false,
            },
            between: Vec::new(),
            numbers: 0,
        }
    }

    /// Tells whether there is something to be learned from an event that was read the other way.
    pub(crate) fn learns(&self) -> bool {
        self.programs.len() < MOST_PROGRAMS
    }

    /// Learns from an event that needed no notice and was stored, and from the text between the last event and it.
    #[cold]
    pub(crate) fn learn(&mut self, event: &Event, window: &[u8], last_end: Option<usize>, tables: &Tables) {
        let between = last_end.and_then(|end| window.get(end..=event.start));
        if let Some(between) = between.filter(|text| text.len() <= LONGEST_BETWEEN && *text != self.between) {
            self.between = between.to_vec();
        }
        let Some(draft) = Draft::new(event, window, tables).filter(|_| self.learns()) else { return };
        let known = self.programs.iter().position(|program| draft.is(program));
        let number = known.unwrap_or(self.programs.len());
        if known.is_none() {
            self.order.insert(0, number);
            self.programs.push(draft.into_program(&mut self.numbers));
        }
        self.follow(number);
    }

    /// Notes the program of an event.
    #[inline]
    fn follow(&mut self, number: usize) {
        let place = self.place();
        if let Some(next) = self.next.get_mut(place).filter(|next| **next != number) {
            *next = number;
        }
        #[allow(clippy::cast_possible_truncation, reason = "there are few programs")]
        let latest = number as u32;
        self.history = self.history << 5 ^ latest;
    }

    /// The place of what followed these programs.
    #[inline]
    fn place(&self) -> usize {
        (self.history.wrapping_mul(0x9e37_79b1) >> 16) as usize % HISTORIES
    }

    /// Reads events from the brace at `at` on, none longer than `most`; returns where the last one ends, if any was read.
    #[inline]
    pub(crate) fn run(&mut self, text: Text<'_>, at: usize, most: usize, tables: &mut Tables) -> Option<usize> {
        vectors::run(self, text, at, most, tables)
    }

    /// As [`Self::run`], made part of whatever calls it.
    #[inline(always)]
    fn run_inline(&mut self, text: Text<'_>, at: usize, most: usize, tables: &mut Tables) -> Option<usize> {
        let mut begin = at;
        let mut done = None;
        loop {
            let likely = *self.next.get(self.place())?;
            let Some(program) = self.programs.get_mut(likely) else { return done };
            let (number, end) = match self.reading.event(program, text, begin, most, tables) {
                Some(end) => (likely, end),
                None => match self.try_others(likely, text, begin, most, tables) {
                    Some(found) => found,
                    None => return done,
                },
            };
            if self.reading.regroup {
                self.regroup();
            }
            self.follow(number);
            done = Some(end);
            let rest = text.bytes.get(end..).unwrap_or_default();
            if self.between.is_empty() || !rest.starts_with(&self.between) {
                return done;
            }
            begin = end + self.between.len() - 1;
        }
    }

    /// Tries the programs that are not the likely one.
    #[inline(always)]
    fn try_others(
        &mut self,
        likely: usize,
        text: Text<'_>,
        begin: usize,
        most: usize,
        tables: &mut Tables,
    ) -> Option<(usize, usize)> {
        let rest = text.bytes.get(begin + 1..)?;
        let mut tries = 0;
        for place in 0..self.order.len() {
            let number = *self.order.get(place)?;
            let program = self.programs.get_mut(number)?;
            if number == likely || !program.steps.first().is_some_and(|step| step.gap.begins(rest)) {
                continue;
            }
            if let Some(end) = self.reading.event(program, text, begin, most, tables) {
                self.order.get_mut(..=place)?.rotate_right(1);
                return Some((number, end));
            }
            tries += 1;
            if tries == MOST_TRIES {
                break;
            }
        }
        None
    }

    #[cold]
    fn regroup(&mut self) {
        self.reading.regroup = false;
        self.programs.iter_mut().for_each(|program| program.group(&mut self.numbers));
    }
}

impl Reading {
    /// Reads the event whose brace is at `begin` by a program, and stores it; returns where it ends.
    #[inline(always)]
    fn event(
        &mut self,
        program: &mut Program,
        text: Text<'_>,
        begin: usize,
        most: usize,
        tables: &mut Tables,
    ) -> Option<usize> {
        let (mut at, mut key) = (begin + 1, self.last_name);
        for index in 0.. {
            let group = program.groups.get(index)?;
            let rest = text.bytes.get(at..)?;
            if group.has_run {
                match self.shortcuts.pass(group.number, key, rest, &mut self.known.numbers) {
                    Some(length) => at += length,
                    None => at = self.walk(program, index, key, text, at, tables)?,
                }
            } else if group.gap.begins(rest) {
                at += group.gap.len();
            } else {
                return None;
            }
            let group: &Group = program.groups.get(index)?;
            let value = match group.value {
                Value::Number => read_number(text.bytes, &mut at)?,
                Value::Time => read_time(text.bytes, &mut at)?,
                Value::Name => {
                    let category = program.fixed.category;
                    let found = self.names.find(category, &tables.names.texts, text.bytes, at, text.valid)?;
                    self.known.name = found.code;
                    (self.known.name_at, self.known.name_end) = (at, at + found.length);
                    key = found.code.unwrap_or(u32::MAX);
                    at += found.length;
                    continue;
                }
                Value::End => {
                    if at - begin > most || !tables.push_known(&program.fixed, &self.known, text.bytes) {
                        return None;
                    }
                    self.last_name = key;
                    return Some(at);
                }
                Value::AnyNumber => skip_number(text, &mut at, &mut self.quirks)?,
                Value::AnyText | Value::Any(_) => skip(group.value, text, &mut at, &mut self.quirks)?,
                Value::Text => read_text(group.field, text, &mut at, tables)?,
            };
            self.known.numbers[group.field as usize] = value;
        }
        None
    }

    /// Goes through a run of values step by step, and keeps it; returns where the value behind it begins.
    #[inline(never)]
    fn walk(
        &mut self,
        program: &mut Program,
        index: usize,
        key: u32,
        text: Text<'_>,
        begin: usize,
        tables: &Tables,
    ) -> Option<usize> {
        let group = program.groups.get(index)?;
        let (first, last, number) = (group.first, group.last, group.number);
        let mut at = begin;
        let mut values = Vec::with_capacity(last - first);
        for step in program.steps.get(first..last)? {
            if !step.gap.begins(text.bytes.get(at..)?) {
                return None;
            }
            at += step.gap.len();
            let value = match step.value {
                Value::Number => read_number(text.bytes, &mut at)?,
                Value::AnyNumber => skip_number(text, &mut at, &mut self.quirks)?,
                Value::AnyText | Value::Any(_) => skip(step.value, text, &mut at, &mut self.quirks)?,
                Value::Text => read_text(step.field, text, &mut at, tables)?,
                Value::Name | Value::Time | Value::End => return None,
            };
            values.push((step.field, value));
            self.known.numbers[step.field as usize] = value;
        }
        let gap = &program.steps.get(last)?.gap;
        if !gap.begins(text.bytes.get(at..)?) {
            return None;
        }
        at += gap.len();
        for changed in self.shortcuts.keep(number, key, text.bytes.get(begin..at)?, values) {
            let step = program.steps.get_mut(first + changed)?;
            step.changes = step.changes.saturating_add(1);
            self.regroup |= step.varies();
        }
        Some(at)
    }
}

#[inline(always)]
fn read_number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let (value, length) = natural(bytes.get(*at..)?.first_chunk::<24>()?);
    *at += length;
    (length > 0).then_some(value)
}

#[inline(always)]
fn read_time(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let whole = read_number(bytes, at)?;
    let (part, length) = thousandths(*bytes.get(*at..)?.first_chunk::<8>()?)?;
    *at += length;
    let time = whole.checked_mul(1000)?.checked_add(part)?;
    (time <= i64::MAX.cast_unsigned()).then_some(time)
}

/// Reads a string whose texts have codes.
#[inline(never)]
fn read_text(field: Field, text: Text<'_>, at: &mut usize, tables: &Tables) -> Option<u64> {
    let end = find_special(text.bytes, *at);
    if text.bytes.get(end) != Some(&b'"') || end > text.valid {
        return None;
    }
    let word = text.bytes.get(*at..end)?;
    *at = end;
    tables.collective_text(field, word).map(u64::from)
}

/// Passes a number that nobody asks for; returns what to remember it by.
#[inline(always)]
fn skip_number(text: Text<'_>, at: &mut usize, quirks: &mut Vec<Quirk>) -> Option<u64> {
    let (number, length) = natural(text.bytes.get(*at..)?.first_chunk::<24>()?);
    // What may follow an integer is what the next gap begins with; anything else makes it another number.
    if length > 0 && matches!(text.bytes.get(*at + length)?, b',' | b' ' | b'\n' | b'}' | b']') {
        *at += length;
        return Some(number);
    }
    skip(Value::AnyNumber, text, at, quirks)
}

/// Passes a value that nobody asks for; returns what to remember it by.
#[inline(never)]
fn skip(value: Value, text: Text<'_>, place: &mut usize, quirks: &mut Vec<Quirk>) -> Option<u64> {
    let at = *place;
    quirks.clear();
    let quote = usize::from(value == Value::AnyText);
    let mut cursor = Cursor { bytes: text.bytes, at: at - quote, valid: text.valid, quirks };
    let read: Scalar = match value {
        Value::AnyText => cursor.string(),
        Value::AnyNumber => cursor.number(),
        Value::Any(depth) => match text.bytes.get(at)? {
            b'"' | b'-' | b'0'..=b'9' => return None,
            _ => cursor.value(u32::from(depth)),
        },
        _ => return None,
    }
    .ok()?;
    let is_kind = match value {
        Value::AnyText => read.is_text(),
        Value::AnyNumber => matches!(read.kind, Kind::Number | Kind::Long),
        _ => read.kind == Kind::Other,
    };
    *place = cursor.at - quote;
    (cursor.quirks.is_empty() && is_kind).then(|| hash(text.bytes.get(at..*place).unwrap_or_default()))
}
