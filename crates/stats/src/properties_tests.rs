//! Properties that hold for any data.

use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::option::weighted;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::exact::excess_failures_p;
use super::*;

/// Scores with gaps, as items × runs.
fn table() -> impl Strategy<Value = Vec<Vec<Option<f64>>>> {
    (1..6_usize, 1..5_usize)
        .prop_flat_map(|(items, runs)| vec(vec(weighted(0.85, 0.0..=5.0), runs), items))
}

fn clusters() -> impl Strategy<Value = Vec<(RunValues, RunValues)>> {
    vec((table(), table()), 1..8).prop_map(|pairs| {
        pairs
            .iter()
            .map(|(a, b)| (run_values(a), run_values(b)))
            .collect()
    })
}

/// A few chains on both sides, some of which failed.
fn failures() -> impl Strategy<Value = FailureCounts> {
    (1..5_usize, 1..5_usize).prop_flat_map(|(chains, baseline_chains)| {
        (0..=chains, 0..=baseline_chains).prop_map(move |(failed, baseline_failed)| FailureCounts {
            failed,
            chains,
            baseline_failed,
            baseline_chains,
        })
    })
}

fn swapped(counts: &FailureCounts) -> FailureCounts {
    FailureCounts {
        failed: counts.baseline_failed,
        chains: counts.baseline_chains,
        baseline_failed: counts.failed,
        baseline_chains: counts.chains,
    }
}

/// Numbers that a careless caller might pass: usual ones, extremes, NaN and infinity.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![3 => -5.0..5.0, 1 => ANY, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(0.5)]
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn near_ends(a: Option<Interval>, b: Option<Interval>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => near(a.low(), b.low()) && near(a.high(), b.high()),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether every number in it is finite. JSON shows a NaN as null, as it shows an unknown value, so this reads `Debug`.
fn is_finite<T: Serialize + std::fmt::Debug>(value: &T) -> bool {
    let spelled = format!("{value:?}");
    let is_broken = spelled
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| matches!(word, "NaN" | "inf"));
    let json = serde_json::to_value(value).unwrap_or(Value::Null);
    !is_broken && !json.is_null()
}

fn negated(ci: Option<Interval>) -> Option<Interval> {
    ci.and_then(|ci| Interval::new(-ci.high(), -ci.low()))
}

fn shifted_runs(table: &[Vec<Option<f64>>], shift: f64) -> RunValues {
    let shifted = table
        .iter()
        .map(|row| row.iter().map(|x| x.map(|x| x + shift)).collect());
    run_values(&shifted.collect::<Vec<Vec<_>>>())
}

fn lone_verdict(paired: &Paired) -> DifferenceTest {
    verdicts(std::slice::from_ref(paired))[0]
}

