//! Results for other programs: the graded cells as CSV, a line for each cell, with the same names as in `cells.jsonl`; and
//! JUnit XML, a test for each method and dimension, for CI systems that show tests.
//!
//! A regression by the rules of the gate is a failure, also one of a constraint, which has a test only then. Missing cells
//! are an error of `overall`, and a dimension that was not measured is skipped. Without a baseline no test fails, because
//! no rule says which score is too low.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::html::escape;
use crate::judge::Dimension;
use crate::results::{
    MethodSummary, OVERALL, Regression, Row, ScoreEstimate, Summary, regressions,
};

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
    let mut columns = vec![("label".to_owned(), label.to_owned())];
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
        Value::String(text) => text_cell(text),
        other => other.to_string(),
    }
}

/// A text as a cell. A spreadsheet would compute one that begins like a formula, so it gets an apostrophe in front.
fn text_cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
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
    // No text has these: it is escaped.
    let [failures, errors, skipped] = ["<failure ", "<error ", SKIPPED].map(|result| {
        let found = tests.iter().filter(|test| test.contains(result));
        found.count()
    });
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"",
        tests.len()
    );
    let label = escape(&summary.label);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"compeval\" {counts} time=\"{seconds:.3}\">\n  \
         <testsuite name=\"{label}\" {counts} time=\"{seconds:.3}\">\n"
    );
    xml.extend(tests);
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn tests(summary: &Summary, worse: &[Regression]) -> Vec<String> {
    let mut tests = Vec::new();
    for (method, measured) in &summary.methods {
        let overall = overall_result(measured, &why(worse, Some(method), OVERALL));
        tests.push(element(
            method,
            OVERALL,
            &overall,
            &score(&measured.overall),
        ));
        tests.extend(measured.dimensions.iter().map(|(name, level)| {
            let result = match level.median {
                None => SKIPPED.to_owned(),
                Some(_) => failure(&why(worse, Some(method), name)),
            };
            element(method, name, &result, &score(level))
        }));
    }
    let Some(comparison) = &summary.comparison else {
        return tests;
    };
    let baseline = &comparison.baseline;
    for (method, compared) in &comparison.methods {
        let found = &compared.reliability;
        let output = format!(
            "{} of {} chains failed, {} of {} in {baseline}",
            found.failed, found.chains, found.baseline_failed, found.baseline_chains,
        );
        let result = failure(&why(worse, Some(method), RELIABILITY));
        tests.push(element(method, RELIABILITY, &result, &output));
        tests.extend(other_failures(method, worse));
    }
    if comparison.primary.is_some() {
        let output = format!("mean of {} methods against {baseline}", comparison.tested);
        let result = failure(&why(worse, None, OVERALL));
        tests.push(element("all methods", OVERALL, &result, &output));
    }
    tests
}

/// The regressions of a method that are neither of a score nor of its failures, as that of a constraint.
fn other_failures(method: &str, worse: &[Regression]) -> Vec<String> {
    let has_test = |what: &str| {
        let mut dimensions = Dimension::ALL.iter().map(|dimension| dimension.name());
        [OVERALL, RELIABILITY].contains(&what) || dimensions.any(|name| name == what)
    };
    let own = worse
        .iter()
        .filter(|found| found.method.as_deref() == Some(method) && !has_test(&found.what));
    let names: BTreeSet<&str> = own.map(|found| found.what.as_str()).collect();
    let tests = names.into_iter().map(|name| {
        let result = failure(&why(worse, Some(method), name));
        element(method, name, &result, "")
    });
    tests.collect()
}

/// The result of a dimension that was not measured.
const SKIPPED: &str = "      <skipped/>\n";

/// The name that the gate has for the failures of a method.
const RELIABILITY: &str = "reliability";

/// The reasons of the gate why this test regressed; a `method` of `None` stands for the mean over methods.
fn why(worse: &[Regression], method: Option<&str>, what: &str) -> Vec<String> {
    let found = worse
        .iter()
        .filter(|regression| regression.method.as_deref() == method && regression.what == what);
    found.map(|regression| regression.why.clone()).collect()
}

/// The result of a test that regressed for these reasons; empty if there are none: it passed.
fn failure(why: &[String]) -> String {
    let Some(first) = why.first() else {
        return String::new();
    };
    let (first, all) = (escape(first), escape(&why.join("\n")));
    format!("      <failure message=\"{first}\" type=\"regression\">{all}</failure>\n")
}

/// The result of `overall`: a failure if there is a regression, else an error if cells are missing.
fn overall_result(method: &MethodSummary, why: &[String]) -> String {
    let cells = &method.cells;
    let lost = cells.failed + cells.missing;
    if !why.is_empty() || lost == 0 {
        return failure(why);
    }
    let (all, failed) = (cells.judged + lost, cells.failed);
    format!(
        "      <error message=\"{lost} of {all} cells have no grade ({failed} failed)\" type=\"incomplete\"/>\n"
    )
}

/// `3.87 [3.55, 4.19] over 8 fixtures`
fn score(level: &ScoreEstimate) -> String {
    let Some(median) = level.median else {
        return "not measured".to_owned();
    };
    let interval = level
        .ci95
        .map(|ci| format!(" [{:.2}, {:.2}]", ci.low(), ci.high()))
        .unwrap_or_default();
    let fixtures = if level.fixtures == 1 {
        "fixture"
    } else {
        "fixtures"
    };
    format!("{median:.2}{interval} over {} {fixtures}", level.fixtures)
}

/// A test with the element of its result.
fn element(class: &str, name: &str, result: &str, output: &str) -> String {
    let [class, name, output] = [class, name, output].map(escape);
    format!(
        "    <testcase classname=\"{class}\" name=\"{name}\">\n{result}      <system-out>{output}</system-out>\n    \
         </testcase>\n"
    )
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
        let line = String::from_utf8(csv_line("l", &row).unwrap()).unwrap();
        assert!(
            line.contains("\"'=HYPERLINK(") && line.contains("'+1 and -1"),
            "{line}"
        );
        assert!(line.contains(",-1.0,"), "numbers stay numbers: {line}");
    }
}
