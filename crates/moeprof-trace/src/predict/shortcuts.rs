//! Runs of values that mostly stay as they are while the name does: thread, stream, grid and the like.
//!
//! The text of such a run, from behind one value of an event to the next one that changes, was read step by step
//! before, by the same steps. Where the same bytes come again, they mean the same.

use super::literal::Literal;
use crate::fields::{FIELDS, Field};

/// How many runs are kept; a new one takes the place of another.
const PLACES: usize = 2048;
const LONGEST: usize = 1024;
/// A run that was met so often in between is not blamed for the change of a value.
const PROVEN: u32 = 4;

#[derive(Debug, Default)]
struct Shortcut {
    group: u32,
    key: u32,
    text: Literal,
    /// The values of the steps, in order.
    values: Vec<(Field, u64)>,
    hits: u32,
}

#[derive(Debug)]
pub(crate) struct Shortcuts {
    places: Vec<Shortcut>,
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
fn place(group: u32, key: u32) -> usize {
    let mixed = (u64::from(group) << 32 | u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize % PLACES
}

impl Shortcuts {
    pub(crate) fn new() -> Self {
        Self { places: std::iter::repeat_with(Shortcut::default).take(PLACES).collect() }
    }

    /// Passes the run that is kept for this group and key, if it comes next; returns its length.
    #[inline(always)]
    pub(crate) fn pass(&mut self, group: u32, key: u32, rest: &[u8], numbers: &mut [u64; FIELDS + 1]) -> Option<usize> {
        let shortcut = self.places.get_mut(place(group, key))?;
        if shortcut.group != group || shortcut.key != key || !shortcut.text.begins(rest) {
            return None;
        }
        shortcut.hits = shortcut.hits.wrapping_add(1);
        for &(field, value) in &shortcut.values {
            numbers[field as usize] = value;
        }
        Some(shortcut.text.len())
    }

    /// Keeps a run that was just gone step by step; returns which of its values are others than last time.
    pub(crate) fn keep(&mut self, group: u32, key: u32, text: &[u8], values: Vec<(Field, u64)>) -> Vec<usize> {
        let Some(shortcut) = self.places.get_mut(place(group, key)).filter(|_| text.len() <= LONGEST) else {
            return Vec::new();
        };
        let is_renewed = shortcut.group == group && shortcut.key == key && shortcut.hits < PROVEN;
        let pairs = || shortcut.values.iter().zip(&values).enumerate();
        let changed = if is_renewed {
            pairs().filter(|(_, (old, new))| old != new).map(|(index, _)| index).collect()
        } else {
            Vec::new()
        };
        *shortcut = Shortcut { group, key, text: Literal::new(text), values, hits: 0 };
        changed
    }
}
