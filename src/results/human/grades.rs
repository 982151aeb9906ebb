//! Human grades from a CSV file: every row checked, every fault with its line.

use std::collections::BTreeMap;

use super::blind_sheet::answer_id;
use crate::pipeline::{Problem, Problems, list};
use crate::results::{Design, Row};
use base::fault::suggestion;
use base::locale::localized;
use base::say;
use stats::thresholds::SCALE;

/// The columns that are read. Those in `NEEDED` must be there, and one of `criterion` and `dimension`.
const COLUMNS: [&str; 12] = [
    "id",
    "fixture",
    "point",
    "method",
    "run",
    "probe",
    "criterion",
    "dimension",
    "score",
    "answerer",
    "answer_n",
    "rater",
];
const NEEDED: [&str; 6] = ["fixture", "point", "method", "run", "probe", "score"];
/// Columns for people, which are not read.
const IGNORED: [&str; 4] = ["comment", "question", "expected_facts", "answer"];
/// The maximum number of faults reported at once; a file of another kind has one on every line.
const MAX_FAULTS: usize = 20;

/// Help for a file whose columns are wrong.
fn shape() -> &'static str {
    localized(
        "the columns are fixture, point, method, run, probe, criterion (or dimension), score; and if need \
         be answerer, answer_n, rater, comment; or those of `judge agreement --blind-sheet FILE`",
        "列为 fixture、point、method、run、probe、criterion（或 dimension）、score；需要时另有 answerer、answer_n、rater、comment；或 `judge agreement --blind-sheet FILE` 的列",
    )
}

/// What a person graded of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GradeTarget {
    /// One criterion.
    Criterion(String),
    /// A whole dimension.
    Dimension(String),
}

/// The answer that a person graded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GradedAnswer {
    /// The id of the answer on a blind sheet; the other fields are then empty until [`HumanGrades::resolve`] fills
    /// them.
    pub id: Option<String>,
    pub fixture: String,
    pub point: u32,
    pub method: String,
    pub run: u32,
    pub probe: String,
    pub answerer: Option<String>,
    /// Needed where a run holds several answers to the probe.
    pub answer_n: Option<u32>,
    pub graded: GradeTarget,
}

impl GradedAnswer {
    fn from_id(id: String, graded: GradeTarget) -> GradedAnswer {
        let (fixture, method, probe) = (String::new(), String::new(), String::new());
        GradedAnswer {
            id: Some(id),
            fixture,
            point: 1,
            method,
            run: 1,
            probe,
            answerer: None,
            answer_n: None,
            graded,
        }
    }

    /// The answer of a row, with the same target.
    fn at(&self, row: &Row) -> GradedAnswer {
        GradedAnswer {
            id: None,
            fixture: row.fixture.clone(),
            point: row.point,
            method: row.method.clone(),
            run: row.run,
            probe: row.probe.clone(),
            answerer: Some(row.answerer.clone()),
            answer_n: Some(row.answer_n),
            graded: self.graded.clone(),
        }
    }
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct HumanGrade {
    /// From 1, the heading included.
    pub line: u64,
    pub subject: GradedAnswer,
    /// Who graded, if the file says.
    pub rater: Option<String>,
    /// From 0 to 5.
    pub score: f64,
}

/// A file of human grades.
#[derive(Clone, Debug)]
pub struct HumanGrades {
    file: String,
    /// In the order of the file.
    pub grades: Vec<HumanGrade>,
}

impl HumanGrades {
    /// Parses the content of `file`.
    ///
    /// # Errors
    /// Every fault of the file, each with its line.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<HumanGrades, Problems> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(without_mark(bytes));
        let headings = reader
            .headers()
            .map_err(|error| Problems(vec![unreadable(file, &error)]))?
            .clone();
        let columns = find_columns(file, &headings)?;
        let (mut human, mut problems) = (
            HumanGrades {
                file: file.to_owned(),
                grades: Vec::new(),
            },
            Problems::default(),
        );
        for record in reader.records() {
            match record {
                // A line of a sheet that is not filled in yet.
                Ok(record) if columns.is_blank(&record) => {}
                Ok(record) => match columns.parse(&record) {
                    Ok(grade) => human.grades.push(grade),
                    Err((line, message)) => problems.push(human.problem_at(line, message)),
                },
                Err(error) => problems.push(unreadable(file, &error)),
            }
        }
        if human.grades.is_empty() && problems.is_empty() {
            problems.push(
                human
                    .problem_at(
                        1,
                        localized("there are no grades in the file", "文件中没有评分").to_owned(),
                    )
                    .help(shape()),
            );
        }
        problems.0.extend(human.repeated());
        human.ok_or_problems(problems)
    }

