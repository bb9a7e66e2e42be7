//! Tracks: process and thread of an event, by one code.

use super::Tables;
use crate::event::Event;
use crate::fields::Field;
use crate::intern::Interner;
use crate::json::{Cause, Kind};
use crate::spellings::Context;

/// A track whose process and thread are natural numbers: most are, and few take turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecentTrack {
    process: u64,
    thread: u64,
    code: u32,
}

pub(super) const RECENT_TRACKS: usize = 16;

impl Tables {
    /// Looks a track up; where it is not among the recent ones, `track_key` is its key afterwards.
    #[inline]
    pub(super) fn find_track(&mut self, event: &Event, context: &Context<'_>) -> Option<u32> {
        let numbers = natural(event, Field::Process).zip(natural(event, Field::Thread));
        let place = numbers.map(|(process, thread)| recent_place(process, thread));
        let place = place.and_then(|place| self.recent_tracks.get_mut(place));
        if let (Some(Some(recent)), Some((process, thread))) = (&place, numbers)
            && recent.process == process
            && recent.thread == thread
        {
            return Some(recent.code);
        }
        track_key(event, context, &mut self.track_key);
        let code = self.tracks.get(&self.track_key)?;
        if let (Some(place), Some((process, thread))) = (place, numbers) {
            *place = Some(RecentTrack { process, thread, code });
        }
        Some(code)
    }

    #[cold]
    pub(super) fn add_track(&mut self) -> Result<u32, Cause> {
        self.track_bytes += self.track_key.len();
        self.tracks.insert(&self.track_key).ok_or(Cause::TooMany("tracks"))
    }
}

/// Finds the track of two natural numbers, first among the recent ones.
#[inline(always)]
pub(super) fn known_track(
    recent: &mut [Option<RecentTrack>; RECENT_TRACKS],
    tracks: &Interner,
    key: &mut Vec<u8>,
    process: u64,
    thread: u64,
) -> Option<u32> {
    let place = recent.get_mut(recent_place(process, thread))?;
    if let Some(recent) = place
        && recent.process == process
        && recent.thread == thread
    {
        return Some(recent.code);
    }
    let code = find_track(tracks, key, process, thread)?;
    *place = Some(RecentTrack { process, thread, code });
    Some(code)
}

#[inline(never)]
fn find_track(tracks: &Interner, key: &mut Vec<u8>, process: u64, thread: u64) -> Option<u32> {
    let process_text = process.to_string();
    key.clear();
    key.extend_from_slice(&(process_text.len() as u64).to_le_bytes());
    key.extend_from_slice(process_text.as_bytes());
    key.extend_from_slice(thread.to_string().as_bytes());
    tracks.get(key)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the remainder is small")]
fn recent_place(process: u64, thread: u64) -> usize {
    (process.wrapping_add(thread.wrapping_mul(7)) % RECENT_TRACKS as u64) as usize
}

/// Returns a number whose digits are its only spelling.
#[inline]
fn natural(event: &Event, field: Field) -> Option<u64> {
    event
        .get(field)
        .filter(|value| value.kind == Kind::Number && value.places == 0 && !value.negative)
        .map(|v| v.mantissa)
}

/// Writes process and thread as one string of bytes: the length of the former first.
#[inline]
fn track_key(event: &Event, context: &Context<'_>, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&[0; 8]);
    for field in [Field::Process, Field::Thread] {
        if let Some(value) = event.get(field) {
            key.extend_from_slice(&context.bytes(value));
        }
        if field == Field::Process {
            let length = (key.len() - 8) as u64;
            if let Some(place) = key.first_chunk_mut::<8>() {
                *place = length.to_le_bytes();
            }
        }
    }
}

pub(super) fn split_track(key: &[u8]) -> (&[u8], &[u8]) {
    let (length, texts) = key.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or_default();
    texts.split_at_checked(length).unwrap_or_default()
}
