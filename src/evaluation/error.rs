//! Why an evaluation could not be done.

use std::path::PathBuf;

use crate::parts::PartNumber;
use crate::pipeline::{OpenError, Problems};
use crate::plan::PrepareError;
use crate::results::{FEW, FolderError, Incomparable};
use crate::scheduler::RunError;
use base::files::FileError;
use base::units::{Tokens, Usd};
use models::ModelRef;
use store::cache::CacheError;
use store::remote::RemoteError;

/// The longest reply of a model, with its cost.
#[derive(Clone, Debug)]
pub struct DearestReply {
    pub model: ModelRef,
    /// The maximum length of the reply.
    pub tokens: Tokens,
    /// The cost of a reply of this length.
    pub usd: Usd,
    /// Whether the pipeline limits the model's replies (`max_output_tokens`).
    pub is_limited: bool,
}

/// Why an evaluation could not be done. Everything that was paid for is in the cache.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The project has faults, or the selection is empty.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The cost is limited, and the price of a model is unknown. `file` is the pipeline, which declares prices.
    #[error("a cost limit needs known prices, and the price of `{model}` is unknown")]
    UnknownPrice { model: ModelRef, file: PathBuf },
    /// One reply may cost more than the limit, and so may the whole run. `limit` is what this process may spend, and
    /// `share` the part of the whole run's limit that this is, from 0 to 1.
    #[error("the cost is limited to {limit}, and one reply of `{}` may cost {} ({} tokens)",
        reply.model, reply.usd, reply.tokens.0)]
    CostLimit {
        limit: Usd,
        share: f64,
        reply: DearestReply,
        expected: Option<Usd>,
    },
    /// The variable with the key of a provider is not set.
    #[error("{variable} is not set, and provider `{provider}` needs the key in it")]
    MissingKey { variable: String, provider: String },
    /// A part uses batches, but its folder may be gone before the batches end.
    #[error("a part cannot send requests to `{model}` in batches")]
    BatchedPart { model: ModelRef },
    /// Another process runs the same part.
    #[error("part {part} is being run already: {error}")]
    PartIsRunning {
        part: PartNumber,
        error: FolderError,
    },
    /// Parts need a remote, and none is named.
    #[error("the parts of a run share their outputs through a remote, and none is set")]
    NoRemote,
    /// The remote does not have the judges' self-test, so every part would pay for it.
    #[error(
        "the judges' self-test is not in {url}: {cases} of its cases are missing, and every part would ask them"
    )]
    NoSelftest { url: String, cases: usize },
    /// The path of the cache is a file.
    #[error("the cache {} is a file, not a folder", _0.display())]
    CacheIsFile(PathBuf),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// An action cannot be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Two result sets do not measure the same.
    #[error(transparent)]
    Incomparable(#[from] Incomparable),
    /// A run would measure something else than its baseline did.
    #[error(transparent)]
    OtherBaseline(Incomparable),
    /// A result set has too many rows for the page of a comparison.
    #[error("`{_0}` has more than {FEW} cells, which are too many for a page")]
    TooManyCells(String),
    /// The runtime cannot be started.
    #[error("could not start a thread: {_0}")]
    Runtime(std::io::Error),
    /// The periodic tasks of a run ended before the run.
    #[error("the clock stopped")]
    ClockStopped,
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
