//! gzip: all members of a file one after the other, within limits, and on a thread of its own where that pays.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use flate2::bufread::GzDecoder;

pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];
const COMPRESSED_CHUNK: usize = 1 << 16;
/// Bytes that the decoder may give at a time; few enough that they stay in the nearest cache until they are copied.
const ROOM: usize = 1 << 14;
/// Bytes of text that one thread hands to the other at a time, and how many such blocks may wait.
const BLOCK: usize = 1 << 18;
const WAITING: usize = 4;

/// How much compressed data may inflate to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InflateLimits {
    pub(crate) max_bytes: u64,
    /// Beyond `ratio_from` bytes of text.
    pub(crate) max_ratio: u64,
    pub(crate) ratio_from: u64,
}

impl Default for InflateLimits {
    fn default() -> Self {
        Self { max_bytes: 64 << 30, max_ratio: 400, ratio_from: 1 << 30 }
    }
}

/// Compressed data inflates to more than it may.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TooMuch(pub(crate) String);

/// A reader that counts what was read from it.
pub(crate) struct Counted<R> {
    reader: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

/// Returns the text of compressed data.
pub(crate) fn members<R: Read>(reader: R, limits: InflateLimits) -> Members<BufReader<Counted<R>>> {
    let taken = Rc::new(Cell::new(0));
    let counted = Counted { reader, count: Rc::clone(&taken) };
    let state = State::Between(BufReader::with_capacity(COMPRESSED_CHUNK, counted));
    Members { state, text: vec![0; ROOM].into(), at: 0, end: 0, zeros: false, taken, given: 0, limits }
}

/// All members of a gzip file, one after the other.
///
/// The decoder always gets the same room, since of data that is damaged it gives what it had in a call back in part: how much
/// must not depend on who reads.
pub(crate) struct Members<B> {
    state: State<B>,
    text: Box<[u8]>,
    /// What of `text` is still to be given.
    at: usize,
    end: usize,
    zeros: bool,
    taken: Rc<Cell<u64>>,
    given: u64,
    limits: InflateLimits,
}

enum State<B> {
    Member(Box<GzDecoder<B>>),
    Between(B),
    Done,
}

impl<B: BufRead> Members<B> {
    /// Tells whether zero bytes followed the last member.
    pub(crate) fn zeros(&self) -> bool {
        self.zeros
    }

    fn check(&mut self, count: usize) -> io::Result<usize> {
        self.given += count as u64;
        let InflateLimits { max_bytes, max_ratio, ratio_from } = self.limits;
        let taken = self.taken.get().max(1);
        let text = if self.given > max_bytes {
            format!("the gzip data inflates to more than {max_bytes} bytes")
        } else if self.given > ratio_from && self.given / taken > max_ratio {
            format!("the gzip data inflates to more than {max_ratio} times its size, which no trace does")
        } else {
            return Ok(count);
        };
        Err(io::Error::other(TooMuch(text)))
    }

    /// Decodes some bytes of text; 0 at the end of the last member.
    fn decode(&mut self) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Ok(0),
                State::Between(reader) => self.next_member(reader)?,
                State::Member(mut decoder) => match decoder.read(&mut self.text)? {
                    0 => self.state = State::Between(decoder.into_inner()),
                    count => {
                        self.state = State::Member(decoder);
                        return self.check(count);
                    }
                },
            }
        }
    }

    fn next_member(&mut self, mut reader: B) -> io::Result<()> {
        loop {
            let bytes = reader.fill_buf()?;
            let count = bytes.len();
            match bytes.first() {
                None => return Ok(()),
                Some(0) => {
                    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
                    self.zeros = true;
                    reader.consume(zeros);
                    if zeros < count {
                        let text = "something that is not gzip follows the compressed data";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                    }
                }
                Some(&byte) if byte == GZIP[0] && !self.zeros => {
                    self.state = State::Member(Box::new(GzDecoder::new(reader)));
                    return Ok(());
                }
                Some(_) => {
                    let text = "something that is not gzip follows the compressed data";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
    }
}

impl<B: BufRead> Read for Members<B> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
            self.end = self.decode()?;
        }
        let left = self.text.get(self.at..self.end).unwrap_or_default();
        let count = left.len().min(out.len());
        if let (Some(place), Some(text)) = (out.get_mut(..count), left.get(..count)) {
            place.copy_from_slice(text);
        }
        self.at += count;
        Ok(count)
    }
}

/// What one thread hands to the other.
pub(crate) enum Block {
    Text(Vec<u8>),
    Failed { error: io::Error, zeros: bool },
    End { zeros: bool },
}

/// The end of the pipe into which text goes. Blocks that were read come back, so that their memory serves again.
pub(crate) struct Pipe {
    sender: SyncSender<Block>,
    used: Receiver<Vec<u8>>,
}

/// Makes a pipe for [`inflate`] and [`Piped`].
pub(crate) fn pipe() -> (Pipe, Piped) {
    let (sender, receiver) = sync_channel(WAITING);
    let (returns, used) = channel();
    (Pipe { sender, used }, Piped { receiver, returns, block: Vec::new(), at: 0, zeros: false, ended: false })
}

/// Inflates compressed data into a pipe, until its end or until nobody listens any more.
pub(crate) fn inflate(reader: impl Read, limits: InflateLimits, pipe: &Pipe) {
    let mut members = members(reader, limits);
    loop {
        let mut block = pipe.used.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let (size, outcome) = fill(&mut members, &mut block);
        block.truncate(size);
        if !block.is_empty() && pipe.sender.send(Block::Text(block)).is_err() {
            return;
        }
        let last = match outcome {
            Ok(true) => continue,
            Ok(false) => Block::End { zeros: members.zeros() },
            Err(error) => Block::Failed { error, zeros: members.zeros() },
        };
        // Where nobody listens there is nobody to tell.
        let _ = pipe.sender.send(last);
        return;
    }
}

/// Fills a block: how far, and whether there is more.
fn fill(reader: &mut impl Read, block: &mut [u8]) -> (usize, io::Result<bool>) {
    let mut size = 0;
    while let Some(free) = block.get_mut(size..).filter(|free| !free.is_empty()) {
        match reader.read(free) {
            Ok(0) => return (size, Ok(false)),
            Ok(count) => size += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (size, Err(error)),
        }
    }
    (size, Ok(true))
}

/// Text that another thread inflates.
pub(crate) struct Piped {
    receiver: Receiver<Block>,
    returns: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
    zeros: bool,
    ended: bool,
}

impl Piped {
    /// Tells whether zero bytes followed the last member.
    pub(crate) fn zeros(&self) -> bool {
        self.zeros
    }
}

impl Read for Piped {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() && !self.ended {
            match self.receiver.recv() {
                Ok(Block::Text(block)) => {
                    let used = std::mem::replace(&mut self.block, block);
                    self.at = 0;
                    if used.capacity() > 0 {
                        // The other thread may have come to its end.
                        let _ = self.returns.send(used);
                    }
                }
                Ok(Block::End { zeros }) => (self.zeros, self.ended) = (zeros, true),
                Ok(Block::Failed { error, zeros }) => {
                    (self.zeros, self.ended) = (zeros, true);
                    return Err(error);
                }
                Err(_) => return Err(io::Error::other("the thread that inflates is gone")),
            }
        }
        let left = self.block.get(self.at..).unwrap_or_default();
        let count = left.len().min(out.len());
        if let (Some(place), Some(text)) = (out.get_mut(..count), left.get(..count)) {
            place.copy_from_slice(text);
        }
        self.at += count;
        Ok(count)
    }
}
