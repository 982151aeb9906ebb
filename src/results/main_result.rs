//! The main result of a result set, and the questions to look at first: what a comparison or a method lost most. `report`
//! puts the result into a sentence.
//!
//! A comparison has its trend, and what got worse, is missing or got better, after which edit; each list has the worst
//! first. The only result of an incomplete set is that it is incomplete.

use std::collections::BTreeSet;

use super::aggregates::CellCounts;
use super::comparison::changes::Flip;
use super::comparison::values::{Comparison, MethodChange, MethodComparison};
use super::files::edits::TextEdit;
use super::files::manifest::{Manifest, Outcome};
use super::result_set::ProbePlace;
use super::result_set::selection::OVERALL;
use super::summary::{MainResult, MethodSummary, Summary, Trend};
use super::worst::{LossCause, WorstProbe};
use crate::action::StageName;
use stats::{NoEvidenceReason, Verdict};

/// The main result of a set, or of its comparison if there is one.
pub fn main_result(summary: &Summary, manifest: &Manifest) -> MainResult {
    if let Some(incomplete) = too_many_missing(summary, manifest) {
        return incomplete;
    }
    match &summary.comparison {
        Some(comparison) => MainResult::Change {
            trend: trend(comparison),
        },
        None if summary.scale.is_narrow() => MainResult::Unscaled {
            difference: summary.scale.difference.unwrap_or_default(),
        },
        None if manifest.design.is_dry_run() => MainResult::DryRun,
        None if summary.ranking.is_some() => MainResult::Levels,
        None => MainResult::Unscored,
    }
}

/// The share of missing cells above which nothing else is reported.
const MAX_MISSING: f64 = 0.1;

/// Whether so many of these cells are missing that the others show little.
fn is_sparse(missing: u64, of: u64) -> bool {
    missing as f64 > MAX_MISSING * of as f64
}

/// The result of a set in which too many cells are missing; where nothing is answered, contexts.
fn too_many_missing(summary: &Summary, manifest: &Manifest) -> Option<MainResult> {
    let methods = summary.methods.values();
    let (judged, failed, expected) = match manifest.design.has_answers() {
        true => {
            let judged: u64 = methods.clone().map(|method| method.cells.judged).sum();
            let failed: u64 = methods.clone().map(|method| method.cells.failed).sum();
            let missing: u64 = methods.map(|method| method.cells.missing).sum();
            (judged, failed, judged + failed + missing)
        }
        false => {
            let made: u64 = methods
                .clone()
                .map(|method| method.compression.contexts)
                .sum();
            let expected: u64 = methods.map(|method| method.compression.expected).sum();
            let failures = manifest
                .failures
                .iter()
                .filter(|failure| failure.stage == StageName::Compress);
            (made, failures.count() as u64, expected)
        }
    };
    let was_stopped = matches!(
        manifest.outcome,
        Outcome::Budget | Outcome::Pending | Outcome::Interrupted
    );
    // In a comparison, methods with gaps are named, as long as others have none.
    let mut methods = summary
        .methods
        .values()
        .filter(|method| !method.is_anchor());
    let has_whole = summary.comparison.is_some()
        && methods.any(|method| {
            let CellCounts {
                judged,
                failed,
                missing,
                ..
            } = method.cells;
            !is_sparse(failed + missing, judged + failed + missing)
        });
    let is_incomplete = is_sparse(expected.saturating_sub(judged), expected) && !has_whole;
    (was_stopped || is_incomplete).then_some(MainResult::Incomplete {
        judged,
        failed,
        expected,
    })
}

// --- a comparison ---

