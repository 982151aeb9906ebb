//! Redaction of API keys in text and bytes, however they are spelled.
//!
//! A provider that echoes a key, a program that prints it and a transcript that contains it must not carry it into a
//! file or onto a terminal. So replies and output of programs are redacted where they arrive, and everything is
//! redacted once more where it leaves the process: in `files`, in the frames of the cache, on the console. The known
//! keys are process-wide state: if they had to be passed to every writer, one writer could be forgotten.
//!
//! A key is found as it is, in base64 (at each of the three alignments, in both alphabets), in hexadecimal, and by any
//! 20 consecutive characters. Any of its characters may be escaped for JSON, a URL or HTML. Line breaks, NUL bytes and
//! terminal colours within a key do not hide it, nor does a hex dump. Each byte of a key is replaced by a star, so
//! lengths, offsets and the syntax around it stay as they are, also in binary records.

mod reader;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, Input};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::{memchr_iter, memmem};

use crate::words::WordList;
use reader::{DumpedByte, Reader, Spelled, dumped_bytes};

/// Shorter keys are not redacted: they are not secret, and they occur in ordinary text.
const MIN_LENGTH: usize = 6;

/// Words that people set as the key of a server that needs none. Redacting them would change replies.
const PLACEHOLDERS: WordList = WordList(
    "ollama lm-studio lmstudio not-needed sk-no-key-required no-key-required placeholder anything unused",
);

static KNOWN: RwLock<Option<KeyMatcher>> = RwLock::new(None);

/// Redacts `key` from now on.
pub fn add_key(key: &str) {
    if key.len() < MIN_LENGTH || PLACEHOLDERS.has(&key.to_ascii_lowercase()) {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if known
        .as_ref()
        .is_some_and(|matcher| matcher.keys.contains(key))
    {
        return;
    }
    let mut keys = known
        .take()
        .map_or_else(BTreeSet::new, |matcher| matcher.keys);
    keys.insert(key.to_owned());
    *known = KeyMatcher::new(keys);
}

/// Redacts all known keys in `bytes`.
pub fn redact_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(matcher) if matcher.may_occur(bytes) => matcher.redact(bytes),
        _ => Cow::Borrowed(bytes),
    }
}

/// Redacts all known keys in `text`.
pub fn redact(text: &str) -> Cow<'_, str> {
    match redact_bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Spellings shorter than this are found only undivided: short words of prose, joined across spaces, would match them.
const SHORTEST_DIVIDED: usize = 16;

/// Finds keys in all their spellings.
struct KeyMatcher {
    keys: BTreeSet<String>,
    automaton: NFA,
    /// Finds pieces of spellings.
    grams: DFA,
}

impl KeyMatcher {
    /// `None` if an automaton cannot be built, which would take gigabytes of keys.
    fn new(keys: BTreeSet<String>) -> Option<KeyMatcher> {
        let spellings: BTreeSet<Vec<u8>> = keys
            .iter()
            .flat_map(|key| spellings(key.as_bytes()))
            .collect();
        let grams = DFA::new(grams(&spellings)).ok()?;
        Some(KeyMatcher {
            automaton: NFA::new(&spellings).ok()?,
            grams,
            keys,
        })
    }

    /// Whether `bytes` may contain a key: a piece of one occurs, or something with which a key may be spelled or
    /// divided. This filter passes over most bytes at the speed of memory.
    fn may_occur(&self, bytes: &[u8]) -> bool {
        const ESCAPES: [&[u8]; 7] = [
            b"\\u00",
            b"\\x",
            b"\\/",
            b"&#",
            b"\xe2\x80\x8b",
            b"\xc2\xad",
            b"\xe2\x81\xa0",
        ];
        ESCAPES
            .iter()
            .any(|escape| memmem::find(bytes, escape).is_some())
            || memmem::find(bytes, b"\x1b[").is_some()
            || memchr_iter(0, bytes)
                .any(|at| is_wide_text(bytes.get(at..at + 5).unwrap_or_default()))
            || memchr_iter(b'%', bytes).any(|at| is_hexadecimal(bytes.get(at + 1..at + 3)))
            || memchr_iter(b' ', bytes)
                .any(|at| is_run_of_pairs(bytes.get(at..at + 10).unwrap_or_default()))
            || holds_dump(bytes)
            || holds_numbers(bytes)
            || self
                .grams
                .try_find(&Input::new(bytes))
                .is_ok_and(|found| found.is_some())
    }

