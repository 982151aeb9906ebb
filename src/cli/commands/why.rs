//! `compeval why`: the chain behind a score: a judged cell, or one that failed, and the actions behind it, as recorded and as the
//! current project would run them.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::action::{ActionKey, CellCoordinate, Place, Stage};
use crate::cli::args::Common;
use crate::cli::changes::{known_texts, reason_blocks};
use crate::cli::commands::cache::{entry_json, input_values, provenance, snapshot};
use crate::cli::commands::cell::{FoundCell, ShowArgs, command_for, find_cell, head};
use crate::cli::commands::show::pipeline_of;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::with_fields;
use crate::cli::project::project_paths_of;
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta, Refresh};
use crate::pipeline::{Pipeline, ProjectPaths};
use crate::plan::{
    Action, FailedAction, FindText, Frontier, PrepareError, Reason, StaleCause, TaskOutcome,
    cached_outcome, difference, reason,
};
use crate::report::{Block, Section, styled_sections};
use crate::results::{Manifest, Row};
use base::locale::Locale;
use base::{named_enum, say};
use sessions::transcript::Point;
use store::cache::{CacheSnapshot, Lookup, Record};

pub(crate) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    let Some(found) = find_cell(common, &paths.results, args, "why", console)? else {
        return Ok(Exit::Done);
    };
    let subject = match ExplainedCell::failed(&found) {
        Some(failed) => failed,
        None => ExplainedCell::judged(&found.manifest, found.judged()?),
    };
    explain(common, &paths, &subject, console)
}

fn explain(
    common: &Common,
    paths: &ProjectPaths,
    subject: &ExplainedCell<'_>,
    console: &Console,
) -> Result<Exit, Failure> {
    let snapshot = snapshot(&paths.cache, console)?;
    let pipeline = pipeline_of(common, &subject.place.fixture, &subject.place.method);
    if pipeline.is_none() {
        let why = "the current project has no such method or fixture, or fails `compeval check`; this shows the recorded run";
        console.warn("note:", why);
    }
    let (steps, fault) = chain_of(&snapshot, pipeline.as_ref(), subject);
    if let Some(fault) = fault {
        let text = format!("the current project cannot make this cell: {fault}");
        console.warn("note:", text);
    }
    let text = known_texts(pipeline.as_ref(), &snapshot);
    let chain = steps.iter().map(|step| step_json(step, &snapshot, &text));
    let mut fields = json!({
        "label": subject.manifest.label,
        "overall": subject.overall(),
        "keys": subject.keys,
        "chain": chain.collect::<Vec<_>>(),
    });
    // What failed, where there is no score.
    if let Some(failure) = subject.failure {
        fields["failure"] = json!(failure);
    }
    let json = with_fields(&subject.place, fields);
    console.report(&json, || {
        let sections = explanation(subject, &steps, &text, console.locale);
        let next = console.next_line(console.locale, next(subject, &steps));
        // An edit may be anywhere in a line, so none is cut.
        let text = styled_sections(&sections, usize::MAX);
        page(console, &format!("{text}{next}"))
    });
    Ok(Exit::Done)
}

/// A state in words, with its style.
fn described(state: StepState, locale: Locale) -> (&'static str, TextStyle) {
    let (english, chinese, style) = match state {
        StepState::Cached => (
            "cached  (nothing has changed)",
            "已缓存  （没有变化）",
            TextStyle::Good,
        ),
        StepState::Stale => (
            "stale  (it would run again)",
            "过期  （会重新运行）",
            TextStyle::Bad,
        ),
        StepState::Superseded => (
            "superseded  (changed since; the current version has already run)",
            "已被取代  （之后有改动；当前版本已运行）",
            TextStyle::Warning,
        ),
        StepState::Blocked => (
            "blocked  (waits for a stale action above)",
            "阻塞  （等待上面过期的动作）",
            TextStyle::Warning,
        ),
        StepState::Absent => (
            "absent  (not in the current project)",
            "不存在  （不在当前项目中）",
            TextStyle::Dim,
        ),
    };
    (locale.pick(english, chinese), style)
}

