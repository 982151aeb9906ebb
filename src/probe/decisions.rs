//! Questions about choices: what was rejected, why something is so, what was demanded.

use super::ProbeType;
use super::generate::{ProbeCandidate, candidate};
use super::phrases::{clause, is_balanced, statement, terms, with_gap};
use base::locale::Locale;
use base::words::is_han;
use lexical::notes::SessionOutline;
use lexical::notes::rules::states_reason;

/// Questions about what was decided, the better ones first.
pub(super) fn decisions(
    sources: &SessionOutline,
    locale: Locale,
) -> impl Iterator<Item = ProbeCandidate> {
    let sentences = sources
        .decisions
        .iter()
        .rev()
        .chain(sources.findings.iter().rev());
    let split = sentences.filter_map(move |sentence| {
        alternative(sentence, locale).or_else(|| reason(sentence, locale))
    });
    let choices = sources
        .decisions
        .iter()
        .rev()
        .filter_map(move |sentence| choice(sentence, locale));
    let words = ["The user demanded this", "用户提出过这一要求"];
    let demands = sources
        .demands
        .iter()
        .rev()
        .filter_map(move |sentence| gap(ProbeType::Decision, sentence, locale, words));
    let words = ["The agent gave this reason", "代理给出过这一理由"];
    let reasons = sources
        .findings
        .iter()
        .rev()
        .filter(|sentence| states_reason(sentence));
    let reasons =
        reasons.filter_map(move |sentence| gap(ProbeType::Decision, sentence, locale, words));
    split.chain(choices).chain(demands).chain(reasons)
}

fn split_choice<'s>(sentence: &'s str, marks: &[&'static str]) -> Option<(&'s str, &'s str)> {
    let (before, after) = marks.iter().find_map(|mark| sentence.split_once(mark))?;
    let before = before
        .trim()
        .trim_end_matches(['-', '—', '–', ',', '，', ':', ' ']);
    let is_long_enough = if before.is_ascii() {
        before.split_whitespace().count() >= 3
    } else {
        before.chars().count() > 3
    };
    (is_long_enough && is_balanced(before)).then_some((before, after))
}

/// Asks for the alternative that a choice was preferred to.
fn alternative(sentence: &str, locale: Locale) -> Option<ProbeCandidate> {
    const OTHERS: [&str; 4] = [" instead of ", " rather than ", "而不是", "而非"];
    const WORDS: usize = 8;
    let whole = statement(sentence)?;
    let (choice, other) = split_choice(&whole, &OTHERS)?;
    let other = clause(other);
    let names = terms(other);
    let facts = if names.is_empty() {
        vec![other.to_owned()]
    } else {
        names
    };
    let question = locale.pick(
        format!("Which alternative was turned down here: \"{choice}\"?"),
        format!("“{choice}”，当时放弃的另一个方案是什么？"),
    );
    let is_short = is_own_choice(choice)
        && other.chars().count() > 2
        && other.split_whitespace().count() <= WORDS
        && is_balanced(other);
    is_short.then(|| candidate(ProbeType::Decision, question, facts, sentence))
}

/// Asks for the reason of a choice.
fn reason(sentence: &str, locale: Locale) -> Option<ProbeCandidate> {
    const REASONS: [&str; 7] = [
        " because ",
        " since ",
        " so that ",
        " due to ",
        "因为",
        "由于",
        "原因是",
    ];
    let whole = statement(sentence)?;
    let (choice, reason) = split_choice(&whole, &REASONS).or_else(|| reason_first(&whole))?;
    if !is_own_choice(choice) {
        return None;
    }
    let names: Vec<String> = terms(reason).into_iter().take(3).collect();
    let facts = if names.is_empty() {
        Vec::from_iter(phrase(clause(reason)))
    } else {
        names
    };
    let question = locale.pick(
        format!("What was the reason for this: \"{choice}\"?"),
        format!("“{choice}”的理由是什么？"),
    );
    (!facts.is_empty()).then(|| candidate(ProbeType::Decision, question, facts, sentence))
}

/// The same where the reason comes first, as in "Because Y, we decided to X".
fn reason_first(sentence: &str) -> Option<(&str, &str)> {
    const REASONS: [&str; 5] = ["Because ", "Since ", "Due to ", "因为", "由于"];
    let rest = REASONS
        .iter()
        .find_map(|mark| sentence.strip_prefix(mark))?;
    let (reason, choice) = rest.split_once(", ").or_else(|| rest.split_once('，'))?;
    let choice = choice
        .trim_start_matches("所以")
        .trim_end_matches(['.', '。']);
    (states_choice(choice) && is_balanced(choice)).then_some((choice, reason))
}

