//! Records a run: its rows, contexts and planted items as they are made, and the keys of its outputs.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, Listening};
use crate::action::ActionKey;
use crate::pipeline::{CompressCell, Pipeline};
use crate::results::{LinesFile, PlantedRow, ResultsFolder, names};
use crate::scheduler::{Listener, RunEvent};
use base::files::FileError;

/// The keys of the outputs of a run. They go on after its rows are finished.
pub(super) type RunKeys = BTreeSet<ActionKey>;

/// The files of lines of a run under construction, and its keys so far.
pub(crate) struct Recorder {
    rows: LinesFile<u64>,
    contexts: LinesFile<CompressCell>,
    /// The rows of planted items by context, if any are planted: they are complete when both requests have replies.
    planted: Option<BTreeMap<CompressCell, Vec<PlantedRow>>>,
    folder: ResultsFolder,
    keys: RunKeys,
}

impl Recorder {
    /// Begins the files of a result set in `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn begin(
        pipeline: &Pipeline,
        folder: &ResultsFolder,
    ) -> Result<Recorder, FileError> {
        let plants = pipeline
            .fixtures
            .iter()
            .any(|fixture| !fixture.variants.is_empty());
        Ok(Recorder {
            planted: plants.then(BTreeMap::new),
            folder: folder.clone(),
            rows: folder.begin_rows()?,
            contexts: folder.begin_lines(names::CONTEXTS)?,
            keys: RunKeys::new(),
        })
    }

    /// Adds the line of a context, which has no end of line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        self.contexts.append(&[cell], &format!("{line}\n"))
    }

    /// The rows of the items planted in the session of a context.
    pub(super) fn planted(&mut self, cell: CompressCell) -> Option<&mut Vec<PlantedRow>> {
        Some(self.planted.as_mut()?.entry(cell).or_default())
    }

    /// Adds rows; `places` are the places of the `lines` among all rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_rows(&mut self, places: &[u64], lines: &str) -> Result<(), FileError> {
        self.rows.append(places, lines)
    }

    /// Finishes the files, which puts their lines in order. Returns the keys.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn finish(self) -> Result<RunKeys, FileError> {
        self.rows.finish()?;
        self.contexts.finish()?;
        if let Some(contexts) = self.planted {
            let lines: Result<String, serde_json::Error> = (contexts.values().flatten())
                .map(|row| Ok(serde_json::to_string(row)? + "\n"))
                .collect();
            // Names, numbers and truth values are always JSON.
            self.folder
                .write(names::PLANTED, lines.unwrap_or_default())?;
        }
        Ok(self.keys)
    }
}

/// Passes every step to the listener of the evaluation and to the recorder.
pub(super) struct Forwarder<'f, 'l> {
    pub(super) recorder: Option<&'f mut Recorder>,
    pub(super) listening: &'f Listening<'l>,
    /// The URL of the remote, if what it lacks is paid for.
    pub(super) remote: Option<String>,
}

impl Forwarder<'_, '_> {
    /// Records something, if the run is recorded.
    pub(super) fn record(
        &mut self,
        write: impl FnOnce(&mut Recorder) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        self.recorder.as_deref_mut().map_or(Ok(()), write)
    }

    /// The rows of the items planted in the session of a context, if they are recorded.
    pub(super) fn planted(&mut self, cell: CompressCell) -> Option<&mut Vec<PlantedRow>> {
        self.recorder.as_mut()?.planted(cell)
    }
}

impl Listener for Forwarder<'_, '_> {
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        self.listening.step(event);
        if let (Some(url), RunEvent::Estimated(estimate)) = (&self.remote, event) {
            self.listening.report(&Event::RemoteLacks { url, estimate });
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.keys.extend(event.key());
        }
        Ok(())
    }
}
