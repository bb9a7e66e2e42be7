use arrow_array::types::{Int64Type, UInt64Type};

use crate::{event_names, events, events_of, names, notices, numbers, read};

/// The offset of something in a text.
fn byte(text: impl AsRef<[u8]>, what: &str) -> u64 {
    let what = what.as_bytes();
    text.as_ref().windows(what.len()).position(|window| window == what).unwrap() as u64
}

#[test]
fn invalid_utf8_counts_strings_and_replaces_maximal_subparts() {
    // GIVEN two bad strings, one of them with two bad places, in front of a good one
    let text =
        b"{\"traceEvents\":[\n{\"name\":\"a\xe2\x82b\xff\"},{\"name\":\"\xed\xa0\x80\"},{\"name\":\"\xc3\xa9\"}]}";
    let file = read(text);
    // THEN the first bad byte is the place, and each subpart one U+FFFD
    assert_eq!(notices(&file), [("invalid-utf8", 2, 27)]);
    assert_eq!(file.notices[0].first.line, 2);
    assert_eq!(names(&file), ["a\u{fffd}b\u{fffd}", "\u{fffd}\u{fffd}\u{fffd}", "\u{e9}"]);
}

#[test]
fn lone_surrogates_are_replaced() {
    let text = events(r#"{"name":"a\ud800"},{"name":"\udc00b"},{"name":"\ud800\ud83d\ude00"},{"name":"\ud83d\ude00"}"#);
    let file = read(&text);
    assert_eq!(notices(&file), [("lone-surrogate", 3, byte(&text, "\\ud800"))]);
    assert_eq!(names(&file), ["a\u{fffd}", "\u{fffd}b", "\u{fffd}\u{1f600}", "\u{1f600}"]);
}

#[test]
fn control_characters_are_kept() {
    let text = events("{\"name\":\"a\nb\u{1}\"}");
    let file = read(&text);
    assert_eq!(notices(&file), [("control-character", 1, byte(&text, "\n"))]);
    assert_eq!(names(&file), ["a\nb\u{1}"]);
}

#[test]
fn numbers_that_are_not_finite_are_absent() {
    let text = events(
        r#"{"ts":NaN,"dur":-Infinity,"pid":inf,"args":{"correlation":"nan","x":[+INF,-nan],"y":"inf","device":"Infinity"}}"#,
    );
    let file = read(&text);
    assert_eq!(notices(&file), [("non-finite-number", 7, byte(&text, "NaN"))]);
    assert_eq!(file.notices[0].example, "NaN");
    assert_eq!(numbers::<Int64Type>(events_of(&file), "start_ns"), [None]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [None]);
    assert_eq!(file.device_args.num_rows(), 0);
}

#[test]
fn trailing_commas_are_ignored_everywhere() {
    let text = r#"{"k":[1,],"traceEvents":[{"name":"a","args":{"x":{},},}, ],}"#;
    let file = read(text);
    assert_eq!(notices(&file), [("trailing-comma", 5, 7)]);
    assert_eq!(event_names(&file), ["a"]);
    assert_eq!(file.metadata_json, r#"{"k":[1]}"#);
}

#[test]
fn empty_events_are_not_events() {
    let text = events(r#"{"name":"a"}, { } ,null,{"name":"b"}"#);
    let file = read(&text);
    assert_eq!(notices(&file), [("empty-event", 2, byte(&text, "{ }"))]);
    assert_eq!(event_names(&file), ["a", "b"]);
    assert_eq!(file.event_counts[0].kept, 2);
}

#[test]
fn an_array_may_stay_open() {
    for text in [r#"[{"name":"a"}"#, "[{\"name\":\"a\"},\n"] {
        let file = read(text);
        assert_eq!(notices(&file), [("missing-end-mark", 1, text.len() as u64)]);
        assert_eq!(event_names(&file), ["a"]);
        assert!(!file.partial);
    }
}

#[test]
fn bad_ids_are_absent() {
    let text = events(
        r#"{"args":{"correlation":-1,"External id":1.5}},{"args":{"correlation":18446744073709551616,"external id":"-7"}},{"args":{"correlation":-0,"External id":"x"}}"#,
    );
    let file = read(&text);
    assert_eq!(notices(&file), [("bad-id", 4, byte(&text, "-1"))]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [None, None, Some(0)]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "external_id"), [None; 3]);
}

#[test]
fn digits_below_a_nanosecond_are_rounded() {
    let text = events(r#"{"ts":1.0005,"dur":"0.0015"},{"ts":"1712195495521957.920","dur":5e3},{"ts":"x","dur":".5"}"#);
    let file = read(&text);
    assert_eq!(notices(&file), [("sub-nanosecond", 2, byte(&text, "1.0005"))]);
    assert_eq!(numbers::<Int64Type>(events_of(&file), "start_ns"), [Some(1000), Some(1_712_195_495_521_957_920), None]);
    assert_eq!(numbers::<Int64Type>(events_of(&file), "duration_ns"), [Some(2), Some(5_000_000), None]);
}

#[test]
fn an_interval_without_a_time_is_kept() {
    let text = events(r#"{"ph":"i"},{"ph":"X","name":"late","dur":1},{"ph":"X","ts":"soon"}"#);
    let file = read(&text);
    assert_eq!(notices(&file), [("missing-time", 2, byte(&text, r#"{"ph":"X","name""#))]);
    assert_eq!(file.notices[0].example, "late");
    assert_eq!(file.num_events(), 3);
}

#[test]
fn zeros_after_the_document_are_ignored() {
    let text = events("") + "\n\0\0\0 \0";
    let file = read(&text);
    assert_eq!(notices(&file), [("trailing-data", 1, byte(&text, "\0"))]);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let file = read("\u{feff}{\"traceEvents\":[{\"ph\":\"i\"}]}");
    assert_eq!(notices(&file), []);
    assert_eq!(file.num_events(), 1);
}
