//! A tolerant JSON tokenizer over a window of bytes.
//!
//! It never looks past the window: where the window ends first it answers [`Stop::More`], and the caller refills and
//! starts the value again. Whatever it accepts against the letter of JSON it writes down as a [`Quirk`].

use crate::digits::{HIGH, ONES, digits};
use crate::notices::Slug;
use crate::text::escape;

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
    ExpectedValue,
    ExpectedCommaOrEnd,
    TooDeep,
    NotAnEvent,
    TimeRange,
    TooMany(&'static str),
    TooLong(u64),
    Garbage,
    SecondArray,
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
            Self::ExpectedValue => out.write_str("a value was expected"),
            Self::ExpectedCommaOrEnd => out.write_str("a comma or a closing bracket was expected"),
            Self::TooDeep => write!(out, "more than {MAX_DEPTH} brackets are open"),
            Self::NotAnEvent => out.write_str("an element of traceEvents is not an object"),
            Self::TimeRange => out.write_str("a time that does not fit into 64 bits of nanoseconds"),
            Self::TooMany(what) => write!(out, "more distinct {what} than a trace can have"),
            Self::TooLong(most) => {
                write!(out, "one event or value is longer than {most} bytes (the limit is max_event_bytes)")
            }
            Self::SecondArray => {
                out.write_str("a second traceEvents, which would take the place of events that were handed on already")
            }
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

impl Quirk {
    /// A quirk of a value that has been read.
    #[cold]
    pub(crate) fn of(slug: Slug, value: &Scalar) -> Self {
        Self { slug, at: value.start, start: value.start, end: value.end }
    }
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

    #[inline]
    fn number_into(&mut self, out: &mut Scalar) -> Result<(), Stop> {
        let start = self.at;
        let negative = self.bytes.get(start) == Some(&b'-');
        let whole = start + usize::from(negative);
        let mut mantissa = 0u64;
        let mut at = digits(self.bytes, whole, &mut mantissa);
        let mut count = at - whole;
        let Some(&first) = self.bytes.get(whole) else { return Err(Stop::More) };
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
            at = self.some_digits(start, point, &mut mantissa)?;
            places = at - point;
            count += places;
        }
        let mut kind = if count > 19 { Kind::Long } else { Kind::Number };
        if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
            kind = Kind::Long;
            let sign = usize::from(matches!(self.bytes.get(at + 1), Some(b'+' | b'-')));
            at = self.some_digits(start, at + 1 + sign, &mut 0)?;
        }
        self.end_of_number(start, at)?;
        let places = u8::try_from(places).unwrap_or(u8::MAX);
        *out = Scalar { kind, negative, places, start, end: at, mantissa };
        Ok(())
    }

    /// Passes at least one digit of the number that begins at `start`.
    #[inline]
    fn some_digits(&self, start: usize, from: usize, mantissa: &mut u64) -> Result<usize, Stop> {
        let at = digits(self.bytes, from, mantissa);
        if at > from {
            return Ok(at);
        }
        Err(if at < self.bytes.len() { Stop::Bad(start, Cause::BadNumber) } else { Stop::More })
    }

    /// Sees to it that a number ends where its digits do. A string cannot belong to it: that is a missing comma.
    #[inline]
    fn end_of_number(&mut self, start: usize, at: usize) -> Result<(), Stop> {
        match self.bytes.get(at) {
            None => Err(Stop::More),
            Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') => {
                self.at = at;
                Ok(())
            }
            Some(b'"' | b'{' | b'[' | b':') => Err(Stop::Bad(at, Cause::MissingComma)),
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
        // One byte more than the longest word there is: how much text there happens to be behind it must not matter.
        const ENOUGH: usize = "-infinity".len() + 1;
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
        let length = rest.iter().take(ENOUGH).take_while(is_part).count();
        let word = rest.get(..length).unwrap_or_default();
        if length == rest.len() && length < ENOUGH {
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
        self.end_of_word(start)?;
        self.quirk(Slug::NonFiniteNumber, start, start, start + length);
        Ok(Scalar { kind: Kind::NonFinite, start, end: start + length, ..Scalar::NONE })
    }

    fn end_of_word(&self, start: usize) -> Result<(), Stop> {
        match self.bytes.get(self.at) {
            None => Err(Stop::More),
            Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b'"' | b'{' | b'[' | b':') => Ok(()),
            Some(_) => Err(Stop::Bad(start, Cause::BadWord)),
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
            return Err(Self::after_text(key));
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

    /// What is wrong where a text is followed by something that does not belong there: a quote in it ended it.
    #[cold]
    pub(crate) fn after_text(text: Scalar) -> Stop {
        Stop::Bad(text.start - 1, Cause::UnescapedQuote)
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
            Cursor::after_text(value)
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

/// Finds the next quote, backslash or control character; the end of the bytes where there is none.
#[inline]
pub(crate) fn find_special(bytes: &[u8], from: usize) -> usize {
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
}
