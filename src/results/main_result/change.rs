//! The main result of a comparison: what got worse, what is missing, what got better, after which edit.

use std::collections::BTreeSet;

use crate::results::comparison::values::{Comparison, DriftCheck, MethodComparison};
use crate::results::files::edits::TextEdit;
use crate::results::files::manifest::Manifest;
use crate::results::headline::{
    AnswererAgreement, ConstraintLoss, EditNote, MainChange, MethodChange, MissingCells, Trend,
};
use crate::results::result_set::selection::OVERALL;
use crate::results::summary::Summary;
use stats::{DifferenceTest, NoEvidenceReason, Verdict};

/// The share of missing cells above which nothing else is reported.
const MAX_MISSING: f64 = 0.1;

/// Whether so many of these cells are missing that the others show little.
pub(super) fn is_sparse(missing: u64, of: u64) -> bool {
    missing as f64 > MAX_MISSING * of as f64
}

pub(super) fn main_change(
    comparison: &Comparison,
    summary: &Summary,
    manifest: &Manifest,
) -> MainChange {
    let answerers = manifest
        .design
        .answerers
        .iter()
        .map(|asked| asked.name.as_str());
    let mut by_answerer: Vec<ComparedMethods<'_>> = answerers
        .map(|answerer| ComparedMethods::new(comparison, summary, Some(answerer)))
        .collect();
    // One that a side leaves out, as in `LABEL:METHOD/ANSWERER`, has no result, which is not the result "unchanged".
    by_answerer.retain(|one| !one.methods.is_empty());
    let main = match by_answerer.as_slice() {
        [primary, _, ..] => primary.with_losses_elsewhere(),
        _ => return ComparedMethods::new(comparison, summary, None).change(None),
    };
    let trend = main.trend();
    let same = by_answerer
        .iter()
        .filter(|one| one.trend() == trend)
        .count();
    main.change(Some(AnswererAgreement {
        same,
        of: by_answerer.len(),
    }))
}

/// The methods of a comparison that one answerer read.
struct ComparedMethods<'c> {
    comparison: &'c Comparison,
    summary: &'c Summary,
    methods: Vec<(&'c String, &'c MethodComparison)>,
}

