//! The ways that events were written, as a tree: each node is a gap and what is read behind it.
//!
//! A gap is the text between two values; the quotes of strings belong to it. The tokens of a gap alone, and the gaps
//! before it, decide what follows. So an event whose gaps lead from the root to an end means what the events did from
//! which the way was learned, provided that each value is of the kind that its node reads.

use crate::event::{Event, Reads};
use crate::fields::{COLLECTIVE_TEXTS, EVENT_LEVEL, Field};
use crate::json::{Kind, Scalar};

pub(crate) const ROOT: u16 = 0;
/// No node has this number.
pub(crate) const NONE: u16 = u16::MAX;
/// Irregular files have any number of ways; beyond so many nodes nothing is learned.
const MOST_NODES: usize = 4096;
const LONGEST_GAP: usize = 256;
/// A value that changed so often, where the name before it was the same, is not expected to stay.
const CHANGES: u8 = 4;

/// How the value behind a gap is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// A phase or category, by its spelling.
    Word,
    /// A text of the args of collectives, by its code.
    Text,
    Name,
    /// A number of us with at most three digits behind the point.
    Time,
    /// An integer without a sign.
    Number,
    /// A string, a number, or anything inside so many brackets, that nobody asks for.
    AnyText,
    AnyNumber,
    Any(u8),
    /// The end of the event.
    End,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) gap: Box<[u8]>,
    pub(crate) value: Value,
    pub(crate) field: Field,
    /// The fields whose earlier values no longer count.
    pub(crate) clear: u64,
    pub(crate) parent: u16,
    first: u16,
    sibling: u16,
    /// The child that was met last.
    pub(crate) likely: u16,
    /// The value that was read last, and how often it was not the one before.
    pub(crate) last: u64,
    pub(crate) changes: u8,
    /// There may be a shortcut from here.
    pub(crate) has_shortcut: bool,
}

impl Node {
    /// Tells whether the value is another one in each event.
    #[inline]
    pub(crate) fn varies(&self) -> bool {
        self.changes >= CHANGES
    }
}

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { nodes: vec![node(&[], Value::Any(0), Field::Ignored, 0, NONE)] }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.nodes.len() >= MOST_NODES
    }

    /// Finds the next child of `parent` whose gap comes next, behind the child `after`.
    #[inline]
    pub(crate) fn child(&self, parent: u16, after: Option<u16>, rest: &[u8]) -> Option<u16> {
        let likely = self.nodes.get(usize::from(parent))?.likely;
        let mut next = match after {
            None => {
                if self.nodes.get(usize::from(likely)).is_some_and(|node| rest.starts_with(&node.gap)) {
                    return Some(likely);
                }
                self.nodes.get(usize::from(parent))?.first
            }
            Some(after) if after == likely => self.nodes.get(usize::from(parent))?.first,
            Some(after) => self.nodes.get(usize::from(after))?.sibling,
        };
        while let Some(node) = self.nodes.get(usize::from(next)) {
            if next != likely && rest.starts_with(&node.gap) {
                return Some(next);
            }
            next = node.sibling;
        }
        None
    }

    /// Adds the way through an event that was read; false where it cannot be predicted.
    #[cold]
    pub(crate) fn learn(&mut self, event: &Event, window: &[u8]) -> bool {
        let values: Option<Vec<(Value, Field)>> =
            event.steps.iter().map(|step| value_of(step.reads, &step.value)).collect();
        let Some(values) = values.filter(|_| event.regular) else { return false };
        let mut parent = ROOT;
        let mut quote = 0;
        for (step, (value, field)) in event.steps.iter().zip(values) {
            // The quote that ended the string before, and the one that begins the next.
            let is_text = matches!(value, Value::Word | Value::Text | Value::Name | Value::AnyText);
            let gap = window.get(step.start - quote..step.at + usize::from(is_text)).unwrap_or_default();
            quote = usize::from(is_text);
            let clear = if step.args { !EVENT_LEVEL } else { 0 } | cleared(step.reads);
            let Some(child) = self.find_or_add(parent, gap, value, field, clear) else { return false };
            if let Some(node) = self.nodes.get_mut(usize::from(parent)) {
                node.likely = child;
            }
            parent = child;
        }
        true
    }

    fn find_or_add(&mut self, parent: u16, gap: &[u8], value: Value, field: Field, clear: u64) -> Option<u16> {
        let mut child = self.nodes.get(usize::from(parent))?.first;
        while let Some(node) = self.nodes.get(usize::from(child)) {
            if *node.gap == *gap && node.value == value && node.field == field {
                return Some(child);
            }
            child = node.sibling;
        }
        if self.is_full() || gap.len() > LONGEST_GAP {
            return None;
        }
        let number = u16::try_from(self.nodes.len()).ok()?;
        let mut new = node(gap, value, field, clear, parent);
        let before = self.nodes.get_mut(usize::from(parent))?;
        new.sibling = before.first;
        before.first = number;
        self.nodes.push(new);
        Some(number)
    }
}

fn node(gap: &[u8], value: Value, field: Field, clear: u64, parent: u16) -> Node {
    // Names, times and ids are never expected to stay.
    let changes = match (value, field) {
        (Value::Name | Value::Time | Value::End, _) | (_, Field::Correlation | Field::ExternalId) => CHANGES,
        _ => 0,
    };
    Node {
        gap: gap.into(),
        value,
        field,
        clear,
        parent,
        first: NONE,
        sibling: NONE,
        likely: NONE,
        last: 0,
        changes,
        has_shortcut: false,
    }
}

fn cleared(reads: Reads) -> u64 {
    match reads {
        Reads::First(field) => field.triple().map_or(0, |fields| fields.iter().fold(0, |bits, field| bits | field.bit())),
        Reads::Value(..) | Reads::End => 0,
    }
}

/// Tells how a value is read when it is predicted; None where it is not.
fn value_of(reads: Reads, value: &Scalar) -> Option<(Value, Field)> {
    let (field, depth) = match reads {
        Reads::End => return Some((Value::End, Field::Ignored)),
        Reads::First(field) => (field, 0),
        Reads::Value(field, depth) => (field, u8::try_from(depth).ok()?),
    };
    let is_natural = value.kind == Kind::Number && !value.negative && value.places == 0;
    let value = match field {
        Field::Ignored => match value.kind {
            Kind::Plain | Kind::Coded => Value::AnyText,
            Kind::Number | Kind::Long => Value::AnyNumber,
            Kind::Other | Kind::NonFinite => Value::Any(depth),
        },
        Field::Phase | Field::Category if value.kind == Kind::Plain => Value::Word,
        Field::Name if value.kind == Kind::Plain => Value::Name,
        _ if COLLECTIVE_TEXTS.contains(&field) && value.kind == Kind::Plain => Value::Text,
        Field::Start | Field::Duration if value.kind == Kind::Number && !value.negative && value.places <= 3 => Value::Time,
        Field::Process | Field::Thread if is_natural => Value::Number,
        Field::Args | Field::Start | Field::Duration => return None,
        _ if field.is_plain_number() && is_natural => Value::Number,
        _ => return None,
    };
    Some((value, field))
}
