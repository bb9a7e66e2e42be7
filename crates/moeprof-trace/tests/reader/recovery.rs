use moeprof_trace::{ReadOptions, read_kineto_from};

use crate::{event_names, events, notices, recover};

#[test]
fn a_malformed_event_is_dropped_and_the_rest_read() {
    let text = events(
        "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1},\n{\"ph\":\"X\",\"name\":\"f({\"name\": 1})\",\"ts\":1,\"args\":{\"name\":1}},\n{\"ph\":\"X\",\"name\":\"C:\\W\",\"ts\":1},\n{\"ph\":\"X\",\"name\":\"b\",\"ts\":1}",
    );
    let file = recover(&text);
    assert_eq!(event_names(&file), ["a", "b"]);
    let at = text.find("\"f(").unwrap() as u64;
    assert_eq!(notices(&file), [("dropped-event", 2, at)]);
    assert_eq!(file.notices[0].example, "unescaped quote in a string");
    assert_eq!(file.notices[0].first.line, 2);
    assert!(file.partial);
}

#[test]
fn a_lost_closing_quote_or_brace_costs_one_event() {
    let quote = events(
        r#"{"ph":"X","ts":1,"name":"a"},{"ph":"X","ts":1,"name":"b},{"ph":"X","ts":1,"name":"c"},{"ph":"X","ts":1,"name":"d"}"#,
    );
    assert_eq!(event_names(&recover(quote)), ["a", "c", "d"]);
    let brace = events(r#"{"ph":"X","ts":1,"args":{"a":1},{"ph":"X","ts":1,"name":"c"}"#);
    assert_eq!(event_names(&recover(brace)), ["c"]);
}

#[test]
fn a_malformed_last_event_does_not_cost_the_metadata() {
    let file = recover(r#"{"traceEvents":[{"name":"a"},{"name":"b"c"}],"traceName":"t"}"#);
    assert_eq!(event_names(&file), ["a"]);
    assert_eq!(file.metadata_json, r#"{"traceName":"t"}"#);
    assert_eq!(event_names(&recover(r#"[{"name":"a"},{"name":"b"c"}]"#)), ["a"]);
}

#[test]
fn an_event_out_of_range_is_dropped() {
    let file = recover(events(r#"{"name":"a","ts":1},{"name":"b","ts":1e300},{"name":"c","ts":2}"#));
    assert_eq!(event_names(&file), ["a", "c"]);
    assert_eq!(file.notices[0].slug, "dropped-event");
    assert_eq!(file.event_counts[0].kept, 2);
}

#[test]
fn a_dropped_event_leaves_no_other_notice() {
    let file = recover(events("{\"name\":\"\u{1}\",\"ts\":inf,\"dur\":x}"));
    assert_eq!(file.notices.iter().map(|notice| notice.slug).collect::<Vec<_>>(), ["dropped-event"]);
}

#[test]
fn a_cut_file_gives_what_is_whole() {
    let text = r#"{"k":1,"traceEvents":[{"name":"a"},{"name":"b"}],"z":2}"#;
    let first = text.find("},").unwrap() + 1;
    let second = text.find("}]").unwrap() + 1;
    for end in text.find('[').unwrap() + 1..text.len() {
        let file = recover(&text[..end]);
        assert!(file.partial);
        assert_eq!(notices(&file), [("truncated", 1, end as u64)]);
        assert_eq!(file.num_events(), usize::from(end >= first) + usize::from(end >= second), "{end}");
    }
}

#[test]
fn a_file_cut_before_its_events_stays_an_error() {
    let result = read_kineto_from(&b"{\"k\":1,\"traceEve"[..], &ReadOptions::new().recover(true));
    assert_eq!(result.expect_err("no events").slug(), "trace-truncated");
}

#[test]
fn what_is_no_trace_stays_an_error() {
    for (text, slug) in
        [("", "trace-empty"), ("{}", "not-a-trace"), ("PAR1", "format-unsupported"), ("[]{}", "trace-many-documents")]
    {
        let result = read_kineto_from(text.as_bytes(), &ReadOptions::new().recover(true));
        assert_eq!(result.expect_err(text).slug(), slug);
    }
}

#[test]
fn a_sound_file_is_not_partial() {
    assert!(!recover(events(r#"{"name":"a"}"#)).partial);
}

#[test]
fn reading_resumes_behind_the_fault_and_not_inside_the_event_before_it() {
    let file = recover(events(r#"{"args":{"x":[1,{"id":1}]},"bad":\q},{"ph":"i"}"#));
    assert_eq!((file.phases, file.metadata_json.as_str()), (vec!["i".to_owned()], "{}"));
}

#[test]
fn what_follows_what_looked_like_the_end_after_a_dropped_event_is_trailing_data() {
    let file = recover(r#"{"traceEvents":[{"a":\,"args":{"x":[{"id":1}]}},{"ph":2}]}"#);
    assert_eq!(notices(&file), [("dropped-event", 1, 21), ("trailing-data", 1, 46)]);
    assert!(file.partial);
}

#[test]
fn a_stray_brace_does_not_hide_the_end_of_the_array() {
    let file = recover(r#"{"traceEvents":[{"ph":1},}],"b":1}"#);
    assert_eq!((notices(&file), file.metadata_json.as_str()), (vec![("dropped-event", 1, 25)], r#"{"b":1}"#));
    assert_eq!(notices(&recover("[{}, } ]")), [("empty-event", 1, 1), ("dropped-event", 1, 5)]);
}

#[test]
fn a_dropped_event_leaves_no_code_no_count_and_no_notice() {
    // GIVEN an event whose duration is out of range, with a name, phase, category and track of its own
    let bad =
        r#"{"ph":"Q","cat":"q","name":"\ud800","pid":9,"ts":1.0001,"dur":1e300,"args":{"x":[1,],"correlation":-1}}"#;
    let file = recover(events(&format!(r#"{bad},{{"ph":"i","name":"b"}}"#)));
    // THEN only the other one is seen
    assert_eq!(notices(&file), [("dropped-event", 1, 16)]);
    assert_eq!((file.phases, file.categories), (vec!["i".to_owned()], vec![String::new()]));
    assert_eq!((file.names.num_rows(), file.tracks.num_rows(), file.event_counts.len()), (1, 1, 1));
}

#[test]
fn more_phases_than_codes_drop_the_events_that_have_them() {
    let list: Vec<String> = (0..300).map(|number| format!(r#"{{"ph":"{number}","name":"n{number}"}}"#)).collect();
    let file = recover(events(&list.join(",")));
    assert_eq!((file.phases.len(), file.names.num_rows(), file.num_events()), (256, 256, 256));
    assert_eq!((file.notices[0].slug, file.notices[0].count), ("dropped-event", 44));
}

#[test]
fn lines_are_counted_for_the_first_drop_only() {
    // GIVEN text whose lines are counted forwards and backwards: a notice behind, then one before
    let text = events("{\"name\":\"\\q\"},\n{\"name\":\"a\"},\n{\"name\":\"\\w\"},\n\n{\"name\":\"\u{1}\"}");
    let file = recover(&text);
    let lines: Vec<u64> = file.notices.iter().map(|notice| notice.first.line).collect();
    assert_eq!((notices(&file)[0].1, lines), (2, vec![1, 5]));
}
