//! Whether the words around a fact deny it, in English and Chinese.

use std::ops::Range;

use regex::Regex;

use base::lazy_patterns;
use base::text::{around, pattern};
use sessions::transcript::fold;

/// Whether the right answer to `question` names something that was rejected, is absent or no longer holds. Then words of
/// rejection around a fact deny nothing.
pub fn asks_for_rejection(question: &str) -> bool {
    REJECTION_ASKED.is_match(&fold(question))
}

lazy_patterns! {
    /// Questions about something that was rejected, is absent or no longer holds.
    REJECTION_ASKED = any_of(
        "",
        &[
            r"\b(?:not|no longer|instead|rather|former|before|first|old|alternatives?|turned down|over (?:which|what))\b",
            r"\b(?:reject|abandon|drop|discard|rul(?:ed|ing) out|original|replac|remov|revert)\w*",
            r"n't\b|否决|放弃|不|没|未|而非|原先|原来|起初|最初|之前|替代|取代|推翻|撤销",
        ],
        "",
    );

    /// Words directly before a fact that negate it.
    NEGATED_BEFORE = any_of(
        "",
        &[
            r"\b(?:was|is|were|are|did|does|do|has|have|had)(?: not|n't)(?: [\w']+){0,4}",
            r"\b(?:never|no longer|neither|nor)(?: [\w']+){0,3}",
            r"\bnothing (?:is|was)(?: [\w']+){0,5}",
            r"\bnot",
            r"(?:不是|并非|不再|没有|并未|从未|不需要|无需)[^，。；]{0,6}",
        ],
        "[\\s`'\"“”「」:]*$",
    );

    /// Words directly before a fact that report it as rejected.
    REJECTED_BEFORE = any_of(
        "",
        &[
            r"\b(?:instead of|rather than|(?:chosen|preferred|picked) over)(?: [\w']+){0,2}",
            r"\b(?:rejected|abandoned|discarded|ruled out|dropped|gave up|turned down)(?: [\w']+){0,2}",
            r"(?:而非|否决了|放弃了|推翻了|弃用了?)[^，。；]{0,6}",
        ],
        "[\\s`'\"“”「」:]*$",
    );

    /// The words that negate.
    NEGATION = pattern(
        r"\b(?:not|never|no longer|neither|nor|nothing)\b|n't\b|不是|并非|不再|没有|并未|从未|不需要|无需",
    );

    /// Words between a negation and a fact that turn it round: "not more than 30" gives a limit, "not 8080 but 8081" a
    /// value, "do not forget 8081" an order.
    LIMITED = any_of(
        "",
        &[
            r"\b(?:more|less|fewer|longer|shorter|later|earlier|sooner|larger|bigger|smaller|higher|lower|greater|older|newer|other) than\b",
            r"^ than\b",
            r"\b(?:above|below|beyond|past|until|unless|except|but|only|just|merely|forget|differ\w*|exceed\w*)\b",
            r"\bchange[ds]? from[\s`'\x22]*$",
            "而是|超过|超出|多于|少于|高于|低于|大于|小于|长于|晚于|早于|忘|只|仅|除了|除非",
        ],
        "",
    );

    /// Words directly after a fact that deny it or report it as rejected.
    DENIED_AFTER = {
        let were =
            r"(?: [\w']+){0,3} (?:was|were|is|are|had been|has been|have been)(?: [\w']+ (?:and|but))?";
        let rejected = "(?:rejected|abandoned|discarded|dropped|ruled out|turned down|given up|reversed|never|no longer)";
        let untrue =
            "(?: not|n't) (?:the one|what|created|deleted|chosen|used|needed|found|true|right)";
        any_of(
            "^[`'\"”」)]*",
            &[
                &format!(r"{were} {rejected}\b"),
                &format!(r"{were}{untrue}\b"),
                r"(?: [\w']+){0,2} no longer (?:holds?|applies|needed)\b",
                "[^，。；]{0,10}?(?:被否决|被驳回|被放弃|被推翻|已放弃|已经放弃|作废|没有采用|未被采用|不再|从未)",
                "[^，。；]{0,10}?(?:没有删除|没有新建|并不成立)",
            ],
            "",
        )
    };

    /// Beginnings of a sentence that deny all of it.
    DENIED_WHOLE = any_of(
        "^[^a-z\u{4e00}-\u{9fff}]*",
        &[
            r"(?:it is|it's|it was|this is|that is) (?:not (?:true|right|correct|the case)|untrue|false|wrong) that\b",
            r"(?:contrary to what was said|(?:the )?claim that)\b",
            "(?:并非|以下说法不成立|不属实)",
        ],
        "",
    );
}

