//! Needed-later recall of methods: levels, baselines, and paired differences of two result sets.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::action::Digest;
use crate::measure::RecallCaveat;
use crate::results::files::context_row::{ContextFigures, ContextNeeded};
use crate::results::result_set::set::ResultSet;
use stats::{self, Interval, MissingCounts, NoRerun, Paired, RunValues, run_values};

/// `needed` of a method in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeededSummary {
    /// The recall less that of the newest messages at the same tokens: the mean over fixtures of the median over runs of
    /// the mean over points; null where no point has one.
    pub lift: Option<f64>,
    /// Of the lift, for other sessions like these.
    pub ci95: Option<Interval>,
    /// Of the lift, on exactly these sessions, for other runs.
    pub ci95_rerun: Option<Interval>,
    /// Fixtures with a lift.
    pub fixtures: usize,
    /// Needed references of the points that count.
    pub count: u64,
    /// The share of them that contexts have.
    pub recall: Option<f64>,
    /// The recall of a bare list of references at the same tokens.
    pub list: Option<f64>,
    /// The recall of the newest messages at the same tokens.
    pub truncate: Option<f64>,
    /// Tokens of fetching again what one context lost.
    pub refetch_tokens: Option<f64>,
}

/// The points on which recall and cost of compressions rest, for all methods the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededPoints {
    /// Fixtures with such a point.
    pub fixtures: usize,
    /// How many points count.
    pub points: usize,
    /// Whether no point is without a caveat. The figures are then of points with one, and decide nothing.
    pub without_verdict: bool,
    /// Why the other points are left out, or these decide nothing, with counts.
    pub left_out: BTreeMap<RecallCaveat, usize>,
}

/// What one compression of a method takes, on average over the points that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompressionCost {
    /// How many compressions the means are over.
    pub contexts: u64,
    /// How many there would be if none had failed.
    #[serde(default)]
    pub expected: u64,
    /// Tokens of a context, the geometric mean over fixtures.
    pub tokens: Option<f64>,
    /// Of these tokens, for other sessions like these.
    #[serde(default)]
    pub tokens_ci95: Option<Interval>,
    /// Of the tokens that it replaces, the share that are user messages which a vendor keeps word for word; null of
    /// contexts that are not a vendor's.
    pub user_share: Option<f64>,
    /// What it took when it was executed.
    pub seconds: Option<f64>,
    /// Requests to a model.
    pub calls: Option<f64>,
    /// Dollars; null where a price is unknown.
    pub usd: Option<f64>,
}

/// Two methods whose contexts are the same in every compression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdenticalContexts {
    /// Their names.
    pub methods: [String; 2],
    /// Compressions that both have.
    pub contexts: u64,
    /// The settings in which the two differ, and which so changed nothing; empty for different strategies.
    pub settings: Vec<String>,
}

pub(super) fn contexts<'s>(set: &'s ResultSet, method: &str) -> Vec<&'s ContextFigures> {
    set.contexts.iter().filter(|context| context.method == method).collect()
}

/// A point of a fixture.
pub(in crate::results) type PointAt<'s> = (&'s str, u32);

/// Why each point that was compressed at does not count; `None` of one that does. All methods need the same at a point.
fn point_faults(set: &ResultSet) -> BTreeMap<PointAt<'_>, Option<RecallCaveat>> {
    let mut points = BTreeMap::new();
    for context in &set.contexts {
        let fault =
            points.entry((context.fixture.as_str(), context.point)).or_insert(Some(RecallCaveat::NothingNeeded));
        if let Some(needed) = &context.needed {
            let few = needed.own.recall.is_none().then_some(RecallCaveat::FewMessages);
            *fault = few.or(needed.own.caveat);
        }
    }
    points
}

/// The points that figures rest on: those without a fault; where there are none, those whose recall decides nothing; else
/// all of them, which then have a cost alone.
pub(super) fn counted_points(set: &ResultSet) -> BTreeSet<PointAt<'_>> {
    let points = point_faults(set);
    let apart = points_apart(set);
    let those = |counts: fn(Option<RecallCaveat>) -> bool| -> BTreeSet<PointAt<'_>> {
        let found = points.iter().filter(|(at, fault)| counts(**fault) && !apart.contains(at));
        found.map(|(at, _)| *at).collect()
    };
    let has_recall =
        |fault: Option<RecallCaveat>| !matches!(fault, Some(RecallCaveat::FewMessages | RecallCaveat::NothingNeeded));
    let candidates = [those(|fault| fault.is_none()), those(has_recall), those(|_| true)];
    candidates.into_iter().find(|points| !points.is_empty()).unwrap_or_default()
}

