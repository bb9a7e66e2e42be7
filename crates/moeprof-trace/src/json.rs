//! A tolerant JSON tokenizer over a window of bytes.
//!
//! It never looks past the window: where the window ends first it answers [`Stop::More`], and the caller refills and
//! starts the value again. Whatever it accepts against the letter of JSON it writes down as a [`Quirk`].

use crate::notices::Slug;

/// Brackets that may be open at once.
pub(crate) const MAX_DEPTH: u32 = 256;

/// Why a value could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The window ends inside the value.
    More,
    /// The text is not the grammar: where in the window, and why.
    Bad(usize, Cause),
}

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    UnescapedQuote,
    Escape(u8),
    BadNumber,
    BadWord,
    MissingComma,
    ExpectedKey,
    ExpectedColon,
    ExpectedValue,
    ExpectedCommaOrEnd,
    TooDeep,
    NotAnEvent,
    TimeRange,
    TooMany(&'static str),
    Garbage,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnescapedQuote => out.write_str("unescaped quote in a string"),
            Self::Escape(byte) if byte.is_ascii_graphic() => write!(out, "invalid escape \\{}", char::from(*byte)),
            Self::Escape(byte) => write!(out, "invalid escape: backslash before byte 0x{byte:02x}"),
            Self::BadNumber => out.write_str("not a number as JSON writes it"),
            Self::BadWord => out.write_str("a bare word that is not true, false, null or a number"),
            Self::MissingComma => out.write_str("a comma is missing between two values"),
            Self::ExpectedKey => out.write_str("a key in quotes was expected"),
            Self::ExpectedColon => out.write_str("a colon was expected after a key"),
            Self::ExpectedValue => out.write_str("a value was expected"),
            Self::ExpectedCommaOrEnd => out.write_str("a comma or a closing bracket was expected"),
            Self::TooDeep => write!(out, "more than {MAX_DEPTH} brackets are open"),
            Self::NotAnEvent => out.write_str("an element of traceEvents is not an object"),
            Self::TimeRange => out.write_str("a time that does not fit into 64 bits of nanoseconds"),
            Self::TooMany(what) => write!(out, "more distinct {what} than a trace can have"),
            Self::Garbage => out.write_str("something that is not JSON follows the document"),
        }
    }
}

/// Something accepted with a notice; `start..end` of the window is its example.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quirk {
    pub(crate) slug: Slug,
    pub(crate) at: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a value is, as far as anybody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A string whose bytes are its text.
    Plain,
    /// A string to be decoded: escapes or bytes that are not UTF-8.
    Coded,
    /// A number of at most 19 digits without exponent: `mantissa / 10^places`.
    Number,
    /// Any other number, to be read from its digits.
    Long,
    /// NaN, infinity.
    NonFinite,
    /// true, false, null, objects, arrays.
    Other,
}

/// A scalar value: where it stands (strings without their quotes) and its digits where it is a short number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar {
    pub(crate) kind: Kind,
    pub(crate) negative: bool,
    /// Digits after the point.
    pub(crate) places: u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) mantissa: u64,
}

impl Scalar {
    pub(crate) const NONE: Self = Self { kind: Kind::Other, negative: false, places: 0, start: 0, end: 0, mantissa: 0 };

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Plain | Kind::Coded)
    }
}

/// Position in a window.
pub(crate) struct Cursor<'w, 'q> {
    pub(crate) bytes: &'w [u8],
    pub(crate) at: usize,
    /// Bytes before this one are valid UTF-8.
    pub(crate) valid: usize,
    pub(crate) quirks: &'q mut Vec<Quirk>,
}

