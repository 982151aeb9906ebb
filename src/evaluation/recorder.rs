//! Records a run: its rows as they are made, and the keys of its outputs.

use super::event::{Event, Listening};
use super::line_files::LineFiles;
use crate::pipeline::CompressCell;
use crate::results::{KeysFile, PlantedRow};
use crate::scheduler::{Listener, RunEvent};
use base::files::FileError;

/// The recorder of a run.
pub(crate) struct Recorder {
    pub(super) lines: LineFiles,
    pub(super) keys: RunKeys,
}

/// The list of the outputs of a run, which goes on after its rows are finished.
pub(super) struct RunKeys(pub(super) KeysFile);

impl RunKeys {
    /// Lists the output of an event, if it has one.
    pub(super) fn note(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        event.key().map_or(Ok(()), |key| self.0.push(key))
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
    /// Records the line of a context, which has no end of line.
    pub(super) fn add_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        self.recorder
            .as_mut()
            .map_or(Ok(()), |recorder| recorder.lines.add_context(cell, line))
    }

    /// The rows of the items planted in the session of a context, if they are recorded.
    pub(super) fn planted(&mut self, cell: CompressCell) -> Option<&mut Vec<PlantedRow>> {
        self.recorder.as_mut()?.lines.planted(cell)
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
        self.listening.step(event);
        if let (Some(url), RunEvent::Estimated(estimate)) = (&self.remote, event) {
            self.listening.report(&Event::RemoteLacks { url, estimate });
        }
        self.recorder
            .as_mut()
            .map_or(Ok(()), |recorder| recorder.keys.note(event))
    }
}
