//! What is read in several ways, and must come out the same.

use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use moeprof_trace::{ReadOptions, read_kineto, read_kineto_from};

use crate::change::Dice;
use crate::outcome::outcome;

/// Gives its bytes away in pieces of at most so many.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(out.len()).min(self.0.len());
        let (now, later) = self.0.split_at(count);
        out[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

fn options(dice: &mut Dice) -> ReadOptions {
    let mut options = ReadOptions::new().recover(dice.chance(2));
    if dice.chance(3) {
        options = options.skip_categories(["cpu_op", "python_function", "kernel"]);
    }
    if dice.chance(10) {
        options = options.max_event_bytes(300);
    }
    options
}

fn same(what: &str, one: &str, other: &str) -> Result<(), String> {
    if one == other {
        return Ok(());
    }
    let at = one.bytes().zip(other.bytes()).take_while(|(left, right)| left == right).count();
    let piece = |text: &str| text.chars().skip(at.saturating_sub(40)).take(160).collect::<String>();
    Err(format!("{what} differs at {at}:\n    {}\n    {}", piece(one), piece(other)))
}

/// A text: with and without prediction, in pieces, and in parts by several threads.
pub fn scanner(text: &[u8], dice: &mut Dice, scratch: &Path) -> Result<(), String> {
    let options = options(dice);
    let plodding = outcome(&read_kineto_from(text, &options.clone().predict(false)));
    same("prediction", &plodding, &outcome(&read_kineto_from(text, &options)))?;
    let piece = 1 + dice.below(2000);
    let pieces = read_kineto_from(Drip(text, piece), &options.clone().chunk_bytes(piece));
    same("reading in pieces", &plodding, &outcome(&pieces))?;
    if dice.chance(4) {
        let path = scratch.join("trace.json");
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        let threads = options.clone().parts_from(1).threads(2 + dice.below(3));
        let single = outcome(&read_kineto(&path, &options.threads(1)));
        same("reading in parts", &single, &outcome(&read_kineto(&path, &threads)))?;
    }
    Ok(())
}

/// Compressed text: as it is, in members, damaged, and inflated on a thread beside.
pub fn gzip(text: &[u8], dice: &mut Dice, scratch: &Path) -> Result<(), String> {
    let options = options(dice);
    let mut packed = Vec::new();
    let mut left = text;
    while !left.is_empty() {
        let (now, later) = left.split_at((1 + dice.below(left.len() * 2)).min(left.len()));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(u32::try_from(dice.below(10)).unwrap()));
        encoder.write_all(now).map_err(|error| error.to_string())?;
        packed.extend(encoder.finish().map_err(|error| error.to_string())?);
        left = later;
    }
    let is_sound = dice.chance(3);
    if is_sound {
        let plain = outcome(&read_kineto_from(text, &options));
        // Compressed data in compressed data, and an empty text, are told apart from plain ones.
        if !text.is_empty() && !text.starts_with(&[0x1f, 0x8b]) {
            same("compression", &plain, &outcome(&read_kineto_from(&packed[..], &options)))?;
        }
    } else {
        for _ in 0..=dice.below(4) {
            let at = dice.below(packed.len().max(1));
            match dice.below(4) {
                0 if !packed.is_empty() => packed[at] ^= 1 << dice.below(8),
                1 => packed.truncate(at),
                2 => packed.extend(std::iter::repeat_n(0, dice.below(20))),
                _ if !packed.is_empty() => drop(packed.splice(at..at, [u8::try_from(dice.below(256)).unwrap()])),
                _ => {}
            }
        }
    }
    let first = outcome(&read_kineto_from(&packed[..], &options));
    let path = scratch.join("trace.json.gz");
    std::fs::write(&path, &packed).map_err(|error| error.to_string())?;
    let beside = read_kineto(&path, &options.clone().parts_from(1).threads(2));
    let single = read_kineto(&path, &options.threads(1));
    same("inflating beside", &outcome(&single), &outcome(&beside))?;
    // What was inflated before damaged data is the decoder's affair, so only sound data is compared in pieces.
    if is_sound { same("a file", &first, &outcome(&single)) } else { Ok(()) }
}