    /// The grades, or the first of their problems if there are any.
    pub fn ok_or_problems(self, mut problems: Problems) -> Result<HumanGrades, Problems> {
        if problems.is_empty() {
            return Ok(self);
        }
        let more = problems.0.len().saturating_sub(MAX_FAULTS);
        problems.0.truncate(MAX_FAULTS);
        if more > 0 {
            problems.push(Problem::error(say!(
                "and {more} more faults in {}",
                "另有 {more} 处错误，在 {} 中",
                self.file
            )));
        }
        Err(problems)
    }

    /// Whether a line names its answer by the id of a blind sheet.
    pub fn is_blind(&self) -> bool {
        self.grades.iter().any(|grade| grade.subject.id.is_some())
    }

    /// Finds, among `rows`, the answers that the ids of a blind sheet stand for.
    ///
    /// # Errors
    /// A row that cannot be read; all ids that no answer has, with their lines.
    pub fn resolve<E>(
        self,
        rows: impl Iterator<Item = Result<Row, E>>,
    ) -> Result<Result<HumanGrades, Problems>, E> {
        let mut answers: BTreeMap<String, Row> = BTreeMap::new();
        for row in rows {
            let row = row?;
            answers.entry(answer_id(&row)).or_insert(row);
        }
        let (mut human, mut problems) = (
            HumanGrades {
                file: self.file,
                grades: Vec::new(),
            },
            Problems::default(),
        );
        for grade in self.grades {
            match grade.subject.id.as_ref().map(|id| (id, answers.get(id))) {
                None => human.grades.push(grade),
                Some((_, Some(row))) => {
                    human.grades.push(HumanGrade { subject: grade.subject.at(row), ..grade });
                }
                Some((id, None)) => problems.push(
                    human
                        .problem_at(grade.line, say!("the results have no answer `{id}`", "结果中没有回答 `{id}`"))
                        .help(localized(
                            "name the result set that the sheet was written for by --label; if its answers have changed \
                             since, write the sheet again",
                            "请用 --label 指定该表所对应的结果集；若其回答已改变，请重新写出评分表",
                        )),
                ),
            }
        }
        Ok(human.ok_or_problems(problems))
    }

    /// Splits `METHOD/ANSWERER`, the name that tables have for a method with several answerers, into both names.
    pub fn with_answerers(&self, design: &Design) -> HumanGrades {
        let mut human = self.clone();
        for GradedAnswer {
            method, answerer, ..
        } in human.grades.iter_mut().map(|grade| &mut grade.subject)
        {
            let names = method.rsplit_once('/');
            let names = names.filter(|(name, _)| {
                design.method(method).is_none() && design.method(name).is_some()
            });
            if let Some((name, reader)) =
                names.map(|(name, reader)| (name.to_owned(), reader.to_owned()))
            {
                *method = name;
                answerer.get_or_insert(reader);
            }
        }
        human
    }

    /// A fault on a line of the file.
    pub fn problem_at(&self, line: u64, message: String) -> Problem {
        Problem::error(message).at_position(
            &self.file,
            usize::try_from(line).unwrap_or(usize::MAX),
            1,
        )
    }

    /// A name on a line of the file that the results do not have.
    pub fn unknown_at(&self, line: u64, what: &str, name: &str, known: &[&str]) -> Problem {
        self.problem_at(
            line,
            say!(
                "the results have no {what} `{name}`",
                "结果中没有 {what} `{name}`"
            ),
        )
        .help(suggestion(name, known))
    }

    /// The lines that grade a thing again that the same person has graded.
    fn repeated(&self) -> Vec<Problem> {
        let mut first: BTreeMap<(&GradedAnswer, Option<&str>), u64> = BTreeMap::new();
        let mut faults = Vec::new();
        for grade in &self.grades {
            match first.get(&(&grade.subject, grade.rater.as_deref())) {
                Some(line) => faults.push(
                    self.problem_at(grade.line, say!("this was graded on line {line} already", "第 {line} 行已评分"))
                        .help(localized(
                            "keep one of them, or say who graded in a column `rater`: several people are averaged",
                            "请保留其一，或用 `rater` 列注明评分人：多人取平均",
                        )),
                ),
                None => drop(first.insert((&grade.subject, grade.rater.as_deref()), grade.line)),
            }
        }
        faults
    }
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// A line that cannot be read.
fn unreadable(file: &str, error: &csv::Error) -> Problem {
    let line = error.position().map_or(1, csv::Position::line);
    Problem::error(describe(error)).help(shape()).at_position(
        file,
        usize::try_from(line).unwrap_or(1),
        1,
    )
}

/// What is wrong with a line, without its position, which is reported separately.
fn describe(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => {
            localized("this line is not UTF-8 text", "该行不是 UTF-8 文本").to_owned()
        }
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            say!(
                "this line has {len} fields, and the heading has {expected_len}",
                "该行有 {len} 个字段，而标题行有 {expected_len} 个"
            )
        }
        _ => error.to_string(),
    }
}

