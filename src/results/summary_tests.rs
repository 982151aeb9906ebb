//! Summaries against numbers computed by hand.

use super::aggregates::CellCounts;
use super::aggregates::contexts::fakes::context;
use super::fakes::{design, model_info, row};
use super::*;
use crate::action::{ActionKey, Digest, Place, StageName};
use crate::judge::{CriterionScore, Dimension};
use crate::measure::{AnswerWhenLost, FactClass, FactOutcome};
use crate::plan::{Blame, FailedAction};
use stats::NoRetention;

const ACCURACY: Dimension = Dimension::Accuracy;

fn manifest(methods: &[(&str, &str)], fixtures: &[(&str, u32)], runs: u32) -> Manifest {
    Manifest::begin("label", "t", design(methods, fixtures, runs))
}

fn summary(manifest: Manifest, rows: Vec<Row>) -> Summary {
    summarize(
        &ResultSet::gather(manifest, rows.into_iter().map(Ok)).unwrap(),
        None,
    )
}

fn at(probe: &str, row: Row) -> Row {
    Row {
        probe: probe.into(),
        ..row
    }
}

#[test]
fn fixture_values_are_medians_of_run_means_filled_additively() {
    let cells = [
        ("p1", [Some(5.0), Some(4.0), Some(5.0)]),
        ("p2", [Some(2.0), None, Some(1.0)]),
        ("p3", [Some(3.0), Some(3.0), Some(4.0)]),
    ];
    let rows = cells.iter().flat_map(|(probe, runs)| {
        let scored = (1..)
            .zip(runs)
            .filter_map(|(run, value)| Some((run, (*value)?)));
        scored
            .map(|(run, value)| at(probe, row("f1", "mine", run, &[(ACCURACY, value)])))
            .collect::<Vec<_>>()
    });
    let found = summary(
        manifest(&[("mine", "extract")], &[("f1", 3)], 3),
        rows.collect(),
    );
    let mine = found.methods.get("mine").unwrap();
    assert!((mine.overall.median.unwrap() - 10.0 / 3.0).abs() < 1e-12);
    assert_eq!((mine.overall.ci95, mine.overall.fixtures), (None, 1));
    assert!((mine.overall.missing.unwrap() - 1.0 / 9.0).abs() < 1e-12);
    assert_eq!(
        (mine.cells.judged, mine.cells.failed, mine.cells.missing),
        (8, 0, 1)
    );
}

#[test]
fn overall_takes_the_dimensions_that_all_fixtures_have() {
    let rows = vec![
        row(
            "f1",
            "mine",
            1,
            &[(ACCURACY, 4.0), (Dimension::ArtifactTrail, 1.0)],
        ),
        row("f2", "mine", 1, &[(ACCURACY, 2.0)]),
    ];
    let found = summary(
        manifest(&[("mine", "extract")], &[("f1", 1), ("f2", 1)], 1),
        rows,
    );
    let mine = found.methods.get("mine").unwrap();
    assert_eq!(found.overall_dimensions, [ACCURACY]);
    assert_eq!(mine.overall.median, Some(3.0));
    let artifact = mine.dimensions.get("artifact_trail").unwrap();
    assert_eq!((artifact.median, artifact.fixtures), (Some(1.0), 1));
    assert!(mine.dimensions.get("continuity").is_none());
}

#[test]
fn tables_rest_on_the_probes_that_all_methods_have() {
    let rows = vec![
        row("f1", "one", 1, &[(ACCURACY, 4.0)]),
        at("p2", row("f1", "one", 1, &[(ACCURACY, 0.0)])),
        row("f1", "two", 1, &[(ACCURACY, 3.0)]),
    ];
    let methods = [("one", "extract"), ("two", "extract"), ("dead", "command")];
    let found = summary(manifest(&methods, &[("f1", 2)], 1), rows);
    assert_eq!(found.uncommon_probes, 1);
    assert_eq!(found.methods.get("one").unwrap().overall.median, Some(4.0));
    assert_eq!(found.methods.get("dead").unwrap().overall.median, None);
}

