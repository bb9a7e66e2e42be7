//! Events in batches, and events of some time only.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type};
use moeprof_trace::{Batch, ReadOptions, read_kineto, read_kineto_batches};

use crate::outcome::rows;
use crate::{events, numbers, texts};

fn event(index: usize) -> String {
    let (phase, args) = match index % 7 {
        3 => ("M", r#", "args": {"name": "worker"}"#),
        5 => ("X", r#", "args": {"Collective name": "all", "dtype": "b", "Seq": 5}"#),
        _ => ("X", r#", "args": {"device": 0, "stream": 7, "grid": [1, 2, 3], "correlation": 5}"#),
    };
    format!(
        r#"{{"ph": "{phase}", "cat": "c{}", "name": "n{}", "pid": 1, "tid": {}, "ts": {index}.5, "dur": 2.000{args}}}"#,
        index % 3,
        index % 40,
        index % 5
    )
}

fn document(count: usize) -> String {
    events(&(0..count).map(event).collect::<Vec<_>>().join(",\n"))
}

/// Writes a text to a file of its own, and takes it away again.
struct Written(std::path::PathBuf);

impl Written {
    fn new(name: &str, text: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("moeprof-batches-{name}-{}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn joined(batches: &[Batch], table: impl Fn(&Batch) -> &RecordBatch) -> Vec<String> {
    rows(&batches.iter().map(|batch| table(batch).clone()).collect::<Vec<_>>())
}

#[test]
fn batches_one_after_the_other_are_the_file() {
    // GIVEN a file, read as a whole
    let file = Written::new("all", document(1000).as_bytes());
    let options = ReadOptions::new().chunk_bytes(3000);
    let whole = read_kineto(&file.0, &options.clone().threads(1)).unwrap();
    // WHEN it is read in batches
    let mut batches = Vec::new();
    let rest = read_kineto_batches(&file.0, &options, 100, |batch| {
        batches.push(batch);
        true
    });
    // THEN the batches have all rows, and what is left has the rest
    let rest = rest.unwrap().unwrap();
    assert!(batches.len() > 5, "{}", batches.len());
    assert_eq!(joined(&batches, |batch| &batch.events[0]), rows(&whole.events));
    assert_eq!(joined(&batches, |batch| &batch.names), rows(std::slice::from_ref(&whole.names)));
    assert_eq!(joined(&batches, |batch| &batch.tracks), rows(std::slice::from_ref(&whole.tracks)));
    assert_eq!(joined(&batches, |batch| &batch.device_args), rows(&whole.device_args.to_batches().unwrap()));
    assert_eq!(joined(&batches, |batch| &batch.collective_args), rows(std::slice::from_ref(&whole.collective_args)));
    assert_eq!(joined(&batches, |batch| &batch.labels), rows(std::slice::from_ref(&whole.labels)));
    assert_eq!((rest.num_events(), rest.device_args.num_rows(), rest.labels.num_rows()), (0, 0, 0));
    assert_eq!(rest.event_counts, whole.event_counts);
    assert_eq!(rest.bytes_read, whole.bytes_read);
    assert_eq!(texts(&rest.names, "name"), texts(&whole.names, "name"));
    assert_eq!(batches.last().unwrap().categories, whole.categories);
}

#[test]
fn who_has_enough_gets_no_more() {
    let file = Written::new("some", document(1000).as_bytes());
    let mut count = 0;
    let rest = read_kineto_batches(&file.0, &ReadOptions::new().chunk_bytes(3000), 100, |_| {
        count += 1;
        count < 2
    });
    assert!(rest.unwrap().is_none());
    assert_eq!(count, 2);
}

#[test]
fn an_error_comes_after_the_batches_before_it() {
    let text = document(1000).replace("]}", ",x]}");
    let file = Written::new("bad", text.as_bytes());
    let mut events = 0;
    let error = read_kineto_batches(&file.0, &ReadOptions::new().chunk_bytes(3000), 100, |batch| {
        events += batch.events[0].num_rows();
        true
    });
    assert_eq!(error.unwrap_err().slug(), "trace-malformed");
    assert!(events > 800, "{events}");
}

#[test]
fn a_second_array_of_events_is_refused_once_events_are_handed_on() {
    let text = format!("{},{}", document(300).trim_end_matches('}'), document(3).trim_start_matches('{'));
    let text = text.replace("]\n,", "],");
    let file = Written::new("two", text.as_bytes());
    let options = ReadOptions::new().chunk_bytes(3000);
    let error = read_kineto_batches(&file.0, &options, 10, |_| true).unwrap_err();
    assert_eq!(error.slug(), "trace-malformed");
    assert!(error.message().contains("second traceEvents"), "{}", error.message());
    assert_eq!(read_kineto(&file.0, &options).unwrap().num_events(), 3);
}

#[test]
fn events_of_a_time_are_those_that_lie_in_it_at_least_in_part() {
    // GIVEN events from 0.5 us on, one each us, of 2 us each
    let file = Written::new("range", document(100).as_bytes());
    for predict in [false, true] {
        for threads in [1, 3] {
            let options = ReadOptions::new().predict(predict).threads(threads).parts_from(1);
            // WHEN those of 50 to 60 us are asked for
            let some = read_kineto(&file.0, &options.time_range(50_000..60_000)).unwrap();
            // THEN the first one ends in it, the last one begins in it, and metadata events are all there
            let starts: Vec<i64> =
                some.events.iter().flat_map(|batch| numbers::<Int64Type>(batch, "start_ns")).flatten().collect();
            let expected: Vec<i64> = (0..100)
                .filter(|index| index % 7 == 3 || (48..60).contains(index))
                .map(|index| index * 1000 + 500)
                .collect();
            assert_eq!(starts, expected);
            assert_eq!(some.event_counts.iter().map(|count| count.kept + count.skipped).sum::<u64>(), 100);
            let rows: Vec<u32> = some
                .device_args
                .to_batches()
                .unwrap()
                .iter()
                .flat_map(|batch| numbers::<UInt32Type>(batch, "row"))
                .flatten()
                .collect();
            assert!(rows.iter().all(|&row| (row as usize) < starts.len()));
        }
    }
}
