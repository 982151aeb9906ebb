//! The worst probes, with the judge's own words, and what lost them: the compression, the answerer, or nothing that was
//! there.

use serde::{Deserialize, Serialize};

use super::files::row::Row;
use super::result_set::scores::equal_range;
use super::result_set::{ProbePlace, ResultSet};
use crate::judge::{CriterionId, Score};
use crate::measure::{FactClass, FactOutcome};
use base::named_enum;

named_enum! {
    /// What lost a question.
    pub enum LossCause {
        /// The context lacks a fact that the answer needs.
        Compression = "compression",
        /// The context has the facts, and the answer does not.
        Answerer = "answerer",
        /// The transcript does not say, and the answer does.
        MadeUp = "made up",
    }
}

impl LossCause {
    /// The cause of a bad answer, from what became of its facts; `None` where that does not show it.
    pub(crate) fn from_facts(facts: &[FactOutcome], fabricated: Option<bool>) -> Option<LossCause> {
        let is_lost = |fact: &FactOutcome| fact.class == Some(FactClass::Lost);
        match fabricated {
            Some(true) => Some(LossCause::MadeUp),
            _ if facts.iter().any(is_lost) => Some(LossCause::Compression),
            _ => (facts.iter().any(|fact| fact.class.is_some())).then_some(LossCause::Answerer),
        }
    }

    /// Its place: what the compression lost comes first, what it did not lose last.
    pub(crate) fn rank(cause: Option<LossCause>) -> u8 {
        match cause {
            Some(LossCause::Compression) => 0,
            None => 1,
            Some(LossCause::Answerer | LossCause::MadeUp) => 2,
        }
    }
}

/// A probe on which a method does badly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstProbe {
    /// The name of the method.
    pub method: String,
    /// The probe.
    #[serde(flatten)]
    pub at: ProbePlace,
    /// Its question.
    pub question: String,
    /// The mean of the probe's overall score over all grades.
    pub score: f64,
    /// The criterion with the fewest points in the worst grade, and its points.
    pub criterion: Option<(CriterionId, u8)>,
    /// The judge's reason for these points.
    pub reasoning: String,
    /// Expected facts that the answer of the worst grade lacks.
    pub lacking: Vec<String>,
    /// What lost it, by that answer.
    pub cause: Option<LossCause>,
}

/// The `count` probes on which methods do worst, those first that the compression lost; of equals the first of the matrix.
/// Ceiling and floor are left out, and so are perfect scores. Each entry is the place of the row with the worst grade,
/// counted from 0, and the probe's score over all grades; [`WorstProbe::new`] adds the rest.
pub fn worst_rows(set: &ResultSet, count: usize) -> Vec<(usize, f64)> {
    let candidates = (0..set.variants.len()).filter(|variant| set.is_candidate(*variant));
    let candidates: Vec<usize> = candidates.collect();
    let mut worst = Vec::new();
    for probe in 0..set.probes.len() {
        worst.extend(
            candidates
                .iter()
                .filter_map(|variant| worst_row(set, *variant, probe)),
        );
    }
    // stable: equals stay in the order of the matrix
    worst.sort_by(|(cause, _, score), (other_cause, _, other)| {
        cause.cmp(other_cause).then(score.total_cmp(other))
    });
    let first = worst.into_iter().take(count);
    first.map(|(_, at, score)| (at, score)).collect()
}

/// The row of the worst grade of a probe, after the rank of what lost it and before the score; `None` where all is right.
fn worst_row(set: &ResultSet, variant: usize, probe: usize) -> Option<(u8, usize, f64)> {
    let grades = equal_range(set.grades(variant), |grade| grade.at.probe, probe);
    let scored = grades
        .iter()
        .filter_map(|grade| Some((grade, stats::mean_of(grade.dimensions.values().copied())?)));
    let score = stats::mean_of(scored.clone().map(|(_, score)| score));
    let score = score.filter(|score| *score < Score::MAX)?;
    let (worst, _) = scored.reduce(|worst, next| if next.1 < worst.1 { next } else { worst })?;
    let answers = equal_range(set.answers(variant), |measured| measured.at, worst.at);
    let cause = answers
        .first()
        .and_then(|measured| LossCause::from_facts(&measured.facts, measured.fabricated));
    Some((LossCause::rank(cause), worst.row, score))
}

impl WorstProbe {
    /// A probe whose worst grade is `row`, with its score over all grades.
    pub fn new(row: &Row, score: f64) -> WorstProbe {
        let lowest = row
            .criteria
            .iter()
            .min_by_key(|criterion| criterion.points());
        WorstProbe {
            method: row.method.clone(),
            at: ProbePlace::of_row(row),
            question: row.question.clone(),
            score,
            criterion: lowest.map(|criterion| (criterion.criterion.clone(), criterion.points())),
            reasoning: lowest
                .map(|criterion| criterion.reasoning.clone())
                .unwrap_or_default(),
            lacking: row
                .facts
                .iter()
                .filter(|fact| !fact.answered)
                .map(|fact| fact.fact.clone())
                .collect(),
            cause: LossCause::from_facts(&row.facts, row.fabricated),
        }
    }
}