proptest! {
    #[test]
    fn swapping_the_sides_negates_everything(pairs in clusters()) {
        let swapped: Vec<_> = pairs.iter().map(|(a, b)| (b.clone(), a.clone())).collect();
        let (there, back) = (Paired::between(&pairs), Paired::between(&swapped));
        prop_assert_eq!(there.is_some(), back.is_some());
        let (Some(there), Some(back)) = (there, back) else { return Ok(()) };
        let (there, back) = (lone_verdict(&there), lone_verdict(&back));
        prop_assert!(near(there.difference, -back.difference));
        prop_assert!(near_ends(there.ci95, negated(back.ci95)));
        prop_assert!(near_ends(there.ci95_rerun, negated(back.ci95_rerun)));
        prop_assert!(near(there.p.unwrap_or(0.0), back.p.unwrap_or(0.0)));
        let mirrored = match back.verdict {
            Verdict::Improved => Verdict::Regressed,
            Verdict::Regressed => Verdict::Improved,
            Verdict::NoEvidence => Verdict::NoEvidence,
        };
        prop_assert_eq!((there.verdict, there.reason), (mirrored, back.reason));
    }

    #[test]
    fn a_constant_on_both_sides_changes_no_difference(tables in vec((table(), table()), 2..6), shift in -2.0..2.0) {
        let plain: Vec<_> = tables.iter().map(|(a, b)| (run_values(a), run_values(b))).collect();
        let shifted: Vec<_> = tables.iter().map(|(a, b)| (shifted_runs(a, shift), shifted_runs(b, shift))).collect();
        let (Some(plain), Some(shifted)) = (Paired::between(&plain), Paired::between(&shifted)) else { return Ok(()) };
        prop_assert!((plain.estimate.center - shifted.estimate.center).abs() < 1e-9);
        prop_assert_eq!(plain.estimate.se.is_some(), shifted.estimate.se.is_some());
    }

    #[test]
    fn order_is_irrelevant(mut pairs in clusters(), mut cells in table()) {
        let before = Paired::between(&pairs);
        pairs.reverse();
        let after = Paired::between(&pairs);
        if let (Some(before), Some(after)) = (before, after) {
            prop_assert!(near(before.estimate.center, after.estimate.center));
            prop_assert!(near_ends(before.estimate.ci95, after.estimate.ci95));
        }
        let straight = run_values(&cells);
        cells.reverse();
        cells.iter_mut().for_each(|row| row.reverse());
        let turned = run_values(&cells);
        prop_assert_eq!(straight.gaps, turned.gaps);
        match (straight.cluster_value(), turned.cluster_value()) {
            (Some(a), Some(b)) => prop_assert!(near(a, b)),
            (a, b) => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn doubling_the_items_of_a_cluster_changes_nothing(cells in table()) {
        let doubled = run_values(&[cells.clone(), cells.clone()].concat());
        let plain = run_values(&cells);
        prop_assert_eq!(plain.gaps.share(), doubled.gaps.share());
        for (a, b) in plain.values.iter().zip(&doubled.values) {
            prop_assert!(a.zip(*b).map_or(a.is_none() && b.is_none(), |(a, b)| near(a, b)));
        }
    }

    #[test]
    fn anything_against_itself_shows_nothing(tables in vec(table(), 1..8)) {
        let pairs: Vec<_> = tables.iter().map(|t| (run_values(t), run_values(t))).collect();
        let Some(paired) = Paired::between(&pairs) else { return Ok(()) };
        let test = lone_verdict(&paired);
        prop_assert_eq!((test.difference, test.verdict), (0.0, Verdict::NoEvidence));
        prop_assert!(test.p.is_none_or(|p| p == 1.0));
        prop_assert!(test.ci95.is_none_or(|ci| (ci.low(), ci.high()) == (0.0, 0.0)));
        prop_assert_eq!(test.p.is_none(), test.clusters == 1);
    }

    #[test]
    fn run_values_and_means_stay_finite(cells in vec(vec(weighted(0.8, wild()), 0..5), 0..6)) {
        let runs = run_values(&cells);
        prop_assert!(is_finite(&runs));
        prop_assert!(is_finite(&combined_runs(&[runs.clone(), runs.clone()])));
        prop_assert!(runs.gaps.missing <= runs.gaps.cells);
    }

    #[test]
    fn estimates_and_verdicts_stay_finite(family in vec(vec(wild(), 0..7), 0..5), share in wild()) {
        prop_assert!(family.iter().all(|v| is_finite(&interval(v).into_iter().collect::<Vec<_>>())));
        prop_assert!(family.iter().all(|v| is_finite(&level(v).into_iter().collect::<Vec<_>>())));
        let usable: Vec<Paired> = family.iter().filter_map(|values| Paired::new(values)).collect();
        let usable: Vec<Paired> = usable.into_iter().map(|paired| Paired { missing_share: share, ..paired }).collect();
        prop_assert!(is_finite(&verdicts(&usable)));
        prop_assert!(holm(&family.concat()).iter().all(|p| (0.0..=1.0).contains(p)));
    }

    #[test]
    fn reruns_and_retention_stay_finite(a in vec(vec(wild(), 0..5), 0..5), pairs in vec((wild(), wild()), 0..7)) {
        prop_assert!(is_finite(&rerun_interval(&a, None).ok().into_iter().collect::<Vec<_>>()));
        prop_assert!(is_finite(&rerun_interval(&a, Some(&a)).ok().into_iter().collect::<Vec<_>>()));
        let found = retention(&pairs);
        prop_assert!(is_finite(&found));
        // Clusters with the same ratio have a value, no interval and no reason.
        let is_same = |value: f64| pairs.iter().all(|(gain, span)| (gain - value * span).abs() <= 1e-6 * (1.0 + gain.abs()));
        prop_assert_eq!(found.ci95.is_none(), found.reason.is_some() || found.value.is_some_and(is_same));
        prop_assert!(found.ci95.zip(found.value).is_none_or(|(ci, value)| ci.contains(value)));
        prop_assert!(is_finite(&agreement(&pairs.iter().map(|pair| vec![*pair]).collect::<Vec<_>>())));
        prop_assert!(is_finite(&repeat_spread(&a).into_iter().collect::<Vec<_>>()));
    }

    #[test]
    fn components_stay_finite_and_add_up(
        rows in vec((0..4_usize, 0..3_usize, 0..3_usize, 0..2_usize, wild()), 0..40)
    ) {
        let observed: Vec<Observation> = rows
            .into_iter()
            .map(|(cluster, item, run, answer, value)| Observation { cluster, item, run, answer, value })
            .collect();
        let found = components(&observed);
        prop_assert!(is_finite(&found));
        prop_assert!(found.components.iter().all(|c| c.variance.is_none_or(|v| v >= 0.0)));
        if let Some(total) = found.classes.d6 {
            let sum: f64 = found.components.iter().filter_map(|c| c.estimate).sum();
            prop_assert!((sum - total).abs() <= 1e-6 * (1.0 + total.abs()) || total > 1e6);
        }
    }

    #[test]
    fn alpha_stays_finite_and_at_most_one(units in vec(vec(0..=5_u8, 0..5), 0..20)) {
        let found = krippendorff_alpha(&units);
        prop_assert!(is_finite(&found));
        prop_assert!(found.value.is_none_or(|value| value <= 1.0 + 1e-12));
    }

    #[test]
    fn holm_never_lowers_a_p_and_keeps_their_order(p in vec(0.0..=1.0, 0..12)) {
        let adjusted = holm(&p);
        for (i, one) in p.iter().enumerate() {
            prop_assert!(adjusted[i] >= *one);
            for (j, other) in p.iter().enumerate() {
                prop_assert!(one > other || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn the_exact_test_is_a_probability_whatever_the_order(clusters in vec(failures(), 0..7)) {
        let p = excess_failures_p(&clusters);
        prop_assert!((0.0..=1.0).contains(&p));
        let turned: Vec<FailureCounts> = clusters.iter().rev().copied().collect();
        prop_assert!(near(p, excess_failures_p(&turned)));
    }

    /// P(S >= s) + P(S <= s - 1) = 1, and the second is the tail of the sides swapped.
    #[test]
    fn the_tails_of_the_exact_test_add_up(clusters in vec(failures(), 1..7)) {
        let swapped: Vec<FailureCounts> = clusters.iter().map(swapped).collect();
        let sum = excess_failures_p(&clusters) + excess_failures_p(&swapped);
        prop_assert!(sum >= 1.0 - 1e-9, "both tails hold what was seen: {sum}");
        if let Some(at) = clusters.iter().position(|c| c.failed > 0 && c.baseline_failed < c.baseline_chains) {
            let mut fewer = clusters.clone();
            fewer[at].failed -= 1;
            fewer[at].baseline_failed += 1;
            let other: Vec<FailureCounts> = fewer.iter().map(self::swapped).collect();
            let rest = excess_failures_p(&other);
            prop_assert!(near(excess_failures_p(&clusters) + rest, 1.0), "as many failures, one fewer here: {rest}");
        }
    }

    /// Against the definition: every way to draw the failing chains of each cluster, counted one by one.
    #[test]
    fn the_exact_test_is_what_counting_all_draws_gives(clusters in vec(failures(), 1..4)) {
        let seen: usize = clusters.iter().map(|c| c.failed).sum();
        let mut draws: Vec<(usize, f64)> = vec![(0, 1.0)];
        for c in &clusters {
            let (chains, total) = (c.chains + c.baseline_chains, c.failed + c.baseline_failed);
            let ways: Vec<usize> = (0..1_u32 << chains)
                .filter(|set| set.count_ones() as usize == total)
                .map(|set| (set & ((1 << c.chains) - 1)).count_ones() as usize)
                .collect();
            let each = 1.0 / ways.len() as f64;
            draws = draws.iter().flat_map(|(sum, p)| ways.iter().map(move |k| (sum + k, p * each))).collect();
            draws.sort_by_key(|(sum, _)| *sum);
            let same = draws.chunk_by(|a, b| a.0 == b.0);
            draws = same.map(|same| (same[0].0, same.iter().map(|(_, p)| p).sum())).collect();
        }
        let counted: f64 = draws.iter().filter(|(sum, _)| *sum >= seen).map(|(_, p)| p).sum();
        prop_assert!(near(excess_failures_p(&clusters), counted));
    }

    #[test]
    fn more_failures_never_look_better(clusters in vec(failures(), 1..6), at in 0..6_usize) {
        let at = at % clusters.len();
        let mut worse = clusters.clone();
        if worse[at].failed < worse[at].chains && worse[at].baseline_failed > 0 {
            worse[at].failed += 1;
            worse[at].baseline_failed -= 1;
            prop_assert!(excess_failures_p(&worse) <= excess_failures_p(&clusters) + 1e-12);
        }
    }

    /// Holm rejects what the closed test by Bonferroni rejects: a p is adjusted to the largest, over all sets of
    /// hypotheses that hold it, of the smallest p of the set times its size.
    #[test]
    fn holm_is_the_closed_test_by_bonferroni(p in vec(0.0..=1.0_f64, 1..7)) {
        let adjusted = holm(&p);
        for (i, one) in adjusted.iter().enumerate() {
            let sets = (0..1_usize << p.len()).filter(|set| set >> i & 1 == 1);
            let adjusted_in_sets = sets.map(|set| {
                let members = p.iter().enumerate().filter(|(j, _)| set >> j & 1 == 1).map(|(_, p)| *p);
                (members.fold(1.0, f64::min) * f64::from(set.count_ones())).min(1.0)
            });
            prop_assert!(near(*one, adjusted_in_sets.fold(0.0, f64::max)));
        }
    }
}
