//! Scores: from criteria to dimensions to one number, and from a panel to its medians.
//!
//! What was not measured is absent, never zero.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::rubric::{CriterionId, Dimension, Rubric};

/// A score on the scale from 0 to 5; finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Score(f64);

impl Score {
    pub const MAX: f64 = 5.0;

    /// `None` off the scale.
    pub fn new(value: f64) -> Option<Score> {
        (0.0..=Score::MAX).contains(&value).then_some(Score(value))
    }

    pub fn value(self) -> f64 {
        self.0
    }
}

/// What one judge gave one criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriterionScore {
    /// The criterion, spelled as the rubric spells it.
    #[serde(rename = "criterionId")]
    pub criterion: CriterionId,
    #[serde(deserialize_with = "points")]
    score: u8,
    /// The judge's reason; empty where it gave none. Nothing is computed from it.
    #[serde(default)]
    pub reasoning: String,
}

/// Reads the points of a criterion.
///
/// # Errors
/// More than the scale has.
fn points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let score = u8::deserialize(deserializer)?;
    let message = || format!("{score} is not a score: expected a number from 0 to 5");
    (score <= 5)
        .then_some(score)
        .ok_or_else(|| D::Error::custom(message()))
}

impl CriterionScore {
    /// `None` if `score` is above 5.
    pub fn new(
        criterion: CriterionId,
        score: u8,
        reasoning: impl Into<String>,
    ) -> Option<CriterionScore> {
        (score <= 5).then(|| CriterionScore {
            criterion,
            score,
            reasoning: reasoning.into(),
        })
    }

    /// The whole number from 0 to 5 that was given.
    pub fn points(&self) -> u8 {
        self.score
    }

    /// The points as a [`Score`].
    pub fn score(&self) -> Score {
        Score(f64::from(self.score))
    }
}

/// One score for each dimension that was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DimensionScores([Option<Score>; Dimension::ALL.len()]);

impl DimensionScores {
    /// The score of `dimension`; `None` if no criterion measured it.
    pub fn get(&self, dimension: Dimension) -> Option<Score> {
        self.iter()
            .find(|(measured, _)| *measured == dimension)
            .map(|(_, score)| score)
    }

