//! The request for an evaluation, and the part of the matrix that a process runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::action::Stage;
use crate::parts::PartNumber;
use crate::pipeline::{OpenRequest, Pipeline, Problems, find_pipeline};
use crate::results::{Label, part_folders};
use crate::scheduler::{BudgetLimits, StopRequest};
use base::locale::Locale;
use store::remote::GivenRemote;

/// What is to be evaluated, and how. The defaults of all fields except `project` are those of `compeval run` without
/// flags.
#[derive(Debug, Default)]
pub struct Request {
    /// The project and the selection of its matrix. The fields below decide whether keys are needed, and how many
    /// processes share the limits of the providers.
    pub project: OpenRequest,
    /// The label of the result set; `None` makes one from the time.
    pub label: Option<Label>,
    /// Whether to replace results of another design, which are kept under another label.
    pub replace: bool,
    /// Stages whose cached outputs are made anew.
    pub refresh: BTreeSet<Stage>,
    /// The part of the matrix that this process runs; `None` runs the whole matrix.
    pub part: Option<PartNumber>,
    /// How much may be spent.
    pub limits: BudgetLimits,
    /// The number of actions in progress at once; `None` is the number that the providers allow.
    pub jobs: Option<usize>,
    /// Whether to send no requests and start no programs.
    pub offline: bool,
    /// Whether to continue with a judge that failed its self-test.
    pub allow_weak_judge: bool,
    /// Whether a run stays until open batches have ended.
    pub waits_for_batches: bool,
    /// The language of the report; `None` is that of the project.
    pub locale: Option<Locale>,
    /// What the results are compared with.
    pub baseline: Option<Baseline>,
    /// The shared cache that flags and environment name.
    pub remote: GivenRemote,
    /// Whether to report the hosts and programs that the project uses, unless they were reported before.
    pub reports_access: bool,
    /// Receives requests to stop; with `None` there are none.
    pub stop: Option<watch::Receiver<StopRequest>>,
}

/// The results that a run is compared with.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// A label, `LABEL:METHOD` or a results folder.
    pub side: String,
    /// Whether the comparison leaves out what the two sides do not share.
    pub only_common: bool,
}

impl Request {
    /// A request for the whole matrix of the project in `folder`, or in the nearest folder above it.
    ///
    /// # Errors
    /// There is no pipeline.
    pub fn new(folder: &Path) -> Result<Request, Problems> {
        let file = find_pipeline(folder, None)?;
        Ok(Request {
            project: OpenRequest {
                file,
                ..OpenRequest::default()
            },
            ..Request::default()
        })
    }
}

/// A part with its chains of the matrix.
#[derive(Debug)]
pub(super) struct PartOfRun {
    pub(super) number: PartNumber,
    /// The number of its chains; a chain is a method on a fixture.
    pub(super) chains: usize,
    /// The number of chains of the whole matrix.
    pub(super) chains_of_all: usize,
    /// The project's cache, which is read in addition to the part's own cache. It is never locked, because on a shared
    /// file system all parts read it.
    pub(super) project_cache: PathBuf,
}

impl PartOfRun {
    /// Restricts `pipeline` to the chains of the part, and sets the part's cache and results folder.
    pub(super) fn restrict(
        pipeline: &mut Pipeline,
        number: PartNumber,
        label: &Label,
    ) -> PartOfRun {
        let chains = number.chains(pipeline);
        let [results, cache] = part_folders(&pipeline.results, label, number);
        pipeline.results = results;
        let part = PartOfRun {
            number,
            chains: chains.len(),
            chains_of_all: pipeline.fixtures.len() * pipeline.methods.len(),
            project_cache: std::mem::replace(&mut pipeline.cache, cache),
        };
        pipeline.part = Some(chains);
        part
    }

    /// Its chains, in words.
    pub(super) fn words(&self) -> String {
        let (number, all) = (self.number, self.chains_of_all);
        match self.chains {
            0 => format!(
                "Part {number} has nothing to do: the matrix has {all} chains, some of which stay together."
            ),
            chains => format!("Part {number}: {chains} of {all} chains (a method on a fixture)."),
        }
    }
}
