//! A guess at the name that comes next, so that a name met before is found by one comparison.

use super::literal::same;
use crate::intern::{Interner, mix};
use crate::json::find_special;

const PLACES: usize = 4096;
/// Names are guessed by the one before them of the same category; that many categories are told apart.
const CATEGORIES: usize = 64;

/// A name that has neither escapes nor control characters, and where its bytes are among those of all names.
#[derive(Debug, Clone, Copy)]
struct Guess {
    start: usize,
    length: usize,
    code: u32,
}

#[derive(Debug)]
pub(crate) struct Names {
    guesses: Vec<Guess>,
    before: [u32; CATEGORIES],
}

/// A name: its code where it is known, and how long it is.
pub(crate) struct Found {
    pub(crate) code: Option<u32>,
    pub(crate) length: usize,
}

const NOTHING: Guess = Guess { start: usize::MAX, length: 0, code: 0 };

impl Names {
    pub(crate) fn new() -> Self {
        Self { guesses: vec![NOTHING; PLACES], before: [0; CATEGORIES] }
    }

    /// Finds the name that begins at `at`; None where it has escapes, control characters or bytes behind `valid`.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        category: u32,
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
        let guess = self.guesses.get_mut(mixed as usize % PLACES)?;
        if let Some(name) = names.at(guess.start, guess.length)
            && rest.get(name.len()) == Some(&b'"')
            && rest.get(..name.len()).is_some_and(|text| same(text, name))
        {
            *before = guess.code;
            return Some(Found { code: Some(guess.code), length: name.len() });
        }
        let found = look_up(names, bytes, at, valid)?;
        *guess = NOTHING;
        if let Some(code) = found.code {
            let start = names.start(code);
            *guess = Guess { start, length: found.length, code };
            *before = code;
        }
        Some(found)
    }
}

#[inline(never)]
fn look_up(names: &Interner, bytes: &[u8], at: usize, valid: usize) -> Option<Found> {
    let end = find_special(bytes, at);
    if bytes.get(end) != Some(&b'"') || end > valid {
        return None;
    }
    Some(Found { code: names.get(bytes.get(at..end)?), length: end - at })
}
