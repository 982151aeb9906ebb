//! The notes of a report, and the sentences on a comparison: what restricts it, and what changed. They are the same in
//! the terminal, in Markdown and on the page.

use std::fmt::Display;

use super::figures::{brackets, count, score, share_with_interval, signed, usd};
use super::notes::{confounds, excluded_dimensions, warnings};
use super::planted;
use super::styled::known;
use super::translation::{Translation, fill, first_of, joined, translation};
use crate::results::{
    Comparison, CostChange, CostChanges, Differences, DriftCheck, Flip, LostConstraint, Manifest,
    MethodComparison, ProbeFact, Reliability, ShareDifference, Summary, is_drift,
    underpowered_methods,
};
use stats::{DifferenceTest, FailureCounts, Regrading};

/// The notes that every report counts and shows in full: warnings, then what affects how scores compare, and what restricts
/// a comparison. Critical warnings, which reports show first, and explanations of figures are not notes.
pub(super) fn notes(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    let mut notes = warnings(summary, manifest, tr);
    notes.extend(confounds(summary, &manifest.design, tr));
    let compared = summary.comparison.iter();
    notes.extend(compared.flat_map(|comparison| comparison_notes(comparison, tr)));
    notes
}

/// How many notes a report has.
pub fn note_count(summary: &Summary, manifest: &Manifest) -> usize {
    notes(summary, manifest, translation(manifest.locale())).len()
}

/// What restricts a comparison.
fn comparison_notes(comparison: &Comparison, tr: &Translation) -> Vec<String> {
    let mut notes = Vec::new();
    if comparison.left_out > 0 {
        let fixtures = comparison.fixtures.len();
        let figures: [&dyn Display; 3] = [&fixtures, &comparison.probes, &comparison.left_out];
        notes.push(fill(tr.compared, &figures));
    }
    if comparison.single_run {
        notes.push(tr.single_run.to_owned());
    }
    notes.extend(excluded_dimensions(&comparison.excluded, tr));
    notes.extend(list(tr.edited_all, &comparison.edits, String::clone, tr));
    notes.extend(mean_drift(comparison, tr));
    for (method, compared) in comparison.methods.iter() {
        notes.extend(if compared.is_untestable() {
            untestable(method, compared, tr)
        } else {
            beyond_rerun(method, compared, tr)
        });
        notes.extend(method_drift(method, compared, tr));
        notes.extend(reliability(method, &compared.reliability, tr));
    }
    notes.extend(blind(comparison, tr));
    if !comparison.unmatched.is_empty() {
        notes.push(fill(tr.unmatched, &[&comparison.unmatched.join(tr.comma)]));
    }
    notes.extend(comparison.warnings.iter().cloned());
    notes
}

/// How much the judge drifted by regrading, with the verdicts of a method that the drift would explain.
fn method_drift(method: &str, compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let lost = differences(compared, tr).filter(|(_, test)| is_drift(test));
    let lost = joined(lost.map(|(what, _)| what), tr.comma);
    drift(method, compared.drift.as_ref()?, lost, tr)
}

/// How much the judge drifted by regrading, and whether the drift would explain the verdict on the mean over methods.
fn mean_drift(comparison: &Comparison, tr: &Translation) -> Option<String> {
    let is_lost = comparison.primary.as_ref().is_some_and(is_drift);
    let lost = is_lost.then(|| tr.overall.to_owned());
    let name = fill(tr.primary, &[&comparison.tested]);
    drift(&name, comparison.drift.as_ref()?, lost, tr)
}

/// `lost` are the verdicts that the drift would explain.
fn drift(name: &str, check: &DriftCheck, lost: Option<String>, tr: &Translation) -> Option<String> {
    let regraded = match check {
        DriftCheck::Unchecked => return Some(fill(tr.drift_unchecked, &[&name])),
        DriftCheck::Checked(regraded) => regraded,
    };
    let Regrading { answers, shift, .. } = regraded.overall?;
    let shift = signed(shift);
    Some(match lost {
        None => fill(tr.no_drift, &[&name, &answers, &shift]),
        Some(lost) => fill(tr.drift_found, &[&name, &answers, &shift, &lost]),
    })
}

/// The effect on the fixtures in which a method changed, where these are too few for a test.
fn untestable(method: &str, compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let overall = compared.overall.as_ref()?;
    let (tested, all) = (overall.clusters, overall.clusters + overall.unchanged);
    let (difference, interval) = (signed(overall.difference), brackets(overall.ci95_rerun));
    Some(fill(
        tr.untestable,
        &[&method, &tested, &all, &difference, &interval],
    ))
}

