//! Rows of events that were predicted: their values are known to be of the right kind.

use super::Tables;
use super::tracks::known_track;
use crate::columns::{CollectiveArgs, Row, shape_of};
use crate::fields::{COLLECTIVE_IDS, COLLECTIVE_NUMBERS, COLLECTIVE_TEXTS, FIELDS, Field};

/// What all events of a kind have in common, where they are predicted: the codes of their phase and category among the
/// spellings, and which fields have values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    phase: u8,
    pub(crate) category: u32,
    present: u64,
    /// Of phase M: kept whatever its time.
    is_label: bool,
}

impl Fixed {
    #[inline]
    fn has(&self, field: Field) -> bool {
        self.present & field.bit() != 0
    }
}

/// What every event that is predicted has.
const NEEDED: u64 = Field::Phase.bit()
    | Field::Category.bit()
    | Field::Name.bit()
    | Field::Process.bit()
    | Field::Thread.bit()
    | Field::Start.bit();

/// The values of an event that was predicted: numbers as they are, times in ns.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) numbers: [u64; FIELDS + 1],
    /// The code of the name, or where it stands.
    pub(crate) name: Option<u32>,
    pub(crate) name_at: usize,
    pub(crate) name_end: usize,
}

impl Known {
    #[inline]
    fn get(&self, field: Field) -> u64 {
        self.numbers[field as usize]
    }

    /// The code of a text of the args of collectives.
    fn text(&self, fixed: &Fixed, field: Field) -> Option<u32> {
        u32::try_from(self.get(field)).ok().filter(|_| fixed.has(field))
    }
}

impl Tables {
    /// Looks up what events of a kind have in common; None where they are not to be predicted.
    pub(crate) fn fixed(&self, phase: &[u8], category: &[u8], present: u64) -> Option<Fixed> {
        let category = self.category_spellings.texts.get(category)?;
        let is_skipped = self.categories.get(category as usize)?.skip;
        // The phase of an event that is skipped has no code, and needs none.
        let code = self.phases.texts.get(phase).or(is_skipped.then_some(0))?;
        let fixed = Fixed { phase: u8::try_from(code).ok()?, category, present, is_label: phase == b"M" };
        (present & NEEDED == NEEDED).then_some(fixed)
    }

    /// Stores an event of which everything is known; false, and nothing done, where anything is out of the ordinary.
    #[inline(always)]
    pub(crate) fn push_known(&mut self, fixed: &Fixed, known: &Known, text: &[u8]) -> bool {
        let Some(category) = self.categories.get_mut(fixed.category as usize) else { return false };
        if category.skip {
            category.skipped += 1;
            return true;
        }
        let number = |field| if fixed.has(field) { Some(known.get(field)) } else { None };
        if let Some((from, until)) = self.range
            && !fixed.is_label
        {
            let (start, duration) = (known.get(Field::Start), number(Field::Duration).unwrap_or(0));
            let (start, duration) = (start.cast_signed(), duration.cast_signed());
            if start >= until || start.saturating_add(duration) < from {
                category.skipped += 1;
                return true;
            }
        }
        let Some(code) = category.code else { return false };
        let Ok(row) = u32::try_from(self.given.rows + self.events.len()) else { return false };
        let Some(track) = known_track(
            &mut self.recent_tracks,
            &self.tracks,
            &mut self.track_key,
            known.get(Field::Process),
            known.get(Field::Thread),
        ) else {
            return false;
        };
        let is_collective = fixed.has(Field::Collective);
        if is_collective && !collective_fits(&self.collective, fixed, known) {
            return false;
        }
        let name = match known.name {
            Some(code) => code,
            None => match self.names.texts.insert(text.get(known.name_at..known.name_end).unwrap_or_default()) {
                Some(code) => code,
                None => return false,
            },
        };
        category.kept += 1;
        self.events.push(&Row {
            phase: fixed.phase,
            category: code,
            name,
            track,
            start: number(Field::Start).map(u64::cast_signed),
            duration: number(Field::Duration).map(u64::cast_signed),
            correlation: number(Field::Correlation),
            external_id: number(Field::ExternalId),
        });
        if fixed.present & (Field::Device.bit() | Field::Stream.bit() | Field::Bytes.bit()) != 0 {
            let bytes = number(Field::Bytes).map(u64::cast_signed);
            self.device.push(row, &shape_of(&known.numbers, fixed.present), bytes, number(Field::GraphNodeId));
        }
        if is_collective {
            self.push_known_collective(fixed, known, row);
        }
        true
    }

    /// Returns the code of a text of the args of collectives.
    #[inline(never)]
    pub(crate) fn collective_text(&self, field: Field, text: &[u8]) -> Option<u32> {
        let column = COLLECTIVE_TEXTS.iter().position(|&member| member == field)?;
        self.collective.texts.get(column)?.code(text)
    }

    #[inline(never)]
    fn push_known_collective(&mut self, fixed: &Fixed, known: &Known, row: u32) {
        let number = |field| if fixed.has(field) { Some(known.get(field)) } else { None };
        self.collective.row.push(row);
        for (column, field) in self.collective.texts.iter_mut().zip(COLLECTIVE_TEXTS) {
            column.push_code(known.text(fixed, field));
        }
        for (column, field) in self.collective.numbers.iter_mut().zip(COLLECTIVE_NUMBERS) {
            column.push(number(field).map(u64::cast_signed));
        }
        for (column, field) in self.collective.ids.iter_mut().zip(COLLECTIVE_IDS) {
            column.push(number(field));
        }
    }
}

/// Tells whether the texts of an event fit into their columns.
#[inline(never)]
fn collective_fits(columns: &CollectiveArgs, fixed: &Fixed, known: &Known) -> bool {
    columns.texts.iter().zip(COLLECTIVE_TEXTS).all(|(column, field)| {
        let code = known.text(fixed, field);
        code.is_none_or(|code| column.has_room(column.size(code)))
    })
}
