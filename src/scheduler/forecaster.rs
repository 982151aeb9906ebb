//! The estimate of what is to come, made before the first stale action begins: where all is cached nothing needs it.

use std::collections::HashSet;

use super::event::Event;
use super::execute::Executor;
use super::options::{RunError, SchedulerOptions};
use super::stats::RunStats;
use crate::action::ActionKey;
use crate::plan::{Assumptions, forecast};

/// Makes the estimate of a run, once.
pub(super) struct Forecaster<'r, 'e> {
    executor: &'r Executor<'e>,
    options: &'r SchedulerOptions,
    is_done: bool,
}

impl<'r, 'e> Forecaster<'r, 'e> {
    pub(super) fn new(executor: &'r Executor<'e>, options: &'r SchedulerOptions) -> Forecaster<'r, 'e> {
        Forecaster { executor, options, is_done: options.without_cells }
    }

    /// Reports the estimate, and notes what it says of prompts that requests share. What is `submitted` is paid for.
    pub(super) fn estimate_once(
        &mut self,
        submitted: &HashSet<ActionKey>,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        if std::mem::replace(&mut self.is_done, true) {
            return Ok(());
        }
        let Executor { preparer, store, prices, .. } = *self.executor;
        let assumptions = Assumptions { refresh: &self.options.refresh, prices, submitted, reasons: false };
        // Where a prompt does not render there is no estimate; its cells fail by name.
        let found = forecast(preparer, store, assumptions).ok();
        let estimate = found.as_ref().map(|found| found.estimate);
        self.executor.prefixes.expect(found.map(|found| found.durations).unwrap_or_default());
        stats.note_forecast(estimate);
        Ok(estimate.iter().try_for_each(|estimate| stats.emit(&Event::Estimated(estimate)))?)
    }
}