impl<'w> Cursor<'w, '_> {
    /// Skips white space and returns the byte that follows, without consuming it.
    #[inline]
    pub(crate) fn token(&mut self) -> Result<u8, Stop> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(&byte) => return Ok(byte),
                None => return Err(Stop::More),
            }
        }
    }

    pub(crate) fn slice(&self, scalar: Scalar) -> &'w [u8] {
        self.bytes.get(scalar.start..scalar.end).unwrap_or_default()
    }

    pub(crate) fn quirk(&mut self, slug: Slug, at: usize, start: usize, end: usize) {
        self.quirks.push(Quirk { slug, at, start, end });
    }

    /// Reads the string whose opening quote is at the cursor.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Scalar, Stop> {
        let mut text = Scalar::NONE;
        self.string_into(&mut text)?;
        Ok(text)
    }

    #[inline]
    fn string_into(&mut self, out: &mut Scalar) -> Result<(), Stop> {
        let start = self.at + 1;
        let end = find_special(self.bytes, start);
        if self.bytes.get(end) == Some(&b'"') && end <= self.valid {
            self.at = end + 1;
            out.kind = Kind::Plain;
            out.start = start;
            out.end = end;
            return Ok(());
        }
        *out = self.string_with_quirks(start, end)?;
        Ok(())
    }

    #[cold]
    fn string_with_quirks(&mut self, start: usize, mut at: usize) -> Result<Scalar, Stop> {
        let (mut escaped, mut control, mut lone) = (false, None, None);
        let end = loop {
            match self.bytes.get(at) {
                None => return Err(Stop::More),
                Some(b'"') => break at,
                Some(b'\\') => {
                    escaped = true;
                    let (length, is_lone) = escape(self.bytes, at)?;
                    if is_lone {
                        lone.get_or_insert(at);
                    }
                    at += length;
                }
                Some(_) => {
                    control.get_or_insert(at);
                    at += 1;
                }
            }
            at = find_special(self.bytes, at);
        };
        let text = self.bytes.get(start..end).unwrap_or_default();
        let bad = if end <= self.valid { None } else { std::str::from_utf8(text).err() };
        let bad = bad.map(|error| start + error.valid_up_to());
        for (slug, place) in [(Slug::InvalidUtf8, bad), (Slug::LoneSurrogate, lone), (Slug::ControlCharacter, control)]
        {
            if let Some(place) = place {
                self.quirk(slug, place, start, end);
            }
        }
        self.at = end + 1;
        let kind = if escaped || bad.is_some() { Kind::Coded } else { Kind::Plain };
        Ok(Scalar { kind, start, end, ..Scalar::NONE })
    }

    /// Reads the number at the cursor, or a word for a number that is not finite.
    pub(crate) fn number(&mut self) -> Result<Scalar, Stop> {
        let mut number = Scalar::NONE;
        self.number_into(&mut number)?;
        Ok(number)
    }

    fn number_into(&mut self, out: &mut Scalar) -> Result<(), Stop> {
        let start = self.at;
        let mut at = start;
        let negative = self.bytes.get(at) == Some(&b'-');
        at += usize::from(negative);
        let whole = at;
        let mut mantissa = 0u64;
        at = digits(self.bytes, at, &mut mantissa);
        let mut count = at - whole;
        let first = match self.bytes.get(whole) {
            Some(first) => *first,
            None => return Err(Stop::More),
        };
        if count == 0 {
            *out = self.not_finite()?;
            return Ok(());
        }
        if first == b'0' && count > 1 {
            return Err(Stop::Bad(start, Cause::BadNumber));
        }
        let mut places = 0;
        if self.bytes.get(at) == Some(&b'.') {
            let point = at + 1;
            at = digits(self.bytes, point, &mut mantissa);
            places = at - point;
            count += places;
            if places == 0 {
                return Err(if at < self.bytes.len() { Stop::Bad(start, Cause::BadNumber) } else { Stop::More });
            }
        }
        let mut kind = if count > 19 { Kind::Long } else { Kind::Number };
        if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
            kind = Kind::Long;
            at += 1;
            at += usize::from(matches!(self.bytes.get(at), Some(b'+' | b'-')));
            let exponent = at;
            at = digits(self.bytes, at, &mut mantissa);
            if at == exponent && at < self.bytes.len() {
                return Err(Stop::Bad(start, Cause::BadNumber));
            }
        }
        match self.bytes.get(at) {
            None => Err(Stop::More),
            Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') => {
                self.at = at;
                out.kind = kind;
                out.negative = negative;
                out.places = u8::try_from(places).unwrap_or(u8::MAX);
                out.start = start;
                out.end = at;
                out.mantissa = mantissa;
                Ok(())
            }
            Some(_) => Err(Stop::Bad(start, Cause::BadNumber)),
        }
    }

    /// Reads a word: true, false, null, or a number that is not finite.
    #[cold]
    fn word(&mut self) -> Result<Scalar, Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        for word in [&b"true"[..], b"false", b"null"] {
            if rest.starts_with(word) {
                let start = self.at;
                self.at += word.len();
                self.end_of_word(start)?;
                return Ok(Scalar { start, end: self.at, ..Scalar::NONE });
            }
            if word.starts_with(rest) {
                return Err(Stop::More);
            }
        }
        self.not_finite()
    }

    #[cold]
    fn not_finite(&mut self) -> Result<Scalar, Stop> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(byte)).count();
        let word = rest.get(..length).unwrap_or_default();
        if length == rest.len() && length <= "-infinity".len() {
            return Err(Stop::More);
        }
        if !is_not_finite(word) {
            let numeric = word.iter().any(|byte| b"+-.0123456789".contains(byte));
            let cause = match (length, numeric) {
                (0, _) => Cause::ExpectedValue,
                (_, true) => Cause::BadNumber,
                (_, false) => Cause::BadWord,
            };
            return Err(Stop::Bad(start, cause));
        }
        self.at = start + length;
        self.quirk(Slug::NonFiniteNumber, start, start, start + length);
        Ok(Scalar { kind: Kind::NonFinite, start, end: start + length, ..Scalar::NONE })
    }

    fn end_of_word(&self, start: usize) -> Result<(), Stop> {
        match self.bytes.get(self.at) {
            None => Err(Stop::More),
            Some(byte) if byte.is_ascii_alphanumeric() => Err(Stop::Bad(start, Cause::BadWord)),
            Some(_) => Ok(()),
        }
    }

    /// Reads any value; of objects and arrays only that they are well-formed. `depth` brackets are open around it.
    pub(crate) fn value(&mut self, depth: u32) -> Result<Scalar, Stop> {
        let mut value = Scalar::NONE;
        self.value_into(depth, &mut value)?;
        Ok(value)
    }

    /// As [`Self::value`], but straight to where the value is kept: a copy of so many small parts is slow.
    #[inline]
    pub(crate) fn value_into(&mut self, depth: u32, out: &mut Scalar) -> Result<(), Stop> {
        match self.token()? {
            b'"' => self.string_into(out),
            b'-' | b'0'..=b'9' => self.number_into(out),
            b'{' | b'[' => {
                let start = self.at;
                self.skip_nested(depth)?;
                *out = Scalar { start, end: self.at, ..Scalar::NONE };
                Ok(())
            }
            _ => {
                *out = self.word()?;
                Ok(())
            }
        }
    }

    /// Reads a key and its colon; leaves the cursor at the first byte of the value.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Scalar, Stop> {
        let key = self.string()?;
        if self.token()? != b':' {
            return Err(self.after_text(key, Cause::ExpectedColon));
        }
        self.at += 1;
        self.token()?;
        Ok(key)
    }

    fn skip_nested(&mut self, depth: u32) -> Result<(), Stop> {
        let is_object = self.bytes.get(self.at) == Some(&b'{');
        if depth >= MAX_DEPTH {
            return Err(Stop::Bad(self.at, Cause::TooDeep));
        }
        self.at += 1;
        let list = if is_object { List::OBJECT } else { List::ARRAY };
        while list.next(self)? {
            if is_object {
                self.key()?;
            }
            let value = self.value(depth + 1)?;
            list.after(self, value)?;
        }
        Ok(())
    }

    /// Says what is wrong where a text is followed by something that does not belong there.
    #[cold]
    pub(crate) fn after_text(&self, text: Scalar, otherwise: Cause) -> Stop {
        let adjacent = text.end + 1 == self.at;
        match self.bytes.get(self.at) {
            Some(b'"') if !adjacent && otherwise != Cause::ExpectedColon => Stop::Bad(self.at, Cause::MissingComma),
            Some(b'{' | b'[') if !adjacent => Stop::Bad(self.at, otherwise),
            _ => Stop::Bad(text.start - 1, Cause::UnescapedQuote),
        }
    }
}

