//! Comparisons of rows: what a gate fails on, costs, failures.

use proptest::prelude::*;

use super::compare_tests::{
    A, B, FIXTURES, RunScores, against, gather, manifest, near, rows, set, side, trend_of,
};
use crate::measure::FactClass;
use crate::plan::{Blame, FailedAction};
use crate::results::fakes::NO_LINES;
use crate::results::*;
use stats::{DifferenceTest, Verdict};

/// A set whose contexts have or lost a constraint, and whose answers get this grade from a model or from the built-in
/// rules.
fn constraint(class: FactClass, grade: f64, is_by_rules: bool) -> ResultSet {
    let mut manifest = manifest("a", &[("mine", "command")]);
    manifest.design.judges[0].lexical = is_by_rules;
    let mut rows = rows("mine", &[[grade; 3]; 4]);
    for row in &mut rows {
        row.is_constraint = true;
        row.facts[0].class = Some(class);
    }
    gather(manifest, rows)
}

#[test]
fn a_constraint_that_most_chains_lost_fails_the_gate_unless_the_judge_finds_it() {
    let compared = |a: &ResultSet, b: &ResultSet| {
        compare(side(a), side(b), ComparisonScope::All, &NO_LINES).unwrap()
    };
    let kept = constraint(FactClass::Answered, 4.0, false);
    let lost = compared(&constraint(FactClass::Lost, 1.0, false), &kept);
    let losses = &lost.methods.get("mine").unwrap().constraints_lost;
    assert_eq!(losses.len(), 4);
    assert_eq!(
        (losses[0].lost, losses[0].chains, losses[0].is_confirmed),
        (3, 3, true)
    );
    let gate: Vec<Regression> = regressions(&lost)
        .into_iter()
        .filter(|found| found.what == "constraint")
        .collect();
    assert_eq!(
        gate[0].why,
        "mine: the constraint \"8081\" (f1 · point 1 · p1) is lost in 3 of 3 chains; a keeps it, and no judge finds it in \
         an answer"
    );
    let reworded = compared(&constraint(FactClass::AnsweredElsewhere, 4.0, false), &kept);
    assert!(
        reworded
            .methods
            .get("mine")
            .unwrap()
            .constraints_lost
            .is_empty()
    );
    let never_kept = compared(
        &constraint(FactClass::Lost, 1.0, false),
        &constraint(FactClass::Lost, 1.0, false),
    );
    assert!(
        never_kept
            .methods
            .get("mine")
            .unwrap()
            .constraints_lost
            .is_empty()
    );
}

#[test]
fn without_a_judge_a_lost_constraint_is_a_warning() {
    let (lost, kept) = (
        constraint(FactClass::Lost, 1.0, true),
        constraint(FactClass::Answered, 1.0, true),
    );
    let found = compare(side(&lost), side(&kept), ComparisonScope::All, &NO_LINES).unwrap();
    assert!(regressions(&found).is_empty());
    assert_eq!(unconfirmed_losses(&found).len(), 4);
}

#[test]
fn a_dimension_that_regressed_beside_a_better_score_makes_the_result_mixed() {
    let (a, b) = (set("a", &A), set("b", &B));
    let mut found = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let mine = found.methods.get_mut("mine").unwrap();
    let overall = mine.overall.as_mut().unwrap();
    overall.verdict = Verdict::Improved;
    mine.dimensions["accuracy"].verdict = Verdict::Regressed;
    assert_eq!(trend_of(&a, &found), Trend::Mixed);
    let measures = [Verdict::Regressed, Verdict::Improved].map(|verdict| {
        let changes = found.changes_with_verdict(verdict);
        changes
            .iter()
            .map(|change| change.measure)
            .collect::<Vec<_>>()
    });
    assert_eq!(measures, [["accuracy"], ["overall"]]);
}

#[test]
fn the_mean_is_named_where_no_method_has_its_verdict() {
    let (a, b) = (set("a", &A), set("b", &B));
    let mut found = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let overall = found
        .methods
        .get_mut("mine")
        .unwrap()
        .overall
        .as_mut()
        .unwrap();
    overall.verdict = Verdict::Improved;
    let overall = *overall;
    let named = |verdict| {
        let found = Comparison {
            primary: Some(DifferenceTest { verdict, ..overall }),
            ..found.clone()
        };
        let mean = [Verdict::Regressed, Verdict::Improved]
            .iter()
            .find_map(|verdict| found.mean_with_verdict(*verdict).copied());
        mean.map(|mean| mean.verdict)
    };
    assert_eq!(named(Verdict::Regressed), Some(Verdict::Regressed));
    assert_eq!(
        [named(Verdict::Improved), named(Verdict::NoEvidence)],
        [None, None]
    );
}

