use super::*;
use crate::action::Template;
use crate::cache::{Holder, Store};
use crate::cli::commands::Cli;
use crate::cli::engine::{RunOptions, run_matrix};
use crate::cli::terminal::RunLog;
use crate::pipeline::{Environment, OpenRequest, open, starter_files};
use crate::scheduler::{Budget, RunOutcome};

struct Bare;

impl Environment for Bare {
    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

/// The starter's project by built-in rules, with a judge whose prompt does not render where it is asked.
fn with_a_mute_judge(folder: &std::path::Path) -> Pipeline {
    for file in starter_files() {
        crate::files::write_whole(&folder.join(file.path), file.text).unwrap();
    }
    let request = OpenRequest { file: folder.join("pipeline.toml"), ..OpenRequest::default() };
    let mut pipeline = open(&request, &Bare).unwrap().pipeline;
    let text = "{% if request and not other %}{{ 1 // 0 }}{% endif %}{{ request }}";
    pipeline.judges[0].template = Template::new(text, &["request", "other"]).unwrap();
    pipeline
}

fn driven(pipeline: &Pipeline, progress: &Progress) -> RunOutcome {
    let store = Store::open(&pipeline.cache, &Holder { command: "test".to_owned() }).unwrap();
    let options = RunOptions { allow_weak_judge: false, ..RunOptions::within(Budget::default()) };
    run_matrix(pipeline, &store, &options, progress, &mut RunLog::new(progress)).unwrap()
}

#[test]
fn every_cell_is_settled_where_a_judge_cannot_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = with_a_mute_judge(folder.path());
    let common = <Cli as clap::Parser>::parse_from(["compeval", "--quiet", "check"]).common;
    let progress = Progress::of_run(&pipeline, BudgetLimits::default(), &Console::new(&common));
    let ended = driven(&pipeline, &progress);
    assert!(ended.untested[0].why.contains("1 // 0"), "{:?}", ended.untested);
    let model = progress.model.borrow();
    for (stage, progress) in model.stages() {
        assert_eq!(progress.finished(), progress.total, "{stage:?}: {progress:?}");
    }
    let selftest = model.stages()[&StageName::Selftest];
    assert_eq!((selftest.total, selftest.failed), (47, 1), "one failure stands for all");
}
