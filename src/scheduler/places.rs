//! Which action is in use at a place. What is stale is explained by what was used there last; that is not what was made
//! there last, where a user went back to an earlier prompt, or where cells share an action.

use super::event::Listener;
use super::run::Loop;
use super::sheets::FullSheet;
use crate::action::{ActionKey, Digest, DigestBuilder, Replica, Stage};
use crate::cache::Lookup;
use crate::pipeline::{AnswerCell, CellCoordinate, JudgeCell};
use crate::plan::{self, Action, ResolvedContext, Task};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Takes note that an action is in use at the place of a task.
    pub(super) fn note_used(&self, task: &Task, action: &Action) {
        let Action { stage, replica, key, .. } = *action;
        let is_one_place = match task {
            Task::Compress(_) => true,
            Task::Answer(task) => self.is_one_answer(&task.cell),
            Task::Judge(task) => self.is_one_judgement(&task.cell),
        };
        if is_one_place {
            let place = task.place(self.performer.preparer.pipeline());
            self.performer.store.note_latest(&[used(&place, replica, stage, key)]);
        }
    }

    /// Takes note that a sheet is in use for a context, and if it was not, all actions that it stands on.
    pub(super) fn note_sheet_used(
        &self,
        context: &ResolvedContext,
        name: Digest,
        sheet: &FullSheet<'_>,
        cells: &[JudgeCell],
    ) {
        let (matrix, pipeline) = (self.performer.preparer.matrix(), self.performer.preparer.pipeline());
        let (place, sheet_key) = (sheet_place(&pipeline.name_compress(&context.cell)), ActionKey(name));
        if self.performer.store.latest(&place) == Some(sheet_key) {
            return;
        }
        let mut all = vec![(place, sheet_key)];
        for (cell, [answer, judgement]) in cells.iter().zip(&sheet.stands) {
            if self.is_one_answer(&cell.answer) {
                let (place, replica) = (pipeline.name_answer(&cell.answer), matrix.answer_replica(&cell.answer));
                all.push(used(&place, replica, Stage::Answer, answer.key));
            }
            if self.is_one_judgement(cell) {
                let (place, replica) = (pipeline.name_judge(cell), matrix.judge_replica(cell));
                all.push(used(&place, replica, Stage::Judge, judgement.key));
            }
        }
        self.performer.store.note_latest(&all);
    }

    /// Whether no other run has an action of its own at the place of an answer: what rules answer has no number, though
    /// the contexts of runs may differ.
    fn is_one_answer(&self, cell: &AnswerCell) -> bool {
        let matrix = self.performer.preparer.matrix();
        matrix.answer_replica(cell) != Replica::NONE || matrix.compress_replica(&cell.compress) == Replica::NONE
    }

    /// The same of a judgement: what rules grade has no number either, though the answers may differ.
    fn is_one_judgement(&self, cell: &JudgeCell) -> bool {
        let matrix = self.performer.preparer.matrix();
        let is_one_above = matrix.answer_replica(&cell.answer) == Replica::NONE && self.is_one_answer(&cell.answer);
        matrix.judge_replica(cell) != Replica::NONE || is_one_above
    }
}

fn used(place: &CellCoordinate, replica: Replica, stage: Stage, key: ActionKey) -> (Digest, ActionKey) {
    (plan::cache_coordinate(place, replica).digest(stage), key)
}

/// The place of the sheet of a context.
fn sheet_place(place: &CellCoordinate) -> Digest {
    let mut builder = DigestBuilder::new("compeval sheet place v1");
    builder.field("fixture", place.fixture.as_bytes()).field("method", place.method.as_bytes());
    builder.field("point", place.point.0.to_le_bytes()).field("run", place.run.to_le_bytes());
    builder.finish()
}
