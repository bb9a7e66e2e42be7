use std::path::Path;

use moeprof_trace::{ReadOptions, TraceError, read_kineto};

use crate::{events, recover, refuse};

fn malformed(event: &str) -> (u64, String) {
    let text = events(event);
    let (slug, at, message) = refuse(&text);
    assert_eq!(slug, "trace-malformed", "{event}: {message}");
    // Bytes are counted from the first event.
    (at.unwrap().0 - 16, message)
}

#[test]
fn nothing_is_empty() {
    assert_eq!(refuse(""), ("trace-empty", None, "the file is empty".to_owned()));
    assert_eq!(refuse(" \n").0, "trace-empty");
    assert_eq!(refuse("\u{feff}").0, "trace-empty");
}

#[test]
fn a_cut_text_is_truncated_wherever_it_is_cut() {
    let text = "{\"a\":{\"b\":[1,\"\\u00e9\",true]},\n\"traceEvents\":[{\"ph\":\"X\",\"ts\":1.5e1,\"args\":{\"grid\":[1,2,3]}},null],\"c\":-1}";
    for end in 1..text.len() {
        let (slug, at, _) = refuse(&text[..end]);
        let line = 1 + text[..end].matches('\n').count() as u64;
        assert_eq!((slug, at), ("trace-truncated", Some((end as u64, line))), "{}", &text[..end]);
    }
}

