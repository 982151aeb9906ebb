//! Shows an evaluation while it goes on: progress, notices, the address of the live page. It also lets Ctrl-C stop the
//! work.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::cli::interrupts::Interrupts;
use crate::cli::notices::print_notice;
use crate::cli::stop_reasons::print_stop_reasons;
use crate::cli::terminal::{Console, Progress, TextStyle};
use crate::evaluation::{Event, LiveServer, PartialResults, RunTotals, Started};
use crate::scheduler::{Budget, BudgetLimits, StopRequest};
use base::locale::localized;
use base::say;

/// Draws the events of one evaluation.
pub(crate) struct Screen {
    console: Console,
    interrupts: Interrupts,
    progress: Option<Progress>,
    /// Whether the page of the results to come is served.
    is_live: bool,
    live: Option<LiveServer>,
    budget: Option<Arc<Budget>>,
}

impl Screen {
    pub(crate) fn new(console: &Console) -> Screen {
        let interrupts = Interrupts::new();
        Screen {
            console: *console,
            interrupts,
            progress: None,
            is_live: false,
            live: None,
            budget: None,
        }
    }

    /// Also serves the page of the results to come, if `is_live`.
    pub(crate) fn with_live_page(self, is_live: bool) -> Screen {
        Screen { is_live, ..self }
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

    fn begin(
        &mut self,
        Started {
            pipeline,
            folder,
            stages,
            budget,
        }: &Started<'_>,
    ) {
        if let Some(folder) = folder.filter(|_| self.is_live) {
            self.serve(PartialResults {
                pipeline: (*pipeline).clone(),
                folder: folder.clone(),
            });
        }
        let mut progress = Progress::new(stages.iter().copied(), budget.limits(), &self.console);
        progress.live = self.live.as_ref().map(LiveServer::progress);
        self.progress = Some(progress);
        self.budget = Some(Arc::clone(budget));
        self.interrupts.work_begins(&self.console);
    }

    /// Serves the page of the results to come, and prints where.
    fn serve(&mut self, results: PartialResults) {
        match LiveServer::start(results) {
            Ok(live) => {
                self.console.eprint(&self.console.labelled(
                    TextStyle::Hint,
                    localized("live:", "实时："),
                    live.address(),
                ));
                self.live = Some(live);
            }
            Err(error) => self.console.warn(
                localized("live:", "实时："),
                say!(
                    "the page cannot be served: {error}",
                    "无法提供页面：{error}"
                ),
            ),
        }
    }

    fn with_progress(&self, show: impl FnMut(&Progress)) {
        self.progress.iter().for_each(show);
    }

    /// What is left of the budget; `limits` if the work never began.
    pub(crate) fn left_of(&self, limits: BudgetLimits) -> BudgetLimits {
        self.budget.as_ref().map_or(limits, |budget| budget.left())
    }

    /// The run is over: an open browser gets the finished page, then the server stops.
    pub(crate) fn finish_live_page(&mut self, page: PathBuf) {
        if let Some(live) = self.live.take() {
            live.finish(page);
        }
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
