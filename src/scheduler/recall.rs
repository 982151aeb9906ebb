//! The loop's dealings with the cache: what stands already, and what is to come.

use std::rc::Rc;

use super::event::{Event, Listener};
use super::perform::Performer;
use super::run::{Loop, RunError};
use super::sheets::{Footing, FullSheet, Sheet};
use crate::action::{ActionKey, Digest, Stage, StageName};
use crate::cache::{Damage, Lookup, Reading, Record, Status};
use crate::pipeline::{JudgeCell, MatrixCounts};
use crate::plan::{
    Assumptions, CompressTask, JudgeTask, Output, READER, Resolved, ResolvedAnswer, ResolvedContext, Task, forecast,
};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Makes sure that the output of a cached action can be read when somebody needs it, and notes that it is used.
    /// Where it had to be read to be named, the name is noted.
    pub(super) fn vouch(&self, record: &Record, reread: Option<Box<Output>>) -> Result<(), Damage> {
        if let Some(output) = reread {
            let reading = Reading::Output { out: output.digest(), state: None, reader: READER };
            self.performer.store.note(record, &reading);
        }
        self.performer.outputs.vouch(record)?;
        self.performer.store.touch(record);
        Ok(())
    }

    /// Settles a task whose output stands.
    pub(super) fn cached(&mut self, task: &Task, kept: Resolved) -> Result<(), RunError> {
        self.tell_cached(task.stage(), kept)?;
        self.settle(task, kept, None)
    }

    /// Settles what a compression came to, and all that hangs on it if that is known.
    pub(super) fn settle_context(&mut self, task: &CompressTask, kept: Resolved) -> Result<(), RunError> {
        let Some(context) = self.frontier.context(task, kept) else { return Ok(()) };
        let is_recalled = match self.sheet_name(&context) {
            Some(name) => self.recall(&context, name)?,
            None => {
                self.sheets.tear(context.cell);
                false
            }
        };
        if !is_recalled {
            self.warn_of(&context)?;
            if self.performer.preparer.matrix().judgements_below(context.cell) == 0 {
                // what is odd about a context that nobody reads has a sheet too
                self.keep_sheet(&context, Sheet::new());
            }
        }
        self.frontier.resolve_context(task, context, is_recalled);
        Ok(())
    }

    /// Tells what is odd about a context that comes from the cache.
    fn warn_of(&mut self, context: &Rc<ResolvedContext>) -> Result<(), RunError> {
        if !self.warned.contains(&context.key)
            && let Ok(warnings) = self.rows.warnings(context)
        {
            self.warn(context.key, warnings)?;
        }
        Ok(())
    }

    /// Tells the oddities of a context once in each run, also where it came from the cache.
    pub(super) fn warn(&mut self, key: ActionKey, warnings: Vec<String>) -> Result<(), RunError> {
        if !self.warned.insert(key) {
            return Ok(());
        }
        warnings.into_iter().try_for_each(|warning| Ok(self.listener.on_event(&Event::Warning(warning))?))
    }

    fn tell_cached(&mut self, stage: StageName, kept: Resolved) -> Result<(), RunError> {
        let event = if self.seen.insert(kept.key) {
            Event::Cached { stage, key: kept.key, early_cutoff: kept.unchanged }
        } else {
            Event::Shared { stage }
        };
        Ok(self.listener.on_event(&event)?)
    }

    /// Settles all that hangs on a context at once, if its sheet is in the cache and every action that it stands on
    /// still has the output that its rows were made of.
    fn recall(&mut self, context: &Rc<ResolvedContext>, name: Digest) -> Result<bool, RunError> {
        let (preparer, store, refresh) = (self.performer.preparer, self.performer.store, &self.options.refresh);
        if refresh.contains(&Stage::Answer) || refresh.contains(&Stage::Judge) {
            return Ok(false);
        }
        let bytes = store.read_derived(&name);
        let Some(sheet) = bytes.as_deref().and_then(FullSheet::read) else { return Ok(false) };
        let answers = preparer.matrix().answers(context.cell);
        let cells: Vec<JudgeCell> = answers.flat_map(|answer| preparer.matrix().judgements(answer)).collect();
        if cells.len() != sheet.stands.len() || !self.all_stand(&sheet) {
            return Ok(false);
        }
        debug_assert!(self.has_their_keys(&sheet, context, &cells), "a sheet is not that of its cells");
        self.note_sheet_used(context, name, &sheet, &cells);
        self.tell_sheet(context, &cells, &sheet)?;
        Ok(true)
    }

    /// Whether a sheet stands on the very actions that its cells have: that its name says so is the promise of
    /// [`crate::plan::Preparer::asked_below`].
    fn has_their_keys(&self, sheet: &FullSheet<'_>, context: &Rc<ResolvedContext>, cells: &[JudgeCell]) -> bool {
        let key = |task: Task| self.performer.preparer.prepare(&task).ok().map(|action| action.key);
        cells.iter().zip(&sheet.stands).all(|(cell, [answer, judgement])| {
            let Footing { key: own, out, cost } = *answer;
            let settled = Rc::new(ResolvedAnswer { key: own, out, cost, unchanged: context.unchanged });
            let judge = JudgeTask { cell: *cell, context: context.clone(), answer: settled };
            key(judge.answer_task()) == Some(own) && key(Task::Judge(judge)) == Some(judgement.key)
        })
    }

    fn all_stand(&self, sheet: &FullSheet<'_>) -> bool {
        let mut last = None;
        sheet.stands.iter().all(|[answer, judgement]| {
            // the judgements of an answer come together
            let is_known = last.replace(answer) == Some(answer);
            (is_known || self.stands(answer)) && self.stands(judgement)
        })
    }

    /// Whether an action still has that output, and it can be read.
    fn stands(&self, footing: &Footing) -> bool {
        let Some(record) = self.performer.store.find(&footing.key) else { return false };
        let out = match record.status {
            Status::Output { out, reader: READER, .. } => Some(out),
            _ => None,
        };
        out == Some(footing.out) && record.cost == footing.cost && self.vouch(&record, None).is_ok()
    }

    fn tell_sheet(
        &mut self,
        context: &ResolvedContext,
        cells: &[JudgeCell],
        sheet: &FullSheet<'_>,
    ) -> Result<(), RunError> {
        let mut last = None;
        for (cell, [answer, judgement]) in cells.iter().zip(&sheet.stands) {
            if last.replace(cell.answer) != Some(cell.answer) {
                self.tell_cached(StageName::Answer, answer.kept(context.unchanged))?;
                self.count(StageName::Answer, MatrixCounts::default());
            }
            self.tell_cached(StageName::Judge, judgement.kept(context.unchanged))?;
            self.count(StageName::Judge, MatrixCounts::default());
        }
        self.warn(context.key, sheet.warnings.clone())?;
        let ordinals: Vec<u64> = cells.iter().map(|cell| self.performer.preparer.matrix().ordinal(cell)).collect();
        Ok(self.listener.on_event(&Event::Rows { ordinals: &ordinals, lines: &sheet.lines, rows: &sheet.rows })?)
    }

    /// Finds out what is to come, before the first stale action begins: where all is cached nobody needs to know.
    pub(super) fn foretell(&mut self) -> Result<(), RunError> {
        if std::mem::replace(&mut self.is_foretold, true) || self.options.selftests_only {
            return Ok(());
        }
        let Performer { preparer, store, prices, .. } = *self.performer;
        let assumptions = Assumptions { refresh: &self.options.refresh, prices, reasons: false };
        // Where a prompt does not render nothing can be foretold; its cells fail by name.
        self.ended.forecast = forecast(preparer, store, assumptions).ok().map(|found| found.estimate);
        if let Some(estimate) = &self.ended.forecast {
            self.listener.on_event(&Event::Estimated(estimate))?;
        }
        Ok(())
    }
}
