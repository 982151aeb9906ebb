//! Progress: a live bar on a terminal, a plain line now and then elsewhere.

use std::cell::RefCell;
use std::io;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::console::{Console, visible};
use super::progress_model::ProgressModel;
use crate::action::StageName;
use crate::cli::format::cut;
use crate::evaluation::{ProgressSnapshot, RunTotals};
use crate::report::TextStyle;
use crate::scheduler::{BudgetLimits, RunEvent, StopRequest, TrippedBreaker};

/// The progress display of a run.
pub(crate) struct Progress {
    console: Console,
    model: RefCell<ProgressModel>,
    view: RefCell<View>,
}

/// The form of the display.
enum View {
    /// A bar over all cells, with lines of text below it.
    LiveBar(ProgressBar),
    PlainLines(PlainLines),
}

struct PlainLines {
    began: Instant,
    printed: Instant,
    /// Whether the last line reported held-up calls.
    held_up: bool,
    stopping: bool,
}

impl Progress {
    /// Progress over `stages`, each with its number of cells.
    pub(crate) fn new(
        stages: impl IntoIterator<Item = (StageName, u64)>,
        limits: BudgetLimits,
        console: &Console,
    ) -> Progress {
        let model = ProgressModel::new(stages, limits);
        let view = match console.draws_progress {
            true => View::LiveBar(live_bar(console.colors)),
            false => View::PlainLines(PlainLines::new(Instant::now())),
        };
        let (model, view) = (RefCell::new(model), RefCell::new(view));
        Progress {
            console: *console,
            model,
            view,
        }
    }

    /// More cells of a stage turned up.
    pub(crate) fn add(&self, stage: StageName, cells: u64) {
        self.model.borrow_mut().add(stage, cells);
    }

    pub(crate) fn on_event(&self, event: &RunEvent<'_>, totals: &RunTotals) {
        self.model.borrow_mut().on_event(event, totals);
        if let RunEvent::BreakerTripped(TrippedBreaker { target, reason, .. }) = event {
            let text = format!(
                "no more calls to {target}, every further call would fail the same way: {reason}"
            );
            self.say(&self.console.labelled(TextStyle::Warning, "stopped:", text));
        }
    }

    /// Stores a snapshot and redraws.
    pub(crate) fn update(&self, snapshot: ProgressSnapshot) {
        let (mut model, now, stop) = (self.model.borrow_mut(), Instant::now(), snapshot.stop);
        model.update(snapshot, now);
        match &mut *self.view.borrow_mut() {
            View::LiveBar(bar) => show(bar, &model),
            View::PlainLines(lines) => {
                if let Some(line) = lines.due(&model, stop, now) {
                    self.console.note(&line);
                }
            }
        }
    }

    /// Prints a line above the bar.
    fn say(&self, text: &str) {
        match &*self.view.borrow() {
            View::LiveBar(bar) => bar.suspend(|| self.console.eprint(text)),
            View::PlainLines(_) => self.console.eprint(text),
        }
    }

    pub(crate) fn finish(&self) {
        if let View::LiveBar(bar) = &*self.view.borrow() {
            bar.finish_and_clear();
        }
    }
}

fn live_bar(colors: bool) -> ProgressBar {
    let color = if colors { ":40.green/dim" } else { ":40" };
    let template = format!("{{bar{color}}}  {{pos}}/{{len}}\n{{msg}}");
    let style = ProgressStyle::with_template(&template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style.progress_chars("━━─"))
}

fn show(bar: &ProgressBar, model: &ProgressModel) {
    let columns = terminal_size::terminal_size_of(io::stderr())
        .map_or(80, |(width, _)| usize::from(width.0).max(1));
    let lines = model
        .parts()
        .map(|part| cut(&visible(&part, false), columns));
    let (done, total) = model.cells();
    bar.set_length(total);
    bar.set_position(done);
    bar.set_message(lines.collect::<Vec<_>>().join("\n"));
}

impl PlainLines {
    fn new(now: Instant) -> PlainLines {
        PlainLines {
            began: now,
            printed: now,
            held_up: false,
            stopping: false,
        }
    }

    /// The line to print now, if one is due: often at first, seldom later, and at once when trouble begins or ends.
    fn due(&mut self, model: &ProgressModel, stop: StopRequest, now: Instant) -> Option<String> {
        let every = match (now - self.began).as_secs() {
            0..60 => 10,
            60..600 => 30,
            _ => 60,
        };
        let (held_up, stopping) = (model.is_held_up(), stop != StopRequest::No);
        let unchanged = (held_up, stopping) == (self.held_up, self.stopping);
        if unchanged && now - self.printed < Duration::from_secs(every) {
            return None;
        }
        (self.printed, self.held_up, self.stopping) = (now, held_up, stopping);
        Some(model.line())
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