#[test]
fn new_failures_are_named_and_none_where_nothing_failed() {
    let named = |chains: &[(&str, u32)]| {
        let found = failing(chains, false);
        let names = found.names_of(|compared| compared.reliability.is_only_new());
        names.len()
    };
    assert_eq!([named(&[]), named(&[("f1", 1)])], [0, 1]);
}

#[test]
fn costs_rest_on_the_points_that_both_sides_compressed() {
    use crate::results::aggregates::contexts::fakes::context;
    let with = |label: &str, contexts: &[(&str, f64)]| {
        let made = contexts.iter().map(|(fixture, usd)| ContextRow {
            method: "mine".into(),
            usd: Some(*usd),
            ..context(fixture, 1, 1)
        });
        set(label, &A).with_contexts(made.collect())
    };
    let usd = |a: &[(&str, f64)], b: &[(&str, f64)]| {
        let costs = against(&with("a", a), &with("b", b)).costs.usd;
        costs.after.zip(costs.before).unwrap()
    };
    let whole = [("f1", 0.1), ("f2", 0.5)];
    assert_eq!(
        usd(&whole[..1], &whole),
        (0.1, 0.1),
        "the same compression costs the same"
    );
    assert_eq!(usd(&[("f1", 0.2)], &whole), (0.2, 0.1));
}

#[test]
fn new_failures_alone_are_a_change_without_a_difference() {
    let found = failing_against(&A, &[("f1", 1)], false);
    let mine = found.methods.get("mine").unwrap();
    assert!(mine.is_changed() && !mine.has_changed_figures());
    let set = set("a", &A);
    assert_eq!(trend_of(&set, &found), Trend::NoEvidence);
    assert!(mine.reliability.is_only_new() && !mine.is_one_sided());
    let [small, unproven] = changes_without_verdict(&found, &summarize(&set, None));
    assert!(small.is_empty() && unproven.is_empty());
}

#[test]
fn grades_that_only_one_side_has_are_a_change() {
    let whole = set("b", &A);
    let fewer: Vec<Row> = rows("mine", &A)
        .into_iter()
        .filter(|row| row.fixture != "f2")
        .collect();
    let fewer = gather(manifest("a", &[("mine", "command")]), fewer);
    let found = compare(side(&fewer), side(&whole), ComparisonScope::All, &NO_LINES).unwrap();
    assert_eq!(found.methods.get("mine").unwrap().fixtures.one_sided, 1);
    assert_eq!(trend_of(&whole, &found), Trend::NoEvidence);
    assert_eq!(found.names_of(MethodComparison::is_one_sided), ["mine"]);
    // A run that only one side has is no such probe.
    let fewer: Vec<Row> = rows("mine", &A)
        .into_iter()
        .filter(|row| row.run != 3)
        .collect();
    let found = against(
        &gather(manifest("a", &[("mine", "command")]), fewer),
        &whole,
    );
    assert!(!found.is_changed() && found.fixtures.one_sided == 0);
}

/// Compares a side whose method failed these chains with one that failed none.
fn failing(chains: &[(&str, u32)], deterministic: bool) -> Comparison {
    failing_against(&B, chains, deterministic)
}

/// The same against a baseline with these scores.
fn failing_against(
    baseline: &[RunScores],
    chains: &[(&str, u32)],
    deterministic: bool,
) -> Comparison {
    let design = |mut manifest: Manifest| {
        manifest.design.methods[0].deterministic = deterministic;
        manifest
    };
    let mut broken = design(manifest("a", &[("mine", "command")]));
    let failure = |(fixture, run): &(&str, u32)| FailedAction {
        place: serde_json::from_value(
            serde_json::json!({"fixture": fixture, "point": 1, "method": "mine", "run": run}),
        )
        .unwrap(),
        stage: crate::action::StageName::Compress,
        key: None,
        blame: Blame::Method,
        class: None,
        message: "exit status 1".into(),
        hint: None,
    };
    broken.failures.extend(chains.iter().map(failure));
    let is_left = |row: &Row| !chains.contains(&(row.fixture.as_str(), row.run));
    let left: Vec<Row> = rows("mine", &A).into_iter().filter(is_left).collect();
    let whole = gather(
        design(manifest("b", &[("mine", "command")])),
        rows("mine", baseline),
    );
    compare(
        side(&gather(broken, left)),
        side(&whole),
        ComparisonScope::All,
        &NO_LINES,
    )
    .unwrap()
}

