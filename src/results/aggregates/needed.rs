//! Needed-later recall of methods: levels, and paired differences of two result sets.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::contexts::{
    CountedPoints, PointAt, at, contexts, have_same_points, mean_by_fixture, point_faults,
};
use crate::measure::RecallCaveat;
use crate::results::files::context_row::{ContextFigures, ContextNeeded};
use crate::results::result_set::ResultSet;
use stats::{self, Interval, MissingCounts, NoRerun, Paired, RunValues, run_values};

/// `needed` of a method in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeededSummary {
    /// The recall minus that of the newest messages of the same size: the mean over points, then the median over runs,
    /// then the mean over fixtures; null where no point has one.
    pub lift: Option<f64>,
    /// The interval of the lift for other sessions like these.
    pub ci95: Option<Interval>,
    /// The interval of the lift for other runs on exactly these sessions.
    pub ci95_rerun: Option<Interval>,
    /// Fixtures with a lift.
    pub fixtures: usize,
    /// Needed references of the points that count.
    pub count: u64,
    /// The share of these references that contexts have.
    pub recall: Option<f64>,
    /// The recall of the newest messages of the same size.
    pub truncate: Option<f64>,
    /// Tokens that it takes to fetch again what one context lost.
    pub refetch_tokens: Option<f64>,
}

/// The points that count for recall and cost of compressions: those that all methods compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededPoints {
    /// Fixtures with such a point.
    pub fixtures: usize,
    /// How many points count.
    pub points: usize,
    /// Points without a caveat that do not count, because some method did not compress them.
    pub uncommon: usize,
    /// Whether every point has a caveat: then the figures decide nothing.
    pub without_verdict: bool,
    /// By reason, how many points are left out or decide nothing.
    pub left_out: BTreeMap<RecallCaveat, usize>,
}

/// The points that count for the figures of all methods; `None` without contexts.
pub(crate) fn needed_points(
    CountedPoints { set, common, .. }: &CountedPoints<'_>,
) -> Option<NeededPoints> {
    let faults = point_faults(set);
    let mut left_out = BTreeMap::new();
    for fault in faults.values().flatten() {
        *left_out.entry(*fault).or_default() += 1;
    }
    (!faults.is_empty()).then(|| NeededPoints {
        fixtures: common
            .iter()
            .map(|(fixture, _)| *fixture)
            .collect::<BTreeSet<_>>()
            .len(),
        points: common.len(),
        uncommon: faults
            .iter()
            .filter(|(at, fault)| fault.is_none() && !common.contains(at))
            .count(),
        without_verdict: !faults.values().any(Option::is_none),
        left_out,
    })
}

/// The figures of one fixture, by point, then by run.
type Figures = BTreeMap<u32, BTreeMap<u32, f64>>;

/// A figure of contexts, by fixture.
fn figures<'s>(
    contexts: impl IntoIterator<Item = &'s ContextFigures>,
    figure: fn(&ContextNeeded) -> Option<f64>,
) -> BTreeMap<&'s str, Figures> {
    let mut fixtures: BTreeMap<&str, Figures> = BTreeMap::new();
    for context in contexts {
        if let Some(figure) = context.needed.as_ref().and_then(figure) {
            let points = fixtures.entry(&context.fixture).or_default();
            points
                .entry(context.point)
                .or_default()
                .insert(context.run, figure);
        }
    }
    fixtures
}

/// The values of the runs of one fixture: each is the mean over its points.
fn runs(figures: &Figures, runs: u32, kept: impl Fn(u32) -> bool) -> RunValues {
    let rows = figures
        .iter()
        .filter(|(point, _)| kept(**point))
        .map(|(_, values)| {
            (1..=runs)
                .map(|run| values.get(&run).copied())
                .collect::<Vec<Option<f64>>>()
        });
    run_values(&rows.collect::<Vec<_>>())
}

/// What the contexts of a method have of what was needed later, at the points that all methods compressed; `None` where
/// nothing was needed, or no context can be read.
pub(crate) fn needed_summary(points: &CountedPoints<'_>, method: &str) -> Option<NeededSummary> {
    let CountedPoints { set, common, .. } = points;
    let mut contexts = contexts(set, method);
    contexts.retain(|context| context.needed.is_some() && common.contains(&at(context)));
    contexts.first()?;
    let info = set.design().method(method)?;
    let fixtures: Vec<RunValues> = figures(contexts.iter().copied(), ContextNeeded::lift)
        .values()
        .map(|figures| runs(figures, set.design().runs.compress, |_| true))
        .collect();
    let values: Vec<f64> = fixtures
        .iter()
        .filter_map(RunValues::cluster_value)
        .collect();
    let level = stats::share_difference(&values);
    let present: Vec<Vec<f64>> = fixtures
        .iter()
        .map(RunValues::present)
        .filter(|runs| !runs.is_empty())
        .collect();
    let rerun = if info.deterministic {
        Err(NoRerun::Deterministic)
    } else {
        stats::rerun_interval(&present, None)
    };
    let counts: BTreeMap<PointAt<'_>, u32> = contexts
        .iter()
        .filter_map(|context| Some((at(context), context.needed.as_ref()?.own.count)))
        .collect();
    Some(NeededSummary {
        lift: level.map(|level| level.center),
        recall: mean_needed(&contexts, |needed| needed.own.recall),
        ci95: level.and_then(|level| level.ci95),
        ci95_rerun: rerun.ok().map(|rerun| rerun.ci95),
        fixtures: values.len(),
        count: counts.values().map(|count| u64::from(*count)).sum(),
        truncate: mean_needed(&contexts, |needed| needed.truncate),
        refetch_tokens: mean_needed(&contexts, |needed| Some(needed.own.refetch_tokens as f64)),
    })
}

