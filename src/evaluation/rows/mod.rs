//! The rows of a run: they are made when cells are judged, or recalled if nothing changed, and recorded with its contexts,
//! planted items and the keys of its outputs.
//!
//! The rows of a context are a memo. Its key is made like that of an action, from everything that the rows are made
//! from ([`RowMaker::key`]): names, rubric, fixture and bank, versions, and the outputs and costs of all actions. So a
//! memo is found only if the rows would be the same, and if it is lost, the rows are made again. The test
//! `after_any_edit_cached_rows_are_those_that_are_made_anew` compares both after every kind of edit that a key depends
//! on.
//!
//! The key is known when all cells of the context are judged, so the rows are recalled or made then. Those of a context
//! of which a cell has no output are made at the end of the run.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use self::builder::RowBuilder;
use super::event::Listening;
use crate::action::{ActionKey, CellCoordinate, Digest, DigestBuilder, Place, StageName, memo_key};
use crate::compress::ContextRef;
use crate::pipeline::{CompressCell, Matrix, PLANTED_NEXT, Pipeline};
use crate::plan::{
    AnswerTask, FailedAction, JudgeTask, OutputUnavailable, PARSER_VERSION, Resolved,
    ResolvedContext, prompt_of,
};
use crate::planted;
use crate::results::{LinesFile, PlantedRow, ROWS, ResultsFolder, names};
use crate::scheduler::{Executor, Listener, RunEvent};
use base::files::FileError;
use base::text::count;
use base::units::{Usd, money};
use store::cache::{Lookup, Store};

mod builder;
mod measures;

/// The maximum number of contexts whose rows are collected at the same time. It limits memory while all wait for a
/// judge.
const MOST_OPEN: usize = 256;

/// A context whose cells are not all judged.
struct OpenContext {
    context: Rc<ResolvedContext>,
    /// The judged cells, by their places among all rows.
    cells: BTreeMap<u64, (JudgeTask, Resolved)>,
}

/// The rows of one context, in the order of the matrix: the content of a memo.
#[derive(Debug, Serialize, Deserialize)]
struct ContextRows {
    /// The warnings about the context.
    warnings: Vec<String>,
    /// The line of the context itself.
    context: String,
    lines: String,
}

impl ContextRows {
    /// Reads the memo; `None` if it is missing or damaged.
    fn read(store: &Store, key: &Digest) -> Option<ContextRows> {
        postcard::from_bytes(&store.read_memo(key)?).ok()
    }

    /// Stores the memo.
    fn keep(&self, store: &Store, key: Digest) {
        if let Ok(bytes) = postcard::to_stdvec(self) {
            store.keep_memo(key, &bytes);
        }
    }
}

/// Makes the rows of a run and passes them on, with all other events.
pub(super) struct RowMaker<'r, 'l> {
    builder: RowBuilder<'r>,
    open: BTreeMap<CompressCell, OpenContext>,
    /// The contexts whose warnings were reported.
    warned: HashSet<ActionKey>,
    recorder: &'r mut Recorder,
    listening: &'r Listening<'l>,
    /// The URL of the remote, if what it lacks is paid for.
    remote: Option<String>,
}

impl<'r, 'l> RowMaker<'r, 'l> {
    pub(super) fn new(
        executor: &'r Executor<'r>,
        recorder: &'r mut Recorder,
        listening: &'r Listening<'l>,
        remote: Option<String>,
    ) -> RowMaker<'r, 'l> {
        RowMaker {
            builder: RowBuilder::new(executor.pipeline, executor.outputs, executor.store),
            open: BTreeMap::new(),
            warned: HashSet::new(),
            recorder,
            listening,
            remote,
        }
    }

