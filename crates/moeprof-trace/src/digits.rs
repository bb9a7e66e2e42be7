//! Decimal digits to numbers, eight bytes in a step.

pub(crate) const ONES: u64 = u64::from_le_bytes([1; 8]);
pub(crate) const HIGH: u64 = ONES << 7;

const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Passes digits and appends them to a number, which wraps where there are more than 19: up to eight in a step.
#[inline]
pub(crate) fn digits(bytes: &[u8], mut at: usize, mantissa: &mut u64) -> usize {
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let count = leading_digits(word);
        if count > 0 {
            let values = word.wrapping_sub(ONES * u64::from(b'0')) << (64 - 8 * count);
            let power = POWERS.get(count as usize).copied().unwrap_or_default();
            *mantissa = mantissa.wrapping_mul(power).wrapping_add(eight_digits(values));
        }
        at += count as usize;
        if count < 8 {
            return at;
        }
    }
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

/// Counts the bytes that are digits, from the lowest on.
///
/// A byte that is none gets its high bit set by one of the three terms. Carries and borrows only reach higher bytes, so
/// the lowest such bit is right.
#[inline]
fn leading_digits(word: u64) -> u32 {
    let others = word.wrapping_add(ONES * 0x46) | word.wrapping_sub(ONES * 0x30) | word;
    (others & HIGH).trailing_zeros() / 8
}

/// Joins eight digits, the first of them in the lowest byte, pairwise.
#[inline]
fn eight_digits(values: u64) -> u64 {
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// Reads an integer as JSON writes it, of at most 18 digits and without a sign; returns its value and its length.
///
/// The length is 0 where there is no such integer. What follows it is for the caller to look at.
#[inline(always)]
pub(crate) fn natural(bytes: &[u8; 24]) -> (u64, usize) {
    let (eights, _) = bytes.as_chunks::<8>();
    let [first, second, third] = eights else { return (0, 0) };
    let word = u64::from_le_bytes(*first);
    let count = leading_digits(word);
    // A zero is a whole number by itself only.
    let led_by_zero = word & 0xff == u64::from(b'0');
    if count < 8 {
        let shift = 64u32.wrapping_sub(8 * count);
        let value = eight_digits(word.wrapping_sub(ONES * u64::from(b'0')).wrapping_shl(shift));
        // Without digits the shift is by 64, that is by nothing: the value does not count then.
        return (value, if led_by_zero && count > 1 { 0 } else { count as usize });
    }
    if led_by_zero {
        return (0, 0);
    }
    more_digits(eight_digits(word.wrapping_sub(ONES * u64::from(b'0'))), *second, *third)
}

/// Goes on behind eight digits.
#[inline]
fn more_digits(value: u64, second: [u8; 8], third: [u8; 8]) -> (u64, usize) {
    let mut value = value;
    let mut length = 8;
    for eight in [second, third] {
        let word = u64::from_le_bytes(eight);
        let count = leading_digits(word);
        if count > 0 {
            let values = word.wrapping_sub(ONES * u64::from(b'0')) << (64 - 8 * count);
            let power = POWERS[count as usize % POWERS.len()];
            value = value.wrapping_mul(power).wrapping_add(eight_digits(values));
        }
        length += count as usize;
        if count < 8 {
            break;
        }
    }
    (value, if length <= 18 { length } else { 0 })
}

/// Reads what follows the integer part of a time in us: a point and up to three digits, or neither.
///
/// Returns ns and the length. None where there are other digits than three at most; where no point stands, (0, 0).
#[inline(always)]
pub(crate) fn thousandths(bytes: [u8; 8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(bytes);
    if word & 0xff != u64::from(b'.') {
        return Some((0, 0));
    }
    let count = leading_digits(word >> 8);
    let digit = |index: u32| (word >> (8 * index)) & 0xf;
    match count {
        3 => Some((digit(1) * 100 + digit(2) * 10 + digit(3), 4)),
        2 => Some((digit(1) * 100 + digit(2) * 10, 3)),
        1 => Some((digit(1) * 100, 2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_whatever_their_number_and_what_follows() {
        for length in 0..=19 {
            let number: String = "1234567890987654321".chars().take(length).collect();
            for follower in
                ["", ",", "x", ":", "/", "\u{ff}", " 12345678", "\u{ba}\u{ba}\u{ba}\u{ba}", "..........", "AAAAAAAAAA"]
            {
                let text = format!("{number}{follower}");
                let mut mantissa = 0;
                assert_eq!(digits(text.as_bytes(), 0, &mut mantissa), length, "{text}");
                assert_eq!(mantissa, number.parse().unwrap_or(0), "{text}");
            }
        }
    }

    #[test]
    fn naturals_are_what_json_calls_integers() {
        for length in 0..24 {
            let number: String = "123456789098765432123456".chars().take(length).collect();
            for follower in [",", "}", ".", "e", " ", "\u{ff}", ":", "/"] {
                let mut bytes = [b'x'; 24];
                for (place, byte) in bytes.iter_mut().zip(number.bytes().chain(follower.bytes())) {
                    *place = byte;
                }
                let (value, found) = natural(&bytes);
                if (1..=18).contains(&length) {
                    assert_eq!((value, found), (number.parse().unwrap_or(0), length), "{number}{follower}");
                } else {
                    assert_eq!(found, 0, "{number}{follower}");
                }
            }
        }
        assert_eq!(natural(b"0,......................"), (0, 1));
        assert_eq!(natural(b"01,.....................").1, 0);
        assert_eq!(natural(b"0123456789,.............").1, 0);
        assert_eq!(natural(b"-1,.....................").1, 0);
    }

    #[test]
    fn thousandths_have_at_most_three_digits() {
        assert_eq!(thousandths(*b".125,..."), Some((125, 4)));
        assert_eq!(thousandths(*b".12,...."), Some((120, 3)));
        assert_eq!(thousandths(*b".1,....."), Some((100, 2)));
        assert_eq!(thousandths(*b".,......"), None);
        assert_eq!(thousandths(*b".1234,.."), None);
        assert_eq!(thousandths(*b".1234567"), None);
        assert_eq!(thousandths(*b",1234567"), Some((0, 0)));
    }
}