fn trend(comparison: &Comparison) -> Trend {
    let mean = comparison.primary.map(|mean| mean.verdict);
    let has =
        |verdict| mean == Some(verdict) || !comparison.changes_with_verdict(verdict).is_empty();
    let is_better = has(Verdict::Improved);
    let is_worse = has(Verdict::Regressed)
        || !comparison.absent.is_empty()
        || comparison.methods.values().any(MethodComparison::is_worse);
    let is_changed = comparison
        .methods
        .values()
        .any(MethodComparison::is_changed);
    match (is_better, is_worse) {
        (true, true) => Trend::Mixed,
        (true, false) => Trend::Improved,
        (false, true) => Trend::Regressed,
        (false, false) if is_changed => Trend::NoEvidence,
        (false, false) => Trend::Unchanged,
    }
}

/// What was edited, in as much detail as one phrase has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditNote {
    /// Lines of one section were only removed: the first of them.
    Removed(String),
    /// Lines of one section were only added: the first of them.
    Added(String),
    /// A text changed here: in this place, or in several places of this file.
    Changed(String),
    /// A setting changed.
    Setting(String),
    /// Several edits: how many.
    Several(usize),
    /// Nothing: the baseline is this other method.
    OtherMethod(String),
}

/// The scores of methods that changed and of which nothing has a verdict, the largest difference first: those that are
/// not chance and too small for a verdict, and the others. Left out are methods that collapsed somewhere or are not
/// comparable.
pub fn changes_without_verdict<'c>(
    comparison: &'c Comparison,
    summary: &Summary,
) -> [Vec<MethodChange<'c>>; 2] {
    let gaps = not_comparable(comparison, summary);
    let is_named = |name: &str| {
        gaps.iter().any(|(method, ..)| *method == name)
            || comparison.collapsed.iter().any(|one| one.method == name)
    };
    let changed = comparison.methods.iter().filter(|(name, compared)| {
        let mut tests = compared.tests();
        compared.has_changed_figures()
            && tests.all(|(_, test)| test.verdict == Verdict::NoEvidence)
            && !is_named(name)
    });
    let changed = changed.filter_map(|(method, compared)| {
        Some(MethodChange {
            method,
            measure: OVERALL,
            test: compared.overall.as_ref()?,
        })
    });
    let mut changed: Vec<MethodChange<'c>> = changed.collect();
    changed.sort_by(MethodChange::by_size);
    let (small, mut unproven): (Vec<_>, Vec<_>) = changed
        .into_iter()
        .partition(|change| change.test.reason == Some(NoEvidenceReason::BelowMargin));
    // A verdict on the mean says more than that none of its methods has one.
    let mut verdicts = [Verdict::Regressed, Verdict::Improved].into_iter();
    if verdicts.any(|verdict| comparison.mean_with_verdict(verdict).is_some()) {
        unproven.clear();
    }
    [small, unproven]
}

/// The methods without a verdict of which too many cells are missing, or none is on both sides: each with the cells
/// that it lacks on this side, of all.
pub fn not_comparable<'c>(
    comparison: &'c Comparison,
    summary: &Summary,
) -> Vec<(&'c str, u64, u64)> {
    let found = comparison.methods.iter().filter_map(|(name, compared)| {
        let cells = summary.methods.get(name).map(|method| method.cells);
        let cells = cells.unwrap_or_default();
        let missing = cells.failed + cells.missing;
        let of = cells.judged + missing;
        let is_missing = compared.overall.is_some_and(|test| {
            test.reason == Some(NoEvidenceReason::Missing)
                || (test.verdict == Verdict::NoEvidence && is_sparse(missing, of))
        });
        (is_missing || (comparison.has_grades() && !compared.has_common_part())).then_some((
            name.as_str(),
            missing,
            of,
        ))
    });
    found.collect()
}

