//! Two result sets compared: what is comparable, what changed, paired differences over it, three families of tests, the
//! verdicts and the gate.

pub(super) mod changes;
pub(super) mod comparable;
pub(super) mod gate;
pub(super) mod reliability;
pub(super) mod values;

#[cfg(test)]
mod compare_tests;
#[cfg(test)]
mod evidence_tests;
#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod planted_tests;

use std::collections::{BTreeMap, BTreeSet};

use self::changes::lost_constraints;
use self::changes::{Collapse, ComparedVariants, FixtureChanges, collapses};
use self::comparable::{Incomparable, Incompatibility, incompatibilities, served_models, warnings};
use self::reliability::{ChainPairs, Reliability};
use self::values::{Comparison, CostChanges, MethodComparison};
use super::Ordered;
use super::aggregates::planted::{PlantedControl, planted_comparison, test_family};
use super::aggregates::scale::excluded_of;
use super::files::design::Design;
use super::files::edits::{FindTextEdit, method_edits, pipeline_edits};
use super::files::manifest::{ComparisonScope, Manifest};
use super::result_set::scores::place;
use super::result_set::selection::{Selection, Subset, VariantRuns};
use super::result_set::{ProbeAt, ResultSet, VariantRef};
use crate::action::Digest;
use crate::judge::Dimension;
use base::fault::suggestion;
use stats::{
    self, FamilyVerdicts, MethodDifferences, MethodVerdicts, MissingCounts, NoRerun, Paired,
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
    let MatchedSides {
        pairs,
        unmatched,
        differences,
    } = match_sides(&judged, &baseline, scope)?;
    let sides = [judged.set.design(), baseline.set.design()];
    let absent = absent_methods(&unmatched, judged.set, scope);
    let probes = matched_probes(judged.set, baseline.set, &differences);
    let excluded = excluded_of(&[judged.set, baseline.set], baseline.set);
    let dimensions: BTreeSet<Dimension> =
        excluded.iter().map(|excluded| excluded.dimension).collect();
    let rows = pairs.iter().map(|[own, other]| {
        let matched = ComparedVariants {
            judged: *own,
            baseline: *other,
            probes: &probes,
            excluded: &dimensions,
        };
        PairRow::new(&matched, find)
    });
    let rows: Vec<PairRow<'_>> = rows.collect();
    if !rows.iter().any(PairRow::has_common_part) {
        let voids = [&judged, &baseline].into_iter().filter_map(|side| {
            let why = PlantedControl::new(side.set).void?;
            Some(format!(
                "the planted items of {} are void: {why}",
                name(side)
            ))
        });
        let mut why: Vec<String> = voids.collect();
        why.push("no cell was judged on both sides".to_owned());
        return Err(Incomparable::by(why.join("; ")));
    }
    let of_rows: Vec<MethodDifferences> = rows.iter().map(|row| row.differences.clone()).collect();
    let served: Vec<String> = served_models(judged.set, baseline.set).collect();
    let families = stats::family_verdicts(&of_rows);
    let (primary, tested) = (families.primary, families.tested);
    let collapsed = rows.iter().flat_map(|row| row.collapsed.clone()).collect();
    let methods = judge(rows, families);
    Ok(Comparison {
        baseline: name(&baseline),
        locale: judged.set.manifest.locale(),
        labels: 0,
        single_run: judged.set.design().has_one_sample() || baseline.set.design().has_one_sample(),
        tested,
        primary,
        drift: None,
        methods,
        collapsed,
        absent,
        unmatched,
        fixtures: fixtures(judged.set, &probes),
        probes: probes.len(),
        asked: (probes.keys())
            .filter_map(|probe| judged.set.probe_place(*probe))
            .collect(),
        left_out: judged.set.probes.len() + baseline.set.probes.len() - 2 * probes.len(),
        lexical: sides.iter().any(|design| design.is_lexical()),
        answered_by_models: sides.iter().all(|design| design.is_answered_by_models()),
        excluded,
        edits: pipeline_edits(baseline.set.design(), judged.set.design()),
        warnings: warnings(judged.set, baseline.set, &pairs, &served),
        served,
    })
}

