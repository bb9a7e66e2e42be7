//! What was accepted although it is not as it should be: counted by kind, with the first place and an example.

use crate::error::Position;

/// Longest example, in characters.
const EXAMPLE_CHARACTERS: usize = 120;

/// One kind of irregularity and how often it was met.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// Stable identifier, see `docs/native.md`.
    pub slug: &'static str,
    /// How often.
    pub count: u64,
    /// Where first.
    pub first: Position,
    /// What was found there, or why it was dropped.
    pub example: String,
}

/// The kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slug {
    InvalidUtf8,
    LoneSurrogate,
    ControlCharacter,
    NonFiniteNumber,
    TrailingComma,
    EmptyEvent,
    MissingEndMark,
    BadId,
    SubNanosecond,
    MissingTime,
    TrailingData,
    DroppedEvent,
    Truncated,
}

impl Slug {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "invalid-utf8",
            Self::LoneSurrogate => "lone-surrogate",
            Self::ControlCharacter => "control-character",
            Self::NonFiniteNumber => "non-finite-number",
            Self::TrailingComma => "trailing-comma",
            Self::EmptyEvent => "empty-event",
            Self::MissingEndMark => "missing-end-mark",
            Self::BadId => "bad-id",
            Self::SubNanosecond => "sub-nanosecond",
            Self::MissingTime => "missing-time",
            Self::TrailingData => "trailing-data",
            Self::DroppedEvent => "dropped-event",
            Self::Truncated => "truncated",
        }
    }
}

/// Notices in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Notices(Vec<Notice>);

impl Notices {
    /// Counts one; place and example are only worked out for the first of its kind.
    pub(crate) fn add(&mut self, slug: Slug, first: impl FnOnce() -> (Position, String)) {
        if let Some(known) = self.0.iter_mut().find(|notice| notice.slug == slug.text()) {
            known.count += 1;
            return;
        }
        let (first, example) = first();
        let example = example.chars().take(EXAMPLE_CHARACTERS).collect();
        self.0.push(Notice { slug: slug.text(), count: 1, first, example });
    }

    /// Adds the notices of the text that follows, of which `lines` lines lie before.
    pub(crate) fn append(&mut self, other: Self, lines: u64) {
        for mut notice in other.0 {
            if let Some(known) = self.0.iter_mut().find(|known| known.slug == notice.slug) {
                known.count += notice.count;
            } else {
                notice.first.line += lines;
                self.0.push(notice);
            }
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Notice> {
        self.0
    }
}
