//! JUnit XML: a test for each method and dimension, for CI systems that show tests.
//!
//! A regression by the rules of the gate is a failure, missing cells are an error of `overall`, a dimension that was
//! not measured is skipped. Without a baseline no test fails, because no rule says which score is too low.

use super::html::escape;
use crate::results::{MethodSummary, OVERALL, Regression, ScoreEstimate, Summary, regressions};

/// What came of a test.
enum TestResult {
    Passed,
    Failed(Vec<String>),
    /// It could not be measured completely.
    Error(String),
    Skipped,
}

struct TestCase {
    class: String,
    name: String,
    result: TestResult,
    output: String,
}

/// The tests of a summary, as an XML document. `seconds` is how long the run took.
pub fn junit(summary: &Summary, seconds: f64) -> String {
    let worse = summary.comparison.as_ref().map(regressions).unwrap_or_default();
    let tests = tests(summary, &worse);
    let failures = tests.iter().filter(|test| matches!(test.result, TestResult::Failed(_))).count();
    let errors = tests.iter().filter(|test| matches!(test.result, TestResult::Error(_))).count();
    let skipped = tests.iter().filter(|test| matches!(test.result, TestResult::Skipped)).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"", tests.len());
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
        tests
            .extend(dimensions.map(|(name, level)| test(method, name, level, why(worse, Some(method.as_str()), name))));
    }
    let Some(comparison) = &summary.comparison else { return tests };
    for (method, compared) in &comparison.methods {
        let found = &compared.reliability;
        let output = format!(
            "{} of {} chains failed, {} of {} in {}",
            found.failed, found.chains, found.baseline_failed, found.baseline_chains, comparison.baseline
        );
        tests.push(TestCase {
            class: method.clone(),
            name: RELIABILITY.to_owned(),
            result: result(why(worse, Some(method.as_str()), RELIABILITY)),
            output,
        });
    }
    if comparison.primary.is_some() {
        tests.push(TestCase {
            class: "all methods".to_owned(),
            name: OVERALL.to_owned(),
            result: result(why(worse, None, OVERALL)),
            output: format!("mean of {} methods against {}", comparison.tested, comparison.baseline),
        });
    }
    tests
}

/// What the gate calls the failures of a method.
const RELIABILITY: &str = "reliability";

/// Why this test regressed, a line each; of a method's own name, in the words of the gate.
fn why(worse: &[Regression], method: Option<&str>, what: &str) -> Vec<String> {
    let own = worse.iter().filter(|regression| regression.method.as_deref() == method && regression.what == what);
    own.map(|regression| regression.why.clone()).collect()
}

fn result(why: Vec<String>) -> TestResult {
    if why.is_empty() { TestResult::Passed } else { TestResult::Failed(why) }
}

/// A regression counts for more than missing cells.
fn overall_result(method: &MethodSummary, why: Vec<String>) -> TestResult {
    let cells = &method.cells;
    let lost = cells.failed + cells.missing;
    match (why.is_empty(), lost) {
        (false, _) | (true, 0) => result(why),
        (true, lost) => {
            let all = cells.judged + lost;
            TestResult::Error(format!("{lost} of {all} cells have no grade ({} failed)", cells.failed))
        }
    }
}

fn test(method: &str, name: &str, level: &ScoreEstimate, why: Vec<String>) -> TestCase {
    let is_unknown = level.median.is_none();
    TestCase {
        class: method.to_owned(),
        name: name.to_owned(),
        result: if is_unknown { TestResult::Skipped } else { result(why) },
        output: score(level),
    }
}

/// `3.87 [3.55, 4.19] over 8 fixtures`
fn score(level: &ScoreEstimate) -> String {
    let Some(median) = level.median else { return "not measured".to_owned() };
    let interval = level.ci95.map(|ci| format!(" [{:.2}, {:.2}]", ci.low(), ci.high())).unwrap_or_default();
    let fixtures = if level.fixtures == 1 { "fixture" } else { "fixtures" };
    format!("{median:.2}{interval} over {} {fixtures}", level.fixtures)
}

fn element(test: &TestCase) -> String {
    let inner = match &test.result {
        TestResult::Passed => String::new(),
        TestResult::Failed(why) => {
            let first = why.first().map(String::as_str).unwrap_or_default();
            let all = escape(&why.join("\n"));
            format!("      <failure message=\"{}\" type=\"regression\">{all}</failure>\n", escape(first))
        }
        TestResult::Error(why) => format!("      <error message=\"{}\" type=\"incomplete\"/>\n", escape(why)),
        TestResult::Skipped => "      <skipped/>\n".to_owned(),
    };
    let (class, name, output) = (escape(&test.class), escape(&test.name), escape(&test.output));
    format!(
        "    <testcase classname=\"{class}\" name=\"{name}\">\n{inner}      <system-out>{output}</system-out>\n    \
         </testcase>\n"
    )
}
