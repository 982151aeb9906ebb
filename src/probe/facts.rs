//! Facts in texts: literal matching that is blind to case, width and white space, and never matches inside a word.
//!
//! A fact stands in a text if one of its spellings does. At both ends of a match the text must not go on with the
//! same word or number: "5" does not stand in "15", nor "1.2" in "1.2.3". Scripts that put no blanks between words
//! have no such ends; there a spelling needs at least two characters. A path also stands by its file name.

use std::ops::Range;

use super::bank::Fact;
use crate::transcript::fold;

/// A fact made ready to be looked for in many texts.
#[derive(Clone, Debug)]
pub struct FactFinder {
    needles: Vec<Needle>,
}

/// One folded spelling, or the file name of a path.
#[derive(Clone, Debug)]
struct Needle {
    text: String,
    /// Whether the text around must not go on with the word at the start, at the end.
    bounded: (bool, bool),
}

impl FactFinder {
    /// Folds the spellings of `fact`.
    pub fn new(fact: &Fact) -> FactFinder {
        let mut needles = Vec::new();
        for spelling in &fact.spellings {
            let folded = fold(spelling);
            let name = file_name(&folded).map(str::to_owned);
            needles.extend([Some(folded), name].into_iter().flatten().filter_map(Needle::new));
        }
        FactFinder { needles }
    }

    /// The finders of all of `facts`, in their order.
    pub fn all(facts: &[Fact]) -> Vec<FactFinder> {
        facts.iter().map(FactFinder::new).collect()
    }

    /// Whether the fact stands in `folded`, a text made by [`fold`].
    pub fn stands_in(&self, folded: &str) -> bool {
        self.needles.iter().any(|needle| needle.ranges(folded).next().is_some())
    }

    /// Where it stands in `folded`: byte ranges in rising order, none inside another.
    pub fn ranges(&self, folded: &str) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = self.needles.iter().flat_map(|needle| needle.ranges(folded)).collect();
        all.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut outer: Vec<Range<usize>> = Vec::new();
        for range in all {
            if outer.last().is_none_or(|last| range.end > last.end) {
                outer.push(range);
            }
        }
        outer
    }

    /// The fewest characters that any spelling has, those of unspaced scripts counted double: they say more. A short
    /// fact stands in many texts by chance; 0 is one that is never found.
    pub fn shortest(&self) -> usize {
        let length = |needle: &Needle| needle.text.chars().map(|c| 1 + usize::from(is_unspaced(c))).sum();
        self.needles.iter().map(length).min().unwrap_or(0)
    }
}

/// Whether `fact` stands in `folded`, a text made by [`fold`]. For many texts make a [`FactFinder`] once.
pub fn stands_in(folded: &str, fact: &Fact) -> bool {
    FactFinder::new(fact).stands_in(folded)
}

impl Needle {
    /// `None` for what could stand anywhere: nothing at all, or a lone character of an unspaced script.
    fn new(text: String) -> Option<Needle> {
        let (first, last) = (text.chars().next()?, text.chars().next_back()?);
        if is_unspaced(first) && text.chars().nth(1).is_none() {
            return None;
        }
        Some(Needle { bounded: (is_word(first), is_word(last)), text })
    }

    fn ranges<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        folded
            .match_indices(self.text.as_str())
            .map(|(start, found)| start..start + found.len())
            .filter(|range| self.ends_are_free(folded, range))
    }

    fn ends_are_free(&self, folded: &str, range: &Range<usize>) -> bool {
        let before = folded.get(..range.start).unwrap_or("");
        let after = folded.get(range.end..).unwrap_or("");
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let goes_on = |next: Option<char>, beyond: Option<char>, edge: Option<char>| {
            next.is_some_and(is_word) || (next == Some('.') && digit(beyond) && digit(edge))
        };
        let mut back = before.chars().rev();
        let mut ahead = after.chars();
        !(self.bounded.0 && goes_on(back.next(), back.next(), self.text.chars().next())
            || self.bounded.1 && goes_on(ahead.next(), ahead.next(), self.text.chars().next_back()))
    }
}

/// Whether `c` is part of a word in a script that sets words apart.
fn is_word(c: char) -> bool {
    (c.is_alphanumeric() || c == '_') && !is_unspaced(c)
}

