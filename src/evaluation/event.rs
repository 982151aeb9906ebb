//! What an evaluation reports while it runs, what its events add up to, and how it ended, or why it could not be done. Progress, messages and the
//! manifest read these totals; nothing else counts events.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use crate::action::{ActionKey, StageName};
use crate::judge::{SelfTestVerdict, UnqualifiedJudge};
use crate::pipeline::{OpenError, Pipeline, Problem, Problems};
use crate::plan::{FailedAction, PrepareError};
use crate::results::{
    FolderError, Incomparable, Manifest, Outcome, ResultsFolder, StageCounts, Summary, Unused,
};
use crate::scheduler::{self, BudgetLimits, RunError, RunEvent, RunOutcome, Spent, StopRequest};
use base::files::FileError;
use base::units::{Usage, Usd};
use models::ProviderStatus;
use store::cache::CacheError;
use store::remote::{RemoteError, SharedCache};

/// A step of an evaluation.
#[derive(Debug)]
pub enum Event<'a> {
    /// The project is valid; the warnings do not stop the work.
    Opened {
        pipeline: &'a Pipeline,
        warnings: &'a Problems,
    },
    /// Something worth a line that is no result, after a word that says of what kind it is, if that is not empty.
    Note { label: &'static str, text: &'a str },
    /// Something that may have to be mended, after a word that says where it is.
    Warning { label: &'static str, text: &'a str },
    /// The actions begin. `stages` has the number of cells in each stage.
    Started {
        stages: &'a [(StageName, u64)],
        limits: BudgetLimits,
    },
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
    WorkIsOver,
    /// All actions are over; the results are not yet published.
    Ended {
        run: &'a RunOutcome,
        totals: &'a RunTotals,
    },
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
            self.warn("remote:", &warning);
        }
    }

    pub(super) fn note(&self, label: &'static str, text: &str) {
        self.report(&Event::Note { label, text });
    }

    pub(super) fn warn(&self, label: &'static str, text: &str) {
        self.report(&Event::Warning { label, text });
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

/// The totals of the events so far.
#[derive(Clone, Debug, Default)]
pub struct RunTotals {
    /// What each stage did.
    pub stages: BTreeMap<StageName, StageCounts>,
    /// Every action that failed, once.
    pub failures: Vec<FailedAction>,
    /// The keys of the actions that have an output.
    pub keys: BTreeSet<ActionKey>,
    /// The self-test of each judge that was tested.
    pub verdicts: BTreeMap<String, SelfTestVerdict>,
    /// How often there was each warning.
    warnings: BTreeMap<String, u64>,
    /// Replies that gave an output, their usage and their cost in dollars.
    useful: (u64, Option<Usage>, f64),
}

impl RunTotals {
    /// Actions that were executed, in all stages.
    pub fn executed(&self) -> u64 {
        self.stages.values().map(|counts| counts.executed).sum()
    }

    /// Actions that were found in the cache, in all stages.
    pub fn cached(&self) -> u64 {
        self.stages.values().map(|counts| counts.cached).sum()
    }

    /// What a stage did.
    pub fn stage(&self, stage: StageName) -> StageCounts {
        self.stages.get(&stage).copied().unwrap_or_default()
    }

    /// The dimensions that judges may not grade, by the names of the judges.
    pub(super) fn unqualified(&self) -> Vec<UnqualifiedJudge> {
        let judges = self.verdicts.iter().map(|(judge, verdict)| {
            let dimensions = verdict.unqualified().map(|result| result.dimension);
            UnqualifiedJudge {
                judge: judge.clone(),
                dimensions: dimensions.collect(),
            }
        });
        judges
            .filter(|judge| !judge.dimensions.is_empty())
            .collect()
    }

    /// Counts an event.
    pub(crate) fn count(&mut self, event: &RunEvent<'_>) {
        self.keys.extend(event.key());
        match event {
            RunEvent::Cached {
                stage,
                early_cutoff,
                ..
            } => {
                let counts = self.settled(*stage);
                counts.cached += 1;
                counts.early_cutoff += u64::from(*early_cutoff);
            }
            RunEvent::Completed {
                stage,
                usage,
                cost,
                replies,
                ..
            } => {
                let counts = self.settled(*stage);
                counts.executed += 1;
                if let Some(replies) = replies {
                    let (all, used, usd) = &mut self.useful;
                    *all += replies;
                    *used = Some(used.map_or(*usage, |before| before + *usage));
                    *usd += cost.unwrap_or_default().0;
                }
            }
            RunEvent::Failed(failure) => {
                self.settled(failure.stage).failed += 1;
                self.failures.push((*failure).clone());
            }
            RunEvent::Skipped { stage } => {
                let counts = self.stages.entry(*stage).or_default();
                counts.cells += 1;
                counts.skipped += 1;
            }
            RunEvent::Shared { stage } => self.stages.entry(*stage).or_default().cells += 1,
            RunEvent::SharedFailure { stage } => self.blocked(*stage, 1),
            RunEvent::Blocked(counts) => {
                for (stage, cells) in counts.by_stage() {
                    self.blocked(stage, cells);
                }
            }
            RunEvent::Warning(warning) => *self.warnings.entry(warning.clone()).or_default() += 1,
            RunEvent::SelftestCompleted { judge, verdict } => {
                self.verdicts
                    .insert((*judge).to_owned(), (*verdict).clone());
            }
            RunEvent::AnotherStep { .. }
            | RunEvent::Estimated(_)
            | RunEvent::Context { .. }
            | RunEvent::Planted { .. }
            | RunEvent::Judged { .. }
            | RunEvent::BreakerTripped(_)
            | RunEvent::BatchRefused(_) => {}
        }
    }

    /// Counts a cell whose action ended.
    fn settled(&mut self, stage: StageName) -> &mut StageCounts {
        let counts = self.stages.entry(stage).or_default();
        counts.cells += 1;
        counts.actions += 1;
        counts
    }

    fn blocked(&mut self, stage: StageName, cells: u64) {
        if cells > 0 {
            let counts = self.stages.entry(stage).or_default();
            counts.cells += cells;
            counts.blocked += cells;
        }
    }

    /// How a run ended. Failures and an exceeded budget are final only if no batch is open. A run that has all of its
    /// outputs is complete, even if a batch of another edit is open.
    pub fn ending(&self, run: &RunOutcome) -> Outcome {
        let ending = self.gravest(run);
        let may_go_on = ending != Outcome::Complete && ending < Outcome::Interrupted;
        if may_go_on && !run.batches.is_empty() {
            Outcome::Pending
        } else {
            ending
        }
    }

    /// The gravest way in which a run ended, without regard to open batches.
    fn gravest(&self, run: &RunOutcome) -> Outcome {
        let is_incomplete =
            !run.untested.is_empty() || !run.unaccounted.is_empty() || !self.failures.is_empty();
        let is_weak = !run.weak_judges.is_empty() && !run.allow_weak_judge;
        let found = [
            (is_weak || run.broken.is_some(), Outcome::Broken),
            (run.interrupted, Outcome::Interrupted),
            (run.budget.is_some(), Outcome::Budget),
            (is_incomplete, Outcome::Incomplete),
            (run.skipped > 0, Outcome::Pending),
        ];
        found
            .into_iter()
            .find_map(|(is_so, ending)| is_so.then_some(ending))
            .unwrap_or(Outcome::Complete)
    }

    /// The ending that the manifest records. A judge may fail its self-test while all its grades are in the cache.
    pub(super) fn recorded(&self, run: &RunOutcome) -> Outcome {
        let is_whole = run.skipped == 0 && self.failures.is_empty() && run.broken.is_none();
        match self.ending(run) {
            Outcome::Broken if is_whole => Outcome::Complete,
            Outcome::Broken => Outcome::Incomplete,
            ending => ending,
        }
    }

    /// Writes the totals of a run to its manifest, with what it `spent`.
    pub(super) fn record(&self, manifest: &mut Manifest, spent: &Spent) {
        for (stage, counts) in &self.stages {
            manifest.stages.insert(*stage, *counts);
        }
        manifest.usage = spent.usage.unwrap_or_default();
        manifest.usd = spent.usd;
        manifest.unused = self.unused(spent);
        manifest.saved_by_prompt_cache = Usd(spent.saved);
        manifest.failures.clone_from(&self.failures);
        let notes = self.warnings.iter().map(|(warning, times)| match times {
            0 | 1 => warning.clone(),
            _ => format!("{times} times: {warning}"),
        });
        manifest.caveats.notes.extend(notes);
    }

    /// The part of what was `spent` that gave no output.
    fn unused(&self, spent: &Spent) -> Unused {
        let (useful, used, usd) = self.useful;
        let replies = spent.replies.saturating_sub(useful);
        let usage = match (spent.usage, used) {
            (Some(all), Some(used)) => all.without(&used),
            (all, _) => all.unwrap_or_default(),
        };
        let usd = match replies {
            0 => Some(0.0),
            _ => spent.usd.map(|all| (all.0 - usd).max(0.0)),
        };
        Unused {
            replies,
            usage,
            usd: usd.map(Usd),
            unanswered: spent.unanswered,
        }
    }
}

/// The result of an evaluation.
#[derive(Debug)]
pub struct EvaluationOutcome {
    /// What was run, spent and found.
    pub manifest: Manifest,
    /// The scores; `None` for a part of the matrix, because its scores are made together with those of all parts.
    pub summary: Option<Summary>,
    /// Why the results were not compared with the baseline of the request.
    pub refused: Option<EvaluationError>,
    /// Where the files are.
    pub folder: ResultsFolder,
    /// Whether they are incomplete, and beside the results that the label keeps.
    pub is_beside: bool,
    /// How the run ended.
    pub ending: Outcome,
    /// Why not all outputs of a part are in the remote.
    pub unpushed: Option<RemoteError>,
    /// Why the cache is not on disk, unless the run already ended because of that.
    pub unsynced: Option<CacheError>,
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::OpenBatchNote;

    fn ending(run: &RunOutcome) -> Outcome {
        RunTotals::default().ending(run)
    }

    fn batch() -> OpenBatchNote {
        OpenBatchNote {
            nonce: "b".to_owned(),
            lines: 1,
            note: String::new(),
        }
    }

    #[test]
    fn the_gravest_reason_counts_and_open_batches_leave_the_rest_open() {
        let skipped = RunOutcome {
            skipped: 1,
            ..RunOutcome::default()
        };
        assert_eq!(ending(&RunOutcome::default()), Outcome::Complete);
        assert_eq!(ending(&skipped), Outcome::Pending);
        let interrupted = RunOutcome {
            interrupted: true,
            unaccounted: vec!["cells".to_owned()],
            ..skipped.clone()
        };
        assert_eq!(ending(&interrupted), Outcome::Interrupted);
        let open = RunOutcome {
            batches: vec![batch()],
            ..interrupted
        };
        assert_eq!(ending(&open), Outcome::Interrupted);
        let unaccounted = RunOutcome {
            unaccounted: vec!["cells".to_owned()],
            ..skipped
        };
        assert_eq!(ending(&unaccounted), Outcome::Incomplete);
        let open = RunOutcome {
            batches: vec![batch()],
            ..unaccounted
        };
        assert_eq!(ending(&open), Outcome::Pending);
    }

    #[test]
    fn a_weak_judge_whose_grades_were_all_cached_leaves_complete_results() {
        let totals = RunTotals::default();
        let weak = RunOutcome {
            weak_judges: vec!["judge".to_owned()],
            ..RunOutcome::default()
        };
        assert_eq!(
            (totals.ending(&weak), totals.recorded(&weak)),
            (Outcome::Broken, Outcome::Complete)
        );
        let waiting = RunOutcome { skipped: 1, ..weak };
        assert_eq!(totals.recorded(&waiting), Outcome::Incomplete);
        let allowed = RunOutcome {
            allow_weak_judge: true,
            ..waiting
        };
        assert_eq!(totals.ending(&allowed), Outcome::Pending);
    }
}
