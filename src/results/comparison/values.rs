//! The result of a comparison as values: `comparison` in `summary.json`.
//!
//! A correction changes its verdicts afterwards: answers of the baseline are graded again, because a judge that changed
//! would move all grades.

use std::collections::BTreeSet;

use serde::Serialize;

use super::changes::{Collapse, ComparedVariants, Differences, FixtureChanges, LostConstraint};
use super::reliability::Reliability;
use crate::results::Ordered;
use crate::results::aggregates::Answers;
use crate::results::aggregates::contexts::paired_compression_costs;
use crate::results::aggregates::planted::PlantedComparison;
use crate::results::aggregates::scale::ExcludedDimension;
use crate::results::files::edits::TextEdit;
use crate::results::files::manifest::{Regraded, Regradings};
use crate::results::result_set::selection::{OVERALL, Subset};
use crate::results::result_set::{ProbePlace, VariantRef};
use base::locale::Locale;
use stats::{self, DifferenceTest, Regrading, Verdict};

/// `comparison` in `summary.json`. Differences are the judged side minus the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the baseline.
    pub baseline: String,
    /// The language of its sentences.
    #[serde(skip)]
    pub locale: Locale,
    /// How many labels of the results folder were compared with the baseline, this one included; 0 between methods of one
    /// set.
    pub labels: usize,
    /// Whether models were asked only once on one of the sides, so that chance between repetitions cannot be seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub single_run: bool,
    /// K: the number of tested methods, which are those that changed in at least three fixtures.
    pub tested: usize,
    /// The test of the mean over the tested methods; null if there are fewer than two.
    pub primary: Option<DifferenceTest>,
    /// Whether the judge was checked, if a changed judge would explain the verdict on the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftCheck>,
    /// The methods compared, by name on the judged side.
    pub methods: Ordered<MethodComparison>,
    /// Fixtures in which a method broke down while it held in the others.
    pub collapsed: Vec<Collapse>,
    /// Methods of the baseline that the judged side lacks although it selected all: the gate fails.
    pub absent: Vec<String>,
    /// Methods that only one side has.
    pub unmatched: Vec<String>,
    /// Fixtures that are the same on both sides.
    pub fixtures: Vec<String>,
    /// How many probes are the same on both sides.
    pub probes: usize,
    /// These probes by fixture, point and id.
    #[serde(skip)]
    pub asked: BTreeSet<ProbePlace>,
    /// How many probes of either side are left out, because the other side asked something else or nothing there.
    pub left_out: usize,
    /// Whether the built-in rules replaced a model on one of the sides, which every table says.
    pub lexical: bool,
    /// Whether on both sides models compressed and answered, so that only grades are by the built-in rules.
    #[serde(skip)]
    pub answered_by_models: bool,
    /// Dimensions that are left out on both sides, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedDimension>,
    /// Edits of the pipeline as a whole.
    pub edits: Vec<String>,
    /// Differences that do not prevent the comparison, as sentences.
    pub warnings: Vec<String>,
    /// Those of them that say that other models answered than in the baseline, which casts doubt on the verdict.
    #[serde(skip)]
    pub served: Vec<String>,
}

impl Comparison {
    /// The names of the methods whose comparisons have this property.
    pub fn names_of(&self, has_property: impl Fn(&MethodComparison) -> bool) -> Vec<&str> {
        let methods = self.methods.iter();
        let with = methods.filter(|(_, compared)| has_property(compared));
        with.map(|(name, _)| name.as_str()).collect()
    }

    /// Whether both sides have grades; otherwise contexts are compared.
    pub fn has_grades(&self) -> bool {
        let mut methods = self.methods.values();
        methods.any(|compared| compared.fixtures.compared() > 0)
    }

