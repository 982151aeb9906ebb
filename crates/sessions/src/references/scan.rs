//! Finds the references in a text, in one pass over its words and what is around them.

use std::collections::HashSet;
use std::iter::Peekable;
use std::ops::Range;

use base::text::last_bytes;
use base::words::{is_han, is_kana};

use super::noise::{is_error_line, is_measure, is_stopped};
use super::shape::{
    TextKind, command_at, is_file_name, is_kebab, is_uuid, kind_of_part, kind_of_word,
};
use super::{Reference, ReferenceKind};

/// The longest error line that is one reference.
const LONGEST_ERROR: usize = 160;
/// The longest line whose numbers count because it reports an error.
const LONGEST_ERROR_LINE: usize = 400;
/// The most characters of a quoted Chinese or Japanese text.
const LONGEST_QUOTED: usize = 60;

/// The distinct references of a text, in the order in which each first occurs.
pub fn references_in(text: &str) -> Vec<Reference> {
    distinct(find_references(text))
}

/// The distinct references of a shell command.
pub(super) fn references_in_command(command: &str) -> Vec<Reference> {
    distinct(Scanner::new(command, TextKind::Shell).run())
}

fn distinct(found: Vec<(Range<usize>, Reference)>) -> Vec<Reference> {
    let mut seen = HashSet::new();
    found
        .into_iter()
        .map(|(_, reference)| reference)
        .filter(|reference| seen.insert(reference.key()))
        .collect()
}

/// All references of a text with their places, in order, none overlapping another.
pub fn find_references(text: &str) -> Vec<(Range<usize>, Reference)> {
    Scanner::new(text, TextKind::Prose).run()
}

struct Scanner<'a> {
    text: &'a str,
    kind_of_text: TextKind,
    references: Vec<(Range<usize>, Reference)>,
    /// Quotes that are one reference each, in order.
    whole_quotes: Peekable<std::vec::IntoIter<(Range<usize>, ReferenceKind)>>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, kind_of_text: TextKind) -> Scanner<'a> {
        let whole: Vec<_> = quotes(text)
            .into_iter()
            .filter_map(|quote| whole_quote(text, quote))
            .collect();
        Scanner {
            text,
            kind_of_text,
            references: Vec::new(),
            whole_quotes: whole.into_iter().peekable(),
        }
    }

    fn run(mut self) -> Vec<(Range<usize>, Reference)> {
        let mut at = 0;
        while let Some(word) = next_word(self.text, at) {
            at = self
                .take_quotes(word.start)
                .unwrap_or_else(|| self.add_word(word));
        }
        self.take_quotes(self.text.len());
        self.references
    }

    /// Adds the quotes that begin at or before `start`. Returns the end of the last one if it reaches beyond `start`.
    fn take_quotes(&mut self, start: usize) -> Option<usize> {
        let mut end = None;
        while let Some((range, kind)) = self.whole_quotes.next_if(|(range, _)| range.start <= start)
        {
            end = Some(range.end).filter(|end| *end > start);
            self.add(range, kind);
        }
        end
    }

    /// Adds the references of one word, and returns where to continue.
    fn add_word(&mut self, word: Range<usize>) -> usize {
        if let Some(url) = url_at(self.text, &word) {
            let end = url.end;
            self.add(url, ReferenceKind::Url);
            return end;
        }
        if let Some(command) = command_at(self.text, &word, self.kind_of_text) {
            let end = command.end;
            self.add(command, ReferenceKind::Command);
            return end;
        }
        let end = word.end;
        let word = trimmed(self.text, word);
        let Some(text) = self.text.get(word.clone()) else {
            return end;
        };
        if is_uuid(text) {
            return end;
        }
        if is_issue_number(text) || is_number(self.text, &word) {
            self.add(word, ReferenceKind::Number);
        } else if let Some(kind) = kind_of_word(text) {
            let is_call = kind == ReferenceKind::FileName
                && self
                    .text
                    .get(word.end..)
                    .is_some_and(|rest| rest.starts_with('('));
            if !is_call {
                self.add(word, kind);
            }
        } else {
            self.add_pieces(word);
        }
        end
    }

    /// Adds the references in pieces of a word that is not one itself, such as `serde@1.0.2` or `self.load_config`.
    fn add_pieces(&mut self, word: Range<usize>) {
        for piece in split(self.text, word, |b| matches!(b, b'@' | b'#' | b'$' | b'+')) {
            let text = self.text.get(piece.clone()).unwrap_or("");
            if let Some(kind) = kind_of_word(text) {
                self.add(piece, kind);
                continue;
            }
            for part in split(self.text, piece, |b| {
                !(b.is_ascii_alphanumeric() || b == b'_')
            }) {
                if let Some(kind) = self.text.get(part.clone()).and_then(kind_of_part) {
                    self.add(part, kind);
                }
            }
        }
    }

    fn add(&mut self, range: Range<usize>, kind: ReferenceKind) {
        let Some(text) = self.text.get(range.clone()) else {
            return;
        };
        let reference = Reference {
            kind,
            text: text.to_owned(),
        };
        if !is_stopped(&reference.key()) {
            self.references.push((range, reference));
        }
    }
}

