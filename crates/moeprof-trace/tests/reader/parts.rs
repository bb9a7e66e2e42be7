//! A file read in parts is the file read as one.

use std::path::PathBuf;

use moeprof_trace::{ReadOptions, read_kineto};
use proptest::prelude::*;

use crate::outcome;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("moeprof-parts-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads a text with 1 to 5 threads, strictly and in recovery, and sees to it that nothing differs.
fn assert_same(folder: &Folder, text: &[u8]) {
    let path = folder.0.join("trace.json");
    std::fs::write(&path, text).unwrap();
    for recover in [false, true] {
        let options = ReadOptions::new().recover(recover).skip_categories(["skipped"]).parts_from(1);
        let one = outcome(&read_kineto(&path, &options.clone().threads(1)));
        for threads in 2..=5 {
            let parts = outcome(&read_kineto(&path, &options.clone().threads(threads)));
            assert_eq!(parts, one, "{threads} threads, recover {recover}");
        }
    }
}

fn event(index: usize) -> String {
    let odd = match index % 11 {
        3 => r#","args":{"device":0,"stream":"7","grid":[1,2,3],"correlation":-5}"#,
        5 => r#","args":{"Collective name":"all","dtype":"b","Seq":5,"x":[{"ph":1},{"ph":2}]}"#,
        7 => r#","dur":1.00005,"args":{"bytes":5,"y":[1,],"z":NaN}"#,
        9 => ",\"bp\":\"a\u{1}\\ud800\"",
        _ => "",
    };
    let category = ["kernel", "skipped", "k\\u0065rnel", "late"][(index / 3) % if index > 60 { 4 } else { 3 }];
    format!(
        r#"{{"ph":"{}","cat":"{category}","name":"n{}","pid":{},"tid":"t{}","ts":{index}.5{odd}}}"#,
        if index.is_multiple_of(13) { "M" } else { "X" },
        index / 4,
        index % 3,
        index % 5
    )
}

fn document(count: usize, between: &str) -> String {
    let list: Vec<String> = (0..count).map(event).collect();
    format!("{{\"a\":1,\n\"traceEvents\":[{}],\n\"b\":NaN}}", list.join(between))
}

#[test]
fn tables_notices_and_metadata_are_those_of_the_file_as_one() {
    let folder = Folder::new("same");
    for count in [0, 1, 2, 3, 10, 64, 65, 130, 200, 500] {
        assert_same(&folder, document(count, ",\n  ").as_bytes());
        let list: Vec<String> = (0..count).map(event).collect();
        assert_same(&folder, format!("\u{feff} [{}]", list.join(",")).as_bytes());
        assert_same(&folder, format!("[{},", list.join(",")).as_bytes());
    }
}

#[test]
fn what_only_looks_like_an_event_is_no_place_to_cut() {
    let folder = Folder::new("looks");
    // GIVEN text in which most of what looks like the start of an event is inside a string or a list
    let string = format!(r#"{{"ph":"X","ts":1,"name":"{}"}}"#, r#"x,{\"ph\":1},"#.repeat(300));
    let raw = format!("{{\"ph\":\"X\",\"ts\":1,\"name\":\"{}\"}}", ",{'ph':1}".repeat(300));
    let list = format!(r#"{{"ph":"X","ts":1,"args":{{"x":[0{}]}}}}"#, r#",{"ph":1}"#.repeat(300));
    for trap in [string, raw, list] {
        assert_same(&folder, format!("{{\"traceEvents\":[{},{trap},{}]}}", event(1), event(2)).as_bytes());
    }
    let other = format!(r#"{{"k":[0{}],"traceEvents":[{}]}}"#, r#",{"ph":1}"#.repeat(300), event(1));
    assert_same(&folder, other.as_bytes());
    let twice = format!("{{\"traceEvents\":[{}],\"traceEvents\":[{}]}}", event(1), event(2));
    assert_same(&folder, twice.as_bytes());
    let many = document(40, ",").replace("\"b\":NaN", "\"traceEvents\":[{\"ph\":\"i\"}]");
    assert_same(&folder, many.as_bytes());
    assert_same(&folder, (document(40, ",") + &document(40, ",")).as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_judged_alike(
        edits in prop::collection::vec((0usize..8000, prop::sample::select(b"{}[]\",:\\ \n1NX\0\xff".to_vec()), 0..3u8), 0..3),
        cut in prop::option::of(0usize..8000)
    ) {
        let folder = Folder::new("damaged");
        let mut bytes = document(80, ",\n ").into_bytes();
        for (at, byte, kind) in edits {
            let at = at % bytes.len();
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut);
        }
        assert_same(&folder, &bytes);
    }
}

#[test]
fn a_second_array_of_events_takes_the_place_of_one_that_was_cut() {
    // GIVEN two arrays of events, the first long enough that the first cut is in it
    let folder = Folder::new("arrays");
    for (first, second) in [(20, 1), (20, 20), (1, 20), (3, 2)] {
        let list = |count| (0..count).map(event).collect::<Vec<_>>().join(",\n");
        let text = format!("{{\"traceEvents\":[{}],\"traceEvents\":[{}]}}", list(first), list(second));
        // WHEN it is read in parts, THEN only the last array counts, as where it is read as one
        assert_same(&folder, text.as_bytes());
    }
}
