//! The document around the events: what kind of file it is, its top-level keys, its end.

use crate::error::{Failure, Position};
use crate::event::Event;
use crate::formats;
use crate::json::{Cause, Cursor, Kind, List, Quirk, Scalar, Stop};
use crate::metadata::{Metadata, copy_value};
use crate::notices::{Notices, Slug};
use crate::predict::{Predictor, Text};
use crate::recover::{Resume, Scan};
use crate::source::Source;
use crate::spellings::Context;
use crate::tables::{Batch, Tables, TimeRange};
use crate::text::decode;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// Enough bytes to tell what a file is.
const PROLOGUE: usize = 64;

/// Which part of a document a source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// From the start of the document to the brace of some event.
    First,
    /// From the brace of one event to that of a later one.
    Middle,
    /// From the brace of an event to the end.
    Last,
}

/// What to do with the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Orders<'a> {
    pub(crate) recover: bool,
    pub(crate) skip: &'a [String],
    pub(crate) max_event_bytes: u64,
    pub(crate) predict: bool,
    pub(crate) range: Option<TimeRange>,
}

/// Takes batches of events while a file is read; false where no more are wanted.
pub(crate) struct Sink<'a> {
    pub(crate) rows: usize,
    pub(crate) take: &'a mut dyn FnMut(Batch) -> bool,
}

/// Reads one document, or a part of one, from a source.
pub(crate) struct Reader<'a> {
    source: Source<'a>,
    orders: Orders<'a>,
    part: Part,
    pub(crate) tables: Tables,
    pub(crate) notices: Notices,
    pub(crate) metadata: Metadata,
    pub(crate) partial: bool,
    /// An event was dropped.
    dropped: bool,
    quirks: Vec<Quirk>,
    sink: Option<Sink<'a>>,
}

/// Where the reading of events stands between two of them.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// After the opening bracket, or after a comma.
    First,
    /// After an event.
    Event,
    /// After a comma with the closing bracket behind it; the comma stood at this place.
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
    /// The text before this place is done with; what follows needs more text.
    More(usize),
    /// The closing bracket was passed.
    Closed(usize),
    Bad(Fault),
}

/// What is wrong with an event that begins at `event`.
struct Fault {
    event: usize,
    at: usize,
    cause: Cause,
}

