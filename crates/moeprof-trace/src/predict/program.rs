//! The way through one kind of event, as steps: a gap and what is read behind it.
//!
//! A gap is the text between two values; the quotes of strings belong to it, and so do phase and category, which make the
//! kind of an event. The tokens of the gaps decide what the values between them are. So an event with the same gaps
//! means what the one did from which they were learned, provided that each value is of the kind that its step reads.

use super::literal::Literal;
use crate::event::{Event, Reads};
use crate::fields::{COLLECTIVE_TEXTS, EVENT_LEVEL, Field};
use crate::json::{Kind, Scalar};
use crate::tables::{Fixed, Tables};

const MOST_STEPS: usize = 128;
const LONGEST_GAP: usize = 512;
/// A value that changed so often, where the name before it was the same, is not expected to stay.
const CHANGES: u8 = 4;

/// How the value behind a gap is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Name,
    /// A number of us with at most three digits behind the point.
    Time,
    /// An integer without a sign.
    Number,
    /// A text of the args of collectives, by its code.
    Text,
    /// A number, a string, or anything inside so many brackets, that nobody asks for.
    AnyNumber,
    AnyText,
    Any(u8),
    /// The end of the event.
    End,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) gap: Literal,
    pub(crate) value: Value,
    pub(crate) field: Field,
    /// How often the value was not the one before.
    pub(crate) changes: u8,
}

impl Step {
    /// Tells whether the value is another one in each event.
    pub(crate) fn varies(&self) -> bool {
        self.changes >= CHANGES
    }
}

/// Steps of which only the last one's value is expected to vary.
#[derive(Debug)]
pub(crate) struct Group {
    /// The steps whose values are expected to stay, and the last one.
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) has_run: bool,
    /// The gap and the value of the last step.
    pub(crate) gap: Literal,
    pub(crate) value: Value,
    pub(crate) field: Field,
    /// No other group has this number.
    pub(crate) number: u32,
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    pub(crate) groups: Vec<Group>,
    pub(crate) fixed: Fixed,
}

/// The text of the steps of an event, before they are compared with known ones.
pub(crate) struct Draft {
    steps: Vec<(Vec<u8>, Value, Field)>,
    fixed: Fixed,
}

impl Draft {
    /// Takes the steps of an event that was read and stored; None where such an event cannot be predicted.
    pub(crate) fn new(event: &Event, window: &[u8], tables: &Tables) -> Option<Self> {
        if !event.regular || event.steps.len() > MOST_STEPS {
            return None;
        }
        let (mut steps, mut present) = (Vec::new(), 0u64);
        let (mut phase, mut category) = (None, None);
        let mut begin = event.start + 1;
        for step in &event.steps {
            let (value, field) = value_of(step.reads, &step.value)?;
            let clear = if step.args { !EVENT_LEVEL } else { 0 } | cleared(step.reads);
            present = present & !clear | field.bit();
            if let Value::Text = value
                && matches!(field, Field::Phase | Field::Category)
            {
                let word = window.get(step.value.start..step.value.end)?;
                *(if field == Field::Phase { &mut phase } else { &mut category }) = Some(word);
                continue;
            }
            let is_text = matches!(value, Value::Text | Value::Name | Value::AnyText);
            let gap = window.get(begin..step.at + usize::from(is_text))?;
            if gap.len() > LONGEST_GAP {
                return None;
            }
            steps.push((gap.to_vec(), value, field));
            // The quote that ends a string belongs to the next gap.
            begin = step.value.end;
        }
        let fixed = tables.fixed(phase?, category?, present)?;
        Some(Self { steps, fixed })
    }

    pub(crate) fn is(&self, program: &Program) -> bool {
        self.fixed == program.fixed
            && self.steps.len() == program.steps.len()
            && self
                .steps
                .iter()
                .zip(&program.steps)
                .all(|((gap, value, field), step)| step.gap.is(gap) && *value == step.value && *field == step.field)
    }

    pub(crate) fn into_program(self, numbers: &mut u32) -> Program {
        let steps = self.steps.into_iter().map(|(gap, value, field)| Step {
            gap: Literal::new(&gap),
            value,
            field,
            changes: if stays(value, field) { 0 } else { CHANGES },
        });
        let mut program = Program { steps: steps.collect(), groups: Vec::new(), fixed: self.fixed };
        program.group(numbers);
        program
    }
}

impl Program {
    /// Joins the steps whose values stay to the one behind them that does not.
    pub(crate) fn group(&mut self, numbers: &mut u32) {
        self.groups.clear();
        let mut first = 0;
        for (last, step) in self.steps.iter().enumerate().filter(|(_, step)| step.varies()) {
            *numbers = numbers.wrapping_add(1);
            self.groups.push(Group {
                first,
                last,
                has_run: first < last,
                gap: step.gap.clone(),
                value: step.value,
                field: step.field,
                number: *numbers,
            });
            first = last + 1;
        }
    }
}

/// Tells whether a value may be the same in the next event of the kind. Names, times and ids are not.
fn stays(value: Value, field: Field) -> bool {
    !matches!((value, field), (Value::Name | Value::Time | Value::End, _) | (_, Field::Correlation | Field::ExternalId))
}

/// The fields whose earlier values no longer count.
fn cleared(reads: Reads) -> u64 {
    match reads {
        Reads::First(field) => {
            field.triple().map_or(0, |fields| fields.iter().fold(0, |bits, field| bits | field.bit()))
        }
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
    let is_time = value.kind == Kind::Number && !value.negative && value.places <= 3;
    let value = match field {
        Field::Ignored => match value.kind {
            Kind::Plain | Kind::Coded => Value::AnyText,
            Kind::Number | Kind::Long => Value::AnyNumber,
            Kind::Other | Kind::NonFinite => Value::Any(depth),
        },
        Field::Phase | Field::Category if value.kind == Kind::Plain => Value::Text,
        Field::Name if value.kind == Kind::Plain => Value::Name,
        Field::Start | Field::Duration if is_time => Value::Time,
        Field::Process | Field::Thread if is_natural => Value::Number,
        Field::Args | Field::Start | Field::Duration => return None,
        _ if COLLECTIVE_TEXTS.contains(&field) && value.kind == Kind::Plain => Value::Text,
        _ if field.is_plain_number() && is_natural => Value::Number,
        _ => return None,
    };
    Some((value, field))
}
