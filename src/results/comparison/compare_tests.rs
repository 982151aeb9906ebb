//! Comparisons of rows: a worked example, properties, and refusals.

use crate::action::Digest;
use crate::judge::{Dimension, UnqualifiedJudge};
use crate::results::aggregates::contexts::fakes::context;
use crate::results::comparison::changes::SameContexts;
use crate::results::fakes::{NO_LINES, design, row};
use crate::results::*;
use stats::{NoEvidenceReason, Verdict};

pub(super) type RunScores = [f64; 3];
pub(super) const A: [RunScores; 4] = [
    [3.9, 4.2, 4.1],
    [3.4, 3.0, 3.3],
    [4.4, 4.5, 4.3],
    [3.8, 4.0, 3.5],
];
pub(super) const B: [RunScores; 4] = [
    [3.5, 3.6, 3.3],
    [3.1, 2.9, 2.6],
    [3.9, 4.0, 4.2],
    [3.3, 3.2, 3.6],
];
pub(super) const FIXTURES: [&str; 4] = ["f1", "f2", "f3", "f4"];

pub(super) fn rows(method: &str, values: &[RunScores]) -> Vec<Row> {
    let of = |(fixture, runs): (&str, &RunScores)| -> Vec<Row> {
        let scores = |value: f64| {
            [
                (Dimension::Accuracy, value),
                (Dimension::Completeness, value),
            ]
        };
        (1..)
            .zip(runs)
            .map(|(run, value)| row(fixture, method, run, &scores(*value)))
            .collect()
    };
    FIXTURES.into_iter().zip(values).flat_map(of).collect()
}

pub(super) fn manifest(label: &str, methods: &[(&str, &str)]) -> Manifest {
    Manifest::begin(
        label,
        "t",
        design(methods, &FIXTURES.map(|name| (name, 1)), 3),
    )
}

pub(super) fn gather(manifest: Manifest, rows: Vec<Row>) -> ResultSet {
    ResultSet::gather(manifest, rows.into_iter().map(Ok)).unwrap()
}

pub(super) fn set(label: &str, values: &[RunScores]) -> ResultSet {
    gather(
        manifest(label, &[("mine", "command")]),
        rows("mine", values),
    )
}

/// Enough probes that the noise of grading does not decide.
const MANY: u32 = 20;

/// The same rows for each of many probes.
pub(super) fn of_many(label: &str, rows: &[Row]) -> ResultSet {
    let probe = |n: u32| {
        rows.iter().map(move |row| Row {
            probe: format!("p{n}"),
            ..row.clone()
        })
    };
    let design = design(
        &[("mine", "command")],
        &FIXTURES.map(|name| (name, MANY)),
        3,
    );
    gather(
        Manifest::begin(label, "t", design),
        (1..=MANY).flat_map(probe).collect(),
    )
}

pub(super) fn side(set: &ResultSet) -> Side<'_> {
    Side { set, method: None }
}

pub(super) fn against(a: &ResultSet, b: &ResultSet) -> MethodComparison {
    compare(side(a), side(b), ComparisonScope::All, &NO_LINES)
        .unwrap()
        .methods
        .swap_remove_index(0)
        .unwrap()
        .1
}

/// Whether a comparison shows that anything got better or worse, by its main result.
pub(super) fn trend_of(set: &ResultSet, found: &Comparison) -> Trend {
    let summary = summarize(set, Some(found.clone()));
    match main_result(&summary, &set.manifest) {
        MainResult::Change { trend } => trend,
        other => panic!("{other:?}"),
    }
}

pub(super) fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 5e-7
}

#[test]
fn the_worked_comparison_comes_out_through_rows() {
    let compared = against(
        &of_many("a", &rows("mine", &A)),
        &of_many("b", &rows("mine", &B)),
    );
    let overall = compared.overall.unwrap();
    assert_eq!(
        (overall.verdict, overall.reason, overall.floored),
        (Verdict::Improved, None, false)
    );
    assert!(near(overall.difference, 0.475) && near(overall.p.unwrap(), 0.0021775));
    let ci95 = overall.ci95.unwrap();
    assert!(near(ci95.low(), 0.322652) && near(ci95.high(), 0.627348));
    let rerun = overall.ci95_rerun.unwrap();
    assert!(near(rerun.low(), 0.267613) && near(rerun.high(), 0.599054));
    assert!((overall.mdd.unwrap() - 0.3608).abs() < 1e-3);
    assert_eq!(compared.dimensions.len(), 2);
    let accuracy = compared.dimensions.get("accuracy").unwrap();
    assert!(near(
        accuracy.p_adjusted.unwrap(),
        2.0 * accuracy.p.unwrap()
    ));
}

