//! Where the noise comes from, and how well judges agree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::ActionKey;
use crate::judge::Dimension;
use crate::results::Ordered;
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::{MergedScores, Scores};
use crate::results::result_set::selection::Subset;
use stats::{self, Coefficient, Components, Observation, RepeatSpread};

/// The variance components of a variant, by dimension. Runs that repeat the same work count as one run.
pub(crate) fn components(
    scores: &Scores,
    variant: usize,
    kept: &Subset,
    deterministic: bool,
) -> Ordered<Components> {
    let graded: Vec<&MergedScores> = (scores.graded(variant).iter())
        .filter(|graded| kept.contains(&graded.at.probe) && (!deterministic || graded.at.run == 1))
        .collect();
    let by_dimension = Dimension::ALL.into_iter().filter_map(|dimension| {
        let observations: Vec<Observation> = graded
            .iter()
            .filter_map(|graded| observe(scores, graded, dimension))
            .collect();
        let components = stats::components(&observations);
        (!components.components.is_empty()).then(|| (dimension.name().to_owned(), components))
    });
    by_dimension.collect()
}

fn observe(scores: &Scores, graded: &MergedScores, dimension: Dimension) -> Option<Observation> {
    Some(Observation {
        cluster: scores.fixture_of(graded.at.probe)?,
        item: graded.at.probe,
        run: graded.at.run as usize,
        answer: graded.at.answer_n as usize,
        value: *graded.dimensions.get(&dimension)?,
    })
}

/// The average over variants, dimension by dimension.
pub(crate) fn average_components(variants: &[&Ordered<Components>]) -> Ordered<Components> {
    let by_dimension = Dimension::ALL.into_iter().filter_map(|dimension| {
        let chains: Vec<Components> = variants
            .iter()
            .filter_map(|variant| variant.get(dimension.name()).cloned())
            .collect();
        Some((dimension.name().to_owned(), Components::average(&chains)?))
    });
    by_dimension.collect()
}

/// The share of each component in the variance of scores, the mean over dimensions; the largest first. Empty where no
/// variance is known.
pub(crate) fn variance_shares(noise: &Ordered<Components>) -> Ordered<f64> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for component in noise.values().flat_map(|components| &components.components) {
        let Some(variance) = component.variance else {
            continue;
        };
        match sums.iter_mut().find(|(name, _)| *name == component.name) {
            Some((_, sum)) => *sum += variance,
            None => sums.push((component.name.clone(), variance)),
        }
    }
    let all: f64 = sums.iter().map(|(_, sum)| sum).sum();
    sums.retain(|_| all > 0.0);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums.into_iter()
        .map(|(name, sum)| (name, sum / all))
        .collect()
}

/// How well judges agree with one another, and each with itself. Ceiling and floor are left out, because they are easy
/// to grade and would raise the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeQuality {
    /// Krippendorff's ordinal alpha of the panel over all criteria; `None` with one judge.
    pub alpha: Option<Coefficient>,
    /// Each judge's spread over repeated grading of one answer; empty without repeats.
    pub repeats: Ordered<RepeatSpread>,
}

/// The scores of each unit (an answer, the number of a judgement, a criterion), one for each judge.
type Units = BTreeMap<(usize, u32, u16), Vec<u8>>;

pub(crate) fn judge_quality(set: &ResultSet) -> JudgeQuality {
    let design = set.design();
    let repeats = (design.judges.iter().enumerate())
        .filter(|_| design.runs.judge > 1)
        .filter_map(|(judge, asked)| Some((asked.name.clone(), repeat_spread(set, judge)?)))
        .collect();
    let alpha = (design.judges.len() > 1).then(|| {
        let units: Vec<Vec<u8>> = units(set).into_values().collect();
        stats::krippendorff_alpha(&units)
    });
    JudgeQuality { alpha, repeats }
}

fn units(set: &ResultSet) -> Units {
    let mut units = Units::new();
    let (mut answer, mut before) = (0, None);
    for grade in set
        .grades
        .iter()
        .filter(|grade| set.is_candidate(grade.at.variant))
    {
        if before != Some(grade.at) {
            answer += 1;
            before = Some(grade.at);
        }
        for (criterion, points) in &grade.points {
            units
                .entry((answer, grade.judge_n, *criterion))
                .or_default()
                .push(*points);
        }
    }
    units
}

/// Judgements that share an action are one judgement.
fn repeat_spread(set: &ResultSet, judge: usize) -> Option<RepeatSpread> {
    let mut repeats: BTreeMap<_, BTreeMap<ActionKey, f64>> = BTreeMap::new();
    for grade in set
        .grades
        .iter()
        .filter(|grade| grade.judge == judge && set.is_candidate(grade.at.variant))
    {
        for (criterion, points) in &grade.points {
            let of_criterion = repeats.entry((grade.at, *criterion)).or_default();
            of_criterion.insert(grade.keys[2], f64::from(*points));
        }
    }
    let repeats = repeats.values().map(|of| of.values().copied().collect());
    stats::repeat_spread(&repeats.collect::<Vec<Vec<f64>>>())
}
