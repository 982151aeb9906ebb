//! The loop's dealings with the cache: what stands already, and what is to come.

use super::event::{Event, Listener};
use super::perform::Performer;
use super::run::{Loop, RunError};
use crate::cache::{Damage, Reading, Record};
use crate::plan::{Assumptions, Kept, Output, READER, Task, forecast};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Makes sure that the output of a cached action can be read when somebody needs it, and notes that it is used.
    /// Where it had to be read to be named, the name is noted.
    pub(super) fn vouch(&self, record: &Record, reread: Option<Box<Output>>) -> Result<(), Damage> {
        if let Some(output) = reread {
            let reading = Reading::Output { out: output.digest(), state: None, reader: READER };
            self.performer.store.note(record, &reading);
        }
        self.performer.shelf.vouch(record)?;
        self.performer.store.touch(record);
        Ok(())
    }

    /// Settles a task whose output stands.
    pub(super) fn cached(&mut self, task: &Task, kept: Kept) -> Result<(), RunError> {
        let stage = task.stage();
        let event = if self.seen.insert(kept.key) {
            Event::Cached { stage, key: kept.key, cut_off: kept.spared }
        } else {
            Event::Shared { stage }
        };
        self.listener.hear(&event)?;
        self.settle(task, kept, true, None)
    }

    /// Finds out what is to come, before the first stale action begins: where all is cached nobody needs to know.
    pub(super) fn foretell(&mut self) -> Result<(), RunError> {
        if std::mem::replace(&mut self.is_foretold, true) || self.options.selftests_only {
            return Ok(());
        }
        let Performer { preparer, store, prices, .. } = *self.performer;
        let assumptions = Assumptions { refresh: &self.options.refresh, prices, reasons: false };
        // Where a prompt does not render nothing can be foretold; its cells fail by name.
        self.ended.forecast = forecast(preparer, store, assumptions).ok().map(|found| found.estimate);
        if let Some(estimate) = &self.ended.forecast {
            self.listener.hear(&Event::Foretold(estimate))?;
        }
        Ok(())
    }
}
