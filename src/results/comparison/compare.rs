//! Comparison of two result sets: what changed, paired differences over it, three families of tests, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::changes::{ComparedVariants, Differences, FixtureChanges};
use super::comparable::{Incomparable, Incompatibility, VariantPair, incompatibilities, warnings};
use super::costs::CostChanges;
use super::drift::{DriftCheck, take_back};
use super::lost_constraints::{LostConstraint, lost_constraints};
use super::reliability::{ChainPairs, Reliability};
use crate::action::Digest;
use crate::judge::Dimension;
use crate::results::Ordered;
use crate::results::aggregates::excluded::{ExcludedDimension, excluded_of};
use crate::results::aggregates::needed::{compression_cost, have_same_contexts, paired_recall};
use crate::results::files::edits::{FindTextEdit, MethodEdits, TextEdit, method_edits, pipeline_edits};
use crate::results::files::manifest::ComparisonScope;
use crate::results::files::regradings::{Regraded, Regradings};
use crate::results::files::tried::Tried;
use crate::results::result_set::grade::place;
use crate::results::result_set::selection::{Selection, Subset};
use crate::results::result_set::set::{ProbeAt, ResultSet, VariantRef};
use base::locale::word;
use base::say;
use stats::{
    self, DifferenceTest, FamilyVerdicts, MethodDifferences, MethodVerdicts, NoEvidenceReason, NoRerun, Paired,
    RunValues,
};

/// One side of a comparison: a result set, or one of its methods.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s> {
    /// The set that has the method, or all of whose methods are compared.
    pub set: &'s ResultSet,
    /// One of its methods (or `METHOD/ANSWERER`), if it was named.
    pub method: Option<&'s str>,
}

/// `comparison` in `summary.json`. Differences are the side that is judged minus the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What the baseline is called.
    pub baseline: String,
    /// Whether a winner is tested on fixtures that no try used: nothing is corrected for tries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
    /// Whether fixtures were added until there was a verdict: p values count the looks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_decided: bool,
    /// Whether models were asked once only on either side: chance between repetitions cannot be seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub single_run: bool,
    /// K: how many methods were tested, those changed in three fixtures or more.
    pub tested: usize,
    /// The test of the mean over the methods tested; null where there are under two.
    pub primary: Option<DifferenceTest>,
    /// Whether the judge was checked where its change would explain the verdict on the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftCheck>,
    /// The methods compared, by name on the judged side.
    pub methods: Ordered<MethodComparison>,
    /// Methods that only one side has.
    pub unmatched: Vec<String>,
    /// Fixtures that both sides have alike.
    pub fixtures: Vec<String>,
    /// How many probes both sides asked alike.
    pub probes: usize,
    /// The same by fixture, point and id.
    #[serde(skip)]
    pub asked: BTreeSet<(String, u32, String)>,
    /// Probes of either side left out, for one side asked something else or not at all.
    pub left_out: usize,
    /// The built-in rules stood in for a model on either side: every table says so.
    pub lexical: bool,
    /// Dimensions that are left out on both sides, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedDimension>,
    /// What was edited of the whole pipeline.
    pub edits: Vec<String>,
    /// What differs and bars nothing, as sentences.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// The same with improvements that hold among all tries of their design.
    pub fn among(mut self, tried: &Tried) -> Comparison {
        self.confirms = tried.confirms;
        if tried.confirms {
            return self;
        }
        for (name, method) in &mut self.methods {
            let Some(number) = tried.methods.get(name) else { continue };
            method.tests_mut().for_each(|test| *test = test.among(*number));
        }
        self.primary = self.primary.map(|test| tried.mean.map_or(test, |number| test.among(number)));
        self
    }

    /// The same as one of several looks at a growing set of fixtures.
    pub fn at_look(self) -> Comparison {
        Comparison { until_decided: true, ..self.with_tests(DifferenceTest::at_look) }
    }

    /// What has a verdict that a judge that has changed would explain as well: methods, and `None` for their mean.
    pub fn drift_subjects(&self) -> Vec<Option<String>> {
        let mean = self.primary.filter(DifferenceTest::may_be_drift).map(|_| None);
        let methods = self.methods.iter().filter(|(_, method)| method.may_be_drift());
        mean.into_iter().chain(methods.map(|(name, _)| Some(name.clone()))).collect()
    }

    /// The same without the verdicts that the judges' change explains, as far as answers were graded again.
    pub fn with_regradings(mut self, found: &Regradings) -> Comparison {
        if let Some(primary) = self.primary.as_mut().filter(|primary| primary.may_be_drift()) {
            self.drift = Some(DriftCheck::new(found.primary.as_ref()));
            take_back(primary, found.primary.as_ref().and_then(|regraded| regraded.overall.as_ref()));
        }
        self.methods.iter_mut().for_each(|(name, method)| method.check_drift(found.methods.get(name)));
        self
    }

    fn with_tests(mut self, of: impl Fn(DifferenceTest) -> DifferenceTest) -> Comparison {
        let tests = self.methods.values_mut().flat_map(MethodComparison::tests_mut);
        tests.chain(self.primary.iter_mut()).for_each(|test| *test = of(*test));
        self
    }

    /// Whether a method, or the mean over methods, improved or regressed; of methods without scores, by what is needed
    /// later.
    pub fn has_verdict(&self) -> bool {
        let of_method = |method: &MethodComparison| method.overall.or(method.needed);
        let tests = self.methods.iter().filter_map(|(_, method)| of_method(method)).chain(self.primary);
        tests.into_iter().any(|test| test.verdict != stats::Verdict::NoEvidence)
    }
}

