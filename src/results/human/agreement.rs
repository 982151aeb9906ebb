//! Pairs grades by people with those of the judges, and compares them per dimension and overall. Pure.
//!
//! Ceiling and floor are left out, because their answers are easy to grade and would inflate every coefficient.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::grades::{GradeTarget, GradedAnswer, HumanGrade, HumanGrades};
use crate::action::ActionKey;
use crate::judge::Dimension;
use crate::pipeline::{Problem, Problems};
use crate::results::{Design, MethodInfo, Row};
use base::locale::localized;
use base::say;
use stats::{
    Agreement, Coefficient, RepeatSpread, agreement, krippendorff_alpha, mean, median,
    repeat_spread,
};

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

/// A file of human grades compared with the judges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgreementResult {
    /// How many things people graded; several raters of one thing count once.
    pub graded: usize,
    /// How many of these belong to ceiling or floor.
    pub excluded: usize,
    /// Lines whose cell no judge graded.
    pub unmatched: Vec<u64>,
    /// Each judge, then the panel's median if there are several judges.
    pub judges: Vec<JudgeAgreement>,
    /// How well the judges of a panel agree with each other, over the whole result set.
    pub alpha: Option<Coefficient>,
}

/// A judged cell without its number of judgement.
type AnswerId = (String, u32, String, u32, String, String, u32);

/// The parts of the rows that the comparison needs.
#[derive(Default)]
struct GradedRows {
    /// The answers that people graded: per judge, the grades of each repeat.
    cells: BTreeMap<AnswerId, BTreeMap<String, Vec<Row>>>,
    /// Scores of one criterion of one answer, per judge and judge action.
    repeats: BTreeMap<(AnswerId, String), BTreeMap<String, BTreeMap<ActionKey, u8>>>,
}

/// Compares human grades with the rows of a result set of this `design`.
///
/// # Errors
/// All names that the result set does not have, and all grades that fit several answers, with their lines.
pub fn compare_judges<E>(
    human: &HumanGrades,
    design: &Design,
    rows: impl Iterator<Item = Result<Row, E>>,
) -> Result<Result<AgreementResult, Problems>, E> {
    let human = &human.with_answerers(design);
    let faults: Vec<Problem> = human
        .grades
        .iter()
        .filter_map(|grade| find_unknown(human, design, grade))
        .collect();
    if !faults.is_empty() {
        return Ok(Err(Problems(faults)));
    }
    let graded = GradedRows::from_rows(human, design, rows)?;
    Ok(pair(human, design, &graded))
}

/// A name in a grade that the result set does not have.
fn find_unknown(human: &HumanGrades, design: &Design, grade: &HumanGrade) -> Option<Problem> {
    let GradedAnswer {
        fixture,
        point,
        method,
        run,
        probe,
        answerer,
        graded,
        ..
    } = &grade.subject;
    let names: Vec<&str> = design
        .fixtures
        .iter()
        .map(|fixture| fixture.name.as_str())
        .collect();
    let Some(info) = design.fixture(fixture) else {
        return Some(human.unknown_at(grade.line, localized("fixture", "样本"), fixture, &names));
    };
    let methods: Vec<&str> = design
        .methods
        .iter()
        .map(|method| method.name.as_str())
        .collect();
    let answerers: Vec<&str> = design
        .answerers
        .iter()
        .map(|answerer| answerer.name.as_str())
        .collect();
    let at_point = info.probes.iter().filter(|probe| probe.point == *point);
    let at_point: Vec<&str> = at_point.map(|probe| probe.id.as_str()).collect();
    let (kind, name, known): (&str, &str, Vec<&str>) = match graded {
        GradeTarget::Criterion(id) => (
            localized("criterion", "准则"),
            id,
            design
                .rubric
                .criteria
                .iter()
                .map(|c| c.id.0.as_ref())
                .collect(),
        ),
        GradeTarget::Dimension(name) => (
            localized("dimension", "维度"),
            name,
            Dimension::ALL.map(Dimension::name).to_vec(),
        ),
    };
    if !methods.contains(&method.as_str()) {
        return Some(human.unknown_at(grade.line, localized("method", "方法"), method, &methods));
    }
    if at_point.is_empty() {
        let problem = human.unknown_at(
            grade.line,
            localized("probes at point", "有问题的压缩点"),
            &point.to_string(),
            &[],
        );
        return Some(problem.help(localized("points count from 1", "压缩点从 1 计")));
    }
    if !at_point.contains(&probe.as_str()) {
        return Some(human.unknown_at(
            grade.line,
            &say!(
                "probe at point {point} of {fixture}",
                "{fixture} 压缩点 {point} 的问题"
            ),
            probe,
            &at_point,
        ));
    }
    if let Some(answerer) = answerer.as_deref().filter(|name| !answerers.contains(name)) {
        return Some(human.unknown_at(
            grade.line,
            localized("answerer", "作答模型"),
            answerer,
            &answerers,
        ));
    }
    if !known.contains(&name) {
        return Some(human.unknown_at(grade.line, kind, name, &known));
    }
    let runs = design.runs.compress;
    (*run > runs).then(|| {
        human.problem_at(
            grade.line,
            say!(
                "there is no run {run}: the results have {runs}",
                "没有第 {run} 次运行：结果共 {runs} 次"
            ),
        )
    })
}

