//! Why an evaluation could not be done.

use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::cache::CacheError;
use crate::parts::PartNumber;
use crate::pipeline::{OpenError, Problems};
use crate::plan::PrepareError;
use crate::remote::{RemoteError, SettingsError};
use crate::results::{FEW, FolderError, Incomparable, Label, LabelLockError, LabelWriterError, SetError};
use crate::scheduler::RunError;
use base::files::FileError;
use base::units::{Tokens, Usd};
use models::ModelRef;

/// The longest reply of a model, and what it costs.
#[derive(Clone, Debug)]
pub struct DearestReply {
    /// The model.
    pub model: ModelRef,
    /// Tokens that it may write.
    pub tokens: Tokens,
    /// What they cost.
    pub usd: Usd,
    /// Whether the pipeline limits its replies (`max_output_tokens`).
    pub is_limited: bool,
}

/// Why an evaluation could not be done. Nothing was paid for that is not in the cache.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The project has faults, or nothing of it is selected.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A model has no known price, and the cost is limited. The pipeline's file declares prices.
    #[error("a cost limit needs known prices, and the price of `{model}` is unknown")]
    UnknownPrice { model: ModelRef, file: PathBuf },
    /// One reply may cost more than the limit, and so may the whole run.
    #[error(
        "the cost is limited to ${:.2}, and one reply of `{}` may cost ${:.2} ({} tokens)",
        limit.0, reply.model, reply.usd.0, reply.tokens.0
    )]
    CostLimit { limit: Usd, reply: DearestReply, expected: Option<Usd> },
    /// The variable with the key of a provider is not set.
    #[error("{variable} is not set, and provider `{provider}` needs the key in it")]
    MissingKey { variable: String, provider: String },
    /// A part's folder may be gone before its batches have ended.
    #[error("a part cannot send requests to `{model}` in batches")]
    BatchedPart { model: ModelRef },
    /// The same part is being run by another process.
    #[error("part {part} is being run already: {error}")]
    PartIsRunning { part: PartNumber, error: LabelWriterError },
    /// Parts meet in a remote, and none is named.
    #[error("the parts of a run meet in a remote, and none is named")]
    NoRemote,
    /// The remote has not the judges' self-test, which every part would pay for.
    #[error("the judges' self-test is not in {url}: {cases} of its cases are missing, and every part would ask them")]
    NoSelftest { url: String, cases: usize },
    /// No part of the run pushed anything.
    #[error("the remote has no part of `{label}` in {of} parts")]
    NoParts { label: Label, of: NonZeroU32 },
    /// The parts measured something else than the project does now.
    #[error("the parts of `{label}` are of another design than this project is now; what differs:{}", list(differs))]
    OtherParts { label: Label, differs: Vec<String> },
    /// The parts divided the work otherwise.
    #[error("the parts of `{label}` divided the work otherwise than this project and this version would now")]
    OtherAssignment { label: Label },
    /// The results of the label cannot be written.
    #[error(transparent)]
    Writer(#[from] LabelWriterError),
    #[error(transparent)]
    LabelLock(#[from] LabelLockError),
    /// The cache is a file.
    #[error("the cache {} is a file, not a folder", _0.display())]
    CacheIsFile(PathBuf),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    RemoteSettings(#[from] SettingsError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An action cannot be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Set(#[from] SetError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Two results do not measure the same.
    #[error(transparent)]
    Incomparable(#[from] Incomparable),
    /// Too many rows for a page that compares them.
    #[error("`{0}` has more than {FEW} cells, which are too many for a page")]
    TooManyCells(String),
    /// The baseline shares too few fixtures for a look.
    #[error("a look needs {needed} fixtures that the baseline has too, and there are {found}")]
    TooFewFixtures { needed: usize, found: usize },
    /// The runtime cannot be started.
    #[error("failed to start the runtime: {0}")]
    Runtime(std::io::Error),
    /// The periodic tasks of a run ended before it did.
    #[error("the clock stopped")]
    ClockStopped,
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  - {line}")).collect()
}

impl From<Problems> for EvaluationError {
    fn from(problems: Problems) -> EvaluationError {
        EvaluationError::Open(OpenError::Problems(problems))
    }
}

impl From<RunError> for EvaluationError {
    fn from(error: RunError) -> EvaluationError {
        match error {
            RunError::Cache(error) => error.into(),
            RunError::File(error) => error.into(),
        }
    }
}