#[test]
fn swapping_the_sides_negates_and_a_set_does_not_differ_from_itself() {
    let (a, b) = (
        of_many("a", &rows("mine", &A)),
        of_many("b", &rows("mine", &B)),
    );
    let (there, back) = (
        against(&a, &b).overall.unwrap(),
        against(&b, &a).overall.unwrap(),
    );
    assert_eq!((there.difference, there.p), (-back.difference, back.p));
    assert_eq!(back.verdict, Verdict::Regressed);
    let same = against(&a, &a).overall.unwrap();
    assert_eq!(
        (same.difference, same.p, same.verdict),
        (0.0, Some(1.0), Verdict::NoEvidence)
    );
}

#[test]
fn few_probes_are_graded_too_coarsely_for_the_same_difference() {
    let overall = against(&set("a", &A), &set("b", &B)).overall.unwrap();
    assert_eq!(
        (overall.verdict, overall.reason, overall.floored),
        (Verdict::NoEvidence, Some(NoEvidenceReason::Noise), true)
    );
    assert!(near(overall.difference, 0.475));
}

#[test]
fn two_methods_of_one_label_are_compared_by_name() {
    let all = [rows("one", &A), rows("two", &B)].concat();
    let set = gather(
        manifest("a", &[("one", "command"), ("two", "command")]),
        all,
    );
    let side = |method| Side {
        set: &set,
        method: Some(method),
    };
    let found = compare(side("one"), side("two"), ComparisonScope::All, &NO_LINES).unwrap();
    assert_eq!(
        (found.baseline.as_str(), found.unmatched.len()),
        ("a:two", 0)
    );
    assert!(near(
        found
            .methods
            .get("one")
            .unwrap()
            .overall
            .unwrap()
            .difference,
        0.475
    ));
    let error = compare(side("onne"), side("two"), ComparisonScope::All, &NO_LINES)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`a` has no method `onne`; did you mean `one`?"),
        "{error}"
    );
}

#[test]
fn changed_methods_alone_make_a_family() {
    let methods = [("one", "command"), ("two", "command"), ("gone", "command")];
    let all = |x: &[RunScores], y: &[RunScores]| [rows("one", x), rows("two", y)].concat();
    let a = gather(manifest("a", &methods), all(&A, &A));
    let compared =
        |b: ResultSet| compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let found = compared(gather(manifest("b", &methods[..2]), all(&B, &B)));
    assert_eq!(
        (found.unmatched.as_slice(), found.tested),
        (&["gone".to_owned()][..], 2)
    );
    let overall = found.methods.get("one").unwrap().overall.unwrap();
    assert!(near(overall.p_adjusted.unwrap(), 2.0 * overall.p.unwrap()));
    assert!(near(found.primary.unwrap().difference, overall.difference));
    let found = compared(gather(manifest("b", &methods[..2]), all(&B, &A)));
    assert_eq!((found.tested, found.primary), (1, None));
    let overall = found.methods.get("one").unwrap().overall.unwrap();
    assert_eq!(overall.p_adjusted, overall.p);
    let unchanged = found.methods.get("two").unwrap();
    assert_eq!(
        unchanged.overall.unwrap().reason,
        Some(NoEvidenceReason::Unchanged)
    );
    assert_eq!(unchanged.fixtures.unchanged.len(), 4);
}

/// The rows of `mine` after an edit: rows with other values have other keys.
fn edited(values: &[RunScores], before: &[RunScores]) -> Vec<Row> {
    let mut edited = rows("mine", values);
    for (row, (now, then)) in edited
        .iter_mut()
        .zip(values.iter().flatten().zip(before.iter().flatten()))
    {
        if now != then {
            row.keys.answer = crate::action::ActionKey(Digest::hash("edited"));
            row.keys.judge = row.keys.answer;
        }
    }
    edited
}

