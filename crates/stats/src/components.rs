//! Where the noise comes from: the variance of nested repetitions, split by what was repeated.
//!
//! Items are measured within clusters; a run starts anew for all items of a cluster, answers are drawn anew within a
//! run and item, and an answer may be graded repeatedly. The estimator is that of mean squared differences of pairs
//! (Koch 1968, Technometrics 10): unbiased when cells are missing, and equal to the analysis of variance when none is.
//!
//! They are made of classes of pairs: how far two measured numbers lie apart, by what they have in common.

use serde::{Deserialize, Serialize};

use super::center::usable;
use super::thresholds::MIN_CLUSTERS_FOR_VARIANCE;
use base::named_enum;

/// The variance of one source of noise, or of several that the design cannot separate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// `judge`, `answer`, `compress_run`, `compress_probe`, `probe` or `fixture`; merged sources are joined by `+`.
    pub name: String,
    /// The unbiased estimate, which may be negative; `None` for a source whose pairs do not occur.
    pub estimate: Option<f64>,
    /// The variance to compute with: the estimate, or 0 if that is negative.
    pub variance: Option<f64>,
    /// Why there is no `variance`.
    pub reason: Option<NoComponent>,
}

named_enum! {
    /// Why a component has no variance to compute with.
    pub enum NoComponent {
        /// Its source was not repeated, or only together with another one.
        NotRepeated = "not repeated",
        /// Under four clusters.
        FewClusters = "not estimable from so few",
    }
}

/// All components of one measure, from the innermost out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Components {
    /// The classes of pairs they are made from.
    pub classes: PairClasses,
    /// The components; merged where the design cannot separate them. Empty without any observation.
    pub components: Vec<Component>,
    /// The number of clusters.
    pub clusters: usize,
}

impl Components {
    /// The component of this name.
    pub fn named(&self, name: &str) -> Option<&Component> {
        self.components
            .iter()
            .find(|component| component.name == name)
    }

    /// Averages several chains of work on the same design. A class of pairs that one chain lacks is missing in the
    /// average, and the number of clusters is the smallest of any chain. `None` without chains.
    pub fn average(chains: &[Components]) -> Option<Components> {
        let clusters = chains.iter().map(|chain| chain.clusters).min()?;
        let classes = PairClasses {
            d1: average_class(chains, |c| c.d1),
            d2: average_class(chains, |c| c.d2),
            d3: average_class(chains, |c| c.d3),
            d4: average_class(chains, |c| c.d4),
            d5: average_class(chains, |c| c.d5),
            d6: average_class(chains, |c| c.d6),
        };
        Some(Components {
            classes,
            components: solve(&classes, clusters),
            clusters,
        })
    }
}

fn average_class(chains: &[Components], class: fn(&PairClasses) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = chains.iter().map(|chain| class(&chain.classes)).collect();
    Some(values?.iter().sum::<f64>() / chains.len() as f64)
}

/// Splits the variance of one measure of one chain of work.
pub fn components(observations: &[Observation]) -> Components {
    let kept: Vec<Observation> = observations
        .iter()
        .copied()
        .filter(|o| usable(o.value))
        .collect();
    if kept.is_empty() {
        return Components::default();
    }
    let (classes, clusters) = pair_classes(kept);
    Components {
        components: solve(&classes, clusters),
        classes,
        clusters,
    }
}

const GRADING: &str = "judge";
const ANSWER: &str = "answer";
const RUN: &str = "compress_run";
const RUN_ITEM: &str = "compress_probe";
const ITEM: &str = "probe";
const CLUSTER: &str = "fixture";

/// Climbs from the innermost class of pairs outwards, subtracting what is explained so far.
fn solve(classes: &PairClasses, clusters: usize) -> Vec<Component> {
    let mut ladder = Ladder::default();
    ladder.climb_cell(classes);
    ladder.climb_cluster(classes);
    ladder.pending.push(CLUSTER);
    match classes.d6 {
        Some(d6) => ladder.reach(d6),
        None => ladder.give_up(),
    }
    for component in &mut ladder.components {
        if component.name.ends_with(CLUSTER) && clusters < MIN_CLUSTERS_FOR_VARIANCE {
            component.variance = None;
            component.reason = Some(NoComponent::FewClusters);
        }
    }
    ladder.components
}

/// The components found so far, the variance they explain together, and the sources not yet separated.
#[derive(Default)]
struct Ladder {
    components: Vec<Component>,
    explained: f64,
    pending: Vec<&'static str>,
}

