//! From judged cells to rows: told as they come, or together where all of a context is cached.

use super::event::{Event, Listener};
use super::run::{Loop, RunError};
use super::sheets::{Fate, Line, Sheet, own};
use super::shelf::OutOfReach;
use crate::action::StageName;
use crate::cache::Lookup;
use crate::pipeline::CompressCell;
use crate::plan::{JudgeTask, Kept, Output, SettledContext};
use crate::results::Failure;

/// Contexts whose rows are held at once: past this they are told as they come, so that memory stays flat where all wait
/// for one judge.
const MOST_SHEETS: usize = 256;

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    fn sheet(&mut self, context: &SettledContext) -> &mut Sheet {
        let preparer = self.performer.preparer;
        let is_crowded = self.sheets.len() >= MOST_SHEETS;
        self.sheets.entry(context.cell).or_insert_with(|| {
            let cells = preparer.matrix().judgements_below(context.cell);
            Sheet::new(preparer.pipeline(), context, cells, !is_crowded)
        })
    }

    /// Takes note of a judged cell. If its grades come from the cache its row waits until it is known whether all
    /// grades of its sheet do.
    pub(super) fn judged(
        &mut self,
        task: &JudgeTask,
        kept: Kept,
        is_cached: bool,
        output: Option<Output>,
    ) -> Result<(), RunError> {
        let preparer = self.performer.preparer;
        if !is_cached {
            self.stop_waiting(&task.context)?;
        }
        let sheet = self.sheet(&task.context);
        sheet.open = sheet.open.saturating_sub(1);
        let (waits, is_full) = (sheet.fate == Fate::Waiting, sheet.open == 0);
        if sheet.fate != Fate::Torn {
            let name = own(task, &kept);
            sheet
                .lines
                .insert(preparer.matrix().ordinal(&task.cell), Line { name, task: task.clone(), kept, row: None });
        }
        if !waits {
            self.tell_row(task, &kept, output)?;
        }
        if is_full { self.fill(task.context.cell) } else { Ok(()) }
    }

    /// Not all of a context is cached: rows that wait for the others are told.
    pub(super) fn stop_waiting(&mut self, context: &SettledContext) -> Result<(), RunError> {
        let sheet = self.sheet(context);
        if sheet.fate != Fate::Waiting {
            return Ok(());
        }
        sheet.fate = Fate::Filling;
        self.tell_waiting(context.cell)
    }

    /// A cell of a context has no row: its sheet will never be full.
    pub(super) fn tear(&mut self, context: &SettledContext) -> Result<(), RunError> {
        self.stop_waiting(context)?;
        let sheet = self.sheet(context);
        sheet.fate = Fate::Torn;
        sheet.lines.clear();
        Ok(())
    }

    /// Tells all rows that wait.
    pub(super) fn tell_all_waiting(&mut self) -> Result<(), RunError> {
        let contexts: Vec<CompressCell> = self.sheets.keys().copied().collect();
        contexts.into_iter().try_for_each(|context| self.tell_waiting(context))
    }

    fn tell_waiting(&mut self, context: CompressCell) -> Result<(), RunError> {
        let lines = self.sheets.get(&context).into_iter().flat_map(|sheet| sheet.lines.values());
        let waiting: Vec<(JudgeTask, Kept)> =
            lines.filter(|line| line.row.is_none()).map(|line| (line.task.clone(), line.kept)).collect();
        waiting.iter().try_for_each(|(task, kept)| self.tell_row(task, kept, None))
    }

    /// Makes the row of a judged cell and tells it.
    fn tell_row(&mut self, task: &JudgeTask, kept: &Kept, output: Option<Output>) -> Result<(), RunError> {
        let preparer = self.performer.preparer;
        if !self.warned.contains(&task.context.key)
            && let Ok(warnings) = self.rows.warnings(task)
        {
            self.warn(task.context.key, warnings)?;
        }
        let row = match self.rows.line(task, kept, output) {
            Ok(row) => row,
            Err(error) => {
                let place = preparer.pipeline().name_judge(&task.cell);
                let failure = Failure::of_cell(place, StageName::Judge, Some(kept.key), &error);
                let failure = Failure { hint: Some(OutOfReach::REMEDY.to_owned()), ..failure };
                self.listener.hear(&Event::Failed(&failure))?;
                return self.tear(&task.context);
            }
        };
        let ordinal = preparer.matrix().ordinal(&task.cell);
        self.listener.hear(&Event::Rows { ordinals: &[ordinal], lines: &row })?;
        if let Some(line) = self.sheet(&task.context).lines.get_mut(&ordinal) {
            line.row = Some(row);
        }
        Ok(())
    }

    /// Every cell of a context is judged: rows that wait are looked up; where they are not there they are made, and
    /// the sheet is kept.
    fn fill(&mut self, context: CompressCell) -> Result<(), RunError> {
        let Some(sheet) = self.sheets.get(&context) else { return Ok(()) };
        let Some(task) = sheet.lines.values().next().map(|line| line.task.clone()) else {
            self.sheets.remove(&context);
            return Ok(());
        };
        let name = sheet.name();
        if sheet.fate == Fate::Waiting {
            let known = self.performer.store.read_text(&name);
            if let Some((warnings, lines)) = known.as_deref().and_then(|text| sheet.read(text)) {
                let ordinals: Vec<u64> = sheet.lines.keys().copied().collect();
                self.sheets.remove(&context);
                self.warn(task.context.key, warnings)?;
                return Ok(self.listener.hear(&Event::Rows { ordinals: &ordinals, lines })?);
            }
            self.stop_waiting(&task.context)?;
        }
        let (sheet, warnings) = (self.sheets.remove(&context), self.rows.warnings(&task));
        if let Some(text) = sheet.zip(warnings.ok()).and_then(|(sheet, warnings)| sheet.text(&warnings)) {
            self.performer.store.text(name, &text);
        }
        Ok(())
    }
}
