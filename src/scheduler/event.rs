//! The events of a run. Progress bars, log lines, manifest and rows listen to one stream of them.

use std::rc::Rc;

use super::breakers::TrippedBreaker;
use crate::action::{ActionKey, StageName};
use crate::judge::SelfTestVerdict;
use crate::pipeline::MatrixCounts;
use crate::plan::{AnswerTask, CostEstimate, FailedAction, JudgeTask, Resolved, ResolvedContext};
use base::files::FileError;
use base::units::{Usage, Usd};

/// What happened. An event follows the commit of what it reports, so that a reader of events never knows more than the
/// cache.
#[derive(Clone, Debug)]
pub enum RunEvent<'a> {
    /// An output was found in the cache.
    Cached {
        stage: StageName,
        key: ActionKey,
        /// Whether it is cached only because an output above it came out unchanged: early cutoff.
        early_cutoff: bool,
    },
    /// What the rest of the run is expected to take; sent before the first stale action begins.
    Estimated(&'a CostEstimate),
    /// Work on an action begins.
    Started { stage: StageName },
    /// An action was executed and its output is in the cache.
    Completed {
        stage: StageName,
        key: ActionKey,
        /// Whether a model was asked; rules and programs are free.
        asked: bool,
        /// Replies of models that it took; `None` for rules, and for programs that do not say.
        replies: Option<u64>,
        usage: Usage,
        /// What it cost; `None` where no price is known, 0 where no provider was asked.
        cost: Option<Usd>,
        /// Whether the earlier action in this place had the same output.
        unchanged: bool,
    },
    /// An answer that may search takes one more step, which is an action of its own.
    AnotherStep { stage: StageName },
    /// An action has no output.
    Failed(&'a FailedAction),
    /// A cell whose action is stale is not begun.
    Skipped {
        stage: StageName,
        reason: SkipReason,
    },
    /// Cells that can have no output because one above them has none.
    Blocked(MatrixCounts),
    /// A cell shares the action of another.
    Shared { stage: StageName },
    /// A cell shares an action that failed.
    SharedFailure { stage: StageName },
    /// No more calls to a provider or a model: they would all fail the same way.
    BreakerTripped(&'a TrippedBreaker),
    /// A judge's self-test is done.
    SelftestCompleted {
        judge: &'a str,
        verdict: &'a SelfTestVerdict,
    },
    /// Something odd about an output that is used all the same.
    Warning(String),
    /// A compression has an output.
    Context { context: &'a Rc<ResolvedContext> },
    /// A question about planted items has a reply in form.
    Planted {
        task: &'a AnswerTask,
        reply: &'a str,
    },
    /// A judgement has an output, and so its cell can have a row.
    Judged {
        task: &'a JudgeTask,
        resolved: &'a Resolved,
    },
}

impl RunEvent<'_> {
    /// The action that has an output now.
    pub fn key(&self) -> Option<ActionKey> {
        match self {
            RunEvent::Cached { key, .. } | RunEvent::Completed { key, .. } => Some(*key),
            _ => None,
        }
    }
}

/// Why a cell was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    Offline,
    /// The budget is used up.
    Budget,
    /// The user interrupted the run.
    Interrupted,
    /// Every further call to its provider would fail the same way.
    ProviderUnavailable,
    /// A judge failed its self-test, or could not complete it.
    WeakJudge,
    /// Its request is in a batch that has not ended.
    Submitted,
    /// The judge gets no more requests: none of its replies kept the contract.
    GivenUp,
}

/// Receives the events of a run.
pub trait Listener {
    /// Handles one event.
    ///
    /// # Errors
    /// A listener that cannot continue, such as one that writes rows to a full disk. It ends the run.
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError>;
}
