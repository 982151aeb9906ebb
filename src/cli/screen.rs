//! Shows an evaluation while it goes on: progress, the events that deserve a line of their own, and the hosts and programs
//! that a project uses; at its end, what failed, why it ended early, and what waits for a later run. It also lets Ctrl-C stop
//! the work.

use indexmap::IndexMap;
use tokio::sync::watch;

use crate::cli::failure::{budget_message, remedy_for_cache, render_some};
use crate::cli::format::count;
use crate::cli::interrupts::Interrupts;
use crate::cli::terminal::{Console, Progress, TextStyle, paint};
use crate::evaluation::{Event, RunTotals};
use crate::pipeline::{ExternalAccess, Problems};
use crate::plan::FailedAction;
use crate::scheduler::{OpenBatchNote, RunOutcome, StopRequest, UntestedJudge};

/// Draws the events of one evaluation.
pub(crate) struct Screen {
    console: Console,
    interrupts: Interrupts,
    progress: Option<Progress>,
}

impl Screen {
    pub(crate) fn new(console: &Console) -> Screen {
        let interrupts = Interrupts::new();
        Screen {
            console: *console,
            interrupts,
            progress: None,
        }
    }

    /// The user's wish to stop, for the request.
    pub(crate) fn stop(&self) -> watch::Receiver<StopRequest> {
        self.interrupts.stop.clone()
    }

    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { stages, limits } => {
                let stages = stages.iter().copied();
                self.progress = Some(Progress::new(stages, *limits, &self.console));
                self.interrupts.work_begins(&self.console);
            }
            Event::Added { stage, cells } => {
                self.with_progress(|progress| progress.add(*stage, *cells))
            }
            Event::Step { event, totals } => {
                self.with_progress(|progress| progress.on_event(event, totals))
            }
            Event::Progress(snapshot) => {
                self.with_progress(|progress| progress.update((*snapshot).clone()))
            }
            Event::WorkIsOver => {
                self.interrupts.work_is_over();
                self.with_progress(|progress| progress.finish());
            }
            Event::Ended { run, totals } => print_stop_reasons(run, totals, &self.console),
            event => print_notice(event, &self.console),
        }
    }

    fn with_progress(&mut self, show: impl FnMut(&mut Progress)) {
        self.progress.iter_mut().for_each(show);
    }
}

/// Prints the line of an event, if it has one.
pub(crate) fn print_notice(event: &Event<'_>, console: &Console) {
    match event {
        Event::Opened { warnings, .. } => print_warnings(console, warnings),
        Event::Note { label: "", text } => console.note(&console.error_prose(text)),
        Event::Note { label, text } => {
            console.note(&console.labelled_prose(TextStyle::Hint, label, text));
        }
        Event::Warning { label, text } => console.warn(label, text),
        Event::Started { .. }
        | Event::Added { .. }
        | Event::Step { .. }
        | Event::Progress(_)
        | Event::WorkIsOver
        | Event::Ended { .. } => {}
    }
}

/// Prints warnings: one at its place, several by kind.
pub(crate) fn print_warnings(console: &Console, warnings: &Problems) {
    if !warnings.is_empty() {
        console.note(&render_some(warnings, console));
    }
}

/// The hosts and programs that a project uses, on one line.
pub(crate) fn access_line(access: &ExternalAccess) -> String {
    let project = paint(TextStyle::Strong, "This project");
    let access = access.lines().join("; ");
    format!("{project} {access}")
}

