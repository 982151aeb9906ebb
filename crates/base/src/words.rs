//! Cutting texts: classes of characters, words, paths and sentences. What a text is made of is decided here alone.

/// A closed list of words, with blanks between them.
#[derive(Clone, Copy, Debug)]
pub struct WordList(pub &'static str);

impl WordList {
    /// The words.
    pub fn iter(self) -> impl Iterator<Item = &'static str> + Clone {
        self.0.split_ascii_whitespace()
    }

    /// Whether this is one of the words.
    pub fn has(self, word: &str) -> bool {
        self.iter().any(|listed| listed == word)
    }
}

/// Whether `c` is a Chinese character. Japanese and old Korean texts have them, too.
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Whether `c` is a syllable of Japanese.
pub fn is_kana(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}')
}

/// Whether `c` is a syllable of Korean.
pub fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7af}')
}

/// Whether `c` is Chinese, Japanese or Korean: such text is matched by pairs of characters.
pub fn is_east_asian(c: char) -> bool {
    is_han(c) || is_kana(c) || is_hangul(c)
}

/// Whether more than a quarter of the characters of `text` are Chinese. Japanese has such characters, too, but more of its
/// own; Korean has hardly any.
pub fn is_chinese(text: &str) -> bool {
    let chinese = text.chars().filter(|c| is_han(*c)).count();
    let others = text
        .chars()
        .filter(|c| is_kana(*c) || is_hangul(*c))
        .count();
    chinese > others && chinese * 4 > text.chars().count()
}

/// Whether `c` is part of a word in a script with blanks between words.
pub fn is_word(c: char) -> bool {
    (c.is_alphanumeric() || c == '_') && !is_unspaced(c)
}

/// Whether `c` belongs to a script that puts no blanks between words: Chinese, Japanese, Korean (whose particles
/// cling to the word), Thai, Lao, Khmer, Burmese.
pub fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1100..=0x11FF | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3040..=0x30FF
        | 0x3130..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF | 0x20000..=0x323AF)
}

/// The words of a text: runs of letters, digits and underscores, cut where an unspaced script begins.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_') || is_unspaced(c))
        .filter(|word| !word.is_empty())
}

/// What texts are matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTerm<'t> {
    /// A word in lower case; of an identifier, a path or a file name each part.
    Word(&'t str),
    /// Such a name as a whole, in lower case.
    Name(&'t str),
    /// Two neighbours in a Chinese, Japanese or Korean text.
    Pair(&'t str),
    /// Such a character without a neighbour.
    Single(&'t str),
}

/// Hands every term of a text to `each`, repeats included.
pub fn each_term(text: &str, mut each: impl FnMut(TextTerm<'_>)) {
    let (mut word, mut name, mut parts) = (String::new(), String::new(), 0);
    let (mut wide, mut after_lower) = (String::new(), false);
    for c in text.chars().chain([' ']) {
        let is_wide = is_east_asian(c);
        let is_letter = c.is_alphanumeric() && !is_wide;
        // `UnicodeDecodeError` has the term `error`.
        let begins_part = after_lower && c.is_uppercase();
        if !word.is_empty() && (begins_part || !is_letter) {
            parts += 1;
            each(TextTerm::Word(&word));
            word.clear();
        }
        after_lower = c.is_lowercase();
        if is_wide {
            wide.push(c);
        } else if !wide.is_empty() {
            end_wide(&wide, &mut each);
            wide.clear();
        }
        if is_letter {
            word.extend(c.to_lowercase());
            name.extend(c.to_lowercase());
        } else if matches!(c, '_' | '.' | '/' | '-') && !name.is_empty() {
            name.push(c);
        } else {
            if parts > 1 {
                each(TextTerm::Name(name.trim_end_matches(['.', '/', '-', '_'])));
            }
            name.clear();
            parts = 0;
        }
    }
}

/// Hands the pairs of a run to `each`, or its only character.
fn end_wide(run: &str, each: &mut impl FnMut(TextTerm<'_>)) {
    if run.chars().nth(1).is_none() {
        return each(TextTerm::Single(run));
    }
    let starts = run.char_indices().map(|(at, _)| at);
    let ends = run.char_indices().skip(1).map(|(at, c)| at + c.len_utf8());
    starts
        .zip(ends)
        .filter_map(|(start, end)| run.get(start..end))
        .for_each(|pair| each(TextTerm::Pair(pair)));
}

/// A text as a number: FNV-1a, the same on every machine.
pub fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The runs of a text that could be paths or file names: with a slash or an inner dot, without the punctuation of
/// the sentence around them. A run that begins with `//` is the rest of an address and left out.
pub fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_path_char(c) || is_unspaced(c))
        .map(|run| {
            run.trim_end_matches(['.', '-', '+', '/', '\\'])
                .trim_start_matches(['-', '+'])
        })
        .filter(|run| {
            !run.starts_with("//") && run.trim_start_matches('.').contains(['/', '\\', '.'])
        })
}

/// Whether `c` may stand in a path.
pub fn is_path_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '\\' | '~' | '@' | '+')
}

/// The sentences of a text, trimmed: lines, cut after a full stop that a blank follows and after Chinese stops.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(split_line)
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
}

fn split_line(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let full_stop =
            matches!(c, '.' | '!' | '?') && chars.peek().is_some_and(|(_, next)| *next == ' ');
        if full_stop || matches!(c, '。' | '！' | '？' | '；') {
            let end = at + c.len_utf8();
            // "e.g. x" and "1. x" are no sentences of their own.
            if end - start > 6 {
                parts.extend(line.get(start..end));
                start = end;
            }
        }
    }
    parts.extend(line.get(start..));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_punctuation_and_at_chinese() {
        assert_eq!(
            words("call load_config() 改用retryCount次").collect::<Vec<_>>(),
            ["call", "load_config", "retryCount"]
        );
    }

    #[test]
    fn paths_are_taken_without_the_sentence_around_them() {
        let text = "In ./src/a.rs, `b/c.py:12` and (notes.md). See https://example.org/x.html... or C:\\tmp\\x.log";
        assert_eq!(
            paths(text).collect::<Vec<_>>(),
            ["./src/a.rs", "b/c.py", "notes.md", "\\tmp\\x.log"]
        );
    }

    #[test]
    fn sentences_end_at_stops_and_not_inside_names() {
        let text = "Use src/a.py. It is 3.5 times faster! Fine\n不要改端口。用 8081。";
        let expected = [
            "Use src/a.py.",
            "It is 3.5 times faster!",
            "Fine",
            "不要改端口。",
            "用 8081。",
        ];
        assert_eq!(sentences(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn neither_korean_nor_japanese_is_taken_for_chinese() {
        for text in ["端口最后改成了多少？", "改用 sqlite 而不是 json 文件"] {
            assert!(is_chinese(text), "{text}");
        }
        for text in [
            "포트를 무엇으로 바꿨나요?",
            "修正したファイルを教えてください",
            "Which port?",
            "",
        ] {
            assert!(!is_chinese(text), "{text}");
        }
    }
}
