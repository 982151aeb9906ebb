use super::*;
use crate::action::Template;
use crate::cache::{Holder, Store};
use crate::cli::commands::Cli;
use crate::cli::engine::{Orders, drive};
use crate::cli::terminal::Hearing;
use crate::pipeline::{Environment, Request, open, starter_files};
use crate::scheduler::{Budget, Ended};

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
    let request = Request { file: folder.join("pipeline.toml"), ..Request::default() };
    let mut pipeline = open(&request, &Bare).unwrap().pipeline;
    let text = "{% if request and not other %}{{ 1 // 0 }}{% endif %}{{ request }}";
    pipeline.judges[0].template = Template::new(text, &["request", "other"]).unwrap();
    pipeline
}

fn driven(pipeline: &Pipeline, progress: &Progress) -> Ended {
    let store = Store::open(&pipeline.cache, &Holder { command: "test".to_owned() }).unwrap();
    let orders = Orders { allow_weak_judge: false, ..Orders::within(Budget::default()) };
    drive(pipeline, &store, &orders, progress, &mut Hearing::new(progress)).unwrap()
}

#[test]
fn every_cell_is_settled_where_a_judge_cannot_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = with_a_mute_judge(folder.path());
    let common = <Cli as clap::Parser>::parse_from(["compeval", "--quiet", "check"]).common;
    let progress = Progress::of_run(&pipeline, Allowance::default(), &Console::new(&common));
    let ended = driven(&pipeline, &progress);
    assert!(ended.untested[0].why.contains("1 // 0"), "{:?}", ended.untested);
    let board = progress.board.borrow();
    for (stage, tally) in board.stages() {
        assert_eq!(tally.settled(), tally.total, "{stage:?}: {tally:?}");
    }
    let selftest = board.stages()[&StageName::Selftest];
    assert_eq!((selftest.total, selftest.failed), (31, 1), "one failure stands for all");
}