    fn redact<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut redacted = Cow::Borrowed(bytes);
        let mut places = self.places(bytes, false);
        if holds_numbers(bytes) {
            places.extend(self.places(bytes, true));
        }
        if holds_dump(bytes) {
            places.extend(self.places_in_dumps(bytes));
        }
        for place in places {
            for byte in redacted.to_mut().get_mut(place).unwrap_or_default() {
                // A line stays a line, in a record of lines, too.
                if !matches!(*byte, b'\n' | b'\r') {
                    *byte = b'*';
                }
            }
        }
        redacted
    }

    /// Where keys occur. The automaton reads the bytes with their escapes resolved. A ring holds where the last
    /// characters began, so that memory does not grow with the text.
    fn places(&self, bytes: &[u8], of_numbers: bool) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let mut starts = vec![(0, 0); self.automaton.max_pattern_len().max(1)];
        let Ok(mut state) = self.automaton.start_state(Anchored::No) else {
            return places;
        };
        let mut gaps = 0;
        for (
            read,
            Spelled {
                byte,
                start,
                end,
                follows_gap,
            },
        ) in Reader::new(bytes, of_numbers).enumerate()
        {
            gaps += usize::from(follows_gap);
            let slot = read % starts.len();
            starts[slot] = (start, gaps);
            state = self.automaton.next_state(Anchored::No, state, byte);
            let Some(longest) = self.longest_match(state) else {
                continue;
            };
            let (first, gaps_before) = starts[(read + 1 - longest) % starts.len()];
            if longest >= SHORTEST_DIVIDED || gaps_before == gaps {
                match places.last_mut().filter(|last| last.end >= first) {
                    Some(last) => *last = last.start.min(first)..end,
                    None => places.push(first..end),
                }
            }
        }
        places
    }

    /// The length of the longest spelling that ends in `state`.
    fn longest_match(&self, state: aho_corasick::automaton::StateID) -> Option<usize> {
        if !(self.automaton.is_special(state) && self.automaton.is_match(state)) {
            return None;
        }
        let matches = 0..self.automaton.match_len(state);
        matches
            .map(|index| {
                self.automaton
                    .pattern_len(self.automaton.match_pattern(state, index))
            })
            .max()
    }

    /// Where hex dumps show keys: their digits and the text beside them.
    fn places_in_dumps(&self, text: &[u8]) -> Vec<Range<usize>> {
        let dumped = dumped_bytes(text);
        let bytes: Vec<u8> = dumped.iter().map(|dumped| dumped.byte).collect();
        let of_keys = self
            .places(&bytes, false)
            .into_iter()
            .flat_map(|place| dumped.get(place).unwrap_or_default());
        of_keys.flat_map(DumpedByte::places).collect()
    }
}

/// Whether the bytes, the first of which is NUL, look like characters of two bytes each. A single NUL only divides a
/// key, whose pieces are found.
fn is_wide_text(bytes: &[u8]) -> bool {
    matches!(bytes, [0, a, 0, b, 0] if a.is_ascii_graphic() && b.is_ascii_graphic())
}

/// Whether the bytes, the first of which is a space, are pairs of hexadecimal digits.
fn is_run_of_pairs(bytes: &[u8]) -> bool {
    bytes.len() == 10
        && bytes.chunks(3).all(|chunk| matches!(chunk, [b' ', digits @ ..] if digits.iter().all(u8::is_ascii_hexdigit)))
}

/// Whether the bytes may contain lines of a hex dump, whose offsets end in 0.
fn holds_dump(bytes: &[u8]) -> bool {
    [b"0: ", b"0  "].iter().any(|mark| {
        memmem::find_iter(bytes, mark)
            .any(|at| is_hexadecimal(at.checked_sub(5).and_then(|start| bytes.get(start..at))))
    })
}