#[test]
fn retention_lies_between_floor_and_ceiling() {
    let fixtures = ["f1", "f2", "f3", "f4"];
    let values = [
        ("mine", [3.9, 3.4, 3.8, 3.7]),
        ("all", [4.4, 4.2, 4.2, 4.3]),
        ("nothing", [1.0; 4]),
    ];
    let of = |(method, values): &(&str, [f64; 4])| -> Vec<Row> {
        fixtures
            .iter()
            .zip(values)
            .map(|(fixture, value)| row(fixture, method, 1, &[(ACCURACY, *value)]))
            .collect()
    };
    let methods = [("mine", "extract"), ("all", "full"), ("nothing", "none")];
    let found = summary(
        manifest(&methods, &fixtures.map(|f| (f, 1)), 1),
        values.iter().flat_map(of).collect(),
    );
    let kept = found.methods.get("mine").unwrap().retention;
    let ci95 = kept.ci95.unwrap();
    assert!((kept.value.unwrap() - 0.8244).abs() < 5e-5);
    assert!((ci95.low() - 0.7375).abs() < 5e-5 && (ci95.high() - 0.9086).abs() < 5e-5);
    let alone = summary(
        manifest(&methods[..1], &[("f1", 1)], 1),
        vec![row("f1", "mine", 1, &[(ACCURACY, 3.0)])],
    );
    assert_eq!(
        alone.methods.get("mine").unwrap().retention.reason,
        Some(NoRetention::MissingReference)
    );
}

fn facts(row: Row, classes: &[FactClass]) -> Row {
    let answered = |class| matches!(class, FactClass::Answered | FactClass::AnsweredElsewhere);
    let stands = |class| matches!(class, FactClass::Answered | FactClass::Missed);
    let survival = classes.iter().filter(|c| stands(**c)).count() as f64 / classes.len() as f64;
    let fate = |(n, class): (usize, &FactClass)| FactOutcome {
        fact: format!("fact {n}"),
        answered: answered(*class),
        class: Some(*class),
        found: None,
    };
    Row {
        facts: classes.iter().enumerate().map(fate).collect(),
        fact_survival: Some(survival),
        ..row
    }
}

#[test]
fn lift_leaves_out_what_can_be_guessed_and_tokens_are_weighed_against_the_whole() {
    use FactClass::{Answered, AnsweredElsewhere, Lost, Missed};
    let base = |method| row("f1", method, 1, &[(ACCURACY, 3.0)]);
    let mine = Row {
        fetch_tokens: Some(500),
        context_tokens: Some(1000),
        ..facts(base("mine"), &[Answered, Missed, Lost, Lost])
    };
    let all = Row {
        fetch_tokens: Some(0),
        context_tokens: Some(21_000),
        ..facts(base("all"), &[Answered; 4])
    };
    let nothing = facts(base("nothing"), &[Lost, AnsweredElsewhere, Lost, Lost]);
    let methods = [("mine", "extract"), ("all", "full"), ("nothing", "none")];
    let found = summary(
        manifest(&methods, &[("f1", 1)], 1),
        vec![mine, all, nothing],
    );
    let economy = &found.methods.get("mine").unwrap().economy;
    assert_eq!(
        (economy.fact_survival, economy.fact_survival_lift),
        (Some(0.5), Some(1.0 / 3.0))
    );
    // The answer lacks a fact, so the question is asked again with the 1,000 tokens of the whole transcript.
    assert_eq!(economy.tokens_per_question, Some(2000.0));
}

/// A row whose context lost all facts, with what its answer does.
fn lost(fixture: &str, probe: &str, when_lost: Option<AnswerWhenLost>) -> Row {
    let row = facts(
        at(probe, row(fixture, "mine", 1, &[(ACCURACY, 1.0)])),
        &[FactClass::Lost; 2],
    );
    Row {
        answer_when_lost: when_lost,
        ..row
    }
}