    /// Makes the rows of the contexts of which a cell has no output.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        let open = std::mem::take(&mut self.open);
        open.into_values()
            .try_for_each(|open| self.make_rows(&open).map(drop))
    }

    fn add_context(&mut self, context: &Rc<ResolvedContext>) -> Result<(), FileError> {
        if self.open.len() >= MOST_OPEN {
            return self.make_context_line(context).map(drop);
        }
        let (context, cells) = (context.clone(), BTreeMap::new());
        let cell = context.cell;
        self.open.insert(cell, OpenContext { context, cells });
        self.complete(cell)
    }

    /// Begins the rows of a planted session.
    fn add_planted(&mut self, context: &Rc<ResolvedContext>) {
        match self.builder.planted_rows(context) {
            Ok(rows) => {
                if let Some(known) = self.recorder.planted(context.cell) {
                    *known = rows;
                }
                let warnings = self.builder.outputs.warnings(context);
                self.warn(context.key, warnings.unwrap_or_default());
            }
            Err(error) => self.fail_context(context, &error),
        }
    }

    /// Adds what a reply says to the rows of its context. It was read once already, so it is in form.
    fn note_reply(&mut self, task: &AnswerTask, reply: &str) {
        let rows = self.recorder.planted(task.cell.compress);
        let Some((variant, rows)) = task.context.variant().zip(rows) else {
            return;
        };
        if task.cell.probe == PLANTED_NEXT {
            let graded = planted::grade_next(variant, reply).unwrap_or_default();
            rows.iter_mut()
                .zip(&graded)
                .for_each(|(row, found)| row.note_next(found));
        } else {
            let graded = planted::grade_states(variant, reply).unwrap_or_default();
            for ((row, found), target) in rows.iter_mut().zip(&graded).zip(&variant.targets) {
                row.note_state(found, target);
            }
        }
    }

    fn add_judged(&mut self, task: &JudgeTask, resolved: &Resolved) -> Result<(), FileError> {
        let place = Matrix(self.builder.pipeline).ordinal(&task.cell);
        let cell = task.context.cell;
        match self.open.get_mut(&cell) {
            Some(open) => {
                open.cells.insert(place, (task.clone(), *resolved));
                self.complete(cell)
            }
            None => self.make_row(place, task, resolved).map(drop),
        }
    }

    /// Completes a context if its cells are all judged. Its rows are recalled, or made and stored so that a later run can
    /// recall them.
    fn complete(&mut self, cell: CompressCell) -> Result<(), FileError> {
        let due = Matrix(self.builder.pipeline).downstream_judgements(cell);
        let judged = self.open.get(&cell).map(|open| open.cells.len() as u64);
        if judged != Some(due) {
            return Ok(());
        }
        let Some(open) = self.open.remove(&cell) else {
            return Ok(());
        };
        let key = self.key(&open);
        if let Some(rows) = key.and_then(|key| ContextRows::read(self.builder.store, &key)) {
            return self.recall(&open, rows);
        }
        if let Some((key, rows)) = key.zip(self.make_rows(&open)?) {
            rows.keep(self.builder.store, key);
        }
        Ok(())
    }

    fn recall(&mut self, open: &OpenContext, rows: ContextRows) -> Result<(), FileError> {
        let places: Vec<u64> = open.cells.keys().copied().collect();
        let cell = open.context.cell;
        self.recorder.add_context(cell, &rows.context)?;
        self.recorder.add_rows(&places, &rows.lines)?;
        self.warn(open.context.key, rows.warnings);
        Ok(())
    }

    /// Makes the rows of a context; `None` if one of them could not be made.
    fn make_rows(&mut self, open: &OpenContext) -> Result<Option<ContextRows>, FileError> {
        let context = self.make_context_line(&open.context)?;
        let mut lines = Some(String::new());
        for (place, (task, resolved)) in &open.cells {
            let line = self.make_row(*place, task, resolved)?;
            lines = lines.zip(line).map(|(lines, line)| lines + &line);
        }
        let warnings = self.builder.outputs.warnings(&open.context).ok();
        let rows = warnings.zip(context).zip(lines);
        Ok(rows.map(|((warnings, context), lines)| ContextRows {
            warnings,
            context,
            lines,
        }))
    }

    /// Measures a context and reports it.
    fn make_context_line(
        &mut self,
        context: &Rc<ResolvedContext>,
    ) -> Result<Option<String>, FileError> {
        if !self.warned.contains(&context.key)
            && let Ok(warnings) = self.builder.outputs.warnings(context)
        {
            self.warn(context.key, warnings);
        }
        match self.builder.context_line(context) {
            Ok(line) => {
                self.recorder.add_context(context.cell, &line)?;
                Ok(Some(line))
            }
            Err(error) => {
                self.fail_context(context, &error);
                Ok(None)
            }
        }
    }

    /// Makes the row of a judged cell and reports it; `None` if it could not be made.
    fn make_row(
        &mut self,
        place: u64,
        task: &JudgeTask,
        resolved: &Resolved,
    ) -> Result<Option<String>, FileError> {
        match self.builder.row_line(task, resolved) {
            Ok(line) => {
                self.recorder.add_rows(&[place], &line)?;
                Ok(Some(line))
            }
            Err(error) => {
                let place = task.cell.place(self.builder.pipeline);
                self.fail(place, StageName::Judge, resolved.key, &error);
                Ok(None)
            }
        }
    }

    fn fail_context(&self, context: &ResolvedContext, error: &OutputUnavailable) {
        let place = context.cell.place(self.builder.pipeline);
        self.fail(place, StageName::Compress, context.key, error);
    }

    fn fail(
        &self,
        place: CellCoordinate,
        stage: StageName,
        key: ActionKey,
        error: &OutputUnavailable,
    ) {
        let failure = FailedAction::new(Place::Cell(place), stage, Some(key), error.to_string());
        let failure = FailedAction {
            hint: Some(OutputUnavailable::remedy().to_owned()),
            ..failure
        };
        self.pass(&RunEvent::Failed(&failure));
    }

    /// Reports the warnings of a context once in each run.
    fn warn(&mut self, key: ActionKey, warnings: Vec<String>) {
        if !self.warned.insert(key) {
            return;
        }
        for warning in warnings {
            self.pass(&RunEvent::Warning(warning));
        }
    }

    /// Passes an event to the listener of the evaluation.
    fn pass(&self, event: &RunEvent<'_>) {
        self.listening.step(event);
        if let (Some(url), RunEvent::Estimated(estimate)) = (&self.remote, event)
            && estimate.requests > 0
        {
            let (requests, usd) = (count(estimate.requests, "request"), money(estimate.usd));
            let text = format!(
                "{url} lacks some outputs: this run sends about {requests}, for about {usd}."
            );
            self.listening.note("", &text);
        }
    }

    /// The key of the rows of a context whose cells are all judged. `None` if an entry that they are made from is gone.
    fn key(&self, OpenContext { context, cells, .. }: &OpenContext) -> Option<Digest> {
        let pipeline = self.builder.pipeline;
        let (loaded, made) = (
            context.texts.loaded(),
            self.builder.store.find(&context.key)?,
        );
        let place = context.cell.place(pipeline);
        let method = pipeline.method(context.cell.chain.method);
        // The warnings about a context depend on how it is read.
        let (task, reader) = (context.task(), u32::from(PARSER_VERSION));
        let prompt = prompt_of(pipeline, &task).map(|prompt| prompt.digest);
        let mut key = memo_key("rows", ROWS);
        key.field("reader", reader.to_le_bytes())
            .field("rubric", pipeline.rubric.digest().0);
        key.field("tail", [pipeline.settings.tail as u8]);
        let digests = &loaded.digests;
        let [transcript, points, bank] = [digests.transcript, digests.points, digests.bank];
        for digest in [transcript, points, bank, loaded.recorded] {
            key.field("fixture", digest.0);
        }
        key.field("fixture", place.fixture.as_bytes())
            .field("method", place.method.as_bytes());
        key.field("point", place.point.0.to_le_bytes())
            .field("run", place.run.to_le_bytes());
        key.field("strategy", method.strategy.name())
            .field("prompt", prompt.map_or([0; 32], |prompt| prompt.0));
        key.field("raw", made.raw.0)
            .field("latency", made.summary.latency_ms.to_le_bytes());
        let out = Some(context.reference.digest());
        add_output(&mut key, context.key, out, context.cost);
        for (task, resolved) in cells.values() {
            self.add_cell(&mut key, task, resolved)?;
        }
        Some(key.finish())
    }

    fn add_cell(
        &self,
        key: &mut DigestBuilder,
        task: &JudgeTask,
        resolved: &Resolved,
    ) -> Option<()> {
        let (pipeline, cell) = (self.builder.pipeline, &task.cell);
        let answerer = pipeline.answerer(cell.answer.answerer);
        key.field("probe", (cell.answer.probe.0 as u64).to_le_bytes());
        key.field("answerer", answerer.name.0.as_bytes())
            .field("judge", pipeline.judge(cell.judge).name.0.as_bytes());
        key.field("answer", cell.answer.answer_n.to_le_bytes())
            .field("judgement", cell.judge_n.to_le_bytes());
        if let Some(recovery) = &answerer.recovery {
            key.field("closed", recovery.closed.to_string());
        }
        for round in &task.exchange.rounds {
            add_output(key, round.key, None, round.cost);
        }
        // The size of a context that only its provider can read is computed from the usage of the answer.
        if !matches!(task.context.reference, ContextRef::Readable { .. }) {
            let input = self
                .builder
                .store
                .find(&task.answer.key)?
                .summary
                .usage
                .input;
            key.field("input", input.map_or(0, |tokens| tokens.0).to_le_bytes());
        }
        let answer = &task.answer;
        add_output(key, answer.key, Some(answer.out), answer.cost);
        add_output(key, resolved.key, Some(resolved.out), resolved.cost);
        Some(())
    }
}

