//! How an evaluation ended.

use super::error::EvaluationError;
use super::totals::RunTotals;
use crate::results::{Manifest, Outcome, Publication, ResultsFolder, Summary};
use crate::scheduler::RunOutcome;
use store::cache::CacheError;
use store::remote::RemoteError;

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
    pub publication: Publication,
    /// How the run ended.
    pub ending: Outcome,
    /// Why not all outputs of a part are in the remote.
    pub unpushed: Option<RemoteError>,
    /// Why the cache is not on disk, unless the run already ended because of that.
    pub unsynced: Option<CacheError>,
}

impl EvaluationOutcome {
    /// The folder of the files.
    pub fn folder(&self) -> &ResultsFolder {
        let (Publication::Published(folder) | Publication::Beside(folder)) = &self.publication;
        folder
    }
}

/// A run whose actions have ended.
#[derive(Debug)]
pub struct Ended {
    /// What the scheduler returned.
    pub run: RunOutcome,
    /// What its events added up to.
    pub totals: RunTotals,
    /// Whether the run continues with a judge that failed its self-test.
    pub allow_weak_judge: bool,
    /// Whether outputs of some stage were asked for again.
    pub refreshes: bool,
}

impl Ended {
    /// How the run ended. Failures and an exceeded budget are final only if no batch is open. A run that has all of its
    /// outputs is complete, even if a batch of another edit is open.
    pub fn ending(&self) -> Outcome {
        let ending = self.gravest();
        let may_go_on = ending != Outcome::Complete && ending < Outcome::Interrupted;
        if may_go_on && !self.run.batches.is_empty() {
            Outcome::Pending
        } else {
            ending
        }
    }

    /// The gravest way in which the run ended, without regard to open batches.
    fn gravest(&self) -> Outcome {
        let RunOutcome {
            untested,
            unaccounted,
            budget,
            weak_judges,
            broken,
            interrupted,
            skipped,
            ..
        } = &self.run;
        let is_incomplete =
            !untested.is_empty() || !unaccounted.is_empty() || !self.totals.failures.is_empty();
        let is_broken = broken.is_some() || (!weak_judges.is_empty() && !self.allow_weak_judge);
        let found = [
            (is_broken, Outcome::Broken),
            (*interrupted, Outcome::Interrupted),
            (budget.is_some(), Outcome::Budget),
            (is_incomplete, Outcome::Incomplete),
            (*skipped > 0, Outcome::Pending),
        ];
        found
            .into_iter()
            .find_map(|(is_so, ending)| is_so.then_some(ending))
            .unwrap_or(Outcome::Complete)
    }

    /// The outcome that the manifest records. A judge may fail its self-test while all its grades are in the cache.
    pub(super) fn recorded(&self) -> Outcome {
        let is_whole =
            self.run.skipped == 0 && self.totals.failures.is_empty() && self.run.broken.is_none();
        match self.ending() {
            Outcome::Broken if is_whole => Outcome::Complete,
            Outcome::Broken => Outcome::Incomplete,
            ending => ending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::OpenBatchNote;

    fn ended(run: RunOutcome) -> Ended {
        Ended {
            run,
            totals: RunTotals::default(),
            allow_weak_judge: false,
            refreshes: false,
        }
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
        assert_eq!(ended(RunOutcome::default()).ending(), Outcome::Complete);
        assert_eq!(ended(skipped.clone()).ending(), Outcome::Pending);
        let interrupted = RunOutcome {
            interrupted: true,
            unaccounted: vec!["cells".to_owned()],
            ..skipped.clone()
        };
        assert_eq!(ended(interrupted.clone()).ending(), Outcome::Interrupted);
        let open = RunOutcome {
            batches: vec![batch()],
            ..interrupted
        };
        assert_eq!(ended(open).ending(), Outcome::Interrupted);
        let unaccounted = RunOutcome {
            unaccounted: vec!["cells".to_owned()],
            ..skipped
        };
        assert_eq!(ended(unaccounted.clone()).ending(), Outcome::Incomplete);
        assert_eq!(
            ended(RunOutcome {
                batches: vec![batch()],
                ..unaccounted
            })
            .ending(),
            Outcome::Pending
        );
    }

    #[test]
    fn a_weak_judge_whose_grades_were_all_cached_leaves_complete_results() {
        let weak = RunOutcome {
            weak_judges: vec!["judge".to_owned()],
            ..RunOutcome::default()
        };
        let judged = ended(weak.clone());
        assert_eq!(
            (judged.ending(), judged.recorded()),
            (Outcome::Broken, Outcome::Complete)
        );
        let waiting = ended(RunOutcome { skipped: 1, ..weak });
        assert_eq!(waiting.recorded(), Outcome::Incomplete);
        assert_eq!(
            Ended {
                allow_weak_judge: true,
                ..waiting
            }
            .ending(),
            Outcome::Pending
        );
    }
}
