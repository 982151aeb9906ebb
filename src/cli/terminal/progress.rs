//! Progress: a live bar on a terminal, a plain line now and then elsewhere; and the state of a run in progress with the text
//! that describes it: stages, cost, time left, what it waits for. The state is pure: the caller passes the time.
//!
//! The rate and the time left that indicatif computes do not fit: cells from the cache count in them as work, so that a
//! run that begins with many of them seems to be over at once.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::console::{Console, visible};
use crate::action::StageName;
use crate::cli::format::{cost, count, duration, short_tokens};
use crate::evaluation::{ProgressSnapshot, RunTotals};
use crate::report::{TextStyle, fitted, labelled};
use crate::results::StageCounts;
use crate::scheduler::{BudgetLimits, RunEvent, StopRequest, TrippedBreaker};
use base::units::Usd;
use models::{ProviderName, ProviderStatus, WaitReason};

/// The progress display of a run.
pub(crate) struct Progress {
    console: Console,
    model: ProgressModel,
    view: View,
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
        Progress {
            console: *console,
            model,
            view,
        }
    }

    /// More cells of a stage turned up.
    pub(crate) fn add(&mut self, stage: StageName, cells: u64) {
        self.model.add(stage, cells);
    }

    pub(crate) fn on_event(&mut self, event: &RunEvent<'_>, totals: &RunTotals) {
        self.model.on_event(event, totals);
        let (label, text) = match event {
            RunEvent::BreakerTripped(TrippedBreaker { target, reason, .. }) => (
                "stopped:",
                format!(
                    "no more calls to {target}, every further call would fail the same way: {reason}"
                ),
            ),
            RunEvent::BatchRefused(why) => ("waiting:", (*why).to_owned()),
            _ => return,
        };
        self.say(&labelled(TextStyle::Warning, label, text));
    }

    /// Stores a snapshot and redraws.
    pub(crate) fn update(&mut self, snapshot: ProgressSnapshot) {
        let (now, stop) = (Instant::now(), snapshot.stop);
        self.model.update(snapshot, now);
        match &mut self.view {
            View::LiveBar(bar) => show(bar, &self.model),
            View::PlainLines(lines) => {
                if let Some(line) = lines.due(&self.model, stop, now) {
                    self.console.note(&line);
                }
            }
        }
    }

    /// Prints a line above the bar.
    fn say(&self, text: &str) {
        match &self.view {
            View::LiveBar(bar) => bar.suspend(|| self.console.eprint(text)),
            View::PlainLines(_) => self.console.eprint(text),
        }
    }

    pub(crate) fn finish(&self) {
        if let View::LiveBar(bar) = &self.view {
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
        .map(|part| fitted(&visible(&part, false), columns));
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

/// A pause worth a line of its own.
const LONG_PAUSE: Duration = Duration::from_secs(5);
/// Before this a pace says nothing.
const FIRST_PACE: Duration = Duration::from_secs(2);

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default)]
struct StageProgress {
    /// All its cells.
    total: u64,
    /// What was done.
    counts: StageCounts,
}

impl StageProgress {
    /// Cells that are finished, with or without an output.
    fn finished(&self) -> u64 {
        self.counts.cells
    }

    /// Cells without an output because one above has none, or because nothing more is to be sent.
    fn left_out(&self) -> u64 {
        self.counts.skipped + self.counts.blocked
    }

    fn open(&self) -> u64 {
        self.total.saturating_sub(self.finished())
    }
}

/// The state of a run in progress.
#[derive(Debug, Default)]
struct ProgressModel {
    stages: BTreeMap<StageName, StageProgress>,
    /// Estimated total cost, if there is an estimate.
    expected: Option<Usd>,
    limits: BudgetLimits,
    snapshot: ProgressSnapshot,
    /// When the work was first looked at, and how long it has taken since.
    began: Option<Instant>,
    taken: Duration,
}

impl ProgressModel {
    fn new(
        stages: impl IntoIterator<Item = (StageName, u64)>,
        limits: BudgetLimits,
    ) -> ProgressModel {
        let mut model = ProgressModel {
            limits,
            ..ProgressModel::default()
        };
        let stages = stages.into_iter().filter(|(_, total)| *total > 0);
        stages.for_each(|(stage, total)| model.add(stage, total));
        model
    }

