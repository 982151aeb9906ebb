//! Records a run: its rows as they are made, keys, counts, failures and usage.

use std::collections::BTreeMap;

use super::event::{self, Listening};
use super::line_files::LineFiles;
use crate::action::StageName;
use crate::pipeline::CompressCell;
use crate::results::{FailedAction, KeysFile, Manifest, ResultsFolder, StageCounts, Unused, names};
use crate::scheduler::{Listener, RunEvent, Spent};
use base::files::FileError;
use base::units::{Usage, Usd};
use store::remote::SharedCache;

/// The recorder of a run.
pub(crate) struct Recorder {
    pub(super) lines: LineFiles,
    pub(super) counts: RunCounts,
}

/// What is counted during a run, and also after its rows are finished.
pub(super) struct RunCounts {
    keys: KeysFile,
    stages: BTreeMap<StageName, StageCounts>,
    /// Usage and cost of the replies that gave an output.
    useful: Useful,
    pub(super) failures: Vec<FailedAction>,
    notes: BTreeMap<String, u64>,
    /// The failed checks of each judge.
    pub(super) weaknesses: BTreeMap<String, Vec<String>>,
    /// Whether checks of judges were left out because the run was asked to stop.
    pub(super) checks_left_out: bool,
}

#[derive(Debug, Default)]
struct Useful {
    replies: u64,
    usage: Option<Usage>,
    usd: f64,
}

impl Useful {
    fn add(&mut self, replies: u64, usage: &Usage, cost: Option<Usd>) {
        self.replies += replies;
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
        Unused {
            replies,
            usage,
            usd: usd.map(Usd),
            unanswered: spent.unanswered,
        }
    }
}

impl Recorder {
    /// Begins to record into `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn begin(folder: &ResultsFolder, lines: LineFiles) -> Result<Recorder, FileError> {
        Ok(Recorder {
            lines,
            counts: RunCounts::begin(folder)?,
        })
    }
}

impl RunCounts {
    fn begin(folder: &ResultsFolder) -> Result<RunCounts, FileError> {
        Ok(RunCounts {
            keys: KeysFile::create(&folder.file(names::KEYS))?,
            stages: StageName::OF_RUN
                .into_iter()
                .map(|stage| (stage, StageCounts::default()))
                .collect(),
            useful: Useful::default(),
            failures: Vec::new(),
            notes: BTreeMap::new(),
            weaknesses: BTreeMap::new(),
            checks_left_out: false,
        })
    }

    fn stage(&mut self, stage: StageName) -> &mut StageCounts {
        self.stages.entry(stage).or_default()
    }

    /// Counts a cell whose action ended.
    fn settled(&mut self, stage: StageName) -> &mut StageCounts {
        let counts = self.stage(stage);
        counts.cells += 1;
        counts.actions += 1;
        counts
    }

    /// Finishes the list of actions and writes the counts to the manifest.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn finish(self, manifest: &mut Manifest, spent: &Spent) -> Result<(), FileError> {
        self.keys.finish()?;
        manifest.stages = self.stages;
        manifest.usage = spent.usage.unwrap_or_default();
        manifest.usd = spent.usd;
        manifest.unused = self.useful.unused_of(spent);
        manifest.saved_by_prompt_cache = Usd(spent.saved);
        manifest.failures = self.failures;
        manifest
            .caveats
            .notes
            .extend(self.notes.into_iter().map(|(note, count)| match count {
                0 | 1 => note,
                _ => format!("{count} times: {note}"),
            }));
        Ok(())
    }
}

impl Listener for RunCounts {
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        match event {
            RunEvent::Cached {
                stage,
                early_cutoff,
                key,
            } => {
                self.keys.push(*key)?;
                let counts = self.settled(*stage);
                counts.cached += 1;
                counts.early_cutoff += u64::from(*early_cutoff);
            }
            RunEvent::Completed {
                stage,
                usage,
                repeated,
                cost,
                key,
                asked,
                replies,
                ..
            } => {
                self.keys.push(*key)?;
                let counts = self.settled(*stage);
                counts.executed += 1;
                if *asked {
                    counts.prompt_cache.count(usage, *repeated);
                }
                if let Some(replies) = replies {
                    self.useful.add(*replies, usage, *cost);
                }
            }
            RunEvent::Failed(failure) => {
                self.settled(failure.stage).failed += 1;
                self.failures.push((*failure).clone());
            }
            RunEvent::Skipped { stage, .. } => {
                let counts = self.stage(*stage);
                counts.cells += 1;
                counts.skipped += 1;
            }
            RunEvent::Shared { stage } | RunEvent::SharedFailure { stage } => {
                self.stage(*stage).cells += 1
            }
            RunEvent::Blocked(counts) => {
                self.stage(StageName::Compress).cells += counts.compress;
                self.stage(StageName::Answer).cells += counts.answer;
                self.stage(StageName::Judge).cells += counts.judge;
            }
            RunEvent::Warning(warning) => *self.notes.entry(warning.clone()).or_default() += 1,
            RunEvent::SelftestCompleted { judge, verdict } => {
                self.weaknesses
                    .insert((*judge).to_owned(), verdict.failures.clone());
            }
            RunEvent::Started { .. }
            | RunEvent::AnotherStep { .. }
            | RunEvent::Estimated(_)
            | RunEvent::Context { .. }
            | RunEvent::Judged { .. }
            | RunEvent::BreakerTripped(_) => {}
        }
        Ok(())
    }
}

/// Passes every step to the listener of the evaluation and to the recorder.
pub(super) struct Forwarder<'f, 'l> {
    pub(super) recorder: Option<&'f mut Recorder>,
    pub(super) listening: &'f Listening<'l>,
    /// Where new outputs are pushed to.
    pub(super) shared: Option<&'f SharedCache>,
    pub(super) is_offline: bool,
}

impl Forwarder<'_, '_> {
    /// Records the line of a context, which has no end of line.
    pub(super) fn add_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        self.recorder
            .as_mut()
            .map_or(Ok(()), |recorder| recorder.lines.add_context(cell, line))
    }

    /// Records rows; `places` are the places of the `lines` among all rows.
    pub(super) fn add_rows(&mut self, places: &[u64], lines: &str) -> Result<(), FileError> {
        self.recorder
            .as_mut()
            .map_or(Ok(()), |recorder| recorder.lines.add_rows(places, lines))
    }
}

impl Listener for Forwarder<'_, '_> {
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        self.listening.report(&event::Event::Step(event));
        if let (Some(shared), Some(key)) = (self.shared, event.key()) {
            shared.note(key);
        }
        if let (Some(shared), RunEvent::Estimated(estimate)) =
            (self.shared.filter(|_| !self.is_offline), event)
        {
            self.listening.report(&event::Event::RemoteLacks {
                url: shared.url(),
                estimate,
            });
        }
        self.recorder
            .as_mut()
            .map_or(Ok(()), |recorder| recorder.counts.on_event(event))
    }
}