#[test]
fn a_method_is_tested_over_the_fixtures_that_changed() {
    let b = of_many("b", &rows("mine", &A));
    let three = [B[0], B[1], B[2], A[3]];
    let found = against(&of_many("a", &edited(&three, &A)), &b);
    assert_eq!(
        (
            found.fixtures.changed.len(),
            found.fixtures.unchanged.as_slice()
        ),
        (3, &["f4".to_owned()][..])
    );
    let overall = found.overall.unwrap();
    assert!(near(overall.difference, -1.4 / 3.0) && near(overall.difference_all, -1.4 / 4.0));
    assert_eq!(
        (overall.clusters, overall.unchanged, overall.verdict),
        (3, 1, Verdict::Regressed)
    );
    let two = [B[0], B[1], A[2], A[3]];
    let found = against(&of_many("a", &edited(&two, &A)), &b);
    let overall = found.overall.unwrap();
    assert!(found.is_untestable() && overall.ci95_rerun.is_some());
    assert_eq!(
        (overall.reason, overall.p_adjusted),
        (Some(NoEvidenceReason::FewClusters), None)
    );
}

#[test]
fn the_same_keys_with_other_grades_were_asked_again() {
    let contexts = FIXTURES.map(|name| {
        [1, 2, 3].map(|run| ContextRow {
            method: "mine".into(),
            ..context(name, 1, run)
        })
    });
    let with_contexts =
        |set: ResultSet| set.with_contexts(contexts.iter().flatten().cloned().collect());
    let found = against(
        &with_contexts(of_many("a", &rows("mine", &B))),
        &with_contexts(of_many("b", &rows("mine", &A))),
    );
    assert_eq!(
        (
            found.fixtures.asked_again.len(),
            found.fixtures.changed.len()
        ),
        (4, 0)
    );
    assert_eq!(found.overall.unwrap().verdict, Verdict::Regressed);
    assert_eq!(
        found.differences.contexts,
        Some(SameContexts {
            same: 12,
            compared: 12
        })
    );
}

#[test]
fn a_fixture_without_a_common_cell_is_not_comparable() {
    let other: Vec<Row> = rows("mine", &A)
        .into_iter()
        .filter(|row| row.fixture != "f2")
        .collect();
    let found = against(
        &set("a", &A),
        &gather(manifest("b", &[("mine", "command")]), other),
    );
    assert_eq!(found.fixtures.not_comparable, ["f2"]);
}

#[test]
fn probes_that_flipped_come_largest_first_and_facts_with_their_place() {
    let (low, high) = ([1.0; 3], [4.0; 3]);
    let mut after = rows("mine", &[low, [2.0; 3], high, high]);
    after[0].facts[0].class = Some(crate::measure::FactClass::Lost);
    after[1].facts[0].class = Some(crate::measure::FactClass::Lost);
    let a = gather(manifest("a", &[("mine", "command")]), after);
    let found = against(&a, &set("b", &[high, high, low, high])).differences;
    let flips: Vec<_> = found
        .flipped
        .iter()
        .map(|flip| (flip.at.fixture.as_str(), flip.before, flip.after))
        .collect();
    assert_eq!(
        flips,
        [("f1", 4.0, 1.0), ("f3", 1.0, 4.0), ("f2", 4.0, 2.0)]
    );
    assert_eq!(
        (found.facts_lost.len(), found.facts_lost[0].fact.as_str()),
        (1, "8081")
    );
    assert!(found.facts_gained.is_empty());
}

