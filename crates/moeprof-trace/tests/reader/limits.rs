use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use moeprof_trace::{ReadOptions, read_kineto};

use crate::{event_names, events, read_with};

fn long(bytes: usize) -> String {
    events(&format!(r#"{{"name":"a"}},{{"name":"{}"}},{{"name":"b"}}"#, "x".repeat(bytes)))
}

#[test]
fn an_event_may_be_as_long_as_the_limit() {
    // GIVEN an event of 11 bytes and 100 of text
    let limit = |bytes| ReadOptions::new().max_event_bytes(bytes);
    assert_eq!(read_with(long(100).as_bytes(), &limit(111)).unwrap().num_events(), 3);
    let error = read_with(long(100).as_bytes(), &limit(110)).unwrap_err();
    assert_eq!((error.slug(), error.position().unwrap().byte), ("trace-malformed", 29));
    assert!(error.message().contains("longer than 110 bytes"), "{}", error.message());
}

#[test]
fn a_longer_event_is_dropped_in_recovery() {
    let file = read_with(long(100).as_bytes(), &ReadOptions::new().max_event_bytes(110).recover(true)).unwrap();
    assert_eq!(event_names(&file), ["a", "b"]);
    assert_eq!(file.notices[0].slug, "dropped-event");
}

#[test]
fn metadata_has_the_limit_too() {
    let text = format!(r#"{{"k":"{}","traceEvents":[]}}"#, "x".repeat(5000));
    let options = ReadOptions::new().max_event_bytes(1000).chunk_bytes(100);
    let error = moeprof_trace::read_kineto_from(text.as_bytes(), &options).unwrap_err();
    assert_eq!(error.slug(), "trace-malformed");
}

fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"{\"traceEvents\":[").unwrap();
    encoder.write_all(&vec![b' '; 4_000_000]).unwrap();
    encoder.write_all(b"]}").unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_gzip_inflates_to_has_limits() {
    let folder = std::env::temp_dir().join(format!("moeprof-limits-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("bomb.json.gz");
    std::fs::write(&path, [bomb(), vec![0; 1 << 18]].concat()).unwrap();
    let read = |options: ReadOptions| read_kineto(&path, &options).map_err(|error| (error.slug(), error.message()));
    // WHEN it is read on one thread or with another that inflates
    for threads in [1, 2] {
        let options = ReadOptions::new().threads(threads);
        // THEN it is read within the limits and refused beyond them
        assert_eq!(read(options.clone()).unwrap().bytes_read, 4_000_018);
        let (slug, message) = read(options.clone().max_inflated_bytes(3_000_000)).unwrap_err();
        assert_eq!((slug, message.as_str()), ("trace-malformed", "the gzip data inflates to more than 3000000 bytes"));
        let (slug, message) = read(options.clone().max_inflate_ratio(20, 1 << 20)).unwrap_err();
        assert!(slug == "trace-malformed" && message.contains("20 times its size"), "{message}");
        assert!(read(options.max_inflate_ratio(20, 1 << 23)).is_ok());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_too_long_does_not_depend_on_how_the_text_arrives() {
    // GIVEN values that are whole, broken or no event, and longer than the limit
    let long = "x".repeat(300);
    let texts = [
        format!("{{\"k\": \"{long}\"}}"),
        format!("{{\"k\": [\"{long}\" 1], \"traceEvents\": []}}"),
        format!("{{\"k\": \"{long}\" x, \"traceEvents\": []}}"),
        format!("{{\"traceEvents\": [{{\"name\": \"{long}\"x}}, {{\"ts\": 1}}]}}"),
        format!("{{\"traceEvents\": [[\"{long}\"], {{\"ts\": 1}}]}}"),
    ];
    for text in texts {
        for recover in [false, true] {
            // WHEN they are read whole and in pieces (which read_with does), THEN all say that the limit was met
            let options = ReadOptions::new().max_event_bytes(100).recover(recover);
            let outcome = crate::outcome(&read_with(text.as_bytes(), &options));
            assert!(outcome.contains("longer than 100 bytes"), "{outcome}");
        }
    }
}
