//! What the verdicts of a comparison were corrected for: how today's judges grade answers of the baseline, compared
//! with their grades then. A manifest keeps it, so that repeating a comparison sends nothing and gives the same verdicts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::judge::Dimension;
use stats::{Regrading, mean_of};

/// The scores of one answer by dimension.
pub type AnswerScores = BTreeMap<Dimension, f64>;

/// How the grades of baseline answers moved when they were graded again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regraded {
    /// The mean over the dimensions; `None` if none was measured both times.
    pub overall: Option<Regrading>,
    /// Each dimension that was measured both times.
    pub dimensions: BTreeMap<Dimension, Regrading>,
}

impl Regraded {
    /// Compares the scores of the same answers, then and today. `overall` is without the dimensions `left_out`.
    pub fn between(
        answers: &[(AnswerScores, AnswerScores)],
        left_out: &BTreeSet<Dimension>,
    ) -> Regraded {
        let overall = regrade(answers, |scores| {
            let kept = scores
                .iter()
                .filter(|(dimension, _)| !left_out.contains(dimension));
            mean_of(kept.map(|(_, score)| *score))
        });
        let dimensions = Dimension::ALL.into_iter().filter_map(|dimension| {
            Some((
                dimension,
                regrade(answers, |scores| scores.get(&dimension).copied())?,
            ))
        });
        Regraded {
            overall,
            dimensions: dimensions.collect(),
        }
    }

    /// The dimension with this name.
    pub fn dimension(&self, name: &str) -> Option<&Regrading> {
        self.dimensions
            .iter()
            .find(|(dimension, _)| dimension.name() == name)
            .map(|(_, regrading)| regrading)
    }
}

/// How a score moved, over the answers that have it both times.
fn regrade(
    answers: &[(AnswerScores, AnswerScores)],
    score: impl Fn(&AnswerScores) -> Option<f64>,
) -> Option<Regrading> {
    let both = answers
        .iter()
        .filter_map(|(then, today)| score(then).zip(score(today)));
    let (then, today): (Vec<f64>, Vec<f64>) = both.unzip();
    Regrading::between(&then, &today)
}

/// All regradings of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regradings {
    /// When the run of the baseline began: a later run under its label has other answers.
    pub baseline: String,
    /// For the mean over the tested methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Regraded>,
    /// By method of the judged side.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<String, Regraded>,
}

impl Regradings {
    /// Whether nothing was graded again.
    pub fn is_empty(&self) -> bool {
        self.primary.is_none() && self.methods.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_are_by_dimension_and_overall_without_what_is_left_out() {
        let scores = |accuracy, completeness| {
            AnswerScores::from([
                (Dimension::Accuracy, accuracy),
                (Dimension::Completeness, completeness),
            ])
        };
        let only = AnswerScores::from([(Dimension::Accuracy, 3.0)]);
        let answers = [
            (scores(4.0, 2.0), scores(3.0, 2.0)),
            (scores(5.0, 1.0), scores(3.0, 2.0)),
            (only.clone(), only),
        ];
        let all = Regraded::between(&answers, &BTreeSet::new());
        let shift = |found: Option<&Regrading>| found.map(|found| (found.answers, found.shift));
        assert_eq!(shift(all.dimension("accuracy")), Some((3, -1.0)));
        assert_eq!(shift(all.dimension("completeness")), Some((2, 0.5)));
        assert_eq!(shift(all.overall.as_ref()), Some((3, -1.0 / 3.0)));
        let accuracy = Regraded::between(&answers, &[Dimension::Completeness].into());
        assert_eq!(shift(accuracy.overall.as_ref()), Some((3, -1.0)));
        assert_eq!(all.dimension("continuity"), None);
        assert_eq!(
            Regraded::between(&[], &BTreeSet::new()),
            Regraded::default()
        );
    }
}
