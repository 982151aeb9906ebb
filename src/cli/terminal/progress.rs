//! Progress: one live bar a stage on a terminal, a plain line now and then elsewhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::board::{Board, Pulse};
use super::console::{Console, Meaning};
use super::traffic::Traffic;
use crate::action::StageName;
use crate::judge::SelfTest;
use crate::pipeline::{Matrix, Pipeline};
use crate::scheduler::{Allowance, Closed, Event, Stop};

/// Tells how far a run is.
pub(crate) struct Progress {
    console: Console,
    pub(crate) traffic: Arc<Traffic>,
    board: RefCell<Board>,
    face: RefCell<Face>,
}

/// How it is shown.
enum Face {
    Bars(Bars),
    Lines(Lines),
}

/// Live bars: one a stage, then pace and what is waited for.
struct Bars {
    multi: MultiProgress,
    stages: BTreeMap<StageName, ProgressBar>,
    pace: ProgressBar,
    waits: ProgressBar,
    colors: bool,
}

/// Plain lines.
struct Lines {
    began: Instant,
    told: Instant,
    /// Trouble that was told and is not over.
    in_trouble: bool,
    stopping: bool,
}

impl Progress {
    /// Progress over `stages`, each with its number of cells.
    pub(crate) fn new(
        stages: impl IntoIterator<Item = (StageName, u64)>,
        allowance: Allowance,
        console: &Console,
    ) -> Progress {
        let board = Board::new(stages, allowance);
        let face = match console.draws_progress() {
            true => Face::Bars(Bars::new(&board, console.colors())),
            false => Face::Lines(Lines::new(Instant::now())),
        };
        let (board, face) = (RefCell::new(board), RefCell::new(face));
        Progress { console: *console, traffic: Arc::default(), board, face }
    }

    /// Progress of a run that begins.
    pub(crate) fn of_run(pipeline: &Pipeline, allowance: Allowance, console: &Console) -> Progress {
        let counts = Matrix::new(pipeline).counts();
        let stages = [
            (StageName::Compress, counts.compress),
            (StageName::Answer, counts.answer),
            (StageName::Selftest, selftest_cases(pipeline)),
            (StageName::Judge, counts.judge),
        ];
        Progress::new(stages, allowance, console)
    }

    /// Where it is told.
    pub(crate) fn console(&self) -> &Console {
        &self.console
    }

    /// More cells of a stage turned up.
    pub(crate) fn add(&self, stage: StageName, cells: u64) {
        let mut board = self.board.borrow_mut();
        board.add(stage, cells);
        if let Face::Bars(bars) = &mut *self.face.borrow_mut() {
            bars.add(stage);
        }
    }

    /// Takes note of an event.
    pub(crate) fn hear(&self, event: &Event<'_>) {
        self.board.borrow_mut().hear(event);
        if let Event::Closed(Closed { who, why }) = event {
            let mark = self.console.paint(Meaning::Warning, "stopped:");
            self.say(&format!("{mark} {who} is not asked any more, every further call would fail the same way: {why}"));
        }
    }

    /// Takes note of how the providers are doing, and shows all that is known.
    pub(crate) fn beat(&self, pulse: Pulse) {
        let (mut board, now, stop) = (self.board.borrow_mut(), Instant::now(), pulse.stop);
        board.beat(pulse, now);
        match &mut *self.face.borrow_mut() {
            Face::Bars(bars) => bars.show(&board),
            Face::Lines(lines) => {
                if let Some(line) = lines.due(&board, stop, now) {
                    self.console.remark(&line);
                }
            }
        }
    }

    /// Says something while the bars stand.
    fn say(&self, text: &str) {
        match &*self.face.borrow() {
            Face::Bars(bars) => bars.multi.suspend(|| self.console.tell(text)),
            Face::Lines(_) => self.console.tell(text),
        }
    }

    /// Takes the bars away.
    pub(crate) fn finish(&self) {
        if let Face::Bars(bars) = &*self.face.borrow() {
            bars.clear();
        }
    }
}

/// What the judges are asked before they may grade.
pub(crate) fn selftest_cases(pipeline: &Pipeline) -> u64 {
    (pipeline.judges.len() * SelfTest::built_in(pipeline.settings.locale).cases.len()) as u64
}

impl Bars {
    fn new(board: &Board, colors: bool) -> Bars {
        let multi = MultiProgress::new();
        let line = || multi.add(ProgressBar::new(0)).with_style(style("{prefix:>9}  {wide_msg}"));
        let (pace, waits) = (line(), line());
        let mut bars = Bars { multi, stages: BTreeMap::new(), pace, waits, colors };
        board.stages().keys().for_each(|stage| bars.add(*stage));
        bars
    }

    fn add(&mut self, stage: StageName) {
        if self.stages.contains_key(&stage) {
            return;
        }
        let template = if self.colors {
            "{prefix:>9}  {bar:28.green/dim}  {pos:>6}/{len:<6}  {wide_msg}"
        } else {
            "{prefix:>9}  {bar:28}  {pos:>6}/{len:<6}  {wide_msg}"
        };
        let bar = self.multi.insert_before(&self.pace, ProgressBar::new(0));
        self.stages.insert(stage, bar.with_style(style(template).progress_chars("━━─")).with_prefix(stage.name()));
    }

    fn show(&self, board: &Board) {
        for (stage, tally) in board.stages() {
            let Some(bar) = self.stages.get(stage) else { continue };
            bar.set_length(tally.total);
            bar.set_position(tally.settled());
            bar.set_message(Board::stage_words(tally));
        }
        self.pace.set_message(board.pace_words());
        self.waits.set_message(board.wait_words().unwrap_or_default());
    }

    fn clear(&self) {
        self.stages.values().chain([&self.pace, &self.waits]).for_each(ProgressBar::finish_and_clear);
        // What cannot be cleared is overwritten by what is printed next.
        let _ = self.multi.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Lines {
    fn new(now: Instant) -> Lines {
        Lines { began: now, told: now, in_trouble: false, stopping: false }
    }

    /// The line to print now, if one is due: often at first, seldom later, and at once when trouble begins or ends.
    fn due(&mut self, board: &Board, stop: Stop, now: Instant) -> Option<String> {
        let every = match (now - self.began).as_secs() {
            0..60 => 10,
            60..600 => 30,
            _ => 60,
        };
        let (in_trouble, stopping) = (board.is_held_up(), stop != Stop::No);
        let unchanged = (in_trouble, stopping) == (self.in_trouble, self.stopping);
        if unchanged && now - self.told < Duration::from_secs(every) {
            return None;
        }
        (self.told, self.in_trouble, self.stopping) = (now, in_trouble, stopping);
        Some(board.line())
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
