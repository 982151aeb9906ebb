//! Shows an evaluation while it goes on: progress, notices. It also lets Ctrl-C stop the work.

use std::sync::Arc;

use tokio::sync::watch;

use crate::cli::interrupts::Interrupts;
use crate::cli::notices::print_notice;
use crate::cli::stop_reasons::print_stop_reasons;
use crate::cli::terminal::{Console, Progress};
use crate::evaluation::{Event, RunTotals, Started};
use crate::scheduler::{Budget, BudgetLimits, StopRequest};

/// Draws the events of one evaluation.
pub(crate) struct Screen {
    console: Console,
    interrupts: Interrupts,
    progress: Option<Progress>,
    budget: Option<Arc<Budget>>,
}

impl Screen {
    pub(crate) fn new(console: &Console) -> Screen {
        let interrupts = Interrupts::new();
        Screen {
            console: *console,
            interrupts,
            progress: None,
            budget: None,
        }
    }

    /// The user's wish to stop, for the request.
    pub(crate) fn stop(&self) -> watch::Receiver<StopRequest> {
        self.interrupts.stop.clone()
    }

    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Started(started) => self.begin(started),
            Event::Added { stage, cells } => {
                self.with_progress(|progress| progress.add(*stage, *cells))
            }
            Event::Step { event, totals } => {
                self.with_progress(|progress| progress.on_event(event, totals))
            }
            Event::Progress(snapshot) => {
                self.with_progress(|progress| progress.update((*snapshot).clone()))
            }
            Event::WorkIsOver(_) => {
                self.interrupts.work_is_over();
                self.with_progress(Progress::finish);
            }
            Event::Ended(ended) => print_stop_reasons(ended, &self.console),
            event => print_notice(event, &self.console),
        }
    }

    fn begin(&mut self, started: &Started<'_>) {
        let Started { stages, budget, .. } = started;
        self.progress = Some(Progress::new(
            stages.iter().copied(),
            budget.limits(),
            &self.console,
        ));
        self.budget = Some(Arc::clone(budget));
        self.interrupts.work_begins(&self.console);
    }

    fn with_progress(&self, show: impl FnMut(&Progress)) {
        self.progress.iter().for_each(show);
    }

    /// What is left of the budget; `limits` if the work never began.
    pub(crate) fn left_of(&self, limits: BudgetLimits) -> BudgetLimits {
        self.budget.as_ref().map_or(limits, |budget| budget.left())
    }
}

/// Draws the events of a command that asks models but writes no results, and keeps what they add up to.
pub(crate) struct RunLog {
    pub(crate) screen: Screen,
    pub(crate) totals: RunTotals,
}

impl RunLog {
    pub(crate) fn new(console: &Console) -> RunLog {
        RunLog {
            screen: Screen::new(console),
            totals: RunTotals::default(),
        }
    }

    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        self.screen.on_event(event);
        if let Event::WorkIsOver(totals) = event {
            self.totals = (*totals).clone();
        }
    }
}
