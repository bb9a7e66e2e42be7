//! Pages of the file and the trees of tables: which pages hold the rows of a table, and where each row lies.

use crate::error::Failure;
use crate::source::Source;

const LEAF: u8 = 0x0d;
const INTERIOR: u8 = 0x05;
const FILE_HEADER: usize = 100;
/// A tree of 4-billion pages is less deep than this: a deeper one goes round in circles.
const DEEPEST: usize = 40;
/// Pages that one read fetches where they follow each other in the file.
const RUN: usize = 64;

/// What the file's header says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Bytes of a page.
    page: usize,
    /// Bytes of a page that hold content.
    usable: usize,
    /// Pages of the file.
    pages: u32,
    /// Longest record that lies in its page as a whole, and the least part of a longer one that does.
    most_local: usize,
    least_local: usize,
    /// Changes go to a write-ahead log.
    pub(crate) logs: bool,
}

impl Layout {
    pub(crate) fn read(source: &Source) -> Result<Self, Failure> {
        let mut head = [0_u8; FILE_HEADER];
        source.read_at(&mut head, 0)?;
        let short = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let page = match short(16) {
            1 => 65536,
            other => usize::from(other),
        };
        let usable = page.saturating_sub(usize::from(head[20]));
        if !page.is_power_of_two() || page < 512 || usable < 480 {
            return Err(Failure::Malformed(16, format!("the database has pages of {page} bytes")));
        }
        if matches!(short(58), 2 | 3) {
            return Err(Failure::Unsupported("texts in UTF-16: nsys writes UTF-8".to_owned()));
        }
        let pages = source.len() / page as u64;
        let stated = u32::from_be_bytes([head[28], head[29], head[30], head[31]]);
        let is_stated = head[24..28] == head[92..96];
        if is_stated && u64::from(stated) > pages {
            let message = format!("the file ends early: {pages} of {stated} pages are there");
            return Err(Failure::Truncated(source.len(), message));
        }
        Ok(Self {
            page,
            usable,
            pages: u32::try_from(pages).unwrap_or(u32::MAX),
            most_local: usable - 35,
            least_local: (usable - 12) * 32 / 255 - 23,
            logs: head[18] == 2 || head[19] == 2,
        })
    }

    fn at(&self, page: u32) -> u64 {
        u64::from(page.saturating_sub(1)) * self.page as u64
    }

    fn malformed(&self, page: u32, what: &str) -> Failure {
        Failure::Malformed(self.at(page), format!("page {page} {what}"))
    }

    fn checked(&self, page: u32) -> Result<u32, Failure> {
        if page == 0 || page > self.pages {
            let message = format!("the database refers to page {page} of {}", self.pages);
            return Err(Failure::Malformed(self.at(page), message));
        }
        Ok(page)
    }
}

/// Lists the pages that hold the rows of the table at a root page, in the order of the rows.
pub(crate) fn leaves(source: &Source, layout: &Layout, root: u32) -> Result<Vec<u32>, Failure> {
    let mut level = vec![layout.checked(root)?];
    let mut buffer = vec![0_u8; layout.page];
    for _ in 0..DEEPEST {
        let first = *level.first().unwrap_or(&root);
        source.read_at(&mut buffer, layout.at(first))?;
        match header(&buffer, first)?.kind {
            LEAF => return Ok(level),
            INTERIOR => {}
            kind => return Err(layout.malformed(first, &format!("is no page of a table (kind {kind})"))),
        }
        let mut below = Vec::new();
        for &page in &level {
            source.read_at(&mut buffer, layout.at(page))?;
            children(&buffer, page, layout, &mut below)?;
            if below.len() > layout.pages as usize {
                return Err(layout.malformed(page, "goes round in circles"));
            }
        }
        level = below;
    }
    Err(layout.malformed(root, "is the root of an endless tree"))
}

/// Kind of a page, and where the pointers to its cells begin.
struct Header {
    kind: u8,
    cells: usize,
    pointers: usize,
    rightmost: u32,
}

fn header(bytes: &[u8], page: u32) -> Result<Header, Failure> {
    let from = if page == 1 { FILE_HEADER } else { 0 };
    let damaged = || Failure::Malformed(0, format!("page {page} is cut"));
    let head = bytes.get(from..from + 12).ok_or_else(damaged)?;
    let kind = head[0];
    Ok(Header {
        kind,
        cells: usize::from(u16::from_be_bytes([head[3], head[4]])),
        pointers: from + if kind == INTERIOR { 12 } else { 8 },
        rightmost: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
    })
}