/// Whether `c` belongs to a script that puts no blanks between words: Chinese, Japanese, Korean (whose particles
/// cling to the word), Thai, Lao, Khmer, Burmese.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1100..=0x11FF | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3040..=0x30FF
        | 0x3130..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF | 0x20000..=0x323AF)
}

/// The last part of a path that ends in a file name with an extension; `None` for whatever else has slashes.
fn file_name(text: &str) -> Option<&str> {
    if text.contains(char::is_whitespace) || text.contains("://") {
        return None;
    }
    let name = text.rsplit_once(['/', '\\'])?.1;
    let (stem, extension) = name.rsplit_once('.')?;
    let sound = stem.len() + extension.len() > 2 && extension.starts_with(|c: char| c.is_ascii_alphabetic());
    sound.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fact(spelling: &str) -> Fact {
        Fact { spellings: vec![spelling.to_owned()] }
    }

    fn stands(spelling: &str, text: &str) -> bool {
        stands_in(&fold(text), &fact(spelling))
    }

    #[test]
    fn matches_whole_words_and_numbers_only() {
        assert!(stands("5", "retry 5 times"));
        assert!(stands("5", "It is 5."));
        assert!(!stands("5", "15 or 51 or a5"));
        assert!(!stands("5", "1.5 or 5.1"));
        assert!(stands("1.2", "version 1.2, then"));
        assert!(!stands("1.2", "version 1.2.3"));
        assert!(stands("127.0.0.1:8080", "on http://127.0.0.1:8080/x"));
        assert!(!stands("open", "reopened"));
        assert!(!stands("id", "open_id"));
        assert!(stands("open_id", "`open_id`"));
    }

    #[test]
    fn folds_case_width_and_white_space() {
        assert!(stands("Connection refused", "CONNECTION\n   refused"));
        assert!(stands("port 8080", "ｐｏｒｔ　８０８０"));
    }

    #[test]
    fn any_spelling_will_do() {
        let either = Fact { spellings: vec!["10 seconds".into(), "10s".into()] };
        assert!(stands_in("waits 10s", &either));
        assert!(!stands_in("waits 100s", &either));
    }

    #[test]
    fn chinese_needs_no_word_ends_but_two_characters() {
        assert!(stands("连接超时", "报错：数据库连接超时，已重试"));
        assert!(!stands("错", "报错"));
        assert!(stands("Redis缓存", "改用Redis缓存层"));
        assert!(stands("redis", "改用Redis做缓存"));
        assert!(!stands("端口8080", "端口80801"));
        assert!(stands("端口：８０８０", "端口:8080"));
    }

    #[test]
    fn a_path_also_stands_by_its_file_name() {
        assert!(stands("src/cache/store.rs", "changed store.rs"));
        assert!(stands("src/cache/store.rs", "in ./src/cache/store.rs:12"));
        assert!(!stands("src/cache/store.rs", "changed restore.rs"));
        assert!(!stands("TCP/IP", "the IP address"));
        assert!(!stands("https://example.org/a.html", "see a.html"));
    }

    #[test]
    fn ranges_keep_the_longest_of_each_place() {
        let text = "src/cache/store.rs and store.rs";
        assert_eq!(FactFinder::new(&fact("src/cache/store.rs")).ranges(text), [0..18, 23..31]);
    }

    #[test]
    fn nothing_stands_nowhere() {
        assert!(!stands("", "any text"));
        assert!(!stands("  ", "any text"));
    }

    proptest! {
        #[test]
        fn a_fact_between_blanks_is_found(word in "[a-z]{2,8}", before in "[a-z ]{0,12}", after in "[a-z ]{0,12}") {
            let text = fold(&format!("{before} {word} {after}"));
            let ranges = FactFinder::new(&fact(&word)).ranges(&text);
            prop_assert!(!ranges.is_empty());
            prop_assert!(ranges.iter().all(|range| text[range.clone()] == word));
        }

        #[test]
        fn never_panics(spelling in "\\PC{0,8}", text in "\\PC{0,40}") {
            let finder = FactFinder::new(&fact(&spelling));
            let folded = fold(&text);
            prop_assert_eq!(finder.stands_in(&folded), !finder.ranges(&folded).is_empty());
        }
    }
}