#[test]
fn edits_are_named_and_a_served_model_that_changed_is_a_warning() {
    let (mut now, mut then) = (
        manifest("a", &[("mine", "command")]),
        manifest("b", &[("mine", "command")]),
    );
    for (design, tokens) in [(&mut now.design, 150), (&mut then.design, 2000)] {
        let settings = &mut design.methods[0].settings;
        settings.insert("target_tokens".into(), tokens.into());
    }
    let model = |prompt: &str, effort: Option<&str>| {
        let mut info = crate::results::fakes::model_info("mine", "test/agent-1");
        info.prompt = Some(Digest::hash(prompt));
        info.prompt_path = Some("prompts/mine.md".into());
        info.settings.effort = effort.map(str::to_owned);
        Some(info)
    };
    now.design.methods[0].model = model("now", Some("high"));
    then.design.methods[0].model = model("then", None);
    now.models
        .insert("test/agent-1".into(), ["agent-1-2026".to_owned()].into());
    then.models
        .insert("test/agent-1".into(), ["agent-1-2025".to_owned()].into());
    let (a, b) = (
        gather(now, rows("mine", &A)),
        gather(then, rows("mine", &A)),
    );
    let found = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let edits = &found.methods.get("mine").unwrap().edits;
    assert_eq!(
        *edits,
        [
            "prompts/mine.md",
            "effort: not set → high",
            "target_tokens: 2000 → 150"
        ]
    );
    assert!(
        found.warnings[0].contains("served by `agent-1-2026`, in the baseline by `agent-1-2025`"),
        "{found:?}"
    );
}

#[test]
fn what_differs_is_listed_and_refused() {
    let (a, mut other) = (set("a", &A), manifest("b", &[("mine", "command")]));
    other.design.judge_context = false;
    other.design.judges[0].model = "test/judge-2".into();
    other.design.answerers[0].prompt = Some(Digest::hash("another"));
    other.design.rubric.digest = Digest::hash("another");
    let error = compare(
        side(&a),
        side(&gather(other, rows("mine", &B))),
        ComparisonScope::Common,
        &NO_LINES,
    )
    .unwrap_err();
    let text = error.to_string();
    for part in [
        "the rubric",
        "the judges (test/judge-1 against test/judge-2)",
        "`judge_context`",
        "the answerer (test/agent-1, with other settings or another prompt)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("--only-common"));
}

#[test]
fn only_common_leaves_out_what_was_asked_differently() {
    let (a, mut other) = (set("a", &A), manifest("b", &[("mine", "command")]));
    other.design.fixtures[3].digests.bank = Digest::hash("another");
    other.design.fixtures[3].probes[0].digest = Digest::hash("another");
    other.design.fixtures[2].digests.transcript = Digest::hash("another");
    let b = gather(other, rows("mine", &B));
    let error = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the probes of fixture `f4`")
            && error.contains("the messages of fixture `f3`"),
        "{error}"
    );
    assert!(error.contains("`--only-common` compares"), "{error}");
    let found = compare(side(&a), side(&b), ComparisonScope::Common, &NO_LINES).unwrap();
    assert_eq!(
        (found.fixtures.len(), found.probes, found.left_out),
        (2, 2, 4)
    );
    assert_eq!(
        found.methods[0].overall.unwrap().reason,
        Some(NoEvidenceReason::FewClusters)
    );
}

#[test]
fn another_endpoint_is_a_warning_and_another_answerer_of_named_methods_a_confound() {
    let (a, mut other) = (set("a", &A), manifest("b", &[("mine", "command")]));
    other.design.answerers[0].endpoint = "elsewhere".into();
    let b = gather(other.clone(), rows("mine", &B));
    assert_eq!(
        compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES)
            .unwrap()
            .warnings,
        ["`test/agent-1` was asked at test and at elsewhere"]
    );
    other.design.answerers[0].model = "test/agent-2".into();
    let b = gather(other, rows("mine", &B));
    assert!(compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).is_err());
    let named = |set| Side {
        set,
        method: Some("mine"),
    };
    let found = compare(named(&a), named(&b), ComparisonScope::All, &NO_LINES).unwrap();
    assert_eq!(
        found.methods[0].overall.unwrap().reason,
        Some(NoEvidenceReason::Confounded)
    );
}

#[test]
fn labels_without_a_common_cell_are_told_so() {
    let (a, b) = (set("a", &A), set("b", &[]));
    let error = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no cell was judged on both sides"),
        "{error}"
    );
    let other = gather(manifest("b", &[("yours", "command")]), rows("yours", &B));
    let error = compare(side(&a), side(&other), ComparisonScope::All, &NO_LINES)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("none has the same name (mine, yours)"),
        "{error}"
    );
}

#[test]
fn runs_that_repeat_one_another_have_no_rerun_interval() {
    let mut same = rows("mine", &A);
    for row in &mut same {
        row.keys = rows("mine", &A)[0].keys.clone();
    }
    let a = gather(manifest("a", &[("mine", "command")]), same);
    let overall = against(&a, &set("b", &B)).overall.unwrap();
    assert_eq!(
        (overall.ci95_rerun, overall.no_rerun),
        (None, Some(stats::NoRerun::Deterministic))
    );
}

