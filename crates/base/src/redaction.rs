//! API keys in text and bytes, however they are spelled, and their removal.
//!
//! A provider that echoes a key, a program that prints it and a transcript that contains it must not carry it into a
//! file or onto a terminal. So replies and output of programs are redacted where they arrive, and everything is
//! redacted once more where it leaves the process: in `files`, in the frames of the cache, on the console. The known
//! keys are process-wide state: if they had to be passed to every writer, one could be forgotten.
//!
//! Besides the key itself its base64 (at each of the three alignments, in both alphabets) and hexadecimal forms are
//! found, each with any of its characters escaped for JSON, a URL or HTML. A key is replaced by as many stars as it has
//! bytes: so lengths, offsets and the syntax around it stay as they are, also in binary records.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, Input};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::{memchr_iter, memmem};

/// Shorter texts are no secrets, and occur in ordinary text.
const MIN_LENGTH: usize = 6;

/// What is written in place of a key for a server that asks for none: redacting these words would change replies.
const PLACEHOLDERS: [&str; 9] = [
    "ollama", "lm-studio", "lmstudio", "not-needed", "sk-no-key-required", "no-key-required", "placeholder",
    "anything", "unused",
];

static KNOWN: RwLock<Option<KeyMatcher>> = RwLock::new(None);

/// Redacts `key` from now on.
pub fn add_key(key: &str) {
    if key.len() < MIN_LENGTH || PLACEHOLDERS.contains(&key.to_ascii_lowercase().as_str()) {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let mut keys = known.take().map_or_else(BTreeSet::new, |matcher| matcher.keys);
    keys.insert(key.to_owned());
    *known = KeyMatcher::new(keys);
}

/// `bytes` without keys.
pub fn redact_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(matcher) if matcher.may_occur(bytes) => matcher.redact(bytes),
        _ => Cow::Borrowed(bytes),
    }
}

/// `text` without keys.
pub fn redact(text: &str) -> Cow<'_, str> {
    match redact_bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Finds keys in all their spellings.
struct KeyMatcher {
    keys: BTreeSet<String>,
    automaton: NFA,
}

impl KeyMatcher {
    /// `None` where the automaton cannot be built, which takes gigabytes of keys.
    fn new(keys: BTreeSet<String>) -> Option<KeyMatcher> {
        let spellings: BTreeSet<Vec<u8>> = keys.iter().flat_map(|key| encodings(key.as_bytes())).collect();
        Some(KeyMatcher { automaton: NFA::new(spellings).ok()?, keys })
    }

    /// Whether a closer look is due: a key occurs unescaped, or there are escapes that a key may be spelled with. Most
    /// bytes pass this at the speed of memory.
    fn may_occur(&self, bytes: &[u8]) -> bool {
        const ESCAPES: [&[u8]; 4] = [b"\\u00", b"\\x", b"\\/", b"&#"];
        let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        ESCAPES.iter().any(|escape| memmem::find(bytes, escape).is_some())
            || memchr_iter(b'%', bytes).any(|at| is_hex(at + 1) && is_hex(at + 2))
            || self.automaton.try_find(&Input::new(bytes)).is_ok_and(|found| found.is_some())
    }

    fn redact<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut redacted = Cow::Borrowed(bytes);
        for place in self.places(bytes) {
            if let Some(key) = redacted.to_mut().get_mut(place) {
                key.fill(b'*');
            }
        }
        redacted
    }

    /// Where keys occur. The automaton reads the bytes with their escapes resolved; where the last characters began is
    /// kept in a ring, so that memory does not grow with the text.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut starts = vec![0; self.automaton.max_pattern_len().max(1)];
        let Ok(mut state) = self.automaton.start_state(Anchored::No) else { return places };
        let (mut at, mut read) = (0, 0);
        while let Some((byte, width)) = unescaped(bytes, at) {
            let slot = read % starts.len();
            starts[slot] = at;
            (at, read) = (at + width, read + 1);
            state = self.automaton.next_state(Anchored::No, state, byte);
            if self.automaton.is_special(state) && self.automaton.is_match(state) {
                let lengths = (0..self.automaton.match_len(state))
                    .map(|index| self.automaton.pattern_len(self.automaton.match_pattern(state, index)));
                let longest = lengths.max().unwrap_or(0);
                places.push(starts[(read - longest) % starts.len()]..at);
            }
        }
        places
    }
}