/// The points at which a method compressed nothing that it does compress elsewhere: no figure compares methods there.
fn points_apart(set: &ResultSet) -> BTreeSet<PointAt<'_>> {
    let compressing: BTreeSet<&str> = set.contexts.iter().map(|context| context.method.as_str()).collect();
    let apart = set.not_compressed.iter().flat_map(|apart| &apart.contexts);
    apart.filter(|context| compressing.contains(context.method.as_str())).map(at).collect()
}

pub(in crate::results) fn at(context: &ContextFigures) -> PointAt<'_> {
    (&context.fixture, context.point)
}

/// On which points the figures of all methods rest; `None` without contexts.
pub(in crate::results) fn needed_points(set: &ResultSet) -> Option<NeededPoints> {
    let (counted, faults) = (counted_points(set), point_faults(set));
    let mut left_out = BTreeMap::new();
    for fault in faults.values().flatten() {
        *left_out.entry(*fault).or_default() += 1;
    }
    (!faults.is_empty()).then(|| NeededPoints {
        fixtures: counted.iter().map(|(fixture, _)| *fixture).collect::<BTreeSet<_>>().len(),
        points: counted.len(),
        without_verdict: !faults.values().any(Option::is_none),
        left_out,
    })
}

/// The mean over fixtures of the mean within each; `None` where no context has a value.
pub(super) fn mean_by_fixture(
    contexts: &[&ContextFigures],
    of: impl Fn(&ContextFigures) -> Option<f64>,
) -> Option<f64> {
    stats::mean(&fixture_means(contexts, of))
}

/// The mean of each fixture whose contexts have a value.
fn fixture_means(contexts: &[&ContextFigures], of: impl Fn(&ContextFigures) -> Option<f64>) -> Vec<f64> {
    let mut fixtures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (context, value) in contexts.iter().filter_map(|context| Some((context, of(context)?))) {
        fixtures.entry(&context.fixture).or_default().push(value);
    }
    fixtures.values().filter_map(|values| stats::mean(values)).collect()
}

/// What a compression of a method takes, at the points on which its recall rests.
pub(in crate::results) fn compression_cost(set: &ResultSet, method: &str) -> CompressionCost {
    let counted = counted_points(set);
    let own: Vec<_> = contexts(set, method).into_iter().filter(|context| counted.contains(&at(context))).collect();
    let apart = set.not_compressed.iter().flat_map(|apart| contexts(apart, method));
    let apart = apart.filter(|context| counted.contains(&at(context))).count() as u64;
    let is_priced = own.iter().all(|context| context.usd.is_some());
    let sizes = fixture_means(&own, |context| context.tokens.map(|tokens| tokens as f64));
    let tokens = stats::geometric_mean(&sizes);
    CompressionCost {
        contexts: own.len() as u64,
        expected: (counted.len() as u64 * u64::from(set.design().runs.compress)).saturating_sub(apart),
        tokens: tokens.map(|tokens| tokens.center),
        tokens_ci95: tokens.and_then(|tokens| tokens.ci95),
        user_share: mean_by_fixture(&own, user_share),
        seconds: mean_by_fixture(&own, |context| context.seconds),
        calls: mean_by_fixture(&own, |context| Some(f64::from(context.calls))),
        usd: mean_by_fixture(&own, |context| context.usd).filter(|_| is_priced),
    }
}

/// The share of the user's messages that a vendor keeps in what a context replaces.
fn user_share(context: &ContextFigures) -> Option<f64> {
    (context.replaced_tokens > 0).then_some(context.user_tokens? as f64 / context.replaced_tokens as f64)
}

/// A place in the table of one fixture: the point, then the run.
type Figures = BTreeMap<u32, BTreeMap<u32, f64>>;

/// A figure of the contexts of a method by fixture.
fn figures<'s>(
    set: &'s ResultSet,
    method: &str,
    counts: impl Fn(&ContextFigures) -> bool,
    of: fn(&ContextNeeded) -> Option<f64>,
) -> BTreeMap<&'s str, Figures> {
    let mut fixtures: BTreeMap<&str, Figures> = BTreeMap::new();
    for context in contexts(set, method).into_iter().filter(|context| counts(context)) {
        if let Some(figure) = context.needed.as_ref().and_then(of) {
            let points = fixtures.entry(&context.fixture).or_default();
            points.entry(context.point).or_default().insert(context.run, figure);
        }
    }
    fixtures
}