#[test]
fn a_cut_array_is_truncated_inside_an_event_only() {
    assert_eq!(refuse(r#"[{"ph":"X"},{"ph""#).0, "trace-truncated");
    assert_eq!(refuse("[").0, "trace-truncated");
    assert_eq!(refuse(r#"{"traceEvents":[{"ph":"i"}"#).2, "the file ends before its events do");
    assert_eq!(refuse(r#"{"traceEvents":[{"ph":"i"},{"#).2, "the file ends inside an event");
}

#[test]
fn a_second_document_is_an_error_even_in_recovery() {
    let text = events("") + "\n" + &events("");
    let (slug, at, message) = refuse(&text);
    assert_eq!((slug, at), ("trace-many-documents", Some((19, 2))));
    assert!(message.contains("more than one JSON document"), "{message}");
    assert_eq!(refuse("[][]").0, "trace-many-documents");
    let again = moeprof_trace::read_kineto_from(text.as_bytes(), &ReadOptions::new().recover(true));
    assert_eq!(again.expect_err("two documents").slug(), "trace-many-documents");
}

#[test]
fn an_unescaped_quote_is_at_the_string_that_it_ends() {
    let cause = "unescaped quote in a string".to_owned();
    assert_eq!(malformed(r#"{"name":"{"device": "cpu"}(12): run"}"#), (8, cause.clone()));
    assert_eq!(malformed(r#"{"name":"f("a", "b")"}"#), (8, cause.clone()));
    assert_eq!(malformed(r#"{"name":"say "hi" there"}"#), (8, cause.clone()));
    assert_eq!(malformed(r#"{"args":{"a"b":1}}"#), (9, cause.clone()));
    assert_eq!(refuse(r#"{"k":"a"b","traceEvents":[]}"#), ("trace-malformed", Some((5, 1)), cause));
}

#[test]
fn bad_escapes_are_named() {
    assert_eq!(malformed(r#"{"name":"C:\Windows"}"#), (11, r"invalid escape \W".to_owned()));
    assert_eq!(malformed(r#"{"name":"C:\users"}"#), (11, r"invalid escape \u".to_owned()));
    assert_eq!(malformed("{\"name\":\"\\\n\"}").0, 9);
}

#[test]
fn numbers_follow_json() {
    for number in ["01", "+1", ".5", "1.", "1e", "1e+", "-", "--1", "0x10", "1_000", "-.5", "1.5.2", "infinit", "nano"]
    {
        let (at, message) = malformed(&format!("{{\"ts\":{number}}}"));
        assert_eq!(at, 6, "{number}: {message}");
    }
    assert_eq!(malformed(r#"{"ts":01}"#).1, "not a number as JSON writes it");
    assert_eq!(malformed(r#"{"ts":True}"#).1, "a bare word that is not true, false, null or a number");
}

#[test]
fn punctuation_is_required() {
    assert_eq!(malformed(r#"{"a":1 "b":2}"#), (7, "a comma is missing between two values".to_owned()));
    assert_eq!(malformed(r#"{"a":"x" "b":2}"#), (5, "unescaped quote in a string".to_owned()));
    assert_eq!(malformed(r#"{"a":1} {"b":2}"#), (8, "a comma is missing between two values".to_owned()));
    assert_eq!(malformed(r"{a:1}"), (1, "a key in quotes was expected".to_owned()));
    assert_eq!(malformed(r#"{"a":}"#), (5, "a value was expected".to_owned()));
    assert_eq!(malformed(r"{,}").0, 1);
    assert_eq!(malformed(r#"{"a":[1}}"#).0, 7);
    assert_eq!(malformed("5"), (0, "an element of traceEvents is not an object".to_owned()));
    assert_eq!(malformed("\"null\"").0, 0);
}

#[test]
fn times_have_64_bits() {
    let (at, message) = malformed(r#"{"ts":9223372036854775.808}"#);
    assert_eq!((at, message.as_str()), (0, "a time that does not fit into 64 bits of nanoseconds"));
    assert_eq!(malformed(r#"{"dur":"1e300"}"#).0, 0);
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| format!("{{\"k\":{}{},\"traceEvents\":[]}}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(recover(nested(255)).metadata_json.len(), 6 + 2 * 255);
    assert_eq!(refuse(nested(256)).2, "more than 256 brackets are open");
    let args = |depth: usize| events(&format!("{{\"args\":{{\"k\":{}{}}}}}", "[".repeat(depth), "]".repeat(depth)));
    assert_eq!(recover(args(252)).num_events(), 1);
    assert_eq!(refuse(args(253)).2, "more than 256 brackets are open");
    assert_eq!(refuse("[".repeat(100_000)).0, "trace-malformed");
}

#[test]
fn garbage_after_the_document_is_malformed() {
    let (slug, at, _) = refuse(events("") + "\nxyz");
    assert_eq!((slug, at), ("trace-malformed", Some((19, 2))));
    assert_eq!(refuse(events("") + "]").0, "trace-malformed");
}

#[test]
fn wide_text_is_malformed() {
    let wide: Vec<u8> = "{\"traceEvents\":[]}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(refuse(&wide).0, "trace-malformed");
    let marked: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(
        refuse(marked),
        ("trace-malformed", Some((0, 1)), "the text is UTF-16 or UTF-32; a trace is UTF-8".to_owned())
    );
}

#[test]
fn other_files_are_named() {
    for (bytes, name) in [
        (&b"hello"[..], "neither JSON nor gzip"),
        (b"\0\0\0\0\0\0", "neither JSON nor gzip"),
        (b"42", "single JSON value"),
        (b"{}", "without traceEvents"),
        (br#"{"traceEvents":{}}"#, "without traceEvents"),
        (br#"{"traceEvents":[],"traceEvents":null}"#, "without traceEvents"),
    ] {
        let (slug, at, message) = refuse(bytes);
        assert_eq!((slug, at), ("not-a-trace", None), "{message}");
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_missing_file_is_an_io_error_with_its_path() {
    let error = read_kineto(Path::new("/nowhere/at.all"), &ReadOptions::new()).expect_err("no file");
    assert!(matches!(&error, TraceError::Io { path, .. } if path == Path::new("/nowhere/at.all")), "{error}");
    assert_eq!(error.position(), None);
}

#[test]
fn an_error_says_where() {
    let error = moeprof_trace::read_kineto_from(&b"{\n}{"[..], &ReadOptions::new()).expect_err("no events");
    assert_eq!(error.to_string(), ": a JSON object without traceEvents, so not a Kineto trace");
    let error = moeprof_trace::read_kineto_from(&b"{\n\"a\" 1"[..], &ReadOptions::new()).expect_err("no colon");
    assert_eq!(error.to_string(), ":2 (byte 2): unescaped quote in a string");
}

#[test]
fn a_number_that_a_string_touches_lacks_a_comma() {
    assert_eq!(refuse(r#"{"n":[-7.5"28"],"traceEvents":[]}"#).1, Some((10, 1)));
    assert_eq!(malformed(r#"{"a":[1"x"]}"#).0, 7);
    assert_eq!(malformed(r#"{"a":true"x"}"#).0, 9);
    assert_eq!(malformed(r#"{"a":true.x}"#).0, 5);
    assert_eq!(malformed("{\"a\":nan\u{1}}").0, 5);
}

#[test]
fn known_formats_are_named() {
    let cases: [(&[u8], &str); 8] = [
        (b"SQLite format 3\0x", "an SQLite database; Nsight Systems exports are not read yet"),
        (b"PAR1", "a Parquet file; Nsight Systems exports are not read yet"),
        (b"ARROW1\0\0", "an Arrow file; Nsight Systems exports are not read yet"),
        (b"\xff\xff\xff\xff\x10", "an Arrow stream; Nsight Systems exports are not read yet"),
        (b"NVIDIA Tegra Profiler Report 1", "an Nsight Systems report; Nsight Systems exports are not read yet"),
        (b"\x28\xb5\x2f\xfd\0", "zstd-compressed data; of compressed files only gzip is read"),
        (b"PK\x03\x04", "a zip archive; of compressed files only gzip is read"),
        (b"\x89PNG\r\n", "a PNG image; not a Kineto trace in JSON"),
    ];
    for (bytes, message) in cases {
        assert_eq!(refuse(bytes), ("format-unsupported", None, message.to_owned()));
    }
    let error = moeprof_trace::read_kineto_from(&b"PAR1"[..], &ReadOptions::new()).expect_err("no trace");
    assert!(matches!(error, TraceError::Unsupported { format: "Parquet", .. }), "{error}");
}

#[test]
fn the_cause_of_a_long_bad_word_does_not_depend_on_how_the_text_arrives() {
    // GIVEN words that look like numbers only far behind their beginning; `refuse` reads them whole and in pieces
    for word in
        ["infinityfoot5", "xyzxyzxyzxyzxyz.5", "nanananananana-1", "truefalsenull9", "-infinity5", "1infinity99999"]
    {
        let (slug, _, _) = refuse(events(&format!("{{\"ts\": {word}}}")));
        assert_eq!(slug, "trace-malformed", "{word}");
    }
}
