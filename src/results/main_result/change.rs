//! The main result of a comparison: which methods changed, by how much, after which edit, and at what cost.

use std::collections::BTreeSet;

use crate::results::comparison::values::{Comparison, DriftCheck, MethodComparison};
use crate::results::files::edits::TextEdit;
use crate::results::files::manifest::Manifest;
use crate::results::headline::{
    AnswererAgreement, ConstraintLoss, EditNote, MainChange, MainResult, MethodChange,
};
use crate::results::result_set::level::OVERALL;
use stats::{DifferenceTest, Verdict};

pub(super) fn main_change(comparison: &Comparison, manifest: &Manifest) -> MainResult {
    let answerers = manifest
        .design
        .answerers
        .iter()
        .map(|asked| asked.name.as_str());
    let mut by_answerer: Vec<ComparedMethods<'_>> = answerers
        .map(|answerer| ComparedMethods::new(comparison, Some(answerer)))
        .collect();
    // One that a side leaves out, as in `LABEL:METHOD/ANSWERER`, has no result, which is not the result "unchanged".
    by_answerer.retain(|one| !one.methods.is_empty());
    let main = match by_answerer.as_slice() {
        [primary, _, ..] => primary.with_losses_elsewhere(),
        _ => return ComparedMethods::new(comparison, None).result(None),
    };
    let same = by_answerer
        .iter()
        .filter(|one| one.trend() == main.trend())
        .count();
    main.result(Some(AnswererAgreement {
        same,
        of: by_answerer.len(),
    }))
}

/// Whether anything got better, whether anything got worse, and whether anything changed at all.
type Trend = (bool, bool, bool);

/// The methods of a comparison that one answerer read.
struct ComparedMethods<'c> {
    comparison: &'c Comparison,
    methods: Vec<(&'c String, &'c MethodComparison)>,
}

impl<'c> ComparedMethods<'c> {
    fn new(comparison: &'c Comparison, answerer: Option<&str>) -> ComparedMethods<'c> {
        let methods = comparison.methods.iter().filter(|(name, _)| {
            answerer.is_none_or(|answerer| name.ends_with(&format!("/{answerer}")))
        });
        ComparedMethods {
            comparison,
            methods: methods.collect(),
        }
    }

    /// These methods, with those that regressed with other answerers where nothing here did: the gate fails for them,
    /// so the result has to name them.
    fn with_losses_elsewhere(&self) -> ComparedMethods<'c> {
        let (_, is_worse, _) = self.trend();
        let others = self.comparison.methods.iter().filter(|(name, compared)| {
            !is_worse
                && is_worse_method(compared)
                && self.methods.iter().all(|(known, _)| known != name)
        });
        ComparedMethods {
            comparison: self.comparison,
            methods: self.methods.iter().copied().chain(others).collect(),
        }
    }

    fn result(&self, answerers: Option<AnswererAgreement>) -> MainResult {
        let change = self.change(answerers);
        match self.trend() {
            (true, true, _) => MainResult::Mixed(change),
            (true, false, _) => MainResult::Improved(change),
            (false, true, _) => MainResult::Regressed(change),
            (false, false, true) => MainResult::NoEvidence(change),
            (false, false, false) => MainResult::Unchanged(change),
        }
    }

    fn trend(&self) -> Trend {
        let is_changed = self
            .methods
            .iter()
            .any(|(_, compared)| compared.is_changed());
        let is_worse = self.has_verdict(Verdict::Regressed)
            || self
                .methods
                .iter()
                .any(|(_, compared)| is_worse_method(compared));
        (self.has_verdict(Verdict::Improved), is_worse, is_changed)
    }

    /// Whether the deciding test of a method, or the test of the mean, has this verdict.
    fn has_verdict(&self, verdict: Verdict) -> bool {
        self.tests().any(|(_, test)| test.verdict == verdict)
            || self
                .comparison
                .primary
                .is_some_and(|mean| mean.verdict == verdict)
    }

    /// The deciding test of each method: of `overall`.
    fn tests(&self) -> impl Iterator<Item = (&'c String, &'c DifferenceTest)> {
        self.methods.iter().filter_map(|(name, compared)| {
            let test = compared.overall.as_ref()?;
            Some((*name, test))
        })
    }

