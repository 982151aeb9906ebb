//! Terms, by which two texts are compared: lightly stemmed words, identifiers whole and in parts, and pairs of Chinese
//! characters.

use base::words::{self, TextTerm, hash_of};

/// The hash of a term, since terms are compared and never shown.
pub(super) type Term = u64;

/// Words that say nothing about the subject of a question.
const STOP: &[&str] = &[
    "a", "about", "above", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "been", "before", "being", "besides", "both", "but", "by", "can", "could", "did", "do",
    "does", "done", "each", "else", "ever", "exact", "exactly", "for", "from", "give", "had",
    "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "just", "kind", "list", "many", "me", "much", "my", "name", "no", "nor", "not", "now", "of",
    "off", "on", "one", "ones", "only", "or", "other", "our", "out", "over", "own", "quote",
    "said", "say", "session", "she", "should", "so", "some", "such", "tell", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "three", "to", "too",
    "two", "under", "up", "us", "used", "using", "was", "we", "were", "what", "when", "where",
    "whether", "which", "while", "who", "whom", "whose", "why", "will", "with", "word", "would",
    "yet", "you", "your",
];
const STOP_PAIRS: &[&str] = &[
    "什么", "哪些", "哪个", "怎么", "怎样", "如何", "为何", "是否", "多少", "这个", "那个", "一个",
    "以及", "分别", "请问", "的是", "是什", "了什", "了哪", "是哪", "什麼", "么的", "为什", "会话",
    "用户",
];

/// Calls `each` with every term of `text`, repeats included.
pub(super) fn each_term(text: &str, mut each: impl FnMut(Term)) {
    words::each_term(text, |term| match term {
        TextTerm::Word(word) if is_telling(word) => each(hash_of(stem(word))),
        TextTerm::Pair(pair) if !STOP_PAIRS.contains(&pair) => each(hash_of(pair)),
        TextTerm::Name(name) | TextTerm::Single(name) => each(hash_of(name)),
        TextTerm::Word(_) | TextTerm::Pair(_) => {}
    });
}

fn is_telling(word: &str) -> bool {
    STOP.binary_search(&word).is_err()
        && (word.len() > 1 || word.starts_with(|c: char| c.is_ascii_digit()))
}

/// The commonest English endings, each with the fewest letters that must be before it.
const ENDINGS: [(&str, usize); 6] = [
    ("ing", 3),
    ("ions", 4),
    ("ion", 4),
    ("ed", 3),
    ("es", 3),
    ("s", 3),
];

/// Drops the commonest English endings, so that "changed", "changes" and "change" meet.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() < 4 || word.starts_with(|c: char| c.is_ascii_digit()) {
        return word;
    }
    let base = ENDINGS.iter().find_map(|(ending, least)| {
        let base = word.strip_suffix(ending)?;
        (base.len() >= *least && !(*ending == "s" && base.ends_with('s'))).then_some(base)
    });
    let base = base.unwrap_or(word);
    let base = if base.len() > 3 {
        base.strip_suffix(['e', 'y']).unwrap_or(base)
    } else {
        base
    };
    // "stopped" and "stop", "running" and "run".
    let mut last = base.bytes().rev();
    let doubled =
        matches!((last.next(), last.next()), (Some(a), Some(b)) if a == b && !b"ls".contains(&a));
    if doubled && base.len() > 3 && base.len() < word.len() {
        base.get(..base.len() - 1).unwrap_or(base)
    } else {
        base
    }
}

/// The distinct terms of `text`, in order of appearance: hashes of stemmed words, names and pairs of signs.
pub fn terms(text: &str) -> Vec<u64> {
    let mut all = Vec::new();
    each_term(text, |term| {
        if !all.contains(&term) {
            all.push(term);
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(a: &str, b: &str) -> bool {
        let of_b = terms(b);
        terms(a).iter().any(|term| of_b.contains(term))
    }

    #[test]
    fn forms_of_a_word_share_a_term() {
        for (a, b) in [
            ("changed", "changes"),
            ("stopped", "stop"),
            ("files", "file"),
            ("running", "run"),
        ] {
            assert!(share(a, b), "{a} {b}");
        }
        assert!(!share("port", "report"));
    }

    #[test]
    fn identifiers_share_terms_whole_and_in_parts_and_chinese_in_pairs() {
        assert!(share("jobq/store.py", "the store module"));
        assert!(share("lease_until", "lease"));
        assert!(share("UnicodeDecodeError", "the error") && share("retryCount", "RETRYCOUNT"));
        assert!(share("端口号是多少", "改端口为 8081"));
        assert!(share("RETRY_COUNT", "retry_count") && share("port 8081", "(8081)"));
        assert!(share("库", "第 库 页") && !share("端口", "口端") && share("改为8081", "8081"));
        assert!(terms("which of the are what").is_empty() && terms("__ -- !").is_empty());
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP.is_sorted());
    }
}
