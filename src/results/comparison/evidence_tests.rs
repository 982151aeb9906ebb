//! Comparisons in which a part of the evidence is missing or does not count: constraints that grades say little about,
//! judges that graded one side alone, sets without answers.

use super::compare_tests::{A, against, gather, manifest, rows, side, trend_of};
use crate::action::{ActionKey, Digest};
use crate::judge::{Dimension, UnqualifiedJudge};
use crate::measure::{FactClass, FactOutcome};
use crate::planted::{Kind, Position, State};
use crate::results::aggregates::contexts::fakes::context;
use crate::results::comparison::changes::SameContexts;
use crate::results::fakes::{NO_LINES, design, model_info};
use crate::results::files::design::PlantedInfo;
use crate::results::files::row::PlantedRow;
use crate::results::*;

/// A set with a probe of two constraints. The contexts have the first one; the second has this class. All answers get
/// this grade.
fn two_constraints(class: FactClass, grade: f64) -> ResultSet {
    let mut rows = rows("mine", &[[grade; 3]; 4]);
    for row in &mut rows {
        row.is_constraint = true;
        let second = FactOutcome {
            fact: "no new dependency".into(),
            class: Some(class),
            ..row.facts[0].clone()
        };
        row.facts.push(second);
    }
    gather(manifest("a", &[("mine", "command")]), rows)
}

#[test]
fn a_constraint_that_was_lost_beside_another_is_not_cleared_by_a_grade_for_both() {
    let kept = two_constraints(FactClass::Answered, 4.0);
    let lost_at = |grade: f64| {
        let lost = two_constraints(FactClass::Lost, grade);
        compare(side(&lost), side(&kept), ComparisonScope::All, &NO_LINES).unwrap()
    };
    let half = lost_at(3.0);
    let constraint = |found: &Comparison| {
        regressions(found)
            .iter()
            .filter(|found| found.what == "constraint")
            .count()
    };
    assert_eq!(constraint(&half), 0);
    let warnings = unconfirmed_losses(&half);
    assert_eq!(warnings.len(), 4);
    assert!(
        warnings[0].ends_with("a keeps it, and the grades do not say whether an answer has it"),
        "{warnings:?}"
    );
    assert_eq!(
        constraint(&lost_at(1.0)),
        4,
        "an answer without any of them"
    );
    assert!(
        unconfirmed_losses(&lost_at(5.0)).is_empty(),
        "an answer with all of them, in other words"
    );
}

#[test]
fn grades_in_completeness_that_do_not_count_confirm_no_loss() {
    let kept = two_constraints(FactClass::Answered, 4.0);
    let mut lost = two_constraints(FactClass::Lost, 1.0);
    let dimensions = vec![Dimension::Completeness];
    lost.manifest.caveats.unqualified.push(UnqualifiedJudge {
        judge: "judge".into(),
        dimensions,
    });
    let found = compare(side(&lost), side(&kept), ComparisonScope::All, &NO_LINES).unwrap();
    assert!(
        regressions(&found)
            .iter()
            .all(|found| found.what != "constraint")
    );
    assert_eq!(unconfirmed_losses(&found).len(), 4);
}

fn graded_by(judge: &str) -> Vec<Row> {
    rows("mine", &A)
        .into_iter()
        .map(|row| Row {
            judge: judge.into(),
            ..row
        })
        .collect()
}

#[test]
fn sides_that_other_judges_of_the_panel_graded_are_not_compared() {
    let mut manifest = manifest("a", &[("mine", "command")]);
    manifest
        .design
        .judges
        .push(model_info("harsh", "test/harsh"));
    let alone = gather(manifest.clone(), graded_by("judge"));
    let both = gather(manifest, [graded_by("judge"), graded_by("harsh")].concat());
    let refused = compare(
        side(&alone),
        side(&both),
        ComparisonScope::Common,
        &NO_LINES,
    )
    .unwrap_err()
    .to_string();
    assert!(
        refused.contains("the judges that gave grades (judge against judge, harsh)"),
        "{refused}"
    );
    assert!(compare(side(&alone), side(&alone), ComparisonScope::All, &NO_LINES).is_ok());
}

#[test]
fn what_designs_show_is_refused_before_a_run_as_after_it() {
    let before = gather(manifest("b", &[("mine", "command")]), rows("mine", &A));
    let edits: [fn(&mut Design); 5] = [
        |_| {},
        |design| design.judge_context = false,
        |design| design.fixtures[0].digests.bank = Digest::hash("another"),
        |design| drop(design.fixtures.pop()),
        |design| {
            design
                .fixtures
                .iter_mut()
                .for_each(|info| info.digests.transcript = Digest::hash("another"))
        },
    ];
    let mut refused = Vec::new();
    for (edit, scope) in edits
        .iter()
        .flat_map(|edit| [ComparisonScope::All, ComparisonScope::Common].map(|s| (edit, s)))
    {
        let mut run = manifest("a", &[("mine", "command")]);
        edit(&mut run.design);
        let fixtures: Vec<String> = run
            .design
            .fixtures
            .iter()
            .map(|info| info.name.clone())
            .collect();
        let early =
            require_comparable(run.design.clone(), before.manifest.clone(), None, scope).err();
        let graded = rows("mine", &A)
            .into_iter()
            .filter(|row| fixtures.contains(&row.fixture))
            .collect();
        let late = compare(side(&gather(run, graded)), side(&before), scope, &NO_LINES).err();
        assert_eq!(early, late);
        refused.push(early.is_some());
    }
    assert_eq!(
        refused,
        [
            false, false, true, true, true, false, true, false, true, true
        ]
    );
    let named = require_comparable(
        before.manifest.design.clone(),
        before.manifest.clone(),
        Some("yours"),
        ComparisonScope::All,
    );
    assert!(
        named
            .unwrap_err()
            .to_string()
            .contains("`b` has no method `yours`")
    );
}

