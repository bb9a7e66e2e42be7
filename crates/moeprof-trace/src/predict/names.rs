//! A guess at the name that comes next, so that a name met before is found by one comparison.

use crate::intern::{Interner, mix};
use crate::json::find_special;

const PLACES: usize = 8192;
/// Names are guessed by the one before them of the same category; that many categories are told apart.
const CATEGORIES: usize = 64;

#[derive(Debug)]
pub(crate) struct Names {
    /// Codes of names that have neither escapes nor control characters, plus one.
    guesses: Vec<u32>,
    before: [u32; CATEGORIES],
}

/// A name: its code where it is known, and how long it is.
pub(crate) struct Found {
    pub(crate) code: Option<u32>,
    pub(crate) length: usize,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { guesses: vec![0; PLACES], before: [0; CATEGORIES] }
    }

    /// Finds the name that begins at `at`; None where it has escapes, control characters or bytes behind `valid`.
    #[inline]
    pub(crate) fn find(
        &mut self,
        category: u64,
        names: &Interner,
        bytes: &[u8],
        at: usize,
        valid: usize,
    ) -> Option<Found> {
        let rest = bytes.get(at..)?;
        let (words, _) = rest.first_chunk::<16>()?.as_chunks::<8>();
        let [first, second] = words else { return None };
        #[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
        let before = &mut self.before[category as usize % CATEGORIES];
        let mixed = mix(
            u64::from_le_bytes(*first) ^ u64::from(*before).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            u64::from_le_bytes(*second) ^ 0xd1b5_4a32_d192_ed03,
        );
        #[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
        let guess = &mut self.guesses[mixed as usize % PLACES];
        if let Some(code) = guess.checked_sub(1) {
            let name = names.bytes(code);
            if rest.get(name.len()) == Some(&b'"') && rest.starts_with(name) {
                *before = *guess;
                return Some(Found { code: Some(code), length: name.len() });
            }
        }
        let end = find_special(bytes, at);
        if bytes.get(end) != Some(&b'"') || end > valid {
            return None;
        }
        let code = names.get(bytes.get(at..end)?);
        *guess = code.and_then(|code| code.checked_add(1)).unwrap_or_default();
        *before = *guess;
        Some(Found { code, length: end - at })
    }
}
