//! From judged cells to rows: told as they come, or together where all of a context is cached.

use std::rc::Rc;
use std::sync::Arc;

use super::event::{Event, Listener};
use super::run::{Loop, RunError};
use super::sheets::{self, Entry, Sheet, Standing};
use super::shelf::OutOfReach;
use crate::action::StageName;
use crate::plan::{JudgeTask, Kept, Output, SettledContext};
use crate::results::{Failure, ListedRow};

/// Contexts whose rows are held at once to be kept as sheets, so that memory stays flat where all wait for one judge.
const MOST_SHEETS: usize = 256;

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    fn sheet(&mut self, context: &SettledContext) -> &mut Sheet {
        let matrix = self.performer.preparer.matrix();
        let is_crowded = self.sheets.len() >= MOST_SHEETS;
        self.sheets
            .entry(context.cell)
            .or_insert_with(|| Sheet::new(matrix.judgements_below(context.cell), !is_crowded))
    }

    /// Makes the row of a judged cell and tells it.
    pub(super) fn judged(&mut self, task: &JudgeTask, kept: Kept, output: Option<Output>) -> Result<(), RunError> {
        let preparer = self.performer.preparer;
        if !self.warned.contains(&task.context.key)
            && let Ok(warnings) = self.rows.warnings(&task.context)
        {
            self.warn(task.context.key, warnings)?;
        }
        let made = self.rows.line(task, &kept, output).and_then(|line| Ok((Arc::new(ListedRow::read(&line)?), line)));
        let (row, line) = match made {
            Ok(made) => made,
            Err(error) => {
                let place = preparer.pipeline().name_judge(&task.cell);
                let failure = Failure::of_cell(place, StageName::Judge, Some(kept.key), &error);
                let failure = Failure { hint: Some(OutOfReach::REMEDY.to_owned()), ..failure };
                self.listener.hear(&Event::Failed(&failure))?;
                self.tear(&task.context);
                return Ok(());
            }
        };
        let ordinal = preparer.matrix().ordinal(&task.cell);
        self.listener.hear(&Event::Rows { ordinals: &[ordinal], lines: &line, rows: std::slice::from_ref(&row) })?;
        let stands = [Standing::from(&*task.answer), Standing::from(&kept)];
        let is_full = self.sheet(&task.context).add(ordinal, Entry { line, row, stands });
        if is_full {
            self.keep_sheet(&task.context);
        }
        Ok(())
    }

    /// A cell of a context has no row: its sheet will never be full.
    pub(super) fn tear(&mut self, context: &SettledContext) {
        self.sheet(context).tear();
    }

    /// Every cell of a context has its row. A sheet that cannot be kept is no loss: its rows are made again.
    fn keep_sheet(&mut self, context: &Rc<SettledContext>) {
        let (sheet, warnings) = (self.sheets.remove(&context.cell), self.rows.warnings(context));
        let full = sheet.zip(warnings.ok()).and_then(|(sheet, warnings)| sheet.full(warnings));
        if let Some(full) = full
            && let Some(name) = sheets::name(&self.performer.preparer, context)
            && let Some(bytes) = full.bytes()
        {
            self.performer.store.keep_derived(name, &bytes);
        }
    }
}