/// The edits of a method of a set against another one.
fn edits_between(set: &ResultSet, judged: &str, baseline: &str) -> Vec<String> {
    let [judged, baseline] = [judged, baseline].map(|method| Side {
        set,
        method: Some(method),
    });
    let found = compare(judged, baseline, ComparisonScope::All, &NO_LINES).unwrap();
    found.methods[0].edits.clone()
}

#[test]
fn two_methods_of_one_strategy_differ_by_their_prompts() {
    let methods = [
        ("one", "anchored-iterative"),
        ("two", "anchored-iterative"),
        ("other", "regenerative"),
    ];
    let mut manifest = manifest("a", &methods);
    for method in &mut manifest.design.methods {
        let path = format!("prompts/{}.md", method.name);
        let asked = model_info(&method.name, "test/agent-1");
        method.model = Some(ModelInfo {
            prompt: Some(Digest::hash(&path)),
            prompt_path: Some(path),
            ..asked
        });
    }
    let set = gather(manifest, methods.map(|(name, _)| rows(name, &A)).concat());
    assert_eq!(edits_between(&set, "two", "one"), ["prompts/two.md"]);
    assert!(edits_between(&set, "other", "one").is_empty());
}

/// A set without answers, whose contexts depend on `text`.
fn contexts_alone(text: &str) -> ResultSet {
    let names = ["a", "b", "c"];
    let mut design = design(&[("m", "command")], &names.map(|name| (name, 0)), 1);
    design.answerers.clear();
    design.methods[0].readers.clear();
    design.planted = Some(PlantedInfo {
        items: Digest::hash("items"),
        variants: 1,
        is_tested: true,
        answerer: Some(design.judges[0].clone()),
    });
    let contexts = names.map(|name| {
        let digest = Digest::hash(format!("{name} {text}"));
        ContextRow {
            context: digest,
            ..context(name, 1, 1)
        }
    });
    let none = Vec::<Result<Row, FolderError>>::new();
    let planted = names.map(|name| PlantedRow {
        fixture: name.into(),
        variant: 1,
        method: "m".into(),
        run: 1,
        point: 1,
        key: ActionKey(Digest::hash(name)),
        compressed: true,
        item: "done/tag".into(),
        kind: Kind::Done,
        position: Position::Early,
        object: "tag-1".into(),
        done: Some(false),
        decoy_done: Some(false),
        state: State::Done,
        said: Some(State::Done),
        decoy_said: None,
        handle: None,
        literal: None,
        near_literal: None,
    });
    let set = ResultSet::gather(Manifest::begin(text, "t", design), none)
        .unwrap()
        .with_contexts(contexts.to_vec());
    ResultSet {
        planted: planted.to_vec(),
        ..set
    }
}

#[test]
fn without_answers_other_contexts_are_a_change() {
    let (now, before) = (contexts_alone("now"), contexts_alone("before"));
    let found = against(&now, &before);
    assert_eq!(
        found.differences.contexts,
        Some(SameContexts {
            same: 0,
            compared: 3
        })
    );
    assert!(found.is_changed());
    let compared = compare(side(&now), side(&before), ComparisonScope::All, &NO_LINES).unwrap();
    assert_eq!(trend_of(&now, &compared), Trend::NoEvidence);
    let same = against(&now, &now);
    assert_eq!(
        same.differences.contexts,
        Some(SameContexts {
            same: 3,
            compared: 3
        })
    );
    assert!(!same.is_changed());
}

/// A planted item that another model was asked about, or that stands elsewhere, shows nothing of a method.
#[test]
fn planted_items_and_their_answerer_must_be_the_same() {
    type Edit = fn(&mut PlantedInfo);
    let now = contexts_alone("now");
    let edits: [(Edit, &str); 2] = [
        (
            |planted| planted.items = Digest::hash("others"),
            "what is planted",
        ),
        (
            |planted| planted.answerer.as_mut().unwrap().model = "p/other".into(),
            "the answerer of planted items",
        ),
    ];
    for (edit, what) in edits {
        let mut before = contexts_alone("before");
        edit(before.manifest.design.planted.as_mut().unwrap());
        let found = compare(side(&now), side(&before), ComparisonScope::All, &NO_LINES);
        let refusal = found.unwrap_err().to_string();
        assert!(refusal.contains(what), "{refusal}");
        let common = compare(
            side(&now),
            side(&before),
            ComparisonScope::Common,
            &NO_LINES,
        );
        assert!(common.is_err(), "nothing else is compared");
    }
    let mut unasked = contexts_alone("unasked");
    unasked.manifest.design.planted = None;
    let found = compare(
        side(&now),
        side(&unasked),
        ComparisonScope::Common,
        &NO_LINES,
    );
    let refusal = found.unwrap_err().to_string();
    assert!(refusal.contains("contexts alone"), "{refusal}");
}
