//! Comparisons through rows: the worked one, its properties, and what is refused.

use proptest::prelude::*;

use super::fakes::{design, row};
use super::*;
use crate::action::Digest;
use crate::judge::Dimension;
use crate::stats::{Reason, Verdict};

type Runs = [f64; 3];
const A: [Runs; 4] = [[3.9, 4.2, 4.1], [3.4, 3.0, 3.3], [4.4, 4.5, 4.3], [3.8, 4.0, 3.5]];
const B: [Runs; 4] = [[3.5, 3.6, 3.3], [3.1, 2.9, 2.6], [3.9, 4.0, 4.2], [3.3, 3.2, 3.6]];
const FIXTURES: [&str; 4] = ["f1", "f2", "f3", "f4"];

fn rows(method: &str, values: &[Runs]) -> Vec<Row> {
    let of = |(fixture, runs): (&str, &Runs)| -> Vec<Row> {
        let scores = |value: f64| [(Dimension::Accuracy, value), (Dimension::Completeness, value)];
        (1..).zip(runs).map(|(run, value)| row(fixture, method, run, &scores(*value))).collect()
    };
    FIXTURES.into_iter().zip(values).flat_map(of).collect()
}

fn manifest(label: &str, methods: &[(&str, &str)]) -> Manifest {
    Manifest::begin(label, "t", design(methods, &FIXTURES.map(|name| (name, 1)), 3))
}

fn gather(manifest: Manifest, rows: Vec<Row>) -> ResultSet {
    ResultSet::gather(manifest, rows.into_iter().map(Ok)).unwrap()
}

fn set(label: &str, values: &[Runs]) -> ResultSet {
    gather(manifest(label, &[("mine", "command")]), rows("mine", values))
}

fn side(set: &ResultSet) -> Side<'_> {
    Side { set, method: None }
}

fn against(a: &ResultSet, b: &ResultSet) -> MethodComparison {
    compare(side(a), side(b), false).unwrap().methods.0.remove(0).1
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 5e-7
}

#[test]
fn the_worked_comparison_comes_out_through_rows() {
    let compared = against(&set("a", &A), &set("b", &B));
    let overall = compared.overall.unwrap();
    assert_eq!((overall.verdict, overall.reason), (Verdict::Improved, None));
    assert!(near(overall.difference, 0.475) && near(overall.p.unwrap(), 0.0021775));
    let ci95 = overall.ci95.unwrap();
    assert!(near(ci95.low(), 0.322652) && near(ci95.high(), 0.627348));
    let rerun = overall.ci95_rerun.unwrap();
    assert!(near(rerun.low(), 0.267613) && near(rerun.high(), 0.599054));
    assert!(near(overall.mdd.unwrap(), 0.346841));
    assert_eq!(compared.dimensions.len(), 2);
    let accuracy = compared.dimensions.get("accuracy").unwrap();
    assert!(near(accuracy.p_adjusted.unwrap(), 2.0 * accuracy.p.unwrap()));
}

#[test]
fn swapping_the_sides_negates_and_a_set_does_not_differ_from_itself() {
    let (a, b) = (set("a", &A), set("b", &B));
    let (there, back) = (against(&a, &b).overall.unwrap(), against(&b, &a).overall.unwrap());
    assert_eq!((there.difference, there.p), (-back.difference, back.p));
    assert_eq!(back.verdict, Verdict::Regressed);
    let same = against(&a, &a).overall.unwrap();
    assert_eq!((same.difference, same.p, same.verdict), (0.0, Some(1.0), Verdict::NoEvidence));
}

#[test]
fn two_methods_of_one_label_are_compared_by_name() {
    let all = [rows("one", &A), rows("two", &B)].concat();
    let set = gather(manifest("a", &[("one", "command"), ("two", "command")]), all);
    let side = |method| Side { set: &set, method: Some(method) };
    let found = compare(side("one"), side("two"), false).unwrap();
    assert_eq!((found.baseline.as_str(), found.unmatched.len()), ("a:two", 0));
    assert!(near(found.methods.get("one").unwrap().overall.unwrap().difference, 0.475));
    let error = compare(side("onne"), side("two"), false).unwrap_err().to_string();
    assert!(error.contains("`a` has no method `onne`; did you mean `one`?"), "{error}");
}

#[test]
fn several_methods_make_a_larger_family() {
    let methods = [("one", "command"), ("two", "command"), ("gone", "command")];
    let all = |x: &[Runs], y: &[Runs]| [rows("one", x), rows("two", y)].concat();
    let a = gather(manifest("a", &methods), all(&A, &A));
    let b = gather(manifest("b", &methods[..2]), all(&B, &A));
    let found = compare(side(&a), side(&b), false).unwrap();
    assert_eq!(found.unmatched, ["gone"]);
    let overall = found.methods.get("one").unwrap().overall.unwrap();
    assert!(near(overall.p_adjusted.unwrap(), 2.0 * overall.p.unwrap()));
}