/// The members or elements of an object or array, by its closing bracket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List(u8);

impl List {
    pub(crate) const OBJECT: Self = Self(b'}');
    pub(crate) const ARRAY: Self = Self(b']');

    /// Comes to the next member or element; false after the closing bracket, which it consumes.
    #[inline]
    pub(crate) fn next(self, cursor: &mut Cursor<'_, '_>) -> Result<bool, Stop> {
        let byte = cursor.token()?;
        if byte == self.0 {
            cursor.at += 1;
            return Ok(false);
        }
        if self.0 == b'}' && byte != b'"' {
            return Err(Stop::Bad(cursor.at, Cause::ExpectedKey));
        }
        Ok(true)
    }

    /// Passes the comma after a value, or stays before the closing bracket.
    #[inline]
    pub(crate) fn after(self, cursor: &mut Cursor<'_, '_>, value: Scalar) -> Result<(), Stop> {
        let byte = cursor.token()?;
        if byte == b',' {
            let comma = cursor.at;
            cursor.at += 1;
            if cursor.token()? == self.0 {
                cursor.quirk(Slug::TrailingComma, comma, comma, comma + 1);
            }
            return Ok(());
        }
        if byte == self.0 {
            return Ok(());
        }
        Err(if value.is_text() {
            cursor.after_text(value, Cause::ExpectedCommaOrEnd)
        } else if byte == b'"' {
            Stop::Bad(cursor.at, Cause::MissingComma)
        } else {
            Stop::Bad(cursor.at, Cause::ExpectedCommaOrEnd)
        })
    }
}

/// Tells whether a word stands for a number that is not finite.
pub(crate) fn is_not_finite(word: &[u8]) -> bool {
    let bare = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    [&b"nan"[..], b"inf", b"infinity"].iter().any(|name| bare.eq_ignore_ascii_case(name))
}

/// Passes digits and adds them to a number, which wraps where there are more than 19.
///
/// Most numbers have few digits, for which this is no slower than reading eight bytes at once.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mantissa: &mut u64) -> usize {
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

/// Finds the next quote, backslash or control character; the end of the bytes where there is none.
#[inline]
fn find_special(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let backslash = zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (quote | backslash | control) & HIGH;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).unwrap_or(rest.len())
}

/// Checks the escape at a backslash: its length, and whether it is a surrogate without its partner.
fn escape(bytes: &[u8], at: usize) -> Result<(usize, bool), Stop> {
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
    fn special_bytes_are_found_wherever_they_stand() {
        for length in 0..40 {
            for at in 0..=length {
                for byte in *b"\"\\\x00\x1f" {
                    let mut text = vec![b' '; length];
                    text.iter_mut().skip(1).step_by(2).for_each(|place| *place = 0xff);
                    if let Some(place) = text.get_mut(at) {
                        *place = byte;
                    }
                    assert_eq!(find_special(&text, 0), at.min(length));
                }
            }
        }
    }

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