impl GradedRows {
    fn from_rows<E>(
        human: &HumanGrades,
        design: &Design,
        rows: impl Iterator<Item = Result<Row, E>>,
    ) -> Result<GradedRows, E> {
        let wanted: BTreeSet<_> = human
            .grades
            .iter()
            .map(|grade| place(&grade.subject))
            .collect();
        let repeats = design.runs.judge > 1 || design.judges.len() > 1;
        let mut graded = GradedRows::default();
        for row in rows {
            let row = row?;
            if design
                .method(&row.method)
                .is_some_and(MethodInfo::is_anchor)
                || !design.is_tested(&row)
            {
                continue;
            }
            let answer = answer_of(&row);
            if repeats {
                graded.note_repeats(&answer, &row);
            }
            if wanted.contains(&(
                row.fixture.as_str(),
                row.point,
                row.method.as_str(),
                row.run,
                row.probe.as_str(),
            )) {
                graded
                    .cells
                    .entry(answer)
                    .or_default()
                    .entry(row.judge.clone())
                    .or_default()
                    .push(row);
            }
        }
        Ok(graded)
    }

    /// Notes the scores of a row. Judgements that share an action are one judgement.
    fn note_repeats(&mut self, answer: &AnswerId, row: &Row) {
        for scored in &row.criteria {
            let place = (answer.clone(), scored.criterion.to_string());
            let judges = self.repeats.entry(place).or_default();
            judges
                .entry(row.judge.clone())
                .or_default()
                .insert(row.keys.judge, points(scored.score().value()));
        }
    }

    fn against_itself(&self, judge: &str) -> Option<RepeatSpread> {
        let scores = self.repeats.values().filter_map(|judges| judges.get(judge));
        let lists = scores.map(|scores| scores.values().copied().map(f64::from).collect());
        repeat_spread(&lists.collect::<Vec<Vec<f64>>>())
    }

    /// Each judge's first judgement of a criterion is one observation.
    fn alpha(&self) -> Coefficient {
        let units = (self.repeats.values()).map(|judges| {
            judges
                .values()
                .filter_map(|scores| scores.values().next().copied())
                .collect()
        });
        krippendorff_alpha(&units.collect::<Vec<Vec<u8>>>())
    }
}

/// A judge's score as points: it is a whole number.
fn points(score: f64) -> u8 {
    score.round().clamp(0.0, 5.0) as u8
}

fn place(subject: &GradedAnswer) -> (&str, u32, &str, u32, &str) {
    (
        &subject.fixture,
        subject.point,
        &subject.method,
        subject.run,
        &subject.probe,
    )
}

fn answer_of(row: &Row) -> AnswerId {
    let Row {
        fixture,
        point,
        method,
        run,
        probe,
        answerer,
        answer_n,
        ..
    } = row;
    (
        fixture.clone(),
        *point,
        method.clone(),
        *run,
        probe.clone(),
        answerer.clone(),
        *answer_n,
    )
}

/// Pairs of (judge, people) by dimension and, in it, by answer.
type ScorePairs = BTreeMap<Dimension, BTreeMap<usize, Vec<(f64, f64)>>>;