/// One method against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodComparison {
    /// The baseline's method, which may have another name.
    pub against: String,
    /// The fixtures by what became of them: the tests rest on those that changed.
    pub fixtures: FixtureChanges,
    /// The difference of `overall`; null where nothing was measured on both sides.
    pub overall: Option<DifferenceTest>,
    /// Of each dimension measured on both sides.
    pub dimensions: Ordered<DifferenceTest>,
    /// The difference of the needed-later recall; null where no point without a caveat has one on both sides.
    pub needed: Option<DifferenceTest>,
    /// Tokens of a context, of the judged side and of the baseline, where they differ so that recalls are not compared
    /// at equal size.
    pub unequal_tokens: Option<[f64; 2]>,
    /// Whether the judge was checked where its change would explain a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftCheck>,
    /// The method's own failures.
    pub reliability: Reliability,
    /// What was edited of the method, as in `target_tokens: 2000 → 150`.
    pub edits: Vec<String>,
    /// The prompts and inputs among them, with the lines that differ.
    pub edited_texts: Vec<TextEdit>,
    /// What it takes on both sides.
    pub costs: CostChanges,
    /// Facts with the tag `constraint` that most contexts of the baseline have and most of this side lost.
    pub constraints_lost: Vec<LostConstraint>,
    /// What became different in contexts, answers and scores.
    #[serde(flatten)]
    pub differences: Differences,
}

impl MethodComparison {
    /// Whether no score of any fixture differs.
    pub fn is_identical(&self) -> bool {
        let mut all = self.overall.iter().chain(self.dimensions.iter().map(|(_, judged)| judged));
        self.overall.is_some()
            && all.all(|judged| judged.difference == 0.0 && (judged.degenerate || judged.clusters == 1))
    }

    fn tests_mut(&mut self) -> impl Iterator<Item = &mut DifferenceTest> {
        self.overall.iter_mut().chain(self.dimensions.values_mut()).chain(self.needed.iter_mut())
    }

    /// Whether it was answered, or compressed where nothing is, and is another one than the baseline.
    pub(super) fn is_try(&self) -> bool {
        match (&self.overall, &self.needed) {
            (Some(_), _) => self.fixtures.tested() > 0,
            (None, Some(needed)) => needed.reason != Some(NoEvidenceReason::Unchanged),
            (None, None) => false,
        }
    }

    /// Whether it has a verdict on a score that a judge that has changed would explain.
    fn may_be_drift(&self) -> bool {
        self.overall.iter().chain(self.dimensions.values()).any(DifferenceTest::may_be_drift)
    }

