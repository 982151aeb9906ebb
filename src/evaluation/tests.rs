use super::*;
use crate::action::StageName;
use crate::parts::PartNumber;
use crate::pipeline::starter_files;
use crate::results::{Label, Outcome};
use crate::scheduler::{BudgetLimits, StopRequest};
use base::units::Usd;
use store::remote::GivenRemote;

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in starter_files() {
        base::files::write_whole(&folder.path().join(path), text).unwrap();
    }
    folder
}

fn request(folder: &tempfile::TempDir, label: &str) -> Request {
    Request {
        label: Some(Label::new(label).unwrap()),
        ..Request::new(folder.path()).unwrap()
    }
}

#[test]
fn a_whole_matrix_runs_without_a_terminal_and_then_from_the_cache() {
    let folder = project();
    let mut events = Vec::new();
    let mut listener = |event: &Event<'_>| match event {
        Event::Opened { warnings, .. } => {
            events.push(format!("opened, warned: {}", !warnings.is_empty()))
        }
        Event::Started { stages, .. } => events.push(format!("started {} stages", stages.len())),
        Event::WorkIsOver => events.push("over".to_owned()),
        Event::Ended { run, totals } => events.push(format!("ended {:?}", totals.ending(run))),
        _ => {}
    };
    let outcome = evaluate(request(&folder, "first"), &mut listener).unwrap();
    assert_eq!(
        events,
        [
            "opened, warned: false",
            "started 4 stages",
            "over",
            "ended Complete"
        ]
    );
    assert_eq!(outcome.manifest.outcome, Outcome::Complete);
    let executed =
        |outcome: &EvaluationOutcome| outcome.manifest.stages[&StageName::Judge].executed;
    assert!(executed(&outcome) > 0 && outcome.unsynced.is_none());
    for name in [
        "cells.jsonl",
        "summary.json",
        "report.md",
        "report.html",
        "manifest.json",
    ] {
        assert!(outcome.folder.path().join(name).exists(), "{name}");
    }

    let again = evaluate(request(&folder, "second"), &mut |_| {}).unwrap();
    assert_eq!(executed(&again), 0);
    let scores = |outcome: &EvaluationOutcome| {
        serde_json::to_value(&outcome.summary.as_ref().unwrap().methods).unwrap()
    };
    assert_eq!(scores(&outcome), scores(&again));
}

/// A remote in a folder, as if the user had named it.
fn named_remote(shared: &tempfile::TempDir) -> GivenRemote {
    let folder = shared.path().join("remote");
    base::files::create_private_folder(&folder).unwrap();
    let url = format!("fs://{}", folder.display());
    GivenRemote {
        url: Some(url.parse().unwrap()),
        is_named: true,
        ..GivenRemote::default()
    }
}

/// A request for a part, or for the results of all parts.
fn part_request(
    folder: &tempfile::TempDir,
    shared: &tempfile::TempDir,
    part: Option<u32>,
) -> Request {
    Request {
        part: part.map(|index| PartNumber::new(index, 2).unwrap()),
        offline: part.is_none(),
        remote: named_remote(shared),
        ..request(folder, "parts")
    }
}

#[test]
fn parts_meet_in_a_folder_and_the_results_of_all_ask_no_model() {
    let (folder, shared) = (project(), tempfile::tempdir().unwrap());
    for index in [1, 2] {
        let outcome = evaluate(part_request(&folder, &shared, Some(index)), &mut |_| {}).unwrap();
        assert!(
            outcome.summary.is_none()
                && outcome.manifest.part.is_some()
                && outcome.unpushed.is_none()
        );
        assert!(!outcome.folder.path().join("report.md").exists());
    }
    let merged = evaluate(part_request(&folder, &shared, None), &mut |_| {}).unwrap();
    assert_eq!(merged.ending, Outcome::Complete);
    let rows = |folder: &tempfile::TempDir| {
        std::fs::read_to_string(folder.path().join("results/parts/cells.jsonl")).unwrap()
    };
    let whole = project();
    evaluate(request(&whole, "parts"), &mut |_| {}).unwrap();
    assert_eq!(rows(&folder), rows(&whole));
}

#[test]
fn what_cannot_be_compared_is_published_where_nothing_is_sent_and_else_refused() {
    let (folder, shared) = (project(), tempfile::tempdir().unwrap());
    evaluate(request(&folder, "before"), &mut |_| {}).unwrap();
    let path = folder.path().join("results/before/manifest.json");
    let manifest = std::fs::read_to_string(&path).unwrap();
    let edited = manifest.replace("\"judge_context\": true", "\"judge_context\": false");
    assert_ne!(edited, manifest);
    std::fs::write(&path, edited).unwrap();
    let baseline = |request: Request| Request {
        baseline: Some(against("before")),
        ..request
    };
    let refused = evaluate(baseline(request(&folder, "after")), &mut |_| {});
    assert!(
        matches!(refused, Err(EvaluationError::OtherBaseline(_)))
            && !folder.path().join("results/after").exists()
    );
    let replay = Request {
        offline: true,
        ..baseline(request(&folder, "replay"))
    };
    let replayed = evaluate(replay, &mut |_| {}).unwrap();
    assert!(matches!(
        replayed.refused,
        Some(EvaluationError::Incomparable(_))
    ));
    for index in [1, 2] {
        evaluate(part_request(&folder, &shared, Some(index)), &mut |_| {}).unwrap();
    }
    let merged = baseline(part_request(&folder, &shared, None));
    let merged = evaluate(merged, &mut |_| {}).unwrap();
    assert!(
        matches!(merged.refused, Some(EvaluationError::Incomparable(_)))
            && merged.ending == Outcome::Complete
    );
    assert!(merged.folder.path().join("report.md").exists());
}

/// A baseline of these results.
fn against(label: &str) -> Baseline {
    Baseline {
        side: label.into(),
        only_common: false,
    }
}

#[test]
fn a_run_that_is_asked_to_stop_keeps_what_is_done() {
    let folder = project();
    let (_sender, stop) = tokio::sync::watch::channel(StopRequest::Drain);
    let outcome = evaluate(
        Request {
            stop: Some(stop),
            ..request(&folder, "stopped")
        },
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(
        (outcome.ending, outcome.manifest.outcome),
        (Outcome::Interrupted, Outcome::Interrupted)
    );
}

#[test]
fn what_is_wrong_with_a_request_is_said_before_anything_is_written() {
    let folder = project();
    let baseline = Baseline {
        side: "absent".to_owned(),
        only_common: false,
    };
    let compared = Request {
        baseline: Some(baseline),
        ..request(&folder, "first")
    };
    assert!(matches!(
        evaluate(compared, &mut |_| {}),
        Err(EvaluationError::Folder(_))
    ));
    let limits = BudgetLimits {
        usd: Some(Usd(0.0)),
        requests: None,
    };
    let free = evaluate(
        Request {
            limits,
            ..request(&folder, "free")
        },
        &mut |_| {},
    );
    assert_eq!(
        free.unwrap().ending,
        Outcome::Complete,
        "built-in rules cost nothing"
    );
    assert!(!folder.path().join("results/first").exists());
}