fn pair(
    human: &HumanGrades,
    design: &Design,
    graded: &GradedRows,
) -> Result<AgreementResult, Problems> {
    let mut by_judge: BTreeMap<&str, ScorePairs> = design
        .judges
        .iter()
        .map(|j| (j.name.as_str(), ScorePairs::new()))
        .collect();
    let (mut panel, mut faults) = (ScorePairs::new(), Problems::default());
    let (mut excluded, mut unmatched) = (0, Vec::new());
    let subjects = by_subject(human);
    for (subject, (line, scores)) in &subjects {
        if design
            .method(&subject.method)
            .is_some_and(MethodInfo::is_anchor)
        {
            excluded += 1;
            continue;
        }
        let meant = match find_answer(graded, subject) {
            Ok(meant) => meant,
            Err(message) => {
                faults.push(human.problem_at(*line, message).help(localized(
                    "say which by the columns `answerer` and `answer_n`",
                    "请用 `answerer` 和 `answer_n` 列指明",
                )));
                continue;
            }
        };
        let (Some(dimension), Some(human)) = (dimension_of(design, &subject.graded), mean(scores))
        else {
            continue;
        };
        let (answer, judges) = meant.unzip();
        let answer = answer.unwrap_or_default();
        let grades = judges
            .map(|judges| grades_of(judges, &subject.graded))
            .unwrap_or_default();
        if grades.is_empty() {
            unmatched.push(*line);
        }
        for (judge, score) in &grades {
            let pairs = by_judge
                .entry(judge)
                .or_default()
                .entry(dimension)
                .or_default();
            pairs.entry(answer).or_default().push((*score, human));
        }
        if let Some(middle) = median(&grades.values().copied().collect::<Vec<_>>()) {
            panel
                .entry(dimension)
                .or_default()
                .entry(answer)
                .or_default()
                .push((middle, human));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    unmatched.sort_unstable();
    let mut judges: Vec<JudgeAgreement> = by_judge
        .iter()
        .map(|(judge, pairs)| judge_agreement(Some(judge), pairs, graded.against_itself(judge)))
        .collect();
    let is_panel = judges.len() > 1;
    judges.extend(is_panel.then(|| judge_agreement(None, &panel, None)));
    Ok(AgreementResult {
        graded: subjects.len(),
        excluded,
        unmatched,
        judges,
        alpha: is_panel.then(|| graded.alpha()),
    })
}

/// The scores that people gave each thing, with the first line that names it.
fn by_subject(human: &HumanGrades) -> BTreeMap<&GradedAnswer, (u64, Vec<f64>)> {
    let mut subjects: BTreeMap<&GradedAnswer, (u64, Vec<f64>)> = BTreeMap::new();
    for grade in &human.grades {
        subjects
            .entry(&grade.subject)
            .or_insert_with(|| (grade.line, Vec::new()))
            .1
            .push(grade.score);
    }
    subjects
}

/// The rows of an answer by judge.
type RowsByJudge = BTreeMap<String, Vec<Row>>;

/// The only answer that the person can have meant, with its number among all answers.
fn find_answer<'h>(
    graded: &'h GradedRows,
    subject: &GradedAnswer,
) -> Result<Option<(usize, &'h RowsByJudge)>, String> {
    let mut meant = graded.cells.iter().enumerate().filter(|(_, (answer, _))| {
        let (fixture, point, method, run, probe, answerer, number) = answer;
        (
            fixture.as_str(),
            *point,
            method.as_str(),
            *run,
            probe.as_str(),
        ) == place(subject)
            && subject
                .answerer
                .as_ref()
                .is_none_or(|wanted| wanted == answerer)
            && subject.answer_n.is_none_or(|wanted| wanted == *number)
    });
    let first = meant.next();
    match meant.count() {
        0 => Ok(first.map(|(number, (_, judges))| (number, judges))),
        more => Err(say!(
            "this fits {} answers to the probe",
            "这与该问题的 {} 个回答相符",
            more + 1
        )),
    }
}

fn dimension_of(design: &Design, graded: &GradeTarget) -> Option<Dimension> {
    match graded {
        GradeTarget::Criterion(id) => design
            .rubric
            .criteria
            .iter()
            .find(|c| *c.id.0 == **id)
            .map(|criterion| criterion.dimension),
        GradeTarget::Dimension(name) => Dimension::ALL
            .into_iter()
            .find(|dimension| dimension.name() == name),
    }
}

/// The score that each judge gave, as the mean over its repeats.
fn grades_of<'h>(judges: &'h RowsByJudge, graded: &GradeTarget) -> BTreeMap<&'h str, f64> {
    let means = judges.iter().filter_map(|(judge, rows)| {
        let scores: Vec<f64> = rows
            .iter()
            .filter_map(|row| score_of(row, graded))
            .collect();
        Some((judge.as_str(), mean(&scores)?))
    });
    means.collect()
}

fn score_of(row: &Row, graded: &GradeTarget) -> Option<f64> {
    match graded {
        GradeTarget::Criterion(id) => row
            .criteria
            .iter()
            .find(|scored| *scored.criterion.0 == **id)
            .map(|scored| scored.score().value()),
        GradeTarget::Dimension(name) => row
            .dimensions
            .iter()
            .find(|(d, _)| d.name() == name)
            .map(|(_, score)| *score),
    }
}

fn judge_agreement(
    judge: Option<&str>,
    pairs: &ScorePairs,
    against_itself: Option<RepeatSpread>,
) -> JudgeAgreement {
    let mut by_answer: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
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

fn agree_by_answer(groups: &BTreeMap<usize, Vec<(f64, f64)>>) -> Agreement {
    agreement(&groups.values().cloned().collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