/// What was edited in the methods that changed, and in the pipeline as a whole.
pub fn edit_note(comparison: &Comparison) -> Option<EditNote> {
    // Where nothing changed, the sentence says that an edit changed nothing.
    let is_changed = comparison
        .methods
        .values()
        .any(MethodComparison::is_changed);
    let edited: Vec<(&String, &MethodComparison)> = comparison
        .methods
        .iter()
        .filter(|(_, compared)| compared.is_changed() == is_changed)
        .collect();
    let another = edited
        .iter()
        .find(|(name, compared)| compared.is_with_another_method(name));
    if let Some((_, pair)) = another {
        return Some(EditNote::OtherMethod(pair.against.clone()));
    }
    let texts: Vec<&TextEdit> = edited
        .iter()
        .flat_map(|(_, compared)| &compared.edited_texts)
        .collect();
    let paths: BTreeSet<&String> = texts.iter().map(|text| &text.path).collect();
    let places: BTreeSet<&String> = texts.iter().flat_map(|text| &text.places).collect();
    let lines = edited
        .iter()
        .flat_map(|(_, compared)| &compared.edits)
        .chain(&comparison.edits);
    let settings: BTreeSet<&String> = lines.filter(|line| !places.contains(line)).collect();
    match (texts.first(), paths.len() + settings.len()) {
        (_, 0) => None,
        (Some(text), 1) => Some(text_note(text)),
        (None, 1) => settings
            .first()
            .map(|setting| EditNote::Setting((*setting).clone())),
        (_, several) => Some(EditNote::Several(several)),
    }
}

/// The edit of a text. The first line that was removed or added stands for an edit of one section in one place; of any
/// other, this is the place, or the file if there are several.
fn text_note(text: &TextEdit) -> EditNote {
    let is_small = text.places.len() < 2 && headings(text) < 2;
    match (first_line(text, '-'), first_line(text, '+')) {
        (Some(removed), None) if is_small => EditNote::Removed(removed.trim().to_owned()),
        (None, Some(added)) if is_small => EditNote::Added(added.trim().to_owned()),
        _ => EditNote::Changed(match text.places.as_slice() {
            [place] => place.clone(),
            _ => text.path.clone(),
        }),
    }
}

/// How many headings of Markdown are among the lines that differ.
fn headings(text: &TextEdit) -> usize {
    text.diff
        .iter()
        .filter(|line| line.get(1..).is_some_and(|line| line.starts_with('#')))
        .count()
}

/// The first line after this sign that is not blank.
fn first_line(text: &TextEdit, sign: char) -> Option<&str> {
    text.diff
        .iter()
        .filter_map(|line| line.strip_prefix(sign))
        .find(|line| !line.trim().is_empty())
}

/// A question with its scores before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionChange {
    /// The method.
    pub method: String,
    /// The probe.
    pub at: ProbePlace,
    /// Its score in the baseline; `None` where there is none.
    pub before: Option<f64>,
    /// Its score.
    pub after: f64,
    /// Facts that the context lost, or gained if the score rose; without a baseline, facts that the answer lacks.
    pub facts: Vec<String>,
    /// What lost it, as far as that is known.
    pub cause: Option<LossCause>,
}

/// The questions to look at first, each once: those that the compression lost come first. In a comparison: those that got
/// worse, the largest step first, or, if none did, those that got better. In a single set: the worst ones. Never those of
/// ceiling and floor.
pub fn first_questions(summary: &Summary) -> Vec<QuestionChange> {
    match &summary.comparison {
        Some(comparison) => changed_questions(comparison, summary),
        None => worst_questions(&summary.worst),
    }
}

fn worst_questions(worst: &[WorstProbe]) -> Vec<QuestionChange> {
    let mut seen = BTreeSet::new();
    let first = worst.iter().filter(|worst| seen.insert(&worst.at));
    let questions = first.map(|worst| QuestionChange {
        method: worst.method.clone(),
        at: worst.at.clone(),
        before: None,
        after: worst.score,
        facts: worst.lacking.clone(),
        cause: worst.cause,
    });
    questions.collect()
}

