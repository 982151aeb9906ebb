//! The row cache: the rows of one context, stored together, so that where nothing changed no key below the context is
//! made, no answer and no grade is read, and no row is made a second time.
//!
//! The contract, which this module alone makes and keeps:
//!
//! 1. An entry is named by a digest over everything that its rows are computed from, except the outputs listed in it
//!    ([`RowCache::name`]): names, rubric, fixture and bank, the context, the versions of rows and of reading rules, and
//!    the *downstream fingerprint*, which stands for the work of all answers and judgements below the context.
//! 2. An entry lists each answer and judgement that its rows were made of, and has a digest of their outputs and costs. It
//!    is used only if they still have these outputs, and every one of them can be read.
//! 3. So an entry that is found by its name and whose dependencies hold has the rows that would be made anew, with the keys
//!    that would be made: the fingerprint is of the very works that keys are made of (`Preparer::answer_work` and
//!    `Preparer::judge_work`). After edits of every kind that a name or a key depends on,
//!    `after_any_edit_cached_rows_are_those_that_are_made_anew` compares both.
//! 4. An action is noted as used at its place ([`RowCache::note_used`]) where its output is, as a task or as a dependency
//!    of an entry; an entry that is used notes all of its own at once. What is stale is explained by what was used there
//!    last; that is not what was made there last, where a user went back to an earlier prompt, or where cells share an
//!    action.
//! 5. Entries are derived: they are dropped by a prune or damaged without loss, and an entry that cannot be stored is
//!    none. The packs of the report page use the same facility of the store ([`Store::keep_derived`]).
//!
//! Measured for 6,181 cached actions with a release build, in processor time: a warm run takes 0.12 s; without entries,
//! after a prune, it takes 0.74 s, of which the packs of the page are 0.13 s. The target is 0.15 s. Making and looking up
//! all keys takes 0.04 s (`plan`): it is the outputs not read and the facts not searched that the cache saves.
//!
//! Which version to raise by hand: [`ROWS`], when a row says something else of the same outputs; [`PARSER_VERSION`], when
//! an output is read in another way; [`NAME`], when [`CachedRows`] changes or a name covers something else;
//! [`FINGERPRINT`], when the fingerprint does. A new version of the program makes all entries anew by itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::execute::Executor;
use crate::action::{ActionKey, Digest, DigestBuilder, Inputs, Repetition, Stage, Work};
use crate::answer::Exchange;
use crate::cache::{EntryStatus, Lookup, Refresh};
use crate::compress::ContextRef;
use crate::pipeline::{AnswerCell, AnswererIx, CellCoordinate, CompressCell, FixtureIx, JudgeCell, Pipeline, PointIx};
use crate::plan::{
    self, Action, CurrentSources, JudgeTask, PARSER_VERSION, PrepareError, Resolved, ResolvedContext, Task,
};
use crate::results::ROWS;
use base::units::Usd;

/// The versions of the names of entries and of the fingerprint in them; see the module.
const NAME: &str = "compeval rows v7";
const FINGERPRINT: &str = "compeval downstream v1";

/// Digits of a key in hexadecimal.
const HEX: usize = 2 * size_of::<Digest>();

/// Contexts whose rows are collected at once, so that memory stays flat where all wait for one judge.
const MOST_OPEN: usize = 256;

/// An entry: the rows of one context, in the order of the matrix.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CachedRows {
    /// What is unusual about the context.
    pub(super) warnings: Vec<String>,
    /// The line of the context itself.
    pub(super) context: String,
    pub(super) lines: String,
    /// The keys of answer and judgement of each row, in hexadecimal one after the other: the lines have them in the same
    /// form, so that they take next to no space where the entry is compressed.
    keys: String,
    /// The digest of the outputs and costs of these actions.
    outputs: Digest,
}

