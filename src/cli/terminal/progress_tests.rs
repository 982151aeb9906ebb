use super::*;
use crate::cli::commands::Cli;
use crate::entries::key_of;
use crate::evaluation::{EngineOptions, Event, Listening, run_matrix};
use crate::pipeline::{OpenRequest, Pipeline, open, starter_files};
use crate::scheduler::RunOutcome;
use store::cache::Store;

/// The starter project with a judge that nothing listens for.
fn with_an_unreachable_judge(folder: &std::path::Path) -> Pipeline {
    for (path, text) in starter_files() {
        let text = text.replace(
            "[[judge]]\nname  = \"judge\"\nmodel = \"lexical\"",
            UNREACHABLE,
        );
        base::files::write_whole(&folder.join(path), &text).unwrap();
    }
    let request = OpenRequest {
        file: folder.join("pipeline.toml"),
        ..OpenRequest::default()
    };
    open(&request, &|_| None).unwrap().pipeline
}

const UNREACHABLE: &str = r#"[providers.stub]
kind     = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
limits   = { max_attempts = 1 }

[[judge]]
name  = "judge"
model = "stub/judge""#;

/// Runs the matrix, and shows it.
fn driven(pipeline: &Pipeline, console: &Console) -> (RunOutcome, Progress) {
    let store = Store::open(&pipeline.cache, "test", key_of).unwrap();
    let mut shown = None;
    let mut show = |event: &Event<'_>| match event {
        Event::Started { stages, limits } => {
            shown = Some(Progress::new(stages.iter().copied(), *limits, console));
        }
        Event::Step { event, totals } => shown
            .iter()
            .for_each(|progress| progress.on_event(event, totals)),
        _ => {}
    };
    let options = EngineOptions::default();
    let ended = run_matrix(pipeline, &store, &options, &Listening::new(&mut show), None).unwrap();
    (ended, shown.unwrap())
}

#[test]
fn every_cell_is_finished_if_a_judge_cannot_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = with_an_unreachable_judge(folder.path());
    let common = <Cli as clap::Parser>::parse_from(["compeval", "--quiet", "check"]).common;
    let (ended, progress) = driven(&pipeline, &Console::new(&common));
    assert!(
        ended.untested[0].why.contains("cannot connect"),
        "{:?}",
        ended.untested
    );
    let model = progress.model.borrow();
    for (stage, progress) in &model.stages {
        assert_eq!(
            progress.finished(),
            progress.total,
            "{stage:?}: {progress:?}"
        );
    }
    let selftest = model.stages[&StageName::Selftest];
    assert!(
        selftest.total > 0 && selftest.counts.failed > 0,
        "{selftest:?}"
    );
}