#[test]
fn many_missing_cells_forbid_a_verdict() {
    let short: Vec<Row> = rows("mine", &A).into_iter().skip(2).collect();
    let a = gather(manifest("a", &[("mine", "command")]), short);
    assert_eq!(
        against(&a, &set("b", &B)).overall.unwrap().reason,
        Some(NoEvidenceReason::Missing)
    );
}

#[test]
fn a_fixture_that_one_side_lost_whole_forbids_an_improvement_and_no_regression() {
    let (better, worse) = (rows("mine", &A), rows("mine", &B));
    let verdict = |a: &[Row], b: &[Row]| {
        let overall = against(&of_many("a", a), &of_many("b", b)).overall.unwrap();
        (overall.verdict, overall.reason, overall.clusters)
    };
    let without = |rows: &[Row]| {
        rows.iter()
            .filter(|row| row.fixture != "f4")
            .cloned()
            .collect::<Vec<Row>>()
    };
    let withheld = (Verdict::NoEvidence, Some(NoEvidenceReason::Missing), 3);
    assert_eq!(verdict(&without(&better), &worse), withheld);
    assert_eq!(verdict(&better, &without(&worse)), withheld);
    assert_eq!(
        verdict(&without(&worse), &better),
        (Verdict::Regressed, None, 3)
    );
    assert_eq!(
        verdict(&without(&better), &without(&worse)),
        (Verdict::Improved, None, 3),
        "neither side was graded"
    );
}

#[test]
fn a_regression_with_another_answerer_alone_is_in_the_main_result() {
    let (a, b) = (set("a", &A), set("b", &A));
    let mut found = compare(side(&a), side(&b), ComparisonScope::All, &NO_LINES).unwrap();
    let same = found.methods.swap_remove("mine").unwrap();
    let mut worse = same.clone();
    worse.overall.as_mut().unwrap().verdict = Verdict::Regressed;
    found.methods = [
        ("mine/agent".to_owned(), same),
        ("mine/second".to_owned(), worse),
    ]
    .into_iter()
    .collect();
    let regressed = found.changes_with_verdict(Verdict::Regressed);
    let names: Vec<&str> = regressed.iter().map(|change| change.method).collect();
    assert_eq!(names, ["mine/second"]);
    assert_eq!(trend_of(&a, &found), Trend::Regressed);
}

#[test]
fn the_gate_names_what_got_worse_in_a_line() {
    let compared = |a: &ResultSet, b: &ResultSet| {
        compare(side(a), side(b), ComparisonScope::All, &NO_LINES).unwrap()
    };
    let (better, worse) = (
        of_many("b", &rows("mine", &A)),
        of_many("a", &rows("mine", &B)),
    );
    let gate = regressions(&compared(&worse, &better));
    assert_eq!(
        gate.iter().map(|r| r.what.as_str()).collect::<Vec<_>>(),
        ["overall", "accuracy", "completeness"]
    );
    assert_eq!(
        gate[0].why,
        "mine: overall −0.47 [−0.63, −0.32] on 4 fixtures, p 0.002, against b"
    );
    assert!(regressions(&compared(&set("a", &A), &set("b", &B))).is_empty());
}

#[test]
fn where_no_dimension_is_left_a_change_is_not_measured() {
    let mut manifest = manifest("a", &[("mine", "command")]);
    let dimensions = Dimension::ALL.to_vec();
    manifest.caveats.unqualified.push(UnqualifiedJudge {
        judge: "judge".into(),
        dimensions,
    });
    let unmeasured = gather(manifest, rows("mine", &A));
    let measures_nothing = |a: &ResultSet, b: &ResultSet| {
        measures_nothing(&compare(side(a), side(b), ComparisonScope::All, &NO_LINES).unwrap())
    };
    assert!(measures_nothing(&unmeasured, &set("b", &B)));
    assert!(
        !measures_nothing(&unmeasured, &set("b", &A)),
        "nothing changed"
    );
    assert!(!measures_nothing(&set("a", &A), &set("b", &B)));
}