/// Whether a clause says what somebody does or will do, and not what is so, seems so, or should be so.
fn is_own_choice(clause: &str) -> bool {
    const OBSERVED: [&str; 13] = [
        " should ", " would ", " could ", " might ", " seem", " suggest", " differ", "can see",
        " found ", " looks ", " unable ", " it was ", " it is ",
    ];
    const CHOSEN: [&str; 9] = ["改", "用", "选", "決", "决定", "采", "保留", "换", "不"];
    const ACTORS: [&str; 6] = ["i", "we", "let's", "let", "i'll", "we'll"];
    let lower = clause.to_lowercase().replace('’', "'");
    if lower.contains(is_han) {
        return CHOSEN.iter().any(|word| lower.contains(word));
    }
    let first = lower.split_whitespace().next().unwrap_or_default();
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let acts = words
        .any(|word| ACTORS.contains(&word) || word.starts_with("i'") || word.starts_with("we'"));
    let is_done = first.ends_with("ing") || first.ends_with("ed") || lower.contains(" now ");
    (acts || is_done || states_choice(&lower)) && !OBSERVED.iter().any(|word| lower.contains(word))
}

fn states_choice(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "decid",
        "chose",
        "keep",
        "going with",
        "opted",
        "决定",
        "选择",
        "改用",
    ];
    WORDS.iter().any(|word| text.contains(word))
}

/// The beginning of a reason without names, short enough to be repeated word for word. Chinese has no blanks between
/// words.
fn phrase(reason: &str) -> Option<String> {
    const WORDS: usize = 6;
    if !reason.is_ascii() {
        return (3..=20)
            .contains(&reason.chars().count())
            .then(|| reason.to_owned());
    }
    let words: Vec<&str> = reason.split_whitespace().take(WORDS).collect();
    (words.len() > 1).then(|| words.join(" "))
}

/// Asks with a gap about a choice that names neither an alternative nor a reason.
fn choice(sentence: &str, locale: Locale) -> Option<ProbeCandidate> {
    let whole = statement(sentence).filter(|whole| states_choice(&whole.to_lowercase()))?;
    if split_choice(
        &whole,
        &[
            " instead of ",
            " rather than ",
            "而不是",
            "而非",
            " because ",
            "因为",
        ],
    )
    .is_some()
    {
        return None;
    }
    gap(
        ProbeType::Decision,
        sentence,
        locale,
        ["This was decided", "当时做出过这一决定"],
    )
}

/// Asks for the word in a gap of a sentence, after words that say where the sentence is from. Rules cannot ask why or
/// what in their own words; without this form, decisions, demands and findings would have no probes where no model
/// writes them.
pub(super) fn gap(
    kind: ProbeType,
    sentence: &str,
    locale: Locale,
    before: [&str; 2],
) -> Option<ProbeCandidate> {
    let (gapped, term) = with_gap(sentence)?;
    let [en, zh] = before;
    let question = locale.pick(
        format!("{en}: \"{gapped}\" What belongs in the gap?"),
        format!("{zh}：“{gapped}”空缺处是什么？"),
    );
    Some(candidate(kind, question, vec![term], sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeCandidate, propose_candidates};

    fn decided(sentence: &str, locale: Locale) -> ProbeCandidate {
        let sources = SessionOutline {
            decisions: vec![sentence.to_owned()],
            ..SessionOutline::default()
        };
        propose_candidates(&sources, locale)
            .into_iter()
            .next()
            .expect(sentence)
    }

    #[test]
    fn we_decided_to_x_because_y_asks_for_the_reason() {
        for (sentence, choice, fact) in [
            (
                "We decided to keep the export synchronous because the users wait for the file anyway.",
                "We decided to keep the export synchronous",
                "the users wait for the file",
            ),
            (
                "We decided to drop Redis because it is one more service to run.",
                "We decided to drop Redis",
                "it is one more service to",
            ),
            (
                "We decided to use SQLite since the host has no Postgres.",
                "We decided to use SQLite",
                "the host has no Postgres",
            ),
            (
                "Because the tests share one port, we decided to run them one by one.",
                "we decided to run them one by one",
                "the tests share one port",
            ),
            (
                "We decided to pin numpy because 2.1.0 breaks the wheel.",
                "We decided to pin numpy",
                "2.1.0",
            ),
        ] {
            let found = decided(sentence, Locale::En);
            assert_eq!(
                found.question,
                format!("What was the reason for this: \"{choice}\"?")
            );
            assert_eq!(found.expected_facts, [fact], "{sentence}");
        }
    }

    #[test]
    fn a_chinese_decision_is_asked_for_its_reason_in_either_order() {
        for sentence in [
            "我们决定保留同步导出，因为用户反正要等文件。",
            "因为用户反正要等文件，所以我们决定保留同步导出。",
        ] {
            let found = decided(sentence, Locale::Zh);
            assert_eq!(found.question, "“我们决定保留同步导出”的理由是什么？");
            assert_eq!(found.expected_facts, ["用户反正要等文件"]);
        }
    }
}