#[test]
fn overclaims_are_a_share_of_the_answers_without_any_fact() {
    use AnswerWhenLost::{Admission, OtherValue, Vague};
    let kept = |fixture| at("p3", row(fixture, "mine", 1, &[(ACCURACY, 5.0)]));
    let first = ["f1", "f2", "f3", "f4"].map(|fixture| lost(fixture, "p1", Some(OtherValue)));
    let second = [("f1", OtherValue), ("f2", Admission), ("f3", Vague)]
        .map(|(f, when)| lost(f, "p2", Some(when)));
    let rows: Vec<Row> = first
        .into_iter()
        .chain(second)
        .chain(["f1", "f2"].map(kept))
        .collect();
    let fixtures = ["f1", "f2", "f3", "f4", "f5"].map(|fixture| (fixture, 3));
    let rows: Vec<Row> = rows.into_iter().chain([kept("f5")]).collect();
    let found = summary(manifest(&[("mine", "extract")], &fixtures, 1), rows.clone());
    let overclaim = found
        .methods
        .get("mine")
        .unwrap()
        .economy
        .overclaim
        .unwrap();
    let shares = [
        overclaim.other_value,
        overclaim.admission,
        overclaim.vague,
        overclaim.right,
    ];
    assert!(
        shares
            .iter()
            .all(|share| (share.of, share.fixtures) == (7, 4)),
        "of the answers without facts alone"
    );
    assert_eq!(shares.map(|share| share.count), [5, 1, 1, 0]);
    assert_eq!(
        shares.map(|share| share.share),
        [Some(0.75), Some(0.125), Some(0.125), Some(0.0)]
    );
    // 1, .5, .5, 1: s .288675, t(.975, 3) 3.182446, clipped
    let ci95 = overclaim.other_value.ci95.unwrap();
    assert!((ci95.low() - 0.290653).abs() < 1e-5 && ci95.high() == 1.0);
    assert_eq!(overclaim.right.ci95, None, "none anywhere: no interval");
    let found = summary(
        manifest(&[("mine", "extract")], &fixtures, 1),
        rows.into_iter().map(unreadable).collect(),
    );
    assert_eq!(
        found.methods.get("mine").unwrap().economy.overclaim,
        None,
        "unknown, and not 0"
    );
}

/// The same row, if only the provider could read the context.
fn unreadable(mut row: Row) -> Row {
    row.facts.iter_mut().for_each(|fact| fact.class = None);
    Row {
        answer_when_lost: None,
        ..row
    }
}

#[test]
fn survival_is_counted_by_the_heading_of_the_prompt() {
    let fate = |class| FactOutcome {
        fact: "a".into(),
        answered: false,
        class: Some(class),
        found: None,
    };
    let (kept, gone) = (FactClass::Missed, FactClass::Lost);
    let row = |fixture, heading: &str, facts| Row {
        facts,
        heading: Some(heading.into()),
        ..row(fixture, "mine", 1, &[(ACCURACY, 3.0)])
    };
    let rows = vec![
        row("f1", "Files", vec![fate(gone), fate(kept), fate(kept)]),
        row("f2", "Errors", vec![fate(gone), fate(kept)]),
    ];
    let found = summary(
        manifest(&[("mine", "extract")], &[("f1", 1), ("f2", 1)], 1),
        rows,
    );
    let method = found.methods.get("mine").unwrap();
    let headings = method.economy.survival_by_heading.iter();
    let kept: Vec<_> = headings
        .map(|(name, kept)| (name.as_str(), kept.count, kept.of))
        .collect();
    assert_eq!(kept, [("Errors", 1, 2), ("Files", 2, 3)]);
}

#[test]
fn a_panel_is_its_medians_and_its_agreement_is_told() {
    let mut panel = manifest(&[("mine", "extract")], &[("f1", 1)], 1);
    panel
        .design
        .judges
        .extend([model_info("b", "test/b"), model_info("c", "test/c")]);
    let graded = |judge: &str, points: [u8; 2]| {
        let scores = ["accuracy_factual", "accuracy_technical"]
            .into_iter()
            .zip(points);
        let criteria = scores
            .filter_map(|(id, points)| CriterionScore::new(id.into(), points, ""))
            .collect();
        Row {
            judge: judge.into(),
            criteria,
            ..row("f1", "mine", 1, &[(ACCURACY, 0.0)])
        }
    };
    let found = summary(
        panel,
        vec![
            graded("judge", [5, 1]),
            graded("b", [4, 2]),
            graded("c", [0, 3]),
        ],
    );
    let accuracy = found
        .methods
        .get("mine")
        .unwrap()
        .dimensions
        .get("accuracy")
        .unwrap()
        .median
        .unwrap();
    assert!((accuracy - (0.6 * 4.0 + 0.4 * 2.0)).abs() < 1e-12);
    assert_eq!(found.judges.alpha.unwrap().pairs, 2);
    assert_eq!(found.methods.get("mine").unwrap().cells.judged, 3);
}