impl Listener for RowMaker<'_, '_> {
    fn on_event(&mut self, event: &RunEvent<'_>) -> Result<(), FileError> {
        match event {
            RunEvent::Context { context } if context.variant().is_some() => {
                self.add_planted(context);
            }
            RunEvent::Planted { task, reply } => self.note_reply(task, reply),
            RunEvent::Context { context } => return self.add_context(context),
            RunEvent::Judged { task, resolved } => return self.add_judged(task, resolved),
            other => self.pass(other),
        }
        Ok(())
    }
}

/// Adds an action with what its rows show of it. The output of an earlier step is part of the key of the next step.
fn add_output(key: &mut DigestBuilder, action: ActionKey, out: Option<Digest>, cost: Option<Usd>) {
    key.field("action", action.0.0)
        .field("output", out.map_or([0; 32], |out| out.0));
    key.field(
        "cost",
        cost.map(|Usd(usd)| usd.to_le_bytes())
            .as_slice()
            .as_flattened(),
    );
}

/// The files of lines of a run under construction.
pub(crate) struct Recorder {
    rows: LinesFile<u64>,
    contexts: LinesFile<CompressCell>,
    /// The rows of planted items by context, if any are planted: they are complete when both requests have replies.
    planted: Option<BTreeMap<CompressCell, Vec<PlantedRow>>>,
    folder: ResultsFolder,
}

