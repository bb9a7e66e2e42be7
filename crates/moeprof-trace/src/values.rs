//! Values of an event as numbers: times, ids, integers; strings that hold a number count as one.

use crate::event::Event;
use crate::fields::Field;
use crate::json::{Cause, Cursor, Kind, Quirk, Scalar, is_not_finite};
use crate::notices::Slug;
use crate::spellings::Context;
use crate::time::{OutOfRange, nanoseconds};

/// A time, and what is to be noted about it once its event is known to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Absent,
    NotFinite,
    Exact(i64),
    Rounded(i64),
}

impl Time {
    #[inline]
    pub(crate) fn value(self) -> Option<i64> {
        match self {
            Self::Exact(value) | Self::Rounded(value) => Some(value),
            Self::Absent | Self::NotFinite => None,
        }
    }

    #[inline]
    pub(crate) fn slug(self) -> Option<Slug> {
        match self {
            Self::NotFinite => Some(Slug::NonFiniteNumber),
            Self::Rounded(_) => Some(Slug::SubNanosecond),
            Self::Absent | Self::Exact(_) => None,
        }
    }
}

/// What a string stands for where a number is asked for.
enum Text {
    Number(Scalar, Vec<u8>),
    NotFinite,
    Other,
}

#[cold]
fn text_as_number(value: &Scalar, context: &Context<'_>) -> Text {
    let mut text = context.bytes(value).into_owned();
    if is_not_finite(&text) {
        return Text::NotFinite;
    }
    let length = text.len();
    // A number ends at a delimiter; the closing quote is none.
    text.push(b',');
    let mut quirks = Vec::new();
    let mut cursor = Cursor { bytes: &text, at: 0, valid: text.len(), quirks: &mut quirks };
    match cursor.number() {
        Ok(number) if cursor.at == length && length > 0 => {
            text.truncate(length);
            Text::Number(number, text)
        }
        _ => Text::Other,
    }
}

#[inline]
pub(crate) fn time(event: &Event, field: Field, context: &Context<'_>) -> Result<Time, Cause> {
    let Some(value) = event.get(field) else { return Ok(Time::Absent) };
    let read = if matches!(value.kind, Kind::Number | Kind::Long) {
        nanoseconds(value, context.raw(value))
    } else {
        match text_as_number(value, context) {
            Text::Number(number, text) => nanoseconds(&number, &text),
            Text::NotFinite => return Ok(Time::NotFinite),
            Text::Other => return Ok(Time::Absent),
        }
    };
    match read {
        Ok(time) if time.rounded => Ok(Time::Rounded(time.value)),
        Ok(time) => Ok(Time::Exact(time.value)),
        Err(OutOfRange) => Err(Cause::TimeRange),
    }
}

/// An integer as sign and size.
type Whole = (bool, u64);

/// What a value is where an integer is asked for.
enum Number {
    Integer(Whole),
    /// A fraction, an exponent, or what 64 bits cannot hold.
    Other,
    /// No number.
    Absent,
}

impl Number {
    #[inline]
    fn new(value: &Scalar, text: &[u8]) -> Self {
        whole(value, text).map_or(Self::Other, Self::Integer)
    }

    #[inline]
    fn integer(self) -> Option<Whole> {
        if let Self::Integer(whole) = self { Some(whole) } else { None }
    }
}

/// Returns an integer; None for fractions, exponents and what 64 bits cannot hold.
#[inline]
fn whole(value: &Scalar, text: &[u8]) -> Option<Whole> {
    if value.kind == Kind::Number {
        return (value.places == 0).then_some((value.negative, value.mantissa));
    }
    let text = std::str::from_utf8(text).ok()?;
    text.trim_start_matches('-').parse().ok().map(|size| (value.negative, size))
}

/// Reads a value as a number.
#[inline]
fn number(event: &Event, field: Field, context: &Context<'_>, quirks: &mut Vec<Quirk>) -> Number {
    let Some(value) = event.get(field) else { return Number::Absent };
    match value.kind {
        Kind::Number | Kind::Long => Number::new(value, context.raw(value)),
        Kind::Plain | Kind::Coded if field.is_numeric() => match text_as_number(value, context) {
            Text::Number(number, text) => Number::new(&number, &text),
            Text::NotFinite => {
                quirks.push(Quirk::of(Slug::NonFiniteNumber, value));
                Number::Absent
            }
            Text::Other => Number::Absent,
        },
        _ => Number::Absent,
    }
}

#[inline]
pub(crate) fn integer(event: &Event, field: Field, context: &Context<'_>, quirks: &mut Vec<Quirk>) -> Option<i64> {
    match number(event, field, context, quirks).integer()? {
        (true, size) => 0i64.checked_sub_unsigned(size),
        (false, size) => i64::try_from(size).ok(),
    }
}

#[inline]
fn natural(whole: Whole) -> Option<u64> {
    let (negative, size) = whole;
    (!negative || size == 0).then_some(size)
}

#[inline]
pub(crate) fn unsigned(event: &Event, field: Field, context: &Context<'_>, quirks: &mut Vec<Quirk>) -> Option<u64> {
    natural(number(event, field, context, quirks).integer()?)
}

/// Reads an id. A number that cannot be one is noted.
#[inline]
pub(crate) fn id(event: &Event, field: Field, context: &Context<'_>, quirks: &mut Vec<Quirk>) -> Option<u64> {
    let number = number(event, field, context, quirks);
    if let Number::Absent = number {
        return None;
    }
    let id = number.integer().and_then(natural);
    if let (None, Some(value)) = (id, event.get(field)) {
        quirks.push(Quirk::of(Slug::BadId, value));
    }
    id
}
