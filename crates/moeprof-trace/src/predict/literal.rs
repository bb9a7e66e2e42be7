//! A text that is expected, compared by blocks of 32 bytes without a branch for each.

const BLOCK: usize = 32;

#[derive(Debug, Default, Clone)]
pub(crate) struct Literal {
    /// The bytes before the last block, and those of it with zeros behind them.
    full: Box<[[u8; BLOCK]]>,
    last: [u8; BLOCK],
    mask: [u8; BLOCK],
    length: usize,
}

impl Literal {
    pub(crate) fn new(text: &[u8]) -> Self {
        let (full, rest) = text.as_chunks::<BLOCK>();
        let (mut last, mut mask) = ([0; BLOCK], [0; BLOCK]);
        for ((place, bits), byte) in last.iter_mut().zip(&mut mask).zip(rest) {
            (*place, *bits) = (*byte, 0xff);
        }
        Self { full: full.into(), last, mask, length: text.len() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Tells whether a text begins so. False also where fewer bytes follow than the blocks hold: that is for others to read.
    #[inline(always)]
    pub(crate) fn begins(&self, text: &[u8]) -> bool {
        let (blocks, _) = text.as_chunks::<BLOCK>();
        let Some((before, [last, ..])) = blocks.split_at_checked(self.full.len()) else { return false };
        // Lane by lane, of which the compiler makes vectors.
        let mut difference = [0; BLOCK];
        for (((lane, byte), expected), mask) in difference.iter_mut().zip(last).zip(&self.last).zip(&self.mask) {
            *lane = (byte ^ expected) & mask;
        }
        for (block, expected) in before.iter().zip(&self.full) {
            for ((lane, byte), expected) in difference.iter_mut().zip(block).zip(expected) {
                *lane |= byte ^ expected;
            }
        }
        difference == [0; BLOCK]
    }

    /// Tells whether this is the whole of a text.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        let (full, rest) = text.as_chunks::<BLOCK>();
        let mut last = [0; BLOCK];
        last.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
        text.len() == self.length && *full == *self.full && last == self.last
    }
}

/// Tells whether two texts of the same length are equal; most are short.
#[inline(always)]
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    let (lefts, _) = left.as_chunks::<8>();
    let (rights, _) = right.as_chunks::<8>();
    let (Some(left_end), Some(right_end)) = (left.last_chunk::<8>(), right.last_chunk::<8>()) else {
        return left == right;
    };
    if left.len() > 128 || left.len() != right.len() {
        return left == right;
    }
    let mut difference = u64::from_le_bytes(*left_end) ^ u64::from_le_bytes(*right_end);
    for (left, right) in lefts.iter().zip(rights) {
        difference |= u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..160u8).map(|byte| byte.wrapping_mul(37) | 0x80).collect()
    }

    #[test]
    fn a_literal_begins_a_text_as_its_bytes_do() {
        let text = text();
        for length in 0..100 {
            let literal = Literal::new(&text[..length]);
            for cut in 0..text.len() {
                let is_long_enough = cut >= (length / BLOCK + 1) * BLOCK;
                assert_eq!(literal.begins(&text[..cut]), is_long_enough, "{length} {cut}");
                assert_eq!(literal.is(&text[..cut]), length == cut);
            }
            for place in 0..text.len() {
                let mut other = text.clone();
                other[place] ^= 1;
                assert_eq!(literal.begins(&other), place >= length, "{length} {place}");
                assert_eq!(literal.is(&other[..length]), place >= length);
            }
        }
    }

    #[test]
    fn texts_are_the_same_where_no_byte_differs() {
        let text = text();
        for length in 0..text.len() {
            assert!(same(&text[..length], &text[..length]));
            assert!(!same(&text[..length], &text[..=length]));
            for place in 0..length {
                let mut other = text.clone();
                other[place] ^= 1;
                assert!(!same(&text[..length], &other[..length]), "{length} {place}");
            }
        }
    }
}
