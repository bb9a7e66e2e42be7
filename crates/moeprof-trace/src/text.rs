//! Strings as a file spells them: escapes are checked and decoded here.

use crate::json::{Cause, Stop};

/// Checks the escape at a backslash: its length, and whether it is a surrogate without its partner.
pub(crate) fn escape(bytes: &[u8], at: usize) -> Result<(usize, bool), Stop> {
    match bytes.get(at + 1) {
        None => Err(Stop::More),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok((2, false)),
        Some(b'u') => {
            let unit = hex4(bytes, at)?;
            match unit {
                0xd800..=0xdbff => match (bytes.get(at + 6), bytes.get(at + 7)) {
                    (None, _) | (Some(b'\\'), None) => Err(Stop::More),
                    (Some(b'\\'), Some(b'u')) if matches!(hex4(bytes, at + 6)?, 0xdc00..=0xdfff) => Ok((12, false)),
                    _ => Ok((6, true)),
                },
                0xdc00..=0xdfff => Ok((6, true)),
                _ => Ok((6, false)),
            }
        }
        Some(&byte) => Err(Stop::Bad(at, Cause::Escape(byte))),
    }
}

/// Reads the four digits of the `\u` at `at`.
fn hex4(bytes: &[u8], at: usize) -> Result<u32, Stop> {
    let mut unit = 0;
    for index in 2..6 {
        let byte = *bytes.get(at + index).ok_or(Stop::More)?;
        let digit = char::from(byte).to_digit(16).ok_or(Stop::Bad(at, Cause::Escape(b'u')))?;
        unit = unit * 16 + digit;
    }
    Ok(unit)
}

/// Appends the text of the inside of a string that [`Cursor::string`] accepted.
pub(crate) fn decode(raw: &[u8], out: &mut String) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.push_str(&String::from_utf8_lossy(rest.get(..at).unwrap_or_default()));
        let (length, lone) = escape(rest, at).unwrap_or((rest.len() - at, true));
        let escaped = rest.get(at + 1).copied().unwrap_or_default();
        out.push(match escaped {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' if lone => char::REPLACEMENT_CHARACTER,
            b'u' => unicode(rest, at, length),
            other => char::from(other),
        });
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out.push_str(&String::from_utf8_lossy(rest));
}

fn unicode(bytes: &[u8], at: usize, length: usize) -> char {
    let high = hex4(bytes, at).unwrap_or(0xfffd);
    let code = if length == 12 {
        let low = hex4(bytes, at + 6).unwrap_or(0xdc00);
        0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff)
    } else {
        high
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded() {
        let decoded = |raw: &[u8]| {
            let mut text = String::new();
            decode(raw, &mut text);
            text
        };
        assert_eq!(
            decoded(br#"a\"b\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800x"#),
            "a\"b\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600}\u{fffd}x"
        );
        assert_eq!(decoded(b"\xf0\x9f\x98 \xed\xa0\x80"), "\u{fffd} \u{fffd}\u{fffd}\u{fffd}");
    }
}