/// A text in code marks or quotation marks, within one line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Quote {
    range: Range<usize>,
    /// The mark that opens it.
    mark: char,
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

/// The quotes of a text in order, none inside another.
fn quotes(text: &str) -> Vec<Quote> {
    let mut quotes = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.contains(['`', '"', '「', '『', '“', '《']) {
            add_quotes(line, start, &mut quotes);
        }
        start += line.len();
    }
    quotes
}

fn add_quotes(line: &str, offset: usize, quotes: &mut Vec<Quote>) {
    let mut at = 0;
    // Marks that do not occur in the rest of the line.
    let mut absent: Vec<char> = Vec::new();
    while let Some(rest) = line.get(at..) {
        let Some((open_at, open, close)) = rest
            .char_indices()
            .find_map(|(i, c)| Some((i, c, closing(c)?)))
        else {
            break;
        };
        let start = at + open_at + open.len_utf8();
        let inner = line.get(start..).unwrap_or("");
        let end = if absent.contains(&close) {
            None
        } else {
            inner.find(close)
        };
        match end {
            // A run of marks opens a code block, or encloses text with a mark in it.
            Some(0) => {
                at = start
                    + inner
                        .chars()
                        .take_while(|c| *c == close)
                        .map(char::len_utf8)
                        .sum::<usize>()
            }
            Some(length) => {
                quotes.push(Quote {
                    range: offset + start..offset + start + length,
                    mark: open,
                });
                at = start + length + close.len_utf8();
            }
            None => {
                absent.push(close);
                at = start;
            }
        }
    }
}

/// A quote that is a reference as a whole, with its kind.
fn whole_quote(text: &str, quote: Quote) -> Option<(Range<usize>, ReferenceKind)> {
    let inner = text.get(quote.range.clone())?;
    let kind = if inner.chars().any(|c| is_han(c) || is_kana(c)) {
        (2..=LONGEST_QUOTED)
            .contains(&inner.chars().count())
            .then_some(ReferenceKind::Quoted)
    } else if quote.mark == '`' && is_kebab(inner) {
        Some(ReferenceKind::Identifier)
    } else {
        let is_line = (12..=LONGEST_ERROR).contains(&inner.len())
            && inner.trim() == inner
            && inner.contains(' ');
        (is_line && is_error_line(inner)).then_some(ReferenceKind::ErrorLine)
    };
    Some((quote.range, kind?))
}

fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'_' | b'.' | b'/' | b'~' | b'@' | b'+' | b'#' | b'$' | b'-'
        )
}