impl Ladder {
    /// d1 = judge; d2 = judge + answer.
    fn climb_cell(&mut self, classes: &PairClasses) {
        self.pending.push(GRADING);
        if let Some(d1) = classes.d1 {
            self.reach(d1);
        }
        self.pending.push(ANSWER);
        if let Some(d2) = classes.d2 {
            self.reach(d2);
        }
    }

    /// d3 = inside + run_item + run; d4 = inside + run_item + item; d5 = inside + run_item + run + item.
    fn climb_cluster(&mut self, classes: &PairClasses) {
        let run = classes.d5.zip(classes.d4).map(|(d5, d4)| d5 - d4);
        if let Some(run) = run {
            self.push(RUN.to_owned(), run);
            self.explained += run;
        }
        self.pending.push(RUN_ITEM);
        if run.is_none() && (classes.d3.is_some() || classes.d5.is_some()) {
            self.pending.push(RUN);
        }
        // d3 leaves the items out, so it is a rung by itself wherever it occurs
        if let Some(d3) = classes.d3 {
            self.reach(d3);
        }
        self.pending.push(ITEM);
        if let Some(d5) = classes.d5 {
            self.reach(d5);
        } else if classes.d3.is_none() {
            if let Some(d4) = classes.d4 {
                self.reach(d4);
            }
            self.pending.push(RUN);
        }
    }

    /// Attributes to the pending sources what `level` has beyond the explained variance.
    fn reach(&mut self, level: f64) {
        let name = self.pending.join("+");
        self.push(name, level - self.explained);
        self.pending.clear();
        self.explained = level;
    }

    fn push(&mut self, name: String, estimate: f64) {
        let variance = Some(estimate.max(0.0));
        self.components.push(Component {
            name,
            estimate: Some(estimate),
            variance,
            reason: None,
        });
    }

    /// Leaves the pending sources without an estimate: they cannot be separated.
    fn give_up(&mut self) {
        let (name, reason) = (self.pending.join("+"), Some(NoComponent::NotRepeated));
        self.components.push(Component {
            name,
            estimate: None,
            variance: None,
            reason,
        });
    }
}

/// One measured number and what it was measured on. Items and runs are numbered within their cluster, answers within
/// their item and run. Observations that agree in all four numbers are repeated gradings of one answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The unit of evidence.
    pub cluster: usize,
    /// The item, crossed with the runs of its cluster.
    pub item: usize,
    /// The run, in which all items of the cluster start anew.
    pub run: usize,
    /// Which answer of this item in this run.
    pub answer: usize,
    /// The measured number; the observation is left out if it is not usable.
    pub value: f64,
}

/// Half the mean squared difference of all pairs of a class; `None` for a class without a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairClasses {
    /// Same answer, graded again.
    pub d1: Option<f64>,
    /// Same cluster, item and run; another answer.
    pub d2: Option<f64>,
    /// Same cluster and item; another run.
    pub d3: Option<f64>,
    /// Same cluster and run; another item.
    pub d4: Option<f64>,
    /// Same cluster; another run and another item.
    pub d5: Option<f64>,
    /// Another cluster.
    pub d6: Option<f64>,
}

/// The sum of squared differences over some pairs, and their number.
#[derive(Clone, Copy, Debug, Default)]
struct PairSum {
    squares: f64,
    count: f64,
}

impl PairSum {
    fn minus(self, other: PairSum) -> PairSum {
        PairSum {
            squares: self.squares - other.squares,
            count: self.count - other.count,
        }
    }

    fn plus(self, other: PairSum) -> PairSum {
        PairSum {
            squares: self.squares + other.squares,
            count: self.count + other.count,
        }
    }

    /// Half the mean square; 0 where rounding left it below.
    fn half_mean(self) -> Option<f64> {
        (self.count > 0.5).then(|| (self.squares / self.count / 2.0).max(0.0))
    }
}

/// The pairs within groups of observations that share a key and follow each other. In a group of n values the squared
/// differences of all pairs add up to n Σy² − (Σy)², so no pair is ever formed.
fn pairs_within<K: PartialEq>(
    observations: &[Observation],
    key: impl Fn(&Observation) -> K,
) -> PairSum {
    observations
        .chunk_by(|one, other| key(one) == key(other))
        .fold(PairSum::default(), |total, group| {
            let count = group.len() as f64;
            let sum: f64 = group.iter().map(|o| o.value).sum();
            let squares: f64 = group.iter().map(|o| o.value.powi(2)).sum();
            total.plus(PairSum {
                squares: count * squares - sum * sum,
                count: count * (count - 1.0) / 2.0,
            })
        })
}

