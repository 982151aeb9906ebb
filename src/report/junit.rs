//! JUnit XML: a test for each method and dimension, for CI systems that show tests.
//!
//! A regression by the rules of the gate is a failure, also one of a constraint, which has
//! a test only then. Missing cells are an error of `overall`, and a dimension that was not measured is skipped. Without a
//! baseline no test fails, because no rule says which score is too low.

use std::collections::BTreeSet;

use super::html::escape;
use crate::judge::Dimension;
use crate::results::{MethodSummary, OVERALL, Regression, ScoreEstimate, Summary, regressions};

/// The result of a test.
enum TestResult {
    Passed,
    Failed(Vec<String>),
    /// Some cells have no grade.
    Error(String),
    Skipped,
}

struct TestCase {
    class: String,
    name: String,
    result: TestResult,
    output: String,
}

/// The tests of a summary as an XML document. `seconds` is the duration of the run.
pub fn junit(summary: &Summary, seconds: f64) -> String {
    let worse = summary
        .comparison
        .as_ref()
        .map(regressions)
        .unwrap_or_default();
    let tests = tests(summary, &worse);
    let failures = tests
        .iter()
        .filter(|test| matches!(test.result, TestResult::Failed(_)))
        .count();
    let errors = tests
        .iter()
        .filter(|test| matches!(test.result, TestResult::Error(_)))
        .count();
    let skipped = tests
        .iter()
        .filter(|test| matches!(test.result, TestResult::Skipped))
        .count();
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"",
        tests.len()
    );
    let label = escape(&summary.label);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"compeval\" {counts} time=\"{seconds:.3}\">\n  \
         <testsuite name=\"{label}\" {counts} time=\"{seconds:.3}\">\n"
    );
    tests.iter().for_each(|test| xml.push_str(&element(test)));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn tests(summary: &Summary, worse: &[Regression]) -> Vec<TestCase> {
    let mut tests = Vec::new();
    for (method, measured) in &summary.methods {
        let overall = TestCase {
            result: overall_result(measured, why(worse, Some(method.as_str()), OVERALL)),
            ..test(method, OVERALL, &measured.overall, Vec::new())
        };
        tests.push(overall);
        let dimensions = measured.dimensions.iter();
        tests.extend(dimensions.map(|(name, level)| {
            test(method, name, level, why(worse, Some(method.as_str()), name))
        }));
    }
    let Some(comparison) = &summary.comparison else {
        return tests;
    };
    for (method, compared) in &comparison.methods {
        let found = &compared.reliability;
        let output = format!(
            "{} of {} chains failed, {} of {} in {}",
            found.failed,
            found.chains,
            found.baseline_failed,
            found.baseline_chains,
            comparison.baseline
        );
        tests.push(TestCase {
            class: method.clone(),
            name: RELIABILITY.to_owned(),
            result: result(why(worse, Some(method.as_str()), RELIABILITY)),
            output,
        });
        tests.extend(other_failures(method, worse));
    }
    if comparison.primary.is_some() {
        tests.push(TestCase {
            class: "all methods".to_owned(),
            name: OVERALL.to_owned(),
            result: result(why(worse, None, OVERALL)),
            output: format!(
                "mean of {} methods against {}",
                comparison.tested, comparison.baseline
            ),
        });
    }
    tests
}

/// The regressions of a method that are neither of a score nor of its failures, as that of a constraint.
fn other_failures(method: &str, worse: &[Regression]) -> Vec<TestCase> {
    let has_test = |what: &str| {
        [OVERALL, RELIABILITY].contains(&what)
            || Dimension::ALL
                .iter()
                .any(|dimension| dimension.name() == what)
    };
    let own = worse
        .iter()
        .filter(|found| found.method.as_deref() == Some(method) && !has_test(&found.what));
    let names: BTreeSet<&str> = own.map(|found| found.what.as_str()).collect();
    let tests = names.into_iter().map(|name| TestCase {
        class: method.to_owned(),
        name: name.to_owned(),
        result: result(why(worse, Some(method), name)),
        output: String::new(),
    });
    tests.collect()
}

/// The name that the gate has for the failures of a method.
const RELIABILITY: &str = "reliability";

/// The reasons of the gate why this test regressed; a `method` of `None` stands for the mean over methods.
fn why(worse: &[Regression], method: Option<&str>, what: &str) -> Vec<String> {
    let found = worse
        .iter()
        .filter(|regression| regression.method.as_deref() == method && regression.what == what);
    found.map(|regression| regression.why.clone()).collect()
}

fn result(why: Vec<String>) -> TestResult {
    if why.is_empty() {
        TestResult::Passed
    } else {
        TestResult::Failed(why)
    }
}

/// The result of `overall`: a failure if there is a regression, else an error if cells are missing.
fn overall_result(method: &MethodSummary, why: Vec<String>) -> TestResult {
    let cells = &method.cells;
    let lost = cells.failed + cells.missing;
    match (why.is_empty(), lost) {
        (false, _) | (true, 0) => result(why),
        (true, lost) => {
            let all = cells.judged + lost;
            TestResult::Error(format!(
                "{lost} of {all} cells have no grade ({} failed)",
                cells.failed
            ))
        }
    }
}

fn test(method: &str, name: &str, level: &ScoreEstimate, why: Vec<String>) -> TestCase {
    let is_unknown = level.median.is_none();
    TestCase {
        class: method.to_owned(),
        name: name.to_owned(),
        result: if is_unknown {
            TestResult::Skipped
        } else {
            result(why)
        },
        output: score(level),
    }
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

fn element(test: &TestCase) -> String {
    let inner = match &test.result {
        TestResult::Passed => String::new(),
        TestResult::Failed(why) => {
            let first = why.first().map(String::as_str).unwrap_or_default();
            let all = escape(&why.join("\n"));
            format!(
                "      <failure message=\"{}\" type=\"regression\">{all}</failure>\n",
                escape(first)
            )
        }
        TestResult::Error(why) => format!(
            "      <error message=\"{}\" type=\"incomplete\"/>\n",
            escape(why)
        ),
        TestResult::Skipped => "      <skipped/>\n".to_owned(),
    };
    let (class, name, output) = (
        escape(&test.class),
        escape(&test.name),
        escape(&test.output),
    );
    format!(
        "    <testcase classname=\"{class}\" name=\"{name}\">\n{inner}      <system-out>{output}</system-out>\n    \
         </testcase>\n"
    )
}
