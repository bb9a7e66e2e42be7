//! What stands between the values of an event: commas, keys, colons, blanks and the brackets of args.

use crate::fields::{Field, Within};
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
    pub(crate) by_value: bool,
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