#[test]
fn what_differs_is_listed_and_refused() {
    let (a, mut other) = (set("a", &A), manifest("b", &[("mine", "command")]));
    other.design.judge_context = false;
    other.design.judges[0].model = "test/judge-2".into();
    other.design.answerers[0].prompt = Some(Digest::of("another"));
    other.design.rubric.digest = Digest::of("another");
    let error = compare(side(&a), side(&gather(other, rows("mine", &B))), true).unwrap_err();
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
    other.design.fixtures[3].digests.bank = Digest::of("another");
    other.design.fixtures[3].probes[0].digest = Digest::of("another");
    other.design.fixtures[2].digests.transcript = Digest::of("another");
    let b = gather(other, rows("mine", &B));
    let error = compare(side(&a), side(&b), false).unwrap_err().to_string();
    assert!(error.contains("the probes of fixture `f4`") && error.contains("the messages of fixture `f3`"), "{error}");
    assert!(error.contains("`--only-common` compares"), "{error}");
    let found = compare(side(&a), side(&b), true).unwrap();
    assert_eq!((found.fixtures.len(), found.probes, found.left_out), (2, 2, 4));
    assert_eq!(found.methods.0[0].1.overall.unwrap().reason, Some(Reason::FewClusters));
}

#[test]
fn another_endpoint_is_a_warning_and_another_answerer_of_named_methods_a_confound() {
    let (a, mut other) = (set("a", &A), manifest("b", &[("mine", "command")]));
    other.design.answerers[0].endpoint = "elsewhere".into();
    let b = gather(other.clone(), rows("mine", &B));
    assert_eq!(
        compare(side(&a), side(&b), false).unwrap().warnings,
        ["`test/agent-1` was asked at test and at elsewhere"]
    );
    other.design.answerers[0].model = "test/agent-2".into();
    let b = gather(other, rows("mine", &B));
    assert!(compare(side(&a), side(&b), false).is_err());
    let named = |set| Side { set, method: Some("mine") };
    let found = compare(named(&a), named(&b), false).unwrap();
    assert_eq!(found.methods.0[0].1.overall.unwrap().reason, Some(Reason::Confounded));
}

#[test]
fn labels_without_a_common_cell_are_told_so() {
    let (a, b) = (set("a", &A), set("b", &[]));
    let error = compare(side(&a), side(&b), false).unwrap_err().to_string();
    assert!(error.contains("no cell was judged on both sides"), "{error}");
    let other = gather(manifest("b", &[("yours", "command")]), rows("yours", &B));
    let error = compare(side(&a), side(&other), false).unwrap_err().to_string();
    assert!(error.contains("none has the same name (mine, yours)"), "{error}");
}

#[test]
fn runs_that_repeat_one_another_have_no_rerun_interval() {
    let mut same = rows("mine", &A);
    for row in &mut same {
        row.keys = rows("mine", &A)[0].keys.clone();
    }
    let a = gather(manifest("a", &[("mine", "command")]), same);
    let overall = against(&a, &set("b", &B)).overall.unwrap();
    assert_eq!((overall.ci95_rerun, overall.no_rerun), (None, Some(crate::stats::NoRerun::Deterministic)));
}

#[test]
fn many_missing_cells_forbid_a_verdict() {
    let short: Vec<Row> = rows("mine", &A).into_iter().skip(2).collect();
    let a = gather(manifest("a", &[("mine", "command")]), short);
    assert_eq!(against(&a, &set("b", &B)).overall.unwrap().reason, Some(Reason::Missing));
}

#[test]
fn the_gate_tells_what_got_worse_in_a_line() {
    let found = compare(side(&set("a", &B)), side(&set("b", &A)), false).unwrap();
    let gate = regressions(&found);
    assert_eq!(gate.iter().map(|r| r.what.as_str()).collect::<Vec<_>>(), ["overall", "accuracy", "completeness"]);
    assert_eq!(gate[0].why, "mine: overall -0.47 [-0.63, -0.32], p 0.002, 4 fixtures, detectable from 0.35 against b");
    assert!(regressions(&compare(side(&set("a", &A)), side(&set("b", &B)), false).unwrap()).is_empty());
}

#[test]
fn a_method_that_fails_more_often_is_less_reliable_whatever_it_scores() {
    let mut broken = manifest("a", &[("mine", "command")]);
    let place = serde_json::from_value(serde_json::json!({"fixture": "f1", "point": 1, "method": "mine", "run": 3}));
    broken.failures.push(Failure {
        place: place.unwrap(),
        stage: crate::action::StageName::Compress,
        key: None,
        blame: Blame::Method,
        class: None,
        message: "exit status 1".into(),
        hint: None,
    });
    broken.design.methods[0].deterministic = false;
    let left: Vec<Row> = rows("mine", &A).into_iter().filter(|row| row.fixture != "f1" || row.run != 3).collect();
    let found = compare(side(&gather(broken, left)), side(&set("b", &B)), false).unwrap();
    let gate = regressions(&found);
    assert_eq!(gate[0].what, "reliability");
    assert_eq!(gate[0].why, "mine: the method itself failed 1 of 12 cells, in b 0 of 12");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_order_of_rows_changes_no_byte(shuffled in Just(rows("mine", &A)).prop_shuffle()) {
        let bytes = |rows: Vec<Row>| {
            let set = gather(manifest("a", &[("mine", "command")]), rows);
            let found = compare(side(&set), side(&self::set("b", &B)), false).unwrap();
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
