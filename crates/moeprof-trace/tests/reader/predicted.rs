//! Events that are predicted are what the general path makes of them, also where they are nearly as expected.

use moeprof_trace::{ReadOptions, read_kineto_from};
use proptest::prelude::*;

use crate::{Drip, outcome};

const OLD: [&str; 8] = [
    "{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"@N\", \"pid\": 0, \"tid\": @T,\n    \"ts\": @B, \"dur\": @D,\n    \"args\": {\n            \"queued\": 0, \"device\": 0, \"context\": 1,      \"stream\": @T, \"correlation\": @I,      \"registers per thread\": @R,      \"shared memory\": 0,      \"blocks per SM\": 0.037879,      \"warps per SM\": 0.151515,      \"grid\": [@R, 1, 1],      \"block\": [128, 1, 1],      \"est. achieved occupancy %\": 0\n    }\n  }",
    "{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::@N\", \"pid\": 11788, \"tid\": 11788,\n    \"ts\": @B, \"dur\": @D,\n    \"args\": {\n      \"External id\": @I,\"Record function id\": 0, \"Ev Idx\": @I\n    }\n  }",
    "{\n    \"ph\": \"f\", \"id\": @I, \"pid\": 0, \"tid\": @T, \"ts\": @B,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }",
    "{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cuda@N\", \"pid\": 11788, \"tid\": 11788,\n    \"ts\": @B, \"dur\": @D,\n    \"args\": {\n      \"External id\": 36,      \"cbid\": 138, \"correlation\": @I\n    }\n  }",
    "{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"@N\", \"pid\": 11788, \"tid\": 11788,\n    \"ts\": @B, \"dur\": @D,\n    \"args\": {\n      \"External id\": @I,\"Concrete Inputs\": [\"\", \"[@R, 1]\"], \"Input Dims\": [[@R, 4], []], \"Input type\": [\"float\", \"\"], \"flag\": true\n    }\n  }",
    "{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"nccl@N\", \"pid\": 0, \"tid\": 25,\n    \"ts\": @B, \"dur\": @D,\n    \"args\": {\n      \"device\": 0, \"stream\": 25, \"correlation\": @I, \"Collective name\": \"_allgather_base\", \"In msg nelems\": @R, \"Seq\": @I, \"dtype\": \"BFloat16\", \"Process Group Ranks\": \"[0, 1]\"\n    }\n  }",
    "{\n    \"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy @N\", \"pid\": 0, \"tid\": 7,\n    \"ts\": @B, \"dur\": @D,\n    \"args\": {\n      \"device\": 0, \"stream\": 7, \"bytes\": @I, \"memory bandwidth (GB/s)\": @D, \"graph id\": @T, \"graph node id\": @I\n    }\n  }",
    "{\n    \"name\": \"thread_name\", \"ph\": \"M\", \"ts\": @B, \"pid\": 0, \"tid\": @T,\n    \"args\": {\n      \"name\": \"stream @T\"\n    }\n  }",
];

/// One field a line, as torch 2.13 writes it.
fn new_layout(event: &str) -> String {
    let (head, args) = event.split_once(",\n    \"args\"").map_or((event, None), |(head, args)| (head, Some(args)));
    let head = head.replace(", \"", ",\n    \"");
    match args {
        Some(args) => format!("{head}\n    ,\n    \"args\"{args}"),
        None => head.replace("\n  }", "\n    \n  }"),
    }
}

/// Writes the event of a kind, with values that follow from its number.
fn event(kind: usize, number: usize, new: bool) -> String {
    let text = OLD[kind % OLD.len()];
    let text = if new { new_layout(text) } else { text.to_owned() };
    let base = 5_214_564_660_786_765 + number * 1009;
    let duration = format!("{}.{:03}", number * number % 5000, number % 1000);
    let name = ["gemm", "void at::native::softmax<float, 4>(long name, with, commas)", "a", "moe_align"][number % 4];
    text.replace("@N", name)
        .replace("@T", ["7", "17", "25"][number / 5 % 3])
        .replace("@B", &format!("{}.{:03}", base / 1000, base % 1000))
        .replace("@D", &duration)
        .replace("@I", &(number * 37 % 100_000).to_string())
        .replace("@R", ["32", "168"][number / 7 % 2])
}

