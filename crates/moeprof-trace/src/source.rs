//! Bytes from a file or any reader, inflated where they are gzip, in one buffer that is refilled in chunks.
//!
//! The window is the part of the buffer that is not consumed yet. Whoever finds it too short calls [`Source::fill`]:
//! pending bytes move to the front and more follow, so that whatever is being read comes to lie in one piece. Only a
//! single event or metadata value longer than a chunk makes the buffer grow.

use std::cell::Cell;
use std::io::{self, BufReader, Read};

use crate::error::{Failure, Position};
use crate::inflate::{self, Counted, GZIP, InflateLimits, Members, Piped, TooMuch};

/// Bytes asked for at a time: what was read stays in the cache of one core until it is parsed.
pub(crate) const CHUNK: usize = 1 << 18;

/// How the input came to its end, where not as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The compressed data ends early.
    Cut,
    /// The compressed data is not what its checksums or its format say.
    Corrupt(String),
}

impl Damage {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Cut => "the compressed data ends early",
            Self::Corrupt(why) => why,
        }
    }
}

enum Input<'a> {
    Plain(Box<dyn Read + 'a>),
    Gzip(Members<BufReader<Counted<Box<dyn Read + 'a>>>>),
    Piped(Piped),
}

/// A reader of which the first bytes were read already. They come together with what follows them, so that a decoder is
/// given the same pieces as by a reader that was not looked at.
struct Begun<R> {
    head: Vec<u8>,
    reader: R,
}

impl<R: Read> Read for Begun<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.head.len().min(out.len());
        let (begin, rest) = out.split_at_mut(count);
        begin.copy_from_slice(self.head.get(..count).unwrap_or_default());
        let more = if rest.is_empty() { 0 } else { self.reader.read(rest)? };
        self.head.drain(..count);
        Ok(count + more)
    }
}

/// The refillable window over the uncompressed text.
pub(crate) struct Source<'a> {
    input: Input<'a>,
    buffer: Vec<u8>,
    /// First byte of the window in the buffer, and one past its last.
    start: usize,
    end: usize,
    /// The buffer up to here is valid UTF-8 (counted from `start` at the last fill).
    valid: usize,
    /// Bytes and line feeds before the buffer.
    offset: u64,
    lines: u64,
    /// A place in the buffer and the line feeds before it in the buffer, from where the next count goes on.
    mark: Cell<(usize, u64)>,
    chunk: usize,
    ended: bool,
    damage: Option<Damage>,
}

impl<'a> Source<'a> {
    /// Looks at the first two bytes to tell gzip from plain text.
    pub(crate) fn new(mut reader: Box<dyn Read + 'a>, chunk: usize, limits: InflateLimits) -> io::Result<Self> {
        let mut magic = Vec::with_capacity(GZIP.len());
        reader.by_ref().take(GZIP.len() as u64).read_to_end(&mut magic)?;
        let zipped = magic == GZIP;
        let whole: Box<dyn Read + 'a> = Box::new(Begun { head: magic, reader });
        let input = if zipped { Input::Gzip(inflate::members(whole, limits)) } else { Input::Plain(whole) };
        Ok(Self::of(input, chunk, 0))
    }

    /// Plain text that begins at an offset of its file; lines count from 1 nevertheless.
    pub(crate) fn part(reader: Box<dyn Read + 'a>, chunk: usize, offset: u64) -> Self {
        Self::of(Input::Plain(reader), chunk, offset)
    }

    /// Text that another thread inflates.
    pub(crate) fn piped(piped: Piped, chunk: usize) -> Self {
        Self::of(Input::Piped(piped), chunk, 0)
    }