    fn check_drift(&mut self, regraded: Option<&Regraded>) {
        if !self.may_be_drift() {
            return;
        }
        self.drift = Some(DriftCheck::new(regraded));
        let Some(regraded) = regraded else { return };
        self.overall.iter_mut().for_each(|test| take_back(test, regraded.overall.as_ref()));
        self.dimensions.iter_mut().for_each(|(name, test)| take_back(test, regraded.dimension(name)));
    }

    /// Whether both sides have a cell, a recall or a constraint in common.
    pub fn has_common_part(&self) -> bool {
        self.fixtures.compared() > 0 || self.needed.is_some() || self.differences.constraints.has_both_denominators()
    }

    /// Whether it changed in too few fixtures for any test.
    pub fn is_untestable(&self) -> bool {
        (1..stats::thresholds::MIN_CLUSTERS).contains(&self.fixtures.tested())
    }
}

/// Compares two sides: the first against the second, the baseline.
///
/// # Errors
/// What makes them incomparable.
pub fn compare(
    judged: Side<'_>,
    baseline: Side<'_>,
    scope: ComparisonScope,
    find: FindTextEdit<'_>,
) -> Result<Comparison, Incomparable> {
    let (pairs, unmatched) = pair_variants(&judged, &baseline)?;
    let found = incompatibilities(judged.set, baseline.set, &pairs);
    if found.iter().any(|barrier| !barrier.is_allowed_by(scope)) {
        return Err(Incomparable { differences: found, scope });
    }
    let probes = matched_probes(judged.set, baseline.set, &found);
    let excluded = excluded_of(&[judged.set, baseline.set], baseline.set);
    let left_out: BTreeSet<Dimension> = excluded.iter().map(|excluded| excluded.dimension).collect();
    let rows = pair_rows((judged.set, baseline.set), (&probes, &left_out), &pairs, find);
    if !rows.iter().any(PairRow::has_common_part) {
        let nothing = Incompatibility::new(word("no cell was judged on both sides", "没有两侧都已评分的单元"));
        return Err(Incomparable { differences: vec![nothing], scope });
    }
    let whole = verdicts(&rows);
    let tested = whole.tested;
    let families = match (judged.set.without_truncated(), baseline.set.without_truncated()) {
        (None, None) => whole,
        (own, other) => {
            let sides = (own.as_ref().unwrap_or(judged.set), other.as_ref().unwrap_or(baseline.set));
            let mut rest = pair_rows(sides, (&probes, &left_out), &pairs, find);
            rest.iter_mut().zip(&rows).for_each(|(rest, whole)| rest.take_missing_shares(whole));
            unless_truncated(whole, &rows, verdicts(&rest), &rest)
        }
    };
    let primary = families.primary;
    let methods = judge(rows, families);
    Ok(Comparison {
        baseline: name(&baseline),
        confirms: false,
        until_decided: false,
        single_run: judged.set.design().has_one_sample() || baseline.set.design().has_one_sample(),
        tested,
        primary,
        drift: None,
        methods,
        unmatched,
        fixtures: fixtures(judged.set, &probes),
        probes: probes.len(),
        asked: asked(judged.set, &probes),
        left_out: judged.set.probes.len() + baseline.set.probes.len() - 2 * probes.len(),
        lexical: judged.set.design().is_lexical() || baseline.set.design().is_lexical(),
        excluded,
        edits: pipeline_edits(baseline.set.design(), judged.set.design()),
        warnings: warnings(judged.set, baseline.set, &pairs),
    })
}

fn name(side: &Side<'_>) -> String {
    let label = &side.set.manifest.label;
    side.method.map_or_else(|| label.clone(), |method| format!("{label}:{method}"))
}