/// What a text is changed to, at some place.
const CHANGES: [(&str, &str); 40] = [
    (", \"tid\"", ",  \"tid\""),
    ("\"pid\": ", "\"pid\":"),
    ("\n    \"ts\"", "\r\n    \"ts\""),
    ("\n", "\r\n"),
    ("\"cat\": \"kernel\", ", ""),
    ("\"name\"", "\"n\\u0061me\""),
    ("\"name\": \"", "\"name\": \"\\\""),
    ("\"name\": \"", "\"name\": \"\u{1}"),
    ("\"name\": \"", "\"name\": \"\n"),
    ("\"name\": \"", "\"name\": \"\u{e9}"),
    ("\"name\": \"", "\"name\": \"a\\"),
    ("\"name\": \"", "\"name\": \"a\"b"),
    ("\"ts\": ", "\"ts\": -"),
    ("\"ts\": ", "\"ts\": 0"),
    ("\"ts\": ", "\"ts\": 99999"),
    ("\"ts\": ", "\"ts\": \"5\", \"t\": "),
    ("\"dur\": ", "\"dur\": 1e3, \"d\": "),
    ("\"dur\": ", "\"dur\": NaN, \"d\": "),
    ("\"dur\": ", "\"dur\": 1.0005, \"d\": "),
    ("\"dur\": ", "\"dur\": null, \"d\": "),
    ("\"correlation\": ", "\"correlation\": -"),
    ("\"correlation\": ", "\"correlation\": 1.5, \"c\": "),
    ("\"correlation\": ", "\"correlation\": \"7\", \"c\": "),
    ("\"correlation\": ", "\"correlation\": 18446744073709551615, \"c\": "),
    ("\"correlation\": ", "\"correlation\": 123456789012345678, \"c\": "),
    ("\"correlation\": ", "\"correlation\": 1234567890123456789, \"c\": "),
    ("\"External id\"", "\"external id\": 5, \"External id\""),
    ("\"pid\": ", "\"pid\": \"x\", \"p\": "),
    ("\"pid\": ", "\"pid\": 00"),
    ("\"args\": {", "\"args\": {}, \"args\": {"),
    ("\"args\": {", "\"args\": 5, \"arg\": {"),
    ("[128, 1, 1]", "[128, 1]"),
    ("[128, 1, 1]", "[128, 1, 1, 5], \"block\": [3]"),
    ("[128, 1, 1]", "[]"),
    ("[128, 1, 1]", "[128, null, 1]"),
    ("0.037879", "inf"),
    ("\n    }\n  }", ",\n    }\n  }"),
    ("\"ph\": \"X\"", "\"ph\": \"Y\""),
    ("\"cat\": \"ac2g\", ", "\"cat\": \"ac2g\", \"cat\": \"x\", "),
    ("true", "truex"),
];

fn document(kinds: &[usize], edits: &[(usize, usize)], new: bool) -> String {
    let mut events: Vec<String> = kinds.iter().enumerate().map(|(number, &kind)| event(kind, number, new)).collect();
    for &(place, change) in edits {
        let place = place % events.len();
        let (from, to) = CHANGES[change % CHANGES.len()];
        events[place] = events[place].replacen(from, to, 1);
    }
    format!(
        "\n  {{\n    \"schemaVersion\": 1,\n  \"traceEvents\": [\n  {}\n  ],\n  \"traceName\": \"t\"\n}}",
        events.join(",\n  ")
    )
}

fn assert_same(text: &[u8]) {
    for recover in [false, true] {
        for skipped in [&[][..], &["cpu_op", "ac2g"]] {
            let options = ReadOptions::new().recover(recover).skip_categories(skipped.iter().copied());
            let plodding = outcome(&read_kineto_from(text, &options.clone().predict(false)));
            assert_eq!(outcome(&read_kineto_from(text, &options)), plodding);
            {
                let piece = 1000;
                let pieces = read_kineto_from(Drip(text, piece), &options.clone().chunk_bytes(piece));
                assert_eq!(outcome(&pieces), plodding, "in pieces of {piece}");
            }
        }
    }
}

#[test]
fn every_change_in_the_midst_of_events_as_expected() {
    for new in [false, true] {
        let kinds: Vec<usize> = (0..32).collect();
        assert_same(document(&kinds, &[], new).as_bytes());
        for (change, (text, _)) in CHANGES.iter().enumerate() {
            // Where a change does not apply to an event, another place has been tried.
            for place in (16..24).filter(|&place| event(kinds[place], place, new).contains(text)).take(2) {
                assert_same(document(&kinds, &[(place, change)], new).as_bytes());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layouts_nearly_as_expected(
        kinds in prop::collection::vec(0..OLD.len(), 1..60),
        edits in prop::collection::vec((0..60usize, 0..CHANGES.len()), 0..6),
        new: bool,
    ) {
        assert_same(document(&kinds, &edits, new).as_bytes());
    }

    #[test]
    fn bytes_changed_in_events_as_expected(
        kinds in prop::collection::vec(0..OLD.len(), 20..60),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5),
        new: bool,
    ) {
        const ALPHABET: &[u8] = b"{}[]\",:\\ \n\r\t0123456789.-+eEnu\0\x1f\x7f\x80\xc3\xe2\xff";
        let mut text = document(&kinds, &[], new).into_bytes();
        for (place, byte) in edits {
            let at = place.index(text.len());
            let byte = ALPHABET[byte.index(ALPHABET.len() * 3) % ALPHABET.len()];
            if at % 3 == 0 { text.insert(at, byte) } else { text[at] = byte }
        }
        assert_same(&text);
    }
}