fn reliability(method: &str, found: &Reliability, tr: &Translation) -> Vec<String> {
    let FailureCounts {
        failed,
        chains,
        baseline_failed,
        baseline_chains,
    } = &found.counts;
    let figures: [&dyn Display; 5] = [&method, failed, chains, baseline_failed, baseline_chains];
    let worse = found.test.regressed.then(|| fill(tr.reliability, &figures));
    let new = joined(
        found
            .newly_failing
            .iter()
            .map(|chain| chain.words(tr.locale)),
        tr.semicolon,
    );
    let count = found.newly_failing.len();
    let new = new.map(|new| fill(tr.newly_failing, &[&method, &count, &new]));
    worse.into_iter().chain(new).collect()
}

/// The methods for which the fixtures cannot show a loss, or only a large one.
fn blind(comparison: &Comparison, tr: &Translation) -> Vec<String> {
    let (hardly, never): (Vec<_>, Vec<_>) = underpowered_methods(comparison)
        .into_iter()
        .partition(|(_, mdd)| mdd.is_some());
    let methods = [(tr.nearly_blind, hardly), (tr.blind, never)]
        .into_iter()
        .filter(|(_, methods)| !methods.is_empty());
    let notes = methods.map(|(pattern, methods)| {
        let names: Vec<&str> = methods.into_iter().map(|(method, _)| method).collect();
        fill(pattern, &[&tr.overall, &names.join(tr.comma)])
    });
    notes.collect()
}

/// Differences beyond re-run noise on these fixtures that are not significant for other sessions.
fn beyond_rerun(method: &str, compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let found: Vec<(String, &DifferenceTest)> = differences(compared, tr)
        .filter(|(_, judged)| judged.is_beyond_rerun_noise())
        .collect();
    let fixtures = found.iter().map(|(_, judged)| judged.clusters).max()?;
    let list = found.iter().map(|(what, judged)| {
        let center = signed(judged.rerun_difference.unwrap_or(judged.difference));
        format!("{what} {center} {}", brackets(judged.ci95_rerun))
    });
    let list = joined(list, tr.comma)?;
    Some(fill(tr.beyond_rerun, &[&method, &fixtures, &list]))
}

/// The maximum number of entries that a sentence lists; `summary.json` has all of them.
const MAX_LISTED: usize = 5;

/// What changed for a method: edits, and their effects on contexts, probes and facts.
pub(super) fn method_changes(compared: &MethodComparison, tr: &Translation) -> Vec<String> {
    let mut notes: Vec<String> = tested_fixtures(compared, tr)
        .into_iter()
        .chain(cost_changes(compared, tr))
        .collect();
    let fixtures = &compared.fixtures;
    let lists = [
        (tr.asked_again, &fixtures.asked_again),
        (tr.edited, &compared.edits),
        (tr.not_comparable, &fixtures.not_comparable),
    ];
    notes.extend(
        lists
            .into_iter()
            .filter_map(|(pattern, entries)| list(pattern, entries, String::clone, tr)),
    );
    let contexts = compared
        .differences
        .contexts
        .filter(|found| found.compared > 0);
    if let Some(contexts) = contexts.filter(|_| compared.has_changed_figures()) {
        notes.push(fill(
            tr.same_contexts,
            &[&contexts.same, &contexts.compared],
        ));
    }
    let (better, worse): (Vec<&Flip>, Vec<&Flip>) = compared
        .differences
        .flipped
        .iter()
        .partition(|flip| flip.after > flip.before);
    notes.extend(list(tr.good_to_bad, &worse, |flip| flip_text(flip), tr));
    notes.extend(list(tr.bad_to_good, &better, |flip| flip_text(flip), tr));
    let Differences {
        facts_lost,
        facts_gained,
        overclaim,
        fabrication,
        truncated,
        ..
    } = &compared.differences;
    notes.extend(list(tr.facts_lost, facts_lost, fact_text, tr));
    notes.extend(list(tr.facts_gained, facts_gained, fact_text, tr));
    notes.extend(list(
        tr.constraints_lost,
        &compared.constraints_lost,
        lost_constraint,
        tr,
    ));
    notes.extend(share_change(tr.overclaim_change, overclaim, tr));
    notes.extend(share_change(tr.fabrication_change, fabrication, tr));
    notes.extend(share_change(tr.truncated_change, truncated, tr));
    notes.extend(
        compared
            .planted
            .iter()
            .flat_map(|found| planted::change(found, tr)),
    );
    notes
}

/// `tokens 1,884 → 3,303 (+75%), cost $0.02 → $0.03 (+50%)`: the costs of a method that differ between the
/// sides.
fn cost_changes(compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let CostChanges {
        tokens,
        usd: dollars,
        seconds,
    } = &compared.costs;
    let figures: [(&str, &CostChange, FormatFigure); 3] = [
        (tr.context_tokens, tokens, count),
        (tr.cost, dollars, usd),
        // Under a second the figure depends more on the machine than on the method.
        (tr.seconds, seconds, |value| {
            known(value, |value| format!("{:.1}", value.max(1.0)))
        }),
    ];
    let texts = figures
        .into_iter()
        .filter_map(|(name, change, text)| Some(format!("{name} {}", change_text(change, text)?)));
    Some(joined(texts, tr.pick(", ", "，"))? + tr.pick(".", "。"))
}

