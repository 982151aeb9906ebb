//! Where the noise comes from, how well judges agree, and whether they agree with literal rules on which answers have their
//! facts.
//!
//! If judge and rules disagree, one of the two is wrong about this method: answers state facts in words that the rules do
//! not know, or the judge accepts answers that lack them. Only answers count that literally have all expected facts or
//! none: if an answer has some of them, its grade in completeness and the rules do not mean the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::ActionKey;
use crate::judge::Dimension;
use crate::results::Ordered;
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::{AnswerAt, MeasuredAnswer};
use crate::results::result_set::scores::{MergedScores, Scores};
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

/// The fewest answers on which a difference is reported: with fewer, one answer makes more than five points.
const FEWEST_ANSWERS: usize = 20;

/// The difference of the shares above which a note is due.
const NOTABLE: f64 = 0.05;

/// `literal_check` of a method in `summary.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiteralCheck {
    /// The share of answers whose completeness judges grade as good.
    pub judge: f64,
    /// The share of answers that literally have the expected facts.
    pub literal: f64,
    /// How many answers count: those with all facts or none.
    pub answers: u64,
}

impl LiteralCheck {
    /// Checks the answers of a variant to the probes `kept`; `None` where no model graded, or too few answers count.
    pub(crate) fn new(set: &ResultSet, variant: usize, kept: &Subset) -> Option<LiteralCheck> {
        let judged = judged_present(set, variant);
        let measured = set
            .answers(variant)
            .iter()
            .filter(|measured| kept.contains(&measured.at.probe));
        let both: Vec<(f64, bool)> = measured
            .filter_map(|measured| Some((*judged.get(&measured.at)?, literal(measured)?)))
            .collect();
        let count = both.len() as f64;
        (both.len() >= FEWEST_ANSWERS).then(|| LiteralCheck {
            judge: both.iter().map(|(judge, _)| judge).sum::<f64>() / count,
            literal: both.iter().filter(|(_, literal)| *literal).count() as f64 / count,
            answers: both.len() as u64,
        })
    }

    /// Whether the two differ by more than 5 points.
    pub fn differs(&self) -> bool {
        // five points exactly are none, however they are rounded
        (self.judge - self.literal).abs() > NOTABLE + 1e-9
    }
}

/// Whether an answer literally has all its facts (true) or none (false); `None` if it has some, or if none are
/// expected.
fn literal(measured: &MeasuredAnswer) -> Option<bool> {
    let answered = measured.facts.iter().filter(|fact| fact.answered).count();
    match answered {
        _ if measured.facts.is_empty() => None,
        0 => Some(false),
        all if all == measured.facts.len() => Some(true),
        _ => None,
    }
}

/// By answer, the share of its grades in which a model calls it complete. Grades of the built-in rules do not count,
/// because these rules look at the literal facts, too.
fn judged_present(set: &ResultSet, variant: usize) -> BTreeMap<AnswerAt, f64> {
    let mut grades: BTreeMap<AnswerAt, Vec<bool>> = BTreeMap::new();
    for grade in set.grades(variant) {
        let is_model = set
            .design()
            .judges
            .get(grade.judge)
            .is_some_and(|judge| !judge.lexical);
        if let Some(completeness) = grade
            .dimensions
            .get(&Dimension::Completeness)
            .copied()
            .filter(|_| is_model)
        {
            grades
                .entry(grade.at)
                .or_default()
                .push(completeness >= GOOD);
        }
    }
    let shares = grades.into_iter().map(|(at, grades)| {
        let good = grades.iter().filter(|is_good| **is_good).count();
        (at, good as f64 / grades.len() as f64)
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::FactOutcome;
    use crate::results::fakes::{design, row};
    use crate::results::{FolderError, Manifest, Row, Summary, summarize};

    /// Answers to the probes of a fixture, each with its fact. The judge calls only the first `complete` of them
    /// complete.
    fn summary(probes: u32, complete: u32, is_by_rules: bool) -> Summary {
        let mut design = design(&[("mine", "command")], &[("a", probes)], 1);
        design
            .judges
            .iter_mut()
            .for_each(|judge| judge.lexical = is_by_rules);
        let answer = |number: u32| -> Result<Row, FolderError> {
            let score = if number > complete { 1.0 } else { 4.0 };
            Ok(Row {
                probe: format!("p{number}"),
                ..row("a", "mine", 1, &[(Dimension::Completeness, score)])
            })
        };
        let rows = (1..=probes).map(answer);
        summarize(
            &ResultSet::gather(Manifest::begin("l", "t", design), rows).expect("a set"),
            None,
        )
    }

    fn check(summary: &Summary) -> Option<LiteralCheck> {
        summary
            .methods
            .get("mine")
            .expect("the method")
            .literal_check
    }

    #[test]
    fn a_judge_that_misses_facts_which_are_there_differs_from_the_rules() {
        let found = check(&summary(20, 18, false)).expect("enough answers");
        assert_eq!((found.judge, found.literal, found.answers), (0.9, 1.0, 20));
        assert!(found.differs());
        assert!(
            !check(&summary(20, 19, false))
                .expect("enough answers")
                .differs(),
            "five points are no difference"
        );
    }

    #[test]
    fn too_few_answers_and_the_built_in_rules_show_nothing() {
        assert_eq!(check(&summary(19, 1, false)), None);
        assert_eq!(check(&summary(20, 1, true)), None);
    }

    #[test]
    fn an_answer_with_a_part_of_its_facts_does_not_count() {
        let mut design = design(&[("mine", "command")], &[("a", 20)], 1);
        design
            .judges
            .iter_mut()
            .for_each(|judge| judge.lexical = false);
        let answer = |number: u32| -> Result<Row, FolderError> {
            let mut row = row("a", "mine", 1, &[(Dimension::Completeness, 4.0)]);
            let missing = FactOutcome {
                answered: false,
                ..row.facts[0].clone()
            };
            row.facts.push(missing);
            Ok(Row {
                probe: format!("p{number}"),
                ..row
            })
        };
        let set = ResultSet::gather(Manifest::begin("l", "t", design), (1..=20).map(answer))
            .expect("a set");
        assert_eq!(check(&summarize(&set, None)), None);
    }
}
