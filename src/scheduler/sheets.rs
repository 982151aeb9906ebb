//! Sheets: the rows of one context together. A full sheet is kept in the cache under a digest of all that its rows are
//! made of, so that where nothing changed no answer and no grade is read, and no row is made, a second time.

use std::collections::{BTreeMap, HashMap};

use super::event::{Event, Listener};
use super::run::{Loop, RunError};
use crate::action::{Digest, DigestBuilder, StageName};
use crate::cache::Lookup;
use crate::compress::ContextRef;
use crate::pipeline::{CompressCell, Pipeline};
use crate::plan::{JudgeTask, Kept, Output, SettledContext};
use crate::results::{Failure, ROWS};
use crate::units::Usd;

/// The sheets of contexts that were begun.
pub(super) type Sheets = HashMap<CompressCell, Sheet>;

/// The rows of one context, by their places in the matrix.
#[derive(Debug)]
pub(super) struct Sheet {
    /// Cells that are not judged yet.
    open: u64,
    lines: BTreeMap<u64, Line>,
    fate: Fate,
}

#[derive(Debug)]
struct Line {
    /// Names all that the row is made of.
    name: Digest,
    /// The row; `None` while nobody needs it.
    row: Option<String>,
    task: JudgeTask,
    kept: Kept,
}

/// What becomes of the rows of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// All is cached so far: the rows are looked up when it is full.
    Waiting,
    /// Rows are told as they come, and kept when it is full.
    Filling,
    /// Rows are told as they come, and not kept: one is missing, or they stand on more than their names say.
    Torn,
}

impl Sheet {
    fn new(context: &ContextRef, cells: u64) -> Sheet {
        // How long an opaque context is, its provider says, in words that no digest here names.
        let is_readable = matches!(context, ContextRef::Readable { .. });
        let fate = if is_readable { Fate::Waiting } else { Fate::Torn };
        Sheet { open: cells, lines: BTreeMap::new(), fate }
    }

    /// Names the sheet.
    fn name(&self) -> Digest {
        let mut builder = DigestBuilder::new("compeval sheet v1");
        builder.field("version", env!("CARGO_PKG_VERSION")).field("rows", ROWS.to_le_bytes());
        for line in self.lines.values() {
            builder.field("row", line.name.0);
        }
        builder.finish()
    }

    /// The rows of a text that was kept, and what is odd about the context; `None` if it is no sheet like this one.
    fn read<'t>(&self, text: &'t str) -> Option<(Vec<String>, &'t str)> {
        let (head, rows) = text.split_once('\n')?;
        let is_whole = rows.lines().count() == self.lines.len() && rows.ends_with('\n');
        Some((serde_json::from_str(head).ok()?, rows)).filter(|_| is_whole)
    }

    /// The sheet as it is kept; `None` if a row is missing.
    fn text(&self, warnings: &[String]) -> Option<String> {
        if self.fate == Fate::Torn {
            return None;
        }
        let mut text = serde_json::to_string(warnings).ok()?;
        text.push('\n');
        for line in self.lines.values() {
            text.push_str(line.row.as_deref()?);
        }
        Some(text)
    }
}

/// Names all that the row of a judged cell is made of.
fn name(pipeline: &Pipeline, task: &JudgeTask, kept: &Kept) -> Digest {
    let place = pipeline.name_judge(&task.cell);
    let (context, answer) = (&task.context, &task.answer);
    let digests = task.context.texts.loaded().digests;
    let mut builder = DigestBuilder::new("compeval row v1");
    builder.field("rubric", pipeline.rubric.digest().0).field("tail", [pipeline.settings.tail as u8]);
    for digest in [digests.transcript, digests.points, digests.bank] {
        builder.field("fixture", digest.0);
    }
    builder.field("place", place.to_string());
    for number in [place.point.0, place.run, task.cell.answer.answer_n, task.cell.judge_n] {
        builder.field("number", number.to_le_bytes());
    }
    for (key, out, cost) in [
        (context.key, context.reference.digest(), context.cost),
        (answer.key, answer.out, answer.cost),
        (kept.key, kept.out, kept.cost),
    ] {
        let cost = cost.map_or(Vec::new(), |Usd(usd)| usd.to_le_bytes().to_vec());
        builder.field("action", key.0.0).field("output", out.0).field("cost", cost);
    }
    builder.finish()
}

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    fn sheet(&mut self, context: &SettledContext) -> &mut Sheet {
        let cells = self.performer.preparer.matrix().judgements_below(context.cell);
        self.sheets.entry(context.cell).or_insert_with(|| Sheet::new(&context.reference, cells))
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
        let sheet = self.sheet(&task.context);
        sheet.open = sheet.open.saturating_sub(1);
        let (waits, is_full) = (is_cached && sheet.fate == Fate::Waiting, sheet.open == 0);
        if sheet.fate != Fate::Torn {
            let name = name(preparer.pipeline(), task, &kept);
            sheet
                .lines
                .insert(preparer.matrix().ordinal(&task.cell), Line { name, task: task.clone(), kept, row: None });
        }
        if !waits {
            self.tell_row(task, &kept, output)?;
            self.stop_waiting(&task.context)?;
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
        if !self.warned.contains(&task.context.key) {
            self.warn(task.context.key, self.rows.warnings(task))?;
        }
        let row = match self.rows.line(task, kept, output) {
            Ok(row) => row,
            Err(error) => {
                let place = preparer.pipeline().name_judge(&task.cell);
                let failure = Failure::of_cell(place, StageName::Judge, Some(kept.key), &error);
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
        let Some(task) = sheet.lines.values().next().map(|line| line.task.clone()) else { return Ok(()) };
        let name = sheet.name();
        if sheet.fate == Fate::Waiting {
            let known = self.performer.store.read_text(&name);
            if let Some((warnings, lines)) = known.as_deref().and_then(|text| sheet.read(text)) {
                let ordinals: Vec<u64> = sheet.lines.keys().copied().collect();
                self.sheets.remove(&context);
                self.warn(task.context.key, warnings)?;
                return Ok(self.listener.hear(&Event::Rows { ordinals: &ordinals, lines })?);
            }
            self.tell_waiting(context)?;
        }
        let sheet = self.sheets.remove(&context);
        if let Some(text) = sheet.and_then(|sheet| sheet.text(&self.rows.warnings(&task))) {
            self.performer.store.text(name, &text);
        }
        Ok(())
    }
}