fn any_of(start: &str, alternatives: &[&str], end: &str) -> Regex {
    pattern(&format!("{start}(?:{}){end}", alternatives.join("|")))
}

/// Whether the clause around `place`, the range of a fact in a folded text, denies it, or reports it as rejected.
pub fn is_denied(folded: &str, place: &Range<usize>) -> bool {
    let (before, after) = around(folded, place);
    // Only the clause around the fact is about it.
    let start = before
        .char_indices()
        .rfind(|(at, c)| ends_clause(before, *at, *c));
    let start = start.map_or(0, |(at, c)| at + c.len_utf8());
    let end = after
        .char_indices()
        .find(|(at, c)| ends_clause(after, *at, *c))
        .map_or(after.len(), |(at, _)| at);
    let sentence = before
        .rfind(['\n', '。'])
        .map_or(0, |at| at + 1)
        .max(before.rfind(". ").map_or(0, |at| at + 2));
    let sentence = before.get(sentence..).unwrap_or(before);
    let clause = before.get(start..).unwrap_or("");
    DENIED_WHOLE.is_match(sentence)
        || NEGATED_BEFORE
            .find(clause)
            .is_some_and(|words| !LIMITED.is_match(after_negation(words.as_str())))
        || REJECTED_BEFORE.is_match(clause)
        || DENIED_AFTER.is_match(after.get(..end).unwrap_or(""))
}

/// The words after the last negation.
fn after_negation(words: &str) -> &str {
    let end = NEGATION
        .find_iter(words)
        .last()
        .map_or(0, |negation| negation.end());
    words.get(end..).unwrap_or("")
}

/// Whether a clause ends at `c`, the character of `text` at `at`. A full stop inside a name or a number does not
/// end one.
fn ends_clause(text: &str, at: usize, c: char) -> bool {
    match c {
        ',' | ';' | '!' | '?' | '\n' | '，' | '。' | '；' | '！' | '？' | '、' => true,
        '.' | ':' => text
            .get(at + 1..)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_denied_before_or_after_it_or_at_the_start_of_its_sentence() {
        let denied = |text: &str| {
            text.find("8081")
                .is_some_and(|at| is_denied(text, &(at..at + 4)))
        };
        for text in [
            "it is not 8081",
            "8081 was rejected",
            "it is not true that the proxy listens on 8081",
            "并非8081",
        ] {
            assert!(denied(text), "{text}");
        }
        for text in [
            "we rejected only 8081",
            "it did not change from 8080 to 8081",
            "it has not moved but is not 8081",
        ] {
            assert!(denied(text), "{text}");
        }
        for text in [
            "not 8080, but 8081",
            "it is not 8080 but 8081",
            "不是8080而是8081",
            "no longer than 8081 lines",
            "it does not take more than 8081",
            "do not forget to set 8081",
            "it has not changed from 8081",
            "it is 8081",
            "the claim was checked. it is 8081",
        ] {
            assert!(!denied(text), "{text}");
        }
        assert!(
            asks_for_rejection("Which port was rejected?")
                && !asks_for_rejection("Which port is it?")
        );
    }
}
