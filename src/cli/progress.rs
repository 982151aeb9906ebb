//! Progress: one live bar a stage on a terminal, a plain line now and then elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::console::Console;
use super::words::money;
use crate::action::StageName;
use crate::judge::SelfTest;
use crate::pipeline::{Matrix, Pipeline};
use crate::scheduler::Event;
use crate::units::{Usd, add_known};

/// Time between two plain lines.
const EVERY: Duration = Duration::from_secs(15);

/// Tells how far a run is.
pub(crate) struct Progress {
    console: Console,
    bars: Option<(MultiProgress, BTreeMap<StageName, ProgressBar>)>,
    done: BTreeMap<StageName, Tally>,
    cells: BTreeMap<StageName, u64>,
    usd: Option<Usd>,
    told: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    executed: u64,
    cached: u64,
    failed: u64,
    cells: u64,
}

impl Progress {
    /// Progress of a run that begins.
    pub(crate) fn new(pipeline: &Pipeline, console: &Console) -> Progress {
        let counts = Matrix::new(pipeline).counts();
        let cells: BTreeMap<StageName, u64> = [
            (StageName::Compress, counts.compress),
            (StageName::Answer, counts.answer),
            (StageName::Judge, counts.judge),
            (StageName::Selftest, selftest_cases(pipeline)),
        ]
        .into();
        let bars = console.draws_progress().then(|| {
            let multi = MultiProgress::new();
            let style = ProgressStyle::with_template("{prefix:>9} {bar:32} {pos}/{len} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = |(stage, length): (&StageName, &u64)| {
                let bar = multi.add(ProgressBar::new(*length)).with_style(style.clone()).with_prefix(stage.name());
                (*stage, bar)
            };
            let bars = cells.iter().map(bar).collect();
            (multi, bars)
        });
        Progress { console: *console, bars, done: BTreeMap::new(), cells, usd: Some(Usd(0.0)), told: Instant::now() }
    }

    /// Takes note of an event.
    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Cached { stage, .. } => self.step(*stage, |tally| tally.cached += 1),
            Event::Kept { stage, cost, asked, .. } => {
                if *asked {
                    self.usd = add_known(self.usd, *cost);
                }
                self.step(*stage, |tally| tally.executed += 1);
            }
            Event::Failed(failure) => self.step(failure.stage, |tally| tally.failed += 1),
            Event::Shared { stage } | Event::HeldBack { stage } => self.step(*stage, |_| ()),
            Event::Started { .. }
            | Event::Blocked(_)
            | Event::Selftested { .. }
            | Event::Warning(_)
            | Event::Row { .. } => {}
        }
    }

    fn step(&mut self, stage: StageName, count: impl FnOnce(&mut Tally)) {
        let tally = self.done.entry(stage).or_default();
        tally.cells += 1;
        count(tally);
        let (tally, usd) = (*tally, self.usd);
        match &self.bars {
            Some((_, bars)) => {
                if let Some(bar) = bars.get(&stage) {
                    bar.set_position(tally.cells);
                    bar.set_message(words(&tally, usd));
                }
            }
            None if self.told.elapsed() >= EVERY => self.tell_line(),
            None => {}
        }
    }

    fn tell_line(&mut self) {
        self.told = Instant::now();
        let stage = |(stage, tally): (&StageName, &Tally)| {
            let of = self.cells.get(stage).map(|cells| format!("/{cells}")).unwrap_or_default();
            format!("{} {}{of}", stage.name(), tally.cells)
        };
        let stages: Vec<String> = self.done.iter().map(stage).collect();
        self.console.remark(&format!("{}, {}", stages.join(", "), money(self.usd)));
    }

    /// Takes the bars away.
    pub(crate) fn finish(self) {
        if let Some((multi, bars)) = self.bars {
            bars.values().for_each(ProgressBar::finish_and_clear);
            // What cannot be cleared is overwritten by what is printed next.
            let _ = multi.clear();
        }
    }
}

/// What the judges are asked before they may grade.
fn selftest_cases(pipeline: &Pipeline) -> u64 {
    (pipeline.judges.len() * SelfTest::built_in(pipeline.settings.locale).cases.len()) as u64
}

fn words(tally: &Tally, usd: Option<Usd>) -> String {
    let failed = if tally.failed > 0 { format!(", {} failed", tally.failed) } else { String::new() };
    format!("{} done, {} cached{failed} · {}", tally.executed, tally.cached, money(usd))
}