#[test]
fn one_more_failure_is_listed_and_no_regression() {
    let found = failing(&[("f1", 3)], false);
    assert!(regressions(&found).is_empty());
    let new: Vec<String> = newly_failing(&found)
        .map(|(method, chain)| format!("{method} · {}", chain.words(found.locale)))
        .collect();
    assert_eq!(new, ["mine · f1 · run 3: exit status 1"]);
}

#[test]
fn a_method_that_fails_two_fixtures_in_all_runs_is_less_reliable_whatever_it_scores() {
    let chains = [
        ("f1", 1),
        ("f1", 2),
        ("f1", 3),
        ("f2", 1),
        ("f2", 2),
        ("f2", 3),
    ];
    let found = failing(&chains, false);
    let gate = regressions(&found);
    let reliability = gate
        .iter()
        .find(|regression| regression.what == "reliability")
        .unwrap();
    let why =
        "mine: failed 6 of 12 chains (fixture and run), in b 0 of 12, p 0.003 on these fixtures";
    assert_eq!(reliability.why, why);
    assert_eq!(newly_failing(&found).count(), 6);
    // one compression that serves all runs is one chain
    let found = failing(&chains, true);
    assert!(
        !regressions(&found)
            .iter()
            .any(|regression| regression.what == "reliability")
    );
    assert_eq!(newly_failing(&found).count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_order_of_rows_changes_no_byte(shuffled in Just(rows("mine", &A)).prop_shuffle()) {
        let bytes = |rows: Vec<Row>| {
            let set = gather(manifest("a", &[("mine", "command")]), rows);
            let found = compare(side(&set), side(&self::set("b", &B)), ComparisonScope::All, &NO_LINES).unwrap();
            serde_json::to_string(&summarize(&set, Some(found))).unwrap()
        };
        prop_assert_eq!(bytes(shuffled), bytes(rows("mine", &A)));
    }

    #[test]
    fn swapping_negates_every_difference(a in proptest::array::uniform4(proptest::array::uniform3(0.0f64..5.0)),
                                         b in proptest::array::uniform4(proptest::array::uniform3(0.0f64..5.0))) {
        let (a, b) = (set("a", &a), set("b", &b));
        let (there, back) = (against(&a, &b), against(&b, &a));
        for ((_, x), (_, y)) in there.dimensions.iter().zip(back.dimensions.iter()) {
            prop_assert!((x.difference + y.difference).abs() < 1e-9);
            prop_assert_eq!(x.verdict == Verdict::Improved, y.verdict == Verdict::Regressed);
        }
    }
}

#[test]
fn overclaims_are_paired_by_fixture_and_unknown_where_no_context_of_one_side_can_be_read() {
    use crate::measure::{AnswerWhenLost, FactClass};
    let set = |label: &str, class: Option<FactClass>, when_lost: [Option<AnswerWhenLost>; 4]| {
        let mut rows = rows("mine", &A);
        for row in &mut rows {
            let place = FIXTURES
                .iter()
                .position(|fixture| *fixture == row.fixture)
                .unwrap();
            row.facts[0].class = class;
            row.answer_when_lost = when_lost[place];
        }
        gather(manifest(label, &[("mine", "command")]), rows)
    };
    let (other, admits) = (
        Some(AnswerWhenLost::OtherValue),
        Some(AnswerWhenLost::Admission),
    );
    let lost = Some(FactClass::Lost);
    let (before, after) = (
        set("b", lost, [admits; 4]),
        set("a", lost, [other, other, admits, other]),
    );
    let found = against(&after, &before).differences.overclaim;
    assert_eq!(
        (found.before.unwrap().share, found.after.unwrap().share),
        (Some(0.0), Some(0.75))
    );
    assert_eq!(found.difference, Some(0.75));
    // 1, 1, 0, 1: s .5, t(.975, 3) 3.182446, clipped
    let ci95 = found.ci95.unwrap();
    assert!(near(ci95.low(), -0.0456115) && ci95.high() == 1.0);
    let found = against(&after, &set("sealed", None, [None; 4]))
        .differences
        .overclaim;
    assert_eq!(
        (found.before, found.difference, found.ci95),
        (None, None, None)
    );
    assert_eq!(found.after.unwrap().count, 9);
}
