//! Reads files several times and prints GB/s beside counting newlines in the same bytes, by CPU time and by wall.
//!
//! `cargo run --release -p moeprof-trace --example throughput -- [--runs N] [--threads N] [--skip CATEGORY] FILE...`
//!
//! GB are of uncompressed text. CPU time is the process's, of all threads, so it hardly moves when other work shares the
//! machine (give it ten runs: it has steps of 10 ms); wall time is the best of the runs. Newlines are counted with `memchr` twice: in bytes that are in memory, and
//! in chunks of 1 MiB as they are read from the file.
#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a program for a person")]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

use moeprof_trace::{ReadOptions, read_kineto};

/// CPU seconds and wall seconds of one run.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

/// CPU seconds of this process: those of the thread that runs and the kernel's account of all, which has steps of 10 ms.
fn cpu_seconds() -> io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}

fn timed<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<(T, Cost)> {
    let (cpu, wall) = (cpu_seconds()?, Instant::now());
    let value = work()?;
    Ok((value, Cost { cpu: cpu_seconds()? - cpu, wall: wall.elapsed().as_secs_f64() }))
}

/// The mean of the CPU seconds, since they come in coarse steps, and the best wall.
fn sum_up(costs: &[Cost]) -> Cost {
    let cpu = costs.iter().map(|cost| cost.cpu).sum::<f64>() / costs.len() as f64;
    Cost { cpu, wall: costs.iter().map(|cost| cost.wall).fold(f64::INFINITY, f64::min) }
}

fn newlines_from_file(path: &Path) -> io::Result<usize> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let mut count = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(count),
            size => count += memchr::memchr_iter(b'\n', buffer.get(..size).unwrap_or_default()).count(),
        }
    }
}

/// Inflates a compressed file in blocks, and does nothing with them.
fn inflate(path: &Path) -> io::Result<usize> {
    let mut decoder = flate2::bufread::MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, File::open(path)?));
    let mut buffer = vec![0; 1 << 18];
    let mut total = 0;
    loop {
        match decoder.read(&mut buffer)? {
            0 => return Ok(total),
            size => total += size,
        }
    }
}

fn measure(path: &Path, runs: usize, options: &ReadOptions) -> io::Result<()> {
    let bytes = std::fs::read(path)?;
    let zipped = bytes.starts_with(&[0x1f, 0x8b]);
    let (mut read, mut memory, mut file, mut inflated) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut size, mut events) = (0, 0);
    for _ in 0..runs {
        let (trace, cost) = timed(|| read_kineto(path, options).map_err(io::Error::other))?;
        (size, events) = (trace.bytes_read, trace.num_events());
        read.push(cost);
        if zipped {
            inflated.push(timed(|| inflate(path))?.1);
        } else {
            memory.push(timed(|| Ok(std::hint::black_box(memchr::memchr_iter(b'\n', &bytes).count())))?.1);
            file.push(timed(|| newlines_from_file(path))?.1);
        }
    }
    let speed = |seconds: f64| size as f64 / seconds / 1e9;
    let read = sum_up(&read);
    println!("{}: {:.1} MB, {events} events", path.display(), size as f64 / 1e6);
    println!("  reader          {:5.2} GB/s by CPU, {:5.2} by wall", speed(read.cpu), speed(read.wall));
    if zipped {
        let cost = sum_up(&inflated);
        println!("  inflating alone {:5.2} GB/s by CPU, {:5.2} by wall", speed(cost.cpu), speed(cost.wall));
    }
    for (name, costs) in [("in memory", memory), ("from the file", file)] {
        if !costs.is_empty() {
            let newlines = sum_up(&costs);
            let (cpu, wall) = (newlines.cpu / read.cpu, newlines.wall / read.wall);
            println!(
                "  newlines {name:<13} {:5.2} GB/s by CPU; the reader is {cpu:.2} x that by CPU, {wall:.2} x by wall",
                speed(newlines.cpu)
            );
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let (mut runs, mut threads, mut skip, mut files) = (5, None, Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => runs = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(runs),
            "--threads" => threads = arguments.next().and_then(|text| text.parse().ok()),
            "--skip" => skip.extend(arguments.next()),
            _ => files.push(argument),
        }
    }
    let options = ReadOptions::new().skip_categories(skip);
    let options = threads.map_or(options.clone(), |threads| options.threads(threads));
    files.iter().try_for_each(|file| measure(Path::new(file), runs, &options))
}
