//! Reads changed traces for a while, each in several ways that must agree, and keeps those that do not.
//!
//! `cargo run --profile fuzz -p moeprof-trace --example fuzz -- [--seconds N] [--seed N] [--keep FOLDER] [TARGET...]`
//!
//! Targets: `scanner` (text), `gzip` (compressed text, sound and broken), `numbers` (numbers at the edges, held against
//! arithmetic of its own). The texts come from `corpus/`, which is cut from real traces; what was found once is in there as well.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    reason = "a program for a person"
)]

mod change;
mod numbers;
#[path = "../../tests/reader/outcome.rs"]
mod outcome;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::change::{Dice, changed};

/// Reads the texts to begin with, in order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus")).collect()
}

/// Tries one input; the error says what was wrong with it.
fn attempt(target: &str, input: &[u8], dice: &mut Dice, scratch: &Path) -> Result<(), String> {
    let run = || match target {
        "gzip" => targets::gzip(input, dice, scratch),
        "numbers" => numbers::check(dice),
        _ => targets::scanner(input, dice, scratch),
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("a panic".to_owned()))
}

fn main() -> ExitCode {
    let (mut seconds, mut seed, mut keep, mut chosen) = (30, 1, PathBuf::from("build/fuzz"), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--seconds" => seconds = value().parse().expect("seconds"),
            "--seed" => seed = value().parse().expect("a seed"),
            "--keep" => keep = value().into(),
            _ => chosen.push(argument),
        }
    }
    if chosen.is_empty() {
        chosen = ["scanner", "scanner", "scanner", "gzip", "numbers"].map(str::to_owned).to_vec();
    }
    let texts = corpus();
    let scratch = std::env::temp_dir().join(format!("moeprof-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a folder for files");
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut runs, mut finds) = (0u64, 0u64);
    while Instant::now() < end && finds < 20 {
        let mut dice = Dice::new(seed + runs);
        let target = chosen[usize::try_from(runs).unwrap_or_default() % chosen.len()].clone();
        let input = changed(&texts, &mut dice);
        if let Err(why) = attempt(&target, &input, &mut dice, &scratch) {
            finds += 1;
            std::fs::create_dir_all(&keep).expect("a folder for finds");
            let path = keep.join(format!("{target}-{}.bin", seed + runs));
            std::fs::write(&path, &input).expect("a place for a find");
            println!("{target}, seed {}: {why}\n  kept in {}", seed + runs, path.display());
        }
        runs += 1;
    }
    let _ = std::fs::remove_dir_all(&scratch);
    println!("fuzz: {runs} inputs from {} texts, {finds} finds", texts.len());
    if finds == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
