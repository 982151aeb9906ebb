//! What a run leaves behind: rows as they come, counts, failures, usage. One listener to its events.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::action::{ActionKey, StageName};
use crate::files::FileError;
use crate::results::{Manifest, Row, RowsFile, StageCounts};
use crate::scheduler::{Event, Listener};
use crate::units::{Usage, Usd, add_known};

/// The recorder of a run.
pub(crate) struct Recorder {
    rows: RowsFile,
    stages: BTreeMap<StageName, StageCounts>,
    /// Actions found in the cache only because an output above them did not change.
    pub(crate) spared: u64,
    usage: Usage,
    executed: u64,
    usd: Option<Usd>,
    saved: f64,
    failures: Vec<crate::results::Failure>,
    notes: BTreeMap<String, u64>,
    keys: BTreeSet<ActionKey>,
}

impl Recorder {
    /// A recorder that writes rows to `rows`.
    pub(crate) fn new(rows: RowsFile) -> Recorder {
        Recorder {
            rows,
            stages: StageName::ALL.into_iter().map(|stage| (stage, StageCounts::default())).collect(),
            spared: 0,
            usage: Usage::default(),
            executed: 0,
            usd: Some(Usd(0.0)),
            saved: 0.0,
            failures: Vec::new(),
            notes: BTreeMap::new(),
            keys: BTreeSet::new(),
        }
    }

    fn stage(&mut self, stage: StageName) -> &mut StageCounts {
        self.stages.entry(stage).or_default()
    }

    fn add_usage(&mut self, usage: &Usage) {
        let before = std::mem::replace(&mut self.usage, *usage);
        if self.executed > 0 {
            self.usage = Usage {
                input: add_known(before.input, usage.input),
                cached_input: add_known(before.cached_input, usage.cached_input),
                cache_write: add_known(before.cache_write, usage.cache_write),
                output: add_known(before.output, usage.output),
                reasoning: add_known(before.reasoning, usage.reasoning),
            };
        }
        self.executed += 1;
    }

    /// Failed actions so far.
    pub(crate) fn failures(&self) -> &[crate::results::Failure] {
        &self.failures
    }

    /// Puts the rows in order and writes down what was counted. Returns the rows if they are few.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn finish(self, manifest: &mut Manifest) -> Result<Option<Vec<Row>>, FileError> {
        let rows = self.rows.finish()?;
        manifest.stages = self.stages;
        manifest.usage = self.usage;
        manifest.usd = self.usd;
        manifest.saved_by_prompt_cache = Usd(self.saved);
        manifest.failures = self.failures;
        manifest.keys = self.keys;
        let times = |count: u64| if count > 1 { format!(" ({count} times)") } else { String::new() };
        manifest.caveats.notes.extend(self.notes.into_iter().map(|(note, count)| format!("{note}{}", times(count))));
        Ok(rows)
    }
}

impl Listener for Recorder {
    fn hear(&mut self, event: &Event<'_>) -> Result<(), FileError> {
        match event {
            Event::Cached { stage, spared, key } => {
                self.keys.insert(*key);
                self.spared += u64::from(*spared);
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.cached += 1;
            }
            Event::Kept { stage, usage, cost, saved, key, asked, .. } => {
                self.keys.insert(*key);
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.executed += 1;
                if *asked {
                    self.add_usage(usage);
                    self.usd = add_known(self.usd, *cost);
                    self.saved += saved.unwrap_or_default();
                }
            }
            Event::Failed(failure) => {
                let counts = self.stage(failure.stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.failed += 1;
                self.failures.push((*failure).clone());
            }
            Event::HeldBack { stage } => {
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.actions += 1;
                counts.cut_off += 1;
            }
            Event::Shared { stage } => self.stage(*stage).cells += 1,
            Event::Blocked(counts) => {
                self.stage(StageName::Compress).cells += counts.compress;
                self.stage(StageName::Answer).cells += counts.answer;
                self.stage(StageName::Judge).cells += counts.judge;
            }
            Event::Warning(warning) => *self.notes.entry(warning.clone()).or_default() += 1,
            Event::Row { ordinal, row } => self.rows.append(*ordinal, Rc::clone(row))?,
            Event::Started { .. } | Event::Selftested { .. } => {}
        }
        Ok(())
    }
}
