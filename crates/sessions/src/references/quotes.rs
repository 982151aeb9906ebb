//! What occurs in code marks or quotation marks, within one line.

use std::ops::Range;

/// A quoted piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) range: Range<usize>,
    /// The mark that opens it.
    pub(super) mark: char,
}

/// The mark that closes what `open` opens.
fn closing(open: char) -> Option<char> {
    Some(match open {
        '`' | '"' => open,
        '「' => '」',
        '『' => '』',
        '“' => '”',
        '《' => '》',
        _ => return None,
    })
}

/// The quotes of a text in rising order, none inside another.
pub(super) fn quotes(text: &str) -> Vec<Quote> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.contains(['`', '"', '「', '『', '“', '《']) {
            quotes_of_line(line, start, &mut found);
        }
        start += line.len();
    }
    found
}

fn quotes_of_line(line: &str, offset: usize, found: &mut Vec<Quote>) {
    let mut at = 0;
    while let Some(rest) = line.get(at..) {
        let Some((open_at, open, close)) = rest.char_indices().find_map(|(i, c)| Some((i, c, closing(c)?))) else {
            break;
        };
        let start = at + open_at + open.len_utf8();
        let inner = line.get(start..).unwrap_or("");
        match inner.find(close) {
            // A run of marks opens a code block, or encloses text with a mark in it.
            Some(0) => at = start + inner.chars().take_while(|c| *c == close).map(char::len_utf8).sum::<usize>(),
            Some(length) => {
                found.push(Quote { range: offset + start..offset + start + length, mark: open });
                at = start + length + close.len_utf8();
            }
            None => at = start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_end_in_their_line() {
        let text = "a `b c` \"d\ne\" 「日本」 ```rust\n`f`";
        let found: Vec<&str> = quotes(text).into_iter().map(|quote| &text[quote.range]).collect();
        assert_eq!(found, ["b c", "日本", "f"]);
    }
}
