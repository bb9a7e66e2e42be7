//! Reading events by prediction: a writer lays its events out alike, so most of the text of one is expected.
//!
//! [`Predictor::run`] goes on as long as events are as they were before; the first that is not is left to the general
//! path, from which the predictor then learns. What it accepts means what the general path would make of it, and needs
//! no notice: `docs/performance.md` says how that is known, and the tests read everything in both ways.

mod names;
mod shortcuts;
mod tree;

use self::names::Names;
use self::shortcuts::Shortcuts;
use self::tree::{NONE, Node, ROOT, Tree, Value};
use crate::digits::{natural, thousandths};
use crate::event::Event;
use crate::fields::{FIELDS, Field};
use crate::json::{Cursor, Kind, Quirk, Scalar, find_special};
use crate::tables::{Known, Tables};

/// A window of the text, of which the bytes before `valid` are valid UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) valid: usize,
}

/// What every event that is predicted has.
const NEEDED: u64 = Field::Phase.bit()
    | Field::Category.bit()
    | Field::Name.bit()
    | Field::Process.bit()
    | Field::Thread.bit()
    | Field::Start.bit();

/// What was seen of the events so far.
pub(crate) struct Predictor {
    tree: Tree,
    shortcuts: Shortcuts,
    names: Names,
    known: Known,
    /// The node that ended the event before.
    leaf: u16,
    /// The text from the end of one event to the first byte behind the brace of the next.
    between: Vec<u8>,
    quirks: Vec<Quirk>,
}

impl Predictor {
    pub(crate) fn new() -> Self {
        Self {
            tree: Tree::new(),
            shortcuts: Shortcuts::new(),
            names: Names::new(),
            known: Known { present: 0, numbers: [0; FIELDS + 1], name: None, name_at: 0, name_end: 0 },
            leaf: NONE,
            between: Vec::new(),
            quirks: Vec::new(),
        }
    }

    /// Tells whether there is something to be learned from an event that was read the other way.
    pub(crate) fn learns(&self) -> bool {
        !self.tree.is_full()
    }

    /// Learns from an event that needed no notice, and from the text between the last event and it.
    #[cold]
    pub(crate) fn learn(&mut self, event: &Event, window: &[u8], last_end: Option<usize>) {
        self.tree.learn(event, window);
        let between = last_end.and_then(|end| window.get(end..=event.start)).filter(|text| text.len() <= 16);
        if let Some(between) = between
            && between != self.between
        {
            self.between.clear();
            self.between.extend_from_slice(between);
        }
    }

    /// Reads events from the brace at `at` on, none longer than `most`; returns where the last one ends, if any was read.
    pub(crate) fn run(&mut self, text: Text<'_>, at: usize, most: usize, tables: &mut Tables) -> Option<usize> {
        let mut begin = at;
        let mut done = None;
        while let Some(end) = self.event(text, begin, most, tables) {
            done = Some(end);
            let rest = text.bytes.get(end..).unwrap_or_default();
            if self.between.is_empty() || !rest.starts_with(&self.between) {
                break;
            }
            begin = end + self.between.len() - 1;
        }
        done
    }

    /// Reads the event whose brace is at `begin`, and stores it; returns where it ends.
    #[inline]
    fn event(&mut self, text: Text<'_>, begin: usize, most: usize, tables: &mut Tables) -> Option<usize> {
        self.known.present = 0;
        let (mut at, mut from, mut key) = (begin + 1, ROOT, u32::from(self.leaf));
        // Where the run of values that stay began.
        let (mut run, mut run_at) = (from, at);
        loop {
            let rest = text.bytes.get(at..)?;
            let shortcut = if self.tree.nodes.get(usize::from(from))?.has_shortcut {
                self.shortcuts.pass(from, key, rest, &mut self.known)
            } else {
                None
            };
            let mut child = None;
            let (number, end) = if let Some((number, length)) = shortcut {
                let node = self.tree.nodes.get(usize::from(number))?;
                (number, self.read(node.value, node.field, node.clear, text, at + length, tables)?.0)
            } else {
                loop {
                    let number = self.tree.child(from, child, rest)?;
                    let node = self.tree.nodes.get(usize::from(number))?;
                    let (value, field, clear, begins) = (node.value, node.field, node.clear, at + node.gap.len());
                    if let Some((end, last)) = self.read(value, field, clear, text, begins, tables) {
                        let node = self.tree.nodes.get_mut(usize::from(number))?;
                        node.last = last;
                        let (varies, parent) = (node.varies(), node.parent);
                        if varies && parent != run {
                            let run_text = text.bytes.get(run_at..begins)?;
                            self.shortcuts.keep(&mut self.tree, run, key, number, run_text);
                        }
                        self.tree.nodes.get_mut(usize::from(from))?.likely = number;
                        break (number, end);
                    }
                    child = Some(number);
                }
            };
            at = end;
            let node: &Node = self.tree.nodes.get(usize::from(number))?;
            match node.value {
                Value::End => {
                    let whole = self.known.present & NEEDED == NEEDED && at - begin <= most;
                    if !whole || !tables.push_known(&self.known, text.bytes) {
                        return None;
                    }
                    self.leaf = number;
                    return Some(at);
                }
                Value::Name => key = self.known.name.unwrap_or(u32::MAX),
                _ => {}
            }
            if node.varies() {
                (run, run_at) = (number, at);
            }
            from = number;
        }
    }