fn step_json(step: &ChainStep<'_>, snapshot: &CacheSnapshot, text: FindText<'_>) -> Value {
    let blocked = (step.state == StepState::Blocked).then_some(StaleCause::Upstream);
    let (entry, reason) = (step.entry.as_ref(), step.reason.as_ref());
    json!({
        "stage": step.place.stage,
        "point": step.place.point,
        "key": step.key.map(|key| key.to_string()),
        "state": step.state,
        "why": reason.map(|reason| reason.cause).or(blocked),
        "changed": reason.map(|reason| reason.words(text)).unwrap_or_default(),
        "entry": entry.map(|(record, meta)| entry_json(record, meta, snapshot.last_used(record))),
        "inputs": entry.map(|(_, meta)| meta.inputs.inputs.clone()).unwrap_or_default(),
    })
}

fn explanation(
    subject: &ExplainedCell<'_>,
    steps: &[ChainStep<'_>],
    text: FindText<'_>,
    locale: Locale,
) -> Vec<Section> {
    let label = &subject.manifest.label;
    let failed = subject.failure.map(|failure| failure.stage.name());
    let failed = failed.map(|stage| say!(locale, "{stage} failed · ", "{stage} 失败 · "));
    let origin = failed.unwrap_or_default() + &say!(locale, "label {label}", "标签 {label}");
    let head = head(&subject.place, subject.overall(), origin, locale);
    let steps = steps.iter();
    std::iter::once(head)
        .chain(steps.map(|step| section(step, &subject.place, text, locale)))
        .collect()
}

/// The command to type next: one that makes what is missing, or shows what is there.
fn next(subject: &ExplainedCell<'_>, steps: &[ChainStep<'_>]) -> String {
    let is_stale = steps.iter().any(|step| step.state == StepState::Stale);
    match subject.row.filter(|_| !is_stale) {
        Some(row) => command_for("show", row, &subject.manifest.label),
        None => "compeval plan".to_owned(),
    }
}

fn section(
    step: &ChainStep<'_>,
    cell: &CellCoordinate,
    text: FindText<'_>,
    locale: Locale,
) -> Section {
    let point = step.place.point;
    let at = match point == cell.point.0 {
        true => String::new(),
        false => say!(locale, " at point {point}", "，压缩点 {point}"),
    };
    let at = step.place.step.map_or(at.clone(), |step| {
        say!(locale, "{at} step {step}", "{at}，第 {step} 步")
    });
    let key = step.key.map(|key| format!(" {}", key.0.short()));
    let title = format!("{}{at}{}", step.place.stage.name(), key.unwrap_or_default());
    let (state, style) = described(step.state, locale);
    let mut blocks = vec![Block::Sentence(style, state.to_owned())];
    if let Some(reason) = &step.reason {
        let place = CellCoordinate {
            point: Point(point),
            ..cell.clone()
        };
        blocks.extend(reason_blocks(reason, style, Some(&place), text, locale));
    }
    if let Some(failure) = step.failure {
        let (failed, why) = (
            locale.pick("failed: ", "失败："),
            failure.message_with_hint(),
        );
        blocks.push(Block::Sentence(TextStyle::Bad, format!("{failed}{why}")));
    }
    match &step.entry {
        Some((record, meta)) => {
            let values = provenance(record, meta).into_iter();
            blocks.push(Block::values(values.chain(input_values(meta))));
        }
        None if step.failure.is_some() => {}
        None => blocks.push(Block::dim(locale.pick(
            "(its entry is no longer in the cache)",
            "（其条目已不在缓存中）",
        ))),
    }
    Section::plain(title, blocks)
}

/// One action of the chain.
struct ChainStep<'a> {
    place: ChainPlace,
    /// The recorded action; `None` if it is no longer known.
    key: Option<ActionKey>,
    entry: Option<(Record, EntryMeta)>,
    state: StepState,
    /// What differs from the action that the score depends on; unknown if the inputs of the recorded action are.
    reason: Option<Reason>,
    /// The failure, if this is the action that failed.
    failure: Option<&'a FailedAction>,
}

named_enum! {
    /// The state of an action in the current project.
    enum StepState {
        /// Unchanged, and its output is cached.
        Cached = "cached",
        /// It would run.
        Stale = "stale",
        /// Its inputs changed, and the new version is cached.
        Superseded = "superseded",
        /// It waits for a stale action above it.
        Blocked = "blocked",
        /// The current project does not have it.
        Absent = "absent",
    }
}

/// A place of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ChainPlace {
    stage: Stage,
    point: u32,
    /// The number of the step of an open-book answer, from 2.
    step: Option<u32>,
}

/// A place of the chain with the recorded action, if the results record it.
type RecordedAction = (ChainPlace, Option<ActionKey>);