/// A key as it is, in base64 and in hexadecimal. At each alignment only those characters of the base64 count that the
/// key alone determines: the others depend on what is before and after it.
fn encodings(key: &[u8]) -> Vec<Vec<u8>> {
    let hex = |digits: &[u8; 16]| -> Vec<u8> {
        key.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
    };
    let mut all = vec![key.to_vec(), hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
    for before in 0..3 {
        let shifted = [vec![0; before], key.to_vec()].concat();
        let (first, end) = ((before * 8).div_ceil(6), shifted.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            all.extend(encoded.as_bytes().get(first..end).map(<[u8]>::to_vec));
        }
    }
    all
}

/// The character at an offset and the bytes that spell it: `\u0073`, `\x73`, `\/` with any number of backslashes (JSON
/// in JSON), `%73`, `%2573`, `&#115;`, `&#x73;`, or itself. `None` at the end.
fn unescaped(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let rest = bytes.get(at..)?;
    let spelled = match rest.first()? {
        b'\\' => after_backslashes(rest),
        b'%' => percent_encoded(rest),
        b'&' => character_reference(rest),
        _ => None,
    };
    spelled.or_else(|| Some((*rest.first()?, 1)))
}

fn after_backslashes(text: &[u8]) -> Option<(u8, usize)> {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    let rest = text.get(slashes..)?;
    match rest.first() {
        Some(b'u') if rest.get(1..3) == Some(b"00") => Some((hex_byte(rest.get(3..5)?)?, slashes + 5)),
        Some(b'x') => Some((hex_byte(rest.get(1..3)?)?, slashes + 3)),
        Some(quoted @ (b'/' | b'"')) => Some((*quoted, slashes + 1)),
        // a backslash, escaped once or more often
        _ => Some((b'\\', slashes)),
    }
}

fn percent_encoded(text: &[u8]) -> Option<(u8, usize)> {
    let mut width = 1;
    while text.get(width..width + 2) == Some(b"25") {
        width += 2;
    }
    Some((hex_byte(text.get(width..width + 2)?)?, width + 2))
}

fn character_reference(text: &[u8]) -> Option<(u8, usize)> {
    let number = text.strip_prefix(b"&#")?;
    // more digits than these spell no character of a key
    let end = number.iter().take(8).position(|byte| *byte == b';')?;
    let digits = std::str::from_utf8(number.get(..end)?).ok()?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    Some((code.ok()?, end + 3))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "sk-not/a+key~4f1e7";

    fn matcher() -> KeyMatcher {
        KeyMatcher::new([KEY.to_owned(), "other-key-000".to_owned()].into()).unwrap()
    }

    fn redacted(text: &str) -> String {
        let matcher = matcher();
        let may_occur = matcher.may_occur(text.as_bytes());
        let redacted = matcher.redact(text.as_bytes());
        assert!(may_occur || *redacted == *text.as_bytes(), "the first look misses {text}");
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
        text.chars().zip(spellings.iter().cycle()).map(spell).collect()
    }

    #[test]
    fn text_without_a_key_stays_as_it_is() {
        for text in
            ["", "\\", "%", "%2", "&#", "&#115", "\\u00", "\\u007", "sk-not/a+key~4f1e", "a\\/b %73 &#115; \\u0073k"]
        {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn two_keys_that_touch_are_both_redacted() {
        assert_eq!(redacted(&format!("<{KEY}other-key-000>")), format!("<{}>", "*".repeat(KEY.len() + 13)));
    }

    #[test]
    fn placeholders_and_short_words_are_no_keys() {
        for word in ["ollama", "Ollama", "EMPTY", "none"] {
            add_key(word);
            assert_eq!(redact(&format!("ask {word}")), format!("ask {word}"));
        }
    }

    proptest! {
        #[test]
        fn a_key_is_found_in_every_spelling(spellings in prop::collection::vec(0..8usize, 1..20), n in 0..9usize) {
            let encoded = String::from_utf8(encodings(KEY.as_bytes()).swap_remove(n)).unwrap();
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
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let matcher = matcher();
            prop_assert_eq!(matcher.redact(&bytes).len(), bytes.len());
        }
    }
}