    /// Reads the value at `at`; returns where it ends and what to remember it by.
    #[inline(always)]
    fn read(
        &mut self,
        value: Value,
        field: Field,
        clear: u64,
        text: Text<'_>,
        at: usize,
        tables: &Tables,
    ) -> Option<(usize, u64)> {
        let (end, number) = match value {
            Value::Number => {
                let (number, length) = natural(text.bytes.get(at..)?.first_chunk::<24>()?)?;
                (at + length, number)
            }
            Value::Time => {
                let (whole, length) = natural(text.bytes.get(at..)?.first_chunk::<24>()?)?;
                let (part, more) = thousandths(*text.bytes.get(at + length..)?.first_chunk::<8>()?)?;
                let time = whole.checked_mul(1000)?.checked_add(part)?;
                i64::try_from(time).ok()?;
                (at + length + more, time)
            }
            Value::Name => {
                let category = self.known.get(Field::Category);
                let found = self.names.find(category, &tables.names.texts, text.bytes, at, text.valid)?;
                self.known.name = found.code;
                (self.known.name_at, self.known.name_end) = (at, at + found.length);
                (at + found.length, 0)
            }
            Value::Word => {
                let end = find_special(text.bytes, at);
                let word = text.bytes.get(at..end).filter(|_| text.bytes.get(end) == Some(&b'"') && end <= text.valid)?;
                let words = if field == Field::Phase { &tables.phases } else { &tables.category_spellings };
                (end, u64::from(words.texts.get(word)?))
            }
            Value::Text => {
                let end = find_special(text.bytes, at);
                let word = text.bytes.get(at..end).filter(|_| text.bytes.get(end) == Some(&b'"') && end <= text.valid)?;
                (end, u64::from(tables.collective_text(field, word)?))
            }
            Value::AnyNumber | Value::AnyText | Value::Any(_) => self.skip(value, text, at)?,
            Value::End => {
                self.known.present &= !clear;
                return Some((at, 0));
            }
        };
        self.known.set(field, number, clear);
        Some((end, number))
    }

    /// Passes a value that nobody asks for.
    #[inline]
    fn skip(&mut self, value: Value, text: Text<'_>, at: usize) -> Option<(usize, u64)> {
        match value {
            Value::AnyNumber => {
                let (number, length) = natural(text.bytes.get(at..)?.first_chunk::<24>()?)?;
                // What may follow an integer is what the next gap begins with; anything else makes it another number.
                if matches!(text.bytes.get(at + length)?, b',' | b' ' | b'\n' | b'}' | b']') {
                    return Some((at + length, number));
                }
            }
            Value::AnyText => {
                let end = find_special(text.bytes, at);
                if text.bytes.get(end)? == &b'"' && end <= text.valid {
                    return Some((end, (end - at) as u64));
                }
            }
            _ => {}
        }
        self.skip_slowly(value, text, at)
    }

    #[inline(never)]
    fn skip_slowly(&mut self, value: Value, text: Text<'_>, at: usize) -> Option<(usize, u64)> {
        self.quirks.clear();
        let quote = usize::from(value == Value::AnyText);
        let mut cursor =
            Cursor { bytes: text.bytes, at: at - quote, valid: text.valid, quirks: &mut self.quirks };
        let read: Scalar = match value {
            Value::AnyText => cursor.string(),
            Value::AnyNumber => cursor.number(),
            Value::Any(depth) => match text.bytes.get(at)? {
                b'"' | b'-' | b'0'..=b'9' => return None,
                _ => cursor.value(u32::from(depth)),
            },
            _ => return None,
        }
        .ok()?;
        let end = cursor.at - quote;
        let is_kind = match value {
            Value::AnyText => read.is_text(),
            Value::AnyNumber => matches!(read.kind, Kind::Number | Kind::Long),
            _ => read.kind == Kind::Other,
        };
        (self.quirks.is_empty() && is_kind).then(|| (end, crate::intern::hash(text.bytes.get(at..end).unwrap_or_default())))
    }
}
