//! Distinct byte strings as codes from 0, in order of first appearance.

/// Bytes to codes and back. A lookup hashes the bytes and allocates only for new ones.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    slots: Vec<Slot>,
    /// Where each string ends in the arena.
    ends: Vec<usize>,
    arena: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u64,
    /// `u32::MAX` marks a free slot.
    code: u32,
}

const FREE: Slot = Slot { hash: 0, code: u32::MAX };

impl Interner {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of a code.
    #[inline]
    pub(crate) fn bytes(&self, code: u32) -> &[u8] {
        let index = code as usize;
        let start = self.start(code);
        self.ends.get(index).and_then(|&end| self.arena.get(start..end)).unwrap_or_default()
    }

    /// Returns where the bytes of a code begin among all of them.
    pub(crate) fn start(&self, code: u32) -> usize {
        (code as usize).checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0)
    }

    /// Returns some of the bytes of all strings.
    #[inline]
    pub(crate) fn at(&self, start: usize, length: usize) -> Option<&[u8]> {
        self.arena.get(start..)?.get(..length)
    }

    /// All strings in the order of their codes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let bytes = self.arena.get(start..end).unwrap_or_default();
            start = end;
            bytes
        })
    }

    #[inline]
    pub(crate) fn get(&self, bytes: &[u8]) -> Option<u32> {
        let slot = self.slots.get(self.find(hash(bytes), bytes)?)?;
        (slot.code != FREE.code).then_some(slot.code)
    }

    /// Returns the code of bytes, a new one where they have none; None where there are no more codes.
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> Option<u32> {
        if (self.ends.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let hash = hash(bytes);
        let place = self.find(hash, bytes)?;
        let slot = self.slots.get_mut(place)?;
        if slot.code == FREE.code {
            let code = u32::try_from(self.ends.len()).ok().filter(|&code| code != FREE.code)?;
            *slot = Slot { hash, code };
            self.arena.extend_from_slice(bytes);
            self.ends.push(self.arena.len());
        }
        Some(slot.code)
    }

    /// Finds the slot of the bytes, or the free one where they belong.
    #[inline]
    fn find(&self, hash: u64, bytes: &[u8]) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut index = fold(hash) & mask;
        loop {
            let slot = self.slots.get(index)?;
            if slot.code == FREE.code || (slot.hash == hash && self.bytes(slot.code) == bytes) {
                return Some(index);
            }
            index = (index + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![FREE; (old.len() * 2).max(64)];
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.code != FREE.code) {
            let mut index = fold(slot.hash) & mask;
            while self.slots.get(index).is_some_and(|slot| slot.code != FREE.code) {
                index = (index + 1) & mask;
            }
            if let Some(place) = self.slots.get_mut(index) {
                *place = slot;
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low bits of a hash are a hash")]
fn fold(hash: u64) -> usize {
    hash as usize
}

/// Mixes two words into one: both halves of their product.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const SEEDS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0x8cb9_2ba7_2f3d_8dd7];
    let mut hash = SEEDS[0] ^ bytes.len() as u64;
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let (left, right) = pair.split_at(8);
        hash = mix(word(left) ^ hash ^ SEEDS[1], word(right) ^ SEEDS[2]);
    }
    if !rest.is_empty() {
        let (left, right) = rest.split_at(rest.len().min(8));
        hash = mix(word(left) ^ hash ^ SEEDS[1], word(right) ^ SEEDS[2]);
    }
    mix(hash, SEEDS[1])
}

/// Reads at most eight bytes as one word.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    if let Some(eight) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    let mut word = 0;
    for (index, byte) in bytes.iter().enumerate() {
        word |= u64::from(*byte) << (index * 8);
    }
    word
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_keeps_its_own_code() {
        let mut interner = Interner::default();
        let words: Vec<String> =
            (0..5000u32).map(|number| "x".repeat(number as usize % 40) + &number.to_string()).collect();
        for (code, word) in words.iter().enumerate() {
            assert_eq!(interner.get(word.as_bytes()), None);
            assert_eq!(interner.insert(word.as_bytes()), u32::try_from(code).ok());
            assert_eq!(interner.insert(word.as_bytes()), u32::try_from(code).ok());
        }
        for (code, word) in words.iter().enumerate() {
            let code = u32::try_from(code).expect("few");
            assert_eq!(interner.get(word.as_bytes()), Some(code));
            assert_eq!(interner.bytes(code), word.as_bytes());
        }
        assert!(interner.iter().eq(words.iter().map(String::as_bytes)));
        assert_eq!(interner.get(b"never"), None);
    }
}
