//! Which action is in use at a place. What is stale is explained by what was used there last; that is not what was made
//! there last, where a user went back to an earlier prompt, or where cells share an action.

use super::event::Listener;
use super::run::Loop;
use super::sheets::FullSheet;
use crate::action::{ActionKey, Digest, DigestBuilder, Replica, Stage};
use crate::cache::Lookup;
use crate::pipeline::{CompressCell, Coordinate, JudgeCell};
use crate::plan::{self, Action, SettledContext, Task};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Takes note that an action is in use at the place of a task.
    pub(super) fn note_used(&self, task: &Task, action: &Action) {
        let Action { stage, replica, key, .. } = *action;
        let is_one = task.context().is_none_or(|context| self.is_one_place(context.cell, replica));
        if is_one {
            let place = task.place(self.performer.preparer.pipeline());
            self.performer.store.note_latest(&[used(&place, replica, stage, key)]);
        }
    }

    /// Takes note that a sheet is in use for a context, and if it was not, all actions that it stands on.
    pub(super) fn note_sheet_used(
        &self,
        context: &SettledContext,
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
            let (answers, judges) = (matrix.answer_replica(&cell.answer), matrix.judge_replica(cell));
            if self.is_one_place(context.cell, answers) {
                all.push(used(&pipeline.name_answer(&cell.answer), answers, Stage::Answer, answer.key));
            }
            if self.is_one_place(context.cell, judges) {
                all.push(used(&pipeline.name_judge(cell), judges, Stage::Judge, judgement.key));
            }
        }
        self.performer.store.note_latest(&all);
    }

    /// Whether no other run of the matrix has an action of its own at the same place: what is answered by rules has no
    /// number, though the contexts of each run may differ.
    fn is_one_place(&self, context: CompressCell, replica: Replica) -> bool {
        replica != Replica::NONE || self.performer.preparer.matrix().compress_replica(&context) == Replica::NONE
    }
}

fn used(place: &Coordinate, replica: Replica, stage: Stage, key: ActionKey) -> (Digest, ActionKey) {
    (plan::cache_coordinate(place, replica).digest(stage), key)
}

/// The place of the sheet of a context.
fn sheet_place(place: &Coordinate) -> Digest {
    let mut builder = DigestBuilder::new("compeval sheet place v1");
    builder.field("fixture", place.fixture.as_bytes()).field("method", place.method.as_bytes());
    builder.field("point", place.point.0.to_le_bytes()).field("run", place.run.to_le_bytes());
    builder.finish()
}
