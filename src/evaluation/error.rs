//! Why an evaluation could not be done.

use crate::pipeline::{OpenError, Problem, Problems};
use crate::plan::PrepareError;
use crate::results::{FolderError, Incomparable};
use crate::scheduler::RunError;
use base::files::FileError;
use store::cache::CacheError;
use store::remote::RemoteError;

/// Why an evaluation could not be done. Everything that was paid for is in the cache.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The project has faults, the selection is empty, or what is asked for cannot be done with them.
    #[error(transparent)]
    Open(#[from] OpenError),
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
    /// The runtime cannot be started.
    #[error("could not start a thread: {_0}")]
    Runtime(std::io::Error),
}

impl From<Problems> for EvaluationError {
    fn from(problems: Problems) -> EvaluationError {
        EvaluationError::Open(OpenError::Problems(problems))
    }
}

impl From<Problem> for EvaluationError {
    fn from(problem: Problem) -> EvaluationError {
        Problems(vec![problem]).into()
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
