//! Where the noise comes from, and how well judges agree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, BuiltInStrategy};
use crate::judge::Dimension;
use crate::results::Ordered;
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::{AnswerAt, MeasuredAnswer, MergedScores, Scores};
use crate::results::result_set::selection::Subset;
use stats::thresholds::GOOD;
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
    /// What each judge and the literal rules say of the answers from the whole transcript.
    pub on_full: Vec<LiteralCheck>,
}

/// How often a judge calls answers from the whole transcript complete, and how often they literally have all their facts.
/// Where the two differ much, either the judge accepts answers without the facts or rejects them with these, or the answers
/// state the facts in words that the rules do not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiteralCheck {
    /// Its name.
    pub judge: String,
    /// The share of answers whose completeness it grades as good.
    pub complete: f64,
    /// The share of answers that literally have all their facts.
    pub literal: f64,
    /// How many answers count: those that literally have all facts or none. Of the others, the grade in completeness and the
    /// rules do not say the same.
    pub answers: u64,
}

impl LiteralCheck {
    /// Whether the two differ by more than 20 points.
    pub fn differs(&self) -> bool {
        // 20 points exactly are none, however they are rounded
        (self.complete - self.literal).abs() > 0.2 + 1e-9
    }
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
    let on_full = (design.judges.iter().enumerate())
        .filter(|(_, asked)| !asked.lexical)
        .filter_map(|(judge, asked)| literal_check(set, judge, &asked.name))
        .collect();
    JudgeQuality {
        alpha,
        repeats,
        on_full,
    }
}

/// What a judge and the literal rules say of the answers from the whole transcript; `None` with under 20 of them, because one
/// answer would make more than five points.
fn literal_check(set: &ResultSet, judge: usize, name: &str) -> Option<LiteralCheck> {
    const FEWEST: usize = 20;
    let full = BuiltInStrategy::Full.name();
    let variants = (0..set.variants.len())
        .filter(|at| set.method(*at).is_some_and(|info| info.strategy == full));
    let mut found = Vec::new();
    for variant in variants {
        let graded: BTreeMap<AnswerAt, f64> = (set.grades(variant).iter())
            .filter(|grade| grade.judge == judge)
            .filter_map(|grade| Some((grade.at, *grade.dimensions.get(&Dimension::Completeness)?)))
            .collect();
        let answers = set.answers(variant).iter();
        found.extend(answers.filter_map(|answer| {
            let complete = *graded.get(&answer.at)? >= GOOD;
            Some((complete, has_all_or_none(answer)?))
        }));
    }
    let share = |is: fn(&(bool, bool)) -> bool| {
        found.iter().filter(|pair| is(pair)).count() as f64 / found.len() as f64
    };
    (found.len() >= FEWEST).then(|| LiteralCheck {
        judge: name.to_owned(),
        complete: share(|(complete, _)| *complete),
        literal: share(|(_, literal)| *literal),
        answers: found.len() as u64,
    })
}

/// Whether an answer literally has all its facts (true) or none (false); `None` if it has some, or if none are expected.
fn has_all_or_none(answer: &MeasuredAnswer) -> Option<bool> {
    let mut found = answer.facts.iter().map(|fact| fact.answered);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fakes::{design, row};
    use crate::results::{FolderError, Manifest, Row, Summary, summarize};

    /// Answers from the whole transcript, each with its fact. The judge calls only the first `complete` of them complete.
    fn summary(probes: u32, complete: u32, is_by_rules: bool) -> Summary {
        let mut design = design(&[("whole", "full")], &[("a", probes)], 1);
        (design.judges.iter_mut()).for_each(|judge| judge.lexical = is_by_rules);
        let answer = |number: u32| -> Result<Row, FolderError> {
            let score = if number > complete { 1.0 } else { 4.0 };
            Ok(Row {
                probe: format!("p{number}"),
                ..row("a", "whole", 1, &[(Dimension::Completeness, score)])
            })
        };
        let rows = (1..=probes).map(answer);
        summarize(
            &ResultSet::gather(Manifest::begin("l", "t", design), rows).expect("a set"),
            None,
        )
    }

    #[test]
    fn a_judge_that_misses_facts_which_are_there_differs_from_the_rules() {
        let found = &summary(20, 15, false).judges.on_full;
        let [check] = &found[..] else {
            panic!("one judge: {found:?}")
        };
        assert_eq!(
            (check.complete, check.literal, check.answers),
            (0.75, 1.0, 20)
        );
        assert!(check.differs());
        let at_the_bound = summary(20, 16, false).judges.on_full;
        assert!(!at_the_bound[0].differs(), "20 points are no difference");
    }

    #[test]
    fn too_few_answers_and_the_built_in_rules_show_nothing() {
        assert_eq!(summary(19, 1, false).judges.on_full, []);
        assert_eq!(summary(20, 1, true).judges.on_full, []);
    }
}