    /// The scores with this verdict, and the dimensions of methods whose score does not have it, the largest difference
    /// first.
    pub fn changes_with_verdict(&self, verdict: Verdict) -> Vec<MethodChange<'_>> {
        let mut found: Vec<MethodChange<'_>> = Vec::new();
        for (method, compared) in &self.methods {
            let tests = compared.tests();
            let tests = tests.filter(|(_, test)| test.verdict == verdict);
            let mut changes: Vec<MethodChange<'_>> = tests
                .map(|(measure, test)| MethodChange {
                    method,
                    measure,
                    test,
                })
                .collect();
            if changes
                .first()
                .is_some_and(|first| first.measure == OVERALL)
            {
                changes.truncate(1);
            }
            found.extend(changes);
        }
        // stable: equals stay in the order of tables, scores before dimensions
        found.sort_by(|a, b| {
            let rank = |change: &MethodChange<'_>| change.measure != OVERALL;
            rank(a).cmp(&rank(b)).then_with(|| a.by_size(b))
        });
        found
    }

    /// The mean over the methods that changed, if it has this verdict and no method has.
    pub fn mean_with_verdict(&self, verdict: Verdict) -> Option<&DifferenceTest> {
        let mean = self.primary.as_ref();
        mean.filter(|mean| mean.verdict == verdict && self.changes_with_verdict(verdict).is_empty())
    }

    /// The mean change of the tokens of the methods with a verdict, or, where there is none, of those whose figures changed:
    /// 0.75 is 75% more; `None` where one is unknown.
    pub fn growth(&self) -> Option<f64> {
        let verdicts = [Verdict::Regressed, Verdict::Improved];
        let named: BTreeSet<&str> = verdicts
            .into_iter()
            .flat_map(|verdict| self.changes_with_verdict(verdict))
            .map(|change| change.method)
            .collect();
        let shown = self.methods.iter().filter(|(name, compared)| {
            named.contains(name.as_str()) || (named.is_empty() && compared.has_changed_figures())
        });
        let changes: Option<Vec<f64>> = shown
            .map(|(_, compared)| compared.costs.tokens.relative())
            .collect();
        stats::mean(&changes?)
    }

    /// The methods with a verdict, each with the smallest difference that has one; `None` stands for their mean.
    pub fn drift_subjects(&self) -> Vec<(Option<String>, f64)> {
        let mean = self
            .primary
            .filter(DifferenceTest::has_verdict)
            .map(|test| (None, test.difference));
        let methods = self.methods.iter().filter_map(|(name, method)| {
            let tests = method.tests().filter(|(_, test)| test.has_verdict());
            let differences = tests.map(|(_, test)| test.difference.abs());
            Some((Some(name.clone()), differences.reduce(f64::min)?))
        });
        mean.into_iter().chain(methods).collect()
    }

    /// Removes the verdicts that a changed judge explains, as far as answers were graded again.
    pub fn with_regradings(mut self, regradings: &Regradings) -> Comparison {
        if let Some(primary) = self
            .primary
            .as_mut()
            .filter(|primary| primary.has_verdict())
        {
            let regraded = regradings.primary.as_ref();
            self.drift = Some(DriftCheck::new(regraded));
            take_back(
                primary,
                regraded.and_then(|regraded| regraded.overall.as_ref()),
            );
        }
        self.methods
            .iter_mut()
            .for_each(|(name, method)| method.check_drift(regradings.methods.get(name)));
        self
    }
}

/// The change of one measure of a method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodChange<'c> {
    /// The method.
    pub method: &'c str,
    /// `overall`, or the id of a dimension.
    pub measure: &'c str,
    /// What it shows.
    pub test: &'c DifferenceTest,
}

impl MethodChange<'_> {
    /// The larger difference first.
    pub fn by_size(&self, other: &MethodChange<'_>) -> std::cmp::Ordering {
        let [a, b] = [self, other].map(|change| change.test.difference.abs());
        b.total_cmp(&a)
    }
}

/// One method against its baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MethodComparison {
    /// The baseline's method, which may have another name.
    pub against: String,
    /// The fixtures by how they changed; the tests include those that changed.
    pub fixtures: FixtureChanges,
    /// The difference of `overall`; null where nothing was measured on both sides.
    pub overall: Option<DifferenceTest>,
    /// The difference of each dimension that was measured on both sides.
    pub dimensions: Ordered<DifferenceTest>,
    /// Whether the judge was checked, if a changed judge would explain a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftCheck>,
    /// The method's own failures.
    pub reliability: Reliability,
    /// What was edited in the method, as in `target_tokens: 2000 → 150`.
    pub edits: Vec<String>,
    /// The edited prompts and inputs, with the lines that differ.
    pub edited_texts: Vec<TextEdit>,
    /// What it costs on both sides.
    pub costs: CostChanges,
    /// Facts with the tag `constraint` that most contexts of the baseline have and most of this side lost.
    pub constraints_lost: Vec<LostConstraint>,
    /// What became of planted items; absent where they are not tested or cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedComparison>,
    /// What became different in contexts, answers and scores.
    #[serde(flatten)]
    pub differences: Differences,
}

impl MethodComparison {
    /// Whether the baseline of the method `name` is another method and not an earlier state of it: no difference is an
    /// edit then.
    pub fn is_with_another_method(&self, name: &str) -> bool {
        // The name of a variant may end in its answerer.
        let [own, other] = [name, &self.against].map(|name| name.split('/').next());
        own != other
    }

    /// The tests of its scores, each with what it is of: `overall`, or the id of a dimension.
    pub fn tests(&self) -> impl Iterator<Item = (&str, &DifferenceTest)> {
        let overall = self.overall.iter().map(|test| (OVERALL, test));
        let dimensions = self.dimensions.iter();
        overall.chain(dimensions.map(|(name, test)| (name.as_str(), test)))
    }

    fn check_drift(&mut self, regraded: Option<&Regraded>) {
        if !self.tests().any(|(_, test)| test.has_verdict()) {
            return;
        }
        self.drift = Some(DriftCheck::new(regraded));
        let Some(regraded) = regraded else { return };
        self.overall
            .iter_mut()
            .for_each(|test| take_back(test, regraded.overall.as_ref()));
        self.dimensions
            .iter_mut()
            .for_each(|(name, test)| take_back(test, regraded.dimension(name)));
    }

