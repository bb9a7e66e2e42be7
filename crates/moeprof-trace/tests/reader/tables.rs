use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use moeprof_trace::ReadOptions;

use crate::{device_of, event_names, events, events_of, names, notices, numbers, read, read_with, texts};

#[test]
fn keys_may_come_in_any_order() {
    // GIVEN one event with its args first and one in the usual order
    let file = read(events(
        r#"{"args":{"correlation":7,"stream":3,"device":1},"dur":2,"ts":1.5,"tid":"t","pid":4,"name":"b","cat":"kernel","ph":"X"},
           {"ph":"X","cat":"kernel","name":"a","pid":4,"tid":"t","ts":1.5,"dur":2,"args":{"device":1,"stream":3,"correlation":7}}"#,
    ));
    // THEN both rows hold the same but for the name
    assert_eq!(names(&file), ["b", "a"]);
    assert_eq!(numbers::<UInt8Type>(events_of(&file), "ph"), [Some(0); 2]);
    assert_eq!(numbers::<UInt16Type>(events_of(&file), "category"), [Some(0); 2]);
    assert_eq!(numbers::<UInt32Type>(events_of(&file), "track"), [Some(0); 2]);
    assert_eq!(numbers::<Int64Type>(events_of(&file), "start_ns"), [Some(1500); 2]);
    assert_eq!(numbers::<Int64Type>(events_of(&file), "duration_ns"), [Some(2000); 2]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [Some(7); 2]);
    assert_eq!(numbers::<UInt32Type>(&device_of(&file), "row"), [Some(0), Some(1)]);
    assert_eq!(numbers::<Int64Type>(&device_of(&file), "stream"), [Some(3); 2]);
}

#[test]
fn ids_are_exact_up_to_the_last() {
    let file = read(events(
        r#"{"args":{"correlation":9223372036854775808,"External id":18446744073709551615}},
           {"args":{"correlation":"9223372036854775807","external id":"0"}}"#,
    ));
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [Some(1 << 63), Some((1 << 63) - 1)]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "external_id"), [Some(u64::MAX), Some(0)]);
    assert_eq!(notices(&file), []);
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let file = read(events(
        r#"{"ph":"i","ph":"X","name":"a","name":"b","ts":1,"ts":2,"args":{"correlation":1,"device":0},"args":{"correlation":2,"correlation":3}},
           {"name":"c","name":5,"ts":1,"ts":null,"args":{"correlation":4},"args":[]}"#,
    ));
    assert_eq!(file.phases, ["X", ""]);
    assert_eq!(event_names(&file), ["b", ""]);
    assert_eq!(numbers::<Int64Type>(events_of(&file), "start_ns"), [Some(2000), None]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [Some(3), None]);
    assert_eq!(file.device_args.num_rows(), 0);
}

