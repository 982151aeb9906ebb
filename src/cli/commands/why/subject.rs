//! What `why` explains: a judged cell, or one that failed, with what is known of the actions behind it.

use serde::Serialize;

use crate::action::{ActionKey, Stage, StageName};
use crate::cli::commands::cell::{MissingCell, SelectedCell};
use crate::pipeline::CellCoordinate;
use crate::results::{FailedAction, Manifest};
use sessions::transcript::Point;

/// A cell of a result set.
pub(crate) struct ExplainedCell<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) place: CellCoordinate,
    pub(crate) keys: CellKeys,
    pub(crate) overall: Option<f64>,
    /// What failed, where nothing was judged for it.
    pub(crate) failure: Option<&'a FailedAction>,
}

/// The keys of its actions, as far as the results record them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CellKeys {
    compress: Option<ActionKey>,
    answer: Option<ActionKey>,
    judge: Option<ActionKey>,
}

impl CellKeys {
    pub(crate) fn of(&self, stage: Stage) -> Option<ActionKey> {
        match stage {
            Stage::Compress => self.compress,
            Stage::Answer => self.answer,
            Stage::Judge => self.judge,
            Stage::Probes => None,
        }
    }
}

impl<'a> ExplainedCell<'a> {
    pub(crate) fn judged(selected: &'a SelectedCell) -> ExplainedCell<'a> {
        let row = &selected.row;
        let place = CellCoordinate {
            fixture: row.fixture.as_str().into(),
            point: Point(row.point),
            method: row.method.as_str().into(),
            run: row.run,
            constraint: None,
            probe: Some(row.probe.as_str().into()),
            answerer: Some(row.answerer.as_str().into()),
            answer_n: Some(row.answer_n),
            judge: Some(row.judge.as_str().into()),
            judge_n: Some(row.judge_n),
        };
        let keys = &row.keys;
        let keys = CellKeys { compress: Some(keys.compress), answer: Some(keys.answer), judge: Some(keys.judge) };
        ExplainedCell { manifest: &selected.manifest, place, keys, overall: row.overall, failure: None }
    }

    /// The cell that failed; `None` where nothing did.
    pub(crate) fn failed(missing: &'a MissingCell) -> Option<ExplainedCell<'a>> {
        let failure = missing.failure.as_ref()?;
        let (place, key) = (failure.place.recorded_cell()?.clone(), failure.key);
        let keys = match failure.stage {
            StageName::Compress => CellKeys { compress: key, ..CellKeys::default() },
            StageName::Answer => CellKeys { answer: key, ..CellKeys::default() },
            StageName::Judge => CellKeys { judge: key, ..CellKeys::default() },
            StageName::Probes | StageName::Selftest => CellKeys::default(),
        };
        Some(ExplainedCell { manifest: &missing.manifest, place, keys, overall: None, failure: Some(failure) })
    }

    /// The stages at its point, in order, down to what failed.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        let last = match self.failure.map(|failure| failure.stage) {
            Some(StageName::Compress) => Stage::Compress,
            Some(StageName::Answer) => Stage::Answer,
            _ => Stage::Judge,
        };
        [Stage::Compress, Stage::Answer, Stage::Judge].into_iter().filter(move |stage| *stage <= last)
    }

    /// What failed in a stage at its point.
    pub(crate) fn failure_in(&self, stage: Stage) -> Option<&'a FailedAction> {
        self.failure.filter(|failure| failure.stage == stage.into())
    }
}