fn pair_variants<'s>(
    judged: &Side<'s>,
    baseline: &Side<'s>,
) -> Result<(Vec<VariantPair<'s>>, Vec<String>), Incomparable> {
    let (left, right) = (chosen(judged)?, chosen(baseline)?);
    let explicit = judged.method.is_some() && baseline.method.is_some();
    let mut pairs = Vec::new();
    let mut taken = BTreeSet::new();
    let mut unmatched = Vec::new();
    for a in &left {
        let lone = explicit && left.len() == 1 && right.len() == 1;
        match right.iter().find(|b| lone || is_pair(judged, baseline, explicit, a, b)) {
            Some(b) => {
                pairs.push(VariantPair { a: *a, b: *b, explicit });
                taken.insert(b.place);
            }
            None => unmatched.push(a.variant.key.clone()),
        }
    }
    unmatched.extend(right.iter().filter(|b| !taken.contains(&b.place)).map(|b| b.variant.key.clone()));
    if pairs.is_empty() {
        let what = say!("the methods: none has the same name ({})", "方法：没有同名的（{}）", unmatched.join(", "));
        return Err(Incomparable { differences: vec![Incompatibility::new(what)], scope: ComparisonScope::All });
    }
    // naming a method asks for that one alone: the others are no loss
    let named = judged.method.is_some() || baseline.method.is_some();
    Ok((pairs, if named { Vec::new() } else { unmatched }))
}

/// The variants of a side that were asked for.
fn chosen<'s>(side: &Side<'s>) -> Result<Vec<VariantRef<'s>>, Incomparable> {
    let wanted =
        |of: &VariantRef<'_>| side.method.is_none_or(|wanted| of.variant.key == wanted || of.method.name == wanted);
    let variants: Vec<VariantRef<'_>> = side.set.variant_refs().filter(wanted).collect();
    match side.method.filter(|_| variants.is_empty()) {
        Some(method) => Err(Incomparable::no_such_method(&side.set.manifest.label, method, &side.set.variants)),
        None => Ok(variants),
    }
}

/// Whether two variants are a pair: of one name unless both were named, and read by one answerer where there are several.
fn is_pair(judged: &Side<'_>, baseline: &Side<'_>, explicit: bool, a: &VariantRef<'_>, b: &VariantRef<'_>) -> bool {
    let lone = |side: &Side<'_>, of: &VariantRef<'_>| {
        side.set.variants.iter().filter(|other| other.method == of.variant.method).count() == 1
    };
    let same_answerer = a.variant.answerer == b.variant.answerer || (lone(judged, a) && lone(baseline, b));
    same_answerer && (explicit || a.method.name == b.method.name)
}

/// The probes that both sides asked alike, by their places on either side.
fn matched_probes(a: &ResultSet, b: &ResultSet, found: &[Incompatibility]) -> BTreeMap<usize, usize> {
    let barred: BTreeSet<&str> = found.iter().filter_map(|barrier| barrier.excluded_fixture.as_deref()).collect();
    let there: BTreeMap<_, usize> =
        b.probes.iter().enumerate().filter_map(|(ix, probe)| Some((identity(b, probe)?, ix))).collect();
    let alike = |(ix, probe): (usize, &ProbeAt)| {
        let key = identity(a, probe).filter(|(fixture, ..)| !barred.contains(fixture))?;
        Some((ix, *there.get(&key)?))
    };
    a.probes.iter().enumerate().filter_map(alike).collect()
}

/// What makes probes of two sets the same one.
fn identity<'s>(set: &'s ResultSet, probe: &'s ProbeAt) -> Option<(&'s str, u32, &'s str, Digest)> {
    Some((set.fixture_name(probe.fixture)?, probe.point, &probe.id, probe.digest))
}

/// The fixtures of the probes that are compared.
fn fixtures(set: &ResultSet, probes: &BTreeMap<usize, usize>) -> Vec<String> {
    let places: BTreeSet<usize> = probes.keys().filter_map(|probe| set.scores.fixture_of(*probe)).collect();
    places.iter().filter_map(|place| set.fixture_name(*place).map(str::to_owned)).collect()
}

fn asked(set: &ResultSet, probes: &BTreeMap<usize, usize>) -> BTreeSet<(String, u32, String)> {
    let name = |probe: &usize| {
        let at = set.probes.get(*probe)?;
        Some((set.fixture_name(at.fixture)?.to_owned(), at.point, at.id.clone()))
    };
    probes.keys().filter_map(name).collect()
}