/// An action of the current project.
struct CurrentAction {
    action: Action,
    place: Place,
    /// The key of its output, if that is cached.
    cached: Option<ActionKey>,
}

/// The chain behind a cell: compressions up to its point, its answer, its grades. Without a pipeline, what was kept. Also
/// returns why the current project cannot make an action of the chain, if it cannot.
fn chain_of<'a>(
    snapshot: &CacheSnapshot,
    pipeline: Option<&Pipeline>,
    subject: &ExplainedCell<'a>,
) -> (Vec<ChainStep<'a>>, Option<PrepareError>) {
    let (now, fault) = pipeline
        .map(|pipeline| walk(snapshot, pipeline, &subject.place))
        .unwrap_or_default();
    let mut steps = Vec::new();
    let mut is_stale = false;
    let actions = before(pipeline, subject).into_iter();
    for (place, recorded) in actions.chain(subject.actions.iter().copied()) {
        let current = now.get(&place);
        let key = recorded.or_else(|| latest(snapshot, place.stage, current?));
        let record = key.and_then(|key| snapshot.find(&key));
        let entry = record.and_then(|record| Some((record.clone(), snapshot.meta(&record).ok()?)));
        let (state, reason) = match pipeline.zip(current) {
            Some((pipeline, now)) => {
                let meta = entry.as_ref().map(|(_, meta)| meta);
                state_of(snapshot, pipeline, now, key, meta)
            }
            None if is_stale => (StepState::Blocked, None),
            None => (StepState::Absent, None),
        };
        is_stale |= state == StepState::Stale;
        let failure = subject.failure.filter(|failure| {
            let cell = &subject.place;
            (failure.stage, cell.point.0, cell.step)
                == (place.stage.into(), place.point, place.step)
        });
        steps.push(ChainStep {
            place,
            key,
            entry,
            state,
            reason,
            failure,
        });
    }
    (steps, fault)
}

/// The earlier compressions on which a cell depends. `pipeline` has only its method.
fn before(pipeline: Option<&Pipeline>, subject: &ExplainedCell<'_>) -> Vec<RecordedAction> {
    let method = pipeline.and_then(|pipeline| pipeline.methods.first());
    let keeps_state = method.is_some_and(|method| method.strategy.keeps_state());
    let points = (1..subject.place.point.0).filter(|_| keeps_state);
    let places = points.map(|point| ChainPlace {
        stage: Stage::Compress,
        point,
        step: None,
    });
    places.map(|place| (place, None)).collect()
}

/// The action behind a score if the results do not record it: the last one at its coordinate.
fn latest(snapshot: &CacheSnapshot, stage: Stage, now: &CurrentAction) -> Option<ActionKey> {
    now.cached
        .or_else(|| snapshot.latest(&now.place.digest(stage, now.action.repetition)))
}

/// Walks the part of the matrix that leads to the cell. Also returns why an action there cannot be made, if so.
fn walk(
    snapshot: &CacheSnapshot,
    pipeline: &Pipeline,
    cell: &CellCoordinate,
) -> (HashMap<ChainPlace, CurrentAction>, Option<PrepareError>) {
    let mut frontier = Frontier::new(pipeline);
    let (mut found, mut fault, refresh) = (HashMap::new(), None, Refresh::default());
    while let Some(task) = frontier.next_ready() {
        let place = task.place(pipeline);
        let Some(at) = place.cell().filter(|place| leads_to(place, cell)) else {
            frontier.resolve(&task, TaskOutcome::Unresolved);
            continue;
        };
        let action = match Action::prepare(pipeline, &task) {
            Ok(action) => action,
            Err(error) => {
                fault.get_or_insert(error);
                frontier.resolve(&task, TaskOutcome::Unresolved);
                continue;
            }
        };
        let output = cached_outcome(snapshot, pipeline, &action, &refresh);
        let cached = output.as_ref().map(|(_, record)| record.key);
        let outcome = output.map_or(TaskOutcome::Unresolved, |(outcome, _)| outcome);
        frontier.resolve(&task, outcome);
        let of_chain = ChainPlace {
            stage: action.stage,
            point: at.point.0,
            step: at.step,
        };
        let current = CurrentAction {
            place,
            action,
            cached,
        };
        found.insert(of_chain, current);
    }
    (found, fault)
}