impl<'c> ComparedMethods<'c> {
    fn new(
        comparison: &'c Comparison,
        summary: &'c Summary,
        answerer: Option<&str>,
    ) -> ComparedMethods<'c> {
        let methods = comparison.methods.iter().filter(|(name, _)| {
            answerer.is_none_or(|answerer| name.ends_with(&format!("/{answerer}")))
        });
        ComparedMethods {
            comparison,
            summary,
            methods: methods.collect(),
        }
    }

    /// These methods, with those that regressed with other answerers where nothing here did: the gate fails for them,
    /// so the result has to name them.
    fn with_losses_elsewhere(&self) -> ComparedMethods<'c> {
        let is_worse = matches!(self.trend(), Trend::Regressed | Trend::Mixed);
        let others = self.comparison.methods.iter().filter(|(name, compared)| {
            !is_worse
                && is_worse_method(compared)
                && self.methods.iter().all(|(known, _)| known != name)
        });
        ComparedMethods {
            methods: self.methods.iter().copied().chain(others).collect(),
            ..*self
        }
    }

    fn trend(&self) -> Trend {
        let mean = self.comparison.primary.map(|mean| mean.verdict);
        let is_better =
            mean == Some(Verdict::Improved) || !self.with_verdict(Verdict::Improved).is_empty();
        let is_worse = mean == Some(Verdict::Regressed)
            || !self.comparison.absent.is_empty()
            || self
                .methods
                .iter()
                .any(|(_, compared)| is_worse_method(compared));
        let is_changed = self
            .methods
            .iter()
            .any(|(_, compared)| compared.is_changed());
        match (is_better, is_worse) {
            (true, true) => Trend::Mixed,
            (true, false) => Trend::Improved,
            (false, true) => Trend::Regressed,
            (false, false) if is_changed => Trend::NoEvidence,
            (false, false) => Trend::Unchanged,
        }
    }

    fn change(&self, answerers: Option<AnswererAgreement>) -> MainChange {
        let (regressed, improved) = (
            self.with_verdict(Verdict::Regressed),
            self.with_verdict(Verdict::Improved),
        );
        let not_comparable = self.not_comparable();
        let (small, unproven): (Vec<_>, Vec<_>) = self
            .without_verdict()
            .filter(|change| {
                let collapsed = self.comparison.collapsed.iter().map(|one| &one.method);
                let mut others = not_comparable
                    .iter()
                    .map(|one| &one.method)
                    .chain(collapsed);
                others.all(|method| *method != change.method)
            })
            .partition(|change| change.reason == Some(NoEvidenceReason::BelowMargin));
        let mean = self.mean().filter(|mean| {
            let named = regressed.iter().chain(&improved);
            named.clone().all(|one| one.verdict != mean.verdict)
        });
        // A verdict on the mean says more than that none of its methods has one.
        let unproven = if mean.is_some() { Vec::new() } else { unproven };
        let named = |change: &&(&String, &MethodComparison)| {
            let shown = regressed.iter().chain(&improved);
            shown.clone().any(|one| one.method == *change.0)
        };
        let mut shown: Vec<_> = self.methods.iter().filter(named).copied().collect();
        if shown.is_empty() {
            shown = self
                .methods
                .iter()
                .filter(|(_, compared)| compared.has_changed_figures())
                .copied()
                .collect();
        }
        MainChange {
            trend: self.trend(),
            baseline: self.comparison.baseline.clone(),
            constraints_lost: self.constraints_lost(),
            planted: self.names_of(planted_is_worse),
            less_reliable: self.names_of(|compared| compared.reliability.regressed),
            newly_failing: self.names_of(|compared| {
                !compared.reliability.regressed && !compared.reliability.newly_failing.is_empty()
            }),
            one_sided: self.names_of(|compared| {
                let is_notable =
                    !compared.has_changed_figures() || !compared.fixtures.not_comparable.is_empty();
                compared.fixtures.one_sided > 0 && is_notable && !compared.reliability.is_worse()
            }),
            absent: self.comparison.absent.clone(),
            collapsed: self
                .comparison
                .collapsed
                .iter()
                .filter(|one| self.methods.iter().any(|(name, _)| **name == one.method))
                .cloned()
                .collect(),
            unchanged: self
                .names_of(|compared| compared.has_common_part() && !compared.is_changed())
                .len(),
            edit: self.edit(),
            drift_unchecked: shown
                .iter()
                .filter_map(|(_, compared)| compared.drift.as_ref())
                .chain(&self.comparison.drift)
                .any(|check| *check == DriftCheck::Unchecked),
            tokens: mean_growth(&shown),
            lexical: self.comparison.lexical,
            one_run: self.comparison.single_run,
            labels: self.comparison.labels,
            mean,
            regressed,
            improved,
            small,
            unproven,
            not_comparable,
            answerers,
        }
    }

    /// The names of the methods whose comparisons have this property.
    fn names_of(&self, has_property: impl Fn(&MethodComparison) -> bool) -> Vec<String> {
        let with = self
            .methods
            .iter()
            .filter(|(_, compared)| has_property(compared));
        with.map(|(name, _)| (*name).clone()).collect()
    }

    /// The scores with this verdict, and the dimensions of methods whose score does not have it, the largest difference
    /// first.
    fn with_verdict(&self, verdict: Verdict) -> Vec<MethodChange> {
        let has = |test: &&DifferenceTest| test.verdict == verdict;
        let mut found: Vec<MethodChange> = Vec::new();
        for (name, compared) in &self.methods {
            match compared.overall.as_ref().filter(has) {
                Some(test) => found.push(MethodChange::new(name, OVERALL, test)),
                None => {
                    let dimensions = compared.dimensions.iter().filter(|(_, test)| has(test));
                    found.extend(
                        dimensions
                            .map(|(dimension, test)| MethodChange::new(name, dimension, test)),
                    );
                }
            }
        }
        // stable: equals stay in the order of tables, scores before dimensions
        found.sort_by(|a, b| {
            let rank = |change: &MethodChange| change.measure != OVERALL;
            rank(a)
                .cmp(&rank(b))
                .then(b.difference.abs().total_cmp(&a.difference.abs()))
        });
        found
    }

    /// The scores of methods that changed and of which nothing has a verdict, the largest difference first.
    fn without_verdict(&self) -> impl Iterator<Item = MethodChange> {
        let changed = self.methods.iter().filter(|(_, compared)| {
            let mut tests = compared.overall.iter().chain(compared.dimensions.values());
            compared.has_changed_figures() && tests.all(|test| test.verdict == Verdict::NoEvidence)
        });
        let mut found: Vec<MethodChange> = changed
            .filter_map(|(name, compared)| {
                Some(MethodChange::new(name, OVERALL, compared.overall.as_ref()?))
            })
            .collect();
        found.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        found.into_iter()
    }

    /// The methods without a verdict of which too many cells are missing, or none is on both sides.
    fn not_comparable(&self) -> Vec<MissingCells> {
        // Where nothing was graded, contexts are compared.
        let is_graded = self
            .methods
            .iter()
            .any(|(_, compared)| compared.fixtures.compared() > 0);
        let found = self.methods.iter().filter_map(|(name, compared)| {
            let cells = self.summary.methods.get(*name).map(|method| method.cells);
            let cells = cells.unwrap_or_default();
            let missing = cells.failed + cells.missing;
            let of = cells.judged + missing;
            let overall = compared.overall.as_ref();
            let is_missing = overall.is_some_and(|test| {
                test.reason == Some(NoEvidenceReason::Missing)
                    || (test.verdict == Verdict::NoEvidence && is_sparse(missing, of))
            });
            (is_missing || (is_graded && !compared.has_common_part())).then(|| MissingCells {
                method: (*name).clone(),
                missing,
                of,
            })
        });
        found.collect()
    }

    fn mean(&self) -> Option<MethodChange> {
        let mean = self.comparison.primary.as_ref();
        let mean = mean.filter(|mean| mean.verdict != Verdict::NoEvidence)?;
        Some(MethodChange::new(
            &self.comparison.tested.to_string(),
            OVERALL,
            mean,
        ))
    }

    fn constraints_lost(&self) -> Vec<ConstraintLoss> {
        let mut losses: Vec<ConstraintLoss> = Vec::new();
        for (name, compared) in &self.methods {
            for lost in &compared.constraints_lost {
                let loss = ConstraintLoss {
                    method: (*name).clone(),
                    fact: lost.fact.fact.clone(),
                    is_graded: lost.is_graded,
                    is_confirmed: lost.is_confirmed,
                };
                if !losses.contains(&loss) {
                    losses.push(loss);
                }
            }
        }
        losses
    }

    /// What was edited in the methods that changed, and in the pipeline as a whole.
    fn edit(&self) -> Option<EditNote> {
        // Where nothing changed, the sentence says that an edit changed nothing.
        let is_changed = self
            .methods
            .iter()
            .any(|(_, compared)| compared.is_changed());
        let edited: Vec<&(&String, &MethodComparison)> = self
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
            .chain(&self.comparison.edits);
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
}

