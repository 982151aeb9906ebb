//! What a question is about: its content words, and whether a text has them near a fact.
//!
//! A number of one or two digits occurs in any text, so alone it says nothing: it counts only near a word of its
//! question. Words are compared by their beginnings, so that `retries` is `retry`; Chinese and Japanese are compared by
//! pieces of two characters.

use std::ops::Range;

use super::Fact;
use super::finder::FactFinder;
use base::text::around;
use base::words::{WordList, is_unspaced, words};
use sessions::transcript::fold;

/// The content words of a question, without those of the facts that it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    words: Vec<String>,
    /// Pieces of two characters of scripts without blanks.
    pieces: Vec<String>,
}

/// How many words, or characters of scripts without blanks, a key may be away from its number.
const NEAR_WORDS: usize = 8;
const NEAR_CHARACTERS: usize = 12;

/// English words that name nothing.
const STOP_WORDS: WordList = WordList(
    "a about above according after again all also an and another any anything are as asked at be because been before being below besides between both but by called can chosen could decided decision did do does done during each either else end every exact exactly file files final first following for found from gave get give given had has have having held her here his how however if in instead into is it its itself just kind know known last later many may might more most much must name named names necessary need needs never new no not now number of off on once one only or order other others our out over own put rather right run said same say says second session set she should since so some specific state stated still such take taken than that the their them then there these they thing this those three through time to together told too two under until up upon use used user uses value values very was we were what when where which while who whole whose why will with within without word words work would yes yet you your",
);

/// Pieces of Chinese questions that name nothing.
const STOP_PIECES: WordList = WordList(
    "多少 什么 几个 哪个 哪些 怎么 为什 是否 如何 哪里 几次 最后 用户 代理 这个 那个 一个 当时 目前 现在 时候 为何 分别 会话 以及 因为 所以 之后 之前 可以 需要 没有",
);

impl Topic {
    /// The topic of `question`, without the words of `facts`, which answer it.
    pub fn new(question: &str, facts: &[Fact]) -> Topic {
        let known: Vec<String> = facts
            .iter()
            .flat_map(|fact| &fact.spellings)
            .map(|text| fold(text))
            .collect();
        let folded = fold(question);
        let content = parts(&folded).filter(|word| {
            is_content_word(word)
                && !known
                    .iter()
                    .any(|fact| words(fact).any(|known| known == *word))
        });
        let pieces = pieces(&folded).filter(|piece| !STOP_PIECES.has(piece));
        Topic {
            words: content.map(str::to_owned).collect(),
            pieces: pieces
                .filter(|piece| !known.iter().any(|fact| fact.contains(piece.as_str())))
                .collect(),
        }
    }

    /// Whether the question has no content words. Then a fact counts wherever it is.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.pieces.is_empty()
    }

    /// Whether `folded` has one of the words.
    pub fn is_named_in(&self, folded: &str) -> bool {
        parts(folded).any(|word| self.words.iter().any(|known| is_alike(known, word)))
            || self
                .pieces
                .iter()
                .any(|piece| folded.contains(piece.as_str()))
    }

    /// Whether the fact occurs in `folded`; a number of one or two digits needs a word of the question near it.
    pub fn has(&self, fact: &FactFinder, folded: &str) -> bool {
        if self.is_empty() || !fact.is_short_number() {
            return fact.occurs_in(folded);
        }
        fact.ranges(folded)
            .iter()
            .any(|place| self.is_near(folded, place))
    }

    fn is_near(&self, folded: &str, place: &Range<usize>) -> bool {
        let (before, after) = around(folded, place);
        let before = before.get(start_of_last_sentence(before)..).unwrap_or("");
        let after = after.get(..end_of_first_sentence(after)).unwrap_or("");
        let back = starts_of_words(before)
            .rev()
            .nth(NEAR_WORDS - 1)
            .unwrap_or(0);
        let ahead = starts_of_words(after)
            .nth(NEAR_WORDS + 1)
            .unwrap_or(after.len());
        let near = [
            before.get(back..).unwrap_or(""),
            after.get(..ahead).unwrap_or(""),
        ];
        near.iter().any(|text| {
            parts(text).any(|word| self.words.iter().any(|known| is_alike(known, word)))
        }) || self.is_piece_near(before, after)
    }

    fn is_piece_near(&self, before: &str, after: &str) -> bool {
        let back = before
            .char_indices()
            .rev()
            .nth(NEAR_CHARACTERS - 1)
            .map_or(0, |(at, _)| at);
        let ahead = after
            .char_indices()
            .nth(NEAR_CHARACTERS)
            .map_or(after.len(), |(at, _)| at);
        let near = [
            before.get(back..).unwrap_or(""),
            after.get(..ahead).unwrap_or(""),
        ];
        self.pieces
            .iter()
            .any(|piece| near.iter().any(|text| text.contains(piece.as_str())))
    }
}

/// Words, cut at underscores too.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    words(text)
        .flat_map(|word| word.split('_'))
        .filter(|part| !part.is_empty())
}

/// Whether a folded word names something: it is not a stop word, has letters, and is not too short.
pub fn is_content_word(word: &str) -> bool {
    word.chars().count() > 2 && !STOP_WORDS.has(word) && word.contains(char::is_alphabetic)
}

/// Whether two words begin alike and differ only in their endings.
pub fn is_alike(left: &str, right: &str) -> bool {
    const ENDING: usize = 3;
    const BEGINNING: usize = 4;
    let same = left
        .bytes()
        .zip(right.bytes())
        .take_while(|(left, right)| left == right)
        .count();
    left == right || same >= BEGINNING && same + ENDING >= left.len().max(right.len())
}

/// The pieces of two characters of scripts without blanks.
pub fn pieces(text: &str) -> impl Iterator<Item = String> {
    let pairs = text.chars().zip(text.chars().skip(1));
    let pairs = pairs.filter(|(a, b)| is_unspaced(*a) && is_unspaced(*b));
    pairs.map(|(a, b)| String::from_iter([a, b]))
}

fn starts_of_words(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    text.match_indices(' ').map(|(at, _)| at + 1)
}

const STOPS: [&str; 7] = [". ", "! ", "? ", "; ", "。", "！", "？"];

fn start_of_last_sentence(text: &str) -> usize {
    STOPS
        .iter()
        .filter_map(|stop| Some(text.rfind(stop)? + stop.len()))
        .max()
        .unwrap_or(0)
}

fn end_of_first_sentence(text: &str) -> usize {
    STOPS
        .iter()
        .filter_map(|stop| text.find(stop))
        .min()
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(fact: &str, question: &str, text: &str) -> bool {
        let fact = Fact {
            spellings: vec![fact.to_owned()],
        };
        Topic::new(question, std::slice::from_ref(&fact)).has(&FactFinder::new(&fact), &fold(text))
    }

    #[test]
    fn a_short_number_counts_with_its_key_alone() {
        let question = "How many retries are allowed?";
        for text in [
            "retry_count = 5",
            "it retries 5 times",
            "Retries\n- 5 at most",
            "allowed: 5",
        ] {
            assert!(has("5", question, text), "{text}");
        }
        for text in [
            "5 files changed",
            "Retries were discussed. Step 5 is next.",
            "chapter 5",
        ] {
            assert!(!has("5", question, text), "{text}");
        }
        assert!(has("503", question, "status 503") && has("5 times", question, "5 times"));
        assert!(
            has("5", "And how many?", "5 files"),
            "a question without a content word asks for nothing"
        );
        assert!(
            has("3", "最多重试几次？", "重试上限为 3")
                && !has("3", "最多重试几次？", "第3步，写报告")
        );
    }
}
