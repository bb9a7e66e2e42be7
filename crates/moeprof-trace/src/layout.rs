//! What stands between the values of an event, and the memory of it.
//!
//! A writer lays all its events out alike, so the text between two values (comma, key, colon, blanks, the brackets of
//! args) mostly is what followed the same text last time. [`Layout`] remembers such gaps and what they meant: where a
//! remembered gap matches, one comparison stands for reading its tokens. The tokens of a gap alone decide what it
//! means, so a match is as good as reading it. Gaps that need a notice are not remembered.

use crate::fields::{Field, Within};
use crate::intern::Interner;
use crate::json::{Cursor, Kind, List, Scalar, Stop};
use crate::text::decode;

/// Where in an event a gap begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Level {
    /// Behind the opening brace.
    Start,
    /// Behind a value of the event.
    Event,
    /// Behind a value of its args.
    Args,
    /// Behind the closing brace.
    End,
}

/// What a gap leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The key of the value that follows.
    pub(crate) field: Field,
    /// Where that value stands.
    pub(crate) level: Level,
    /// There was a key `args`, so what earlier args said no longer counts.
    pub(crate) args: bool,
    /// There was a key.
    pub(crate) key: bool,
    /// The first byte of the value belongs to the decision.
    by_value: bool,
}

#[derive(Debug)]
struct Step {
    gap: Box<[u8]>,
    turn: Turn,
    /// The gaps that followed last, the latest first.
    next: [usize; 2],
}

/// Gaps by the gap before them.
#[derive(Debug)]
pub(crate) struct Layout {
    steps: Vec<Step>,
    known: Interner,
    scratch: Vec<u8>,
}

/// Irregular files have any number of gaps; beyond this many they are read token by token.
const MOST_STEPS: usize = 1024;
const LONGEST_GAP: usize = 256;
/// The steps that stand for "nothing is known about the gap before"; those of known gaps follow, by code.
const LEVELS: [Level; 3] = [Level::Start, Level::Event, Level::Args];
/// No gap has this number.
const NONE: usize = usize::MAX;

impl Layout {
    pub(crate) fn new() -> Self {
        let nothing = |level| Step {
            gap: Box::default(),
            turn: Turn { field: Field::Ignored, level, args: false, key: false, by_value: false },
            next: [NONE; 2],
        };
        let steps = LEVELS.map(nothing).into_iter().collect();
        Self { steps, known: Interner::default(), scratch: Vec::new() }
    }

    /// Passes the gap at the cursor where it is one of those that followed the gap `before`.
    #[inline]
    pub(crate) fn predict(&mut self, before: usize, cursor: &mut Cursor<'_, '_>) -> Option<(usize, Turn)> {
        let rest = cursor.bytes.get(cursor.at..)?;
        let [first, second] = self.steps.get(before)?.next;
        let step = self.steps.get(first)?;
        if begins_with(rest, &step.gap) {
            cursor.at += step.gap.len();
            return Some((first, step.turn));
        }
        let step = self.steps.get(second)?;
        if begins_with(rest, &step.gap) {
            cursor.at += step.gap.len();
            let turn = step.turn;
            self.follow(before, second);
            return Some((second, turn));
        }
        None
    }

    /// Remembers that a gap followed another; returns its number.
    #[cold]
    pub(crate) fn learn(&mut self, before: usize, level: Level, gap: &[u8], turn: Turn) -> usize {
        let unknown = turn.level as usize;
        if gap.len() > LONGEST_GAP || turn.by_value {
            return unknown;
        }
        self.scratch.clear();
        self.scratch.push(level as u8);
        self.scratch.extend_from_slice(gap);
        let number = match self.known.get(&self.scratch) {
            Some(code) => LEVELS.len() + code as usize,
            None if self.steps.len() >= MOST_STEPS => return unknown,
            None => {
                let number = self.steps.len();
                self.known.insert(&self.scratch);
                self.steps.push(Step { gap: gap.into(), turn, next: [NONE; 2] });
                number
            }
        };
        self.follow(before, number);
        number
    }

    fn follow(&mut self, before: usize, number: usize) {
        if let Some(step) = self.steps.get_mut(before) {
            step.next = [number, step.next[0]];
        }
    }
}

/// As `starts_with`, without a call: gaps are a few words long.
#[inline]
fn begins_with(text: &[u8], gap: &[u8]) -> bool {
    let Some(text) = text.get(..gap.len()) else { return false };
    let (text_words, text_rest) = text.as_chunks::<8>();
    let (gap_words, gap_rest) = gap.as_chunks::<8>();
    for (left, right) in text_words.iter().zip(gap_words) {
        if u64::from_le_bytes(*left) != u64::from_le_bytes(*right) {
            return false;
        }
    }
    if let (Some(left), Some(right)) = (text.last_chunk::<8>(), gap.last_chunk::<8>()) {
        return u64::from_le_bytes(*left) == u64::from_le_bytes(*right);
    }
    text_rest.iter().zip(gap_rest).all(|(left, right)| left == right)
}

/// Reads the gap at the cursor token by token; `value` is what stands before it.
pub(crate) fn gap(cursor: &mut Cursor<'_, '_>, level: Level, value: Scalar) -> Result<Turn, Stop> {
    let mut turn = Turn { field: Field::Ignored, level, args: false, key: false, by_value: false };
    let mut value = Some(value);
    if level == Level::Start {
        turn.level = Level::Event;
        value = None;
    }
    loop {
        if let Some(value) = value {
            List::OBJECT.after(cursor, value)?;
        }
        if List::OBJECT.next(cursor)? {
            if member(cursor, &mut turn)? {
                return Ok(turn);
            }
            // Args were opened, and what follows their brace is read in the same way.
            value = None;
        } else if turn.level == Level::Event {
            turn.level = Level::End;
            return Ok(turn);
        } else {
            turn.level = Level::Event;
            value = Some(Scalar::NONE);
        }
    }
}

/// Reads a key. False where it is that of args, whose brace was passed: there is no value to read yet.
fn member(cursor: &mut Cursor<'_, '_>, turn: &mut Turn) -> Result<bool, Stop> {
    turn.key = true;
    let key = cursor.key()?;
    if turn.level == Level::Args {
        turn.field = look_up(cursor, key, Within::Args);
        return Ok(true);
    }
    turn.field = look_up(cursor, key, Within::Event);
    if turn.field != Field::Args {
        return Ok(true);
    }
    turn.args = true;
    turn.field = Field::Ignored;
    if cursor.bytes.get(cursor.at) != Some(&b'{') {
        turn.by_value = true;
        return Ok(true);
    }
    cursor.at += 1;
    turn.level = Level::Args;
    Ok(false)
}

/// Finds what a key stands for; a key with escapes is decoded first.
fn look_up(cursor: &Cursor<'_, '_>, key: Scalar, within: Within) -> Field {
    let raw = cursor.slice(key);
    if key.kind == Kind::Plain {
        return Field::of(within, raw);
    }
    let mut text = String::new();
    decode(raw, &mut text);
    Field::of(within, text.as_bytes())
}
