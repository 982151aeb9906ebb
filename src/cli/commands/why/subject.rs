//! What `why` explains: a judged cell, or one that failed, with what is known of the actions behind it.

use std::collections::BTreeMap;

use crate::action::{ActionKey, CellCoordinate, Stage};
use crate::cli::commands::cell::{MissingCell, SelectedCell};
use crate::plan::FailedAction;
use crate::results::{Manifest, Row};

/// A cell of a result set.
pub(crate) struct ExplainedCell<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) place: CellCoordinate,
    /// The actions before the one that answered, for an open-book answer. If it failed, their keys are not recorded.
    pub(crate) steps: Vec<Option<ActionKey>>,
    /// The keys of its actions, as far as the results record them.
    pub(crate) keys: BTreeMap<Stage, ActionKey>,
    /// The judged row; `None` where nothing was judged.
    pub(crate) row: Option<&'a Row>,
    /// What failed, if that is why nothing was judged.
    pub(crate) failure: Option<&'a FailedAction>,
}

impl<'a> ExplainedCell<'a> {
    pub(crate) fn overall(&self) -> Option<f64> {
        self.row.and_then(|row| row.overall)
    }

    /// The recorded action of a stage at its point, or of a step towards the answer.
    pub(crate) fn key_of(&self, stage: Stage, step: Option<u32>) -> Option<ActionKey> {
        let at = step.map_or(0, |step| step as usize - 1);
        match self.steps.get(at) {
            Some(key) if stage == Stage::Answer => *key,
            _ => self.keys.get(&stage).copied(),
        }
    }

    /// The numbers of the steps of the answer, the last of which is the answer itself; `None` for the first.
    pub(crate) fn answer_steps(&self) -> Vec<Option<u32>> {
        let later = (2..).take(self.steps.len());
        std::iter::once(None).chain(later.map(Some)).collect()
    }

    pub(crate) fn judged(selected: &'a SelectedCell) -> ExplainedCell<'a> {
        let row = &selected.row;
        let keys = [
            (Stage::Compress, row.keys.compress),
            (Stage::Answer, row.keys.answer),
            (Stage::Judge, row.keys.judge),
        ];
        let steps = row
            .open_book
            .iter()
            .flat_map(|open| &open.steps)
            .map(|step| Some(step.key))
            .collect();
        ExplainedCell {
            manifest: &selected.manifest,
            place: row.place(),
            keys: keys.into(),
            steps,
            row: Some(row),
            failure: None,
        }
    }

    /// The cell that failed; `None` where nothing did.
    pub(crate) fn failed(missing: &'a MissingCell) -> Option<ExplainedCell<'a>> {
        let failure = missing.failure.as_ref()?;
        let place = failure.place.recorded_cell()?.clone();
        let keys = failure.key.map(|key| (failure.stage.stage(), key));
        let steps = vec![None; place.step.map_or(0, |step| step as usize - 1)];
        Some(ExplainedCell {
            manifest: &missing.manifest,
            place,
            keys: keys.into_iter().collect(),
            steps,
            row: None,
            failure: Some(failure),
        })
    }

    /// The stages at its point, in order, down to what failed.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        let last = self
            .failure
            .map_or(Stage::Judge, |failure| failure.stage.stage());
        [Stage::Compress, Stage::Answer, Stage::Judge]
            .into_iter()
            .filter(move |stage| *stage <= last)
    }

    /// What failed in a stage at its point, or in a step towards the answer.
    pub(crate) fn failure_in(&self, stage: Stage, step: Option<u32>) -> Option<&'a FailedAction> {
        self.failure
            .filter(|failure| failure.stage == stage.into() && self.place.step == step)
    }
}
