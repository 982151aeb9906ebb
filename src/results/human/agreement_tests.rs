use std::convert::Infallible;

use super::*;
use crate::action::Digest;
use crate::judge::CriterionScore;
use crate::results::fakes::{design, model_info, row};

const HEADING: &str = "fixture,point,method,run,probe,criterion,dimension,score,answer_n,rater\n";

fn human(lines: &str) -> HumanGrades {
    HumanGrades::parse("l.csv", format!("{HEADING}{lines}").as_bytes()).expect("sound grades")
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
    human: &HumanGrades,
    design: &Design,
    rows: Vec<Row>,
) -> Result<AgreementResult, Vec<String>> {
    let rows = rows.into_iter().map(Ok::<_, Infallible>);
    let Ok(compared) = compare_judges(human, design, rows);
    compared.map_err(|problems| problems.0.iter().map(ToString::to_string).collect())
}

#[test]
fn criteria_and_dimensions_are_paired_and_ends_are_left_out() {
    let lines = "f,1,mine,1,p1,accuracy_factual,,4,,\n\
                 f,1,mine,2,p1,,accuracy,1,,\n\
                 f,1,full,1,p1,accuracy_factual,,5,,\n\
                 g,1,mine,1,p1,accuracy_technical,,5,,\n";
    let rows = vec![
        graded("f", "mine", 1, 5),
        graded("f", "mine", 2, 1),
        graded("f", "full", 1, 5),
    ];
    let found = compared(&human(lines), &results(), rows).expect("comparable");
    assert_eq!(
        (found.graded, found.excluded, found.unmatched.as_slice()),
        (4, 1, [5].as_slice())
    );
    let [judge] = found.judges.as_slice() else {
        panic!("one judge")
    };
    assert_eq!(
        (
            judge.pooled.pairs,
            judge.pooled.exact,
            judge.pooled.mean_difference
        ),
        (2, Some(0.5), Some(0.5))
    );
    assert_eq!(
        judge.dimensions.keys().copied().collect::<Vec<_>>(),
        [Dimension::Accuracy]
    );
    assert_eq!((judge.against_itself, found.alpha), (None, None));
}

#[test]
fn several_raters_of_one_thing_count_as_their_mean() {
    let lines = "f,1,mine,1,p1,accuracy_factual,,4,,ann\nf,1,mine,1,p1,accuracy_factual,,5,,ben\n";
    let found =
        compared(&human(lines), &results(), vec![graded("f", "mine", 1, 4)]).expect("comparable");
    assert_eq!(
        (found.graded, found.judges[0].pooled.mean_difference),
        (1, Some(-0.5))
    );
}

#[test]
fn names_that_the_results_lack_are_reported_with_line_and_nearest() {
    let lines = "h,1,mine,1,p1,accuracy_factual,,4,,\n\
                 f,1,mien,1,p1,accuracy_factual,,4,,\n\
                 f,1,mine,1,p9,accuracy_factual,,4,,\n\
                 f,1,mine,1,p1,accuracy_factul,,4,,\n\
                 f,1,mine,3,p1,accuracy_factual,,4,,\n\
                 f,2,mine,1,p1,accuracy_factual,,4,,\n";
    let faults = compared(&human(lines), &results(), Vec::new()).expect_err("faults");
    assert_eq!(
        faults,
        [
            "l.csv:2:1: the results have no fixture `h`",
            "l.csv:3:1: the results have no method `mien`",
            "l.csv:4:1: the results have no probe at point 1 of f `p9`",
            "l.csv:5:1: the results have no criterion `accuracy_factul`",
            "l.csv:6:1: there is no run 3: the results have 2",
            "l.csv:7:1: the results have no probes at point `2`",
        ]
    );
}

#[test]
fn one_of_several_answers_must_be_named() {
    let rows = || {
        vec![
            graded("f", "mine", 1, 5),
            Row {
                answer_n: 2,
                ..graded("f", "mine", 1, 1)
            },
        ]
    };
    let vague = human("f,1,mine,1,p1,accuracy_factual,,4,,\n");
    assert_eq!(
        compared(&vague, &results(), rows()).expect_err("vague"),
        ["l.csv:2:1: this fits 2 answers to the probe"]
    );
    let named = human("f,1,mine,1,p1,accuracy_factual,,4,2,\n");
    assert_eq!(
        compared(&named, &results(), rows())
            .expect("comparable")
            .judges[0]
            .pooled
            .mean_difference,
        Some(-3.0)
    );
}

/// The same cell judged again: another action, another score.
fn again(row: &Row, judge: &str, judge_n: u32, points: u8) -> Row {
    let mut row = Row {
        judge: judge.into(),
        judge_n,
        ..row.clone()
    };
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
    let lines = human("f,1,mine,1,p1,accuracy_factual,,4,,\n");
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
    let found = compared(
        &human("f,1,mine,1,p1,accuracy_factual,,4,,\n"),
        &design,
        rows,
    )
    .expect("comparable");
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
fn a_method_may_be_named_with_its_answerer_as_tables_name_it() {
    let lines = human("f,1,mine/agent,1,p1,accuracy_factual,,4,,\n");
    let found = compared(&lines, &results(), vec![graded("f", "mine", 1, 5)]).expect("comparable");
    assert_eq!(
        (found.unmatched.as_slice(), found.judges[0].pooled.pairs),
        ([].as_slice(), 1)
    );
    let stranger = human("f,1,mine/nobody,1,p1,accuracy_factual,,4,,\n");
    let faults = compared(&stranger, &results(), Vec::new()).expect_err("no such answerer");
    assert_eq!(faults, ["l.csv:2:1: the results have no answerer `nobody`"]);
}
