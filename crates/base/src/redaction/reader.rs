//! Reads bytes as the characters that they stand for: resolves escapes, skips what only divides or colours a text, and
//! decodes hex dumps.

use std::ops::Range;

/// A character and the bytes that spell it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelled {
    pub byte: u8,
    /// Where its bytes begin.
    pub start: usize,
    /// Where its bytes end.
    pub end: usize,
    /// Whether something was skipped before it.
    pub follows_gap: bool,
}

/// The characters of `bytes`, one after the other.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Whether the characters are read as numbers in a list: `0x73, 0x6b` or `73:6b`.
    of_numbers: bool,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8], of_numbers: bool) -> Reader<'b> {
        Reader {
            bytes,
            at: 0,
            of_numbers,
        }
    }

    /// Skips a colour or another terminal sequence whose escape character was read.
    fn skip_sequence(&mut self) {
        if self.bytes.get(self.at) != Some(&b'[') {
            return;
        }
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        // The parameters of the sequence end where its last character stands.
        if let Some(end) = rest
            .iter()
            .take(32)
            .position(|byte| !(0x20..0x40).contains(byte))
        {
            self.at += end + 2;
        }
    }
}

impl Iterator for Reader<'_> {
    type Item = Spelled;

    fn next(&mut self) -> Option<Spelled> {
        let mut follows_gap = false;
        loop {
            let start = self.at;
            let (byte, width) = unescaped(self.bytes, start)?;
            self.at += width;
            match byte {
                0x1b => self.skip_sequence(),
                0 | b' ' | b'\n' | b'\r' | b'\t' => {}
                b':' | b',' if self.of_numbers => {}
                b'0' if self.of_numbers && self.bytes.get(self.at) == Some(&b'x') => self.at += 1,
                b'<' if tag_length(self.bytes, start) > 0 => {
                    self.at = start + tag_length(self.bytes, start);
                }
                _ if unseen_length(self.bytes, start) > 0 => {
                    self.at = start + unseen_length(self.bytes, start);
                }
                _ => {
                    return Some(Spelled {
                        byte,
                        start,
                        end: self.at,
                        follows_gap,
                    });
                }
            }
            follows_gap = true;
        }
    }
}

/// The length of a character that nobody sees, 0 if there is none: U+200B to U+200D, U+2060, U+00AD.
fn unseen_length(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..).unwrap_or_default() {
        [0xe2, 0x80, 0x8b..=0x8d, ..] | [0xe2, 0x81, 0xa0, ..] => 3,
        [0xc2, 0xad, ..] => 2,
        _ => 0,
    }
}

/// The length of a short tag of HTML, 0 if there is none: `<b>`, `</span>`, `<a href="…">`.
fn tag_length(bytes: &[u8], at: usize) -> usize {
    const LONGEST: usize = 48;
    const LONGEST_NAME: usize = 10;
    let rest = bytes.get(at + 1..).unwrap_or_default();
    let inside = rest.strip_prefix(b"/").unwrap_or(rest);
    let name = inside
        .iter()
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    let is_named = (1..=LONGEST_NAME).contains(&name)
        && matches!(inside.get(name), Some(b'>' | b' ' | b'/' | b'1'..=b'6'));
    let end = rest
        .iter()
        .take(LONGEST)
        .position(|byte| matches!(byte, b'>' | b'<'));
    match end {
        Some(end) if is_named && rest.get(end) == Some(&b'>') => end + 2,
        _ => 0,
    }
}

/// The character at an offset and the length of its spelling: `\u0073`, `\x73`, `\/`, `\n` with any number of
/// backslashes (JSON in JSON), `%73`, `%2573`, `&#115;`, `&#x73;`, `&amp;`, or itself. `None` at the end.
fn unescaped(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let rest = bytes.get(at..)?;
    let spelled = match rest.first()? {
        b'\\' => after_backslashes(rest),
        b'%' => percent_encoded(rest),
        b'&' => character_reference(rest).or_else(|| named_reference(rest)),
        _ => None,
    };
    spelled.or_else(|| Some((*rest.first()?, 1)))
}

fn after_backslashes(text: &[u8]) -> Option<(u8, usize)> {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    let rest = text.get(slashes..)?;
    let escaped = match rest.first() {
        Some(b'u') if rest.get(1..3) == Some(b"00") => rest
            .get(3..5)
            .and_then(hex_byte)
            .map(|byte| (byte, slashes + 5)),
        Some(b'x') => rest
            .get(1..3)
            .and_then(hex_byte)
            .map(|byte| (byte, slashes + 3)),
        Some(quoted @ (b'/' | b'"')) => Some((*quoted, slashes + 1)),
        Some(b'n' | b'r' | b't') => Some((b'\n', slashes + 1)),
        _ => None,
    };
    // Otherwise it is a backslash, escaped once or more often. All of them are read at once: a run of them takes linear
    // time.
    Some(escaped.unwrap_or((b'\\', slashes)))
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
    // a number of more digits is not a character of a key
    let end = number.iter().take(8).position(|byte| *byte == b';')?;
    let digits = std::str::from_utf8(number.get(..end)?).ok()?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    Some((code.ok()?, end + 3))
}

