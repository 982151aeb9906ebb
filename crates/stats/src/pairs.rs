//! Classes of pairs: how far two measured numbers lie apart, by what they have in common.

use serde::{Deserialize, Serialize};

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
