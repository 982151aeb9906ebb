//! What happens in a run, as values. Bars, lines, manifest and rows are listeners to one stream.

use std::sync::Arc;

use super::doors::Closed;
use crate::action::{ActionKey, StageName};
use crate::files::FileError;
use crate::judge::SelfTestVerdict;
use crate::pipeline::MatrixCounts;
use crate::plan::Estimate;
use crate::results::{Failure, ListedRow};
use crate::units::{Usage, Usd};

/// What happened. Nothing is told before it is kept.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// An output was found in the cache.
    Cached {
        /// The stage.
        stage: StageName,
        /// The action.
        key: ActionKey,
        /// Whether only an unchanged output above it made that so: early cutoff.
        cut_off: bool,
    },
    /// What is to come, told before the first stale action begins.
    Foretold(&'a Estimate),
    /// Work on an action begins.
    Started {
        /// The stage.
        stage: StageName,
    },
    /// An action was executed and its output is kept.
    Kept {
        /// The stage.
        stage: StageName,
        /// The action.
        key: ActionKey,
        /// Whether a model was asked; rules and programs are free.
        asked: bool,
        /// What it used.
        usage: Usage,
        /// What it cost; `None` where no price is known, 0 where nobody was asked.
        cost: Option<Usd>,
        /// Whether the output is that of the earlier action in this place.
        unchanged: bool,
    },
    /// An action has no output.
    Failed(&'a Failure),
    /// A cell whose action is stale is not begun: offline, over budget, interrupted, or nobody to ask.
    HeldBack {
        /// The stage.
        stage: StageName,
    },
    /// Cells that can have no output because one above them has none.
    Blocked(MatrixCounts),
    /// A cell shares the action of another.
    Shared {
        /// The stage.
        stage: StageName,
    },
    /// A cell shares an action that failed.
    SharedFailure {
        /// The stage.
        stage: StageName,
    },
    /// Nobody asks a provider or a model any more.
    Closed(&'a Closed),
    /// A judge's self-test is done.
    Selftested {
        /// The judge.
        judge: &'a str,
        /// How it did.
        verdict: &'a SelfTestVerdict,
    },
    /// Something odd about an output that is used all the same.
    Warning(String),
    /// Rows of judged cells.
    Rows {
        /// Their places among all rows, in rising order.
        ordinals: &'a [u64],
        /// As many lines of JSON, each a row.
        lines: &'a str,
        /// The same rows as figures are made of them.
        rows: &'a [Arc<ListedRow>],
    },
}

/// Takes note of what happens.
pub trait Listener {
    /// Is told of one event.
    ///
    /// # Errors
    /// A listener that cannot go on, such as one that writes rows to a full disk. It ends the run.
    fn hear(&mut self, event: &Event<'_>) -> Result<(), FileError>;
}