/// HTML's names of the characters that a key may have.
const NAMES: [(&[u8], u8); 19] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
    (b"&sol;", b'/'),
    (b"&plus;", b'+'),
    (b"&equals;", b'='),
    (b"&lowbar;", b'_'),
    (b"&UnderBar;", b'_'),
    (b"&dash;", b'-'),
    (b"&hyphen;", b'-'),
    (b"&period;", b'.'),
    (b"&colon;", b':'),
    (b"&tilde;", b'~'),
    (b"&excl;", b'!'),
    (b"&dollar;", b'$'),
    (b"&num;", b'#'),
    (b"&commat;", b'@'),
];

fn named_reference(text: &[u8]) -> Option<(u8, usize)> {
    NAMES
        .iter()
        .find(|(name, _)| text.starts_with(name))
        .map(|(name, byte)| (*byte, name.len()))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// A byte of a hex dump, with the places that show it. The dumps are those of `xxd` and `hexdump -C`: an offset, groups
/// of digits, and the bytes as text. One line shows only 16 bytes, too few of a key to be found, so the bytes of all
/// lines are joined.
#[derive(Debug)]
pub(super) struct DumpedByte {
    pub byte: u8,
    pub digits: Range<usize>,
    /// The character beside the digits, where there is one.
    pub shown: Option<usize>,
}

impl DumpedByte {
    pub(super) fn places(&self) -> impl Iterator<Item = Range<usize>> {
        [Some(self.digits.clone()), self.shown.map(|at| at..at + 1)]
            .into_iter()
            .flatten()
    }
}

/// The most bytes of a line of a dump.
const WIDEST: usize = 64;

/// The bytes that the lines of a text show which look like lines of a dump.
pub(super) fn dumped_bytes(text: &[u8]) -> Vec<DumpedByte> {
    let mut bytes = Vec::new();
    let mut end_of_last = 0;
    for start in starts_of_lines(text).filter(|start| *start < text.len()) {
        let line = text.get(start..).unwrap_or_default();
        let before = bytes.len();
        if start >= end_of_last {
            add_dumped_line(line, start, &mut bytes);
        }
        if let Some(last) = bytes.last().filter(|_| bytes.len() > before) {
            end_of_last = last.digits.end;
        }
    }
    bytes
}

/// Where lines begin: after a line break, after one that is escaped in JSON, however often, and after a quote, where the
/// first line of a string begins.
fn starts_of_lines(text: &[u8]) -> impl Iterator<Item = usize> {
    let breaks = text.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' | b'"' => true,
        b'n' => at.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'\\'),
        _ => false,
    });
    std::iter::once(0).chain(breaks.map(|(at, _)| at + 1))
}

/// Adds the bytes of a line that begins at `start`.
fn add_dumped_line(line: &[u8], start: usize, bytes: &mut Vec<DumpedByte>) {
    let offset = line
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let colon = usize::from(line.get(offset) == Some(&b':'));
    if offset < 6 || line.get(offset + colon) != Some(&b' ') {
        return;
    }
    let first = bytes.len();
    let mut at = offset + colon;
    while bytes.len() - first < WIDEST {
        let spaces = line
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| **byte == b' ')
            .count();
        // Two spaces end the digits, except after the offset and in the middle of a line of `hexdump -C`.
        let ends = spaces > 2 || (spaces == 2 && colon == 1 && bytes.len() > first);
        match line.get(at + spaces..at + spaces + 2).and_then(hex_byte) {
            Some(byte) if !ends => {
                let digits = start + at + spaces..start + at + spaces + 2;
                bytes.push(DumpedByte {
                    byte,
                    digits,
                    shown: None,
                });
                at += spaces + 2;
            }
            _ => break,
        }
    }
    let text = line.get(at..).unwrap_or_default();
    let margin = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'|'))
        .count();
    let mut shown = at + margin;
    for dumped in bytes.iter_mut().skip(first) {
        // In JSON a quote and a backslash are escaped.
        let is_escaped = line.get(shown) == Some(&b'\\') && matches!(dumped.byte, b'"' | b'\\');
        let escapes = line.get(shown..).unwrap_or_default().iter();
        let escapes = escapes.take_while(|byte| **byte == b'\\').count();
        shown += if is_escaped {
            escapes.max(1) - usize::from(dumped.byte == b'\\')
        } else {
            0
        };
        dumped.shown = (line.get(shown) == Some(&dumped.byte)).then_some(start + shown);
        shown += 1;
    }
}
