//! A sheet of answers for people to grade, without the names of methods, models, runs and judges; and how well judges agree
//! with it, per dimension and overall. Pure.
//!
//! Ceiling and floor are not on a sheet: their answers are easy to grade and would inflate every coefficient.
//!
//! The id of an answer is a short digest of its place and its text, which reveals nothing to the grader, and which no
//! other answer in this place has. The lines are in the order of these ids, which mixes the methods. `judge agreement`
//! finds the places again from the results. An answer that several places share occurs once.
#![allow(
    clippy::result_large_err,
    reason = "a sheet is read once, and its problems are shown whole"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::action::{Digest, DigestBuilder};
use crate::judge::Dimension;
use crate::pipeline::{Problem, Problems, list};
use crate::results::aggregates::judges::judge_quality;
use crate::results::{Design, MethodInfo, ResultSet, Row};
use base::fault::suggestion;
use base::text::csv_cell;
use stats::thresholds::SCALE;
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
        if is_anchor || row.open_book.is_some() {
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

/// Answers on a sheet: enough for 30 pairs of each common dimension, and an hour or two of work.
const ANSWERS: usize = 40;

/// The maximum number of faults reported at once.
const MAX_FAULTS: usize = 20;

const HEADING: [&str; 7] = [
    "id",
    "dimension",
    "score",
    "question",
    "expected_facts",
    "answer",
    "comment",
];

/// The id that a blind sheet has for the answer of a row.
pub(super) fn answer_id(row: &Row) -> String {
    let mut builder = DigestBuilder::new("answer of a blind sheet");
    builder
        .field("fixture", &row.fixture)
        .field("method", &row.method)
        .field("probe", &row.probe);
    builder
        .field("answerer", &row.answerer)
        .field("answer", &row.answer);
    for number in [row.point, row.run, row.answer_n] {
        builder.field("number", number.to_le_bytes());
    }
    builder.finish().to_string().chars().take(12).collect()
}

/// Makes the sheet as CSV: a line for each graded dimension of an answer, with an empty score.
///
/// # Errors
/// A row that cannot be read.
pub fn blind_sheet<E>(
    design: &Design,
    rows: impl Iterator<Item = Result<Row, E>>,
) -> Result<Result<Vec<u8>, csv::Error>, E> {
    let mut answers: BTreeMap<String, Row> = BTreeMap::new();
    let mut seen: BTreeSet<Digest> = BTreeSet::new();
    for row in rows {
        let row = row?;
        let is_candidate = (design.method(&row.method)).is_some_and(|info| !info.is_anchor());
        if is_candidate && row.open_book.is_none() && seen.insert(row.keys.answer.0) {
            answers.insert(answer_id(&row), row);
            // Only those with the lowest ids are needed: a matrix may have more answers than fit into memory.
            if answers.len() > ANSWERS {
                answers.pop_last();
            }
        }
    }
    Ok(write_sheet(answers.into_iter()))
}

fn write_sheet(answers: impl Iterator<Item = (String, Row)>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADING)?;
    for (id, row) in answers {
        let facts: Vec<&str> = row.facts.iter().map(|fact| fact.fact.as_str()).collect();
        let facts = facts.join(" | ");
        let [question, facts, answer] =
            [&row.question, &facts, &row.answer].map(|text| csv_cell(text));
        for dimension in row.dimensions.keys().copied().map(Dimension::name) {
            writer.write_record([&*id, dimension, "", &*question, &*facts, &*answer, ""])?;
        }
    }
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(std::io::Error::other(error.to_string())))
}

/// The score of a dimension of an answer, as a person gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetGrade {
    /// Its line in the file, from 1, the heading included.
    pub line: u64,
    /// The id of the answer.
    pub id: String,
    pub dimension: Dimension,
    /// Who graded, if the file says.
    pub rater: Option<String>,
    /// From 0 to 5.
    pub score: f64,
}

/// A sheet that people filled in.
#[derive(Clone, Debug)]
pub struct GradedSheet {
    file: String,
    /// In the order of the file.
    pub grades: Vec<SheetGrade>,
}

/// The columns that are read; all others are for people.
#[derive(Deserialize)]
struct SheetLine<'r> {
    id: &'r str,
    dimension: &'r str,
    score: &'r str,
    rater: Option<&'r str>,
}