/// The next run of characters that words are made of.
fn next_word(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at..)?;
    let start = rest.iter().position(|b| is_word_byte(*b))?;
    let length = rest
        .iter()
        .skip(start)
        .take_while(|b| is_word_byte(**b))
        .count();
    Some(at + start..at + start + length)
}

/// The non-empty stretches of `range` between bytes that `separates`.
fn split(text: &str, range: Range<usize>, separates: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = range.start;
    for (at, byte) in text.bytes().enumerate().take(range.end).skip(range.start) {
        if separates(byte) {
            pieces.push(start..at);
            start = at + 1;
        }
    }
    pieces.push(start..range.end);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// A word without the punctuation of the sentence around it, and without the anchor of a line in a file.
fn trimmed(text: &str, word: Range<usize>) -> Range<usize> {
    let whole = text.get(word.clone()).unwrap_or("");
    let is_issue = whole
        .strip_prefix('#')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let head = if whole.starts_with("--") || is_issue {
        whole.trim_start_matches('+')
    } else {
        whole.trim_start_matches(['@', '+', '$', '#', '-'])
    };
    let start = word.start + (whole.len() - head.len());
    let anchor = head
        .get(1..)
        .and_then(|rest| rest.find('#'))
        .filter(|_| head.contains('/'));
    let head = anchor.and_then(|at| head.get(..at + 1)).unwrap_or(head);
    let inner = head.trim_end_matches(['.', '-', '@', '+', '/', '#', '$', '~']);
    start..start + inner.len()
}

fn url_at(text: &str, scheme: &Range<usize>) -> Option<Range<usize>> {
    let name = text.get(scheme.clone())?;
    let start = ["https", "http"]
        .iter()
        .find(|scheme| name.ends_with(**scheme))
        .map(|s| scheme.end - s.len())?;
    let rest = text.get(scheme.end..)?.strip_prefix("://")?;
    let length = rest.find(ends_url).unwrap_or(rest.len());
    let address = rest
        .get(..length)?
        .trim_end_matches(['.', ';', ':', '!', '?', '/', '*']);
    (!address.is_empty()).then_some(start..scheme.end + 3 + address.len())
}

fn ends_url(c: char) -> bool {
    c.is_whitespace()
        || !c.is_ascii()
        || matches!(
            c,
            '"' | '\'' | '<' | '>' | '`' | ')' | ']' | '}' | '\\' | ',' | '|'
        )
}

fn is_issue_number(word: &str) -> bool {
    word.strip_prefix('#').is_some_and(|digits| {
        (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Whether the digits at `range` are a port, a value, or part of an error line.
fn is_number(text: &str, range: &Range<usize>) -> bool {
    let Some(word) = text.get(range.clone()) else {
        return false;
    };
    let is_decimal =
        word.bytes().all(|b| b.is_ascii_digit() || b == b'.') && word.matches('.').count() <= 1;
    if word.len() < 2 || !is_decimal {
        return false;
    }
    let before = last_bytes(text.get(..range.start).unwrap_or(""), 48);
    let is_whole = !word.contains('.');
    if is_whole && word.len() <= 5 && follows_port(before) {
        return true;
    }
    match assigned_name(before) {
        Some(name) => {
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !is_measure(name)
                && !names_file(name)
        }
        None => {
            is_whole
                && !is_before_unit(text, range.end)
                && is_in_error_line(text, range.start, before)
        }
    }
}

/// Whether a unit follows, as in `30 s`.
fn is_before_unit(text: &str, at: usize) -> bool {
    const UNITS: &[&str] = &[
        "s", "ms", "sec", "secs", "seconds", "minutes", "min", "hours", "times", "bytes", "kb",
        "mb",
    ];
    let rest = text.get(at..).unwrap_or("");
    let next: String = rest
        .trim_start_matches(' ')
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    rest.starts_with('%') || UNITS.contains(&next.to_ascii_lowercase().as_str())
}

fn follows_port(before: &str) -> bool {
    let lower = before.to_lowercase();
    let near = lower.trim_end_matches([' ', '=', ':', '"', '\'', '`']);
    lower.ends_with("localhost:")
        || lower.ends_with("127.0.0.1:")
        || lower.ends_with("0.0.0.0:")
        || near.ends_with("port")
        || near.ends_with("端口")
        || near.ends_with("ポート")
}

/// The name in `name = `, `"name": ` or `name:` at the end of `before`.
fn assigned_name(before: &str) -> Option<&str> {
    let near = before.trim_end_matches([' ', '"', '\'', '`']);
    let near = near
        .strip_suffix("==")
        .or_else(|| near.strip_suffix(['=', ':', '：']))?;
    let near = near.trim_end_matches([' ', '"', '\'', '`']);
    let before_name =
        near.trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    near.get(before_name.len()..)
        .filter(|name| !name.is_empty())
}

/// Whether `name:` is the place before a line number.
fn names_file(name: &str) -> bool {
    is_file_name(name.rsplit('/').next().unwrap_or(name))
}

fn is_in_error_line(text: &str, at: usize, before: &str) -> bool {
    let is_apart = before.is_empty() || before.ends_with([' ', '(', '[', '\n']);
    let word = before.trim_end_matches([' ', '(', '[', ':']);
    let word = word
        .rsplit(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
        .unwrap_or("");
    if !is_apart || is_measure(word) || word.ends_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    /// More bytes than the longest line, a character and a line break have: a text of one long line is not read again
    /// for each of its numbers.
    const NEAR: usize = LONGEST_ERROR_LINE + 6;
    let near = last_bytes(text.get(..at).unwrap_or(""), NEAR);
    let start = at - near.len() + near.rfind('\n').map_or(0, |start| start + 1);
    let rest = text
        .get(start..text.floor_char_boundary(start + NEAR))
        .unwrap_or("");
    let line = rest.lines().next().unwrap_or("");
    line.len() <= LONGEST_ERROR_LINE && is_error_line(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_end_in_their_line() {
        let text = "a `b c` \"d\ne\" 「日本」 ```rust\n`f`";
        let found: Vec<&str> = quotes(text)
            .into_iter()
            .map(|quote| &text[quote.range])
            .collect();
        assert_eq!(found, ["b c", "日本", "f"]);
    }

    fn texts(text: &str) -> Vec<String> {
        references_in(text)
            .into_iter()
            .map(|reference| reference.text)
            .collect()
    }

    fn kinds(text: &str) -> Vec<(ReferenceKind, String)> {
        references_in(text)
            .into_iter()
            .map(|reference| (reference.kind, reference.text))
            .collect()
    }

    #[test]
    fn a_planted_message_yields_exactly_its_details() {
        let text = "I changed `src/store/index.rs` and config.toml; load_config now reads MAX_RETRIES=12 from .env.\n\
                    Run `cargo test --lib` with --no-capture on serde@1.0.219 (commit 3f2a9bc, see #412).\n\
                    It listens on port 8081, docs at https://docs.example.org/setup.";
        use ReferenceKind::{
            Command, FileName, Flag, Hash, Identifier, Number, Path, Url, Version,
        };
        let expected = [
            (Path, "src/store/index.rs"),
            (FileName, "config.toml"),
            (Identifier, "load_config"),
            (Identifier, "MAX_RETRIES"),
            (Number, "12"),
            (FileName, ".env"),
            (Command, "cargo test"),
            (Flag, "--lib"),
            (Flag, "--no-capture"),
            (Version, "1.0.219"),
            (Hash, "3f2a9bc"),
            (Number, "#412"),
            (Number, "8081"),
            (Url, "https://docs.example.org/setup"),
        ];
        assert_eq!(
            kinds(text),
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
    }

    #[test]
    fn chinese_and_japanese_count_in_marks_and_beside_latin_names() {
        assert_eq!(
            texts("把「重试次数」改成三次，端口8081，配置在src/app.py里，用retryCount变量"),
            ["重试次数", "8081", "src/app.py", "retryCount"]
        );
        assert_eq!(
            texts("`接続エラー` が出た。数据库连接失败。"),
            ["接続エラー"]
        );
        assert_eq!(texts("我们先看一下代码，然后运行测试。"), [""; 0]);
    }

    #[test]
    fn an_error_line_is_one_reference_and_its_parts_are_not() {
        let text = "It says `error[E0502]: cannot borrow cache_index as mutable` in `run now`.";
        assert_eq!(
            kinds(text),
            [(
                ReferenceKind::ErrorLine,
                "error[E0502]: cannot borrow cache_index as mutable".into()
            )]
        );
        assert_eq!(
            texts("Error: request failed with status 503 after 30 s"),
            ["503"]
        );
    }

    #[test]
    fn limits_ranges_times_and_lists_are_noise() {
        for noise in [
            "timeout=3000 limit: 2000 offset: 120 lines 10-20 head_limit: 50 max_tokens: 4096",
            "src",
            "at 12:30:45 on 2026-11-22 it took 350ms, 12 of 15 tests, line 42",
            "toolu_01AbCdEf call_9f8e7d 123e4567-e89b-12d3-a456-426614174000 REDACTED_KEY_1",
            "/dev/null in_progress JavaScript GitHub --help git status `git diff`",
            "and/or 10/12 w/o e.g. i.e. obj.method example.com self.db console.log(x) 10.0.0.1",
            "We make sure that we go on. I cargo along.",
            "// a comment ### heading --- *** === |---|---|",
        ] {
            let names: Vec<String> = texts(noise)
                .into_iter()
                .filter(|text| !["max_tokens", "timeout_ms"].contains(&&**text))
                .collect();
            assert_eq!(names, [""; 0], "{noise}");
        }
    }

    #[test]
    fn a_line_number_after_a_file_is_not_a_value() {
        assert_eq!(texts("src/a.rs:120:5: warning"), ["src/a.rs"]);
        assert_eq!(
            texts("see src/a.rs#L10-L20 and a.rs:77"),
            ["src/a.rs", "a.rs"]
        );
        assert_eq!(texts("{\"retries\": 15, \"ratio\": 0.25}"), ["15", "0.25"]);
    }

    #[test]
    fn only_the_longest_match_counts_and_each_detail_once() {
        assert_eq!(
            texts("/home/user/my_app/load_config.py, then /home/user/my_app/load_config.py"),
            ["/home/user/my_app/load_config.py"]
        );
        assert_eq!(texts("`job-queue` job-queue my-own-name"), ["job-queue"]);
        assert_eq!(
            texts("diff 1234abc..89abcde self.load_config() crate::store::open_index"),
            ["1234abc", "89abcde", "load_config", "open_index"]
        );
    }

    #[test]
    fn a_shell_command_begins_at_each_line() {
        let found = references_in_command(
            "cd app && npm run build\ncargo test --workspace | tail -5\ngit status",
        );
        let texts: Vec<&str> = found.iter().map(|reference| &*reference.text).collect();
        assert_eq!(texts, ["npm run build", "cargo test", "--workspace"]);
    }

    proptest! {
        #[test]
        fn references_are_in_order_and_quote_the_text(text in "[a-zA-Z0-9_./:=#@`\"「」 \n错误-]{0,80}|\\PC{0,60}") {
            let mut end = 0;
            for (range, reference) in find_references(&text) {
                prop_assert!(range.start >= end && !range.is_empty());
                prop_assert_eq!(text.get(range.clone()), Some(reference.text.as_str()));
                end = range.end;
            }
        }

        #[test]
        fn a_text_and_the_next_have_the_references_of_both(a in "[a-z_./:=#` 0-9-]{0,40}", b in "[a-z_./:=#` 0-9-]{0,40}") {
            let both = find_references(&format!("{a}\n{b}")).len();
            prop_assert_eq!(both, find_references(&a).len() + find_references(&b).len());
        }
    }
}
