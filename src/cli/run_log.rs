//! Counts, failures and self-test verdicts of the commands that ask models but write no results.

use std::collections::BTreeMap;

use crate::cli::screen::Screen;
use crate::cli::terminal::Console;
use crate::evaluation::Event;
use crate::judge::SelfTestVerdict;
use crate::results::FailedAction;
use crate::scheduler;

/// Records events and draws them.
pub(crate) struct RunLog {
    pub(crate) screen: Screen,
    pub(crate) executed: u64,
    pub(crate) cached: u64,
    pub(crate) failures: Vec<FailedAction>,
    pub(crate) verdicts: BTreeMap<String, SelfTestVerdict>,
}

impl RunLog {
    pub(crate) fn new(console: &Console) -> RunLog {
        let screen = Screen::new(console);
        RunLog { screen, executed: 0, cached: 0, failures: Vec::new(), verdicts: BTreeMap::new() }
    }

    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        self.screen.on_event(event);
        let Event::Step(step) = event else { return };
        match step {
            scheduler::Event::Cached { .. } => self.cached += 1,
            scheduler::Event::Completed { .. } => self.executed += 1,
            scheduler::Event::Failed(failure) => self.failures.push((*failure).clone()),
            scheduler::Event::SelftestCompleted { judge, verdict } => {
                self.verdicts.insert((*judge).to_owned(), (*verdict).clone());
            }
            _ => {}
        }
    }
}
