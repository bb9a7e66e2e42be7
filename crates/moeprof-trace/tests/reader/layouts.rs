//! The layouts A to E of writers: the same content, different text.

use arrow_array::types::{Int64Type, UInt64Type};

use crate::{device_of, event_names, events_of, notices, numbers, read, texts};

const A: &str = r#"
  {
    "schemaVersion": 1,
  "baseTimeNanoseconds": 5,
  "traceEvents": [
  {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 17,
    "ts": 5214564668726.947, "dur": 3.776,
    "args": {
            "queued": 0, "device": 0, "context": 1,      "stream": 17, "correlation": 107,      "registers per thread": 32,      "grid": [5, 1, 1],      "block": [128, 1, 1],      "est. achieved occupancy %": 0
    }
  },
  {
    "ph": "s", "id": 107, "pid": 11788, "tid": 11788, "ts": 5214564668720.000,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "name": "process_name", "ph": "M", "ts": 5214564660888.685, "pid": 0, "tid": 0,
    "args": {
      "name": "worker"
    }
  }
  ],
  "traceName": "/tmp/t.json"
}"#;

const B: &str = r#" {
    "schemaVersion": 1,
    "baseTimeNanoseconds": 5,
    "traceEvents": [

  {
    "ph": "X",
    "cat": "kernel",
    "name": "gemm",
    "pid": 0,
    "tid": 17,
    "ts": 5214564668726.947,
    "dur": 3.776
    ,
    "args": {
      "queued": 0, "device": 0, "context": 1, "stream": 17,
      "correlation": 107, "registers per thread": 32,
      "occupancy": {"limitingFactors": ["registers"]},
      "grid": [5, 1, 1], "block": [128, 1, 1]
    }
  },
  {
    "ph": "s",

    "id": 107,
    "cat": "ac2g",
    "name": "ac2g",
    "pid": 11788, "tid": 11788,
    "ts": 5214564668720.000

  },
  {
    "ph": "M",
    "name": "process_name",
    "ts": 5214564660888.685,
    "pid": 0,
    "tid": 0,
    "args": {
      "name": "worker"
    }
  }
  ],"traceName": "/tmp/t.json" }"#;

#[test]
fn writers_may_lay_out_their_text_as_they_like() {
    // GIVEN the layouts A and B, and D, which is A without blanks
    let compact: String =
        A.split_whitespace().collect::<String>().replace("registersperthread", "registers per thread");
    let mut counts = Vec::new();
    for text in [A, B, &compact] {
        let file = read(text);
        // THEN all give the same
        assert_eq!(event_names(&file), ["gemm", "ac2g", "process_name"]);
        assert_eq!(file.categories, ["kernel", "ac2g", ""]);
        assert_eq!(file.phases, ["X", "s", "M"]);
        assert_eq!(
            numbers::<Int64Type>(events_of(&file), "start_ns"),
            [5_214_564_668_726_947, 5_214_564_668_720_000, 5_214_564_660_888_685].map(Some)
        );
        assert_eq!(numbers::<Int64Type>(events_of(&file), "duration_ns"), [Some(3776), None, None]);
        assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [Some(107), None, None]);
        assert_eq!(numbers::<Int64Type>(&device_of(&file), "block_x"), [Some(128)]);
        assert_eq!(numbers::<Int64Type>(&device_of(&file), "registers_per_thread"), [Some(32)]);
        assert_eq!(texts(&file.labels, "value"), [Some("worker".to_owned())]);
        assert_eq!(file.metadata_json, r#"{"schemaVersion":1,"baseTimeNanoseconds":5,"traceName":"/tmp/t.json"}"#);
        assert_eq!(notices(&file), []);
        counts.push(file.tracks.num_rows());
    }
    assert_eq!(counts, [3; 3]);
}

#[test]
fn the_python_export_writes_an_event_a_line_and_keys_twice() {
    let file = read(
        "{\"traceEvents\": [\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1.000, \"dur\": 2.000, \"args\": {\"External id\": 3, \"Ev Idx\": 1, \"External id\": 4}},\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"b\", \"pid\": 1, \"tid\": 1, \"ts\": 1.000, \"dur\": 2.000, \"args\": {\"External id\": 5, \"Ev Idx\": 1}}\n]}",
    );
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "external_id"), [Some(4), Some(5)]);
}

#[test]
fn the_layout_of_2021_has_whole_microseconds() {
    let file = read(
        r#"{"traceEvents":[{"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1623143089861000, "dur": 5, "args": {"device": 0, "stream": 7}}]}"#,
    );
    assert_eq!(numbers::<Int64Type>(events_of(&file), "start_ns"), [Some(1_623_143_089_861_000_000)]);
    assert_eq!(texts(&file.tracks, "thread"), [Some("stream 7".to_owned())]);
}