/// An entry whose dependencies hold.
#[derive(Debug)]
pub(super) struct FoundRows {
    pub(super) cells: Vec<JudgeCell>,
    /// Answer and judgement of each cell.
    pub(super) dependencies: Vec<Dependencies>,
    pub(super) cached: CachedRows,
}

/// What a row was made of: an answer and its judgement.
type Dependencies = [Resolved; 2];

/// What a downstream fingerprint depends on: fixture, point, whether the context is empty, and who answers.
type FingerprintOf = (FixtureIx, PointIx, bool, Vec<AnswererIx>);

/// The row cache of a run.
pub(super) struct RowCache<'r, 'e> {
    executor: &'r Executor<'e>,
    /// The rows of contexts as they come, by their places in the matrix.
    open: HashMap<CompressCell, BTreeMap<u64, (String, Dependencies)>>,
    /// Contexts without an entry: a row is missing, or too many others were open.
    abandoned: HashSet<CompressCell>,
    fingerprints: HashMap<FingerprintOf, Option<Digest>>,
    /// The lines of open contexts.
    lines: HashMap<CompressCell, String>,
}

impl<'r, 'e> RowCache<'r, 'e> {
    pub(super) fn new(executor: &'r Executor<'e>) -> RowCache<'r, 'e> {
        RowCache {
            executor,
            open: HashMap::new(),
            abandoned: HashSet::new(),
            fingerprints: HashMap::new(),
            lines: HashMap::new(),
        }
    }

    /// The rows of a context where they are cached and hold.
    pub(super) fn find(&mut self, context: &Rc<ResolvedContext>, refresh: &Refresh) -> Option<FoundRows> {
        let Some(name) = self.name(context) else {
            self.abandon(context.cell);
            return None;
        };
        if refresh.has(Stage::Answer) || refresh.has(Stage::Judge) {
            return None;
        }
        let bytes = self.executor.store.read_derived(&name)?;
        let cached: CachedRows = postcard::from_bytes(&bytes).ok()?;
        let matrix = self.executor.preparer.matrix();
        let answers = matrix.answers(context.cell);
        let cells: Vec<JudgeCell> = answers.flat_map(|answer| matrix.judgements(answer)).collect();
        if cached.keys.len() != cells.len() * 2 * HEX {
            return None;
        }
        let dependencies = self.dependencies(&cached.keys)?;
        if digest_of(&dependencies) != cached.outputs {
            return None;
        }
        let found = FoundRows { cells, dependencies, cached };
        self.note_rows_used(context, name, found.cells.iter().zip(&found.dependencies));
        Some(found)
    }

    /// Adds the row of a judged cell. With the last of its context the entry is stored.
    pub(super) fn add(&mut self, task: &JudgeTask, resolved: &Resolved, line: String) {
        let (context, matrix) = (task.context.cell, self.executor.preparer.matrix());
        if !self.open.contains_key(&context) && self.open.len() >= MOST_OPEN {
            self.abandoned.insert(context);
        }
        if self.abandoned.contains(&context) {
            return;
        }
        let rows = self.open.entry(context).or_default();
        rows.insert(matrix.ordinal(&task.cell), (line, [*task.answer, *resolved]));
        if rows.len() as u64 == matrix.downstream_judgements(context)
            && let Some(rows) = self.open.remove(&context)
        {
            self.store(&task.context, rows);
        }
    }

    /// Adds the line of a context. One without answers is complete with it, and its entry is stored.
    pub(super) fn add_context(&mut self, context: &Rc<ResolvedContext>, line: String) {
        if self.executor.preparer.matrix().downstream_judgements(context.cell) == 0 {
            self.lines.insert(context.cell, line);
            self.store(context, BTreeMap::new());
        } else if !self.abandoned.contains(&context.cell) {
            self.lines.insert(context.cell, line);
        }
    }

    /// The context will never have all its rows.
    pub(super) fn abandon(&mut self, context: CompressCell) {
        self.open.remove(&context);
        self.lines.remove(&context);
        self.abandoned.insert(context);
    }