/// The reading of events.
struct Walk {
    event: Event,
    predictor: Option<Predictor>,
    stage: Stage,
    /// There was an event, be it empty.
    any: bool,
    bare: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: Source<'a>, orders: Orders<'a>, part: Part) -> Self {
        Self {
            source,
            orders,
            part,
            tables: Tables::new(orders.skip, orders.range),
            notices: Notices::default(),
            metadata: Metadata::default(),
            partial: false,
            dropped: false,
            quirks: Vec::new(),
            sink: None,
        }
    }

    /// Hands the events on in batches of about so many rows.
    pub(crate) fn into_sink(mut self, sink: Sink<'a>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Hands on what has come together, where it is `most` rows or more.
    fn hand_on(&mut self, most: usize) -> Result<(), Failure> {
        let Some(sink) = self.sink.as_mut().filter(|_| self.tables.num_events() >= most) else { return Ok(()) };
        let batch = self.tables.take_batch().map_err(|error| Failure::Io(std::io::Error::other(error)))?;
        if (sink.take)(batch) { Ok(()) } else { Err(Failure::Stopped) }
    }

    /// Hands on what is left.
    pub(crate) fn hand_on_rest(&mut self) -> Result<(), Failure> {
        self.hand_on(1)
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    /// Returns how many line feeds were read.
    pub(crate) fn lines_read(&self) -> u64 {
        self.end().line - 1
    }

    /// Reads the whole document, or its first part.
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
                self.object(false)
            }
            Some(b'[') => {
                self.source.consume(1);
                if self.events(true, false)? { self.rest() } else { Ok(()) }
            }
            Some(byte) => Err(self.unknown_format(byte)),
        }
    }

    /// Reads a part that begins with an event which follows another one.
    pub(crate) fn read_on(&mut self, bare: bool) -> Result<(), Failure> {
        if !self.events(bare, true)? {
            return Ok(());
        }
        if bare {
            return self.rest();
        }
        match self.whole(|cursor| List::OBJECT.after(cursor, Scalar::NONE))? {
            None => self.cut(),
            Some(()) => self.object(true),
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
        if let Some(failure) = formats::recognise(window) {
            return failure;
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

    /// Reads the members of the document; `found` says that one was the array of events.
    fn object(&mut self, found: bool) -> Result<(), Failure> {
        let mut found = found;
        loop {
            match self.whole(entry)? {
                None if found => return self.cut(),
                None => return Err(self.truncated("the file ends before its events")),
                Some(Entry::End) => break,
                Some(Entry::Metadata(key, json)) => self.metadata.set(key, json),
                Some(Entry::Events { is_array }) => {
                    if matches!(self.part, Part::Middle | Part::Last) {
                        // Earlier parts have events that no longer count.
                        return Err(Failure::Indivisible);
                    }
                    if found {
                        // The last of two keys counts.
                        if self.tables.has_given() {
                            return Err(self.malformed(0, Cause::SecondArray));
                        }
                        self.tables = Tables::new(self.orders.skip, self.orders.range);
                    }
                    found = is_array;
                    if is_array && !self.events(false, false)? {
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
    fn events(&mut self, bare: bool, any: bool) -> Result<bool, Failure> {
        let predictor = self.orders.predict.then(Predictor::new);
        let mut walk = Walk { event: Event::new(), predictor, stage: Stage::First, any, bare };
        loop {
            let mut pause = self.events_in_window(&mut walk);
            if let Some(rows) = self.sink.as_ref().map(|sink| sink.rows) {
                self.hand_on(rows)?;
            }
            if let Pause::More(done) = pause {
                self.source.consume(done);
                if self.is_too_long(self.source.window().len()) {
                    let cause = Cause::TooLong(self.orders.max_event_bytes);
                    pause = Pause::Bad(Fault { event: 0, at: 0, cause });
                } else if !self.source.fill()? {
                    return self.events_end(&walk);
                }
            }
            match pause {
                Pause::More(_) => {}
                Pause::Closed(done) => {
                    self.source.consume(done);
                    return Ok(true);
                }
                Pause::Bad(fault) => {
                    if let Some(is_closed) = self.drop_event(&mut walk, &fault)? {
                        return Ok(is_closed);
                    }
                }
            }
        }
    }

    /// Goes to where reading resumes; Some where no event is left, as [`Self::events`] has it.
    #[cold]
    fn drop_event(&mut self, walk: &mut Walk, fault: &Fault) -> Result<Option<bool>, Failure> {
        if self.part != Part::Whole {
            return Err(Failure::Indivisible);
        }
        if !self.orders.recover {
            return Err(self.malformed(fault.at, fault.cause));
        }
        let source = &self.source;
        self.notices.add(Slug::DroppedEvent, || (source.position(fault.at), fault.cause.to_string()));
        self.partial = true;
        self.dropped = true;
        walk.stage = Stage::First;
        match self.find_next(fault, walk.bare)? {
            Resume::Event(at) => self.source.consume(at),
            Resume::End(at) => {
                self.source.consume(at + 1);
                return Ok(Some(true));
            }
            Resume::Unknown(at) => {
                self.source.consume(at);
                return self.events_end(walk).map(Some);
            }
        }
        Ok(None)
    }

    fn is_too_long(&self, bytes: usize) -> bool {
        bytes as u64 > self.orders.max_event_bytes
    }

    fn events_in_window(&mut self, walk: &mut Walk) -> Pause {
        let window = self.source.window();
        let source = &self.source;
        let context = Context { window, place: &|at| source.position(at) };
        let most = usize::try_from(self.orders.max_event_bytes).unwrap_or(usize::MAX);
        let mut cursor = Cursor { bytes: window, at: 0, valid: source.valid(), quirks: &mut self.quirks };
        let mut done = 0;
        let mut last_end = None;
        loop {
            let Ok(byte) = cursor.token() else { return Pause::More(done) };
            let at = cursor.at;
            if byte == b'{'
                && !matches!(walk.stage, Stage::Event)
                && let Some(predictor) = &mut walk.predictor
                && let Some(end) =
                    predictor.run(Text { bytes: window, valid: source.valid() }, at, most, &mut self.tables)
            {
                walk.any = true;
                walk.stage = Stage::Event;
                (cursor.at, done, last_end) = (end, end, Some(end));
                continue;
            }
            match (walk.stage, byte) {
                (_, b']') => {
                    if let Stage::Comma(comma) = walk.stage {
                        self.notices.add(Slug::TrailingComma, || (comma, ",".to_owned()));
                    }
                    return Pause::Closed(at + 1);
                }
                (Stage::Event, b',') => {
                    cursor.at += 1;
                    // The place is only wanted for a comma with nothing behind it.
                    match cursor.token() {
                        Ok(b']') => walk.stage = Stage::Comma(source.position(at)),
                        Ok(_) => walk.stage = Stage::First,
                        Err(_) => return Pause::More(done),
                    }
                }
                (Stage::Event, _) => {
                    let cause = if byte == b'{' { Cause::MissingComma } else { Cause::ExpectedCommaOrEnd };
                    return Pause::Bad(Fault { event: at, at, cause });
                }
                _ => match element(walk, &mut cursor, &context, most, &mut self.tables) {
                    Ok(()) => {
                        if !cursor.quirks.is_empty() {
                            record(cursor.quirks, &context, &mut self.notices);
                        } else if let Some(predictor) = &mut walk.predictor {
                            predictor.learn(&walk.event, window, last_end, &self.tables);
                        }
                        last_end = Some(walk.event.end);
                    }
                    Err(Stop::More) => return Pause::More(at),
                    Err(Stop::Bad(place, cause)) => return Pause::Bad(Fault { event: at, at: place, cause }),
                },
            }
            done = cursor.at;
        }
    }

    /// Looks for the next event, or the end of the events, behind a fault.
    fn find_next(&mut self, fault: &Fault, bare: bool) -> Result<Resume, Failure> {
        let mut scan = Scan::new(self.source.window(), Some(fault.event), fault.at, bare);
        let mut last = false;
        loop {
            match scan.resume(self.source.window(), last) {
                Resume::Unknown(at) if !last => {
                    self.source.consume(at);
                    scan.consumed(at);
                    last = !self.source.fill()?;
                }
                found => return Ok(found),
            }
        }
    }

    /// The text ended among the events.
    fn events_end(&mut self, walk: &Walk) -> Result<bool, Failure> {
        let left = self.source.window().trim_ascii();
        if matches!(self.part, Part::First | Part::Middle) {
            let clean = left == b"," && matches!(walk.stage, Stage::Event) && self.source.damage().is_none();
            return Err(if clean { Failure::PartEnd } else { Failure::Indivisible });
        }
        let between = left.is_empty() || left == b",";
        if walk.bare && walk.any && between && self.source.damage().is_none() {
            let place = self.end();
            self.notices.add(Slug::MissingEndMark, || (place, "the array is not closed".to_owned()));
            return Ok(false);
        }
        let inside = if between { "the file ends before its events do" } else { "the file ends inside an event" };
        if !self.orders.recover {
            return Err(self.truncated(inside));
        }
        self.note_cut(inside);
        Ok(false)
    }

    fn cut(&mut self) -> Result<(), Failure> {
        const INSIDE: &str = "the file ends inside the document";
        if !self.orders.recover {
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
        let mut follows = None;
        while let Some(byte) = self.token()? {
            // After a dropped event, what looked like the end may have been a list in its args.
            if matches!(byte, b'{' | b'[') && !self.dropped {
                let text = "more than one JSON document in the file: several ranks wrote to one path";
                return Err(Failure::ManyDocuments(self.source.position(0), text.to_owned()));
            }
            follows.get_or_insert_with(|| self.source.position(0));
            if byte == 0 {
                let count = self.source.window().iter().take_while(|&&byte| byte == 0).count();
                self.source.consume(count);
                continue;
            }
            if !self.orders.recover {
                return Err(self.malformed(0, Cause::Garbage));
            }
            self.partial = true;
            self.skip_rest()?;
        }
        if let Some(damage) = self.source.damage() {
            if !self.orders.recover {
                return Err(self.damaged(damage.text()));
            }
            self.note_cut("");
        }
        if self.source.zeros_after_members() {
            follows.get_or_insert_with(|| self.source.position(self.source.window().len()));
        }
        if let Some(place) = follows {
            self.notices.add(Slug::TrailingData, || (place, String::new()));
        }
        Ok(())
    }

    /// Reads on to the end of the text.
    fn skip_rest(&mut self) -> Result<(), Failure> {
        loop {
            let left = self.source.window().len();
            self.source.consume(left);
            if !self.source.fill()? {
                return Ok(());
            }
        }
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
            let mut outcome = read(&mut cursor);
            let end = cursor.at;
            let most = usize::try_from(self.orders.max_event_bytes).unwrap_or(usize::MAX);
            if matches!(outcome, Err(Stop::Bad(..)) if window.len() > most) || (outcome.is_ok() && end > most) {
                // How much text there happens to be behind the limit must not matter.
                self.quirks.clear();
                let bytes = window.get(..=most).unwrap_or(window);
                let mut cursor = Cursor { bytes, at: 0, valid: source.valid(), quirks: &mut self.quirks };
                if outcome.is_ok() || matches!(read(&mut cursor), Err(Stop::More)) {
                    outcome = Err(Stop::Bad(0, Cause::TooLong(self.orders.max_event_bytes)));
                }
            }
            match outcome {
                Ok(value) => {
                    let place = |at| source.position(at);
                    record(&mut self.quirks, &Context { window, place: &place }, &mut self.notices);
                    self.source.consume(end);
                    return Ok(Some(value));
                }
                Err(Stop::Bad(at, cause)) => return Err(self.malformed(at, cause)),
                Err(Stop::More) => {
                    self.quirks.clear();
                    if self.is_too_long(self.source.window().len()) {
                        return Err(self.malformed(0, Cause::TooLong(self.orders.max_event_bytes)));
                    }
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

/// Reads one element of traceEvents and stores it.
#[inline]
fn element(
    walk: &mut Walk,
    cursor: &mut Cursor<'_, '_>,
    context: &Context<'_>,
    most: usize,
    tables: &mut Tables,
) -> Result<(), Stop> {
    let start = cursor.at;
    let event = &mut walk.event;
    event.record = walk.predictor.as_ref().is_some_and(Predictor::learns);
    let read = match event.read(cursor) {
        Err(Stop::Bad(..)) if cursor.bytes.len() - start > most && is_cut(event, cursor, start, most) => {
            Err(Stop::Bad(start, Cause::TooLong(most as u64)))
        }
        Ok(()) if event.end - start > most => Err(Stop::Bad(start, Cause::TooLong(most as u64))),
        Ok(()) if !event.empty => {
            tables.push(event, context, cursor.quirks).map_err(|cause| Stop::Bad(event.start, cause))
        }
        other => other,
    };
    if read.is_ok() {
        walk.any = true;
        walk.stage = Stage::Event;
    } else {
        cursor.quirks.clear();
    }
    read
}

/// Tells whether the event at `start` is not seen to be bad within so many bytes. How much text there happens to be
/// behind the limit must not matter.
#[cold]
fn is_cut(event: &mut Event, cursor: &mut Cursor<'_, '_>, start: usize, most: usize) -> bool {
    let bytes = cursor.bytes.get(..=start + most).unwrap_or(cursor.bytes);
    let mut short = Cursor { bytes, at: start, valid: cursor.valid, quirks: cursor.quirks };
    event.read(&mut short) == Err(Stop::More)
}

/// Turns quirks into notices.
fn record(quirks: &mut Vec<Quirk>, context: &Context<'_>, notices: &mut Notices) {
    // Those of values come after those of the text, so the first of a kind may be behind another.
    quirks.sort_by_key(|quirk| quirk.at);
    for quirk in quirks.drain(..) {
        notices.add(quirk.slug, || {
            let example = Scalar { kind: Kind::Coded, start: quirk.start, end: quirk.end, ..Scalar::NONE };
            ((context.place)(quirk.at), context.text(&example))
        });
    }
}
