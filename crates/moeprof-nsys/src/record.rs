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
#[inline]
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

/// Walks the columns of a record; `take` gets the number and value of each until it returns false. None: no record.
#[inline]
pub(crate) fn walk<'a>(record: &'a [u8], mut take: impl FnMut(usize, Value<'a>) -> bool) -> Option<()> {
    let (size, _) = varint(record)?;
    let size = usize::try_from(size).ok()?;
    let header = record.get(..size)?;
    let mut body = record.get(size..)?;
    let (_, mut types) = varint(header)?;
    let mut column = 0;
    while !types.is_empty() {
        let (kind, rest) = varint(types)?;
        types = rest;
        let (value, rest) = value(kind, body)?;
        body = rest;
        if !take(column, value) {
            break;
        }
        column += 1;
    }
    Some(())
}

#[inline]
fn value(kind: u64, body: &[u8]) -> Option<(Value<'_>, &[u8])> {
    Some(match kind {
        0 => (Value::Null, body),
        1 => integer::<1>(body)?,
        2 => integer::<2>(body)?,
        3 => integer::<3>(body)?,
        4 => integer::<4>(body)?,
        5 => integer::<6>(body)?,
        6 => integer::<8>(body)?,
        7 => {
            let (bytes, rest) = body.split_first_chunk::<8>()?;
            (Value::Real(f64::from_be_bytes(*bytes)), rest)
        }
        8 => (Value::Integer(0), body),
        9 => (Value::Integer(1), body),
        10 | 11 => return None,
        _ => {
            let (bytes, rest) = body.split_at_checked(usize::try_from((kind - 12) / 2).ok()?)?;
            (if kind % 2 == 1 { Value::Text(bytes) } else { Value::Blob }, rest)
        }
    })
}

#[inline]
fn integer<const N: usize>(body: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let (bytes, rest) = body.split_first_chunk::<N>()?;
    let mut wide = [if bytes[0] & 0x80 == 0 { 0 } else { 0xff }; 8];
    wide[8 - N..].copy_from_slice(bytes);
    Some((Value::Integer(i64::from_be_bytes(wide)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(record: &[u8]) -> Option<Vec<Value<'_>>> {
        let mut found = Vec::new();
        walk(record, |_, value| {
            found.push(value);
            true
        })?;
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
