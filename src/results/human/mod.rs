//! Pairs grades by people with those of the judges, and compares them per dimension and overall. Pure.
//!
//! Ceiling and floor are not on a sheet: their answers are easy to grade and would inflate every coefficient.

mod sheet;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::sheet::answer_id;
pub use self::sheet::{GradedSheet, blind_sheet};
use crate::judge::Dimension;
use crate::pipeline::Problems;
use crate::results::aggregates::noise::judge_quality;
use crate::results::{Design, MethodInfo, ResultSet, Row};
use stats::{Agreement, Coefficient, RepeatSpread, agreement, mean, median};

/// How one judge, or the median of the panel, agrees with people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgeAgreement {
    /// The judge's name; `None` for the panel's median.
    pub judge: Option<String>,
    /// Over all dimensions.
    pub pooled: Agreement,
    /// By dimension.
    pub dimensions: BTreeMap<Dimension, Agreement>,
    /// How well the judge agrees with itself, over the whole result set; `None` where nothing was graded twice.
    pub against_itself: Option<RepeatSpread>,
}

/// A sheet that people filled in, compared with the judges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgreementResult {
    /// How many things people graded; several raters of one thing count once.
    pub graded: usize,
    /// Lines whose dimension no judge graded.
    pub unmatched: Vec<u64>,
    /// Each judge, then the panel's median if there are several judges.
    pub judges: Vec<JudgeAgreement>,
    /// How well the judges of a panel agree with each other, over the whole result set.
    pub alpha: Option<Coefficient>,
}

/// The rows of an answer by judge, one for each repeat.
type RowsByJudge = BTreeMap<String, Vec<Row>>;

/// These rows by the id of the answer.
type GradedAnswers = BTreeMap<String, RowsByJudge>;

/// Compares human grades with the `rows` of a result set.
///
/// # Errors
/// A row that cannot be read; all grades of answers that the result set does not have, with their lines.
pub fn compare_judges<E>(
    sheet: &GradedSheet,
    set: &ResultSet,
    rows: impl Iterator<Item = Result<Row, E>>,
) -> Result<Result<AgreementResult, Problems>, E> {
    let answers = graded_answers(sheet, set.design(), rows)?;
    Ok(match sheet.strangers(|id| answers.contains_key(id)) {
        Some(problems) => Err(problems),
        None => Ok(pair(sheet, set, &answers)),
    })
}

/// The rows of the answers that people graded, by the ids of the answers.
fn graded_answers<E>(
    sheet: &GradedSheet,
    design: &Design,
    rows: impl Iterator<Item = Result<Row, E>>,
) -> Result<GradedAnswers, E> {
    let wanted: BTreeSet<&str> = sheet.grades.iter().map(|grade| grade.id.as_str()).collect();
    let mut answers = GradedAnswers::new();
    for row in rows {
        let row = row?;
        let is_anchor = design
            .method(&row.method)
            .is_some_and(MethodInfo::is_anchor);
        if is_anchor || !design.is_tested(&row) {
            continue;
        }
        let id = answer_id(&row);
        if wanted.contains(id.as_str()) {
            let judges = answers.entry(id).or_default();
            judges.entry(row.judge.clone()).or_default().push(row);
        }
    }
    Ok(answers)
}

/// Pairs of (judge, people) by dimension and, in it, by answer.
type ScorePairs<'s> = BTreeMap<Dimension, BTreeMap<&'s str, Vec<(f64, f64)>>>;

fn pair<'s>(sheet: &'s GradedSheet, set: &ResultSet, answers: &GradedAnswers) -> AgreementResult {
    let quality = judge_quality(set);
    let mut by_judge: BTreeMap<&str, ScorePairs<'_>> = set
        .design()
        .judges
        .iter()
        .map(|judge| (judge.name.as_str(), ScorePairs::new()))
        .collect();
    let (mut panel, mut unmatched) = (ScorePairs::new(), Vec::new());
    let subjects = by_subject(sheet);
    for ((id, dimension), (line, scores)) in &subjects {
        let Some((human, judges)) = mean(scores).zip(answers.get(*id)) else {
            continue;
        };
        let grades = grades_of(judges, *dimension);
        if grades.is_empty() {
            unmatched.push(*line);
        }
        let add = |pairs: &mut ScorePairs<'s>, score| {
            let answers = pairs.entry(*dimension).or_default();
            answers.entry(*id).or_default().push((score, human));
        };
        for (judge, score) in &grades {
            add(by_judge.entry(judge).or_default(), *score);
        }
        if let Some(middle) = median(&grades.values().copied().collect::<Vec<_>>()) {
            add(&mut panel, middle);
        }
    }
    unmatched.sort_unstable();
    let mut judges: Vec<JudgeAgreement> = by_judge
        .iter()
        .map(|(judge, pairs)| {
            judge_agreement(Some(judge), pairs, quality.repeats.get(*judge).copied())
        })
        .collect();
    let is_panel = judges.len() > 1;
    judges.extend(is_panel.then(|| judge_agreement(None, &panel, None)));
    AgreementResult {
        graded: subjects.len(),
        unmatched,
        judges,
        alpha: quality.alpha,
    }
}

/// The scores that people gave each dimension of an answer, with the first line that names it.
type Subjects<'s> = BTreeMap<(&'s str, Dimension), (u64, Vec<f64>)>;

fn by_subject(sheet: &GradedSheet) -> Subjects<'_> {
    let mut subjects = Subjects::new();
    for grade in &sheet.grades {
        subjects
            .entry((&grade.id, grade.dimension))
            .or_insert_with(|| (grade.line, Vec::new()))
            .1
            .push(grade.score);
    }
    subjects
}

/// The score that each judge gave, as the mean over its repeats.
fn grades_of(judges: &RowsByJudge, dimension: Dimension) -> BTreeMap<&str, f64> {
    let means = judges.iter().filter_map(|(judge, rows)| {
        let scores = rows.iter().filter_map(|row| row.dimensions.get(&dimension));
        let scores: Vec<f64> = scores.copied().collect();
        Some((judge.as_str(), mean(&scores)?))
    });
    means.collect()
}

fn judge_agreement(
    judge: Option<&str>,
    pairs: &ScorePairs<'_>,
    against_itself: Option<RepeatSpread>,
) -> JudgeAgreement {
    let mut by_answer: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (answer, pairs) in pairs.values().flatten() {
        by_answer.entry(*answer).or_default().extend(pairs);
    }
    JudgeAgreement {
        judge: judge.map(str::to_owned),
        pooled: agree_by_answer(&by_answer),
        dimensions: pairs
            .iter()
            .map(|(dimension, groups)| (*dimension, agree_by_answer(groups)))
            .collect(),
        against_itself,
    }
}

fn agree_by_answer(groups: &BTreeMap<&str, Vec<(f64, f64)>>) -> Agreement {
    agreement(&groups.values().cloned().collect::<Vec<_>>())
}

#[cfg(test)]
mod agreement_tests;
