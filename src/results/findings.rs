//! What one result set shows about all its methods together: how far apart they are in each dimension, and whether
//! their order is the same in all parts of the set. Ceiling and floor are left out, because nobody chooses between
//! them.

use serde::{Deserialize, Serialize};

use super::Ordered;
use super::result_set::level::{OVERALL, ScoreEstimates};
use super::summary::{MethodSummary, Summary};
use stats::thresholds::MARGIN;

/// How far apart methods are, and where. These figures describe; they are no tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodFindings {
    /// The gap between the best and the worst method in `overall`, then in each dimension; empty for fewer than two
    /// methods.
    pub gaps: Ordered<MethodGap>,
    /// Whether the order is the same for all lengths of session; null where all sessions have one length.
    pub by_length: Option<OrderCheck>,
    /// Whether it is the same for all kinds of session (the tags of fixtures); null where there is only one kind.
    pub by_kind: Option<OrderCheck>,
}

/// The fewest probes on which methods are compared: with one or two, a difference may come from the question.
pub const FEWEST_PROBES: usize = 3;

/// The distance of the best method from the worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodGap {
    /// The method with the highest level; of equals the first.
    pub best: String,
    /// The method with the lowest level; of equals the first.
    pub worst: String,
    /// How far apart they are, in points.
    pub points: f64,
}

impl MethodGap {
    /// Whether the methods hardly differ: by less than a verdict needs.
    pub fn is_small(&self) -> bool {
        self.points < MARGIN
    }
}

/// Whether methods have the same order in all groups of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderCheck {
    /// How many groups were compared with the whole set.
    pub groups: usize,
    /// Groups in which two methods change places, where each leads by 0.3 points or more.
    pub reversed: Vec<String>,
}

/// The levels of a method in groups of sessions.
type GroupLevels = fn(&MethodSummary) -> &Ordered<ScoreEstimates>;

impl MethodFindings {
    /// Compares the methods of a summary.
    pub fn new(summary: &Summary) -> MethodFindings {
        if summary.probes < FEWEST_PROBES {
            return MethodFindings::default();
        }
        let candidates: Vec<(&String, &MethodSummary)> = summary
            .methods
            .iter()
            .filter(|(_, method)| !method.is_anchor() && method.overall.median.is_some())
            .collect();
        if candidates.len() < 2 {
            return MethodFindings::default();
        }
        let overall = candidates.iter().map(|(name, method)| (*name, method.overall.median));
        let mut gaps: Ordered<MethodGap> = gap(overall).map(|gap| (OVERALL.to_owned(), gap)).into_iter().collect();
        let dimensions = candidates.first().map(|(_, method)| &method.dimensions).into_iter().flatten();
        for (dimension, _) in dimensions {
            let levels = candidates
                .iter()
                .map(|(name, method)| (*name, method.dimensions.get(dimension).and_then(|level| level.median)));
            gaps.extend(gap(levels).map(|gap| (dimension.clone(), gap)));
        }
        // One session may have several tags, but it is one session.
        let is_several = summary.fixtures.len() > 1;
        MethodFindings {
            gaps,
            by_length: check_order(&candidates, |method| &method.by_length).filter(|_| is_several),
            by_kind: check_order(&candidates, |method| &method.by_tag).filter(|_| is_several),
        }
    }
}

/// The gap in one dimension; `None` unless two methods have a level.
fn gap<'n>(levels: impl Iterator<Item = (&'n String, Option<f64>)>) -> Option<MethodGap> {
    let known: Vec<(&String, f64)> = levels.filter_map(|(name, level)| Some((name, level?))).collect();
    let best = known.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    let worst = known.iter().copied().reduce(|worst, next| if next.1 < worst.1 { next } else { worst })?;
    (known.len() > 1).then(|| MethodGap { best: best.0.clone(), worst: worst.0.clone(), points: best.1 - worst.1 })
}

fn check_order(methods: &[(&String, &MethodSummary)], levels: GroupLevels) -> Option<OrderCheck> {
    let (_, first) = methods.first()?;
    let groups: Vec<&String> = levels(first).keys().collect();
    let reversed = groups.iter().filter(|group| is_reversed(methods, levels, group));
    let reversed = reversed.map(|group| (*group).clone()).collect();
    (groups.len() > 1).then_some(OrderCheck { groups: groups.len(), reversed })
}

/// Whether two methods change places in a group.
fn is_reversed(methods: &[(&String, &MethodSummary)], levels: GroupLevels, group: &str) -> bool {
    let pairs = methods.iter().flat_map(|(_, one)| methods.iter().map(move |(_, other)| (one, other)));
    let mut leads = pairs.filter_map(|(one, other)| {
        let whole = one.overall.median? - other.overall.median?;
        let [one, other] = [one, other].map(|method| levels(method).get(group)?.get(OVERALL)?.median);
        Some((whole, one? - other?))
    });
    leads.any(|(whole, part)| whole >= MARGIN && part <= -MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_between_the_first_best_and_the_first_worst_of_known_levels() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let of = |levels: [Option<f64>; 4]| gap(names.iter().zip(levels));
        let found = of([Some(3.0), Some(4.0), None, Some(3.0)]).unwrap();
        assert_eq!((found.best.as_str(), found.worst.as_str(), found.points), ("b", "a", 1.0));
        assert!(!found.is_small() && of([Some(3.0), Some(3.25), None, None]).unwrap().is_small());
        assert_eq!(of([None, Some(3.0), None, None]), None, "one method has no gap");
    }
}
