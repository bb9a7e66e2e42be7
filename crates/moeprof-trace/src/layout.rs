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

/// The bytes of a gap. Short ones are compared as words, with those bits that belong to them.
#[derive(Debug)]
struct Gap {
    words: [u64; WORDS],
    masks: [u64; WORDS],
    bytes: Box<[u8]>,
}

impl Gap {
    fn new(bytes: &[u8]) -> Self {
        let (mut words, mut masks) = ([0; WORDS], [0; WORDS]);
        for (index, byte) in bytes.iter().enumerate() {
            if let (Some(word), Some(mask)) = (words.get_mut(index / 8), masks.get_mut(index / 8)) {
                *word |= u64::from(*byte) << (index % 8 * 8);
                *mask |= 0xff << (index % 8 * 8);
            }
        }
        Self { words, masks, bytes: bytes.into() }
    }

    /// As `starts_with`, without a call and mostly without a branch: gaps are a few words long.
    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        let Some(head) = text.first_chunk::<{ WORDS * 8 }>() else { return text.starts_with(&self.bytes) };
        let (head, _) = head.as_chunks::<8>();
        let mut difference = 0;
        for ((eight, word), mask) in head.iter().zip(self.words).zip(self.masks) {
            difference |= (u64::from_le_bytes(*eight) ^ word) & mask;
        }
        difference == 0 && (self.bytes.len() <= WORDS * 8 || text.starts_with(&self.bytes))
    }
}

#[derive(Debug)]
struct Step {
    gap: Gap,
    turn: Turn,
    /// The gaps that followed last, the latest first.
    next: [usize; 2],
}

/// Words of a gap that are compared at once.
const WORDS: usize = 6;

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
            gap: Gap::new(&[]),
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
        if step.gap.begins(rest) {
            cursor.at += step.gap.bytes.len();
            return Some((first, step.turn));
        }
        let step = self.steps.get(second)?;
        if step.gap.begins(rest) {
            cursor.at += step.gap.bytes.len();
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
                self.steps.push(Step { gap: Gap::new(gap), turn, next: [NONE; 2] });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_a_text_as_its_bytes_do() {
        let text: Vec<u8> = (0..120u8).map(|byte| byte.wrapping_mul(37) | 0x80).collect();
        for length in 0..100 {
            let gap = Gap::new(&text[..length]);
            for cut in 0..text.len() {
                assert_eq!(gap.begins(&text[..cut]), cut >= length, "{length} {cut}");
            }
            for place in 0..text.len() {
                let mut other = text.clone();
                other[place] ^= 1;
                assert_eq!(gap.begins(&other), place >= length, "{length} {place}");
            }
        }
    }
}
