//! How far the methods of a result set are apart in each dimension. Ceiling and floor are left out, because nobody
//! chooses between them.

use super::Ordered;
use super::result_set::level::OVERALL;
use super::summary::{MethodSummary, Summary};
use stats::thresholds::MARGIN;

/// The fewest probes on which methods are compared: with one or two, a difference may come from the question.
pub const FEWEST_PROBES: usize = 3;

/// The distance of the best method from the worst.
#[derive(Clone, Debug, PartialEq)]
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

/// The gap between the best and the worst method in `overall`, then in each dimension; empty for fewer than two methods.
/// Gaps describe; they are not tests.
pub fn method_gaps(summary: &Summary) -> Ordered<MethodGap> {
    let candidates: Vec<(&String, &MethodSummary)> = summary
        .methods
        .iter()
        .filter(|(_, method)| !method.is_anchor() && method.overall.median.is_some())
        .collect();
    if summary.probes < FEWEST_PROBES || candidates.len() < 2 {
        return Ordered::new();
    }
    let overall = candidates
        .iter()
        .map(|(name, method)| (*name, method.overall.median));
    let mut gaps: Ordered<MethodGap> = gap(overall)
        .map(|gap| (OVERALL.to_owned(), gap))
        .into_iter()
        .collect();
    let dimensions = candidates
        .first()
        .map(|(_, method)| &method.dimensions)
        .into_iter()
        .flatten();
    for (dimension, _) in dimensions {
        let levels = candidates.iter().map(|(name, method)| {
            (
                *name,
                method
                    .dimensions
                    .get(dimension)
                    .and_then(|level| level.median),
            )
        });
        gaps.extend(gap(levels).map(|gap| (dimension.clone(), gap)));
    }
    gaps
}

/// The gap in one dimension; `None` unless two methods have a level.
fn gap<'n>(levels: impl Iterator<Item = (&'n String, Option<f64>)>) -> Option<MethodGap> {
    let known: Vec<(&String, f64)> = levels
        .filter_map(|(name, level)| Some((name, level?)))
        .collect();
    let best = known
        .iter()
        .copied()
        .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    let worst = known
        .iter()
        .copied()
        .reduce(|worst, next| if next.1 < worst.1 { next } else { worst })?;
    (known.len() > 1).then(|| MethodGap {
        best: best.0.clone(),
        worst: worst.0.clone(),
        points: best.1 - worst.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_between_the_first_best_and_the_first_worst_of_known_levels() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let of = |levels: [Option<f64>; 4]| gap(names.iter().zip(levels));
        let found = of([Some(3.0), Some(4.0), None, Some(3.0)]).unwrap();
        assert_eq!(
            (found.best.as_str(), found.worst.as_str(), found.points),
            ("b", "a", 1.0)
        );
        assert!(!found.is_small() && of([Some(3.0), Some(3.25), None, None]).unwrap().is_small());
        assert_eq!(
            of([None, Some(3.0), None, None]),
            None,
            "one method has no gap"
        );
    }
}
