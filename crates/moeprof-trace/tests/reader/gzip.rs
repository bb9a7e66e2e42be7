use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{event_names, events, notices, read, recover, refuse};

fn zip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

const TEXT: &str = r#"{"traceEvents":[{"name":"a"},{"name":"b"}]}"#;

#[test]
fn the_first_bytes_decide() {
    let file = read(zip(TEXT.as_bytes()));
    assert_eq!(event_names(&file), ["a", "b"]);
    assert_eq!(file.bytes_read, TEXT.len() as u64);
}

#[test]
fn all_members_are_read() {
    let (left, right) = TEXT.split_at(30);
    let file = read([zip(left.as_bytes()), zip(b""), zip(right.as_bytes())].concat());
    assert_eq!(event_names(&file), ["a", "b"]);
    assert_eq!(notices(&file), []);
}

#[test]
fn two_members_may_be_two_documents() {
    let (slug, at, _) = refuse([zip(TEXT.as_bytes()), zip(TEXT.as_bytes())].concat());
    assert_eq!((slug, at), ("trace-many-documents", Some((TEXT.len() as u64, 1))));
}

#[test]
fn zeros_after_the_members_are_ignored() {
    let file = read([zip(TEXT.as_bytes()), vec![0; 1000]].concat());
    assert_eq!(notices(&file), [("trailing-data", 1, TEXT.len() as u64)]);
    assert_eq!(event_names(&file), ["a", "b"]);
}

#[test]
fn anything_else_after_the_members_is_malformed() {
    for rest in [&b"x"[..], b"\0\0x", b"{}"] {
        let (slug, at, message) = refuse([zip(TEXT.as_bytes()), rest.to_vec()].concat());
        assert_eq!((slug, at), ("trace-malformed", Some((TEXT.len() as u64, 1))), "{message}");
    }
}

#[test]
fn compressed_data_that_ends_early_is_truncated() {
    let zipped = zip(TEXT.as_bytes());
    for end in 3..zipped.len() {
        let (slug, _, message) = refuse(&zipped[..end]);
        assert_eq!((slug, message.as_str()), ("trace-truncated", "the compressed data ends early"), "{end}");
    }
    let text = events(&vec![r#"{"name":"a"}"#; 5000].join(","));
    let zipped = zip(text.as_bytes());
    let file = recover(&zipped[..zipped.len() - 1]);
    assert_eq!(file.num_events(), 5000);
    assert!(file.partial);
    assert_eq!(file.notices[0].slug, "truncated");
}

#[test]
fn corrupt_data_is_malformed() {
    let mut zipped = zip(TEXT.as_bytes());
    let checksum = zipped.len() - 8;
    zipped[checksum] ^= 1;
    let (slug, _, message) = refuse(&zipped);
    assert_eq!(slug, "trace-malformed");
    assert!(message.starts_with("corrupt gzip data"), "{message}");
    assert_eq!(refuse(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff\xff").0, "trace-malformed");
}

#[test]
fn what_inflates_to_nothing_is_empty() {
    assert_eq!(refuse(zip(b"")).0, "trace-empty");
    assert_eq!(refuse(zip(&zip(b"{}"))).2, "gzip inside gzip; unpack it once");
}

#[test]
fn a_thread_that_inflates_beside_tells_the_same() {
    // GIVEN a large file with zeros and then something else behind its members
    let text = events(&vec![r#"{"name":"a"}"#; 5000].join(","));
    let path = std::env::temp_dir().join(format!("moeprof-beside-{}.json.gz", std::process::id()));
    for rest in [&b""[..], b"\0\0", b"\0\0x", b"x"] {
        std::fs::write(&path, [&zip(text.as_bytes()), rest].concat()).unwrap();
        // WHEN it is read by one thread and by two, THEN the outcome is the same
        let [one, two] = [1, 2].map(|threads| {
            let options = moeprof_trace::ReadOptions::new().recover(true).threads(threads).parts_from(1);
            crate::outcome(&moeprof_trace::read_kineto(&path, &options))
        });
        assert_eq!(one, two);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_comes_out_of_damaged_data_is_the_same_with_a_thread_beside() {
    // GIVEN compressed data with one bit wrong, at many places
    let list: Vec<String> = (0..20_000).map(|index| format!(r#"{{"name":"n{}"}}"#, index * index % 7919)).collect();
    let zipped = zip(events(&list.join(",")).as_bytes());
    let path = std::env::temp_dir().join(format!("moeprof-damaged-{}.json.gz", std::process::id()));
    for at in (20..zipped.len()).step_by(zipped.len() / 40) {
        let mut damaged = zipped.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).unwrap();
        // WHEN what can be had of it is read by one thread and by two, THEN it is the same
        let [one, two] = [1, 2].map(|threads| {
            let options = moeprof_trace::ReadOptions::new().recover(true).threads(threads).parts_from(1);
            crate::outcome(&moeprof_trace::read_kineto(&path, &options))
        });
        assert!(one == two, "{at}");
    }
    std::fs::remove_file(path).unwrap();
}
