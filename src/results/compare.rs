//! Comparison of two result sets: paired differences, two families of tests, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cells::cell_counts;
use super::comparable::{ArmPair, Barrier, Incomparable, barriers, warnings};
use super::ordered::Ordered;
use super::selection::{Selection, Subset};
use super::set::{Arm, ProbeAt, ResultSet};
use crate::judge::Dimension;
use crate::stats::{self, NoRerun, Paired, RunValues};

/// A judged difference.
pub type Judged = stats::Comparison;

/// One side of a comparison: a result set, or one of its methods.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s> {
    /// The result set.
    pub set: &'s ResultSet,
    /// One of its methods (or `METHOD/ANSWERER`), if it was named.
    pub method: Option<&'s str>,
}

/// `comparison` in `summary.json`. Differences are the side that is judged minus the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What the baseline is called.
    pub baseline: String,
    /// The methods compared, by name on the judged side.
    pub methods: Ordered<MethodComparison>,
    /// Methods that only one side has.
    pub unmatched: Vec<String>,
    /// Fixtures that both sides have alike.
    pub fixtures: Vec<String>,
    /// Probes compared.
    pub probes: usize,
    /// Probes of either side left out (`--only-common`), for one side asked something else or not at all.
    pub left_out: usize,
    /// The built-in rules stood in for a model on either side: every table says so.
    pub lexical: bool,
    /// What differs and bars nothing, as sentences.
    pub warnings: Vec<String>,
}

/// One method against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodComparison {
    /// The baseline's method.
    pub against: String,
    /// The difference of `overall`; null where nothing was measured on both sides.
    pub overall: Option<Judged>,
    /// Of each dimension measured on both sides.
    pub dimensions: Ordered<Judged>,
    /// The method's own failures.
    pub reliability: Reliability,
}

impl MethodComparison {
    /// Whether no score of any fixture differs.
    pub fn is_identical(&self) -> bool {
        let mut all = self.overall.iter().chain(self.dimensions.iter().map(|(_, judged)| judged));
        self.overall.is_some()
            && all.all(|judged| judged.difference == 0.0 && (judged.degenerate || judged.clusters == 1))
    }
}

impl Comparison {
    /// The methods no score of which differs.
    pub fn identical(&self) -> impl Iterator<Item = &str> {
        self.methods.iter().filter(|(_, compared)| compared.is_identical()).map(|(name, _)| name)
    }
}

/// How often a method failed by itself, on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Reliability {
    /// Cells that the method failed.
    pub failed: u64,
    /// Of so many.
    pub cells: u64,
    /// Cells that the baseline failed.
    pub baseline_failed: u64,
    /// Of so many.
    pub baseline_cells: u64,
    /// A larger share failed than in the baseline: worse, whatever the scores say.
    pub regressed: bool,
}

/// Compares two sides: the first against the second, the baseline. With `only_common`, what differs between them is
/// left out instead of refused.
///
/// # Errors
/// What makes them incomparable.
pub fn compare(judged: Side<'_>, baseline: Side<'_>, only_common: bool) -> Result<Comparison, Incomparable> {
    let (pairs, unmatched) = pair_arms(&judged, &baseline)?;
    let found = barriers(judged.set, baseline.set, &pairs);
    let fatal = found.iter().any(Barrier::is_fatal) || (!only_common && !found.is_empty());
    if fatal {
        return Err(Incomparable { differences: found, only_common });
    }
    let matched = matched_probes(judged.set, baseline.set, &found);
    let desk = Desk { judged, baseline, matched };
    let rows: Vec<PairRow> = pairs.iter().map(|pair| desk.pair(pair)).collect();
    if rows.iter().all(|row| row.overall.is_none() && row.dimensions.is_empty()) {
        return Err(Incomparable { differences: vec![Barrier::NothingInCommon], only_common });
    }
    Ok(Comparison {
        baseline: name(&baseline),
        methods: verdicts(rows),
        unmatched,
        fixtures: desk.fixtures(),
        probes: desk.matched.len(),
        left_out: judged.set.probes.len() + baseline.set.probes.len() - 2 * desk.matched.len(),
        lexical: judged.set.design().is_lexical() || baseline.set.design().is_lexical(),
        warnings: warnings(judged.set, baseline.set, &pairs),
    })
}

fn name(side: &Side<'_>) -> String {
    let label = &side.set.manifest.label;
    side.method.map_or_else(|| label.clone(), |method| format!("{label}:{method}"))
}