    fn store(&mut self, context: &Rc<ResolvedContext>, rows: BTreeMap<u64, (String, Dependencies)>) {
        let (Some(line), Some(name)) = (self.lines.remove(&context.cell), self.name(context)) else { return };
        let Ok(warnings) = self.executor.outputs.warnings(context) else { return };
        let lines = rows.values().map(|(line, _)| line.as_str()).collect();
        let dependencies: Vec<Dependencies> = rows.values().map(|(_, made_of)| *made_of).collect();
        let keys = dependencies.iter().flatten().map(|dependency| dependency.key.0.hex()).collect();
        let cached = CachedRows { warnings, context: line, lines, keys, outputs: digest_of(&dependencies) };
        if let Ok(bytes) = postcard::to_stdvec(&cached) {
            self.executor.store.keep_derived(name, &bytes);
        }
        self.note_rows_used(context, name, std::iter::empty());
    }

    /// What the actions of an entry have now; `None` if the output of any cannot be used.
    fn dependencies(&self, keys: &str) -> Option<Vec<Dependencies>> {
        let mut last: Option<Resolved> = None;
        let (pairs, []) = keys.as_bytes().as_chunks::<{ 2 * HEX }>() else { return None };
        let of_pair = |pair: &[u8; 2 * HEX]| {
            let (answer, judgement) = str::from_utf8(pair).ok()?.split_at_checked(HEX)?;
            let answer = ActionKey(answer.parse().ok()?);
            // the judgements of an answer come together
            let answer = last.filter(|last| last.key == answer).or_else(|| self.dependency(answer))?;
            last = Some(answer);
            Some([answer, self.dependency(ActionKey(judgement.parse().ok()?))?])
        };
        pairs.iter().map(of_pair).collect()
    }

    /// An action with its output, if that can be read.
    fn dependency(&self, key: ActionKey) -> Option<Resolved> {
        let record = self.executor.store.find(&key)?;
        let EntryStatus::Output { out, parser: PARSER_VERSION, .. } = record.status else { return None };
        self.executor.verify(&record, None).ok()?;
        Some(Resolved { key, out, cost: record.cost, unchanged: false })
    }

    /// Names the entry of a context; `None` of one whose rows depend on more than the name says.
    fn name(&mut self, context: &ResolvedContext) -> Option<Digest> {
        let raw = self.executor.store.find(&context.key)?.raw;
        let downstream = self.downstream_fingerprint(context)?;
        let preparer = &self.executor.preparer;
        let (pipeline, runs) = (preparer.pipeline(), preparer.matrix().runs());
        let (digests, place) = (context.texts.loaded().digests, CellCoordinate::of_compress(pipeline, &context.cell));
        let mut name = DigestBuilder::new(NAME);
        name.field("version", env!("CARGO_PKG_VERSION")).field("rows", ROWS.to_le_bytes());
        name.field("reader", PARSER_VERSION.to_le_bytes()).field("downstream", downstream.0);
        name.field("rubric", pipeline.rubric.digest().0).field("tail", [pipeline.settings.tail as u8]);
        for digest in [digests.transcript, digests.points, digests.bank, context.texts.loaded().recorded] {
            name.field("fixture", digest.0);
        }
        name.field("fixture", place.fixture.as_bytes()).field("method", place.method.as_bytes());
        name.field("point", place.point.0.to_le_bytes()).field("run", place.run.to_le_bytes());
        for number in [runs.answer, runs.judge] {
            name.field("runs", number.to_le_bytes());
        }
        self.add_names(&mut name, context.cell);
        if let Some(injection) = context.injection() {
            name.field("injection", serde_json::to_vec(injection).ok()?);
        }
        // what is unusual about a context depends on how it is read
        let task = context.task();
        let (method, current) = (pipeline.method(context.cell.chain.method), CurrentSources::new(pipeline, &task));
        name.field("strategy", method.strategy.name()).field("raw", raw.0);
        name.field("prompt", current.prompt.map_or(Digest::hash(""), |prompt| prompt.digest).0);
        let cost = context.cost.map_or(Vec::new(), |Usd(usd)| usd.to_le_bytes().to_vec());
        name.field("context", context.key.0.0).field("output", context.reference.digest().0).field("cost", cost);
        Some(name.finish())
    }