    /// The dimensions measured, in the order of tables.
    pub fn iter(&self) -> impl Iterator<Item = (Dimension, Score)> + '_ {
        Dimension::ALL
            .into_iter()
            .zip(&self.0)
            .filter_map(|(dimension, score)| Some((dimension, (*score)?)))
    }

    /// These scores without the dimensions that `is_kept` rejects.
    pub fn only(&self, is_kept: impl Fn(Dimension) -> bool) -> DimensionScores {
        let mut kept = *self;
        for (dimension, score) in Dimension::ALL.into_iter().zip(&mut kept.0) {
            *score = score.filter(|_| is_kept(dimension));
        }
        kept
    }

    /// The unweighted mean of the dimensions measured; `None` if there are none.
    pub fn overall(&self) -> Option<Score> {
        let values: Vec<f64> = self.iter().map(|(_, score)| score.0).collect();
        clamped(values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// Rounding must not push a mean of scores off the scale; what is not finite is not a score.
fn clamped(mean: f64) -> Option<Score> {
    mean.is_finite().then(|| Score(mean.clamp(0.0, Score::MAX)))
}

/// Each dimension's weighted mean over the criteria scored, weights renormalised over them. Criteria that are not
/// in the rubric are passed over.
pub fn dimension_scores<'a>(
    rubric: &Rubric,
    scores: impl IntoIterator<Item = (&'a CriterionId, Score)>,
) -> DimensionScores {
    let mut sums = [(0.0, 0.0); Dimension::ALL.len()];
    for (id, score) in scores {
        let Some(criterion) = rubric.criterion(id) else {
            continue;
        };
        for ((weights, total), _) in sums
            .iter_mut()
            .zip(Dimension::ALL)
            .filter(|(_, d)| *d == criterion.dimension)
        {
            *weights += criterion.weight;
            *total += criterion.weight * score.0;
        }
    }
    DimensionScores(sums.map(|(weights, total)| clamped(total / weights)))
}

/// The dimensions of one judge's reply.
pub fn grade(rubric: &Rubric, reply: &[CriterionScore]) -> DimensionScores {
    dimension_scores(
        rubric,
        reply
            .iter()
            .map(|scored| (&scored.criterion, scored.score())),
    )
}

/// A score for each dimension, for the tests of this module and of those that use it.
#[cfg(test)]
pub(crate) fn by_dimension(score: impl Fn(Dimension) -> f64) -> DimensionScores {
    let rubric = Rubric::built_in(base::locale::Locale::En);
    let scores = rubric.criteria().iter().map(|criterion| {
        (
            &criterion.id,
            Score::new(score(criterion.dimension)).expect("a score"),
        )
    });
    dimension_scores(rubric, scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::locale::Locale;
    use proptest::prelude::*;

    fn reply(scores: &[(&str, u8)]) -> Vec<CriterionScore> {
        scores
            .iter()
            .map(|(id, score)| CriterionScore::new((*id).into(), *score, "").unwrap())
            .collect()
    }

    fn graded(scores: &[(&str, u8)]) -> DimensionScores {
        grade(Rubric::built_in(Locale::En), &reply(scores))
    }

    fn close(score: Option<Score>, expected: f64) {
        let value = score.expect("a score").value();
        assert!(
            (value - expected).abs() < 1e-12,
            "{value} is not {expected}"
        );
    }

    #[test]
    fn a_dimension_is_the_weighted_mean_of_its_criteria_and_overall_the_mean_of_the_dimensions() {
        let scores = graded(&[
            ("accuracy_factual", 4),
            ("accuracy_technical", 3),
            ("artifact_files_created", 5),
            ("artifact_files_modified", 2),
            ("artifact_key_details", 1),
        ]);
        close(scores.get(Dimension::Accuracy), 0.6 * 4.0 + 0.4 * 3.0);
        close(
            scores.get(Dimension::ArtifactTrail),
            0.3 * 5.0 + 0.4 * 2.0 + 0.3 * 1.0,
        );
        close(scores.overall(), (3.6 + 2.6) / 2.0);
        assert_eq!(scores.iter().count(), 2);
    }

    #[test]
    fn weights_are_renormalised_over_what_was_scored() {
        let scores = graded(&[("continuity_work_state", 5), ("continuity_reasoning", 1)]);
        close(
            scores.get(Dimension::Continuity),
            (0.4 * 5.0 + 0.3 * 1.0) / 0.7,
        );
    }

    #[test]
    fn what_no_criterion_measured_is_absent() {
        let scores = graded(&[("accuracy_factual", 0)]);
        close(scores.get(Dimension::Accuracy), 0.0);
        assert_eq!(scores.get(Dimension::Continuity), None);
        assert_eq!(scores.iter().count(), 1);
        assert_eq!(graded(&[]).overall(), None);
    }

    #[test]
    fn off_the_scale_is_no_score() {
        assert_eq!(Score::new(5.1), None);
        assert_eq!(Score::new(f64::NAN), None);
        assert_eq!(Score::new(-1.0), None);
    }

    proptest! {
        #[test]
        fn every_mean_stays_within_its_scores(values in proptest::collection::vec(0u8..=5, 14)) {
            let rubric = Rubric::built_in(Locale::En);
            let ids: Vec<_> = rubric.criteria().iter().map(|c| &*c.id.0).zip(values.iter().copied()).collect();
            let overall = graded(&ids).overall().expect("scored").value();
            let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
            prop_assert!(overall >= f64::from(*low) - 1e-9 && overall <= f64::from(*high) + 1e-9);
        }
    }
}
