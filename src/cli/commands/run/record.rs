//! What a run leaves behind: rows as they come, counts, failures, usage. One listener to its events.

use std::collections::BTreeMap;

use crate::action::StageName;
use crate::files::FileError;
use crate::pipeline::CompressCell;
use crate::results::{
    FailedAction, KeysFile, LinesFile, ListedRow, Manifest, ResultsFolder, RowsFile, RowsForm, StageCounts, Unused,
    names,
};
use crate::scheduler::{Event, Listener, Spent};
use crate::units::{Usage, Usd};

/// The recorder of a run.
pub(crate) struct Recorder {
    rows: RowsFile,
    contexts: LinesFile<CompressCell>,
    /// The lines of sessions with a rule in them, if there are such.
    constraints: Option<LinesFile<CompressCell>>,
    keys: KeysFile,
    stages: BTreeMap<StageName, StageCounts>,
    /// What the replies used and cost that gave an output.
    useful: Useful,
    failures: Vec<FailedAction>,
    notes: BTreeMap<String, u64>,
}

/// What is to be recorded, and where.
pub(crate) struct Recording<'r> {
    pub(crate) folder: &'r ResultsFolder,
    /// The set that this one is to replace: where all is the same, its files are taken over.
    pub(crate) earlier: Option<&'r ResultsFolder>,
    /// Rows, at most.
    pub(crate) cells: u64,
    pub(crate) form: RowsForm,
    /// Whether rules are put into sessions.
    pub(crate) has_rules: bool,
}

/// Rows and contexts that were recorded.
pub(crate) struct RecordedRows {
    /// The rows, if they are few.
    pub(crate) few: Option<Vec<ListedRow>>,
    /// Whether the set that is to be replaced has the very same rows and contexts.
    pub(crate) unchanged: bool,
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
    /// Begins the files of a result set.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn begin(recording: Recording<'_>) -> Result<Recorder, FileError> {
        let Recording { folder, earlier, cells, form, has_rules } = recording;
        let constraints = has_rules.then(|| folder.begin_lines(names::CONSTRAINTS, earlier));
        Ok(Recorder {
            rows: RowsFile::create(folder.path(), cells, form, earlier.map(ResultsFolder::path))?,
            contexts: folder.begin_lines(names::CONTEXTS, earlier)?,
            constraints: constraints.transpose()?,
            keys: KeysFile::create(&folder.file(names::KEYS))?,
            stages: StageName::OF_RUN.into_iter().map(|stage| (stage, StageCounts::default())).collect(),
            useful: Useful::default(),
            failures: Vec::new(),
            notes: BTreeMap::new(),
        })
    }

    fn stage(&mut self, stage: StageName) -> &mut StageCounts {
        self.stages.entry(stage).or_default()
    }

    pub(crate) fn failures(&self) -> &[FailedAction] {
        &self.failures
    }

    /// Puts the lines of files in order and writes down what was counted.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn finish(self, manifest: &mut Manifest, spent: &Spent) -> Result<RecordedRows, FileError> {
        let rows = self.rows.finish()?;
        let has_same_contexts = self.contexts.finish()?;
        let has_same_constraints = self.constraints.map_or(Ok(true), LinesFile::finish)?;
        self.keys.finish()?;
        manifest.stages = self.stages;
        manifest.usage = spent.usage.unwrap_or_default();
        manifest.usd = spent.usd;
        manifest.unused = self.useful.unused_of(spent);
        manifest.saved_by_prompt_cache = Usd(spent.saved);
        manifest.failures = self.failures;
        let times = |count: u64| if count > 1 { format!("{count} times: ") } else { String::new() };
        manifest.caveats.notes.extend(self.notes.into_iter().map(|(note, count)| format!("{}{note}", times(count))));
        let unchanged = rows.unchanged && has_same_contexts && has_same_constraints;
        Ok(RecordedRows { few: rows.few, unchanged })
    }
}

impl Listener for Recorder {
    fn on_event(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        match event {
            Event::Cached { stage, early_cutoff, key } => {
                self.keys.push(*key)?;
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.cached += 1;
                counts.early_cutoff += u64::from(*early_cutoff);
            }
            Event::Completed { stage, usage, repeated, cost, key, asked, .. } => {
                self.keys.push(*key)?;
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
                let constraints = self.constraints.as_mut().filter(|_| cell.chain.injection.is_some());
                constraints.unwrap_or(&mut self.contexts).append(&[*cell], &format!("{line}\n"))?;
            }
            Event::Rows { ordinals, lines } => self.rows.append(ordinals, lines)?,
            Event::Started { .. }
            | Event::Estimated(_)
            | Event::SelftestCompleted { .. }
            | Event::BreakerTripped(_) => {}
        }
        Ok(())
    }
}
