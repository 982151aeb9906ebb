use std::convert::Infallible;

use super::*;
use crate::action::{ActionKey, Digest};
use crate::judge::CriterionScore;
use crate::results::fakes::{design, model_info, row};
use crate::results::{FolderError, Manifest};

/// A sheet that grades the accuracy of these answers.
fn sheet(lines: &[(&Row, &str, &str)]) -> GradedSheet {
    let lines = lines
        .iter()
        .map(|(row, score, rater)| format!("{},accuracy,{score},{rater}\n", answer_id(row)));
    let text = format!("id,dimension,score,rater\n{}", lines.collect::<String>());
    GradedSheet::parse("l.csv", text.as_bytes()).expect("sound grades")
}

fn results() -> Design {
    design(
        &[("full", "full"), ("mine", "extract"), ("none", "none")],
        &[("f", 2), ("g", 1)],
        2,
    )
}

/// A row whose only criterion, `accuracy_factual`, and whose accuracy have this score.
fn graded(fixture: &str, method: &str, run: u32, points: u8) -> Row {
    row(
        fixture,
        method,
        run,
        &[(Dimension::Accuracy, f64::from(points))],
    )
}

fn compared(
    human: &GradedSheet,
    design: &Design,
    rows: Vec<Row>,
) -> Result<AgreementResult, Vec<String>> {
    let manifest = Manifest::begin("l", "t", design.clone());
    let set = ResultSet::gather(manifest, rows.iter().map(Ok::<_, FolderError>)).expect("a set");
    let rows = rows.into_iter().map(Ok::<_, Infallible>);
    let Ok(compared) = compare_judges(human, &set, rows);
    compared.map_err(|problems| problems.0.iter().map(ToString::to_string).collect())
}

#[test]
fn grades_are_paired_and_raters_of_one_thing_count_as_their_mean() {
    let rows = [graded("f", "mine", 1, 5), graded("f", "mine", 2, 1)];
    let lines = sheet(&[
        (&rows[0], "4", "ann"),
        (&rows[0], "5", "ben"),
        (&rows[1], "1", "ann"),
    ]);
    let found = compared(&lines, &results(), rows.to_vec()).expect("comparable");
    assert_eq!((found.graded, found.unmatched.len()), (2, 0));
    let [judge] = found.judges.as_slice() else {
        panic!("one judge")
    };
    let pooled = &judge.pooled;
    assert_eq!(
        (pooled.pairs, pooled.exact, pooled.mean_difference),
        (2, Some(0.5), Some(0.25))
    );
    assert_eq!(
        judge.dimensions.keys().copied().collect::<Vec<_>>(),
        [Dimension::Accuracy]
    );
    assert_eq!((judge.against_itself, found.alpha), (None, None));
}

#[test]
fn answers_that_the_results_lack_are_reported_with_their_lines() {
    let stranger = graded("f", "full", 1, 5);
    let lines = sheet(&[(&stranger, "4", "")]);
    let faults = compared(&lines, &results(), vec![stranger.clone()]).expect_err("an anchor");
    assert_eq!(
        faults,
        [format!(
            "l.csv:2:1: the results have no answer `{}`",
            answer_id(&stranger)
        )]
    );
}

/// The same cell judged again: another action, another score.
fn again(row: &Row, judge: &str, judge_n: u32, points: u8) -> Row {
    let mut row = Row {
        judge: judge.into(),
        judge_n,
        ..row.clone()
    };
    row.dimensions = [(Dimension::Accuracy, f64::from(points))].into();
    row.keys.judge = ActionKey(Digest::hash(format!("{judge} {judge_n}")));
    row.criteria = CriterionScore::new("accuracy_factual".into(), points, "")
        .into_iter()
        .collect();
    row
}

#[test]
fn repeats_show_the_judge_against_itself_and_shared_actions_are_none() {
    let mut design = results();
    design.runs.judge = 2;
    let first = graded("f", "mine", 1, 5);
    let lines = sheet(&[(&first, "4", "")]);
    let shared = vec![
        first.clone(),
        Row {
            judge_n: 2,
            ..first.clone()
        },
    ];
    assert_eq!(
        compared(&lines, &design, shared)
            .expect("comparable")
            .judges[0]
            .against_itself,
        None
    );
    let repeated = vec![first.clone(), again(&first, "judge", 2, 3)];
    let judge = compared(&lines, &design, repeated)
        .expect("comparable")
        .judges
        .remove(0);
    assert_eq!(
        judge
            .against_itself
            .map(|spread| (spread.pairs, spread.far_share)),
        Some((1, 1.0))
    );
    assert_eq!(
        judge.pooled.mean_difference,
        Some(0.0),
        "a grade is the mean of its repeats"
    );
}

#[test]
fn a_panel_has_its_median_and_its_alpha() {
    let mut design = results();
    design.judges = vec![model_info("one", "a/b"), model_info("two", "a/c")];
    let cell = graded("f", "mine", 1, 5);
    let rows = vec![again(&cell, "one", 1, 5), again(&cell, "two", 1, 2)];
    let found = compared(&sheet(&[(&cell, "4", "")]), &design, rows).expect("comparable");
    let differences: Vec<_> = found
        .judges
        .iter()
        .map(|j| (j.judge.as_deref(), j.pooled.mean_difference))
        .collect();
    assert_eq!(
        differences,
        [
            (Some("one"), Some(1.0)),
            (Some("two"), Some(-2.0)),
            (None, Some(-0.5))
        ]
    );
    assert_eq!(found.alpha.map(|alpha| alpha.pairs), Some(1));
}

#[test]
fn no_text_on_a_sheet_is_a_formula_and_others_stay_as_they_are() {
    let texts = [
        ("=HYPERLINK(\"http://a\")", "'=HYPERLINK(\"http://a\")"),
        ("@SUM(1+1)", "'@SUM(1+1)"),
        ("- the port is 9091", "'- the port is 9091"),
        ("port = 9091", "port = 9091"),
        ("the port is 9091", "the port is 9091"),
        ("'quoted'", "'quoted'"),
    ];
    for (text, cell) in texts {
        let mut row = graded("f", "mine", 1, 4);
        (row.question, row.answer) = (text.into(), text.into());
        row.facts
            .iter_mut()
            .for_each(|fact| fact.fact = text.into());
        let sheet = write_sheet([(answer_id(&row), row)].into_iter()).expect("a sheet");
        let mut lines = csv::Reader::from_reader(sheet.as_slice());
        let line = lines.records().next().expect("a line").expect("sound");
        assert_eq!([&line[3], &line[5]], [cell, cell]);
        assert!(["", cell].contains(&&line[4]), "{line:?}");
    }
}
