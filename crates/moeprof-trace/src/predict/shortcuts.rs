//! Runs of values that mostly stay as they are while the name does: thread, stream, grid and the like.
//!
//! The text of such a run, from behind one value of an event to the next one that changes, was read step by step
//! before, from the same node of the tree. Where the same bytes come again, they mean the same.

use super::tree::{NONE, Node, Tree};
use crate::fields::Field;
use crate::tables::Known;

/// How many runs are kept; a new one takes the place of another.
const PLACES: usize = 4096;
const LONGEST: usize = 640;
/// A run that was met so often in between is not blamed for the change of a value.
const PROVEN: u32 = 4;

#[derive(Debug, Default)]
struct Shortcut {
    from: u16,
    target: u16,
    key: u32,
    text: Vec<u8>,
    /// The fields whose earlier values no longer count, and those that get one.
    clear: u64,
    present: u64,
    /// The values by node, in order.
    values: Vec<(Field, u64)>,
    hits: u32,
}

#[derive(Debug)]
pub(crate) struct Shortcuts {
    places: Vec<Shortcut>,
}

#[inline]
fn place(from: u16, key: u32) -> usize {
    let mixed = (u64::from(from) << 32 | u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize % PLACES
}

impl Shortcuts {
    pub(crate) fn new() -> Self {
        let nothing = || Shortcut { from: NONE, ..Shortcut::default() };
        Self { places: std::iter::repeat_with(nothing).take(PLACES).collect() }
    }

    /// Passes the run that begins at `rest`, if it is the one that is kept for this node and key; returns the node that
    /// it leads to and its length.
    #[inline]
    pub(crate) fn pass(&mut self, from: u16, key: u32, rest: &[u8], known: &mut Known) -> Option<(u16, usize)> {
        let shortcut = self.places.get_mut(place(from, key))?;
        if shortcut.from != from || shortcut.key != key || !rest.starts_with(&shortcut.text) {
            return None;
        }
        shortcut.hits = shortcut.hits.saturating_add(1);
        for &(field, value) in &shortcut.values {
            known.numbers[field as usize] = value;
        }
        known.present = known.present & !shortcut.clear | shortcut.present;
        Some((shortcut.target, shortcut.text.len()))
    }

    /// Keeps a run: `text` leads from one node to the value of another, whose way was just gone step by step.
    #[cold]
    pub(crate) fn keep(&mut self, tree: &mut Tree, from: u16, key: u32, target: u16, text: &[u8]) {
        let Some(shortcut) = self.places.get_mut(place(from, key)).filter(|_| text.len() <= LONGEST) else { return };
        let way = way(tree, from, target);
        let value = |node: &Node| (node.field, node.last);
        let is_renewed = shortcut.from == from && shortcut.key == key && shortcut.target == target;
        if is_renewed && shortcut.hits < PROVEN {
            for (&number, &(_, old)) in way.iter().zip(&shortcut.values) {
                if let Some(node) = tree.nodes.get_mut(usize::from(number)) {
                    node.changes = node.changes.saturating_add(u8::from(node.last != old));
                }
            }
        }
        let nodes = || way.iter().filter_map(|&number| tree.nodes.get(usize::from(number)));
        let (mut clear, mut present) = (0, 0);
        for node in nodes() {
            clear |= node.clear;
            present = present & !node.clear | node.field.bit();
        }
        *shortcut = Shortcut {
            from,
            target,
            key,
            text: text.to_vec(),
            clear,
            present,
            values: nodes().map(value).collect(),
            hits: 0,
        };
        if let Some(node) = tree.nodes.get_mut(usize::from(from)) {
            node.has_shortcut = true;
        }
    }
}

/// The nodes between two of them, in order.
fn way(tree: &Tree, from: u16, target: u16) -> Vec<u16> {
    let parent = |number: u16| tree.nodes.get(usize::from(number)).map_or(NONE, |node| node.parent);
    let mut way: Vec<u16> =
        std::iter::successors(Some(parent(target)), |&number| Some(parent(number)))
            .take_while(|&number| number != from && number != NONE)
            .collect();
    way.reverse();
    way
}
