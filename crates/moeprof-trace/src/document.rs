//! The document around the events: what kind of file it is, its top-level keys, its end.

use crate::error::{Failure, Position};
use crate::event::Event;
use crate::json::{Cause, Cursor, Kind, List, Quirk, Scalar, Stop, decode};
use crate::metadata::{Metadata, copy_value};
use crate::notices::{Notices, Slug};
use crate::recover::{Resume, resume};
use crate::source::Source;
use crate::tables::{Context, Tables};

/// First bytes of formats that people mistake for traces.
const FORMATS: [(&[u8], &str); 13] = [
    (b"SQLite format 3\0", "an SQLite database (an Nsight Systems export?)"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\xff\xff\xff\xff", "an Arrow stream"),
    (b"NVIDIA Tegra Profiler Report", "an Nsight Systems report (.nsys-rep)"),
    (b"NVIDIA Nsight Systems Stream", "an Nsight Systems stream (.qdstrm)"),
    (b"\x1f\x8b", "gzip inside gzip"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"\x7fELF", "a program"),
    (b"\x89HDF", "an HDF5 file"),
];
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// Enough bytes to tell what a file is.
const PROLOGUE: usize = 64;

/// Reads one document from a source.
pub(crate) struct Reader<'a> {
    source: Source<'a>,
    recover: bool,
    skip: &'a [String],
    pub(crate) tables: Tables,
    pub(crate) notices: Notices,
    pub(crate) metadata: Metadata,
    pub(crate) partial: bool,
    quirks: Vec<Quirk>,
}

/// Where the reading of events stands between two of them.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// After the opening bracket.
    First,
    /// After an event.
    Event,
    /// After a comma, which stood at this place.
    Comma(Position),
}

/// A top-level key, its value and the comma behind it.
enum Entry {
    End,
    Metadata(String, String),
    /// The cursor is behind the opening bracket, or behind a value that is no array.
    Events {
        is_array: bool,
    },
}

