//! The top-level keys of a file but `traceEvents`, written again as valid JSON: what was accepted with a notice is repaired.

use crate::json::{Cause, Cursor, Kind, List, MAX_DEPTH, Scalar, Stop};
use crate::text::decode;

/// Keys and values in file order. A key that comes again takes the value, and keeps its place.
#[derive(Debug, Default)]
pub(crate) struct Metadata(Vec<(String, String)>);

impl Metadata {
    pub(crate) fn set(&mut self, key: String, json: String) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, value)) => *value = json,
            None => self.0.push((key, json)),
        }
    }

    /// Sets the keys of the text that follows.
    pub(crate) fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|(key, json)| self.set(key, json));
    }

    pub(crate) fn into_json(self) -> String {
        let mut json = String::from("{");
        for (index, (key, value)) in self.0.into_iter().enumerate() {
            if index > 0 {
                json.push(',');
            }
            write_text(&key, &mut json);
            json.push(':');
            json.push_str(&value);
        }
        json.push('}');
        json
    }
}

/// Copies the value at the cursor; `depth` brackets are open around it.
pub(crate) fn copy_value(cursor: &mut Cursor<'_, '_>, depth: u32, out: &mut String) -> Result<Scalar, Stop> {
    let (list, open, close) = match cursor.token()? {
        b'{' => (List::OBJECT, '{', '}'),
        b'[' => (List::ARRAY, '[', ']'),
        _ => {
            let value = cursor.value(depth)?;
            copy_scalar(cursor, value, out);
            return Ok(value);
        }
    };
    if depth >= MAX_DEPTH {
        return Err(Stop::Bad(cursor.at, Cause::TooDeep));
    }
    out.push(open);
    cursor.at += 1;
    let mut first = true;
    while list.next(cursor)? {
        if !first {
            out.push(',');
        }
        first = false;
        if open == '{' {
            let key = cursor.key()?;
            copy_scalar(cursor, key, out);
            out.push(':');
        }
        let value = copy_value(cursor, depth + 1, out)?;
        list.after(cursor, value)?;
    }
    out.push(close);
    Ok(Scalar::NONE)
}

fn copy_scalar(cursor: &Cursor<'_, '_>, value: Scalar, out: &mut String) {
    let raw = cursor.slice(value);
    match value.kind {
        Kind::NonFinite => out.push_str("null"),
        Kind::Plain | Kind::Coded => {
            let mut text = String::new();
            decode(raw, &mut text);
            write_text(&text, out);
        }
        Kind::Number | Kind::Long | Kind::Other => out.push_str(&String::from_utf8_lossy(raw)),
    }
}

fn write_text(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' => {
                out.push_str("\\u00");
                for digit in [character as usize >> 4, character as usize & 15] {
                    out.push(HEX.get(digit).copied().map_or('0', char::from));
                }
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