/// The runs of one fixture, each the mean over its points.
fn runs(figures: &Figures, runs: u32, kept: impl Fn(u32) -> bool) -> RunValues {
    let rows = figures
        .iter()
        .filter(|(point, _)| kept(**point))
        .map(|(_, values)| (1..=runs).map(|run| values.get(&run).copied()).collect::<Vec<Option<f64>>>());
    run_values(&rows.collect::<Vec<_>>())
}

/// What contexts of a method have of what was needed later; `None` where nothing was needed anywhere, or no context can be read.
pub(in crate::results) fn needed_summary(set: &ResultSet, method: &str) -> Option<NeededSummary> {
    let counted = counted_points(set);
    let counts = |context: &ContextFigures| context.needed.is_some() && counted.contains(&at(context));
    let own: Vec<&ContextFigures> = contexts(set, method).into_iter().filter(|context| counts(context)).collect();
    own.first()?;
    let info = set.design().method(method)?;
    let all: Vec<RunValues> = figures(set, method, counts, ContextNeeded::lift)
        .values()
        .map(|one| runs(one, set.design().runs.compress, |_| true))
        .collect();
    let values: Vec<f64> = all.iter().filter_map(RunValues::cluster_value).collect();
    let level = stats::share_difference(&values);
    let present: Vec<Vec<f64>> = all.iter().map(RunValues::present).filter(|runs| !runs.is_empty()).collect();
    let rerun = if info.deterministic { Err(NoRerun::Deterministic) } else { stats::rerun_interval(&present, None) };
    let mean = |of: fn(&ContextNeeded) -> Option<f64>| mean_by_fixture(&own, |context| of(context.needed.as_ref()?));
    let counts: BTreeMap<PointAt<'_>, u32> =
        own.iter().filter_map(|context| Some((at(context), context.needed.as_ref()?.own.count))).collect();
    Some(NeededSummary {
        lift: level.map(|level| level.center),
        recall: mean(|needed| needed.own.recall),
        ci95: level.and_then(|level| level.ci95),
        ci95_rerun: rerun.ok().map(|rerun| rerun.ci95),
        fixtures: values.len(),
        count: counts.values().map(|count| u64::from(*count)).sum(),
        list: mean(|needed| needed.list),
        truncate: mean(|needed| needed.truncate),
        refetch_tokens: mean(|needed| Some(needed.own.refetch_tokens as f64)),
    })
}

/// The paired differences of the recall of two methods over the points that both sides have alike and that count.
pub(in crate::results) fn paired_recall([judged, baseline]: [(&ResultSet, &str); 2]) -> Option<Paired> {
    let of = |(set, method): (&ResultSet, &str)| -> BTreeMap<String, Figures> {
        let faults = point_faults(set);
        let is_free = |context: &ContextFigures| faults.get(&at(context)) == Some(&None);
        figures(set, method, is_free, |needed| needed.own.recall)
            .into_iter()
            .map(|(name, recalls)| (name.to_owned(), recalls))
            .collect()
    };
    let (a, b) = (of(judged), of(baseline));
    let digests = |set: &ResultSet, name: &str| {
        let fixture = set.design().fixture(name)?;
        Some((fixture.digests.transcript, fixture.digests.points, fixture.references))
    };
    let is_alike = |name: &String| {
        let (own, other) = (digests(judged.0, name), digests(baseline.0, name));
        own.is_some() && own == other
    };
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|name| is_alike(name)).collect();
    let mut clusters: Vec<(usize, RunValues, RunValues)> = Vec::new();
    let mut gaps = [MissingCounts::default(); 2];
    for (cluster, name) in names.into_iter().enumerate() {
        let sides = [(a.get(name), judged.0), (b.get(name), baseline.0)];
        let known = |point: u32| sides.map(|(recalls, _)| recalls.is_some_and(|own| own.contains_key(&point)));
        let points: BTreeSet<u32> =
            sides.iter().filter_map(|(recalls, _)| *recalls).flat_map(BTreeMap::keys).copied().collect();
        for ((recalls, set), gaps) in sides.iter().zip(&mut gaps) {
            let due = points.len() * set.design().runs.compress as usize;
            let there: usize = recalls.iter().flat_map(|recalls| recalls.values()).map(BTreeMap::len).sum();
            *gaps += MissingCounts { cells: due, missing: due.saturating_sub(there) };
        }
        if let [(Some(own), set), (Some(other), other_set)] = sides {
            let both = |point: u32| known(point) == [true, true];
            let of = |recalls: &Figures, set: &ResultSet| runs(recalls, set.design().runs.compress, both);
            clusters.push((cluster, of(own, set), of(other, other_set)));
        }
    }
    let missing = gaps.into_iter().filter_map(MissingCounts::share).fold(0.0, f64::max);
    let paired = Paired::by_cluster(&clusters)?.with_missing_share(missing);
    let is_fixed =
        |(set, method): (&ResultSet, &str)| set.design().method(method).is_some_and(|info| info.deterministic);
    Some(if is_fixed(judged) || is_fixed(baseline) { paired.without_rerun(NoRerun::Deterministic) } else { paired })
}