    fn change(&self, answerers: Option<AnswererAgreement>) -> MainChange {
        let with_verdict: Vec<_> = self
            .tests()
            .filter(|(_, test)| test.verdict != Verdict::NoEvidence)
            .map(|(name, _)| name)
            .collect();
        let changed = self.names_of(MethodComparison::is_changed);
        // A method that only fails where it did not fail before has no difference to show.
        let with_figures = self.names_of(MethodComparison::has_changed_figures);
        let mut methods = self.worse_elsewhere();
        let shown = if with_verdict.is_empty() && methods.is_empty() {
            &with_figures
        } else {
            &with_verdict
        };
        methods.extend(
            self.tests()
                .filter(|(name, _)| shown.contains(name))
                .map(|(name, test)| self.method(name, test)),
        );
        methods.sort_by(|a, b| {
            let [rank_a, rank_b] = [a, b].map(|change| change.verdict != Verdict::Regressed);
            rank_a
                .cmp(&rank_b)
                .then(b.difference.abs().total_cmp(&a.difference.abs()))
        });
        let unchanged = (self.methods.iter())
            .filter(|(_, compared)| compared.has_common_part() && !compared.is_changed())
            .count();
        let less_reliable = self
            .methods
            .iter()
            .filter(|(_, compared)| compared.reliability.regressed);
        let newly_failing = self.methods.iter().filter(|(_, compared)| {
            !compared.reliability.regressed && !compared.reliability.newly_failing.is_empty()
        });
        let one_sided = self.methods.iter().filter(|(_, compared)| {
            let is_notable =
                !compared.has_changed_figures() || !compared.fixtures.not_comparable.is_empty();
            compared.fixtures.one_sided > 0 && is_notable && !compared.reliability.is_worse()
        });
        MainChange {
            baseline: self.comparison.baseline.clone(),
            mean: self
                .mean()
                .filter(|mean| self.tests().all(|(_, test)| test.verdict != mean.verdict)),
            less_reliable: less_reliable.map(|(name, _)| (*name).clone()).collect(),
            newly_failing: newly_failing.map(|(name, _)| (*name).clone()).collect(),
            one_sided: one_sided.map(|(name, _)| (*name).clone()).collect(),
            constraints_lost: self.constraints_lost(),
            no_evidence: with_figures
                .iter()
                .filter(|name| methods.iter().all(|shown| shown.method != ***name))
                .count(),
            unchanged,
            edit: self.edit(&changed),
            drift_unchecked: self.is_drift_unchecked(&methods),
            tokens: self.tokens(&methods),
            labels: self.comparison.labels,
            lexical: self.comparison.lexical,
            methods,
            answerers,
        }
    }