/// The part by which contexts of equal size may differ in tokens.
const SIZE_TOLERANCE: f64 = 0.1;

/// One pair before its differences are judged among all others.
struct PairRow<'s> {
    key: String,
    against: String,
    fixtures: FixtureChanges,
    overall: Option<Paired>,
    dimensions: Vec<(Dimension, Paired)>,
    needed: Option<Paired>,
    unequal_tokens: Option<[f64; 2]>,
    has_same_contexts: bool,
    chains: ChainPairs<'s>,
    edits: MethodEdits,
    costs: CostChanges,
    constraints_lost: Vec<LostConstraint>,
    differences: Differences,
}

impl<'s> PairRow<'s> {
    fn new(matched: ComparedVariants<'s>, find: FindTextEdit<'_>) -> PairRow<'s> {
        let fixtures = matched.fixture_changes();
        let (overall, dimensions) = paired_differences(&matched, &fixtures);
        let (after, before) = (matched.pair.a, matched.pair.b);
        let sides = matched.methods();
        let needed = paired_recall(sides);
        let tokens = sides.map(|(set, method)| compression_cost(set, method).tokens);
        let unequal_tokens = match tokens {
            [Some(own), Some(other)] => {
                (needed.is_some() && (own - other).abs() > SIZE_TOLERANCE * own.min(other)).then_some([own, other])
            }
            _ => None,
        };
        PairRow {
            unequal_tokens,
            has_same_contexts: have_same_contexts(sides),
            key: after.variant.key.clone(),
            against: before.variant.key.clone(),
            overall,
            dimensions,
            needed,
            chains: ChainPairs::from_matched(&matched),
            edits: method_edits(before.method, after.method, find),
            costs: CostChanges::from_matched(&matched),
            constraints_lost: lost_constraints(&matched),
            differences: matched.differences(),
            fixtures,
        }
    }

    /// Whether there is anything to compare: a cell, a recall or a rule on both sides, or a failure on one.
    fn has_common_part(&self) -> bool {
        let contexts = self.needed.is_some() || self.differences.constraints.has_both_denominators();
        contexts || self.fixtures.compared() > 0 || self.chains.counts().iter().any(|counts| counts.failed > 0)
    }

    /// Whether both sides have the same answers with the same grades in all fixtures.
    fn is_unchanged(&self) -> bool {
        self.fixtures.tested() == 0 && self.fixtures.compared() > 0
    }
}

/// The differences of `overall` and of each dimension over the fixtures that changed; where none did, over all of them.
fn paired_differences(
    matched: &ComparedVariants<'_>,
    fixtures: &FixtureChanges,
) -> (Option<Paired>, Vec<(Dimension, Paired)>) {
    let ComparedVariants { judged, baseline, pair, excluded, .. } = matched;
    let (scores_a, scores_b) = (&judged.scores, &baseline.scores);
    let (judged_a, judged_b) = (scores_a.judged(pair.a.place), scores_b.judged(pair.b.place));
    let both = matched.probes.iter().filter(|(a, b)| judged_a.contains(a) && judged_b.contains(b));
    let (kept_a, kept_b): (Subset, Subset) = both.map(|(a, b)| (*a, *b)).unzip();
    // Where a side compressed nothing, there is nothing to compare, and nothing is missing.
    let (apart_a, apart_b) = (judged.probes_apart(pair.a.place), baseline.probes_apart(pair.b.place));
    let due = matched.probes.iter().filter(|(a, b)| !apart_a.contains(a) && !apart_b.contains(b));
    let (due_a, due_b): (Subset, Subset) = due.map(|(a, b)| (*a, *b)).unzip();
    let selected = Selection::new(scores_a, kept_a, due_a, excluded);
    let b = Selection::new(scores_b, kept_b, due_b, excluded).with_overall_of(&selected);
    let (a, b) = (selected.runs(pair.a.place), b.runs(pair.b.place));
    let is_deterministic = a.are_deterministic() || b.are_deterministic();
    let paired = |all: Vec<(usize, &str, RunValues, RunValues)>, measured: Option<Dimension>| {
        let tested = all.iter().filter(|(_, name, ..)| fixtures.has_part_in_tests(name));
        let clusters: Vec<_> = tested.map(|(at, _, a, b)| (*at, a.clone(), b.clone())).collect();
        let items = graded_items(matched.judged, fixtures, &selected.kept, measured);
        let paired = Paired::by_cluster(&clusters)?.with_unchanged(all.len() - clusters.len());
        let paired = paired.with_graded_items(items);
        let paired = if is_deterministic { paired.without_rerun(NoRerun::Deterministic) } else { paired };
        Some(if pair.has_same_answerer() { paired } else { paired.confounded() })
    };
    let overall = paired(by_fixture(matched, fixtures, a.overall(), b.overall()), None);
    let dimension = |dimension: Dimension| {
        let both = by_fixture(matched, fixtures, a.dimension(dimension), b.dimension(dimension));
        Some((dimension, paired(both, Some(dimension))?))
    };
    let is_compared = |dimension: &Dimension| !excluded.contains(dimension);
    (overall, Dimension::ALL.into_iter().filter(is_compared).filter_map(dimension).collect())
}