    /// Whether anything of it differs from the baseline: a figure, what fails, or what is answered at all.
    pub fn is_changed(&self) -> bool {
        self.has_changed_figures() || self.reliability.is_worse() || self.fixtures.one_sided > 0
    }

    /// Whether its answers, grades or planted items differ from the baseline, or, where nothing is answered, its contexts.
    pub fn has_changed_figures(&self) -> bool {
        self.fixtures.tested() > 0
            || self.has_changed_contexts()
            || self
                .planted
                .as_ref()
                .is_some_and(PlantedComparison::is_changed)
    }

    /// Whether nothing was answered, and contexts differ.
    fn has_changed_contexts(&self) -> bool {
        self.fixtures.compared() == 0
            && self
                .differences
                .contexts
                .is_some_and(|found| found.same < found.compared)
    }

    /// Whether more planted items go wrong.
    pub fn is_planted_worse(&self) -> bool {
        let mut found = self.planted.iter();
        found.any(|planted| planted.regressed().next().is_some())
    }

    /// Whether it got worse in anything that the gate tests.
    pub fn is_worse(&self) -> bool {
        let mut tests = self.tests();
        self.reliability.test.regressed
            || self.is_planted_worse()
            || tests.any(|(_, test)| test.verdict == Verdict::Regressed)
            || self.constraints_lost.iter().any(|lost| lost.is_confirmed)
    }

    /// Whether only one side has the grades of some probes, and nothing else that is said of it shows that.
    pub fn is_one_sided(&self) -> bool {
        let is_notable = !self.has_changed_figures() || !self.fixtures.not_comparable.is_empty();
        self.fixtures.one_sided > 0 && is_notable && !self.reliability.is_worse()
    }

    /// Whether both sides have a cell or a planted item in common.
    pub fn has_common_part(&self) -> bool {
        self.fixtures.compared() > 0 || self.planted.is_some()
    }

    /// Whether both sides have something in common, and nothing of it differs.
    pub fn is_same(&self) -> bool {
        self.has_common_part() && !self.is_changed()
    }

    /// Whether it changed in too few fixtures for any test.
    pub fn is_untestable(&self) -> bool {
        (1..stats::thresholds::MIN_CLUSTERS).contains(&self.fixtures.tested())
    }
}

/// Whether answers of the baseline were graded again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum DriftCheck {
    /// They were not: a changed judge would explain the verdict.
    Unchecked,
    /// They were: verdicts that the shift of their grades explains are removed.
    Checked(Regraded),
}

impl DriftCheck {
    fn new(regraded: Option<&Regraded>) -> DriftCheck {
        regraded.map_or(DriftCheck::Unchecked, |regraded| {
            DriftCheck::Checked(regraded.clone())
        })
    }
}

/// Removes a verdict that the judge's shift explains.
fn take_back(test: &mut DifferenceTest, regrading: Option<&Regrading>) {
    if let Some(regrading) = regrading {
        *test = test.unless_drifted(regrading);
    }
}

/// A figure on both sides; null where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostChange {
    /// Of the baseline.
    pub before: Option<f64>,
    /// Of the judged side.
    pub after: Option<f64>,
}

impl CostChange {
    /// The change relative to the baseline: 0.75 is 75% more. `None` where a side is unknown or the baseline is 0.
    pub fn relative(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before > 0.0).then(|| after / before - 1.0)
    }
}

/// What a method costs on both sides, over what both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostChanges {
    /// Tokens of a context, the geometric mean over fixtures; where a fixture has none, the arithmetic mean on both sides.
    pub tokens: CostChange,
    /// Dollars of one compression.
    pub usd: CostChange,
    /// Seconds of one compression.
    pub seconds: CostChange,
}

impl CostChanges {
    pub(super) fn from_matched(matched: &ComparedVariants<'_>) -> CostChanges {
        let [own, other] = [matched.judged, matched.baseline].map(|side| answered(&side));
        let both = matched
            .probes
            .iter()
            .filter(|(a, b)| own.contains(a) && other.contains(b));
        let (judged, baseline): (Subset, Subset) = both.map(|(a, b)| (*a, *b)).unzip();
        let after = Answers::new(matched.judged.set, matched.judged.place, &judged);
        let before = Answers::new(matched.baseline.set, matched.baseline.place, &baseline);
        let [paid, paid_before] = paired_compression_costs(matched.methods());
        let [tokens, tokens_before] =
            stats::paired_sizes([&after.context_sizes(), &before.context_sizes()]);
        let change = |before, after| CostChange { before, after };
        CostChanges {
            tokens: change(tokens_before.or(paid_before.tokens), tokens.or(paid.tokens)),
            usd: change(paid_before.usd, paid.usd),
            seconds: change(paid_before.seconds, paid.seconds),
        }
    }
}

/// The probes of a variant that were answered.
fn answered(side: &VariantRef<'_>) -> Subset {
    let answers = side.set.answers(side.place).iter();
    answers.map(|measured| measured.at.probe).collect()
}
