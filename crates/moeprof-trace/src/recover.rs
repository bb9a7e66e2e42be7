//! Where to go on after a malformed event.

use memchr::memchr2_iter;

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
/// White space and a key fit into this; fewer bytes behind a brace cannot decide.
const LOOK_AHEAD: usize = 256;

/// Finds the next event, or the end of the events, after the first byte of the malformed one.
///
/// An event's brace follows a comma (args' brace follows a colon) and precedes one of its keys. `bare` is the array
/// form, which nothing but white space follows. `last` says that no more text will come.
pub(crate) fn resume(window: &[u8], from: usize, bare: bool, last: bool) -> Resume {
    let tail = window.get(from..).unwrap_or_default();
    for at in memchr2_iter(b'{', b']', tail).map(|at| at + from) {
        if !last && window.len() - at < LOOK_AHEAD {
            return Resume::Unknown(at);
        }
        let behind = window.get(at + 1..).unwrap_or_default().trim_ascii_start();
        let before = window.get(from..at).unwrap_or_default().trim_ascii_end();
        if window.get(at) == Some(&b'{') {
            let key = KEYS.iter().find_map(|key| behind.strip_prefix(*key));
            let is_key = key.is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b':'));
            if is_key && before.last() == Some(&b',') {
                return Resume::Event(at);
            }
        } else if is_end(before, behind, bare, last) {
            return Resume::End(at);
        }
    }
    Resume::Unknown(window.len())
}

/// Tells whether a closing bracket ends the events: an event ends before it, and a top-level key or nothing follows.
fn is_end(before: &[u8], behind: &[u8], bare: bool, last: bool) -> bool {
    let before = before.strip_suffix(b",").unwrap_or(before).trim_ascii_end();
    if before.last() != Some(&b'}') {
        return false;
    }
    match behind.first() {
        None => last,
        Some(b'}') => !bare,
        Some(b',') => !bare && behind.get(1..).unwrap_or_default().trim_ascii_start().first() == Some(&b'"'),
        Some(_) => false,
    }
}