    /// The names that rows call probes, answerers and judges by.
    fn add_names(&self, name: &mut DigestBuilder, cell: CompressCell) {
        let (Pipeline { answerers, judges, .. }, matrix) =
            (self.executor.preparer.pipeline(), self.executor.preparer.matrix());
        for probe in matrix.probes(cell.chain.fixture, cell.point) {
            name.field("probe", (probe.0 as u64).to_le_bytes());
        }
        for answerer in
            matrix.method_answerers(cell.chain.method).iter().filter_map(|answerer| answerers.get(answerer.0))
        {
            name.field("answerer", answerer.name.0.as_bytes());
            name.field("truncated replies", answerer.truncated_replies.name());
        }
        for judge in judges {
            name.field("judge", judge.name.0.as_bytes());
        }
    }

    /// Names the work of all answers and judgements below a context, with stand-ins for the context and the answers:
    /// where this name, the context, its run and the answers are the same, so are all keys. It is made once for each
    /// point of a fixture. `None` of a context that only its provider reads, whose prompts are put together in another
    /// way; where an answerer may search, since the work of its later steps depends on what it asked for; and where a
    /// prompt does not render.
    fn downstream_fingerprint(&mut self, context: &ResolvedContext) -> Option<Digest> {
        let ContextRef::Readable { text } = &context.reference else { return None };
        // prompts may ask whether the context is empty, and nothing else about it
        let is_empty = *text == Digest::hash("");
        let (cell, matrix) = (context.cell, self.executor.preparer.matrix());
        let is_asked = cell.chain.injection.is_none();
        let answerers: Vec<AnswererIx> =
            matrix.method_answerers(cell.chain.method).iter().copied().filter(|_| is_asked).collect();
        let pipeline = self.executor.preparer.pipeline();
        if answerers.iter().any(|answerer| pipeline.answerer(*answerer).recovery.is_some()) {
            return None;
        }
        let place = (cell.chain.fixture, cell.point, is_empty, answerers);
        if let Some(known) = self.fingerprints.get(&place) {
            return *known;
        }
        let stand_in = Digest::hash(if is_empty { "" } else { "a context" });
        let fingerprint = self.fingerprint(context, stand_in).ok();
        self.fingerprints.insert(place, fingerprint);
        fingerprint
    }

    fn fingerprint(&self, context: &ResolvedContext, stand_in: Digest) -> Result<Digest, PrepareError> {
        let (preparer, texts) = (&self.executor.preparer, &context.texts);
        let matrix = preparer.matrix();
        let (stand_in, answer) = (ContextRef::Readable { text: stand_in }, Digest::hash("an answer"));
        let mut fingerprint = DigestBuilder::new(FINGERPRINT);
        let mut add = |stage: Stage, work: &Work| {
            fingerprint.field(stage.name(), Inputs::key_of(stage, Repetition::NONE, work).0.0);
        };
        for cell in matrix.answers(context.cell).filter(|cell| cell.answer_n == 1) {
            add(Stage::Answer, &preparer.answer_work(&cell, texts, &stand_in, &Exchange::default())?);
            for cell in matrix.judgements(cell).filter(|cell| cell.judge_n == 1) {
                add(Stage::Judge, &preparer.judge_work(&cell, texts, (&stand_in, ""), answer)?);
            }
        }
        Ok(fingerprint.finish())
    }
}

