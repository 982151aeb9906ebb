//! Progress: one live bar a stage on a terminal, a plain line now and then elsewhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::console::{Console, visible};
use super::progress_model::ProgressModel;
use crate::action::StageName;
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
    LiveBars(LiveBars),
    PlainLines(PlainLines),
}

/// Live bars: one a stage, then pace and what is waited for.
struct LiveBars {
    multi: MultiProgress,
    stages: BTreeMap<StageName, ProgressBar>,
    pace: ProgressBar,
    waits: ProgressBar,
    colors: bool,
    /// Columns of the terminal when the bars were drawn last.
    width: usize,
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
            true => View::LiveBars(LiveBars::new(&model, console.colors)),
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
        let mut model = self.model.borrow_mut();
        model.add(stage, cells);
        if let View::LiveBars(bars) = &mut *self.view.borrow_mut() {
            bars.add(stage);
        }
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
            View::LiveBars(bars) => {
                bars.fit(terminal_width());
                bars.show(&model);
            }
            View::PlainLines(lines) => {
                if let Some(line) = lines.due(&model, stop, now) {
                    self.console.note(&line);
                }
            }
        }
    }

    /// Prints a line above the bars.
    fn say(&self, text: &str) {
        match &*self.view.borrow() {
            View::LiveBars(bars) => bars.multi.suspend(|| self.console.eprint(text)),
            View::PlainLines(_) => self.console.eprint(text),
        }
    }

    pub(crate) fn finish(&self) {
        if let View::LiveBars(bars) = &*self.view.borrow() {
            bars.clear();
        }
    }
}

/// Columns of the terminal that standard error is.
fn terminal_width() -> usize {
    terminal_size::terminal_size_of(io::stderr())
        .map_or(80, |(width, _)| usize::from(width.0).max(1))
}

/// A terminal with fewer columns has no room for long bars and for all figures of a stage.
const NARROW: usize = 90;

impl LiveBars {
    fn new(model: &ProgressModel, colors: bool) -> LiveBars {
        let multi = MultiProgress::new();
        let (pace, waits) = (add_line(&multi), add_line(&multi));
        let mut bars = LiveBars {
            multi,
            stages: BTreeMap::new(),
            pace,
            waits,
            colors,
            width: terminal_width(),
        };
        model.stages.keys().for_each(|stage| bars.add(*stage));
        bars
    }

    fn add(&mut self, stage: StageName) {
        if self.stages.contains_key(&stage) {
            return;
        }
        let bar = self.multi.insert_before(&self.pace, ProgressBar::new(0));
        self.stages.insert(
            stage,
            bar.with_style(self.stage_style()).with_prefix(stage.name()),
        );
    }

    fn stage_style(&self) -> ProgressStyle {
        let length = if self.width < NARROW { 10 } else { 28 };
        let color = if self.colors { ".green/dim" } else { "" };
        style(&format!(
            "{{prefix:>9}}  {{bar:{length}{color}}}  {{pos:>6}}/{{len:<6}}  {{wide_msg}}"
        ))
        .progress_chars("━━─")
    }

    /// Adapts to a terminal that was resized. The terminal wraps the bars again, because each is one long line: what it
    /// moved is cleared here, since the next drawing expects as many rows as before.
    fn fit(&mut self, width: usize) {
        let before = std::mem::replace(&mut self.width, width);
        if before == width {
            return;
        }
        let rows = self.stages.len() + 2;
        let _ = io::stderr()
            .lock()
            .write_all(cleared(rows, before, width).as_bytes());
        let style = self.stage_style();
        self.stages
            .values()
            .for_each(|bar| bar.set_style(style.clone()));
    }

    fn show(&self, model: &ProgressModel) {
        let is_narrow = self.width < NARROW;
        for (stage, progress) in &model.stages {
            let Some(bar) = self.stages.get(stage) else {
                continue;
            };
            bar.set_length(progress.total);
            bar.set_position(progress.finished());
            bar.set_message(ProgressModel::stage_words(progress, is_narrow));
        }
        self.pace.set_message(model.pace_words(is_narrow));
        let waits = model.wait_words().unwrap_or_default();
        self.waits.set_message(visible(&waits, false).into_owned());
    }

    fn clear(&self) {
        self.stages
            .values()
            .chain([&self.pace, &self.waits])
            .for_each(ProgressBar::finish_and_clear);
        // What cannot be cleared is overwritten by what is printed next.
        let _ = self.multi.clear();
    }
}

/// Adds a line of text below the bars.
fn add_line(multi: &MultiProgress) -> ProgressBar {
    multi
        .add(ProgressBar::new(0))
        .with_style(style("{prefix:>9}  {wide_msg}"))
}

/// Clears `rows` that were drawn at one width, of a terminal that has another now; the cursor ends in the last row.
fn cleared(rows: usize, drawn_at: usize, width: usize) -> String {
    let up = match (rows * drawn_at).div_ceil(width) - 1 {
        0 => String::new(),
        up => format!("\u{1b}[{up}A"),
    };
    format!("{up}\r\u{1b}[J{}", "\n".repeat(rows - 1))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
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