/// The classes of pairs, computed as differences of nested groupings, and the number of clusters.
pub(super) fn pair_classes(mut observations: Vec<Observation>) -> (PairClasses, usize) {
    let center = observations.iter().map(|o| o.value).sum::<f64>() / observations.len() as f64;
    for observation in &mut observations {
        observation.value -= center;
    }
    observations.sort_by_key(|o| (o.cluster, o.item, o.run, o.answer));
    let answers = pairs_within(&observations, |o| (o.cluster, o.item, o.run, o.answer));
    let cells = pairs_within(&observations, |o| (o.cluster, o.item, o.run));
    let items = pairs_within(&observations, |o| (o.cluster, o.item));
    let clusters = pairs_within(&observations, |o| o.cluster);
    let all = pairs_within(&observations, |_| ());
    // runs are crossed with items
    observations.sort_by_key(|o| (o.cluster, o.run));
    let runs = pairs_within(&observations, |o| (o.cluster, o.run));
    let classes = PairClasses {
        d1: answers.half_mean(),
        d2: cells.minus(answers).half_mean(),
        d3: items.minus(cells).half_mean(),
        d4: runs.minus(cells).half_mean(),
        d5: clusters.minus(items).minus(runs).plus(cells).half_mean(),
        d6: all.minus(clusters).half_mean(),
    };
    (
        classes,
        observations
            .chunk_by(|one, other| one.cluster == other.cluster)
            .count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(cluster: usize, item: usize, run: usize, values: &[f64]) -> Vec<Observation> {
        values
            .iter()
            .map(|value| Observation {
                cluster,
                item,
                run,
                answer: 0,
                value: *value,
            })
            .collect()
    }

    fn estimate(found: &Components, name: &str) -> f64 {
        found
            .named(name)
            .and_then(|component| component.estimate)
            .expect(name)
    }

    fn names(found: &Components) -> Vec<&str> {
        found
            .components
            .iter()
            .map(|component| component.name.as_str())
            .collect()
    }

    fn worked() -> Vec<Observation> {
        [
            observed(1, 1, 1, &[4.0, 5.0]),
            observed(1, 1, 2, &[3.0, 4.0]),
            observed(1, 2, 1, &[3.0, 3.0]),
            observed(1, 2, 2, &[1.0, 2.0]),
            observed(2, 1, 1, &[5.0, 5.0]),
            observed(2, 1, 2, &[5.0, 4.0]),
            observed(2, 2, 1, &[2.0, 3.0]),
            observed(2, 2, 2, &[3.0, 3.0]),
        ]
        .concat()
    }

    #[test]
    fn the_worked_example_comes_out_exactly() {
        let result = components(&worked());
        let expected = PairClasses {
            d1: Some(0.3125),
            d2: None,
            d3: Some(0.625),
            d4: Some(2.0),
            d5: Some(2.3125),
            d6: Some(1.46875),
        };
        assert_eq!(result.classes, expected);
        assert_eq!(
            names(&result),
            [
                "judge",
                "compress_run",
                "answer+compress_probe",
                "probe",
                "fixture"
            ]
        );
        for (name, value) in [
            ("judge", 0.3125),
            ("compress_run", 0.3125),
            ("answer+compress_probe", 0.0),
            ("probe", 1.6875),
            ("fixture", -0.84375),
        ] {
            assert!((estimate(&result, name) - value).abs() < 1e-12, "{name}");
        }
        let fixture = result.named("fixture").unwrap();
        assert_eq!(
            (fixture.variance, fixture.reason),
            (None, Some(NoComponent::FewClusters))
        );
    }

    #[test]
    fn a_negative_estimate_is_kept_and_used_as_zero() {
        let equal_means =
            (0..4).flat_map(|g| [observed(g, 1, 1, &[0.0]), observed(g, 2, 1, &[2.0])].concat());
        let result = components(&equal_means.collect::<Vec<_>>());
        let last = result.components.last().unwrap();
        assert_eq!(last.name, "compress_run+fixture");
        assert!(last.estimate.unwrap() < 0.0);
        assert_eq!((last.variance, last.reason), (Some(0.0), None));
    }

    #[test]
    fn what_was_not_repeated_is_merged_and_named() {
        let single: Vec<Observation> = worked().into_iter().step_by(2).collect();
        assert_eq!(
            names(&components(&single))[..2],
            ["compress_run", "judge+answer+compress_probe"]
        );
        let one_run: Vec<Observation> = worked().into_iter().filter(|o| o.run == 1).collect();
        assert_eq!(
            names(&components(&one_run)),
            [
                "judge",
                "answer+compress_probe+probe",
                "compress_run+fixture"
            ]
        );
        let one_item: Vec<Observation> = worked().into_iter().filter(|o| o.item == 1).collect();
        assert_eq!(
            names(&components(&one_item)),
            [
                "judge",
                "answer+compress_probe+compress_run",
                "probe+fixture"
            ]
        );
        let one_cluster: Vec<Observation> =
            worked().into_iter().filter(|o| o.cluster == 1).collect();
        assert_eq!(
            components(&one_cluster).components.last().unwrap().estimate,
            None
        );
    }

    #[test]
    fn separate_answers_separate_the_answer() {
        let mut twice = worked();
        twice.extend(worked().into_iter().map(|o| Observation {
            answer: 1,
            value: o.value + 0.5,
            ..o
        }));
        let result = components(&twice);
        assert_eq!(
            names(&result),
            [
                "judge",
                "answer",
                "compress_run",
                "compress_probe",
                "probe",
                "fixture"
            ]
        );
        let sum: f64 = result.components.iter().filter_map(|c| c.estimate).sum();
        assert!((sum - result.classes.d6.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn an_average_lacks_what_one_of_its_chains_lacks() {
        let whole = components(&worked());
        let single = components(&worked().into_iter().step_by(2).collect::<Vec<_>>());
        assert_eq!(
            Components::average(&[whole.clone(), whole.clone()]),
            Some(whole.clone())
        );
        let both = Components::average(&[whole, single]).unwrap();
        assert_eq!(both.classes.d1, None);
        assert_eq!(names(&both)[1], "judge+answer+compress_probe");
        assert_eq!(Components::average(&[]), None);
    }

    #[test]
    fn nothing_usable_gives_no_components() {
        assert_eq!(components(&[]), Components::default());
        assert_eq!(
            components(&observed(1, 1, 1, &[f64::NAN, f64::INFINITY])),
            Components::default()
        );
        let one = components(&observed(1, 1, 1, &[3.0]));
        assert!(
            one.components
                .iter()
                .all(|component| component.estimate.is_none() && component.reason.is_some())
        );
    }

    /// The definition, pair by pair.
    fn half_mean_square(
        observations: &[Observation],
        class: impl Fn(&Observation, &Observation) -> bool,
    ) -> Option<f64> {
        let (mut squares, mut count) = (0.0, 0.0);
        for (index, a) in observations.iter().enumerate() {
            for b in observations.iter().skip(index + 1).filter(|b| class(a, b)) {
                squares += (a.value - b.value).powi(2);
                count += 1.0;
            }
        }
        (count > 0.0).then_some(squares / count / 2.0)
    }

    /// An unbalanced design with every class of pairs.
    fn uneven() -> Vec<Observation> {
        let value = |n: usize| (n * n % 17) as f64 / 3.0;
        (0..160_usize)
            .filter(|n| n % 7 != 3)
            .map(|n| Observation {
                cluster: n % 3,
                item: n / 3 % 4,
                run: n / 12 % 3,
                answer: n / 36 % 2,
                value: value(n),
            })
            .collect()
    }

    #[test]
    fn sums_over_groups_equal_sums_over_pairs() {
        let all = uneven();
        let (found, clusters) = pair_classes(all.clone());
        let same = |a: &Observation, b: &Observation| {
            (a.cluster == b.cluster, a.item == b.item, a.run == b.run)
        };
        let cases: [(Option<f64>, Option<f64>); 6] = [
            (
                found.d1,
                half_mean_square(&all, |a, b| {
                    same(a, b) == (true, true, true) && a.answer == b.answer
                }),
            ),
            (
                found.d2,
                half_mean_square(&all, |a, b| {
                    same(a, b) == (true, true, true) && a.answer != b.answer
                }),
            ),
            (
                found.d3,
                half_mean_square(&all, |a, b| same(a, b) == (true, true, false)),
            ),
            (
                found.d4,
                half_mean_square(&all, |a, b| same(a, b) == (true, false, true)),
            ),
            (
                found.d5,
                half_mean_square(&all, |a, b| same(a, b) == (true, false, false)),
            ),
            (
                found.d6,
                half_mean_square(&all, |a, b| a.cluster != b.cluster),
            ),
        ];
        for (place, (fast, slow)) in cases.into_iter().enumerate() {
            assert!(
                (fast.unwrap() - slow.unwrap()).abs() < 1e-9,
                "class {}",
                place + 1
            );
        }
        assert_eq!(clusters, 3);
    }

    #[test]
    fn a_class_without_a_pair_is_unknown() {
        let (found, _) = pair_classes(vec![Observation {
            cluster: 0,
            item: 0,
            run: 0,
            answer: 0,
            value: 2.0,
        }]);
        assert_eq!(found, PairClasses::default());
    }
}
