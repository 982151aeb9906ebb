//! What an evaluation reports while it runs.

use std::cell::{Ref, RefCell};
use std::sync::Arc;

use super::outcome::Ended;
use super::request::PartOfRun;
use super::totals::RunTotals;
use crate::action::StageName;
use crate::pipeline::{ExternalAccess, Pipeline, Problems};
use crate::plan::CostEstimate;
use crate::results::{Label, ResultsFolder};
use crate::scheduler::{self, Budget, RunEvent, Spent, StopRequest};
use base::files::FileError;
use models::ProviderStatus;
use store::remote::{Exchanged, RemoteError, SharedCache};

/// A step of an evaluation.
#[derive(Debug)]
pub enum Event<'a> {
    /// The project is valid; the warnings do not stop the work.
    Opened {
        pipeline: &'a Pipeline,
        warnings: &'a Problems,
    },
    /// This process runs a part of the matrix.
    Part(&'a PartOfRun),
    /// The pipeline declares a remote, but it is not used, because this is a CI job and its command names no remote.
    RemoteIgnored,
    /// The run continues the refresh in which the last run of this label was stopped.
    RefreshContinues { label: &'a Label },
    /// The connection to the remote failed; the run continues without the remote.
    RemoteUnavailable(&'a RemoteError),
    /// Everything that the remote has was pulled, and the run is about to pay for the rest.
    RemoteLacks {
        url: &'a str,
        estimate: &'a CostEstimate,
    },
    /// A warning about the remote.
    RemoteWarning(&'a str),
    /// A notice about the cache.
    CacheNotice(&'a str),
    /// The hosts and programs that the project uses, if they were not reported before.
    Access(&'a ExternalAccess),
    /// The actions begin.
    Started(&'a Started<'a>),
    /// A stage has more cells than was known at the start.
    Added { stage: StageName, cells: u64 },
    /// What happened to a cell, and the totals with it.
    Step {
        event: &'a RunEvent<'a>,
        totals: &'a RunTotals,
    },
    /// The progress of the work, twice a second.
    Progress(&'a ProgressSnapshot),
    /// No actions are in progress and no more will begin.
    WorkIsOver(&'a RunTotals),
    /// All actions are over; the results are not yet published.
    Ended(&'a Ended),
    /// The run was asked to stop while its judges were checked with its answers; the rest of that is left out.
    ChecksLeftOut,
    /// What was exchanged with the remote.
    Exchanged(&'a Exchanged),
}

/// A run whose actions begin.
#[derive(Debug)]
pub struct Started<'a> {
    pub pipeline: &'a Pipeline,
    /// Where the rows are written to; `None` if the work has no rows.
    pub folder: Option<&'a ResultsFolder>,
    /// The number of cells in each stage.
    pub stages: Vec<(StageName, u64)>,
    pub budget: &'a Arc<Budget>,
}

/// Providers, spending and stop state at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProgressSnapshot {
    pub statuses: Vec<ProviderStatus>,
    pub spent: Spent,
    pub stop: StopRequest,
}

/// Passes events to a listener, and counts them. The work and the report of its progress share a thread, so they take
/// turns.
pub struct Listening<'l> {
    listener: RefCell<&'l mut dyn FnMut(&Event<'_>)>,
    totals: RefCell<RunTotals>,
}

impl<'l> Listening<'l> {
    /// Passes events to `listener`, which must not run another evaluation.
    pub fn new(listener: &'l mut dyn FnMut(&Event<'_>)) -> Listening<'l> {
        Listening {
            listener: RefCell::new(listener),
            totals: RefCell::default(),
        }
    }

    /// Reports the warnings about a remote.
    pub(super) fn report_warnings(&self, shared: &SharedCache) {
        for warning in shared.take_warnings() {
            self.report(&Event::RemoteWarning(&warning));
        }
    }

    /// Reports an event.
    pub fn report(&self, event: &Event<'_>) {
        (self.listener.borrow_mut())(event);
    }

    /// The totals of all steps so far.
    pub fn totals(&self) -> Ref<'_, RunTotals> {
        self.totals.borrow()
    }

    /// Counts what happened to a cell and reports it.
    pub(super) fn step(&self, event: &RunEvent<'_>) {
        self.totals.borrow_mut().count(event);
        self.report(&Event::Step {
            event,
            totals: &self.totals(),
        });
    }
}

impl scheduler::Listener for &Listening<'_> {
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        self.step(event);
        Ok(())
    }
}