/// The methods of the baseline that the judged side lacks, unless it did not select them.
fn absent_methods(unmatched: &[String], judged: &ResultSet, scope: ComparisonScope) -> Vec<String> {
    let is_known = |name: &&String| judged.variants.iter().any(|own| own.key == **name);
    let lacking = unmatched.iter().filter(|name| !is_known(name));
    match scope {
        ComparisonScope::All => lacking.cloned().collect(),
        ComparisonScope::Selected | ComparisonScope::Common => Vec::new(),
    }
}

/// Refuses a run of this design whose comparison [`compare`] would refuse, before anything is measured. `method` is the
/// one that was named of the baseline. What only grades show, such as a judge that gave none, is not known yet.
///
/// # Errors
/// What makes them incomparable.
pub fn require_comparable(
    design: Design,
    baseline: Manifest,
    method: Option<&str>,
    scope: ComparisonScope,
) -> Result<(), Incomparable> {
    let planned = ResultSet::from_manifest(Manifest::begin("", "", design));
    let baseline = ResultSet::from_manifest(baseline);
    let judged = Side {
        set: &planned,
        method: None,
    };
    let baseline = Side {
        set: &baseline,
        method,
    };
    match_sides(&judged, &baseline, scope).map(drop)
}

/// What a comparison can use of two sides.
struct MatchedSides<'s> {
    pairs: Vec<[VariantRef<'s>; 2]>,
    /// Methods that only one side has.
    unmatched: Vec<String>,
    /// What the comparison leaves out.
    differences: Vec<Incompatibility>,
}

/// What a comparison can use of two sides, unless it may not leave out what differs.
fn match_sides<'s>(
    judged: &Side<'s>,
    baseline: &Side<'s>,
    scope: ComparisonScope,
) -> Result<MatchedSides<'s>, Incomparable> {
    let (pairs, unmatched) = pair_variants(judged, baseline)?;
    // Methods that the user named may have other answerers.
    let asked = match are_named(judged, baseline) {
        true => &[],
        false => pairs.as_slice(),
    };
    let differences = incompatibilities(judged.set, baseline.set, asked);
    match differences
        .iter()
        .all(|difference| difference.is_allowed_by(scope))
    {
        true => Ok(MatchedSides {
            pairs,
            unmatched,
            differences,
        }),
        false => Err(Incomparable { differences, scope }),
    }
}

fn name(side: &Side<'_>) -> String {
    let label = &side.set.manifest.label;
    side.method
        .map_or_else(|| label.clone(), |method| format!("{label}:{method}"))
}

/// Whether the user named both methods.
fn are_named(judged: &Side<'_>, baseline: &Side<'_>) -> bool {
    judged.method.is_some() && baseline.method.is_some()
}

/// The pairs of methods, the judged one first, and the names of those that only one side has.
type PairedVariants<'s> = (Vec<[VariantRef<'s>; 2]>, Vec<String>);

fn pair_variants<'s>(
    judged: &Side<'s>,
    baseline: &Side<'s>,
) -> Result<PairedVariants<'s>, Incomparable> {
    let (left, right) = (chosen(judged)?, chosen(baseline)?);
    let explicit = are_named(judged, baseline);
    let mut pairs = Vec::new();
    let mut taken = BTreeSet::new();
    let mut unmatched = Vec::new();
    for a in &left {
        let lone = explicit && left.len() == 1 && right.len() == 1;
        match right.iter().find(|b| lone || is_pair(explicit, a, b)) {
            Some(b) => {
                pairs.push([*a, *b]);
                taken.insert(b.place);
            }
            None => unmatched.push(a.variant.key.clone()),
        }
    }
    unmatched.extend(
        right
            .iter()
            .filter(|b| !taken.contains(&b.place))
            .map(|b| b.variant.key.clone()),
    );
    if pairs.is_empty() {
        let unmatched = unmatched.join(", ");
        return Err(Incomparable::by(format!(
            "the methods: none has the same name ({unmatched})"
        )));
    }
    // If a side names a method, only this method is wanted, so the others are not missing.
    let named = judged.method.is_some() || baseline.method.is_some();
    Ok((pairs, if named { Vec::new() } else { unmatched }))
}

