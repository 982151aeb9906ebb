use super::*;
use crate::action::ActionKey;
use crate::cli::commands::Cli;
use crate::entries::key_of;
use crate::evaluation::{EngineOptions, Event, Listening, run_matrix};
use crate::pipeline::{MatrixCounts, OpenRequest, Pipeline, open, starter_files};
use crate::plan::CostEstimate;
use crate::scheduler::{RunOutcome, Spent};
use base::locale::Locale;
use base::units::{Tokens, Usage};
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
            .iter_mut()
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
    let (ended, progress) = driven(&pipeline, &Console::new(&common, Locale::En));
    assert!(
        ended.untested[0].why.contains("cannot connect"),
        "{:?}",
        ended.untested
    );
    let model = &progress.model;
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

fn status(waits: Option<WaitReason>) -> ProviderStatus {
    ProviderStatus {
        provider: "openai".into(),
        model: "gpt-5.2".into(),
        in_flight: 12,
        waits,
    }
}

fn snapshot(sent: u64, usd: f64, waits: Option<WaitReason>) -> ProgressSnapshot {
    let usage = Usage {
        input: Some(Tokens(sent * 900)),
        output: Some(Tokens(sent * 100)),
        ..Usage::default()
    };
    let spent = Spent {
        replies: sent,
        usage: Some(usage),
        usd: Some(Usd(usd)),
        ..Spent::default()
    };
    ProgressSnapshot {
        statuses: vec![status(waits)],
        spent,
        stop: StopRequest::No,
    }
}

/// A model with the totals that it shows.
struct Shown {
    model: ProgressModel,
    totals: RunTotals,
}

impl Shown {
    fn new(stages: impl IntoIterator<Item = (StageName, u64)>) -> Shown {
        Shown {
            model: ProgressModel::new(stages, BudgetLimits::default()),
            totals: RunTotals::default(),
        }
    }

    fn happens(&mut self, event: &RunEvent<'_>) {
        self.totals.count(event);
        self.model.on_event(event, &self.totals);
    }

    fn keeps(&mut self, stage: StageName, times: usize) {
        for _ in 0..times {
            self.happens(&RunEvent::Completed {
                stage,
                key: ActionKey(crate::action::Digest::hash("x")),
                replies: Some(1),
                usage: Usage::default(),
                cost: None,
            });
        }
    }
}

/// A run of 400 answers and grades, of which 60 answers came in half a minute at 2 a second.
fn shown(waits: Option<WaitReason>) -> Shown {
    let stages = [
        (StageName::Answer, 200),
        (StageName::Judge, 200),
        (StageName::Selftest, 0),
    ];
    let mut shown = Shown::new(stages);
    shown.happens(&RunEvent::Estimated(&CostEstimate {
        usd: Some(Usd(4.0)),
        ..CostEstimate::default()
    }));
    let start = Instant::now();
    shown.model.update(snapshot(0, 0.0, None), start);
    shown.happens(&RunEvent::Cached {
        stage: StageName::Answer,
        key: ActionKey(crate::action::Digest::hash("y")),
        early_cutoff: false,
    });
    shown.keeps(StageName::Answer, 60);
    let now = start + Duration::from_secs(30);
    shown.model.update(snapshot(60, 0.5, waits), now);
    shown
}

fn under_way(waits: Option<WaitReason>) -> ProgressModel {
    shown(waits).model
}

#[test]
fn a_line_shows_how_far_what_it_costs_and_how_long_it_takes() {
    let model = under_way(None);
    assert_eq!(
        model.line(),
        "answer 61/200, judge 0/200 · 54k tokens in, 6.0k out · \
         $0.50 so far, about $3.40 to come · 3 min left"
    );
    assert_eq!(model.cells(), (61, 400));
}

#[test]
fn a_server_that_takes_a_minute_for_a_call_has_a_time_left() {
    let mut shown = Shown::new([(StageName::Answer, 10)]);
    let start = Instant::now();
    for second in 0..=200_u64 {
        if second > 0 && second % 50 == 0 {
            shown.keeps(StageName::Answer, 1);
        }
        shown.model.update(
            snapshot(second / 50, 0.0, None),
            start + Duration::from_secs(second),
        );
    }
    let line = shown.model.line();
    assert!(line.ends_with("5 min left"), "{line}");
}