/// Whether all contexts that two methods both have are the same.
pub(in crate::results) fn have_same_contexts(sides: [(&ResultSet, &str); 2]) -> bool {
    let [a, b] = sides.map(|(set, method)| digests(set, method));
    a.iter().all(|(place, own)| b.get(place).is_none_or(|other| own == other))
}

/// The contexts of a method by fixture, point and run.
fn digests<'s>(set: &'s ResultSet, method: &str) -> BTreeMap<(PointAt<'s>, u32), Digest> {
    contexts(set, method).into_iter().map(|context| ((at(context), context.run), context.context)).collect()
}

/// The pairs of methods whose contexts are the same everywhere.
pub(in crate::results) fn identical_contexts(set: &ResultSet) -> Vec<IdenticalContexts> {
    let methods = set.design().methods.iter();
    let all: Vec<_> = methods.map(|info| (info, digests(set, &info.name))).collect();
    let mut found = Vec::new();
    for (at, (info, own)) in all.iter().enumerate() {
        for (other_info, other) in all.iter().skip(at + 1) {
            if own.is_empty() || own != other {
                continue;
            }
            found.push(IdenticalContexts {
                methods: [info.name.clone(), other_info.name.clone()],
                contexts: own.len() as u64,
                settings: info.differing_settings(other_info),
            });
        }
    }
    found
}

#[cfg(test)]
pub(in crate::results) mod fakes {
    use super::*;
    use crate::action::ActionKey;
    use crate::measure::NeededRecall;
    use crate::results::fakes::design;
    use crate::results::files::context_row::ContextRow;
    use crate::results::{Manifest, Row, SetError};

    pub(in crate::results) fn context(fixture: &str, point: u32, run: u32, recall: f64) -> ContextFigures {
        let own = NeededRecall {
            count: 4,
            messages: 3,
            without_words: 0,
            recall: Some(recall),
            carried: 4,
            fetched_again: 0,
            recall_carried: None,
            recall_fetched_again: None,
            refetch_tokens: 10,
            precision: None,
            caveat: None,
        };
        ContextRow {
            fixture: fixture.into(),
            point,
            method: "m".into(),
            run,
            key: ActionKey(Digest::hash("k")),
            context: Digest::hash(format!("{fixture}{point}{run}")),
            tokens: Some(100),
            replaced_tokens: 1000,
            user_tokens: None,
            seconds: Some(2.0),
            usd: Some(0.5),
            calls: 1,
            compressed: true,
            needed: Some(ContextNeeded { own, list: Some(0.9), truncate: Some(0.4) }),
            invented: None,
            references: Vec::new(),
        }
    }

    pub(in crate::results) fn set(contexts: Vec<ContextFigures>) -> ResultSet {
        let design = design(&[("m", "extract")], &[("a", 0), ("b", 0), ("c", 0)], 2);
        let manifest = Manifest::begin("l", "2026-01-01T00:00:00Z", design);
        let none = Vec::<Result<Row, SetError>>::new();
        ResultSet::gather(manifest, none).expect("a set").with_contexts(contexts)
    }
}