/// The variants of a side that were asked for.
fn chosen<'s>(side: &Side<'s>) -> Result<Vec<VariantRef<'s>>, Incomparable> {
    let variants: Vec<VariantRef<'_>> = (side.set.variant_refs())
        .filter(|own| {
            side.method
                .is_none_or(|wanted| own.variant.key == wanted || own.method.name == wanted)
        })
        .collect();
    let Some(method) = side.method.filter(|_| variants.is_empty()) else {
        return Ok(variants);
    };
    let (label, known) = (&side.set.manifest.label, side.set.variants.iter());
    let known: Vec<&str> = known.map(|variant| variant.key.as_str()).collect();
    let suggestion = suggestion(method, &known);
    Err(Incomparable::by(format!(
        "`{label}` has no method `{method}`; {suggestion}"
    )))
}

/// Whether two variants are a pair: they have the same name, unless the user named both, and the same answerer, unless
/// each method has only one.
fn is_pair(explicit: bool, a: &VariantRef<'_>, b: &VariantRef<'_>) -> bool {
    let same_answerer =
        a.variant.answerer == b.variant.answerer || (has_one_answerer(a) && has_one_answerer(b));
    same_answerer && (explicit || a.method.name == b.method.name)
}

/// Whether the method of a variant has only this answerer.
fn has_one_answerer(own: &VariantRef<'_>) -> bool {
    let others = own.set.variants.iter();
    let readers = others.filter(|other| other.method == own.variant.method);
    readers.count() == 1
}

/// The probes that are the same on both sides, by their places on either side.
fn matched_probes(
    a: &ResultSet,
    b: &ResultSet,
    differences: &[Incompatibility],
) -> BTreeMap<usize, usize> {
    let excluded: BTreeSet<&str> = differences
        .iter()
        .filter_map(|difference| difference.excluded_fixture.as_deref())
        .collect();
    let there: BTreeMap<_, usize> = b
        .probes
        .iter()
        .enumerate()
        .filter_map(|(ix, probe)| Some((identity(b, probe)?, ix)))
        .collect();
    let matched = a.probes.iter().enumerate().filter_map(|(ix, probe)| {
        let key = identity(a, probe).filter(|(fixture, ..)| !excluded.contains(fixture))?;
        Some((ix, *there.get(&key)?))
    });
    matched.collect()
}

/// Identifies a probe across sets.
fn identity<'s>(set: &'s ResultSet, probe: &'s ProbeAt) -> Option<(&'s str, u32, &'s str, Digest)> {
    Some((
        set.fixture_name(probe.fixture)?,
        probe.point,
        &probe.id,
        probe.digest,
    ))
}

/// The fixtures of the probes that are compared.
fn fixtures(set: &ResultSet, probes: &BTreeMap<usize, usize>) -> Vec<String> {
    let places: BTreeSet<usize> = probes
        .keys()
        .filter_map(|probe| set.scores.fixture_of(*probe))
        .collect();
    places
        .iter()
        .filter_map(|place| set.fixture_name(*place).map(str::to_owned))
        .collect()
}

/// One pair of methods before its differences are tested together with all others.
struct PairRow<'s> {
    key: String,
    /// What is known without tests.
    compared: MethodComparison,
    differences: MethodDifferences,
    collapsed: Vec<Collapse>,
    chains: ChainPairs<'s>,
}

impl<'s> PairRow<'s> {
    fn new(matched: &ComparedVariants<'s>, find: FindTextEdit<'_>) -> PairRow<'s> {
        let fixtures = matched.fixture_changes();
        let (after, before) = (matched.judged, matched.baseline);
        let [a, b] = common_selections(matched);
        let runs = [a.runs(after.place), b.runs(before.place)];
        let (edits, edited_texts) = method_edits(before.method, after.method, find);
        PairRow {
            key: after.variant.key.clone(),
            differences: paired_differences(matched, &fixtures, &a, &runs),
            chains: ChainPairs::from_matched(matched),
            collapsed: collapsed(matched, &fixtures, &runs),
            compared: MethodComparison {
                against: before.variant.key.clone(),
                edits,
                edited_texts,
                costs: CostChanges::from_matched(matched),
                constraints_lost: lost_constraints(matched),
                planted: planted_comparison(matched.methods()),
                differences: matched.differences(),
                fixtures,
                ..MethodComparison::default()
            },
        }
    }

    /// Whether there is anything to compare: a cell or a planted item on both sides, or a failure on one.
    fn has_common_part(&self) -> bool {
        self.compared.has_common_part()
            || self.chains.counts().iter().any(|counts| counts.failed > 0)
    }
}