/// Whether the bytes may contain a list of hexadecimal numbers: `0x73, 0x6b, 0x2d`, or `73:6b:2d`.
fn holds_numbers(bytes: &[u8]) -> bool {
    let is_number = |at: usize| is_hexadecimal(bytes.get(at..at + 2));
    memmem::find_iter(bytes, b"0x").any(|at| is_number(at + 2) && bytes.get(at + 4) == Some(&b','))
        || memchr_iter(b':', bytes)
            .any(|at| bytes.get(at + 3) == Some(&b':') && is_number(at + 1) && is_number(at + 4))
}

/// Whether there are bytes and all of them are hexadecimal digits.
fn is_hexadecimal(bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| bytes.iter().all(u8::is_ascii_hexdigit))
}

/// This many consecutive characters of a key are removed wherever they occur. A server that cuts its error message must
/// not leave most of a key in it.
const PART: usize = 20;

/// If a line break divides a spelling in two, the longer piece has at least this many characters.
const GRAM: usize = PART / 2;

/// All byte strings to remove for `key`.
fn spellings(key: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    // Texts are read with their escapes resolved, so a key that itself looks escaped is found only as it is read there.
    let read: Vec<u8> = Reader::new(key, false).map(|read| read.byte).collect();
    let read = (read.len() >= MIN_LENGTH).then_some((read, PART));
    for (encoded, part) in encodings(key).into_iter().chain(read) {
        all.extend(
            encoded
                .windows(part.min(encoded.len()).max(1))
                .map(<[u8]>::to_vec),
        );
        all.insert(encoded);
    }
    all
}

/// Pieces, at least one of which occurs in every text that contains a spelling, even if a line break divides it once.
fn grams(spellings: &BTreeSet<Vec<u8>>) -> BTreeSet<&[u8]> {
    spellings
        .iter()
        .flat_map(|spelling| spelling.windows(GRAM.min(spelling.len() / 2).max(1)))
        .collect()
}

/// A key as it is, in hexadecimal and in base64, each with the length of [`PART`] encoded bytes of the key. The base64
/// of each alignment is cut to the characters that the key alone determines: the others depend on the bytes around it.
fn encodings(key: &[u8]) -> Vec<(Vec<u8>, usize)> {
    let mut all = vec![
        (key.to_vec(), PART),
        (hexadecimal(key, b"0123456789abcdef"), 2 * PART),
        (hexadecimal(key, b"0123456789ABCDEF"), 2 * PART),
    ];
    for before in 0..3 {
        let shifted = [vec![0; before], key.to_vec()].concat();
        let (first, end) = ((before * 8).div_ceil(6), shifted.len() * 8 / 6);
        for encoded in [
            STANDARD_NO_PAD.encode(&shifted),
            URL_SAFE_NO_PAD.encode(&shifted),
        ] {
            all.extend(
                encoded
                    .as_bytes()
                    .get(first..end)
                    .map(|text| (text.to_vec(), PART * 8 / 6)),
            );
        }
    }
    all
}