impl GradedSheet {
    /// Parses the content of `file`. Lines without a score are not filled in yet, and are left out.
    ///
    /// # Errors
    /// Every fault of the file, each with its line.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<GradedSheet, Problems> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        // The reader takes the line feed of Windows for the beginning of the next line, and would name the line before.
        let is_return = |at: usize| bytes.get(at..at + 2) == Some(b"\r\n");
        let kept = bytes.iter().enumerate().filter(|(at, _)| !is_return(*at));
        let bytes: Vec<u8> = kept.map(|(_, byte)| *byte).collect();
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(bytes.as_slice());
        let mut sheet = GradedSheet {
            file: file.to_owned(),
            grades: Vec::new(),
        };
        let headings = reader
            .headers()
            .map_err(|error| Problems(vec![sheet.unreadable(&error)]))?
            .clone();
        let missing = ["id", "dimension", "score"]
            .into_iter()
            .filter(|name| headings.iter().all(|heading| heading != *name));
        let missing: Vec<&str> = missing.collect();
        if !missing.is_empty() {
            let message = format!("the heading lacks {}", list(missing));
            return Err(Problems(vec![sheet.problem_at(1, message).help(shape())]));
        }
        let mut problems = Problems::default();
        for record in reader.records() {
            let read = record.map_err(|error| sheet.unreadable(&error));
            match read.and_then(|record| sheet.read_line(&record, &headings)) {
                Ok(grade) => sheet.grades.extend(grade),
                Err(problem) => problems.push(problem),
            }
        }
        if sheet.grades.is_empty() && problems.is_empty() {
            let none = "there are no grades in the file";
            problems.push(sheet.problem_at(1, none.to_owned()).help(shape()));
        }
        problems.0.extend(sheet.repeated());
        if problems.is_empty() {
            return Ok(sheet);
        }
        Err(sheet.first_of(problems))
    }

    fn read_line(
        &self,
        record: &csv::StringRecord,
        headings: &csv::StringRecord,
    ) -> Result<Option<SheetGrade>, Problem> {
        let line = record.position().map_or(1, csv::Position::line);
        let read: SheetLine<'_> = record
            .deserialize(Some(headings))
            .map_err(|error| self.unreadable(&error))?;
        if read.score.is_empty() {
            return Ok(None);
        }
        let mut known = Dimension::ALL.into_iter();
        let Some(dimension) = known.find(|known| known.name() == read.dimension) else {
            let message = format!("there is no dimension `{}`", read.dimension);
            let nearest = suggestion(read.dimension, &Dimension::ALL.map(Dimension::name));
            return Err(self.problem_at(line, message).help(nearest));
        };
        let (found, (low, high)) = (read.score, SCALE);
        let score = found.parse().ok();
        let Some(score) = score.filter(|score| (low..=high).contains(score)) else {
            let message = format!("the score is `{found}`: expected a number from {low} to {high}");
            return Err(self.problem_at(line, message));
        };
        let rater = read.rater.filter(|rater| !rater.is_empty());
        Ok(Some(SheetGrade {
            line,
            id: read.id.to_owned(),
            dimension,
            rater: rater.map(str::to_owned),
            score,
        }))
    }

    /// The lines that grade a thing again that the same person has graded.
    fn repeated(&self) -> Vec<Problem> {
        let mut first: BTreeMap<(&str, Dimension, Option<&str>), u64> = BTreeMap::new();
        let mut faults = Vec::new();
        for grade in &self.grades {
            let graded = (grade.id.as_str(), grade.dimension, grade.rater.as_deref());
            match first.get(&graded) {
                Some(line) => faults.push(
                    self.problem_at(grade.line, format!("this was graded on line {line} already"))
                        .help("keep one of them, or say who graded in a column `rater`: several people are averaged"),
                ),
                None => drop(first.insert(graded, grade.line)),
            }
        }
        faults
    }

    /// The grades of answers that the results do not have, with their lines.
    pub(super) fn strangers(&self, is_known: impl Fn(&str) -> bool) -> Option<Problems> {
        let strangers = self.grades.iter().filter(|grade| !is_known(&grade.id));
        let problems = strangers.map(|grade| {
            self.problem_at(
                grade.line,
                format!("the results have no answer `{}`", grade.id),
            )
            .help("name the result set that the sheet was written for by --label; if its answers have changed since, write \
                 the sheet again")
        });
        let problems: Vec<Problem> = problems.collect();
        (!problems.is_empty()).then(|| self.first_of(Problems(problems)))
    }

    /// The first of these problems; a file of another kind has one on every line.
    fn first_of(&self, mut problems: Problems) -> Problems {
        let more = problems.0.len().saturating_sub(MAX_FAULTS);
        problems.0.truncate(MAX_FAULTS);
        if more > 0 {
            problems.push(Problem::error(format!(
                "and {more} more faults in {}",
                self.file
            )));
        }
        problems
    }

    fn problem_at(&self, line: u64, message: String) -> Problem {
        Problem::error(message).at_position(
            &self.file,
            usize::try_from(line).unwrap_or(usize::MAX),
            1,
        )
    }

    fn unreadable(&self, error: &csv::Error) -> Problem {
        let line = error.position().map_or(1, csv::Position::line);
        let message = match error.kind() {
            csv::ErrorKind::Utf8 { .. } => "this line is not UTF-8 text".to_owned(),
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => format!("this line has {len} fields, and the heading has {expected_len}"),
            _ => error.to_string(),
        };
        self.problem_at(line, message).help(shape())
    }
}

