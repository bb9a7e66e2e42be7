//! Inputs from other inputs: bytes, tokens, lines and events are changed, moved, repeated and cut.

/// Numbers that follow from a seed (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below another, which is not 0.
    pub fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap_or_default()
    }

    pub fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    pub fn chance(&mut self, in_how_many: usize) -> bool {
        self.below(in_how_many) == 0
    }
}

const BYTES: &[u8] = b"{}[]\",:\\ \n\r\t0123456789.-+eEnNutf\0\x01\x1f\x7f\x80\xbf\xc3\xe2\xed\xf0\xff";
const TOKENS: [&str; 58] = [
    "0",
    "-0",
    "00",
    "1.",
    ".5",
    "0.0005",
    "0.0015",
    "1e3",
    "1E-9",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775.807",
    "9223372036854775.808",
    "12345678",
    "123456789",
    "1234567890123456",
    "123456789012345678",
    "1234567890123456789",
    "NaN",
    "-Infinity",
    "inf",
    "null",
    "true",
    "{}",
    "[]",
    "[[],{}]",
    "\"\"",
    "\"1.5\"",
    "\"inf\"",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"a\\\\b\\\"c\"",
    "\\",
    "\"",
    "\"ph\": ",
    "\"cat\": \"kernel\"",
    "\"name\": ",
    "\"args\": {",
    "\"args\": 5",
    "\"pid\": \"x\"",
    "\"External id\": ",
    "\"external id\": ",
    "\"grid\": [1, 2]",
    "\"block\": []",
    "\"correlation\": ",
    "\"stream\": \"7\"",
    ", ",
    ",",
    ": ",
    "}",
    "]",
    "\r\n",
    "  ",
    "\u{feff}",
];

/// Makes an input of some texts.
pub fn changed(texts: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut text = dice.one(texts).clone();
    if dice.chance(2) {
        text = repeated(&text, dice);
    }
    for _ in 0..dice.below(6) {
        change(&mut text, texts, dice);
    }
    text.truncate(1 << 16);
    text
}

fn change(text: &mut Vec<u8>, texts: &[Vec<u8>], dice: &mut Dice) {
    let at = dice.below(text.len() + 1);
    let until = (at + dice.below(40)).min(text.len());
    match dice.below(10) {
        0 => text.insert(at, *dice.one(BYTES)),
        1 if at < text.len() => text[at] = *dice.one(BYTES),
        2 if at < text.len() => text[at] ^= 1 << dice.below(8),
        3 => drop(text.drain(at..until)),
        4 => drop(text.splice(at..until.min(at + 3), dice.one(&TOKENS).bytes())),
        5 => number(text, at, dice),
        6 => {
            let other = dice.one(texts);
            let from = dice.below(other.len() + 1);
            let to = (from + dice.below(300)).min(other.len());
            text.splice(at..at, other[from..to].iter().copied());
        }
        7 => {
            let line = line_at(text, at);
            let copy = text[line.clone()].to_vec();
            text.splice(line.end..line.end, copy);
        }
        8 => drop(text.drain(line_at(text, at))),
        9 if dice.chance(4) => text.truncate(at),
        _ => {}
    }
}

/// Puts another number in the place of the next one.
fn number(text: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let Some(begin) = text[at..].iter().position(u8::is_ascii_digit).map(|place| at + place) else { return };
    let length = text[begin..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let digits: String =
        (0..=dice.below(21)).map(|_| char::from(b'0' + u8::try_from(dice.below(10)).unwrap())).collect();
    text.splice(begin..begin + length, digits.bytes());
}

fn line_at(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let begin = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    let end = text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |place| at + place + 1);
    begin..end
}

/// Writes the events of a text several times, with other digits each time, so that they come to be expected.
fn repeated(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    const KEY: &[u8] = b"\"traceEvents\":";
    let Some(key) = text.windows(KEY.len()).position(|window| window == KEY) else { return text.to_vec() };
    let Some(bracket) = text[key..].iter().position(|&byte| byte == b'[') else { return text.to_vec() };
    let from = key + bracket + 1;
    let Some(to) = text.iter().rposition(|&byte| byte == b']').filter(|&to| to > from) else { return text.to_vec() };
    let events = &text[from..to];
    let mut all = text[..from].to_vec();
    for copy in 0..2 + dice.below(6) {
        if copy > 0 {
            let trimmed = all.trim_ascii_end().len();
            all.truncate(trimmed);
            all.push(b',');
        }
        let start = all.len();
        all.extend_from_slice(events);
        for byte in all[start..].iter_mut().filter(|byte| (b'1'..=b'9').contains(*byte)) {
            if dice.chance(12) {
                *byte = b'1' + u8::try_from(dice.below(9)).unwrap();
            }
        }
    }
    all.extend_from_slice(&text[to..]);
    all
}