fn mean_needed(
    contexts: &[&ContextFigures],
    figure: fn(&ContextNeeded) -> Option<f64>,
) -> Option<f64> {
    mean_by_fixture(contexts, |context| figure(context.needed.as_ref()?))
}

/// The paired differences of the recall of two methods, over the points that count and are the same on both sides.
pub(crate) fn paired_recall(sides: [(&ResultSet, &str); 2]) -> Option<Paired> {
    let [a, b] = sides.map(|(set, method)| recalls(set, method));
    let [judged, baseline] = sides.map(|(set, _)| set);
    let names: BTreeSet<&str> = a
        .keys()
        .chain(b.keys())
        .copied()
        .filter(|name| have_same_references(judged, baseline, name))
        .collect();
    let mut clusters: Vec<(usize, RunValues, RunValues)> = Vec::new();
    let mut gaps = [MissingCounts::default(); 2];
    for (cluster, name) in names.into_iter().enumerate() {
        let both = [a.get(name), b.get(name)];
        let points: BTreeSet<u32> = both
            .iter()
            .flatten()
            .flat_map(|recalls| recalls.keys())
            .copied()
            .collect();
        for ((recalls, (set, _)), gaps) in both.iter().zip(sides).zip(&mut gaps) {
            let due = points.len() * set.design().runs.compress as usize;
            let present: usize = recalls
                .iter()
                .flat_map(|recalls| recalls.values())
                .map(BTreeMap::len)
                .sum();
            *gaps += MissingCounts {
                cells: due,
                missing: due.saturating_sub(present),
            };
        }
        if let [Some(own), Some(other)] = both {
            let own_runs = runs(own, judged.design().runs.compress, |point| {
                other.contains_key(&point)
            });
            let other_runs = runs(other, baseline.design().runs.compress, |point| {
                own.contains_key(&point)
            });
            clusters.push((cluster, own_runs, other_runs));
        }
    }
    let missing = gaps
        .into_iter()
        .filter_map(MissingCounts::share)
        .fold(0.0, f64::max);
    let paired = Paired::by_cluster(&clusters)?.with_missing_share(missing);
    let is_deterministic = sides.iter().any(|(set, method)| {
        set.design()
            .method(method)
            .is_some_and(|info| info.deterministic)
    });
    Some(if is_deterministic {
        paired.without_rerun(NoRerun::Deterministic)
    } else {
        paired
    })
}

/// The recalls of a method by fixture, at the points without a caveat.
fn recalls<'s>(set: &'s ResultSet, method: &str) -> BTreeMap<&'s str, Figures> {
    let faults = point_faults(set);
    let free = contexts(set, method)
        .into_iter()
        .filter(|context| faults.get(&at(context)) == Some(&None));
    figures(free, |needed| needed.own.recall)
}