fn hexadecimal(key: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    key.iter()
        .flat_map(|byte| {
            [
                digits[usize::from(byte >> 4)],
                digits[usize::from(byte & 15)],
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;
    use std::sync::LazyLock;

    const KEY: &str = "sk-not/a+key~4f1e7";
    /// As long as the project keys of a vendor.
    const LONG: &str = "sk-proj-Zk3vQ9xWb7LmT2cRy8NfHs5JdGa1PuEo4iKwXtVz6MqYrBn0LhCjSgDeFpAkUvOi_TbW3xZq7NmRy5KcHv2Ls9Jd";

    fn matcher() -> &'static KeyMatcher {
        static MATCHER: LazyLock<KeyMatcher> = LazyLock::new(|| {
            KeyMatcher::new([KEY.to_owned(), "other-key-000".to_owned(), LONG.to_owned()].into())
                .unwrap()
        });
        &MATCHER
    }

    fn redacted(text: &str) -> String {
        let matcher = matcher();
        let may_occur = matcher.may_occur(text.as_bytes());
        let redacted = matcher.redact(text.as_bytes());
        assert!(
            may_occur || *redacted == *text.as_bytes(),
            "the filter misses {text}"
        );
        String::from_utf8(redacted.into_owned()).unwrap()
    }

    /// Every character in one of its spellings, by turns.
    fn escaped(text: &str, spellings: &[usize]) -> String {
        let spell = |(c, how): (char, &usize)| match how % 8 {
            0 => c.to_string(),
            1 => format!("\\u{:04x}", u32::from(c)),
            2 => format!("\\\\u{:04X}", u32::from(c)),
            3 => format!("%{:02x}", u32::from(c)),
            4 => format!("%25{:02X}", u32::from(c)),
            5 => format!("&#{};", u32::from(c)),
            6 => format!("&#x{:x};", u32::from(c)),
            _ if c == '/' => "\\/".to_owned(),
            _ => format!("\\x{:02x}", u32::from(c)),
        };
        text.chars()
            .zip(spellings.iter().cycle())
            .map(spell)
            .collect()
    }

    #[test]
    fn text_without_a_key_stays_as_it_is() {
        for text in [
            "",
            "\\",
            "%",
            "%2",
            "&#",
            "&#115",
            "\\u00",
            "\\u007",
            "sk-not/a+key~4f1e",
            "a\\/b %73 &#115; \\u0073k",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    /// Text broken after every `width` characters.
    fn wrapped(text: &str, width: usize, with: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        chars
            .chunks(width)
            .map(|line| line.iter().collect::<String>())
            .collect::<Vec<_>>()
            .join(with)
    }

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("{byte:02x}")).collect()
    }

    /// As `xxd` prints it, or `hexdump -C`.
    fn dump(text: &str, canonical: bool) -> String {
        let mut lines = String::new();
        for (line, bytes) in text.as_bytes().chunks(16).enumerate() {
            let at = line * 16;
            let shown = String::from_utf8_lossy(bytes);
            let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = if canonical {
                let (left, right) = pairs.split_at(pairs.len().min(8));
                writeln!(
                    lines,
                    "{at:08x}  {}  {}  |{shown}|",
                    left.join(" "),
                    right.join(" ")
                )
            } else {
                let groups: Vec<String> = pairs.chunks(2).map(<[String]>::concat).collect();
                writeln!(lines, "{at:08x}: {:<39}  {shown}", groups.join(" "))
            };
        }
        lines
    }

    fn each(spell: impl Fn(char) -> String) -> String {
        LONG.chars().map(spell).collect()
    }

    fn in_json(text: &str) -> String {
        serde_json::json!({ "output": text }).to_string()
    }

    /// Some forty ways in which tools print a key.
    fn spelled() -> Vec<(&'static str, String)> {
        let base64 = STANDARD_NO_PAD.encode(LONG);
        let with_header =
            STANDARD_NO_PAD.encode(format!("Authorization: Bearer {LONG}\r\nHost: x"));
        let url_base64 = URL_SAFE_NO_PAD.encode(format!("k={LONG}"));
        let named = LONG.replace('-', "&dash;").replace('_', "&lowbar;");
        let json = serde_json::json!({ "key": LONG }).to_string();
        vec![
            ("as it is", LONG.to_owned()),
            ("in quotation marks", format!("'{LONG}'")),
            ("in a header", format!("Authorization: Bearer {LONG}\r\n")),
            ("in a URL", format!("https://user:{LONG}@host/path")),
            ("in JSON", json.clone()),
            (
                "JSON in JSON",
                serde_json::json!({ "body": json }).to_string(),
            ),
            (
                "upper \\u escapes",
                each(|c| format!("\\u{:04X}", u32::from(c))),
            ),
            (
                "lower \\u escapes",
                each(|c| format!("\\u{:04x}", u32::from(c))),
            ),
            ("\\x escapes", each(|c| format!("\\x{:02x}", u32::from(c)))),
            (
                "escapes of escapes",
                each(|c| format!("\\\\u{:04x}", u32::from(c))),
            ),
            ("percent", each(|c| format!("%{:02X}", u32::from(c)))),
            ("lower percent", each(|c| format!("%{:02x}", u32::from(c)))),
            (
                "percent twice",
                each(|c| format!("%25{:02X}", u32::from(c))),
            ),
            (
                "punctuation in percent",
                LONG.replace('-', "%2D").replace('_', "%5F"),
            ),
            (
                "decimal references",
                each(|c| format!("&#{};", u32::from(c))),
            ),
            (
                "hexadecimal references",
                each(|c| format!("&#x{:X};", u32::from(c))),
            ),
            ("HTML names", named),
            ("base64", base64.clone()),
            ("base64 of a header", with_header.clone()),
            ("base64 for URLs", url_base64),
            ("base64 at 76 columns", wrapped(&with_header, 76, "\n")),
            (
                "base64 at 76 columns, CRLF",
                wrapped(&with_header, 76, "\r\n"),
            ),
            ("base64 at 64 columns", wrapped(&base64, 64, "\n")),
            ("wrapped base64 in JSON", wrapped(&base64, 76, "\\n")),
            (
                "wrapped base64 in JSON in JSON",
                wrapped(&base64, 76, "\\\\n"),
            ),
            ("indented base64", wrapped(&base64, 60, "\n    ")),
            ("hexadecimal", hex(LONG)),
            ("upper hexadecimal", hex(LONG).to_uppercase()),
            ("plain hex dump", wrapped(&hex(LONG), 60, "\n")),
            ("pairs of digits", wrapped(&hex(LONG), 2, " ")),
            ("xxd", dump(LONG, false)),
            ("xxd in JSON", in_json(&dump(LONG, false))),
            ("hexdump -C in JSON", in_json(&dump(LONG, true))),
            (
                "hexdump -C in JSON in JSON",
                in_json(&in_json(&dump(LONG, true))),
            ),
            (
                "a list of numbers",
                each(|c| format!("0x{:02x}, ", u32::from(c))),
            ),
            ("pairs with colons", wrapped(&hex(LONG), 2, ":")),
            ("with zero-width spaces", each(|c| format!("{c}\u{200b}"))),
            ("with soft hyphens", each(|c| format!("{c}\u{ad}"))),
            ("in tags", wrapped(LONG, 20, "</b><b>")),
            (
                "xxd, not at the start",
                dump(&format!("token = {LONG}"), false),
            ),
            ("hexdump -C", dump(LONG, true)),
            ("wrapped", wrapped(LONG, 40, "\n")),
            ("wrapped, CRLF", wrapped(LONG, 30, "\r\n")),
            (
                "coloured in the middle",
                format!("{}\u{1b}[1;31m{}\u{1b}[0m", &LONG[..13], &LONG[13..]),
            ),
            ("coloured everywhere", each(|c| format!("\u{1b}[32m{c}"))),
            ("UTF-16", each(|c| format!("{c}\0"))),
            ("a NUL inside", format!("{}\0{}", &LONG[..50], &LONG[50..])),
            (
                "colours in JSON",
                format!("{}\\u001b[1m{}", &LONG[..21], &LONG[21..]),
            ),
        ]
    }

    #[test]
    fn no_spelling_leaves_anything_of_a_key() {
        let spelled = spelled();
        assert_eq!(spelled.len(), 48);
        for (how, text) in spelled {
            let left = redacted(&text);
            assert_eq!(left.len(), text.len(), "{how}");
            let stars = left.matches('*').count();
            assert!(stars >= LONG.len() - 2, "{how}: {stars} stars in {left}");
            for piece in LONG
                .as_bytes()
                .windows(8)
                .map(|piece| std::str::from_utf8(piece).unwrap())
            {
                assert!(
                    !left.contains(piece) && !left.contains(&hex(piece)),
                    "{how}: {left}"
                );
            }
        }
    }

    #[test]
    fn twenty_characters_of_a_key_go_and_nineteen_stay() {
        for start in [0, 7, LONG.len() - 20] {
            let part = &LONG[start..start + 20];
            assert_eq!(
                redacted(&format!("invalid key: {part}...")),
                format!("invalid key: {}...", "*".repeat(20))
            );
            let short = format!("invalid key: {}...", &part[..19]);
            assert_eq!(redacted(&short), short);
        }
        let cut = &LONG[..LONG.len() - 1];
        assert_eq!(
            redacted(cut),
            "*".repeat(cut.len()),
            "a message that was cut"
        );
    }

    #[test]
    fn dumps_of_other_bytes_stay_as_they_are() {
        for text in [
            dump("nothing of interest stands here, or there", false),
            dump("or here, at all", true),
        ] {
            assert_eq!(redacted(&text), text);
        }
        assert_eq!(
            redacted("00000010: zz\n0000000 : 1\n00000010:"),
            "00000010: zz\n0000000 : 1\n00000010:"
        );
    }

    #[test]
    fn a_short_key_is_found_only_in_one_piece() {
        assert_eq!(redacted("the other-key\n-000"), "the other-key\n-000");
    }

    #[test]
    fn a_key_that_looks_escaped_is_found() {
        let redacted = |key: &str, text: &str| {
            let matcher = KeyMatcher::new([key.to_owned()].into()).unwrap();
            assert!(matcher.may_occur(text.as_bytes()) || !text.contains(key));
            String::from_utf8(matcher.redact(text.as_bytes()).into_owned()).unwrap()
        };
        for key in [
            "Zk3vQ9xWb7LmT2cR%3Dy8NfHs5JdGa1PuEo%2B4iKw",
            "p%40ss-w0rd",
            "my secret pass phrase 12345",
            "abcd\\u0041efgh0123456789ij",
            "abc\\\\0123456789abcdefghij",
            "tok&amp;en0123456789",
            "abc<b>0123456789abcdefghij",
        ] {
            for text in [key.to_owned(), key.replace('\\', "\\\\")] {
                let stars = "*".repeat(text.len());
                assert_eq!(redacted(key, &format!("({text})")), format!("({stars})"));
            }
        }
        for (key, text) in [
            ("p%40ss-w0rd", "p%40ss and w0rd, 40% of all"),
            ("%20%20%20%41", "A man, a plan, a%20canal"),
            ("my secret pass phrase 12345", "my secret is a pass phrase"),
        ] {
            assert_eq!(redacted(key, text), text);
        }
    }

    #[test]
    fn two_keys_that_touch_are_both_redacted() {
        assert_eq!(
            redacted(&format!("<{KEY}other-key-000>")),
            format!("<{}>", "*".repeat(KEY.len() + 13))
        );
    }

    #[test]
    fn placeholders_and_short_words_are_no_keys() {
        for word in ["ollama", "Ollama", "EMPTY", "none"] {
            add_key(word);
            assert_eq!(redact(&format!("ask {word}")), format!("ask {word}"));
        }
    }

    #[test]
    fn a_long_run_of_backslashes_is_read_once() {
        let text = format!("{}xZZ {KEY}", "\\".repeat(200_000));
        assert!(redacted(&text).ends_with(&"*".repeat(KEY.len())));
    }

    proptest! {
        #[test]
        fn a_key_is_found_in_every_spelling(spellings in prop::collection::vec(0..8usize, 1..20), n in 0..9usize) {
            let encoded = String::from_utf8(encodings(KEY.as_bytes()).swap_remove(n).0).unwrap();
            let spelled = escaped(&encoded, &spellings);
            prop_assert_eq!(redacted(&format!("{{\"a\": \"{spelled}\"}}")), format!("{{\"a\": \"{}\"}}", "*".repeat(spelled.len())));
        }

        #[test]
        fn base64_of_more_than_the_key_shows_nothing_of_it(before in "[ -~]{0,8}", after in "[ -~]{0,8}") {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{KEY}{after}"));
            let stars = redacted(&encoded).bytes().filter(|byte| *byte == b'*').count();
            prop_assert!(stars >= KEY.len() * 8 / 6 - 1);
        }

        #[test]
        fn any_bytes_keep_their_length(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let matcher = matcher();
            prop_assert_eq!(matcher.redact(&bytes).len(), bytes.len());
        }
    }
}
