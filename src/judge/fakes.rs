//! Grades for the tests of this module and of the modules that use it.

use super::rubric::Rubric;
use super::score::{DimensionScores, Score, dimension_scores};
use base::locale::Locale;

/// The same score in every dimension.
pub(crate) fn all(score: f64) -> DimensionScores {
    let rubric = Rubric::built_in(Locale::En);
    let score = Score::new(score).expect("a score");
    dimension_scores(rubric, rubric.criteria().iter().map(|criterion| (&criterion.id, score)))
}