    /// More cells of a stage turned up.
    fn add(&mut self, stage: StageName, cells: u64) {
        self.stages.entry(stage).or_default().total += cells;
    }

    /// Takes over the totals after an event.
    fn on_event(&mut self, event: &RunEvent<'_>, totals: &RunTotals) {
        for (stage, progress) in &mut self.stages {
            progress.counts = totals.stage(*stage);
        }
        match event {
            RunEvent::AnotherStep { stage } => self.add(*stage, 1),
            // What was cached so far cost nothing, so this is for the whole run.
            RunEvent::Estimated(estimate) => self.expected = estimate.usd,
            _ => {}
        }
    }

    /// Stores a snapshot.
    fn update(&mut self, snapshot: ProgressSnapshot, now: Instant) {
        self.snapshot = snapshot;
        self.taken = now - *self.began.get_or_insert(now);
    }

    /// Cells finished by work, not by the cache.
    fn worked(&self) -> u64 {
        let stages = self.stages.values();
        stages
            .map(|progress| progress.finished() - progress.counts.cached)
            .sum()
    }

    fn to_do(&self) -> u64 {
        self.stages.values().map(StageProgress::open).sum()
    }

    /// Tokens, money and time as text.
    fn pace_words(&self) -> String {
        let mut parts = Vec::new();
        let spent = &self.snapshot.spent;
        if let Some(usage) = spent.usage {
            let [input, output] = [usage.input, usage.output].map(short_tokens);
            parts.push(format!("{input} tokens in, {output} out"));
            parts.push(self.money_words());
        }
        parts.extend(
            self.seconds_left()
                .filter(|_| !self.is_held_up() && self.snapshot.stop == StopRequest::No)
                .map(|seconds| format!("{} left", duration(seconds))),
        );
        parts.join(" · ")
    }

    fn money_words(&self) -> String {
        let spent = &self.snapshot.spent;
        let limit = self.limits.usd.map(|limit| format!(" of at most {limit}"));
        let to_come = self.to_come().map(|usd| format!(", about {usd} to come"));
        let so_far = spent
            .usd
            .map_or_else(|| cost(None), |usd| format!("{usd} so far"));
        so_far + &limit.unwrap_or_default() + &to_come.unwrap_or_default()
    }

    /// The cost of the cells to do: their share of the estimate. Without an estimate, or once it is used up, it is computed
    /// from the mean cost of the cells so far.
    fn to_come(&self) -> Option<Usd> {
        let (expected, spent) = (
            self.expected.unwrap_or_default().0,
            self.snapshot.spent.usd?.0,
        );
        let (worked, to_do) = (self.worked(), self.to_do());
        let left = to_do as f64 / (worked + to_do).max(1) as f64;
        if expected > spent || to_do == 0 {
            return Some(Usd((expected * left).min((expected - spent).max(0.0))));
        }
        (worked > 0).then(|| Usd(spent / worked as f64 * to_do as f64))
    }

    /// How long the cells to do take at the pace so far; `None` while there is none.
    fn seconds_left(&self) -> Option<f64> {
        let (worked, to_do) = (self.worked(), self.to_do());
        (self.taken >= FIRST_PACE && worked > 0 && to_do > 0)
            .then(|| self.taken.as_secs_f64() / worked as f64 * to_do as f64)
    }

    /// What is waited for, the heaviest first; `None` if nothing is.
    fn wait_words(&self) -> Option<String> {
        let in_flight: u32 = self
            .snapshot
            .statuses
            .iter()
            .map(|status| status.in_flight)
            .sum();
        let calls = count(in_flight, "call");
        if self.snapshot.stop == StopRequest::Drain {
            return Some(format!(
                "stopping: {calls} under way will be finished and kept; Ctrl-C stops at once"
            ));
        }
        let mut waits = self.troubles();
        if waits.is_empty() {
            let slow = self.provider_waiting_for(&WaitReason::Rate);
            waits.extend(slow.map(|name| format!("the rate that {name} allows")));
        }
        waits.extend(self.budget_words());
        if waits.is_empty() {
            let busy = self.provider_waiting_for(&WaitReason::Replies);
            waits.extend(busy.map(|name| format!("replies of {name}, {calls} under way")));
        }
        (!waits.is_empty()).then(|| format!("waits for {}", waits.join("; ")))
    }

