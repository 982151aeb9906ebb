//! Reads bytes as the characters that they stand for: escapes are resolved, and what only divides or colours a text is
//! passed over.

/// A character and the bytes that spell it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelled {
    pub byte: u8,
    /// Where its bytes begin.
    pub start: usize,
    /// Where its bytes end.
    pub end: usize,
    /// Whether something was passed over before it.
    pub follows_gap: bool,
}

/// The characters of `bytes`, one after the other.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes, at: 0 }
    }

    /// Passes over a colour or another terminal sequence whose escape character was read.
    fn skip_sequence(&mut self) {
        if self.bytes.get(self.at) != Some(&b'[') {
            return;
        }
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let is_parameter = |byte: &u8| (0x20..0x40).contains(byte);
        if let Some(end) = rest.iter().take(32).position(|byte| !is_parameter(byte)) {
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
                _ => return Some(Spelled { byte, start, end: self.at, follows_gap }),
            }
            follows_gap = true;
        }
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
    match rest.first() {
        Some(b'u') if rest.get(1..3) == Some(b"00") => Some((hex_byte(rest.get(3..5)?)?, slashes + 5)),
        Some(b'x') => Some((hex_byte(rest.get(1..3)?)?, slashes + 3)),
        Some(quoted @ (b'/' | b'"')) => Some((*quoted, slashes + 1)),
        Some(b'n' | b'r' | b't') => Some((b'\n', slashes + 1)),
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
    NAMES.iter().find(|(name, _)| text.starts_with(name)).map(|(name, byte)| (*byte, name.len()))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}