#[test]
fn an_answer_that_a_judge_of_the_panel_did_not_grade_has_no_score() {
    let mut panel = manifest(&[("mine", "extract")], &[("f1", 2)], 1);
    panel.design.judges.push(model_info("harsh", "test/harsh"));
    let graded = |judge: &str, probe: &str, points: u8| {
        let criteria = CriterionScore::new("accuracy_factual".into(), points, "")
            .into_iter()
            .collect();
        let row = row("f1", "mine", 1, &[(ACCURACY, f64::from(points))]);
        Row {
            judge: judge.into(),
            criteria,
            ..at(probe, row)
        }
    };
    let rows = vec![
        graded("judge", "p1", 4),
        graded("harsh", "p1", 2),
        graded("judge", "p2", 4),
    ];
    let found = summary(panel.clone(), rows);
    let mine = found.methods.get("mine").unwrap();
    assert_eq!(
        mine.dimensions.get("accuracy").unwrap().median,
        Some(3.0),
        "the lenient judge alone graded p2"
    );
    assert_eq!((mine.cells.judged, mine.cells.missing), (3, 1));
    let alone = summary(
        panel,
        vec![graded("judge", "p1", 4), graded("judge", "p2", 2)],
    );
    let median = alone
        .methods
        .get("mine")
        .unwrap()
        .dimensions
        .get("accuracy")
        .unwrap()
        .median;
    assert_eq!(
        median,
        Some(3.0),
        "a judge that graded nothing is not of the panel"
    );
}

#[test]
fn criteria_may_stand_in_any_order() {
    let mut panel = manifest(&[("mine", "extract")], &[("f1", 1)], 1);
    panel.design.judges.push(model_info("b", "test/b"));
    let graded = |judge: &str, scores: [(&str, u8); 2]| {
        let criteria = scores
            .into_iter()
            .filter_map(|(id, points)| CriterionScore::new(id.into(), points, ""));
        Row {
            judge: judge.into(),
            criteria: criteria.collect(),
            ..row("f1", "mine", 1, &[(ACCURACY, 0.0)])
        }
    };
    let (factual, technical) = (("accuracy_factual", 5), ("accuracy_technical", 1));
    let found = |second| {
        summary(
            panel.clone(),
            vec![graded("judge", [factual, technical]), graded("b", second)],
        )
    };
    assert_eq!(found([technical, factual]), found([factual, technical]));
}

#[test]
fn rows_of_another_design_are_refused() {
    let gathered =
        |row| ResultSet::gather(manifest(&[("mine", "extract")], &[("f1", 1)], 1), [Ok(row)]);
    let error = gathered(row("f1", "yours", 1, &[]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("method and answerer `yours/agent`, which its manifest does not know"),
        "{error}"
    );
    assert!(gathered(row("f9", "mine", 1, &[])).is_err());
}

#[test]
fn cells_that_a_failure_explains_are_told_from_those_never_reached() {
    let mut broken = manifest(&[("mine", "command")], &[("f1", 2), ("f2", 1)], 2);
    broken.design.methods[0].deterministic = false;
    let failed = |at: serde_json::Value, blame| FailedAction {
        place: serde_json::from_value(at).unwrap(),
        stage: crate::action::StageName::Answer,
        key: None,
        blame,
        class: None,
        message: String::new(),
        hint: None,
    };
    let at = |probe: Option<&str>| {
        let mut at = serde_json::json!({"fixture": "f1", "point": 1, "method": "mine", "run": 1});
        if let Some(probe) = probe {
            at["probe"] = probe.into();
        }
        at
    };
    broken
        .failures
        .push(failed(at(Some("p2")), Blame::Infrastructure));
    let counts = |manifest: Manifest| {
        let rows = vec![row("f1", "mine", 1, &[(ACCURACY, 3.0)])];
        summary(manifest, rows).methods.get("mine").unwrap().cells
    };
    assert_eq!(
        counts(broken.clone()),
        CellCounts {
            judged: 1,
            failed: 1,
            missing: 4,
            ..CellCounts::default()
        }
    );
    broken.design.methods[0].deterministic = true;
    broken.failures.push(failed(at(None), Blame::Method));
    assert_eq!(
        counts(broken),
        CellCounts {
            judged: 1,
            failed: 3,
            missing: 2,
            ..CellCounts::default()
        }
    );
}

#[test]
fn a_failure_survives_the_manifest() {
    let mut broken = manifest(&[("mine", "command")], &[("f1", 1)], 1);
    let place = Place::Selftest {
        judge: "judge".into(),
        case: "stale-1".into(),
    };
    broken.failures.push(FailedAction {
        place,
        stage: crate::action::StageName::Selftest,
        key: None,
        blame: Blame::Infrastructure,
        class: None,
        message: "x".into(),
        hint: None,
    });
    let json = serde_json::to_string(&broken).unwrap();
    assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), broken);
}