/// The fixtures in which the method broke down.
fn collapsed(
    matched: &ComparedVariants<'_>,
    fixtures: &FixtureChanges,
    [a, b]: &[VariantRuns; 2],
) -> Vec<Collapse> {
    let both = by_fixture(matched, fixtures, a.overall(), b.overall());
    let changes = both
        .iter()
        .filter_map(|(_, fixture, a, b)| Some((*fixture, a.cluster_value()? - b.cluster_value()?)));
    collapses(matched, &changes.collect::<Vec<_>>())
}

/// The differences of `overall` and of each dimension over the fixtures that changed, or over all if none did. `selected`
/// are the probes of the judged side.
fn paired_differences(
    matched: &ComparedVariants<'_>,
    fixtures: &FixtureChanges,
    selected: &Selection<'_>,
    [a, b]: &[VariantRuns; 2],
) -> MethodDifferences {
    let is_deterministic = a.are_deterministic() || b.are_deterministic();
    let probes = tested_or_lost_probes(matched, fixtures);
    let paired = |all: Vec<(usize, &str, RunValues, RunValues)>, measured: Option<Dimension>| {
        let tested = all
            .iter()
            .filter(|(_, name, ..)| fixtures.has_part_in_tests(name));
        let clusters: Vec<_> = tested
            .map(|(at, _, a, b)| (*at, a.clone(), b.clone()))
            .collect();
        let items = graded_items(&matched.judged, fixtures, &selected.kept, measured);
        let dimensions = measured.map_or_else(
            || selected.overall.clone(),
            |dimension| BTreeSet::from([dimension]),
        );
        let mut paired = Paired::by_cluster(&clusters)?.with_graded_items(items);
        paired.unchanged = all.len() - clusters.len();
        paired.share_with_lost = missing_share(matched, &probes, &dimensions);
        paired.is_same = fixtures.tested() == 0 && fixtures.compared() > 0;
        paired.confounded = !matched.judged.has_same_answerer(&matched.baseline);
        if is_deterministic {
            paired.rerun = Err(NoRerun::Deterministic);
        }
        Some(paired)
    };
    let overall = paired(
        by_fixture(matched, fixtures, a.overall(), b.overall()),
        None,
    );
    let compared = Dimension::ALL
        .into_iter()
        .filter(|dimension| !matched.excluded.contains(dimension));
    let dimensions = compared.filter_map(|dimension| {
        let both = by_fixture(
            matched,
            fixtures,
            a.dimension(dimension),
            b.dimension(dimension),
        );
        Some((place(dimension), paired(both, Some(dimension))?))
    });
    let dimensions = dimensions.collect();
    MethodDifferences {
        overall,
        dimensions,
    }
}

/// For each side, the probes that were judged on both sides, of those that were due on both, with `overall` over the
/// same dimensions.
fn common_selections<'s>(matched: &ComparedVariants<'s>) -> [Selection<'s>; 2] {
    let (judged, baseline) = (matched.judged, matched.baseline);
    let (scores_a, scores_b) = (&judged.set.scores, &baseline.set.scores);
    let (judged_a, judged_b) = (
        scores_a.judged(judged.place),
        scores_b.judged(baseline.place),
    );
    let both = matched
        .probes
        .iter()
        .filter(|(a, b)| judged_a.contains(a) && judged_b.contains(b));
    let (kept_a, kept_b): (Subset, Subset) = both.map(|(a, b)| (*a, *b)).unzip();
    let (due_a, due_b): (Subset, Subset) = due_probes(matched).into_iter().unzip();
    let a = Selection::new(scores_a, kept_a, due_a, matched.excluded);
    let b = Selection::new(scores_b, kept_b, due_b, matched.excluded).with_overall_of(&a);
    [a, b]
}

/// The probes that were due on both sides, by their places on either side. Where a side compressed nothing, there is
/// nothing to compare, so nothing is missing.
fn due_probes(matched: &ComparedVariants<'_>) -> Vec<(usize, usize)> {
    let [apart_a, apart_b] =
        [matched.judged, matched.baseline].map(|side| side.set.probes_apart(side.place));
    let due = matched
        .probes
        .iter()
        .filter(|(a, b)| !apart_a.contains(a) && !apart_b.contains(b));
    due.map(|(a, b)| (*a, *b)).collect()
}