fn pair_arms(judged: &Side<'_>, baseline: &Side<'_>) -> Result<(Vec<ArmPair>, Vec<String>), Incomparable> {
    let (left, right) = (chosen(judged)?, chosen(baseline)?);
    let explicit = judged.method.is_some() && baseline.method.is_some();
    let mut pairs = Vec::new();
    let mut taken = BTreeSet::new();
    let mut unmatched = Vec::new();
    for (a, arm) in &left {
        let lone = explicit && left.len() == 1 && right.len() == 1;
        let mate = right.iter().find(|(_, other)| lone || belong(judged, baseline, explicit, arm, other));
        match mate {
            Some((b, _)) => {
                pairs.push(ArmPair { a: *a, b: *b, explicit });
                taken.insert(*b);
            }
            None => unmatched.push(arm.key.clone()),
        }
    }
    unmatched.extend(right.iter().filter(|(b, _)| !taken.contains(b)).map(|(_, arm)| arm.key.clone()));
    if pairs.is_empty() {
        return Err(Incomparable { differences: vec![Barrier::NoMethodInCommon(unmatched)], only_common: false });
    }
    // naming a method asks for that one alone: the others are no loss
    let named = judged.method.is_some() || baseline.method.is_some();
    Ok((pairs, if named { Vec::new() } else { unmatched }))
}

/// The arms of a side that were asked for.
fn chosen<'s>(side: &Side<'s>) -> Result<Vec<(usize, &'s Arm)>, Incomparable> {
    let method_of = |arm: &Arm| side.set.design().methods.get(arm.method).map(|info| info.name.as_str());
    let wanted = |arm: &Arm| side.method.is_none_or(|wanted| arm.key == wanted || method_of(arm) == Some(wanted));
    let arms: Vec<(usize, &Arm)> = side.set.arms.iter().enumerate().filter(|(_, arm)| wanted(arm)).collect();
    match side.method.filter(|_| arms.is_empty()) {
        Some(method) => Err(Incomparable::no_such_method(&side.set.manifest.label, method, &side.set.arms)),
        None => Ok(arms),
    }
}

/// Whether two arms are a pair: of one name unless both were named, and read by one answerer where there are several.
fn belong(judged: &Side<'_>, baseline: &Side<'_>, explicit: bool, a: &Arm, b: &Arm) -> bool {
    let method = |side: &Side<'_>, arm: &Arm| side.set.design().methods.get(arm.method).map(|info| info.name.clone());
    let lone =
        |side: &Side<'_>, arm: &Arm| side.set.arms.iter().filter(|other| other.method == arm.method).count() == 1;
    let same_reader = a.reader == b.reader || (lone(judged, a) && lone(baseline, b));
    same_reader && (explicit || method(judged, a) == method(baseline, b))
}

/// The probes that both sides asked alike, by their places on either side.
fn matched_probes(a: &ResultSet, b: &ResultSet, found: &[Barrier]) -> BTreeMap<usize, usize> {
    let fixture = |set: &ResultSet, probe: &ProbeAt| -> Option<String> {
        set.design().fixtures.get(probe.fixture).map(|info| info.name.clone())
    };
    let barred: BTreeSet<&str> = found.iter().filter_map(Barrier::barred_fixture).collect();
    let of =
        |probe: &ProbeAt, set: &ResultSet| Some((fixture(set, probe)?, probe.point, probe.id.clone(), probe.digest));
    let there: BTreeMap<_, usize> = b.probes.iter().enumerate().filter_map(|(ix, p)| Some((of(p, b)?, ix))).collect();
    let alike = |(ix, probe): (usize, &ProbeAt)| {
        let key = of(probe, a)?;
        (!barred.contains(key.0.as_str())).then_some(())?;
        Some((ix, *there.get(&key)?))
    };
    a.probes.iter().enumerate().filter_map(alike).collect()
}

/// What all pairs of a comparison are made from.
struct Desk<'s> {
    judged: Side<'s>,
    baseline: Side<'s>,
    /// Places of a probe on the judged side and in the baseline.
    matched: BTreeMap<usize, usize>,
}

/// One pair before its differences are judged among all others.
struct PairRow {
    key: String,
    against: String,
    overall: Option<Paired>,
    dimensions: Vec<(Dimension, Paired)>,
    reliability: Reliability,
}