/// Help for a file that is no sheet.
fn shape() -> &'static str {
    "`compeval judge agreement --blind-sheet FILE` writes a sheet to fill in"
}

#[cfg(test)]
mod agreement_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fakes::row;

    #[test]
    fn an_id_belongs_to_a_place_and_to_the_answer_in_it() {
        let answer = row("f1", "mine", 1, &[]);
        assert_eq!(answer_id(&answer), answer_id(&answer.clone()));
        assert_ne!(
            answer_id(&answer),
            answer_id(&Row {
                answer: "another".into(),
                ..answer.clone()
            })
        );
        assert_ne!(
            answer_id(&answer),
            answer_id(&Row {
                run: 2,
                ..answer.clone()
            })
        );
    }

    const LINES: &str = "id,dimension,score,question,rater\n";

    fn faults(text: &str) -> Vec<String> {
        GradedSheet::parse("l.csv", text.as_bytes())
            .expect_err("a fault")
            .0
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn columns_come_in_any_order_with_a_byte_order_mark_and_blank_scores_are_left_out() {
        let text = "\u{feff}score, comment,dimension,id\n4.5,fine,accuracy,a1\n,,accuracy,a2\n";
        let sheet = GradedSheet::parse("l.csv", text.as_bytes()).expect("sound");
        let [grade] = sheet.grades.as_slice() else {
            panic!("{sheet:?}")
        };
        assert_eq!((grade.line, grade.score, &*grade.id), (2, 4.5, "a1"));
        assert_eq!(grade.dimension, Dimension::Accuracy);
    }

    #[test]
    fn faults_name_their_lines() {
        let text = format!("{LINES}a,accuracy,4,q,\na,accuracy,6,q,\nb,acuracy,1,q,\na,x\n");
        assert_eq!(
            faults(&text),
            [
                "l.csv:3:1: the score is `6`: expected a number from 0 to 5",
                "l.csv:4:1: there is no dimension `acuracy`",
                "l.csv:5:1: this line has 2 fields, and the heading has 5",
            ]
        );
        assert_eq!(faults(&text.replace('\n', "\r\n")), faults(&text));
        assert!(faults(&format!("{LINES}a,accuracy,NaN,q,\n"))[0].contains("`NaN`"));
        assert_eq!(
            faults(""),
            ["l.csv:1:1: the heading lacks `id`, `dimension`, `score`"]
        );
        assert_eq!(
            faults(LINES),
            ["l.csv:1:1: there are no grades in the file"]
        );
        let many = faults(&format!("{LINES}{}", "a,accuracy,9,q,\n".repeat(50)));
        assert_eq!(many.len(), MAX_FAULTS + 1);
        assert!(many[MAX_FAULTS].contains("30 more faults"));
        assert!(!faults("PK\u{3}\u{4}\n").is_empty());
    }

    #[test]
    fn the_same_thing_is_graded_once_by_each_person() {
        let twice = format!("{LINES}a,accuracy,4,q,\na,accuracy,3,q,\n");
        assert_eq!(
            faults(&twice),
            ["l.csv:3:1: this was graded on line 2 already"]
        );
        let people = format!("{LINES}a,accuracy,4,q,ann\na,accuracy,3,q,ben\n");
        let sheet = GradedSheet::parse("l.csv", people.as_bytes()).expect("sound");
        assert_eq!(sheet.grades.len(), 2);
    }
}