#[test]
fn the_worst_probes_come_with_the_judges_words_in_any_order_of_rows() {
    let rows = vec![
        row("f1", "mine", 1, &[(ACCURACY, 1.0)]),
        row("f1", "mine", 2, &[(ACCURACY, 2.0)]),
        row("f2", "mine", 1, &[(ACCURACY, 4.0)]),
        row("f1", "nothing", 1, &[(ACCURACY, 0.0)]),
    ];
    let found = |rows: Vec<Row>| -> Vec<WorstProbe> {
        let manifest = manifest(
            &[("mine", "extract"), ("nothing", "none")],
            &[("f1", 1), ("f2", 1)],
            2,
        );
        let set = ResultSet::gather(manifest, rows.iter().map(Ok)).unwrap();
        let places = worst_rows(&set, 1).into_iter();
        places
            .map(|(at, score)| WorstProbe::new(&rows[at], score))
            .collect()
    };
    let first = found(rows.clone());
    assert_eq!(
        (first[0].score, first[0].question.as_str()),
        (1.5, "Which port?")
    );
    assert_eq!(first[0].criterion.as_ref().unwrap().1, 1);
    assert_eq!(first[0].reasoning, "as far as it goes");
    assert_eq!(found(rows.into_iter().rev().collect()), first);
    assert!(
        found(vec![row("f1", "mine", 1, &[(ACCURACY, 5.0)])]).is_empty(),
        "what is perfect is no worst probe"
    );
}

#[test]
fn distinct_actions_are_paid_once_and_an_unknown_price_stays_unknown() {
    let twice = vec![
        row("f1", "mine", 1, &[(ACCURACY, 4.0)]),
        at("p2", row("f1", "mine", 1, &[(ACCURACY, 4.0)])),
    ];
    let found = summary(manifest(&[("mine", "extract")], &[("f1", 2)], 1), twice);
    let usd = &found.methods.get("mine").unwrap().economy.usd;
    assert_eq!(usd.get(&StageName::Compress), Some(&Some(0.01)));
    assert_eq!(usd.get(&StageName::Judge), Some(&None));
}

#[test]
fn a_compression_from_which_nothing_was_graded_is_paid_too() {
    let manifest = manifest(&[("mine", "extract")], &[("f1", 1), ("f2", 1)], 1);
    let graded = row("f1", "mine", 1, &[(ACCURACY, 4.0)]);
    let of = |fixture: &str, key, usd| ContextRow {
        method: "mine".into(),
        key,
        usd: Some(usd),
        ..context(fixture, 1, 1)
    };
    let contexts = vec![
        of("f1", graded.keys.compress, 0.01),
        of("f2", ActionKey(Digest::hash("its answers failed")), 0.5),
    ];
    let set = ResultSet::gather(manifest, [Ok(graded)])
        .unwrap()
        .with_contexts(contexts);
    let usd = &summarize(&set, None).methods["mine"].economy.usd;
    assert_eq!(usd.get(&StageName::Compress), Some(&Some(0.51)));
}

#[test]
fn the_summary_is_what_scripts_rely_on() {
    let rows = ["f1", "f2", "f3"]
        .into_iter()
        .zip([4.0, 3.5, 3.0])
        .flat_map(|(fixture, value)| {
            let runs = move |run: u32| {
                row(
                    fixture,
                    "mine",
                    run,
                    &[(ACCURACY, value + 0.1 * f64::from(run))],
                )
            };
            (1..=2).map(runs)
        });
    let found = summary(
        manifest(
            &[("mine", "extract")],
            &[("f1", 1), ("f2", 1), ("f3", 1)],
            2,
        ),
        rows.collect(),
    );
    insta::assert_json_snapshot!(found);
}