    fn of(input: Input<'a>, chunk: usize, offset: u64) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            valid: 0,
            offset,
            lines: 0,
            mark: Cell::new((0, 0)),
            chunk: chunk.max(1),
            ended: false,
            damage: None,
        }
    }

    pub(crate) fn window(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns how much of the window is known to be valid UTF-8.
    pub(crate) fn valid(&self) -> usize {
        self.valid.saturating_sub(self.start)
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Returns the place of a byte of the window.
    pub(crate) fn position(&self, at: usize) -> Position {
        let index = (self.start + at).min(self.end);
        Position { byte: self.offset + index as u64, line: self.lines + self.lines_before(index) + 1 }
    }

    /// Counts the line feeds in the buffer before a place, on from where the last count ended.
    fn lines_before(&self, index: usize) -> u64 {
        let (known, lines) = self.mark.get();
        let (from, lines) = if known <= index { (known, lines) } else { (0, 0) };
        let lines = lines + line_feeds(self.buffer.get(from..index).unwrap_or_default());
        self.mark.set((index, lines));
        lines
    }

    pub(crate) fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Tells whether zero bytes followed the last gzip member.
    pub(crate) fn zeros_after_members(&self) -> bool {
        match &self.input {
            Input::Plain(_) => false,
            Input::Gzip(members) => members.zeros(),
            Input::Piped(piped) => piped.zeros(),
        }
    }

    /// Returns how many bytes of text were read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.offset + self.end as u64
    }

    /// Adds at least one byte to the window; false at the end of the input.
    pub(crate) fn fill(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        self.compact();
        // Half as much again, so that a value of any length is looked at a bounded number of times.
        let wanted = self.end + self.chunk.max(self.end / 2);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let before = self.end;
        while self.end < wanted && !self.ended {
            let Some(free) = self.buffer.get_mut(self.end..wanted) else { break };
            let result = match &mut self.input {
                Input::Plain(reader) => reader.read(free),
                Input::Gzip(members) => members.read(free),
                Input::Piped(piped) => piped.read(free),
            };
            match result {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.damage = Some(self.damage_of(error)?);
                    self.ended = true;
                }
            }
        }
        self.validate();
        Ok(self.end > before)
    }

    fn damage_of(&self, error: io::Error) -> Result<Damage, Failure> {
        let zipped = !matches!(self.input, Input::Plain(_));
        if let Some(TooMuch(text)) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Err(Failure::Malformed(self.position(self.end - self.start), text.clone()));
        }
        match error.kind() {
            _ if !zipped || error.raw_os_error().is_some() => Err(Failure::Io(error)),
            io::ErrorKind::UnexpectedEof => Ok(Damage::Cut),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                Ok(Damage::Corrupt(format!("corrupt gzip data: {error}")))
            }
            _ => Err(Failure::Io(error)),
        }
    }

    fn compact(&mut self) {
        self.lines += self.lines_before(self.start);
        self.mark.set((0, 0));
        self.offset += self.start as u64;
        self.buffer.copy_within(self.start..self.end, 0);
        self.valid = self.valid.saturating_sub(self.start);
        self.end -= self.start;
        self.start = 0;
    }

    fn validate(&mut self) {
        let fresh = self.buffer.get(self.valid..self.end).unwrap_or_default();
        self.valid = if simdutf8::basic::from_utf8(fresh).is_ok() {
            self.end
        } else {
            self.valid + simdutf8::compat::from_utf8(fresh).map_or_else(|error| error.valid_up_to(), str::len)
        };
    }
}

/// Counts line feeds, in lanes that the compiler makes vectors of: a byte of each block has one to itself.
fn line_feeds(bytes: &[u8]) -> u64 {
    const LANES: usize = 64;
    let mut sum = 0;
    // No lane counts further than it can.
    for part in bytes.chunks(LANES * usize::from(u8::MAX)) {
        let (blocks, rest) = part.as_chunks::<LANES>();
        let mut lanes = [0u8; LANES];
        for block in blocks {
            for (lane, &byte) in lanes.iter_mut().zip(block) {
                *lane = lane.wrapping_add(u8::from(byte == b'\n'));
            }
        }
        sum += lanes.iter().map(|&lane| u64::from(lane)).sum::<u64>();
        sum += rest.iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_feeds_are_counted_whatever_the_length() {
        for length in [0, 1, 63, 64, 65, 64 * 255 - 1, 64 * 255, 64 * 255 + 1, 100_000] {
            for every in [1, 2, 7, 64, 1000] {
                let text: Vec<u8> = (0..length).map(|index| if index % every == 0 { b'\n' } else { 11 }).collect();
                assert_eq!(line_feeds(&text), memchr::memchr_iter(b'\n', &text).count() as u64);
            }
        }
    }
}
