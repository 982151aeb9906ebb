//! What a run leaves behind: rows as they come, counts, failures, usage. One listener to its events.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::{ActionKey, StageName};
use crate::files::FileError;
use crate::pipeline::CompressCell;
use crate::results::{ListedRow, Manifest, ResultsFolder, RowsFile, StageCounts, Unused, names};
use crate::scheduler::{Event, Listener, Spent};
use crate::units::{Usage, Usd};

/// The recorder of a run.
pub(crate) struct Recorder {
    rows: RowsFile,
    /// The lines of contexts, in the order of the matrix.
    contexts: BTreeMap<CompressCell, String>,
    /// Those of sessions with a rule in them.
    constraints: BTreeMap<CompressCell, String>,
    stages: BTreeMap<StageName, StageCounts>,
    /// What the replies used and cost that gave an output.
    useful: Useful,
    failures: Vec<crate::results::FailedAction>,
    notes: BTreeMap<String, u64>,
    keys: BTreeSet<ActionKey>,
}

#[derive(Debug, Default)]
struct Useful {
    replies: u64,
    usage: Option<Usage>,
    usd: f64,
}

impl Useful {
    fn add(&mut self, usage: &Usage, cost: Option<Usd>) {
        self.replies += 1;
        self.usage = Some(self.usage.map_or(*usage, |before| before + *usage));
        self.usd += cost.unwrap_or_default().0;
    }

    fn unused_of(&self, spent: &Spent) -> Unused {
        let replies = spent.replies.saturating_sub(self.replies);
        let usage = match (spent.usage, self.usage) {
            (Some(all), Some(useful)) => all.without(&useful),
            (all, _) => all.unwrap_or_default(),
        };
        let usd = match replies {
            0 => Some(0.0),
            _ => spent.usd.map(|all| (all.0 - self.usd).max(0.0)),
        };
        Unused { replies, usage, usd: usd.map(Usd), unanswered: spent.unanswered }
    }
}

impl Recorder {
    /// A recorder that writes rows to `rows`.
    pub(crate) fn new(rows: RowsFile) -> Recorder {
        Recorder {
            rows,
            contexts: BTreeMap::new(),
            constraints: BTreeMap::new(),
            stages: StageName::OF_RUN.into_iter().map(|stage| (stage, StageCounts::default())).collect(),
            useful: Useful::default(),
            failures: Vec::new(),
            notes: BTreeMap::new(),
            keys: BTreeSet::new(),
        }
    }

    fn stage(&mut self, stage: StageName) -> &mut StageCounts {
        self.stages.entry(stage).or_default()
    }

    pub(crate) fn failures(&self) -> &[crate::results::FailedAction] {
        &self.failures
    }

    /// Puts the rows in order and writes down what was counted. Returns the rows if they are few.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn finish(
        self,
        folder: &ResultsFolder,
        manifest: &mut Manifest,
        spent: &Spent,
    ) -> Result<Option<Vec<ListedRow>>, FileError> {
        let rows = self.rows.finish()?;
        let text = |lines: BTreeMap<CompressCell, String>| -> String {
            lines.into_values().flat_map(|line| [line, "\n".to_owned()]).collect()
        };
        folder.write(names::CONTEXTS, text(self.contexts))?;
        if !self.constraints.is_empty() {
            folder.write(names::CONSTRAINTS, text(self.constraints))?;
        }
        manifest.stages = self.stages;
        manifest.usage = spent.usage.unwrap_or_default();
        manifest.usd = spent.usd;
        manifest.unused = self.useful.unused_of(spent);
        manifest.saved_by_prompt_cache = Usd(spent.saved);
        manifest.failures = self.failures;
        manifest.keys = self.keys;
        let times = |count: u64| if count > 1 { format!("{count} times: ") } else { String::new() };
        manifest.caveats.notes.extend(self.notes.into_iter().map(|(note, count)| format!("{}{note}", times(count))));
        Ok(rows)
    }
}

impl Listener for Recorder {
    fn on_event(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        match event {
            Event::Cached { stage, early_cutoff, key } => {
                self.keys.insert(*key);
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.cached += 1;
                counts.early_cutoff += u64::from(*early_cutoff);
            }
            Event::Completed { stage, usage, repeated, cost, key, asked, .. } => {
                self.keys.insert(*key);
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.executed += 1;
                if *asked {
                    counts.prompt_cache.count(usage, *repeated);
                    self.useful.add(usage, *cost);
                }
            }
            Event::Failed(failure) => {
                let counts = self.stage(failure.stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.failed += 1;
                self.failures.push((*failure).clone());
            }
            Event::Skipped { stage, .. } => {
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.skipped += 1;
            }
            Event::Shared { stage } | Event::SharedFailure { stage } => self.stage(*stage).cells += 1,
            Event::Blocked(counts) => {
                self.stage(StageName::Compress).cells += counts.compress;
                self.stage(StageName::Answer).cells += counts.answer;
                self.stage(StageName::Judge).cells += counts.judge;
            }
            Event::Warning(warning) => *self.notes.entry(warning.clone()).or_default() += 1,
            Event::Context { cell, line } => {
                let lines = if cell.chain.injection.is_some() { &mut self.constraints } else { &mut self.contexts };
                lines.insert(*cell, (*line).to_owned());
            }
            Event::Rows { ordinals, lines, rows } => self.rows.append(ordinals, lines, rows)?,
            Event::Started { .. }
            | Event::Estimated(_)
            | Event::SelftestCompleted { .. }
            | Event::BreakerTripped(_) => {}
        }
        Ok(())
    }
}
