//! Decimal microseconds to integer nanoseconds, from the digits; no float on the way.

use crate::json::{Kind, Scalar};

/// Whole nanoseconds, and whether digits below 1 ns were rounded away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nanoseconds {
    pub(crate) value: i64,
    pub(crate) rounded: bool,
}

/// The value does not fit into 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfRange;

/// Converts a number of microseconds; `digits` is its text.
#[inline]
pub(crate) fn nanoseconds(number: &Scalar, digits: &[u8]) -> Result<Nanoseconds, OutOfRange> {
    const SCALE: [u64; 4] = [1000, 100, 10, 1];
    if let (Kind::Number, Some(scale)) = (number.kind, SCALE.get(usize::from(number.places))) {
        let value = number.mantissa.checked_mul(*scale).ok_or(OutOfRange)?;
        return Ok(Nanoseconds { value: signed(value, number.negative)?, rounded: false });
    }
    from_digits(digits)
}

fn signed(value: u64, negative: bool) -> Result<i64, OutOfRange> {
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }.ok_or(OutOfRange)
}

/// Reads any JSON number of microseconds, rounding half to even below 1 ns.
fn from_digits(text: &[u8]) -> Result<Nanoseconds, OutOfRange> {
    let negative = text.first() == Some(&b'-');
    let split = text.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(text.len());
    let (number, exponent) = text.split_at(split);
    let exponent = exponent_of(exponent.get(1..).unwrap_or_default());
    let whole = number.iter().filter(|byte| byte.is_ascii_digit()).count();
    let fraction = number.iter().position(|&byte| byte == b'.').map_or(0, |point| number.len() - point - 1);
    let mut digits = number.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| u64::from(byte - b'0')).peekable();

    // Digits left of the point once the number is in nanoseconds.
    let mut left = i64::try_from(whole - fraction).map_err(|_| OutOfRange)? + exponent + 3;
    while digits.next_if_eq(&0).is_some() {
        left -= 1;
    }
    if digits.peek().is_none() {
        return Ok(Nanoseconds { value: 0, rounded: false });
    }
    if left > 20 {
        return Err(OutOfRange);
    }
    let mut value = 0u64;
    for _ in 0..left.max(0) {
        let digit = digits.next().unwrap_or(0);
        value = value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(OutOfRange)?;
    }
    // Below a tenth of a nanosecond the first digit is not the tenths.
    let tenths = if left < 0 { 0 } else { digits.next().unwrap_or(0) };
    let more = digits.any(|digit| digit != 0);
    let rounded = tenths != 0 || more || left < 0;
    if tenths > 5 || (tenths == 5 && (more || value % 2 == 1)) {
        value = value.checked_add(1).ok_or(OutOfRange)?;
    }
    Ok(Nanoseconds { value: signed(value, negative)?, rounded })
}

/// Reads an exponent; far beyond any time it no longer matters how far.
fn exponent_of(text: &[u8]) -> i64 {
    const FAR: i64 = 1 << 40;
    let negative = text.first() == Some(&b'-');
    let mut value = 0i64;
    for byte in text.iter().filter(|byte| byte.is_ascii_digit()) {
        value = (value * 10 + i64::from(byte - b'0')).min(FAR);
    }
    if negative { -value } else { value }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "these are tests")]
mod tests {
    use super::*;
    use crate::json::Cursor;

    fn read(text: &str) -> Result<(i64, bool), OutOfRange> {
        let padded = format!("{text},");
        let mut quirks = Vec::new();
        let mut cursor = Cursor { bytes: padded.as_bytes(), at: 0, valid: padded.len(), quirks: &mut quirks };
        let number = cursor.number().expect("a number");
        nanoseconds(&number, cursor.slice(number)).map(|time| (time.value, time.rounded))
    }

    #[test]
    fn three_decimals_are_exact() {
        assert_eq!(read("5214564677703.975"), Ok((5_214_564_677_703_975, false)));
        assert_eq!(read("1712195495521957.920"), Ok((1_712_195_495_521_957_920, false)));
        assert_eq!(read("-0.001"), Ok((-1, false)));
        assert_eq!(read("7"), Ok((7000, false)));
        assert_eq!(read("-0"), Ok((0, false)));
    }

    #[test]
    fn exponents_are_honoured() {
        assert_eq!(read("5e3"), Ok((5_000_000, false)));
        assert_eq!(read("5E-3"), Ok((5, false)));
        assert_eq!(read("1.5e+2"), Ok((150_000, false)));
        assert_eq!(read("0e999999999999999999999"), Ok((0, false)));
        assert_eq!(read("1e-999999999999999999999"), Ok((0, true)));
        assert_eq!(read("1e999999999999999999999"), Err(OutOfRange));
    }

    #[test]
    fn below_one_nanosecond_half_goes_to_even() {
        assert_eq!(read("0.0005"), Ok((0, true)));
        assert_eq!(read("0.0015"), Ok((2, true)));
        assert_eq!(read("0.0025"), Ok((2, true)));
        assert_eq!(read("0.00250000000000000000000001"), Ok((3, true)));
        assert_eq!(read("-0.0015"), Ok((-2, true)));
        assert_eq!(read("0.00005"), Ok((0, true)));
        assert_eq!(read("0.00099"), Ok((1, true)));
        assert_eq!(read("1.0000000"), Ok((1000, false)));
    }

    #[test]
    fn the_range_is_that_of_i64() {
        assert_eq!(read("9223372036854775.807"), Ok((i64::MAX, false)));
        assert_eq!(read("-9223372036854775.808"), Ok((i64::MIN, false)));
        assert_eq!(read("9223372036854775.808"), Err(OutOfRange));
        assert_eq!(read("9223372036854775.8075"), Err(OutOfRange));
        assert_eq!(read("9999999999999999999"), Err(OutOfRange));
        assert_eq!(read("123456789012345678901234567890"), Err(OutOfRange));
    }
}
