//! Counts, failures and self-test verdicts of `probes generate` and `judge selftest`.

use std::collections::BTreeMap;

use super::progress::Progress;
use crate::judge::SelfTestVerdict;
use crate::results::FailedAction;
use crate::scheduler::{Event, Listener};
use base::files::FileError;

/// Records events and forwards them to the progress display.
pub(crate) struct RunLog<'p> {
    progress: &'p Progress,
    pub(crate) executed: u64,
    pub(crate) cached: u64,
    pub(crate) failures: Vec<FailedAction>,
    pub(crate) verdicts: BTreeMap<String, SelfTestVerdict>,
}

impl<'p> RunLog<'p> {
    pub(crate) fn new(progress: &'p Progress) -> RunLog<'p> {
        RunLog { progress, executed: 0, cached: 0, failures: Vec::new(), verdicts: BTreeMap::new() }
    }
}

impl Listener for RunLog<'_> {
    fn on_event(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        self.progress.on_event(event);
        match event {
            Event::Cached { .. } => self.cached += 1,
            Event::Completed { .. } => self.executed += 1,
            Event::Failed(failure) => self.failures.push((*failure).clone()),
            Event::SelftestCompleted { judge, verdict } => {
                self.verdicts.insert((*judge).to_owned(), (*verdict).clone());
            }
            _ => {}
        }
        Ok(())
    }
}