fn children(bytes: &[u8], page: u32, layout: &Layout, into: &mut Vec<u32>) -> Result<(), Failure> {
    let head = header(bytes, page)?;
    if head.kind != INTERIOR {
        return Err(layout.malformed(page, &format!("is no inner page of a table (kind {})", head.kind)));
    }
    for index in 0..head.cells {
        let cell = cell(bytes, &head, index).and_then(|cell| cell.first_chunk::<4>());
        let child = cell.ok_or_else(|| layout.malformed(page, "points outside itself"))?;
        into.push(layout.checked(u32::from_be_bytes(*child))?);
    }
    into.push(layout.checked(head.rightmost)?);
    Ok(())
}

#[inline]
fn cell<'a>(bytes: &'a [u8], head: &Header, index: usize) -> Option<&'a [u8]> {
    let pointer = bytes.get(head.pointers + 2 * index..)?.first_chunk::<2>()?;
    bytes.get(usize::from(u16::from_be_bytes(*pointer))..)
}

/// Calls back for each row of some leaves, with its number and its record.
pub(crate) fn rows(
    source: &Source,
    layout: &Layout,
    leaves: &[u32],
    mut take: impl FnMut(i64, &[u8]) -> Option<()>,
) -> Result<(), Failure> {
    let mut long = Vec::new();
    runs(source, layout, leaves, |page, bytes| {
        let head = header(bytes, page)?;
        if head.kind != LEAF {
            return Err(layout.malformed(page, &format!("is no page of rows (kind {})", head.kind)));
        }
        for index in 0..head.cells {
            let cell = cell(bytes, &head, index).ok_or_else(|| layout.malformed(page, "points outside itself"))?;
            let record = payload(source, layout, cell, &mut long)?;
            let (row, record) = record.ok_or_else(|| layout.malformed(page, "holds a row that is cut"))?;
            take(row, record).ok_or_else(|| layout.malformed(page, "holds a row that is damaged"))?;
        }
        Ok(())
    })
}

/// Counts the rows of some leaves by their headers.
pub(crate) fn count(source: &Source, layout: &Layout, leaves: &[u32]) -> Result<u64, Failure> {
    let mut rows = 0;
    runs(source, layout, leaves, |page, bytes| {
        rows += header(bytes, page)?.cells as u64;
        Ok(())
    })?;
    Ok(rows)
}

fn runs(
    source: &Source,
    layout: &Layout,
    leaves: &[u32],
    mut take: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Source::Memory(all) = source {
        for &page in leaves {
            let from = usize::try_from(layout.at(page)).unwrap_or(usize::MAX);
            let bytes = all.get(from..).and_then(|rest| rest.get(..layout.page));
            take(page, bytes.ok_or_else(|| layout.malformed(page, "is not in the file"))?)?;
        }
        return Ok(());
    }
    let mut buffer = Vec::new();
    let mut rest = leaves;
    while let Some(&first) = rest.first() {
        let follows = rest.iter().zip(first..).take(RUN).take_while(|&(&page, next)| page == next).count();
        buffer.resize(follows * layout.page, 0);
        source.read_at(&mut buffer, layout.at(first))?;
        let (run, later) = rest.split_at(follows);
        for (&page, bytes) in run.iter().zip(buffer.chunks_exact(layout.page)) {
            take(page, bytes)?;
        }
        rest = later;
    }
    Ok(())
}

/// Returns the number and the record of a row; a long record is put together from the pages that it goes on in.
#[inline]
fn payload<'a>(
    source: &Source,
    layout: &Layout,
    cell: &'a [u8],
    long: &'a mut Vec<u8>,
) -> Result<Option<(i64, &'a [u8])>, Failure> {
    let Some((size, rest)) = crate::record::varint(cell) else { return Ok(None) };
    let Some((row, rest)) = crate::record::varint(rest) else { return Ok(None) };
    let Ok(size) = usize::try_from(size) else { return Ok(None) };
    let row = row.cast_signed();
    if size <= layout.most_local {
        return Ok(rest.get(..size).map(|record| (row, record)));
    }
    overflowing(source, layout, rest, size, long)?;
    Ok((long.len() == size).then_some((row, long.as_slice())))
}

fn overflowing(source: &Source, layout: &Layout, rest: &[u8], size: usize, long: &mut Vec<u8>) -> Result<(), Failure> {
    long.clear();
    let each = layout.usable - 4;
    let part = layout.least_local + (size.saturating_sub(layout.least_local)) % each;
    let local = if part <= layout.most_local { part } else { layout.least_local };
    let Some((own, after)) = rest.split_at_checked(local) else { return Ok(()) };
    let Some(next) = after.first_chunk::<4>() else { return Ok(()) };
    if size as u64 > source.len() {
        return Ok(());
    }
    long.extend_from_slice(own);
    let mut next = u32::from_be_bytes(*next);
    let mut page = vec![0_u8; layout.page];
    while long.len() < size {
        source.read_at(&mut page, layout.at(layout.checked(next)?))?;
        let (head, content) = page.split_at(4);
        next = head.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        long.extend_from_slice(content.get(..each.min(size - long.len())).unwrap_or_default());
    }
    Ok(())
}