/// Whether both sets have a fixture with the same messages, points and references.
fn have_same_references(own: &ResultSet, other: &ResultSet, fixture: &str) -> bool {
    let [references, other_references] =
        [own, other].map(|set| set.design().fixture(fixture).map(|info| info.references));
    have_same_points(own, other, fixture) && references == other_references
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::aggregates::contexts::fakes::{context, set};
    use crate::results::aggregates::contexts::{CompressionCost, compression_cost};
    use proptest::prelude::*;

    fn all() -> Vec<ContextFigures> {
        let of = |(at, name): (usize, &str)| {
            let base = 0.2 * at as f64;
            (1..=2)
                .flat_map(|point| (1..=2).map(move |run| (point, run)))
                .map(|(point, run)| {
                    context(
                        name,
                        point,
                        run,
                        base + 0.1 * f64::from(point) + 0.05 * f64::from(run),
                    )
                })
                .collect::<Vec<_>>()
        };
        ["a", "b", "c"]
            .into_iter()
            .enumerate()
            .flat_map(of)
            .collect()
    }

    fn summary_of(contexts: Vec<ContextFigures>) -> NeededSummary {
        needed_summary(&CountedPoints::new(&set(contexts)), "m").expect("needed")
    }

    fn points_of(contexts: Vec<ContextFigures>) -> NeededPoints {
        needed_points(&CountedPoints::new(&set(contexts))).expect("points")
    }

    fn cost_of(contexts: Vec<ContextFigures>) -> CompressionCost {
        compression_cost(&CountedPoints::new(&set(contexts)), "m")
    }

    #[test]
    fn a_level_is_the_mean_over_sessions_of_the_median_over_runs_of_the_mean_over_points() {
        let found = summary_of(all());
        // Runs of the first session: .20 and .25; of the others .2 and .4 more. The newest text has .4.
        assert!((found.recall.expect("a recall") - 0.425).abs() < 1e-9);
        assert!((found.lift.expect("a lift") - 0.025).abs() < 1e-9);
        assert_eq!((found.fixtures, found.count), (3, 24));
        let cost = cost_of(all());
        assert_eq!(
            (cost.contexts, cost.seconds, cost.calls, cost.usd),
            (12, Some(2.0), Some(1.0), Some(0.5))
        );
    }

    #[test]
    fn what_a_vendor_keeps_of_the_user_is_a_share_of_what_it_replaces() {
        let mut contexts = all();
        for context in contexts.iter_mut().filter(|context| context.fixture != "c") {
            context.user_tokens = Some(if context.fixture == "a" { 300 } else { 0 });
        }
        assert_eq!(
            cost_of(contexts).user_share,
            Some(0.15),
            "the mean of the two that are known"
        );
        assert_eq!(cost_of(all()).user_share, None, "unknown is not zero");
    }

    #[test]
    fn points_with_a_caveat_count_only_where_all_have_one() {
        let mut contexts = all();
        for context in &mut contexts {
            if let Some(needed) = context.needed.as_mut().filter(|_| context.fixture != "c") {
                needed.own.caveat = Some(RecallCaveat::Short);
            }
        }
        let found = summary_of(contexts.clone());
        assert_eq!(found.fixtures, 1);
        let some = points_of(contexts.clone());
        assert_eq!(
            (some.fixtures, some.points, some.without_verdict),
            (1, 2, false)
        );
        assert_eq!(some.left_out, BTreeMap::from([(RecallCaveat::Short, 4)]));
        contexts.retain(|context| context.fixture != "c");
        let found = summary_of(contexts.clone());
        assert_eq!(
            (found.fixtures, points_of(contexts.clone()).without_verdict),
            (2, true)
        );
        assert_eq!(
            paired_recall([(&set(contexts.clone()), "m"), (&set(contexts), "m")]),
            None,
            "they decide nothing"
        );
    }

    #[test]
    fn recall_and_cost_rest_on_the_same_points() {
        let mut contexts = all();
        for context in contexts.iter_mut().filter(|context| context.fixture == "c") {
            context.needed = None;
            context.tokens = Some(9000);
        }
        assert_eq!(cost_of(contexts.clone()).tokens, Some(100.0));
        let points = points_of(contexts.clone());
        assert_eq!(
            points.left_out,
            BTreeMap::from([(RecallCaveat::NothingNeeded, 2)])
        );
        contexts
            .iter_mut()
            .for_each(|context| context.needed = None);
        assert_eq!(
            cost_of(contexts).contexts,
            12,
            "without any recall all points count"
        );
    }

    #[test]
    fn methods_are_measured_at_the_points_that_all_of_them_compressed() {
        let others = all().into_iter().filter(|context| context.fixture != "a");
        let others = others.map(|context| ContextFigures {
            method: "n".into(),
            ..context
        });
        let contexts: Vec<ContextFigures> = all().into_iter().chain(others).collect();
        let found = summary_of(contexts.clone());
        assert_eq!(
            found.fixtures, 2,
            "the other method has nothing of the first session"
        );
        let points = points_of(contexts.clone());
        assert_eq!((points.points, points.fixtures, points.uncommon), (4, 2, 2));
        let cost = cost_of(contexts);
        assert_eq!(
            (cost.contexts, cost.expected),
            (12, 12),
            "nothing of this method is missing"
        );
    }

    #[test]
    fn contexts_that_failed_are_missing_in_a_comparison() {
        let (whole, mut part) = (all(), all());
        part.retain(|context| context.point != 2 || context.fixture != "a");
        let paired = paired_recall([(&set(part), "m"), (&set(whole), "m")]).expect("pairs");
        assert_eq!(
            stats::untestable(&paired),
            Some(stats::NoEvidenceReason::Missing)
        );
    }

    proptest! {
        #[test]
        fn the_order_of_sessions_is_irrelevant(order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle()) {
            let contexts = all();
            let shuffled: Vec<ContextFigures> = order.iter().filter_map(|at| contexts.get(*at).cloned()).collect();
            prop_assert_eq!(summary_of(contexts.clone()), summary_of(shuffled.clone()));
            let (one, other) = (set(contexts), set(shuffled));
            prop_assert_eq!(
                paired_recall([(&one, "m"), (&other, "m")]).map(|paired| paired.estimate().center), Some(0.0)
            );
        }
    }
}
