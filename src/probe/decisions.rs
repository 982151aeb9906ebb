//! Questions about choices: what was turned down, why something is so, what was demanded.

use super::bank::ProbeType;
use super::clues::{ProbeSources, Say, candidate, gap};
use super::generate::ProbeCandidate;
use super::phrases::{clause, is_balanced, statement, terms};

/// Questions about what was decided, the better ones first.
pub(super) fn decisions<'c>(clues: &'c ProbeSources, say: &'c Say<'c>) -> impl Iterator<Item = ProbeCandidate> + 'c {
    let sentences = || clues.decisions.iter().rev().chain(clues.findings.iter().rev());
    let parted = sentences().filter_map(|sentence| alternative(sentence, say).or_else(|| reason(sentence, say)));
    let topics = clues.decisions.iter().rev().filter_map(|sentence| choice(sentence, say));
    let words = ["The user demanded this", "用户提出过这一要求"];
    let demands = clues.demands.iter().rev().filter_map(move |sentence| gap(ProbeType::Decision, sentence, say, words));
    let words = ["The agent gave this reason", "代理给出过这一理由"];
    let reasons = clues.findings.iter().rev().filter(|sentence| gives_reason(sentence));
    let reasons = reasons.filter_map(move |sentence| gap(ProbeType::Decision, sentence, say, words));
    parted.chain(topics).chain(demands).chain(reasons)
}

/// Whether a sentence says why.
pub(super) fn gives_reason(sentence: &str) -> bool {
    const WORDS: [&str; 9] =
        [" because ", " since ", " so that ", " due to ", "root cause", "因为", "由于", "原因", "所以"];
    WORDS.iter().any(|word| sentence.contains(word))
}

fn parts<'s>(sentence: &'s str, marks: &[&'static str]) -> Option<(&'s str, &'s str)> {
    let (before, after) = marks.iter().find_map(|mark| sentence.split_once(mark))?;
    let before = before.trim().trim_end_matches(['-', '—', '–', ',', '，', ':', ' ']);
    let words = if before.is_ascii() { before.split_whitespace().count() >= 3 } else { before.chars().count() > 3 };
    (words && is_balanced(before)).then_some((before, after))
}

/// What was chosen, and what it was chosen over.
fn alternative(sentence: &str, say: &Say<'_>) -> Option<ProbeCandidate> {
    const OTHERS: [&str; 4] = [" instead of ", " rather than ", "而不是", "而非"];
    const WORDS: usize = 8;
    let whole = statement(sentence)?;
    let (choice, other) = parts(&whole, &OTHERS)?;
    let other = clause(other);
    let names = terms(other);
    let facts = if names.is_empty() { vec![other.to_owned()] } else { names };
    let question = say(
        format!("Which alternative was turned down here: \"{choice}\"?"),
        format!("“{choice}”，当时放弃的另一个方案是什么？"),
    );
    let sound = other.chars().count() > 2 && other.split_whitespace().count() <= WORDS && is_balanced(other);
    sound.then(|| candidate(ProbeType::Decision, question, facts, sentence))
}

/// What was chosen, and why.
fn reason(sentence: &str, say: &Say<'_>) -> Option<ProbeCandidate> {
    const REASONS: [&str; 5] = [" because ", " due to ", "因为", "由于", "原因是"];
    let whole = statement(sentence)?;
    let (choice, reason) = parts(&whole, &REASONS)?;
    let names: Vec<String> = terms(reason).into_iter().take(3).collect();
    let reason = clause(reason);
    let is_short = (2..=6).contains(&reason.split_whitespace().count());
    let facts = if names.is_empty() && is_short { vec![reason.to_owned()] } else { names };
    let question = say(format!("What was the reason for this: \"{choice}\"?"), format!("“{choice}”的理由是什么？"));
    (!facts.is_empty()).then(|| candidate(ProbeType::Decision, question, facts, sentence))
}

/// A choice that names neither: asked for by what it is about, or with a gap.
fn choice(sentence: &str, say: &Say<'_>) -> Option<ProbeCandidate> {
    let whole = statement(sentence)?;
    if parts(&whole, &[" instead of ", " rather than ", "而不是", "而非", " because ", "因为"]).is_some() {
        return None;
    }
    gap(ProbeType::Decision, sentence, say, ["This was decided or weighed", "当时做出或权衡过这一决定"])
}