/// The places of the columns in a line, by name.
struct ColumnIndices(BTreeMap<&'static str, usize>);

fn find_columns(file: &str, headings: &csv::StringRecord) -> Result<ColumnIndices, Problems> {
    let mut found = BTreeMap::new();
    let mut problems = Problems::default();
    if !headings.iter().any(|heading| {
        COLUMNS
            .iter()
            .any(|name| heading.eq_ignore_ascii_case(name))
    }) {
        let what = if headings.iter().all(str::is_empty) {
            localized("has no heading", "没有标题行")
        } else {
            localized("has none of the columns expected", "没有任何应有的列")
        };
        problems.push(heading_fault(
            file,
            say!("the file {what}", "文件{what}"),
            shape(),
        ));
        return Err(problems);
    }
    for (index, heading) in headings.iter().enumerate() {
        match COLUMNS
            .into_iter()
            .find(|name| heading.eq_ignore_ascii_case(name))
        {
            Some(name) if found.insert(name, index).is_some() => {
                let message = say!("there are two columns `{name}`", "有两列 `{name}`");
                problems.push(heading_fault(
                    file,
                    message,
                    localized("leave one of them out", "请去掉其一"),
                ));
            }
            Some(_) => {}
            None if IGNORED
                .iter()
                .any(|name| heading.eq_ignore_ascii_case(name)) => {}
            None => {
                let message = say!("unknown column `{heading}`", "未知的列 `{heading}`");
                problems.push(heading_fault(file, message, suggestion(heading, &COLUMNS)));
            }
        }
    }
    let is_blind = found.contains_key("id");
    let needed = NEEDED
        .into_iter()
        .filter(|name| !is_blind || *name == "score");
    let missing: Vec<&str> = needed.filter(|name| !found.contains_key(name)).collect();
    if !missing.is_empty() {
        let message = say!("the heading lacks {}", "标题行缺少 {}", list(missing));
        problems.push(heading_fault(file, message, shape()));
    }
    if !found.contains_key("criterion") && !found.contains_key("dimension") {
        let message = localized(
            "the heading has neither `criterion` nor `dimension`",
            "标题行既没有 `criterion` 也没有 `dimension`",
        );
        problems.push(heading_fault(file, message.to_owned(), shape()));
    }
    if problems.is_empty() {
        Ok(ColumnIndices(found))
    } else {
        Err(problems)
    }
}

fn heading_fault(file: &str, message: String, help: impl Into<String>) -> Problem {
    Problem::error(message).help(help).at_position(file, 1, 1)
}

impl ColumnIndices {
    fn field<'r>(&self, record: &'r csv::StringRecord, name: &str) -> Option<&'r str> {
        record
            .get(*self.0.get(name)?)
            .filter(|field| !field.is_empty())
    }

    /// Whether a line of a blind sheet has no score yet.
    fn is_blank(&self, record: &csv::StringRecord) -> bool {
        self.0.contains_key("id") && self.field(record, "score").is_none()
    }

    fn parse(&self, record: &csv::StringRecord) -> Result<HumanGrade, (u64, String)> {
        let line = record.position().map_or(1, csv::Position::line);
        self.parse_fields(record, line)
            .map_err(|message| (line, message))
    }

    fn parse_fields(&self, record: &csv::StringRecord, line: u64) -> Result<HumanGrade, String> {
        let graded = match (
            self.text(record, "criterion"),
            self.text(record, "dimension"),
        ) {
            (Some(criterion), _) => GradeTarget::Criterion(criterion),
            (None, Some(dimension)) => GradeTarget::Dimension(dimension),
            (None, None) => {
                return Err(localized(
                    "neither a criterion nor a dimension is named",
                    "既没有指定准则也没有指定维度",
                )
                .to_owned());
            }
        };
        if let Some(id) = self.text(record, "id") {
            let (rater, score) = (
                self.text(record, "rater"),
                parse_score(&self.needed(record, "score")?)?,
            );
            return Ok(HumanGrade {
                line,
                subject: GradedAnswer::from_id(id, graded),
                rater,
                score,
            });
        }
        let subject = GradedAnswer {
            id: None,
            fixture: self.needed(record, "fixture")?,
            point: parse_ordinal("point", &self.needed(record, "point")?)?,
            method: self.needed(record, "method")?,
            run: parse_ordinal("run", &self.needed(record, "run")?)?,
            probe: self.needed(record, "probe")?,
            answerer: self.text(record, "answerer"),
            answer_n: self
                .field(record, "answer_n")
                .map(|text| parse_ordinal("answer_n", text))
                .transpose()?,
            graded,
        };
        let (rater, score) = (
            self.text(record, "rater"),
            parse_score(&self.needed(record, "score")?)?,
        );
        Ok(HumanGrade {
            line,
            subject,
            rater,
            score,
        })
    }

    fn text(&self, record: &csv::StringRecord, name: &str) -> Option<String> {
        self.field(record, name).map(str::to_owned)
    }

    fn needed(&self, record: &csv::StringRecord, name: &str) -> Result<String, String> {
        self.text(record, name)
            .ok_or_else(|| say!("`{name}` is empty", "`{name}` 为空"))
    }
}