/// Whether a cell depends on what is at `place`.
fn leads_to(place: &CellCoordinate, cell: &CellCoordinate) -> bool {
    place.fixture == cell.fixture
        && place.method == cell.method
        && place.run == cell.run
        && place.variant == cell.variant
        && place.point <= cell.point
        && (place.probe.is_none() || place.probe == cell.probe)
        && (place.answerer.is_none() || place.answerer == cell.answerer)
        && (place.judge.is_none() || place.judge == cell.judge)
        && (place.answer_n.is_none() || place.answer_n == cell.answer_n)
        && (place.judge_n.is_none() || place.judge_n == cell.judge_n)
}

/// The state of an action and why it is so, compared with the one that is recorded, whose `meta` may be lost while its output
/// is not.
fn state_of(
    snapshot: &CacheSnapshot,
    pipeline: &Pipeline,
    now: &CurrentAction,
    key: Option<ActionKey>,
    meta: Option<&EntryMeta>,
) -> (StepState, Option<Reason>) {
    if now.cached.is_some() && key == now.cached {
        return (StepState::Cached, None);
    }
    let changed = meta
        .filter(|_| key != Some(now.action.key))
        .map(|old| Reason::from(difference(&old.inputs, &now.action.inputs(pipeline))));
    if now.cached.is_some() {
        return (StepState::Superseded, changed);
    }
    let current = || reason(snapshot, pipeline, &now.action, &Refresh::default());
    (StepState::Stale, Some(changed.unwrap_or_else(current)))
}

/// A cell of a result set.
struct ExplainedCell<'a> {
    manifest: &'a Manifest,
    place: CellCoordinate,
    /// Its actions at its point, down to what failed. Those of the steps before a failed answer have no recorded key.
    actions: Vec<RecordedAction>,
    /// The keys of its actions, as far as the results record them.
    keys: BTreeMap<Stage, ActionKey>,
    /// The judged row; `None` where nothing was judged.
    row: Option<&'a Row>,
    /// What failed, if that is why nothing was judged.
    failure: Option<&'a FailedAction>,
}

impl<'a> ExplainedCell<'a> {
    fn overall(&self) -> Option<f64> {
        self.row.and_then(|row| row.overall)
    }

    fn judged(manifest: &'a Manifest, row: &'a Row) -> ExplainedCell<'a> {
        let keys = [
            (Stage::Compress, row.keys.compress),
            (Stage::Answer, row.keys.answer),
            (Stage::Judge, row.keys.judge),
        ]
        .into();
        let steps = row.open_book.iter().flat_map(|open| &open.steps);
        let steps = steps.map(|step| Some(step.key)).collect();
        ExplainedCell {
            manifest,
            place: row.place(),
            actions: recorded_actions(row.point, &keys, steps, Stage::Judge),
            keys,
            row: Some(row),
            failure: None,
        }
    }

    /// The cell that failed; `None` where nothing did.
    fn failed(found: &'a FoundCell) -> Option<ExplainedCell<'a>> {
        let failure = found.failure.as_ref()?;
        let place = failure.place.recorded_cell()?.clone();
        let last = failure.stage.stage();
        let keys = failure.key.map(|key| (last, key)).into_iter().collect();
        let steps = vec![None; place.step.map_or(0, |step| step as usize - 1)];
        Some(ExplainedCell {
            manifest: &found.manifest,
            actions: recorded_actions(place.point.0, &keys, steps, last),
            place,
            keys,
            row: None,
            failure: Some(failure),
        })
    }
}

/// The actions at a point, in order, down to a stage; `steps` are those before the answer.
fn recorded_actions(
    point: u32,
    keys: &BTreeMap<Stage, ActionKey>,
    mut steps: Vec<Option<ActionKey>>,
    last: Stage,
) -> Vec<RecordedAction> {
    let key = |stage| keys.get(&stage).copied();
    let place = |stage, step| ChainPlace { stage, point, step };
    steps.push(key(Stage::Answer));
    let numbers = std::iter::once(None).chain((2..).map(Some));
    let answers = numbers.zip(steps);
    let answers = answers.map(|(number, key)| (place(Stage::Answer, number), key));
    let compression = (place(Stage::Compress, None), key(Stage::Compress));
    let grades = (place(Stage::Judge, None), key(Stage::Judge));
    let actions = std::iter::once(compression).chain(answers).chain([grades]);
    actions.filter(|(place, _)| place.stage <= last).collect()
}
