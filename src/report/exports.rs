//! Results for other programs: the graded cells as CSV, a line for each cell, with the same names as in `cells.jsonl`; and
//! JUnit XML, a test for each method and dimension, for CI systems that show tests.
//!
//! A regression by the rules of the gate is a failure; one that is of no score, as that of a constraint or of a method that
//! is gone, has a test only then. Missing cells are an error of `overall`, and a dimension that was not measured is
//! skipped. Without a baseline no test fails, because no rule says which score is too low.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::figures::level;
use super::html::escape;
use crate::judge::Dimension;
use crate::results::{
    MethodSummary, OVERALL, Regression, Row, ScoreEstimate, Summary, regressions,
};
use base::text::{count, csv_cell};

/// The first columns; the dimensions come next, then the others in alphabetical order.
const LEADING: [&str; 10] = [
    "label", "fixture", "point", "method", "run", "probe", "type", "question", "answer", "overall",
];

/// The header line.
///
/// # Errors
/// Only those of the `csv` crate's buffer.
pub fn csv_header(first: &Row) -> Result<Vec<u8>, csv::Error> {
    write_line(columns("", first).into_iter().map(|(name, _)| name))
}

/// The line of one row.
///
/// # Errors
/// Only those of the `csv` crate's buffer.
pub fn csv_line(label: &str, row: &Row) -> Result<Vec<u8>, csv::Error> {
    write_line(columns(label, row).into_iter().map(|(_, cell)| cell))
}

/// The columns of a row: the label, then the keys of `cells.jsonl`. An object gives a column for each of its keys, such
/// as `usd.answer`, and so does `context_facts` if it is null. Each dimension is a column of its own name. Lists are
/// JSON.
fn columns(label: &str, row: &Row) -> Vec<(String, String)> {
    let mut columns = vec![("label".to_owned(), csv_cell(label).into_owned())];
    // `Row` has no key that JSON cannot write.
    let Ok(Value::Object(fields)) = serde_json::to_value(row) else {
        return columns;
    };
    for (key, value) in fields {
        match value {
            Value::Object(scores) if key == "dimensions" => {
                columns.extend(Dimension::ALL.map(|dimension| {
                    let name = dimension.name();
                    (
                        name.to_owned(),
                        cell_text(scores.get(name).unwrap_or(&Value::Null)),
                    )
                }));
            }
            Value::Null if key == "context_facts" => {
                columns.extend(
                    ["facts", "stale"].map(|part| (format!("{key}.{part}"), String::new())),
                );
            }
            Value::Object(group) => columns.extend(grouped(&key, &group)),
            value => columns.push((key, cell_text(&value))),
        }
    }
    let leading = LEADING
        .into_iter()
        .chain(Dimension::ALL.map(Dimension::name));
    columns.sort_by_cached_key(|(name, _)| {
        leading
            .clone()
            .position(|key| key == name)
            .unwrap_or(usize::MAX)
    });
    columns
}

fn grouped(key: &str, group: &Map<String, Value>) -> Vec<(String, String)> {
    group
        .iter()
        .map(|(part, value)| (format!("{key}.{part}"), cell_text(value)))
        .collect()
}

fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => csv_cell(text).into_owned(),
        other => other.to_string(),
    }
}

fn write_line(cells: impl Iterator<Item = String>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells.collect::<Vec<_>>())?;
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))
}

/// The tests of a summary as an XML document. `seconds` is the duration of the run.
pub fn junit(summary: &Summary, seconds: f64) -> String {
    let worse = summary
        .comparison
        .as_ref()
        .map(regressions)
        .unwrap_or_default();
    let tests = tests(summary, &worse);
    let ended = |how: &str| tests.iter().filter(|(ending, _)| *ending == how).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        tests.len(),
        ended("failure"),
        ended("error"),
        ended("skipped")
    );
    let label = escape(&summary.label);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"compeval\" {counts} time=\"{seconds:.3}\">\n  \
         <testsuite name=\"{label}\" {counts} time=\"{seconds:.3}\">\n"
    );
    xml.extend(tests.into_iter().map(|(_, element)| element));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// How a test ended, which is empty if it passed, and the element that says so.