/// The last-used notes.
impl RowCache<'_, '_> {
    /// Notes that an action is in use at the place of a task.
    pub(super) fn note_used(&self, task: &Task, action: &Action) {
        let Action { stage, repetition, key, .. } = *action;
        let is_one_place = match task {
            Task::Generate(_) | Task::Selftest(_) => false,
            Task::Compress(_) => true,
            Task::Answer(task) => self.is_one_answer(&task.cell),
            Task::Judge(task) => self.is_one_judgement(&task.cell),
        };
        if is_one_place {
            let place = plan::cache_coordinate(&task.place(self.executor.preparer.pipeline()), repetition);
            self.executor.store.note_latest(&[(place.digest(stage), key)]);
        }
    }

    /// Notes that an entry is in use for a context, and if it was not, all its dependencies.
    fn note_rows_used<'c>(
        &self,
        context: &ResolvedContext,
        name: Digest,
        dependencies: impl Iterator<Item = (&'c JudgeCell, &'c Dependencies)>,
    ) {
        let (matrix, pipeline) = (self.executor.preparer.matrix(), self.executor.preparer.pipeline());
        let (place, rows_key) = (place_of_rows(&CellCoordinate::of_compress(pipeline, &context.cell)), ActionKey(name));
        if self.executor.store.latest(&place) == Some(rows_key) {
            return;
        }
        let mut all = vec![(place, rows_key)];
        for (cell, [answer, judgement]) in dependencies {
            if self.is_one_answer(&cell.answer) {
                let (place, repetition) =
                    (CellCoordinate::of_answer(pipeline, &cell.answer), matrix.answer_repetition(&cell.answer));
                all.push(used(&place, repetition, Stage::Answer, answer.key));
            }
            if self.is_one_judgement(cell) {
                let (place, repetition) = (CellCoordinate::of_judge(pipeline, cell), matrix.judge_repetition(cell));
                all.push(used(&place, repetition, Stage::Judge, judgement.key));
            }
        }
        self.executor.store.note_latest(&all);
    }

    /// Whether no other run has an action of its own at the place of an answer: what rules answer has no number, though
    /// the contexts of runs may differ.
    fn is_one_answer(&self, cell: &AnswerCell) -> bool {
        let matrix = self.executor.preparer.matrix();
        matrix.answer_repetition(cell) != Repetition::NONE
            || matrix.compress_repetition(&cell.compress) == Repetition::NONE
    }

    /// The same of a judgement: what rules grade has no number either, though the answers may differ.
    fn is_one_judgement(&self, cell: &JudgeCell) -> bool {
        let matrix = self.executor.preparer.matrix();
        let is_one_above =
            matrix.answer_repetition(&cell.answer) == Repetition::NONE && self.is_one_answer(&cell.answer);
        matrix.judge_repetition(cell) != Repetition::NONE || is_one_above
    }
}

fn used(place: &CellCoordinate, repetition: Repetition, stage: Stage, key: ActionKey) -> (Digest, ActionKey) {
    (plan::cell_coordinate(place, repetition).digest(stage), key)
}

/// A digest of outputs and costs.
fn digest_of(dependencies: &[Dependencies]) -> Digest {
    let mut digest = DigestBuilder::new("compeval outputs of rows v1");
    for Resolved { out, cost, .. } in dependencies.iter().flatten() {
        digest.field("output", out.0).field("cost", cost.map(|Usd(usd)| usd.to_le_bytes()).as_slice().as_flattened());
    }
    digest.finish()
}

/// The place of the rows of a context.
fn place_of_rows(place: &CellCoordinate) -> Digest {
    let mut builder = DigestBuilder::new("compeval rows place v1");
    builder.field("fixture", place.fixture.as_bytes()).field("method", place.method.as_bytes());
    builder.field("point", place.point.0.to_le_bytes()).field("run", place.run.to_le_bytes());
    if let Some(constraint) = &place.constraint {
        builder.field("constraint", constraint.as_bytes());
    }
    builder.finish()
}