#[test]
fn what_is_waited_for_is_reported_the_heaviest_first() {
    let words = |waits| under_way(waits).wait_words();
    assert_eq!(words(None), None);
    assert_eq!(
        words(Some(WaitReason::Rate)).unwrap(),
        "waits for the rate that openai allows"
    );
    assert_eq!(
        words(Some(WaitReason::Replies)).unwrap(),
        "waits for replies of openai, 12 calls under way"
    );
    let pause = WaitReason::Paused(Duration::from_millis(11_200), "HTTP 429: slow down".into());
    assert_eq!(
        words(Some(pause)).unwrap(),
        "waits for openai/gpt-5.2, paused for 12 s more (HTTP 429: slow down)"
    );
    let away = under_way(Some(WaitReason::Unavailable(
        Duration::from_secs(8),
        "cannot connect: refused".into(),
    )));
    assert_eq!(
        away.wait_words().unwrap(),
        "waits for openai/gpt-5.2 to recover, tried again in 8 s (cannot connect: refused)"
    );
    assert!(away.is_held_up());
}

#[test]
fn a_budget_that_holds_calls_back_is_reported() {
    let mut model = under_way(None);
    model.limits.usd = Some(Usd(1.0));
    assert_eq!(model.wait_words(), None);
    let mut snapshot = snapshot(60, 0.7, None);
    snapshot.spent.reserved = Usd(0.29);
    model.update(snapshot.clone(), Instant::now() + Duration::from_secs(31));
    assert_eq!(
        model.wait_words(),
        None,
        "nobody waits for what is set aside"
    );
    snapshot.spent.is_waiting = true;
    model.update(snapshot.clone(), Instant::now() + Duration::from_secs(31));
    let words = "the budget: $0.70 spent, $0.29 reserved for what is in flight, of $1.00";
    assert_eq!(model.wait_words().unwrap(), format!("waits for {words}"));
    snapshot.statuses = vec![status(Some(WaitReason::Rate))];
    model.update(snapshot, Instant::now() + Duration::from_secs(32));
    assert_eq!(
        model.wait_words().unwrap(),
        format!("waits for the rate that openai allows; {words}")
    );
    assert!(
        model.pace_words().contains("$0.70 so far of at most $1.00"),
        "{}",
        model.pace_words()
    );
}

#[test]
fn what_nobody_knows_is_a_dash_and_nothing_is_forecast_from_it() {
    let mut model = under_way(None);
    let mut snapshot = snapshot(60, 0.0, None);
    (snapshot.spent.usd, snapshot.spent.usage) = (None, Some(Usage::default()));
    model.update(snapshot, Instant::now() + Duration::from_secs(31));
    assert!(
        model
            .pace_words()
            .contains("– tokens in, – out · cost unknown · "),
        "{}",
        model.pace_words()
    );
}

#[test]
fn a_run_that_stops_shows_no_time_for_what_it_leaves() {
    let mut model = under_way(None);
    assert!(model.line().ends_with("3 min left"), "{}", model.line());
    model.snapshot.stop = StopRequest::Drain;
    assert!(!model.line().contains("left"), "{}", model.line());
}

#[test]
fn cells_below_a_failure_are_no_longer_to_be_done() {
    let mut shown = shown(None);
    shown.happens(&RunEvent::Blocked(MatrixCounts {
        compress: 0,
        answer: 10,
        judge: 20,
    }));
    shown.happens(&RunEvent::Skipped {
        stage: StageName::Judge,
    });
    let line = shown.model.line();
    assert!(
        line.starts_with("answer 61/200 (10 left out), judge 0/200 (21 left out) · "),
        "not as if done: {line}"
    );
}

#[test]
fn a_step_that_searches_adds_the_one_that_follows_it() {
    let stage = StageName::Answer;
    let mut shown = Shown::new([(stage, 1)]);
    shown.happens(&RunEvent::Shared { stage });
    shown.happens(&RunEvent::AnotherStep { stage });
    assert_eq!(shown.model.cells(), (1, 2));
    shown.happens(&RunEvent::Shared { stage });
    assert_eq!(shown.model.cells(), (2, 2));
}