/// Writes a figure of a table.
type FormatFigure = fn(Option<f64>) -> String;

/// `1,884 → 3,303 (+75%)`; `None` if a side is unknown, or if both are written the same.
pub(super) fn change_text(change: &CostChange, text: FormatFigure) -> Option<String> {
    let part = change.relative().filter(|part| part.abs() >= 0.005)?;
    let (before, after) = (text(change.before), text(change.after));
    let part = format!("{:+.0}%", 100.0 * part).replace('-', "−");
    (before != after).then(|| format!("{before} → {after} ({part})"))
}

/// How a share differs; `None` if it does not differ, or if there is nothing to count.
fn share_change(pattern: &str, found: &ShareDifference, tr: &Translation) -> Option<String> {
    let has_answers = [&found.before, &found.after]
        .into_iter()
        .flatten()
        .any(|share| share.of > 0);
    if !has_answers || !found.is_any() {
        return None;
    }
    let sides = [&found.before, &found.after]
        .map(|side| known(side.as_ref(), |share| share_with_interval(share, tr)));
    let interval = found
        .ci95
        .map(|ci| format!(" [{}, {}]", points(ci.low()), points(ci.high())));
    let difference = found.difference.map(|difference| {
        let difference = points(difference) + &interval.unwrap_or_default();
        fill(tr.share_difference, &[&difference])
    });
    let change = fill(pattern, &[&sides[0], &sides[1]]);
    Some(change + &difference.unwrap_or_default())
}

/// `+1.5`: the difference between shares in percentage points.
fn points(share: f64) -> String {
    format!("{:+.1}", 100.0 * share).replace('-', "−")
}

/// What is the same where nothing changed, as a noun and as a phrase of its own.
pub(super) fn sameness(comparison: &Comparison, tr: &Translation) -> [&'static str; 2] {
    let mut methods = comparison.methods.values();
    if comparison.has_grades() {
        [tr.pick("answers and grades", "答案与评分"), tr.unchanged]
    } else if methods.any(|one| one.differences.contexts.is_some()) {
        [tr.pick("contexts", "上下文"), tr.unchanged_contexts]
    } else {
        [
            tr.pick("planted figures", "植入项数字"),
            tr.unchanged_planted,
        ]
    }
}

/// The methods of which nothing changed.
pub(super) fn unchanged(comparison: &Comparison, tr: &Translation) -> Option<String> {
    let unchanged = comparison.names_of(MethodComparison::is_same);
    let names = joined(unchanged.into_iter().map(str::to_owned), tr.comma)?;
    let [_, word] = sameness(comparison, tr);
    let colon = tr.pick(": ", "：");
    Some(format!("{word}{colon}{names}"))
}

/// `on the 4 of 8 fixtures that changed: −1.00; on all: −0.50`; `None` if all of them changed.
fn tested_fixtures(compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let overall = compared
        .overall
        .as_ref()
        .filter(|overall| overall.clusters > 0 && overall.unchanged > 0)?;
    let (tested, all) = (overall.clusters, overall.clusters + overall.unchanged);
    let [changed, whole] = [overall.difference, overall.difference_all].map(signed);
    Some(fill(tr.tested_fixtures, &[&tested, &all, &changed, &whole]))
}

/// The differences of a method with their labels: overall, then by dimension.
pub(super) fn differences<'c>(
    compared: &'c MethodComparison,
    tr: &'c Translation,
) -> impl Iterator<Item = (String, &'c DifferenceTest)> {
    let tests = compared.tests();
    tests.map(|(id, judged)| (tr.dimension_label(id), judged))
}

/// A sentence with a count and a list; `None` for an empty list.
fn list<E>(
    pattern: &str,
    entries: &[E],
    text: impl Fn(&E) -> String,
    tr: &Translation,
) -> Option<String> {
    let shown = joined(first_of(entries, MAX_LISTED, tr, text), tr.semicolon)?;
    Some(fill(pattern, &[&entries.len(), &shown]))
}

fn flip_text(flip: &Flip) -> String {
    let [before, after] = [flip.before, flip.after].map(|value| score(Some(value)));
    format!("{} {before} → {after}", flip.at)
}

fn fact_text(fact: &ProbeFact) -> String {
    format!("{} ({})", fact.fact, fact.at)
}

fn lost_constraint(lost: &LostConstraint) -> String {
    format!("{} {}/{}", fact_text(&lost.fact), lost.lost, lost.chains)
}
