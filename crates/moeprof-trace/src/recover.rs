//! Where to go on after a malformed event.

/// What was found behind a malformed event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// An event seems to begin here.
    Event(usize),
    /// The bracket that closes the events.
    End(usize),
    /// Nothing up to here, where more text may decide.
    Unknown(usize),
}

/// Keys that an event may begin with.
const KEYS: [&[u8]; 9] =
    [b"\"ph\"", b"\"cat\"", b"\"name\"", b"\"args\"", b"\"ts\"", b"\"pid\"", b"\"tid\"", b"\"id\"", b"\"dur\""];

/// A search for the next event or the end of the events, which may go over several windows.
///
/// An event's brace follows a comma (args' brace follows a colon) and precedes one of its keys. The end follows a brace
/// and precedes a top-level comma, the document's brace or the end of the text. White space never matters.
#[derive(Debug)]
pub(crate) struct Scan {
    at: usize,
    /// The comma that is the fault does not count, nor does the brace of the malformed event.
    fault: Option<usize>,
    event: Option<usize>,
    /// The last two bytes that are no white space: the brace before an end must not lie before the fault.
    previous: u8,
    earlier: u8,
    /// The document is a bare array, which nothing but white space follows.
    bare: bool,
}

impl Scan {
    pub(crate) fn new(window: &[u8], event: Option<usize>, fault: usize, bare: bool) -> Self {
        let before = window.get(..fault).unwrap_or_default();
        let comma = before.iter().rev().find(|&&byte| !is_space(byte)) == Some(&b',');
        let previous = if comma { b',' } else { 0 };
        Self { at: fault, fault: Some(fault), event, previous, earlier: 0, bare }
    }

    /// Looks through the window; `last` says that no more text will come.
    pub(crate) fn resume(&mut self, window: &[u8], last: bool) -> Resume {
        while let Some(&byte) = window.get(self.at) {
            let at = self.at;
            let behind = window.get(at + 1..).unwrap_or_default();
            let found = match byte {
                b'{' if self.previous == b',' && self.event.is_none_or(|event| at > event) => {
                    key_follows(behind).or_else(|| last.then_some(false)).map(|is| (is, Resume::Event(at)))
                }
                b']' if self.previous == b'}' || (self.previous == b',' && self.earlier == b'}') => {
                    self.end_follows(behind, last).map(|is| (is, Resume::End(at)))
                }
                _ => Some((false, Resume::Unknown(at))),
            };
            match found {
                None => return Resume::Unknown(at),
                Some((true, place)) => return place,
                Some(_) => {}
            }
            if !is_space(byte) {
                self.earlier = self.previous;
                self.previous = if self.fault == Some(at) && byte == b',' { 0 } else { byte };
            }
            self.at += 1;
        }
        Resume::Unknown(self.at)
    }

    /// Tells that so many bytes of the window are gone.
    pub(crate) fn consumed(&mut self, count: usize) {
        self.at -= count;
        self.fault = self.fault.and_then(|fault| fault.checked_sub(count));
        self.event = self.event.and_then(|event| event.checked_sub(count));
    }

    /// Tells whether a bracket is followed by what follows the events; None where more text must be seen.
    fn end_follows(&self, behind: &[u8], last: bool) -> Option<bool> {
        match behind.iter().find(|&&byte| !is_space(byte)) {
            None => last.then_some(true),
            Some(b'}' | b',') => Some(!self.bare),
            Some(_) => Some(false),
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let spaces = bytes.iter().take_while(|&&byte| is_space(byte)).count();
    bytes.get(spaces..).unwrap_or_default()
}

/// Tells whether an event's first key and its colon come next; None where more text must be seen.
fn key_follows(behind: &[u8]) -> Option<bool> {
    let behind = trim_start(behind);
    if KEYS.iter().any(|key| key.starts_with(behind)) {
        return None;
    }
    let Some(rest) = KEYS.iter().find_map(|key| behind.strip_prefix(*key)) else { return Some(false) };
    trim_start(rest).first().map(|&byte| byte == b':')
}
