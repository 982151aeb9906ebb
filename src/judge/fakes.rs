//! Grades for the tests of this module and of the modules that use it.

use super::criterion::Dimension;
use super::rubric::Rubric;
use super::score::{DimensionScores, Score, dimension_scores};
use base::locale::Locale;

/// A score for each dimension.
pub(crate) fn by_dimension(score: impl Fn(Dimension) -> f64) -> DimensionScores {
    let rubric = Rubric::built_in(Locale::En);
    let graded = |dimension| Score::new(score(dimension)).expect("a score");
    dimension_scores(rubric, rubric.criteria().iter().map(|criterion| (&criterion.id, graded(criterion.dimension))))
}