type Ending = (&'static str, String);

/// The ending of a test that regressed for these reasons; without any it passed.
fn regressed(why: &[String]) -> Ending {
    let Some(first) = why.first() else {
        return ("", String::new());
    };
    let (first, all) = (escape(first), escape(&why.join("\n")));
    let failure = format!("<failure message=\"{first}\" type=\"regression\">{all}</failure>");
    ("failure", failure)
}

/// The tests with their elements: the scores of each method, then what else regressed.
fn tests(summary: &Summary, worse: &[Regression]) -> Vec<Ending> {
    let mut reasons: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for found in worse {
        let method = found.method.as_deref().unwrap_or("all methods");
        let of_test = reasons.entry((method, &found.what)).or_default();
        of_test.push(found.why.clone());
    }
    let mut tests = Vec::new();
    for (method, measured) in &summary.methods {
        let why = reasons.remove(&(method.as_str(), OVERALL));
        let overall = overall_ending(measured, &why.unwrap_or_default());
        tests.push(element(method, OVERALL, overall, &score(&measured.overall)));
        for (name, found) in &measured.dimensions {
            // A dimension that was not measured is skipped.
            let ending = match found.median {
                None => ("skipped", "<skipped/>".to_owned()),
                Some(_) => {
                    let why = reasons.remove(&(method.as_str(), name.as_str()));
                    regressed(&why.unwrap_or_default())
                }
            };
            tests.push(element(method, name, ending, &score(found)));
        }
    }
    let others = reasons.into_iter();
    tests.extend(others.map(|((method, what), why)| element(method, what, regressed(&why), "")));
    tests
}

/// How `overall` ended: with a failure if there is a regression, else with an error if cells are missing.
fn overall_ending(method: &MethodSummary, why: &[String]) -> Ending {
    let cells = &method.cells;
    let lost = cells.failed + cells.missing;
    if !why.is_empty() || lost == 0 {
        return regressed(why);
    }
    let (all, failed) = (cells.judged + lost, cells.failed);
    let error = format!(
        "<error message=\"{lost} of {all} cells have no grade ({failed} failed)\" type=\"incomplete\"/>"
    );
    ("error", error)
}

/// `3.87 3.6–4.2 over 8 fixtures`
fn score(found: &ScoreEstimate) -> String {
    match found.median {
        None => "not measured".to_owned(),
        Some(_) => format!("{} over {}", level(found), count(found.fixtures, "fixture")),
    }
}

/// A test as an element.
fn element(class: &str, name: &str, (ending, said): Ending, output: &str) -> Ending {
    let [class, name, output] = [class, name, output].map(escape);
    let said = if said.is_empty() {
        said
    } else {
        format!("      {said}\n")
    };
    let element = format!(
        "    <testcase classname=\"{class}\" name=\"{name}\">\n{said}      <system-out>{output}</system-out>\n    \
         </testcase>\n"
    );
    (ending, element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fakes::row;

    #[test]
    fn no_text_of_a_model_is_a_formula() {
        let mut row = row("f", "m", 1, &[(Dimension::Accuracy, 4.0)]);
        row.answer = "=HYPERLINK(\"http://a\")".to_owned();
        row.question = "+1 and -1".to_owned();
        row.overall = Some(-1.0);
        row.probe = "a=b".into();
        let line = String::from_utf8(csv_line("=1+1", &row).unwrap()).unwrap();
        assert!(
            line.contains("\"'=HYPERLINK(") && line.contains("'+1 and -1"),
            "{line}"
        );
        assert!(
            line.starts_with("'=1+1,f,") && line.contains(",a=b,"),
            "{line}"
        );
        assert!(line.contains(",-1.0,"), "numbers stay numbers: {line}");
    }
}