#[test]
fn the_last_of_two_lists_of_events_counts() {
    let file = read(r#"{"traceEvents":[{"name":"a"}],"k":1,"traceEvents":[{"name":"b"},{"name":"c"}]}"#);
    assert_eq!(event_names(&file), ["b", "c"]);
    assert_eq!(file.metadata_json, r#"{"k":1}"#);
}

#[test]
fn escaped_keys_are_keys() {
    let file = read(r#"{"trace\u0045vents":[{"n\u0061me":"a","args":{"correl\u0061tion":5}}]}"#);
    assert_eq!(event_names(&file), ["a"]);
    assert_eq!(numbers::<UInt64Type>(events_of(&file), "correlation"), [Some(5)]);
}

#[test]
fn two_spellings_of_a_name_share_a_code() {
    let file = read(events(
        r#"{"name":"a/\u0062\n"},{"name":"\u0061\/b\u000a"},{"name":"a\\nb"},{"name":"a/b"},{"name":"\ud83d\ude00"}"#,
    ));
    assert_eq!(names(&file), ["a/b\n", "a\\nb", "a/b", "\u{1f600}"]);
    assert_eq!(numbers::<UInt32Type>(events_of(&file), "name"), [0, 0, 1, 2, 3].map(Some));
}

#[test]
fn tracks_are_told_apart_by_their_text() {
    let file = read(events(
        r#"{"pid":1,"tid":2},{"pid":"1","tid":2},{"pid":12,"tid":""},{"pid":1,"tid":"2\u0000"},{"pid":null,"tid":{}},{"pid":"","tid":""},{"pid":1.50,"tid":-3}"#,
    ));
    assert_eq!(numbers::<UInt32Type>(events_of(&file), "track"), [0, 0, 1, 2, 3, 3, 4].map(Some));
    assert_eq!(texts(&file.tracks, "process"), ["1", "12", "1", "", "1.50"].map(|text| Some(text.to_owned())));
    assert_eq!(texts(&file.tracks, "thread"), ["2", "", "2\0", "", "-3"].map(|text| Some(text.to_owned())));
}

#[test]
fn device_args_hold_what_is_an_integer() {
    let file = read(events(
        r#"{"args":{"device":"0","stream":7,"grid":[1,2,3],"block":[4,"5"],"registers per thread":32,"shared memory":48.5,"occupancy":{"limitingFactors":["a",{"b":[]}]},"graph id":9,"graph node id":18446744073709551615}},
           {"args":{"bytes":"4096","memory bandwidth (GB/s)":1.5e3}},
           {"args":{"Bytes":-512}},
           {"args":{"device":1.5,"stream":null,"bytes":"many"}},
           {"args":{"grid":[1,1,1]}}"#,
    ));
    let device = &device_of(&file);
    assert_eq!(numbers::<UInt32Type>(device, "row"), [0, 1, 2].map(Some));
    assert_eq!(numbers::<Int64Type>(device, "device"), [Some(0), None, None]);
    assert_eq!(numbers::<Int64Type>(device, "stream"), [Some(7), None, None]);
    assert_eq!(numbers::<Int64Type>(device, "grid_z"), [Some(3), None, None]);
    assert_eq!(numbers::<Int64Type>(device, "block_x"), [Some(4), None, None]);
    assert_eq!(numbers::<Int64Type>(device, "block_y"), [None, None, None]);
    assert_eq!(numbers::<Int64Type>(device, "registers_per_thread"), [Some(32), None, None]);
    assert_eq!(numbers::<Int64Type>(device, "shared_memory"), [None, None, None]);
    assert_eq!(numbers::<Int64Type>(device, "bytes"), [None, Some(4096), Some(-512)]);
    assert_eq!(numbers::<UInt64Type>(device, "graph_id"), [Some(9), None, None]);
    assert_eq!(numbers::<UInt64Type>(device, "graph_node_id"), [Some(u64::MAX), None, None]);
}

#[test]
fn collective_args_need_the_name_of_the_collective() {
    let file = read(events(
        r#"{"args":{"dtype":"Byte","Group size":2}},
           {"args":{"Collective name":"allreduce","dtype":"Byte","Process Group Name":"0","Process Group Description":"default_pg","Process Group Ranks":"[0, 1]","In msg nelems":5,"Out msg nelems":10,"Group size":2,"Src Rank":-1,"Dst Rank":1,"Seq":3,"Comms Id":17749987215303163904}}"#,
    ));
    let collective = &file.collective_args;
    assert_eq!(numbers::<UInt32Type>(collective, "row"), [Some(1)]);
    for (column, text) in [
        ("collective", "allreduce"),
        ("dtype", "Byte"),
        ("group_name", "0"),
        ("group_description", "default_pg"),
        ("group_ranks", "[0, 1]"),
    ] {
        assert_eq!(texts(collective, column), [Some(text.to_owned())]);
    }
    for (column, number) in
        [("in_elements", 5), ("out_elements", 10), ("group_size", 2), ("source_rank", -1), ("destination_rank", 1)]
    {
        assert_eq!(numbers::<Int64Type>(collective, column), [Some(number)], "{column}");
    }
    assert_eq!(numbers::<UInt64Type>(collective, "sequence"), [Some(3)]);
    assert_eq!(numbers::<UInt64Type>(collective, "comms_id"), [Some(17_749_987_215_303_163_904)]);
}

#[test]
fn labels_come_from_metadata_events_only() {
    let file = read(events(
        r#"{"ph":"M","args":{"name":"n","labels":"l","sort_index":1}},{"ph":"M","args":{"sort_index":5,"labels":"GPU 0"}},
           {"ph":"M","args":{"sort_index":536870912}},{"ph":"X","ts":1,"args":{"name":"no"}},{"ph":"M","args":{"name":5}},{"ph":"M"}"#,
    ));
    assert_eq!(numbers::<UInt32Type>(&file.labels, "row"), [0, 1, 2].map(Some));
    assert_eq!(texts(&file.labels, "value"), ["n", "GPU 0", "536870912"].map(|text| Some(text.to_owned())));
}

#[test]
fn skipped_categories_are_counted_and_leave_no_trace() {
    let text = events(
        r#"{"cat":"a","name":"x","pid":1},{"name":"y","pid":2,"cat":"b","ph":"X","args":{"device":1}},{"cat":"a","name":"z"},{"name":"none"}"#,
    );
    let file = read_with(text.as_bytes(), &ReadOptions::new().skip_categories(["a"])).unwrap();
    assert_eq!(file.categories, ["b", ""]);
    assert_eq!(event_names(&file), ["y", "none"]);
    assert_eq!(names(&file), ["y", "none"]);
    assert_eq!(file.tracks.num_rows(), 2);
    assert_eq!(file.phases, ["X", ""]);
    let counts: Vec<_> =
        file.event_counts.iter().map(|count| (count.category.as_str(), count.kept, count.skipped)).collect();
    assert_eq!(counts, [("a", 0, 2), ("b", 1, 0), ("", 1, 0)]);
    assert_eq!(numbers::<UInt32Type>(&device_of(&file), "row"), [Some(0)]);
}

#[test]
fn metadata_stands_before_and_after_the_events() {
    let file = read(r#"{"a":[1,{"b":"c\u00e9\n\u0001"},[]],"traceEvents":[],"d":-0.5e3, "a2":true ,"a":null}"#);
    assert_eq!(file.metadata_json, r#"{"a":null,"d":-0.5e3,"a2":true}"#);
    let file = read(br#"{"k":["c\u00e9\n\u0001\"\\",NaN,-inf,],"\ud800":"#.iter().chain(b"\"\xff\",\"traceEvents\":[]}").copied().collect::<Vec<_>>());
    assert_eq!(file.metadata_json, "{\"k\":[\"c\u{e9}\\n\\u0001\\\"\\\\\",null,null],\"\u{fffd}\":\"\u{fffd}\"}");
}

#[test]
fn a_bare_array_has_no_metadata() {
    let file = read(r#" [ {"ph":"X","ts":1}, {"ph":"i"} ] "#);
    assert_eq!(file.num_events(), 2);
    assert_eq!(file.metadata_json, "{}");
    assert_eq!(notices(&file), []);
    assert_eq!(read("[]").num_events(), 0);
}

#[test]
fn bytes_are_those_of_the_text() {
    let text = events("{\"ph\":\"i\"}");
    assert_eq!(read(&text).bytes_read, text.len() as u64);
}