impl Recorder {
    /// Begins the files of a result set in `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn begin(
        pipeline: &Pipeline,
        folder: &ResultsFolder,
    ) -> Result<Recorder, FileError> {
        let plants = pipeline
            .fixtures
            .iter()
            .any(|fixture| !fixture.variants.is_empty());
        Ok(Recorder {
            planted: plants.then(BTreeMap::new),
            folder: folder.clone(),
            rows: folder.begin_rows()?,
            contexts: folder.begin_lines(names::CONTEXTS)?,
        })
    }

    /// Adds the line of a context, which has no end of line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_context(&mut self, cell: CompressCell, line: &str) -> Result<(), FileError> {
        self.contexts.append(&[cell], &format!("{line}\n"))
    }

    /// The rows of the items planted in the session of a context.
    pub(super) fn planted(&mut self, cell: CompressCell) -> Option<&mut Vec<PlantedRow>> {
        Some(self.planted.as_mut()?.entry(cell).or_default())
    }

    /// Adds rows; `places` are the places of the `lines` among all rows.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add_rows(&mut self, places: &[u64], lines: &str) -> Result<(), FileError> {
        self.rows.append(places, lines)
    }

    /// Finishes the files, which puts their lines in order.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn finish(self) -> Result<(), FileError> {
        self.rows.finish()?;
        self.contexts.finish()?;
        if let Some(contexts) = self.planted {
            let lines: Result<String, serde_json::Error> = (contexts.values().flatten())
                .map(|row| Ok(serde_json::to_string(row)? + "\n"))
                .collect();
            // Names, numbers and truth values are always JSON.
            self.folder
                .write(names::PLANTED, lines.unwrap_or_default())?;
        }
        Ok(())
    }
}