/// The due probes of the tested fixtures, and of those that cannot be tested because a side has nothing of them.
fn tested_or_lost_probes(
    matched: &ComparedVariants<'_>,
    fixtures: &FixtureChanges,
) -> Vec<(usize, usize)> {
    let mut due = due_probes(matched);
    due.retain(|(probe, _)| {
        matched.judged.fixture_of(*probe).is_some_and(|name| {
            fixtures.has_part_in_tests(name) || fixtures.is_not_comparable(name)
        })
    });
    due
}

/// The share of the scores of these probes and dimensions that the side which lacks more is missing. A probe measures a
/// dimension if it does on either side.
fn missing_share(
    matched: &ComparedVariants<'_>,
    probes: &[(usize, usize)],
    dimensions: &BTreeSet<Dimension>,
) -> f64 {
    let (judged, baseline) = (matched.judged, matched.baseline);
    let (scores_a, scores_b) = (&judged.set.scores, &baseline.set.scores);
    let (mut gaps_a, mut gaps_b) = (MissingCounts::default(), MissingCounts::default());
    for (a, b) in probes {
        for dimension in dimensions {
            if scores_a.measures(*a, *dimension) || scores_b.measures(*b, *dimension) {
                gaps_a += scores_a.gaps(judged.place, *a, *dimension);
                gaps_b += scores_b.gaps(baseline.place, *b, *dimension);
            }
        }
    }
    gaps_a
        .share()
        .unwrap_or(0.0)
        .max(gaps_b.share().unwrap_or(0.0))
}

/// How many probes of the tested fixtures were graded, or were graded on one dimension.
fn graded_items(
    judged: &VariantRef<'_>,
    fixtures: &FixtureChanges,
    kept: &Subset,
    measured: Option<Dimension>,
) -> usize {
    let scores = &judged.set.scores;
    let graded = kept
        .iter()
        .filter(|probe| measured.is_none_or(|dimension| scores.measures(**probe, dimension)));
    let names = graded.filter_map(|probe| judged.fixture_of(*probe));
    names
        .filter(|name| fixtures.has_part_in_tests(name))
        .count()
}

/// The runs of both sides, for each fixture with a common cell. Fixtures are matched by name.
fn by_fixture<'m>(
    matched: &ComparedVariants<'m>,
    fixtures: &FixtureChanges,
    a: impl Iterator<Item = (usize, &'m RunValues)>,
    b: impl Iterator<Item = (usize, &'m RunValues)>,
) -> Vec<(usize, &'m str, RunValues, RunValues)> {
    let there: BTreeMap<&str, &RunValues> = b
        .filter_map(|(place, runs)| Some((matched.baseline.set.fixture_name(place)?, runs)))
        .collect();
    let both = a.filter_map(|(place, runs)| {
        let name = matched.judged.set.fixture_name(place)?;
        let is_comparable = !fixtures.is_not_comparable(name);
        is_comparable.then_some((place, name, runs.clone(), (*there.get(name)?).clone()))
    });
    both.collect()
}

/// Joins rows with their verdicts, and tests the failures of all rows together.
fn judge(rows: Vec<PairRow<'_>>, families: FamilyVerdicts) -> Ordered<MethodComparison> {
    let counts: Vec<_> = rows.iter().map(|row| row.chains.counts()).collect();
    let failures = stats::failure_tests(&counts);
    let mut methods = Ordered::new();
    for ((row, verdicts), failures) in rows.into_iter().zip(families.methods).zip(failures) {
        let reliability = row.chains.judged(failures);
        methods.insert(row.key.clone(), row.into_comparison(verdicts, reliability));
    }
    let planted = methods
        .values_mut()
        .filter_map(|method| method.planted.as_mut());
    test_family(&mut planted.collect::<Vec<_>>());
    methods
}

impl PairRow<'_> {
    fn into_comparison(
        self,
        verdicts: MethodVerdicts,
        reliability: Reliability,
    ) -> MethodComparison {
        let tested = self.differences.dimensions.iter();
        let names = tested.filter_map(|(place, _)| Dimension::ALL.get(*place));
        let names = names.map(|dimension| dimension.name().to_owned());
        MethodComparison {
            overall: verdicts.overall,
            dimensions: names.zip(verdicts.dimensions).collect(),
            reliability,
            ..self.compared
        }
    }
}