impl Desk<'_> {
    fn fixtures(&self) -> Vec<String> {
        let places: BTreeSet<usize> =
            self.matched.keys().filter_map(|probe| self.judged.set.scores.fixture_of(*probe)).collect();
        let info = |place: &usize| self.judged.set.design().fixtures.get(*place).map(|info| info.name.clone());
        places.iter().filter_map(info).collect()
    }

    fn pair(&self, pair: &ArmPair) -> PairRow {
        let (scores_a, scores_b) = (&self.judged.set.scores, &self.baseline.set.scores);
        let (judged_a, judged_b) = (scores_a.judged(pair.a), scores_b.judged(pair.b));
        let both = self.matched.iter().filter(|(a, b)| judged_a.contains(a) && judged_b.contains(b));
        let (kept_a, kept_b): (Subset, Subset) = both.map(|(a, b)| (*a, *b)).unzip();
        let (due_a, due_b) = (self.matched.keys().copied().collect(), self.matched.values().copied().collect());
        let a = Selection::new(scores_a, kept_a, due_a);
        let b = Selection::new(scores_b, kept_b, due_b).with_overall_of(&a);
        let (a, b) = (a.runs(pair.a), b.runs(pair.b));
        let still = a.are_deterministic() || b.are_deterministic();
        let finish = |paired: Paired| {
            let paired = if still { paired.without_rerun(NoRerun::Deterministic) } else { paired };
            if self.readers_differ(pair) { paired.confounded() } else { paired }
        };
        let dimension = |dimension: Dimension| {
            let both = self.by_fixture(a.dimension(dimension), b.dimension(dimension));
            Some((dimension, finish(Paired::between(&both)?)))
        };
        let key = |set: &ResultSet, arm: usize| set.arms.get(arm).map(|arm| arm.key.clone()).unwrap_or_default();
        PairRow {
            key: key(self.judged.set, pair.a),
            against: key(self.baseline.set, pair.b),
            overall: Paired::between(&self.by_fixture(a.overall(), b.overall())).map(&finish),
            dimensions: Dimension::ALL.into_iter().filter_map(dimension).collect(),
            reliability: self.reliability(pair),
        }
    }

    /// The runs of both sides, fixture by fixture; fixtures are known by their names.
    fn by_fixture<'r>(
        &self,
        a: impl Iterator<Item = (usize, &'r RunValues)>,
        b: impl Iterator<Item = (usize, &'r RunValues)>,
    ) -> Vec<(RunValues, RunValues)> {
        let name = |set: &'_ ResultSet, place: usize| set.design().fixtures.get(place).map(|info| info.name.clone());
        let there: BTreeMap<String, &RunValues> =
            b.filter_map(|(place, runs)| Some((name(self.baseline.set, place)?, runs))).collect();
        let both = |(place, runs): (usize, &RunValues)| {
            let other = *there.get(&name(self.judged.set, place)?)?;
            Some((runs.clone(), other.clone()))
        };
        a.filter_map(both).collect()
    }

    fn readers_differ(&self, pair: &ArmPair) -> bool {
        super::comparable::reader(self.judged.set, pair.a)
            .zip(super::comparable::reader(self.baseline.set, pair.b))
            .is_none_or(|(a, b)| !a.is_same(b))
    }

    fn reliability(&self, pair: &ArmPair) -> Reliability {
        let (own, base) = (cell_counts(self.judged.set, pair.a), cell_counts(self.baseline.set, pair.b));
        let rate = |counts: &super::cells::CellCounts| counts.method_failure_rate().unwrap_or(0.0);
        Reliability {
            failed: own.failed_by_method,
            cells: own.due(),
            baseline_failed: base.failed_by_method,
            baseline_cells: base.due(),
            regressed: rate(&own) > rate(&base) + 1e-12,
        }
    }
}

/// Judges all pairs together: one family of overalls, one of all dimensions.
fn verdicts(rows: Vec<PairRow>) -> Ordered<MethodComparison> {
    let overall: Vec<Paired> = rows.iter().filter_map(|row| row.overall.clone()).collect();
    let dimensions: Vec<Paired> =
        rows.iter().flat_map(|row| &row.dimensions).map(|(_, paired)| paired.clone()).collect();
    let (mut overall, mut dimensions) =
        (stats::verdicts(&overall).into_iter(), stats::verdicts(&dimensions).into_iter());
    let judge = |row: PairRow| {
        let own = row.dimensions.iter().map_while(|(d, _)| Some((d.name().to_owned(), dimensions.next()?))).collect();
        let overall = row.overall.as_ref().and_then(|_| overall.next());
        let (against, reliability) = (row.against, row.reliability);
        (row.key, MethodComparison { against, overall, dimensions: own, reliability })
    };
    rows.into_iter().map(judge).collect()
}
