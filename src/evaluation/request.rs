//! What is to be evaluated.

use std::collections::BTreeSet;
use std::path::Path;

use tokio::sync::watch;

use super::part::PartRequest;
use crate::action::Stage;
use crate::pipeline::{OpenRequest, Problems, find_pipeline};
use crate::results::{Label, Manifest};
use crate::scheduler::{BatchOptions, BudgetLimits, StopRequest};
use store::remote::GivenRemote;

/// What is to be evaluated, and how far. The default of every field but `project` is what `compeval run` does without
/// flags.
#[derive(Debug, Default)]
pub struct Request {
    /// The project, and the part of its matrix. Whether keys are needed, and how many processes share the providers'
    /// limits, follows from the fields below.
    pub project: OpenRequest,
    /// The name of the result set; `None` is the time.
    pub label: Option<Label>,
    /// Replaces results of another design, which are kept under another label.
    pub replace: bool,
    /// Stages whose cached outputs are made anew.
    pub refresh: BTreeSet<Stage>,
    /// What this process does of a matrix that runs in parts; `None` runs all of it.
    pub part: Option<PartRequest>,
    /// What may be spent.
    pub limits: BudgetLimits,
    /// Actions under way at once; `None` is what the providers may carry.
    pub jobs: Option<usize>,
    /// Sends no request and starts no program.
    pub offline: bool,
    /// Continues with a judge that fails its self-test.
    pub allow_weak_judge: bool,
    /// What is done about open batches.
    pub batches: BatchOptions,
    /// What the results are compared with.
    pub baseline: Option<Baseline>,
    /// The shared cache, as flags and environment say.
    pub remote: GivenRemote,
    /// Whether somebody reads the rows while they are written.
    pub is_followed: bool,
    /// Whether the hosts and programs that the project uses are reported if they never were.
    pub reports_access: bool,
    /// The look before this one: its requests and costs count as this run's, too.
    pub look_before: Option<Manifest>,
    /// Asks the run to stop; `None` never does.
    pub stop: Option<watch::Receiver<StopRequest>>,
}

/// The results that a run is compared with.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// A label, `LABEL:METHOD` or a results folder.
    pub side: String,
    /// Whether the comparison leaves out what the two sides do not share.
    pub only_common: bool,
    /// Whether fixtures are added until there is a verdict.
    pub until_decided: bool,
    /// Whether a winner is tested on fixtures that no try used: the verdict is not corrected for tries.
    pub confirms: bool,
    /// Whether the ledger of the baseline counts the run.
    pub is_recorded: bool,
}

impl Request {
    /// A request for the whole matrix of the project in `folder`, or in the nearest folder above it.
    ///
    /// # Errors
    /// There is no pipeline.
    pub fn new(folder: &Path) -> Result<Request, Problems> {
        let file = find_pipeline(folder, None)?;
        Ok(Request { project: OpenRequest { file, ..OpenRequest::default() }, ..Request::default() })
    }
}