/// How far the events in one window were read.
enum Pause {
    More,
    Closed,
    Bad { event: usize, at: usize, cause: Cause },
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: Source<'a>, recover: bool, skip: &'a [String]) -> Self {
        Self {
            source,
            recover,
            skip,
            tables: Tables::new(skip),
            notices: Notices::default(),
            metadata: Metadata::default(),
            partial: false,
            quirks: Vec::new(),
        }
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    /// Reads the whole document.
    pub(crate) fn read(&mut self) -> Result<(), Failure> {
        while self.source.window().len() < PROLOGUE && self.source.fill()? {}
        if self.source.window().starts_with(UTF8_MARK) {
            self.source.consume(UTF8_MARK.len());
        }
        match self.token()? {
            None => Err(self.nothing()),
            Some(b'{' | b'[') if self.source.window().get(1) == Some(&0) => Err(self.wide_text()),
            Some(b'{') => {
                self.source.consume(1);
                self.object()
            }
            Some(b'[') => {
                self.source.consume(1);
                if self.events(true)? { self.rest() } else { Ok(()) }
            }
            Some(byte) => Err(self.unknown_format(byte)),
        }
    }

    fn nothing(&self) -> Failure {
        match self.source.damage() {
            Some(damage) => self.damaged(damage.text()),
            None if self.source.bytes_read() == 0 => Failure::Empty("the file is empty".to_owned()),
            None => Failure::Empty("the file holds only white space".to_owned()),
        }
    }

    fn wide_text(&self) -> Failure {
        let text = "the text is UTF-16 or UTF-32; a trace is UTF-8";
        Failure::Malformed(self.source.position(0), text.to_owned())
    }

    fn unknown_format(&self, byte: u8) -> Failure {
        let window = self.source.window();
        if let Some((_, name)) = FORMATS.iter().find(|(magic, _)| window.starts_with(magic)) {
            return Failure::NotATrace(format!("this is {name}, not a Kineto trace in JSON"));
        }
        let wide =
            window.starts_with(b"\xff\xfe") || window.starts_with(b"\xfe\xff") || window.starts_with(b"\0\0\xfe\xff");
        let zeros = matches!(window, [0, b'{' | b'[', ..] | [0, 0, 0, b'{' | b'[', ..]);
        if wide || zeros {
            let text = "the text is UTF-16 or UTF-32; a trace is UTF-8";
            return Failure::Malformed(self.source.position(0), text.to_owned());
        }
        Failure::NotATrace(match byte {
            b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => "a single JSON value, not a trace".to_owned(),
            _ => "neither JSON nor gzip".to_owned(),
        })
    }

    fn object(&mut self) -> Result<(), Failure> {
        let mut found = false;
        loop {
            match self.whole(entry)? {
                None if found => return self.cut(),
                None => return Err(self.truncated("the file ends before its events")),
                Some(Entry::End) => break,
                Some(Entry::Metadata(key, json)) => self.metadata.set(key, json),
                Some(Entry::Events { is_array }) => {
                    if found {
                        // The last of two keys counts.
                        self.tables = Tables::new(self.skip);
                    }
                    found = is_array;
                    if is_array && !self.events(false)? {
                        return Ok(());
                    }
                    if is_array && self.whole(|cursor| List::OBJECT.after(cursor, Scalar::NONE))?.is_none() {
                        return self.cut();
                    }
                }
            }
        }
        if !found {
            return Err(Failure::NotATrace("a JSON object without traceEvents, so not a Kineto trace".to_owned()));
        }
        self.rest()
    }

    /// Reads the elements up to the closing bracket. False where the text ended first and that was accepted.
    fn events(&mut self, bare: bool) -> Result<bool, Failure> {
        let mut stage = Stage::First;
        let mut event = Event::new();
        let mut any = false;
        loop {
            let (consumed, pause) = self.events_in_window(&mut event, &mut stage, &mut any);
            match pause {
                Pause::Closed => {
                    self.source.consume(consumed);
                    return Ok(true);
                }
                Pause::More => {
                    self.source.consume(consumed);
                    if !self.source.fill()? {
                        return self.events_end(bare, any);
                    }
                }
                Pause::Bad { event: start, at, cause } => {
                    if !self.recover {
                        return Err(self.malformed(at, cause));
                    }
                    let place = self.source.position(at);
                    self.notices.add(Slug::DroppedEvent, || (place, cause.to_string()));
                    self.partial = true;
                    self.source.consume(start);
                    match self.find_next(bare)? {
                        Resume::Event(at) => self.source.consume(at),
                        Resume::End(at) => {
                            self.source.consume(at + 1);
                            return Ok(true);
                        }
                        Resume::Unknown(at) => {
                            self.source.consume(at);
                            return self.events_end(bare, any);
                        }
                    }
                    stage = Stage::First;
                }
            }
        }
    }

    fn events_in_window(&mut self, event: &mut Event, stage: &mut Stage, any: &mut bool) -> (usize, Pause) {
        let window = self.source.window();
        let source = &self.source;
        let place = |at| source.position(at);
        let context = Context { window, place: &place };
        let mut cursor = Cursor { bytes: window, at: 0, valid: source.valid(), quirks: &mut self.quirks };
        let mut done = 0;
        let pause = loop {
            let Ok(byte) = cursor.token() else { break Pause::More };
            match (*stage, byte) {
                (_, b']') => {
                    if let Stage::Comma(comma) = *stage {
                        self.notices.add(Slug::TrailingComma, || (comma, ",".to_owned()));
                    }
                    done = cursor.at + 1;
                    break Pause::Closed;
                }
                (Stage::Event, b',') => {
                    let at = cursor.at;
                    cursor.at += 1;
                    // The place is only wanted for a comma with nothing behind it.
                    match cursor.token() {
                        Ok(b']') => *stage = Stage::Comma(source.position(at)),
                        Ok(_) => *stage = Stage::First,
                        Err(_) => break Pause::More,
                    }
                    done = cursor.at;
                }
                (Stage::Event, _) => {
                    let cause = if byte == b'{' { Cause::MissingComma } else { Cause::ExpectedCommaOrEnd };
                    break Pause::Bad { event: cursor.at, at: cursor.at, cause };
                }
                _ => {
                    done = cursor.at;
                    match event.read(&mut cursor) {
                        Ok(()) => {}
                        Err(Stop::More) => {
                            cursor.quirks.clear();
                            break Pause::More;
                        }
                        Err(Stop::Bad(at, cause)) => {
                            cursor.quirks.clear();
                            break Pause::Bad { event: done, at, cause };
                        }
                    }
                    if !cursor.quirks.is_empty() {
                        record(cursor.quirks, &context, &mut self.notices);
                    }
                    if !event.empty
                        && let Err(cause) = self.tables.push(event, &context, &mut self.notices)
                    {
                        break Pause::Bad { event: done, at: event.start, cause };
                    }
                    *any = true;
                    done = event.end;
                    *stage = Stage::Event;
                }
            }
        };
        (done, pause)
    }

    /// Looks for the next event behind the first byte of the window.
    fn find_next(&mut self, bare: bool) -> Result<Resume, Failure> {
        const CONTEXT: usize = 512;
        let mut last = false;
        loop {
            match resume(self.source.window(), 1, bare, last) {
                Resume::Unknown(at) if !last => {
                    // What precedes a brace decides, so a little of it stays.
                    self.source.consume(at.saturating_sub(CONTEXT));
                    last = !self.source.fill()?;
                }
                found => return Ok(found),
            }
        }
    }

    /// The text ended among the events.
    fn events_end(&mut self, bare: bool, any: bool) -> Result<bool, Failure> {
        let left = self.source.window().trim_ascii();
        let between = left.is_empty() || left == b",";
        if bare && any && between && self.source.damage().is_none() {
            let place = self.end();
            self.notices.add(Slug::MissingEndMark, || (place, "the array is not closed".to_owned()));
            return Ok(false);
        }
        let inside = if between { "the file ends before its events do" } else { "the file ends inside an event" };
        if !self.recover {
            return Err(self.truncated(inside));
        }
        self.note_cut(inside);
        Ok(false)
    }

    fn cut(&mut self) -> Result<(), Failure> {
        const INSIDE: &str = "the file ends inside the document";
        if !self.recover {
            return Err(self.truncated(INSIDE));
        }
        self.note_cut(INSIDE);
        Ok(())
    }

    fn note_cut(&mut self, what: &str) {
        let place = self.end();
        let text = self.source.damage().map_or(what, |damage| damage.text()).to_owned();
        self.notices.add(Slug::Truncated, || (place, text));
        self.partial = true;
        let left = self.source.window().len();
        self.source.consume(left);
    }

    /// Reads what follows the document: white space, zeros, or something that must not be there.
    fn rest(&mut self) -> Result<(), Failure> {
        let mut zeros = None;
        loop {
            match self.token()? {
                None => break,
                Some(0) => {
                    zeros.get_or_insert(self.source.position(0));
                    let count = self.source.window().iter().take_while(|&&byte| byte == 0).count();
                    self.source.consume(count);
                }
                Some(b'{' | b'[') => {
                    let text = "more than one JSON document in the file: several ranks wrote to one path";
                    return Err(Failure::ManyDocuments(self.source.position(0), text.to_owned()));
                }
                Some(_) if self.recover => {
                    zeros.get_or_insert(self.source.position(0));
                    self.partial = true;
                    self.source.consume(1);
                }
                Some(_) => return Err(self.malformed(0, Cause::Garbage)),
            }
        }
        if let Some(damage) = self.source.damage() {
            if !self.recover {
                return Err(self.damaged(damage.text()));
            }
            self.note_cut("");
        }
        if self.source.zeros_after_members() {
            zeros.get_or_insert(self.end());
        }
        if let Some(place) = zeros {
            self.notices.add(Slug::TrailingData, || (place, String::new()));
        }
        Ok(())
    }

    /// Skips white space and returns the next byte; None at the end of the text.
    fn token(&mut self) -> Result<Option<u8>, Failure> {
        loop {
            let window = self.source.window();
            let spaces = window.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
            let byte = window.get(spaces).copied();
            self.source.consume(spaces);
            if byte.is_some() || !self.source.fill()? {
                return Ok(byte);
            }
        }
    }

    /// Reads something that must lie in the window as a whole; None where the text ends first.
    fn whole<T>(&mut self, mut read: impl FnMut(&mut Cursor<'_, '_>) -> Result<T, Stop>) -> Result<Option<T>, Failure> {
        loop {
            let window = self.source.window();
            let source = &self.source;
            let mut cursor = Cursor { bytes: window, at: 0, valid: source.valid(), quirks: &mut self.quirks };
            match read(&mut cursor) {
                Ok(value) => {
                    let end = cursor.at;
                    let place = |at| source.position(at);
                    record(&mut self.quirks, &Context { window, place: &place }, &mut self.notices);
                    self.source.consume(end);
                    return Ok(Some(value));
                }
                Err(Stop::Bad(at, cause)) => return Err(self.malformed(at, cause)),
                Err(Stop::More) => {
                    self.quirks.clear();
                    if !self.source.fill()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn end(&self) -> Position {
        self.source.position(self.source.window().len())
    }

    fn truncated(&self, what: &str) -> Failure {
        match self.source.damage() {
            Some(damage) => self.damaged(damage.text()),
            None => Failure::Truncated(self.end(), what.to_owned()),
        }
    }

    fn damaged(&self, text: &str) -> Failure {
        match self.source.damage() {
            Some(crate::source::Damage::Corrupt(_)) => Failure::Malformed(self.end(), text.to_owned()),
            _ => Failure::Truncated(self.end(), text.to_owned()),
        }
    }

    fn malformed(&self, at: usize, cause: Cause) -> Failure {
        Failure::Malformed(self.source.position(at), cause.to_string())
    }
}

/// Reads a top-level key with its value.
fn entry(cursor: &mut Cursor<'_, '_>) -> Result<Entry, Stop> {
    if !List::OBJECT.next(cursor)? {
        return Ok(Entry::End);
    }
    let raw = cursor.key()?;
    let mut key = String::new();
    decode(cursor.slice(raw), &mut key);
    if key != "traceEvents" {
        let mut json = String::new();
        let value = copy_value(cursor, 1, &mut json)?;
        List::OBJECT.after(cursor, value)?;
        return Ok(Entry::Metadata(key, json));
    }
    let is_array = cursor.token()? == b'[';
    if is_array {
        cursor.at += 1;
    } else {
        let value = cursor.value(1)?;
        List::OBJECT.after(cursor, value)?;
    }
    Ok(Entry::Events { is_array })
}

/// Turns quirks into notices.
fn record(quirks: &mut Vec<Quirk>, context: &Context<'_>, notices: &mut Notices) {
    for quirk in quirks.drain(..) {
        notices.add(quirk.slug, || {
            let example = Scalar { kind: Kind::Coded, start: quirk.start, end: quirk.end, ..Scalar::NONE };
            ((context.place)(quirk.at), context.text(&example))
        });
    }
}
