//! Records: the rows of a table as a list of types, then a list of values.

/// A value of a row, still in the bytes of its page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob,
}

/// Reads a number of 1 to 9 bytes; returns it with what follows.
#[allow(clippy::inline_always, reason = "called for each value of each row: a call costs more than its work")]
#[inline(always)]
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((u64::from(first), rest));
    }
    long_varint(bytes)
}

fn long_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(9) {
        if index == 8 {
            return Some(((value << 8) | u64::from(byte), bytes.get(9..)?));
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}

/// Bytes that a value takes, by its type below 12.
const SIZES: [u8; 12] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0];

/// Calls back for the first columns of a record, one for each of `wanted` that says yes, with its number and value.
///
/// A record may hold fewer columns than are wanted. None: no record.
#[inline]
pub(crate) fn walk<'a, W>(
    record: &'a [u8],
    wanted: &[W],
    is_wanted: impl Fn(&W) -> bool,
    mut take: impl FnMut(usize, &W, Value<'a>),
) -> Option<()> {
    let (size, types) = varint(record)?;
    let mut at = usize::try_from(size).ok()?;
    let head = record.len() - types.len();
    let mut types = record.get(head..at)?;
    for (column, want) in wanted.iter().enumerate() {
        let Some((kind, rest)) = varint(types) else { return types.is_empty().then_some(()) };
        types = rest;
        let size = match SIZES.get(usize::try_from(kind).ok()?) {
            Some(&size) => usize::from(size),
            None => usize::try_from((kind - 12) / 2).ok()?,
        };
        let bytes = record.get(at..)?.get(..size)?;
        at += size;
        if is_wanted(want) {
            take(column, want, value(kind, bytes)?);
        }
    }
    Some(())
}

#[allow(clippy::inline_always, reason = "called for each value of each row: a call costs more than its work")]
#[inline(always)]
fn value(kind: u64, bytes: &[u8]) -> Option<Value<'_>> {
    Some(match kind {
        0 => Value::Null,
        1 => Value::Integer(i64::from(i8::from_be_bytes(*bytes.first_chunk()?))),
        2 => Value::Integer(i64::from(i16::from_be_bytes(*bytes.first_chunk()?))),
        3 => Value::Integer(wide::<3>(bytes)?),
        4 => Value::Integer(i64::from(i32::from_be_bytes(*bytes.first_chunk()?))),
        5 => Value::Integer(wide::<6>(bytes)?),
        6 => Value::Integer(i64::from_be_bytes(*bytes.first_chunk()?)),
        7 => Value::Real(f64::from_be_bytes(*bytes.first_chunk()?)),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        10 | 11 => return None,
        _ if kind % 2 == 1 => Value::Text(bytes),
        _ => Value::Blob,
    })
}

#[inline]
fn wide<const N: usize>(bytes: &[u8]) -> Option<i64> {
    let bytes = bytes.first_chunk::<N>()?;
    let mut wide = [if bytes[0] & 0x80 == 0 { 0 } else { 0xff }; 8];
    wide[8 - N..].copy_from_slice(bytes);
    Some(i64::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(record: &[u8]) -> Option<Vec<Value<'_>>> {
        let mut found = Vec::new();
        walk(record, &[(); 9], |()| true, |_, (), value| found.push(value))?;
        Some(found)
    }

    #[test]
    fn numbers_of_all_widths_keep_their_sign() {
        // GIVEN a header of the six integer types, 0, 1 and null, THEN each value has its sign
        let record = [
            &[10, 1, 2, 3, 4, 5, 6, 8, 9, 0][..],
            &[0xff],
            &[0x80, 0],
            &[0xff, 0xff, 0xfe],
            &[0x7f, 0xff, 0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0],
            &i64::MIN.to_be_bytes(),
        ]
        .concat();
        let expected =
            [-1, -32768, -2, 0x7fff_ffff, -256, i64::MIN, 0, 1].map(Value::Integer).into_iter().chain([Value::Null]);
        assert_eq!(values(&record), Some(expected.collect()));
    }

    #[test]
    fn a_record_that_ends_early_is_none() {
        // GIVEN a text of three bytes of which two are there, and a header longer than the record
        assert_eq!(values(&[2, 19, b'a', b'b']), None);
        assert_eq!(values(&[9, 1]), None);
        assert_eq!(values(&[]), None);
        // AND the two types that no file may hold
        assert_eq!(values(&[2, 10]), None);
    }

    #[test]
    fn long_numbers_take_up_to_nine_bytes() {
        assert_eq!(varint(&[0x81, 0x00, 7]), Some((128, &[7][..])));
        assert_eq!(varint(&[0xff; 9]), Some((u64::MAX, &[][..])));
        assert_eq!(varint(&[0xff; 8]), None);
    }
}