/// The probes of the tested fixtures that were graded, or graded on one dimension.
fn graded_items(set: &ResultSet, fixtures: &FixtureChanges, kept: &Subset, measured: Option<Dimension>) -> usize {
    let is_graded = |probe: &&usize| measured.is_none_or(|dimension| set.scores.measures(**probe, dimension));
    let name = |probe: &usize| set.fixture_name(set.scores.fixture_of(*probe)?);
    let names = kept.iter().filter(is_graded).filter_map(name);
    names.filter(|name| fixtures.has_part_in_tests(name)).count()
}

/// The runs of both sides, fixture by fixture, where they have a cell in common. Fixtures are known by their names.
fn by_fixture<'m>(
    matched: &ComparedVariants<'m>,
    fixtures: &FixtureChanges,
    a: impl Iterator<Item = (usize, &'m RunValues)>,
    b: impl Iterator<Item = (usize, &'m RunValues)>,
) -> Vec<(usize, &'m str, RunValues, RunValues)> {
    let there: BTreeMap<&str, &RunValues> =
        b.filter_map(|(place, runs)| Some((matched.baseline.fixture_name(place)?, runs))).collect();
    let both = |(place, runs): (usize, &RunValues)| {
        let name = matched.judged.fixture_name(place)?;
        let is_comparable = !fixtures.not_comparable.iter().any(|lone| lone == name);
        is_comparable.then_some((place, name, runs.clone(), (*there.get(name)?).clone()))
    };
    a.filter_map(both).collect()
}

/// One row for each pair of methods.
fn pair_rows<'s>(
    (judged, baseline): (&'s ResultSet, &'s ResultSet),
    (probes, excluded): (&'s BTreeMap<usize, usize>, &'s BTreeSet<Dimension>),
    pairs: &[VariantPair<'s>],
    find: FindTextEdit<'_>,
) -> Vec<PairRow<'s>> {
    let of = |pair: &VariantPair<'s>| ComparedVariants { judged, baseline, probes, excluded, pair: *pair };
    pairs.iter().map(|pair| PairRow::new(of(pair), find)).collect()
}