#[cfg(test)]
mod tests {
    use super::fakes::{context, set};
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<ContextFigures> {
        let of = |(at, name): (usize, &str)| {
            let base = 0.2 * at as f64;
            (1..=2)
                .flat_map(|point| (1..=2).map(move |run| (point, run)))
                .map(|(point, run)| context(name, point, run, base + 0.1 * f64::from(point) + 0.05 * f64::from(run)))
                .collect::<Vec<_>>()
        };
        ["a", "b", "c"].into_iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn a_level_is_the_mean_over_sessions_of_the_median_over_runs_of_the_mean_over_points() {
        let found = needed_summary(&set(all()), "m").expect("needed");
        // Runs of the first session: .20 and .25; of the others .2 and .4 more. The newest text has .4.
        assert!((found.recall.expect("a recall") - 0.425).abs() < 1e-9);
        assert!((found.lift.expect("a lift") - 0.025).abs() < 1e-9);
        assert_eq!((found.fixtures, found.count, found.list), (3, 24, Some(0.9)));
        let cost = compression_cost(&set(all()), "m");
        assert_eq!((cost.contexts, cost.seconds, cost.calls, cost.usd), (12, Some(2.0), Some(1.0), Some(0.5)));
    }

    #[test]
    fn what_a_vendor_keeps_of_the_user_is_a_share_of_what_it_replaces() {
        let mut contexts = all();
        for context in contexts.iter_mut().filter(|context| context.fixture != "c") {
            context.user_tokens = Some(if context.fixture == "a" { 300 } else { 0 });
        }
        assert_eq!(compression_cost(&set(contexts), "m").user_share, Some(0.15), "the mean of the two that are known");
        assert_eq!(compression_cost(&set(all()), "m").user_share, None, "unknown is not zero");
    }

    #[test]
    fn points_with_a_caveat_count_only_where_all_have_one() {
        let mut contexts = all();
        for context in &mut contexts {
            if let Some(needed) = context.needed.as_mut().filter(|_| context.fixture != "c") {
                needed.own.caveat = Some(RecallCaveat::Short);
            }
        }
        let found = needed_summary(&set(contexts.clone()), "m").expect("needed");
        assert_eq!(found.fixtures, 1);
        let points = |contexts: &[ContextFigures]| needed_points(&set(contexts.to_vec())).expect("points");
        let some = points(&contexts);
        assert_eq!((some.fixtures, some.points, some.without_verdict), (1, 2, false));
        assert_eq!(some.left_out, BTreeMap::from([(RecallCaveat::Short, 4)]));
        contexts.retain(|context| context.fixture != "c");
        let found = needed_summary(&set(contexts.clone()), "m").expect("needed");
        assert_eq!((found.fixtures, points(&contexts).without_verdict), (2, true));
        assert_eq!(paired_recall([(&set(contexts.clone()), "m"), (&set(contexts), "m")]), None, "they decide nothing");
    }

    #[test]
    fn recall_and_cost_rest_on_the_same_points() {
        let mut contexts = all();
        for context in contexts.iter_mut().filter(|context| context.fixture == "c") {
            context.needed = None;
            context.tokens = Some(9000);
        }
        assert_eq!(compression_cost(&set(contexts.clone()), "m").tokens, Some(100.0));
        let points = needed_points(&set(contexts.clone())).expect("points");
        assert_eq!(points.left_out, BTreeMap::from([(RecallCaveat::NothingNeeded, 2)]));
        contexts.iter_mut().for_each(|context| context.needed = None);
        assert_eq!(compression_cost(&set(contexts), "m").contexts, 12, "without any recall all points count");
    }

    #[test]
    fn contexts_that_failed_are_missing_in_a_comparison() {
        let (whole, mut part) = (all(), all());
        part.retain(|context| context.point != 2 || context.fixture != "a");
        let paired = paired_recall([(&set(part), "m"), (&set(whole), "m")]).expect("pairs");
        assert_eq!(stats::untestable(&paired), Some(stats::NoEvidenceReason::Missing));
    }

    proptest! {
        #[test]
        fn the_order_of_sessions_is_irrelevant(order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle()) {
            let contexts = all();
            let shuffled = order.iter().filter_map(|at| contexts.get(*at).cloned()).collect();
            let (one, other) = (set(contexts.clone()), set(shuffled));
            prop_assert_eq!(needed_summary(&one, "m"), needed_summary(&other, "m"));
            prop_assert_eq!(
                paired_recall([(&one, "m"), (&other, "m")]).map(|paired| paired.estimate().center), Some(0.0)
            );
        }
    }
}
