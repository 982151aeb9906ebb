//! From judged cells to rows, told as they come, and to sheets that are kept.

use std::rc::Rc;
use std::sync::Arc;

use super::event::{Event, Listener};
use super::run::{Loop, RunError};
use super::sheets::{self, Entry, Footing, FullSheet, Sheet};
use super::shelf::OutputUnavailable;
use crate::action::{Digest, StageName};
use crate::cache::Lookup;
use crate::plan::{JudgeTask, Output, Resolved, ResolvedContext};
use crate::results::{Failure, ListedRow};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Makes the row of a judged cell and tells it.
    pub(super) fn judged(&mut self, task: &JudgeTask, kept: Resolved, output: Option<Output>) -> Result<(), RunError> {
        let preparer = self.performer.preparer;
        let made = self.rows.line(task, &kept, output).and_then(|line| Ok((Arc::new(ListedRow::read(&line)?), line)));
        let (row, line) = match made {
            Ok(made) => made,
            Err(error) => {
                let place = preparer.pipeline().name_judge(&task.cell);
                let failure = Failure::of_cell(place, StageName::Judge, Some(kept.key), &error);
                let failure = Failure { hint: Some(OutputUnavailable::REMEDY.to_owned()), ..failure };
                self.sheets.tear(task.context.cell);
                return Ok(self.listener.on_event(&Event::Failed(&failure))?);
            }
        };
        let ordinal = preparer.matrix().ordinal(&task.cell);
        self.listener.on_event(&Event::Rows {
            ordinals: &[ordinal],
            lines: &line,
            rows: std::slice::from_ref(&row),
        })?;
        let stands = [Footing::from(&*task.answer), Footing::from(&kept)];
        let cells = preparer.matrix().judgements_below(task.context.cell);
        if let Some(sheet) = self.sheets.add(task.context.cell, cells, ordinal, Entry { line, row, stands }) {
            self.keep_sheet(&task.context, sheet);
        }
        Ok(())
    }

    /// Keeps a sheet that is full. One that cannot be kept is no loss: its rows are made again.
    pub(super) fn keep_sheet(&mut self, context: &Rc<ResolvedContext>, sheet: Sheet) {
        if let Some(name) = self.sheet_name(context)
            && let Ok(warnings) = self.rows.warnings(context)
        {
            let sheet = FullSheet::of(sheet, warnings);
            sheet.bytes().into_iter().for_each(|bytes| self.performer.store.keep_derived(name, &bytes));
            self.note_sheet_used(context, name, &sheet, &[]);
        }
    }

    pub(super) fn sheet_name(&self, context: &ResolvedContext) -> Option<Digest> {
        let record = self.performer.store.find(&context.key)?;
        sheets::name(&self.performer.preparer, context, record.raw)
    }
}
