//! Whatever the bytes, the reader answers, and how they arrive does not matter.

use moeprof_trace::{ReadOptions, read_kineto_from};
use proptest::prelude::*;

use crate::{Drip, outcome};

const SEED: &[u8] = br#"{"k":[1,-2.5e3,"x\u00e9\ud83d\ude00",null,{"a":true}],"traceEvents":[
  {"ph": "X", "cat": "kernel", "name": "g\"e\\mm", "pid": 0, "tid": "7", "ts": 12.345, "dur": 1.0005,
   "args": {"device": 0, "stream": "7", "correlation": 18446744073709551615, "grid": [1, 2, 3], "o": {"x": []}}},
  {"ph": "M", "name": "process_name", "args": {"name": "w"}}, {}, null,
  {"name": "f({\"a\": 1}, NaN)", "ts": -1e-2, "args": {"Collective name": "allreduce", "Seq": 5, "dtype": inf}}
], "traceName": "t"}"#;

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let alphabet =
        prop::sample::select(b"{}[]\",:\\ \n0123456789.-+eEnulltruefasNI\0\x01\x7f\x80\xc3\xe2\xff".to_vec());
    let edit = (0..SEED.len(), alphabet, 0..3u8);
    prop::collection::vec(edit, 0..6).prop_map(|edits| {
        let mut bytes = SEED.to_vec();
        for (at, byte, kind) in edits {
            let at = at.min(bytes.len() - 1);
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_text_never_panics_and_its_pieces_do_not_matter(
        bytes in mutated(), piece in 1usize..40, recover: bool
    ) {
        let options = ReadOptions::new().recover(recover).chunk_bytes(4096);
        let whole = read_kineto_from(&bytes[..], &options);
        let pieces = read_kineto_from(Drip(&bytes, piece), &options.clone().chunk_bytes(piece));
        prop_assert_eq!(outcome(&pieces), outcome(&whole));
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), recover: bool) {
        let options = ReadOptions::new().recover(recover).chunk_bytes(4096);
        let _ = read_kineto_from(&bytes[..], &options);
        let zipped = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &bytes].concat();
        let _ = read_kineto_from(&zipped[..], &options);
    }

    #[test]
    fn recovery_of_a_sound_text_changes_nothing(extra in "[ \n\t]{0,20}") {
        let mut bytes = SEED.to_vec();
        bytes.extend_from_slice(extra.as_bytes());
        let strict = read_kineto_from(&bytes[..], &ReadOptions::new().chunk_bytes(4096));
        let lenient = read_kineto_from(&bytes[..], &ReadOptions::new().recover(true));
        prop_assert!(strict.is_ok());
        prop_assert_eq!(outcome(&strict), outcome(&lenient));
    }
}
