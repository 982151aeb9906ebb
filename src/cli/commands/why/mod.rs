//! `compeval why`: the chain behind a score.

mod chain;
mod source_changes;
mod subject;

use serde::Serialize;

use crate::action::Stage;
use crate::cli::args::Common;
use crate::cli::commands::cache::{
    EntryJson, InputJson, hunk_lines, input_lines, inputs_json, provenance, snapshot,
};
use crate::cli::commands::cell::{CellMatch, ShowArgs, command_for, find_cell, score_style};
use crate::cli::commands::show::pipeline_of;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::project_paths_of;
use crate::cli::terminal::{Console, TextStyle, page};
use crate::pipeline::{CellCoordinate, ProjectPaths};
use crate::plan::FailedAction;
use crate::plan::StaleCause;
use base::locale::{Locale, localized};
use base::say;
use chain::{ChainStep, StepDifference, StepState, chain_of};
use store::cache::{CacheSnapshot, Lookup};
use subject::{CellKeys, ExplainedCell};

#[derive(Serialize)]
struct WhyJson<'a> {
    label: &'a str,
    fixture: &'a str,
    point: u32,
    method: &'a str,
    run: u32,
    probe: Option<&'a str>,
    overall: Option<f64>,
    keys: &'a CellKeys,
    /// What failed, where there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a FailedAction>,
    chain: Vec<StepJson>,
}

#[derive(Serialize)]
struct StepJson {
    stage: Stage,
    point: u32,
    key: Option<String>,
    state: &'static str,
    why: Option<StaleCause>,
    changed: Vec<String>,
    entry: Option<EntryJson>,
    inputs: Vec<InputJson>,
}

pub(crate) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    match find_cell(common, &paths.results, args, "why", console)? {
        CellMatch::One(selected) => {
            explain(common, &paths, &ExplainedCell::judged(&selected), console)
        }
        CellMatch::Missing(missing) => match ExplainedCell::failed(&missing) {
            Some(subject) => explain(common, &paths, &subject, console),
            None => Err(missing.failure()),
        },
        CellMatch::Listed => Ok(Exit::Done),
    }
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
        let why = localized(
            "the current project has no such method or fixture, or fails `compeval check`; this shows the recorded run",
            "当前项目没有该方法或样本，或未通过 `compeval check`；这里显示记录的运行",
        );
        console.warn(localized("note:", "说明："), why);
    }
    let (steps, fault) = chain_of(&snapshot, pipeline.as_ref(), subject);
    if let Some(fault) = fault {
        let text = say!(
            "the current project cannot make this cell: {fault}",
            "当前项目无法产生该单元：{fault}"
        );
        console.warn(localized("note:", "说明："), text);
    }
    console.report(&json(subject, &steps, &snapshot), || {
        page(console, &explanation(subject, &steps, console))
    });
    Ok(Exit::Done)
}

/// A state as it is printed; JSON has the English word.
fn state_word(state: &StepState) -> &'static str {
    match state {
        StepState::Cached => localized("cached", "已缓存"),
        StepState::Stale(_) => localized("stale", "过期"),
        StepState::Superseded(_) => localized("superseded", "已被取代"),
        StepState::Blocked => localized("blocked", "阻塞"),
        StepState::Absent => localized("absent", "不存在"),
    }
}

/// A state in a word, what differs, its style, and its meaning in words.
fn describe(
    state: &StepState,
) -> (
    &'static str,
    Option<&StepDifference>,
    TextStyle,
    &'static str,
) {
    match state {
        StepState::Cached => (
            "cached",
            None,
            TextStyle::Good,
            localized("nothing has changed", "没有变化"),
        ),
        StepState::Stale(differs) => (
            "stale",
            Some(differs),
            TextStyle::Bad,
            localized("it would run again", "会重新运行"),
        ),
        StepState::Superseded(differs) => {
            let meaning = localized(
                "changed since; the current version has already run",
                "之后有改动；当前版本已运行",
            );
            ("superseded", Some(differs), TextStyle::Warning, meaning)
        }
        StepState::Blocked => (
            "blocked",
            None,
            TextStyle::Warning,
            localized("waits for a stale action above", "等待上面过期的动作"),
        ),
        StepState::Absent => (
            "absent",
            None,
            TextStyle::Dim,
            localized("not in the current project", "不在当前项目中"),
        ),
    }
}

fn json<'a>(
    subject: &'a ExplainedCell<'_>,
    steps: &[ChainStep<'_>],
    snapshot: &CacheSnapshot,
) -> WhyJson<'a> {
    let place = &subject.place;

    WhyJson {
        label: &subject.manifest.label,
        fixture: &place.fixture,
        point: place.point.0,
        method: &place.method,
        run: place.run,
        probe: place.probe.as_deref(),
        overall: subject.overall(),
        keys: &subject.keys,
        failure: subject.failure,
        chain: steps.iter().map(|step| step_json(step, snapshot)).collect(),
    }
}

