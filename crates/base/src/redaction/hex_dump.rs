//! Hex dumps as `xxd` and `hexdump -C` print them: an offset, groups of digits, and the bytes as text.
//!
//! A line shows 16 bytes, so no line of it holds enough of a key to be found: the bytes of all lines are put together.

use std::ops::Range;

/// A byte of a dump, with the places that show it.
#[derive(Debug)]
pub(super) struct DumpedByte {
    pub byte: u8,
    pub digits: Range<usize>,
    /// The character beside the digits, where there is one.
    pub shown: Option<usize>,
}

/// The most bytes of a line.
const WIDEST: usize = 64;

/// The bytes of all lines of a text that look like those of a dump.
pub(super) fn dumped_bytes(text: &[u8]) -> Vec<DumpedByte> {
    let mut bytes = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        dumped_line(line, start, &mut bytes);
        start += line.len();
    }
    bytes
}

/// Adds the bytes of a line that begins at `start`.
fn dumped_line(line: &[u8], start: usize, bytes: &mut Vec<DumpedByte>) {
    let offset = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let colon = usize::from(line.get(offset) == Some(&b':'));
    if offset < 6 || line.get(offset + colon) != Some(&b' ') {
        return;
    }
    let first = bytes.len();
    let mut at = offset + colon;
    while bytes.len() - first < WIDEST {
        let spaces = line.get(at..).unwrap_or_default().iter().take_while(|byte| **byte == b' ').count();
        // Two spaces end the digits, except after the offset and in the middle of a line of `hexdump -C`.
        let ends = spaces > 2 || (spaces == 2 && colon == 1 && bytes.len() > first);
        let pair = line.get(at + spaces..at + spaces + 2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if !ends => {
                let digits = start + at + spaces..start + at + spaces + 2;
                bytes.push(DumpedByte { byte, digits, shown: None });
                at += spaces + 2;
            }
            _ => break,
        }
    }
    let text = line.get(at..).unwrap_or_default();
    let margin = text.iter().take_while(|byte| matches!(byte, b' ' | b'|')).count();
    for (index, dumped) in bytes.iter_mut().skip(first).enumerate() {
        let shown = at + margin + index;
        dumped.shown = (line.get(shown) == Some(&dumped.byte)).then_some(start + shown);
    }
}