/// The verdicts of all pairs: the changed ones in families.
fn verdicts(rows: &[PairRow<'_>]) -> FamilyVerdicts {
    let changed: Vec<MethodDifferences> = rows.iter().filter(|row| !row.is_unchanged()).map(PairRow::tests).collect();
    let families = stats::family_verdicts(&changed);
    let mut judged = families.methods.into_iter();
    let mut of = |row: &PairRow<'_>| if row.is_unchanged() { Some(row.unchanged()) } else { judged.next() };
    let methods = rows.iter().map(|row| of(row).unwrap_or_default()).collect();
    FamilyVerdicts { methods, ..families }
}

/// The verdicts that are the same without the answers that the token limit cut off; the others become no evidence.
fn unless_truncated(
    whole: FamilyVerdicts,
    rows: &[PairRow<'_>],
    rest: FamilyVerdicts,
    rest_rows: &[PairRow<'_>],
) -> FamilyVerdicts {
    let primary = whole.primary.map(|judged| judged.unless_truncated(rest.primary.as_ref()));
    let both = rows.iter().zip(whole.methods).zip(rest_rows.iter().zip(&rest.methods));
    let method =
        |((row, whole), (rest_row, rest)): ((&PairRow<'_>, MethodVerdicts), (&PairRow<'_>, &MethodVerdicts))| {
            let place = |dimension: &Dimension| rest_row.dimensions.iter().position(|(known, _)| known == dimension);
            let dimensions = row.dimensions.iter().zip(whole.dimensions).map(|((dimension, _), judged)| {
                judged.unless_truncated(place(dimension).and_then(|place| rest.dimensions.get(place)))
            });
            MethodVerdicts {
                overall: whole.overall.map(|judged| judged.unless_truncated(rest.overall.as_ref())),
                dimensions: dimensions.collect(),
            }
        };
    FamilyVerdicts { primary, methods: both.map(method).collect(), ..whole }
}

/// Joins rows with their verdicts, and judges the failures of all of them together.
fn judge(rows: Vec<PairRow<'_>>, families: FamilyVerdicts) -> Ordered<MethodComparison> {
    let counts: Vec<_> = rows.iter().map(|row| row.chains.counts()).collect();
    let failures = stats::failure_tests(&counts);
    let changed = rows.iter().filter(|row| !row.has_same_contexts);
    let recalls: Vec<Paired> = changed.filter_map(|row| row.needed.clone()).collect();
    let mut recalls = stats::share_verdicts(&recalls).into_iter();
    let judge = |((row, verdicts), failures): ((PairRow<'_>, MethodVerdicts), &stats::FailureTest)| {
        let MethodVerdicts { overall, dimensions } = verdicts;
        let reliability = row.chains.judged(failures);
        let names = row.dimensions.iter().map(|(dimension, _)| dimension.name().to_owned());
        let compared = MethodComparison {
            against: row.against,
            fixtures: row.fixtures,
            overall,
            dimensions: names.zip(dimensions).collect(),
            needed: row.needed.as_ref().and_then(|paired| match row.has_same_contexts {
                true => Some(DifferenceTest::unchanged(paired.estimate().clusters)),
                false => recalls.next().map(|found| match row.unequal_tokens {
                    Some([own, other]) if own > other => found.unless_improved_by_size(),
                    _ => found,
                }),
            }),
            unequal_tokens: row.unequal_tokens,
            drift: None,
            reliability,
            edits: row.edits.lines,
            edited_texts: row.edits.texts,
            costs: row.costs,
            constraints_lost: row.constraints_lost,
            differences: row.differences,
        };
        (row.key, compared)
    };
    rows.into_iter().zip(families.methods).zip(&failures).map(judge).collect()
}

impl PairRow<'_> {
    /// Takes the missing shares of a row over the same sides that has all their cells: what was left out on purpose is
    /// not missing.
    fn take_missing_shares(&mut self, whole: &PairRow<'_>) {
        if let Some((own, whole)) = self.overall.as_mut().zip(whole.overall.as_ref()) {
            *own = own.clone().with_missing_share_of(whole);
        }
        for (dimension, own) in &mut self.dimensions {
            if let Some((_, whole)) = whole.dimensions.iter().find(|(known, _)| known == dimension) {
                *own = own.clone().with_missing_share_of(whole);
            }
        }
    }

    fn tests(&self) -> MethodDifferences {
        let dimensions =
            self.dimensions.iter().map(|(dimension, paired)| (place(*dimension), paired.clone())).collect();
        MethodDifferences { overall: self.overall.clone(), dimensions }
    }

    /// The verdicts where nothing changed.
    fn unchanged(&self) -> MethodVerdicts {
        let of = |paired: &Paired| DifferenceTest::unchanged(paired.estimate().clusters);
        MethodVerdicts {
            overall: self.overall.as_ref().map(of),
            dimensions: self.dimensions.iter().map(|(_, paired)| of(paired)).collect(),
        }
    }
}