/// The mean change of the tokens of these methods; `None` where one is unknown.
fn mean_growth(shown: &[(&String, &MethodComparison)]) -> Option<f64> {
    let changes: Option<Vec<f64>> = shown
        .iter()
        .map(|(_, compared)| compared.costs.tokens.relative())
        .collect();
    stats::mean(&changes?)
}

/// Whether more planted items go wrong.
fn planted_is_worse(compared: &MethodComparison) -> bool {
    let mut worse = compared
        .planted
        .iter()
        .flat_map(|planted| planted.regressed());
    worse.next().is_some()
}

/// Whether a method got worse in anything that the gate tests.
fn is_worse_method(compared: &MethodComparison) -> bool {
    let is_regressed = |test: &DifferenceTest| test.verdict == Verdict::Regressed;
    compared.reliability.regressed
        || planted_is_worse(compared)
        || compared.overall.as_ref().is_some_and(is_regressed)
        || compared.dimensions.values().any(is_regressed)
        || compared
            .constraints_lost
            .iter()
            .any(|lost| lost.is_confirmed)
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
        let summary = summarize(&a, Some(found.clone()));
        let change = main_change(&found, &summary, &a.manifest);
        let names: Vec<&str> = change
            .unproven
            .iter()
            .map(|method| method.method.as_str())
            .collect();
        assert_eq!((names, change.answerers), (vec!["mine/second"], None));
    }
}