fn step_json(step: &ChainStep<'_>, snapshot: &CacheSnapshot) -> StepJson {
    let (state, differs, ..) = describe(&step.state);
    let explained = differs.map(|differs| &differs.explained);
    let blocked = matches!(step.state, StepState::Blocked).then_some(StaleCause::Upstream);
    StepJson {
        stage: step.stage,
        point: step.point,
        key: step.key.map(|key| key.to_string()),
        state,
        why: explained.map(|explained| explained.why).or(blocked),
        changed: explained
            .map(|explained| explained.changed.clone())
            .unwrap_or_default(),
        entry: step
            .entry
            .as_ref()
            .map(|(record, meta)| EntryJson::new(record, meta, snapshot.last_used(record))),
        inputs: step
            .entry
            .as_ref()
            .map(|(_, meta)| inputs_json(meta))
            .unwrap_or_default(),
    }
}

fn explanation(subject: &ExplainedCell<'_>, steps: &[ChainStep<'_>], console: &Console) -> String {
    let CellCoordinate {
        fixture,
        point,
        method,
        run,
        probe,
        ..
    } = &subject.place;
    let probe_told = probe
        .as_ref()
        .map(|probe| format!(" · {probe}"))
        .unwrap_or_default();
    let place = say!(
        "{fixture} · point {} · {method} · run {run}{probe_told}",
        "{fixture} · 压缩点 {} · {method} · 第 {run} 次{probe_told}",
        point.0
    );
    let score = match (subject.overall(), subject.failure) {
        (Some(score), _) => say!("{score:.2} of 5", "{score:.2}（满分 5）"),
        (None, Some(failure)) => say!("{} failed", "{} 失败", failure.stage.name()),
        (None, None) => "–".to_owned(),
    };
    let mut lines = vec![
        format!(
            "{}   {}",
            console.paint(TextStyle::Strong, &place),
            console.paint(score_style(subject.overall()), &score)
        ),
        console.paint(
            TextStyle::Dim,
            &say!("label {}", "标签 {}", subject.manifest.label),
        ),
    ];
    for step in steps {
        lines.push(String::new());
        lines.extend(step_lines(step, point.0, console));
    }
    let next = console.next_line(Locale::printed(), next(subject, steps));
    lines.push(format!("\n{next}"));
    lines.join("\n")
}

/// The command to type next: one that makes what is missing, or shows what is there.
fn next(subject: &ExplainedCell<'_>, steps: &[ChainStep<'_>]) -> String {
    let is_stale = steps
        .iter()
        .any(|step| matches!(step.state, StepState::Stale(_)));
    match subject.row.filter(|_| !is_stale) {
        Some(row) => command_for("show", row, &subject.manifest.label),
        None => "compeval plan".to_owned(),
    }
}

fn step_lines(step: &ChainStep<'_>, point: u32, console: &Console) -> Vec<String> {
    let (_, differs, style, meaning) = describe(&step.state);
    let at = if step.point == point {
        String::new()
    } else {
        say!(" at point {}", "，压缩点 {}", step.point)
    };
    let at = step.step.map_or(at.clone(), |step| {
        say!("{at} step {step}", "{at}，第 {step} 步")
    });
    let key = step
        .key
        .map_or_else(String::new, |key| format!(" {}", key.0.short()));
    let mut lines = vec![format!(
        "{}{}  {}  {}",
        console.paint(TextStyle::Strong, &format!("{}{at}", step.stage.name())),
        console.paint(TextStyle::Dim, &key),
        console.paint(style, state_word(&step.state)),
        console.paint(TextStyle::Dim, &say!("({meaning})", "（{meaning}）")),
    )];
    if let Some(StepDifference { explained, files }) = differs {
        let changed = explained.changed.join(localized("; ", "；"));
        let colon = if changed.is_empty() {
            ""
        } else {
            localized(": ", "：")
        };
        lines.push(format!(
            "  {}{colon}{changed}",
            console.paint(style, explained.why.words())
        ));
        for (file, hunks) in files {
            lines.push(console.paint(TextStyle::Dim, &format!("    {file}")));
            lines.extend(hunk_lines(hunks, "    ", console));
        }
    }
    if let Some(failure) = step.failure {
        let failed = console.labelled(
            TextStyle::Bad,
            localized("failed:", "失败："),
            failure.message_with_hint(),
        );
        lines.push(format!("  {failed}"));
    }
    match &step.entry {
        Some((record, meta)) => {
            lines.extend(
                provenance(console, record, meta)
                    .into_iter()
                    .map(|line| format!("  {line}")),
            );
            lines.extend(
                input_lines(meta, console)
                    .into_iter()
                    .map(|line| format!("  {line}")),
            );
        }
        None if step.failure.is_some() => {}
        None => lines.push(console.paint(
            TextStyle::Dim,
            localized(
                "  (its entry is no longer in the cache)",
                "  （其条目已不在缓存中）",
            ),
        )),
    }
    lines
}
