//! Superseded facts that an answer or a context states as if they still held.
//!
//! A superseded fact in an answer is no mistake in itself: a good answer may say what held before. So the words around it
//! decide, by the patterns below. A place that no pattern explains counts as stated.
//!
//! Limits: patterns are English and Chinese; in other languages a former value that is marked as former counts as stated.
//! Irony and questions are read as statements.

use std::ops::Range;

use super::states::mark_states;
use crate::facts::FactFinder;
use base::lazy_patterns;
use base::text::pattern;
use sessions::transcript::fold;

/// For each of `superseded` whether the answer states it as if it still held: at a place where no word marks it as
/// former, and not as a part of an expected fact. By words, in English and Chinese:
///
/// - a negation in the same clause ("not 8080", "8080 is no longer used"), unless it governs an expected fact
///   ("not 8081 but 8080", "8080, not 8081");
/// - a word for the past before it in the same sentence ("originally 8080", "replaced 8080"), or after it ("8080 was
///   dropped");
/// - a step to something else after it ("8080 → 8081", "8080 was changed to 8081");
/// - an expected fact after it that a word like "now" or "finally" introduces ("was 8080, now 8081");
/// - an expected fact before it that it gives the reason for ("8081, because 8080 was taken");
/// - a mark in brackets after it ("8080 (old)"), the column of a table ("| before | after |"), a removed line of a diff.
pub fn stated_as_current(
    answer: &str,
    superseded: &[FactFinder],
    expected: &[FactFinder],
) -> Vec<bool> {
    if superseded.is_empty() {
        return Vec::new();
    }
    let text = statements(answer);
    let new = sorted_ranges(&text, expected);
    superseded
        .iter()
        .map(|fact| {
            fact.ranges(&text)
                .iter()
                .any(|old| is_current(&text, old, &new))
        })
        .collect()
}

/// The sentences of a text, folded, one a line, with words for old and new values that only its layout tells apart.
pub fn statements(text: &str) -> String {
    clauses(&mark_states(text))
        .map(fold)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Like [`stated_as_current`] for the [`statements`] of a context, where the last place decides: a context tells things in
/// their order, and its verbatim text has the value from before it was given up.
pub fn stated_last(text: &str, superseded: &[FactFinder], expected: &[FactFinder]) -> Vec<bool> {
    let new = if superseded.is_empty() {
        Vec::new()
    } else {
        sorted_ranges(text, expected)
    };
    superseded
        .iter()
        .map(|fact| {
            fact.ranges(text)
                .last()
                .is_some_and(|old| is_current(text, old, &new))
        })
        .collect()
}

fn sorted_ranges(text: &str, facts: &[FactFinder]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = facts.iter().flat_map(|fact| fact.ranges(text)).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// The parts of a text between sentence ends, semicolons and line breaks: what is said of a fact in one of them says
/// nothing of the next.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split(['。', '！', '？', '；', ';']))
        .flat_map(|part| part.split(". "))
}

/// Whether a superseded fact is stated as current at `old`, a place in the [`statements`] of a text. `new` are the places of
/// the expected facts, sorted.
fn is_current(text: &str, old: &Range<usize>, new: &[Range<usize>]) -> bool {
    if new
        .iter()
        .any(|wide| wide.start <= old.start && old.end <= wide.end)
    {
        return false;
    }
    let earlier = new.iter().rev().find(|range| range.end <= old.start);
    let later = new.iter().find(|range| range.start >= old.end);
    let sentence = slice(text, 0..old.start).rfind('\n').map_or(0, |at| at + 1);
    let sentence_end = slice(text, old.end..text.len())
        .find('\n')
        .map_or(text.len(), |at| old.end + at);
    let before = slice(
        text,
        earlier.map_or(sentence, |range| range.end.max(sentence))..old.start,
    );
    let meets_new = later.is_some_and(|range| range.start <= sentence_end);
    let after = slice(
        text,
        old.end..later.map_or(sentence_end, |range| range.start.min(sentence_end)),
    );
    let clause_before = before.rsplit(CLAUSE).next().unwrap_or(before);
    // between two commas it is an apposition, and the sentence goes on after it: "the first value, 8080, was dropped"
    let goes_on = after
        .strip_prefix(',')
        .filter(|rest| before.contains(',') && VERB.is_match(rest))
        .unwrap_or(after);
    let clause_after = goes_on.split(CLAUSE).next().unwrap_or(goes_on);
    // words directly before the new value are about that one
    let speaks_of_new = meets_new
        && clause_after.len() == goes_on.len()
        && GOVERNS.is_match(clause_after.trim_end());
    let reaches_old = !BECOMES.is_match(clause_before);
    let speaks_of_old = !speaks_of_new && !STILL.is_match(clause_after);
    // after the new value, an earlier clause is about that one
    let said_before = if earlier.is_some_and(|range| range.end > sentence) {
        clause_before
    } else {
        before
    };
    let negated = reaches_old && NEGATION.is_match(clause_before)
        || NEGATION.is_match(clause_after) && speaks_of_old;
    let former = reaches_old && (FORMER.is_match(said_before) || LEFT.is_match(before))
        || FORMER_AFTER.is_match(clause_after) && speaks_of_old
        || STEP.is_match(after)
        || FORMER_MARK.is_match(after);
    let followed = later.is_some_and(|range| {
        let between = slice(text, old.end..range.start);
        let clause = between.rsplit('\n').next().unwrap_or(between);
        let same_sentence = meets_new && SUCCESSION.is_match(between);
        let next_sentence = !meets_new
            && (CHANGE.is_match(clause) || PAST.is_match(before) && SUCCESSION.is_match(between));
        same_sentence || next_sentence
    });
    let explains = earlier.is_some_and(|range| range.end >= sentence) && REASON.is_match(before);
    !(negated || former || followed || explains)
}

fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or("")
}