    /// The first provider that is waited for, for this reason.
    fn provider_waiting_for(&self, reason: &WaitReason) -> Option<&ProviderName> {
        let status = self
            .snapshot
            .statuses
            .iter()
            .find(|status| status.waits.as_ref() == Some(reason))?;
        Some(&status.provider)
    }

    /// Providers that are away, or asked for a pause.
    fn troubles(&self) -> Vec<String> {
        self.snapshot
            .statuses
            .iter()
            .filter_map(trouble_words)
            .collect()
    }

    /// Whether calls are held up for longer than a moment.
    fn is_held_up(&self) -> bool {
        self.snapshot
            .statuses
            .iter()
            .any(|status| match &status.waits {
                Some(WaitReason::Unavailable(..)) => true,
                Some(WaitReason::Paused(wait, _)) => *wait >= LONG_PAUSE,
                Some(WaitReason::Rate | WaitReason::Replies) | None => false,
            })
    }

    /// What is said while all that is left of the budget is reserved for calls under way: their replies decide how much
    /// more may be asked.
    fn budget_words(&self) -> Option<String> {
        let spent = self.snapshot.spent;
        let limit = self.limits.usd.filter(|_| spent.is_waiting)?;
        let usd = spent.usd.map(|usd| usd.to_string());
        let usd = usd.unwrap_or_else(|| "an unknown amount".to_owned());
        let reserved = spent.reserved;
        Some(format!(
            "the budget: {usd} spent, {reserved} reserved for what is in flight, of {limit}"
        ))
    }

    /// The cells that are finished, and all.
    fn cells(&self) -> (u64, u64) {
        let sum = |of: fn(&StageProgress) -> u64| self.stages.values().map(of).sum();
        (sum(StageProgress::finished), sum(|stage| stage.total))
    }

    fn line(&self) -> String {
        self.parts().collect::<Vec<_>>().join(" · ")
    }

    /// How far the stages are, what they take, and what is waited for.
    fn parts(&self) -> impl Iterator<Item = String> {
        let stages = self.stages.iter().map(|(stage, progress)| {
            let besides = [
                (progress.counts.failed, "failed"),
                (progress.left_out(), "left out"),
            ];
            let besides = besides.iter().filter(|(count, _)| *count > 0);
            let besides = besides.map(|(count, name)| format!("{count} {name}"));
            let besides = match besides.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => none,
                some => format!(" ({some})"),
            };
            // What is left out was not done: a line that counted it would end as if nothing were missing.
            let done = progress.finished() - progress.left_out();
            format!("{} {done}/{}{besides}", stage.name(), progress.total)
        });
        let stages = stages.collect::<Vec<String>>().join(", ");
        let parts = [Some(stages), Some(self.pace_words()), self.wait_words()];
        parts.into_iter().flatten().filter(|part| !part.is_empty())
    }
}

/// Why a provider has to be waited for: it is away, or it asked for a pause.
fn trouble_words(status: &ProviderStatus) -> Option<String> {
    let (is_away, wait, why) = match status.waits.as_ref()? {
        WaitReason::Unavailable(wait, why) => (true, wait, why),
        WaitReason::Paused(wait, why) if !wait.is_zero() => (false, wait, why),
        WaitReason::Paused(..) | WaitReason::Rate | WaitReason::Replies => return None,
    };
    let name = format!("{}/{}", status.provider, status.model);
    let wait = duration(wait.as_secs_f64().ceil().max(1.0));
    let why: String = why.chars().take(90).collect();
    Some(match is_away {
        true => format!("{name} to recover, tried again in {wait} ({why})"),
        false => format!("{name}, paused for {wait} more ({why})"),
    })
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
