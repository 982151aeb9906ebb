//! What the events of an evaluation add up to. Progress, messages and the manifest read these totals; nothing else counts
//! events.

use std::collections::BTreeMap;

use crate::action::StageName;
use crate::judge::SelfTestVerdict;
use crate::pipeline::MatrixCounts;
use crate::plan::FailedAction;
use crate::results::{Manifest, StageCounts, Unused};
use crate::scheduler::{RunEvent, Spent};
use base::units::{Usage, Usd};

/// The totals of the events so far.
#[derive(Clone, Debug, Default)]
pub struct RunTotals {
    /// What each stage did.
    pub stages: BTreeMap<StageName, StageCounts>,
    /// Every action that failed, once.
    pub failures: Vec<FailedAction>,
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

    /// Counts an event.
    pub(crate) fn count(&mut self, event: &RunEvent<'_>) {
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
            RunEvent::Skipped { stage, .. } => {
                let counts = self.stages.entry(*stage).or_default();
                counts.cells += 1;
                counts.skipped += 1;
            }
            RunEvent::Shared { stage } => self.stages.entry(*stage).or_default().cells += 1,
            RunEvent::SharedFailure { stage } => self.blocked(*stage, 1),
            RunEvent::Blocked(MatrixCounts {
                compress,
                answer,
                judge,
            }) => {
                self.blocked(StageName::Compress, *compress);
                self.blocked(StageName::Answer, *answer);
                self.blocked(StageName::Judge, *judge);
            }
            RunEvent::Warning(warning) => *self.warnings.entry(warning.clone()).or_default() += 1,
            RunEvent::SelftestCompleted { judge, verdict } => {
                self.verdicts
                    .insert((*judge).to_owned(), (*verdict).clone());
            }
            RunEvent::Started { .. }
            | RunEvent::AnotherStep { .. }
            | RunEvent::Estimated(_)
            | RunEvent::Context { .. }
            | RunEvent::Planted { .. }
            | RunEvent::Judged { .. }
            | RunEvent::BreakerTripped(_) => {}
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