fn changed_questions(comparison: &Comparison, summary: &Summary) -> Vec<QuestionChange> {
    let is_anchor = |name: &String| {
        let method = summary.methods.get(name);
        method.is_some_and(MethodSummary::is_anchor)
    };
    let flips: Vec<(&String, &MethodComparison, &Flip)> = (comparison.methods.iter())
        .filter(|(name, _)| !is_anchor(name))
        .flat_map(|(name, compared)| {
            compared
                .differences
                .flipped
                .iter()
                .map(move |flip| (name, compared, flip))
        })
        .collect();
    let mut worse = flips.clone();
    worse.retain(|(.., flip)| flip.after < flip.before);
    if worse.is_empty() {
        worse = flips;
    }
    // stable: equals stay in the order of methods and of the matrix
    worse.sort_by(|(.., a), (.., b)| {
        let steps = [a, b].map(|flip| (flip.after - flip.before).abs());
        let ranks = [a, b].map(|flip| LossCause::rank(flip.cause));
        ranks[0].cmp(&ranks[1]).then(steps[1].total_cmp(&steps[0]))
    });
    let mut seen = BTreeSet::new();
    worse.retain(|(.., flip)| seen.insert(&flip.at));
    worse
        .into_iter()
        .map(|(name, compared, flip)| question(name, compared, flip))
        .collect()
}

fn question(method: &str, compared: &MethodComparison, flip: &Flip) -> QuestionChange {
    let differences = &compared.differences;
    let facts = if flip.after < flip.before {
        &differences.facts_lost
    } else {
        &differences.facts_gained
    };
    let facts = facts.iter().filter(|fact| fact.at == flip.at);
    QuestionChange {
        method: method.to_owned(),
        at: flip.at.clone(),
        before: Some(flip.before),
        after: flip.after,
        facts: facts.map(|fact| fact.fact.clone()).collect(),
        cause: flip.cause.filter(|_| flip.after < flip.before),
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Dimension;
    use crate::results::fakes::{NO_LINES, design, model_info, row};
    use crate::results::{ComparisonScope, ResultSet, Row, Side, compare, summarize};

    /// A set whose method two answerers read; only the second one's score is given.
    fn set(label: &str, score: f64) -> ResultSet {
        let mut design = design(&[("mine", "command")], &[("f1", 1)], 1);
        design.answerers.push(model_info("second", "test/agent-2"));
        design.methods[0].readers.push("second".into());
        let first = row("f1", "mine", 1, &[(Dimension::Accuracy, 4.0)]);
        let second = Row {
            answerer: "second".into(),
            ..row("f1", "mine", 1, &[(Dimension::Accuracy, score)])
        };
        ResultSet::gather(Manifest::begin(label, "t", design), [first, second].map(Ok)).unwrap()
    }

    fn edit(places: &[&str], diff: &[&str]) -> TextEdit {
        let [places, diff]: [Vec<String>; 2] =
            [places, diff].map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
        TextEdit {
            path: "p.md".to_owned(),
            places,
            diff,
        }
    }

    #[test]
    fn a_line_stands_for_an_edit_of_one_section_in_one_place() {
        let one_section = edit(&["p.md:3"], &["-## State", "-What works.", "-"]);
        assert_eq!(
            text_note(&one_section),
            EditNote::Removed("## State".to_owned())
        );
        let two_sections = edit(&["p.md:3"], &["-## State", "-", "-## Files"]);
        assert_eq!(
            text_note(&two_sections),
            EditNote::Changed("p.md:3".to_owned())
        );
        let two_places = edit(&["p.md:3", "p.md:9"], &["+Be brief.", "+Be exact."]);
        assert_eq!(text_note(&two_places), EditNote::Changed("p.md".to_owned()));
    }

    #[test]
    fn an_answerer_that_a_side_leaves_out_has_no_part_in_the_result() {
        let (a, b) = (set("a", 2.0), set("b", 4.0));
        let judged = Side {
            set: &a,
            method: Some("mine/second"),
        };
        let baseline = Side {
            set: &b,
            method: None,
        };
        let found = compare(judged, baseline, ComparisonScope::All, &NO_LINES).unwrap();
        let summary = summarize(&a, None);
        let [_, unproven] = changes_without_verdict(&found, &summary);
        let names: Vec<&str> = unproven.iter().map(|change| change.method).collect();
        assert_eq!(names, ["mine/second"]);
    }
}