    /// The methods whose comparisons have this property.
    fn names_of(&self, has_property: impl Fn(&MethodComparison) -> bool) -> Vec<&'c String> {
        self.methods
            .iter()
            .filter(|(_, compared)| has_property(compared))
            .map(|(name, _)| *name)
            .collect()
    }

    fn method(&self, name: &str, test: &DifferenceTest) -> MethodChange {
        MethodChange {
            method: name.to_owned(),
            measure: OVERALL.to_owned(),
            difference: test.difference,
            ci95: test.ci95,
            fixtures: test.clusters,
            unchanged: test.unchanged,
            verdict: test.verdict,
            reason: test.reason,
            detectable: test.mdd,
        }
    }

    /// The comparisons of the methods that the sentence names.
    fn shown<'s>(
        &'s self,
        changes: &'s [MethodChange],
    ) -> impl Iterator<Item = &'c MethodComparison> + 's {
        let named = self
            .methods
            .iter()
            .filter(move |(name, _)| changes.iter().any(|change| change.method == **name));
        named.map(|(_, compared)| *compared)
    }

    fn is_drift_unchecked(&self, shown: &[MethodChange]) -> bool {
        let checks = self
            .shown(shown)
            .filter_map(|compared| compared.drift.as_ref())
            .chain(&self.comparison.drift);
        checks
            .into_iter()
            .any(|check| *check == DriftCheck::Unchecked)
    }

    fn mean(&self) -> Option<MethodChange> {
        let mean = self
            .comparison
            .primary
            .as_ref()
            .filter(|mean| mean.verdict != Verdict::NoEvidence)?;
        let (method, measure) = (self.comparison.tested.to_string(), "overall".to_owned());
        Some(MethodChange {
            method,
            measure,
            ..self.method("", mean)
        })
    }

    /// The regressed dimensions of methods whose deciding test shows no regression.
    fn worse_elsewhere(&self) -> Vec<MethodChange> {
        let methods = self.methods.iter().filter(|(name, _)| {
            !self
                .tests()
                .any(|(tested, test)| tested == *name && is_regressed(test))
        });
        let worse = methods.flat_map(|(name, compared)| {
            let dimensions = compared
                .dimensions
                .iter()
                .map(|(dimension, test)| (dimension.clone(), test));
            let worse = dimensions.filter(|(_, test)| is_regressed(test));
            worse.map(move |(measure, test)| MethodChange {
                measure,
                ..self.method(name, test)
            })
        });
        worse.collect()
    }

    fn constraints_lost(&self) -> Vec<ConstraintLoss> {
        let mut losses: Vec<ConstraintLoss> = Vec::new();
        for (name, compared) in &self.methods {
            for lost in &compared.constraints_lost {
                let (method, fact) = ((*name).clone(), lost.fact.fact.clone());
                let (is_graded, is_confirmed) = (lost.is_graded, lost.is_confirmed);
                let loss = ConstraintLoss {
                    method,
                    fact,
                    is_graded,
                    is_confirmed,
                };
                if !losses.contains(&loss) {
                    losses.push(loss);
                }
            }
        }
        losses
    }

    /// The mean change of the tokens of these methods; `None` where one is unknown.
    fn tokens(&self, shown: &[MethodChange]) -> Option<f64> {
        let changes: Option<Vec<f64>> = self
            .shown(shown)
            .map(|compared| compared.costs.tokens.relative())
            .collect();
        let changes = changes.filter(|changes| !changes.is_empty())?;
        Some(changes.iter().sum::<f64>() / changes.len() as f64)
    }

    /// What was edited in the methods that changed, and in the pipeline as a whole.
    fn edit(&self, changed: &[&String]) -> Option<EditNote> {
        let mut named = self
            .methods
            .iter()
            .filter(|(name, _)| changed.contains(name));
        let edited: Vec<&MethodComparison> = named.clone().map(|(_, compared)| *compared).collect();
        if let Some((_, pair)) =
            named.find(|(name, compared)| compared.is_with_another_method(name))
        {
            return Some(EditNote::OtherMethod(pair.against.clone()));
        }
        let texts: Vec<&TextEdit> = edited
            .iter()
            .flat_map(|compared| &compared.edited_texts)
            .collect();
        let paths: BTreeSet<&String> = texts.iter().map(|text| &text.path).collect();
        let places: BTreeSet<&String> = texts.iter().flat_map(|text| &text.places).collect();
        let lines = edited
            .iter()
            .flat_map(|compared| &compared.edits)
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

/// Whether a method got worse in anything that the gate tests.
fn is_worse_method(compared: &MethodComparison) -> bool {
    compared.reliability.regressed
        || compared.overall.as_ref().is_some_and(is_regressed)
        || compared.dimensions.values().any(is_regressed)
        || compared
            .constraints_lost
            .iter()
            .any(|lost| lost.is_confirmed)
}

fn is_regressed(test: &DifferenceTest) -> bool {
    test.verdict == Verdict::Regressed
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
    use crate::results::{ComparisonScope, ResultSet, Row, Side, compare};

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
        let result = main_change(&found, &a.manifest);
        let MainResult::NoEvidence(change) = &result else {
            panic!("{result:?}")
        };
        let names: Vec<&str> = change
            .methods
            .iter()
            .map(|method| method.method.as_str())
            .collect();
        assert_eq!((names, change.answerers), (vec!["mine/second"], None));
    }
}