fn parse_ordinal(name: &str, text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| {
        say!(
            "`{name}` is `{text}`: expected a whole number from 1",
            "`{name}` 为 `{text}`：应为从 1 起的整数"
        )
    })
}

fn parse_score(text: &str) -> Result<f64, String> {
    let (low, high) = SCALE;
    let number = text
        .parse()
        .ok()
        .filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| {
        say!(
            "the score is `{text}`: expected a number from {low} to {high}",
            "分数为 `{text}`：应为 {low} 至 {high} 的数"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "fixture,point,method,run,probe,criterion,score\n";

    fn faults(text: &str) -> Vec<String> {
        HumanGrades::parse("l.csv", text.as_bytes())
            .expect_err("a fault")
            .0
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn columns_come_in_any_order_and_case_with_a_byte_order_mark() {
        let text =
            "\u{feff}Score, run,point,fixture,method,probe,dimension\n4.5,1,2,f,m,p,accuracy\n";
        let human = HumanGrades::parse("l.csv", text.as_bytes()).expect("sound");
        let grade = &human.grades[0];
        assert_eq!((grade.line, grade.score, grade.subject.point), (2, 4.5, 2));
        assert_eq!(
            grade.subject.graded,
            GradeTarget::Dimension("accuracy".into())
        );
    }

    #[test]
    fn faults_name_their_lines() {
        let text =
            format!("{HEADING}f,1,m,1,p,c,4\nf,0,m,1,p,c,4\nf,1,m,1,p,c,6\nf,1,m,1,,c,1\nf,1,m\n");
        assert_eq!(
            faults(&text),
            [
                "l.csv:3:1: `point` is `0`: expected a whole number from 1",
                "l.csv:4:1: the score is `6`: expected a number from 0 to 5",
                "l.csv:5:1: `probe` is empty",
                "l.csv:6:1: this line has 3 fields, and the heading has 7",
            ]
        );
        assert!(faults(&format!("{HEADING}f,1,m,1,p,c,NaN\n"))[0].contains("the score is `NaN`"));
    }

    #[test]
    fn a_file_without_grades_is_a_fault() {
        assert_eq!(faults(""), ["l.csv:1:1: the file has no heading"]);
        assert_eq!(
            faults("a,b,c\n1,2,3\n"),
            ["l.csv:1:1: the file has none of the columns expected"]
        );
        assert_eq!(
            faults(HEADING),
            ["l.csv:1:1: there are no grades in the file"]
        );
    }

    #[test]
    fn bad_headings_are_reported_together() {
        let found = faults("fixture,point,metod,run,probe,score\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("unknown column `metod`") && found[1].contains("lacks `method`"));
    }

    #[test]
    fn the_same_thing_is_graded_once_by_each_person() {
        let twice = format!("{HEADING}f,1,m,1,p,c,4\nf,1,m,1,p,c,3\n");
        assert_eq!(
            faults(&twice),
            ["l.csv:3:1: this was graded on line 2 already"]
        );
        let people = "fixture,point,method,run,probe,criterion,score,rater\nf,1,m,1,p,c,4,a\nf,1,m,1,p,c,3,b\n";
        assert_eq!(
            HumanGrades::parse("l.csv", people.as_bytes())
                .expect("sound")
                .grades
                .len(),
            2
        );
    }

    #[test]
    fn a_file_of_another_kind_is_refused_in_few_words() {
        let text = format!("{HEADING}{}", "x,y,z,1,p,c,4\n".repeat(50));
        let found = faults(&text);
        assert_eq!(found.len(), MAX_FAULTS + 1);
        assert!(found[MAX_FAULTS].contains("30 more faults"));
        assert!(!faults("PK\u{3}\u{4}\n").is_empty());
    }
}