/// Where a clause ends within a folded sentence.
const CLAUSE: [char; 5] = [',', ':', '(', ')', '、'];

lazy_patterns! {
    /// Words that deny what occurs in their clause.
    NEGATION = pattern(r"\b(?:no longer|not|don't|avoid(?:s|ed|ing)?|isn't|wasn't|aren't|never|no more|instead of|rather than|ruled out)\b|不再|不是|不用|不要|并非|而非|而不是|没有用");

    /// Words for what was before; they count up to the next fact of their sentence.
    FORMER = pattern(r"\b(?:had been|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|at first|used to|superseded|obsolete|outdated|deprecated|abandon(?:s|ed|ing)?|reject(?:s|ed|ing)?|discard(?:s|ed|ing)?|dropp(?:ed|ing)|drops|replac(?:es?|ed|ing)|remov(?:es?|ed|ing)|revert(?:s|ed|ing)?|old|older|earlier|before|until|changed from)\b|原来|原先|原本|原定|原为|原是|起初|一开始|最初|之前|以前|此前|早先|曾经|曾用|旧|放弃|弃用|取代|替换|代替|不再");

    /// The same after a value: "8080 was dropped", "8080 previously".
    FORMER_AFTER = pattern(r"\b(?:previously|formerly|originally|initially|at first|yesterday|until|wrong|incorrect|conflict(?:s|ed)?|had to go|considered|evaluated|turned out|overturned|cancell?ed|withdrawn|rolled back|failed|(?:did not|didn't) work|(?:already )?(?:taken|occupied|in use|blocked|busy)|the (?:former|old|previous|original|first|initial|earlier)|superseded|obsolete|outdated|deprecated|abandoned|rejected|discarded|dropped|replaced|removed|reverted|reversed|overruled|given up|ruled out|turned down|earlier|before|was old|(?:was|were|is|been) (?:too|the old|tried))\b|试过|占用|不行|行不通|原来|原先|之前|以前|放弃|弃用|被取代|被替换|被推翻|被否决|被驳回|作废");

    /// After a value: it still holds.
    STILL = pattern(r"\b(?:never|not|n't) (?:been )?(?:changed|replaced|updated|touched|moved|given up|dropped|abandoned)\b|没有(?:改|换|变)|没(?:改|换|变)");

    /// Directly after the comma that ends an apposition: the sentence goes on.
    VERB = pattern(r"^ (?:was|were|is|are|has|had|no longer)\b");

    /// Directly before an old value: it is left behind.
    LEFT = pattern(r"(?:\b(?:from|used to be)|\((?:it )?was|从|由|~~)(?: the| port| version| value)*\s*'?$");

    /// Directly before a value: it is the new one, whatever was said of the old one.
    BECOMES = pattern(r"(?:\bto|\bby|\bwith|\binto|\bbecame|\bnow|\bbut|\bis|->|=>|→|改为|改成|换成|改回|变为|而是|改用)\s*'?$");

    /// After an old value: something takes its place.
    STEP = pattern(r"->|=>|→|⇒|➜|➔|\b(?:(?:changed|switched|moved|migrated|raised|lowered|increased|reduced|bumped|updated|renamed) to|became|gave way|(?:replaced|superseded) (?:by|with))\b|改为|改成|换成|改到|变为|变成|升到|降到|更新为");

    /// In brackets directly after a value: it is the old one.
    FORMER_MARK = pattern(r"^'? ?\((?:the )?(?:old|older|former(?:ly)?|previous(?:ly)?|prior|before|superseded|obsolete|outdated|deprecated|rejected|dropped|旧|原|之前|以前|已弃用)\b ?(?:value|one|值)?\)");

    /// Words that introduce what holds now.
    SUCCESSION = pattern(r"\b(?:now|then|finally|later|eventually|currently|today|since|afterwards|in the end|after that|ended up|settled on|went with)\b|现在|如今|目前|最后|最终|后来|随后|之后|然后|终于");

    /// Before the new value in a later sentence: it takes the place of what an earlier sentence said.
    CHANGE = pattern(r"\b(?:now|instead|finally|changed?|raised?|lower(?:ed)?|reduced?|increased?|switch(?:ed)?|moved?|corrections?|must be|rather|after all|make it|goes (?:up|down))\b|改成|改为|改用|改到|换成|现在|最后|最终|回到|保留");

    /// Words of the past that mark a value as former only if a successor is named.
    PAST = pattern(r"\b(?:was|were|had been|first|started|began|tried|planned|proposed)\b|先|开始|曾|当时");

    /// Words that introduce a reason.
    REASON = pattern(r"\b(?:because|since|as|due to|given that)\b|因为|由于|原因");

    /// At the end of a clause: the clause is about what comes next.
    GOVERNS = pattern(r"(?:\b(?:not|never|instead of|rather than|no longer|replac(?:es|ed|ing)|before|over|from|until)|不是|而非|而不是|不再|取代了?|替换了?|代替了?)(?: the| port| version| value)?\s*'?$");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Fact;

    fn fact(text: &str) -> FactFinder {
        FactFinder::new(&Fact {
            spellings: vec![text.to_owned()],
        })
    }

    fn current(answer: &str, superseded: &str, expected: &str) -> bool {
        stated_as_current(answer, &[fact(superseded)], &[fact(expected)]) == [true]
    }

    #[test]
    fn a_former_value_stated_as_current_is_seen() {
        for answer in [
            "The port is 8080.",
            "服务监听端口8080。",
            "It was changed to 8080.",
            "8081 was too slow, but the port is now 8080",
            "The port is not 8081 but 8080.",
            "It is no longer 8081, it is 8080.",
            "8080, not 8081.",
            "8080 instead of 8081",
            "8081 was rejected; the port is 8080",
            "was 8081, now 8080",
            "8081 → 8080",
            "first 8081, finally 8080",
            "8080 replaced 8081",
            "8081 was replaced by 8080",
            "They replaced 8081 with 8080.",
            "不是8081，而是8080",
            "端口由8081改回8080",
            "端口不再是8081，现在是8080。",
            "It is not slow, the port is 8080.",
            "The port was 8080.",
            "The port is 8080. 8081 is the metrics port.",
            "The port, 8080, not 8081.",
            "In the end, the port is 8080, 8081 was given up.",
            "The port is 8080, which was never given up. It is not 8081.",
            "8081 was given up, the port is 8080",
            "8081 is deprecated, use 8080.",
            "Port 8080 was never changed.",
            "端口一直是8080，没有改过。",
            "8081 didn't work, so it's 8080.",
            "8081 was the first idea, 8080 won.",
            "It had been 8081, it is 8080.",
        ] {
            assert!(current(answer, "8080", "8081"), "{answer}");
        }
    }

    #[test]
    fn a_former_value_marked_as_former_is_not_stated_as_current() {
        for answer in [
            "The port is 8081, no longer 8080.",
            "It went from 8080 to 8081.",
            "8080 was changed to 8081",
            "端口从8080改为8081",
            "8080改成了8081",
            "Originally 8080; it is 8081.",
            "The port is 8081.",
            "was 8080, now 8081",
            "The port was 8080. It is now 8081.",
            "8080 → 8081",
            "8080 -> 8081",
            "first 8080, finally 8081",
            "8081 (previously `8080`)",
            "8081 replaced 8080",
            "replaced 8080 with 8081",
            "8080 was replaced by 8081",
            "8081, not 8080",
            "Not 8080 but 8081.",
            "8081 instead of 8080",
            "8081 rather than 8080",
            "8080 is no longer used; 8081 is.",
            "8081, because nginx holds 8080",
            "先用8080，最后改成8081",
            "原来是8080，现在是8081",
            "不是8080，而是8081",
            "端口8080已弃用，改用8081",
            "The port is 8080. Firewall people objected. It was changed to 8081.",
            "- old: 8080\n- new: 8081",
            "It is 8081. The value from the start, 8080, was given up.",
            "It is 8081. The plan to use 8080 was reversed.",
            "8081. 8080 was tried and given up, because nginx holds it.",
            "端口是8081。原定的8080已被推翻。",
            "8081 (was 8080)",
            "8081; it had been 8080 until Tuesday.",
            "moved from port 8080 to port 8081",
            "8081. (8080 is in use by another service.)",
            "8080 was already taken, so they use 8081.",
            "It started at 8080 and ended up at 8081.",
            "8081 today (8080 yesterday)",
            "8080 is the former port; the current one is 8081.",
            "They tried 8080 first. It failed. They then used 8081.",
            "The decision to use 8080 was overturned: 8081.",
            "8081. Don't use 8080; it is taken.",
            "Use 8081 and avoid 8080.",
            "8080 was considered, 8081 was chosen.",
            "8081, after 8080 turned out too slow.",
            "8080 until the fix, 8081 since",
            "8080 was the original plan. The final choice is 8081.",
            "8080 is wrong; it is 8081.",
            "8080被占用了，所以换成8081。",
            "8081，原为8080",
        ] {
            assert!(!current(answer, "8080", "8081"), "{answer}");
        }
    }

    #[test]
    fn a_part_of_the_true_fact_is_not_the_former_one() {
        assert!(!current("uses redis cluster", "redis", "redis cluster"));
        assert!(current(
            "uses redis, in a redis cluster",
            "redis",
            "redis cluster"
        ));
    }
}
