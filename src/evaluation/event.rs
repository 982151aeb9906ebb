//! What an evaluation reports while it goes on.

use std::cell::RefCell;
use std::sync::Arc;

use super::outcome::Ended;
use super::part::PartOfRun;
use crate::action::{ActionKey, StageName};
use crate::pipeline::{ExternalAccess, Pipeline, Problems};
use crate::plan::CostEstimate;
use crate::results::ResultsFolder;
use crate::scheduler::{self, Budget, Spent, StopRequest};
use base::files::FileError;
use models::ProviderStatus;
use store::remote::{RemoteError, SharedSummary};

/// A step of an evaluation.
#[derive(Debug)]
pub enum Event<'a> {
    /// The project is valid; the warnings do not stop the work.
    Opened { pipeline: &'a Pipeline, warnings: &'a Problems },
    /// This process runs a part of the matrix.
    Part(&'a PartOfRun),
    /// The pipeline declares a remote that is not used, because this is a CI job that was given none.
    RemoteIgnored,
    /// The remote cannot be connected to; the run continues without it.
    RemoteUnavailable(&'a RemoteError),
    /// The remote has given what it has, and the run is about to pay for the rest.
    RemoteLacks { url: &'a str, estimate: &'a CostEstimate },
    /// Something odd about the remote.
    RemoteWarning(&'a str),
    /// Something odd about the cache.
    CacheNotice(&'a str),
    /// So many pulled entries are of writers that are not trusted, and count as missing.
    Untrusted(u64),
    /// The hosts and programs that the project uses, if it was not reported before.
    Access(&'a ExternalAccess),
    /// The actions begin.
    Started(&'a Started<'a>),
    /// More cells of a stage turned up.
    Added { stage: StageName, cells: u64 },
    /// What happened to a cell.
    Step(&'a scheduler::Event<'a>),
    /// How far the work is, twice a second.
    Progress(&'a ProgressSnapshot),
    /// No more actions are begun and none is under way; what follows takes a moment.
    WorkIsOver,
    /// All actions are over; the results are not yet published.
    Ended(&'a Ended),
    /// What was exchanged with the remote.
    Exchanged(&'a SharedSummary),
    /// Pulled outputs differ from those that the earlier results of the label were made from: some of their keys.
    OutputsChanged { label: &'a str, keys: &'a [ActionKey] },
}

/// A run whose actions begin.
#[derive(Debug)]
pub struct Started<'a> {
    pub pipeline: &'a Pipeline,
    /// Where the rows are written to; `None` of work without rows.
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

/// Passes events to a listener. The work and its progress report in turns, on one thread.
pub struct Listening<'l>(RefCell<&'l mut dyn FnMut(&Event<'_>)>);

impl<'l> Listening<'l> {
    /// Passes events to `listener`, which must not run another evaluation.
    pub fn new(listener: &'l mut dyn FnMut(&Event<'_>)) -> Listening<'l> {
        Listening(RefCell::new(listener))
    }

    /// Reports an event.
    pub fn report(&self, event: &Event<'_>) {
        (self.0.borrow_mut())(event);
    }
}

impl scheduler::Listener for &Listening<'_> {
    fn on_event(&mut self, event: &scheduler::Event<'_>) -> Result<(), FileError> {
        self.report(&Event::Step(event));
        Ok(())
    }
}
