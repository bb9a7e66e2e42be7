//! Numbers at the edges, as times and ids: predicted, read in the general way, and held against integers of 128 bits.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use moeprof_trace::{KinetoFile, ReadOptions, read_kineto_from};

use crate::change::Dice;
use crate::outcome::outcome;

fn digits(dice: &mut Dice, most: usize) -> String {
    let count = dice.below(most + 1);
    (0..count).map(|_| char::from(b'0' + u8::try_from(dice.below(10)).unwrap())).collect()
}

fn whole(dice: &mut Dice) -> String {
    const EDGES: [&str; 8] = [
        "9223372036854775",
        "9223372036854776",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "999999999999999999",
        "1000000000000000000",
    ];
    if dice.chance(4) {
        return (*dice.one(&EDGES)).to_owned();
    }
    let text = format!("{}{}", 1 + dice.below(9), digits(dice, 20));
    if dice.chance(8) { "0".to_owned() } else { text }
}

/// Nanoseconds of a time, rounded half to even; None beyond 64 bits.
fn nanoseconds(whole: &str, fraction: &str) -> Option<i64> {
    let padded = format!("{fraction:0<6}");
    let (kept, rest) = padded.split_at(3);
    let mut value: i128 = format!("{whole}{kept}").parse().ok()?;
    let half = format!("5{}", "0".repeat(rest.len() - 1));
    let up = match rest.cmp(&half) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => value % 2 == 1,
        std::cmp::Ordering::Less => false,
    };
    value += i128::from(up);
    i64::try_from(value).ok()
}

fn last_row(file: &KinetoFile) -> Option<(Option<i64>, Option<u64>)> {
    let events = file.events.first()?;
    let row = events.num_rows().checked_sub(1)?;
    let start = events.column_by_name("start_ns")?.as_primitive::<Int64Type>().clone();
    let id = events.column_by_name("correlation")?.as_primitive::<UInt64Type>().clone();
    Some(((!start.is_null(row)).then(|| start.value(row)), (!id.is_null(row)).then(|| id.value(row))))
}

/// Writes a few events as expected and one with such numbers behind them.
pub fn check(dice: &mut Dice) -> Result<(), String> {
    let event = |time: &str, id: &str| {
        format!(
            "{{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {time}, \"dur\": 1.000,\n    \"args\": {{\n      \"device\": 0, \"stream\": 7, \"correlation\": {id}, \"x\": {id}\n    }}\n  }}"
        )
    };
    let (time, id) = (whole(dice), whole(dice));
    let fraction = if dice.chance(3) { String::new() } else { format!("{}{}", dice.below(10), digits(dice, 8)) };
    let point = if fraction.is_empty() { "" } else { "." };
    let mut events: Vec<String> = (0..4).map(|index| event(&format!("{index}.125"), &index.to_string())).collect();
    events.push(event(&format!("{time}{point}{fraction}"), &id));
    let text = format!("{{\"traceEvents\": [\n  {}\n  ]}}", events.join(",\n  "));
    let options = ReadOptions::new();
    let read = read_kineto_from(text.as_bytes(), &options);
    let plodding = read_kineto_from(text.as_bytes(), &options.predict(false));
    if outcome(&read) != outcome(&plodding) {
        return Err(format!("{time}{point}{fraction} and {id} are read in two ways"));
    }
    let expected = nanoseconds(&time, &fraction);
    match (read, expected) {
        (Err(error), None) if error.slug() == "trace-malformed" => Ok(()),
        (Ok(file), Some(_)) if last_row(&file) == Some((expected, id.parse().ok())) => Ok(()),
        (other, _) => {
            Err(format!("{time}{point}{fraction} and {id}, not {expected:?}: {:?}", other.map(|file| last_row(&file))))
        }
    }
}