/// Prints why a run ended early, if it did, and what waits for a later run.
pub(crate) fn print_stop_reasons(run: &RunOutcome, totals: &RunTotals, console: &Console) {
    for judge in &run.untested {
        console.warn("stopped:", untested(judge, run.allow_weak_judge));
    }
    if !run.unaccounted.is_empty() {
        console.warn(
            "stopped:",
            format!(
                "only {} were accounted for; this is a bug in compeval, please report it",
                run.unaccounted.join(", ")
            ),
        );
    }
    if let Some(reached) = run.budget.map(budget_message) {
        console.warn("stopped:", &reached);
    }
    if !run.weak_judges.is_empty() {
        print_weak_judges(&run.weak_judges, totals, run.allow_weak_judge, console);
    }
    // Where weak judges end the run, their failed checks are the reason.
    if run.allow_weak_judge || run.weak_judges.is_empty() {
        run.given_up
            .iter()
            .for_each(|why| console.warn("stopped:", why));
    }
    if let Some(broken) = &run.broken {
        let remedy = remedy_for_cache(broken);
        let why = remedy.map_or_else(|| broken.clone(), |remedy| format!("{broken}; {remedy}"));
        console.warn("stopped:", &why);
    }
    if run.interrupted {
        console.warn("stopped:", interrupted(run.refreshes));
    }
    if !run.batches.is_empty() {
        print_batches(&run.batches, console);
    }
}

fn untested(UntestedJudge { judge, why }: &UntestedJudge, allow_weak_judge: bool) -> String {
    let grades = if allow_weak_judge {
        "its grades may be meaningless"
    } else {
        "it was not used"
    };
    format!("the self-test of judge {judge} did not complete, so {grades}: {why}")
}

/// What becomes of a run that was interrupted, and of its refresh.
fn interrupted(refreshes: bool) -> &'static str {
    match refreshes {
        true => {
            "interrupted; finished work is saved, and the next run with --refresh continues from there; \
             without --refresh, it takes the rest from the cache as it was"
        }
        false => "interrupted; finished work is saved, and the next run continues from there",
    }
}

/// Prints which batches are open, and how far they are.
fn print_batches(batches: &[OpenBatchNote], console: &Console) {
    let requests: usize = batches.iter().map(|batch| batch.lines).sum();
    let (batches_are, requests) = (
        match batches.len() {
            1 => "1 open batch".to_owned(),
            many => format!("{many} open batches"),
        },
        count(requests, "request"),
    );
    let text = format!(
        "{batches_are} with {requests}; run again later, or with --wait (`compeval batch ls`)"
    );
    console.warn("waiting:", text);
    for OpenBatchNote {
        nonce, lines, note, ..
    } in batches
    {
        console.eprint(&format!("  {nonce}  {}: {note}", count(*lines, "request")));
    }
}

/// Prints which judges failed their self-test, and in which checks.
fn print_weak_judges(judges: &[String], totals: &RunTotals, is_allowed: bool, console: &Console) {
    let names = judges.join(", ");
    let text = format!("judge failed its self-test: {names} (`compeval judge selftest` shows how)");
    let (mark, then) = match is_allowed {
        true => ("warning:", "its grades may be meaningless"),
        false => (
            "stopped:",
            "--allow-weak-judge continues anyway; --judge-model lexical grades by rules and shows what needs no judge: \
                 facts kept, answered facts, overclaims",
        ),
    };
    console.warn(mark, format!("{text}; {then}"));
    for judge in judges {
        let verdict = totals.verdicts.get(judge);
        for weakness in verdict.iter().flat_map(|verdict| &verdict.failures) {
            console.eprint(&console.error_prose(&format!("  {judge}: {weakness}")));
        }
    }
}

/// The first failure with a cause, and the number of further ones.
type Cause<'f> = (&'f FailedAction, usize);

/// Groups failures by message and hint, in the order of the first of each group.
fn causes(failures: &[FailedAction]) -> Vec<Cause<'_>> {
    let mut causes: IndexMap<_, Cause<'_>> = IndexMap::new();
    for failure in failures {
        let cause = causes.entry((&failure.message, &failure.hint));
        cause
            .and_modify(|(_, others)| *others += 1)
            .or_insert((failure, 0));
    }
    causes.into_values().collect()
}

/// Prints the first `shown` causes. Returns the number of failures with other causes.
pub(crate) fn print_failures(failures: &[FailedAction], shown: usize, console: &Console) -> usize {
    let causes = causes(failures);
    let (printed, left) = causes.split_at(shown.min(causes.len()));
    for (failure, alike) in printed {
        let (place, why) = (&failure.place, failure.message_with_hint());
        let more = match alike {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        console.error("failed:", format!("{place}{more}: {why}"));
    }
    left.iter().map(|(_, alike)| 1 + alike).sum()
}
