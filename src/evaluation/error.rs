//! Why an evaluation could not be done.

use std::path::PathBuf;

use crate::cache::CacheError;
use crate::pipeline::{OpenError, Problems};
use crate::plan::PrepareError;
use crate::remote::{RemoteError, SettingsError};
use crate::results::{FEW, FolderError, Incomparable, LabelLockError, LabelWriterError, SetError};
use crate::scheduler::RunError;
use crate::shard::Shard;
use base::files::FileError;
use models::ModelRef;

/// Why an evaluation could not be done. Nothing was paid for that is not in the cache.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The project has faults, or nothing of it is selected.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A model has no known price, and the cost is limited. The pipeline's file declares prices.
    #[error("a cost limit needs known prices, and the price of `{model}` is unknown")]
    UnknownPrice { model: ModelRef, file: PathBuf },
    /// The variable with the key of a provider is not set.
    #[error("{variable} is not set, and provider `{provider}` needs the key in it")]
    MissingKey { variable: String, provider: String },
    /// A part's folder may be gone before its batches have ended.
    #[error("a shard cannot send requests to `{model}` in batches")]
    BatchedPart { model: ModelRef },
    /// The same part is being run by another process.
    #[error("shard {shard} is being run already: {error}")]
    PartIsRunning { shard: Shard, error: LabelWriterError },
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
    /// There is no file with a self-test at this place.
    #[error("there is no file {}", _0.display())]
    NoSelftest(PathBuf),
    /// The file with the self-test cannot be imported.
    #[error(transparent)]
    Import(CacheError),
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
