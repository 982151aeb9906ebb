//! What one result set shows about its methods as a whole: how far they lie apart in each dimension, and whether their
//! order is the same in all parts of the set. Ceiling and floor are no methods to choose from, so they take no part.

use serde::{Deserialize, Serialize};

use super::Ordered;
use super::result_set::level::{OVERALL, ScoreEstimates};
use super::summary::{MethodSummary, Summary};
use stats::thresholds::MARGIN;

/// How far methods lie apart, and where. Descriptions, not tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodFindings {
    /// From the best to the worst method: of `overall`, then of each dimension; empty for under two methods.
    pub gaps: Ordered<MethodGap>,
    /// Whether the order holds by length of session; null where all sessions have one length.
    pub by_length: Option<OrderCheck>,
    /// Whether it holds by kind of session, which fixtures have as tags; null where there is only one.
    pub by_kind: Option<OrderCheck>,
}

/// Fewest probes on which methods are compared: of one or two, every difference is the question's.
pub const FEWEST_PROBES: usize = 3;

/// The distance of the best method from the worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodGap {
    /// The method of the highest level; the first of equals.
    pub best: String,
    /// The method of the lowest level; the first of equals.
    pub worst: String,
    /// How far apart they are, in points.
    pub points: f64,
}

impl MethodGap {
    /// Whether methods hardly differ: by less than what is worth a verdict.
    pub fn is_small(&self) -> bool {
        self.points < MARGIN
    }
}

/// Whether methods have the same order in all groups of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderCheck {
    /// How many groups were compared with the whole.
    pub groups: usize,
    /// Groups with two methods the other way round, each time by 0.3 points or more.
    pub reversed: Vec<String>,
}

/// The levels of a method in groups of sessions.
type GroupLevels = fn(&MethodSummary) -> &Ordered<ScoreEstimates>;

impl MethodFindings {
    /// From the methods of a summary.
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
        // The tags of one session are no kinds of session.
        let is_several = summary.fixtures.len() > 1;
        MethodFindings {
            gaps,
            by_length: check_order(&candidates, |method| &method.by_length).filter(|_| is_several),
            by_kind: check_order(&candidates, |method| &method.by_tag).filter(|_| is_several),
        }
    }
}

/// The gap of one dimension; `None` unless two methods have a level.
fn gap<'n>(levels: impl Iterator<Item = (&'n String, Option<f64>)>) -> Option<MethodGap> {
    let known: Vec<(&String, f64)> = levels.filter_map(|(name, level)| Some((name, level?))).collect();
    let best = known.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    let worst = known.iter().copied().reduce(|worst, next| if next.1 < worst.1 { next } else { worst })?;
    let found = MethodGap { best: best.0.clone(), worst: worst.0.clone(), points: best.1 - worst.1 };
    (known.len() > 1).then_some(found)
}

fn check_order(methods: &[(&String, &MethodSummary)], levels: GroupLevels) -> Option<OrderCheck> {
    let (_, first) = methods.first()?;
    let groups: Vec<&String> = levels(first).keys().collect();
    let reversed = groups.iter().filter(|group| is_reversed(methods, levels, group));
    let reversed = reversed.map(|group| (*group).clone()).collect();
    (groups.len() > 1).then_some(OrderCheck { groups: groups.len(), reversed })
}

/// Whether two methods are the other way round in a group.
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
