//! What changed between the two sides of a comparison, in sentences: the same in terminal, report and page.

use super::figures::{brackets, score, signed};
use super::words::{Words, fill};
use crate::results::{Comparison, Flip, MethodComparison, ProbeFact};

/// The most entries of a list in a sentence; `summary.json` has all of them.
const SHOWN: usize = 5;

/// What changed for a method: what was tested, what was edited, and what it did to contexts, probes and facts.
pub(super) fn what_changed(compared: &MethodComparison, words: &Words) -> Vec<String> {
    let mut notes: Vec<String> = tested_fixtures(compared, words).into_iter().collect();
    let fixtures = &compared.fixtures;
    let lists = [
        (words.asked_again, &fixtures.asked_again),
        (words.edited, &compared.edits),
        (words.not_comparable, &fixtures.not_comparable),
        (words.only_judged, &fixtures.only_judged),
        (words.only_baseline, &fixtures.only_baseline),
    ];
    notes.extend(lists.into_iter().filter_map(|(pattern, entries)| list(pattern, entries, words)));
    if let Some(contexts) = compared.differences.contexts.filter(|found| found.compared > 0 && fixtures.tested() > 0) {
        notes.push(fill(words.same_contexts, &[&contexts.same.to_string(), &contexts.compared.to_string()]));
    }
    let (better, worse): (Vec<&Flip>, Vec<&Flip>) =
        compared.differences.flipped.iter().partition(|flip| flip.after > flip.before);
    let flips = |flips: Vec<&Flip>| flips.into_iter().map(flip).collect::<Vec<_>>();
    notes.extend(list(words.good_to_bad, &flips(worse), words));
    notes.extend(list(words.bad_to_good, &flips(better), words));
    let facts = |facts: &[ProbeFact]| facts.iter().map(fact).collect::<Vec<_>>();
    notes.extend(list(words.facts_lost, &facts(&compared.differences.facts_lost), words));
    notes.extend(list(words.facts_gained, &facts(&compared.differences.facts_gained), words));
    notes
}

/// All that the page says of what changed: the test of the mean over methods, then each method with a change.
pub(super) fn changes(comparison: &Comparison, words: &Words) -> Vec<(String, Vec<String>)> {
    let primary = comparison.primary.as_ref().map(|primary| {
        let verdict = words.verdict(primary.verdict, primary.reason);
        let figures = format!("{} {} {verdict}", signed(primary.difference), brackets(primary.ci95));
        (fill(words.primary, &[&comparison.tested.to_string()]), vec![figures])
    });
    let methods = comparison.methods.iter().map(|(name, compared)| (name.to_owned(), what_changed(compared, words)));
    let unchanged = unchanged(comparison, words).map(|sentence| (String::new(), vec![sentence]));
    let changed = methods.filter(|(_, notes)| !notes.is_empty());
    primary.into_iter().chain(changed).chain(unchanged).collect()
}

/// The methods of which nothing changed, in a sentence.
pub(super) fn unchanged(comparison: &Comparison, words: &Words) -> Option<String> {
    let is_unchanged =
        |compared: &MethodComparison| compared.fixtures.tested() == 0 && compared.fixtures.compared() > 0;
    let names: Vec<&str> =
        comparison.methods.iter().filter(|(_, compared)| is_unchanged(compared)).map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| format!("{}: {}", words.unchanged, names.join(", ")))
}

/// `on 4 of 8 fixtures that changed −1.00; over all −0.50`: nothing where all of them changed.
fn tested_fixtures(compared: &MethodComparison, words: &Words) -> Option<String> {
    let overall = compared.overall.as_ref().filter(|overall| overall.clusters > 0 && overall.unchanged > 0)?;
    let (tested, all) = (overall.clusters.to_string(), (overall.clusters + overall.unchanged).to_string());
    Some(fill(words.tested_fixtures, &[&tested, &all, &signed(overall.difference), &signed(overall.difference_all)]))
}

/// A sentence with a count and a list; nothing for an empty list.
pub(super) fn list(pattern: &str, entries: &[String], words: &Words) -> Option<String> {
    let mut shown: Vec<String> = entries.iter().take(SHOWN).cloned().collect();
    if entries.len() > SHOWN {
        shown.push(fill(words.and_more, &[&(entries.len() - SHOWN).to_string()]));
    }
    (!entries.is_empty()).then(|| fill(pattern, &[&entries.len().to_string(), &shown.join("; ")]))
}

fn place(fixture: &str, point: u32, probe: &str) -> String {
    if point > 1 { format!("{fixture} · {point} · {probe}") } else { format!("{fixture} · {probe}") }
}

fn flip(flip: &Flip) -> String {
    let place = place(&flip.fixture, flip.point, &flip.probe);
    format!("{place} {} → {}", score(Some(flip.before)), score(Some(flip.after)))
}

fn fact(fact: &ProbeFact) -> String {
    format!("{} ({})", fact.fact, place(&fact.fixture, fact.point, &fact.probe))
}
