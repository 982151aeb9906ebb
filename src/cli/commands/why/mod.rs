//! `compeval why`: the chain behind a score.

mod chain;

use serde_json::{Value, json};

use crate::action::CellCoordinate;
use crate::cli::args::Common;
use crate::cli::changes::{known_texts, reason_blocks};
use crate::cli::commands::cache::{entry_json, input_lines, provenance, snapshot};
use crate::cli::commands::cell::{CellMatch, ShowArgs, command_for, find_cell, score_style};
use crate::cli::commands::show::pipeline_of;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::with_fields;
use crate::cli::project::project_paths_of;
use crate::cli::terminal::{Console, TextStyle, page};
use crate::pipeline::ProjectPaths;
use crate::plan::{FindText, Reason, StaleCause};
use crate::report::styled;
use base::locale::{Locale, localized};
use base::say;
use chain::{ChainStep, ExplainedCell, StepState, chain_of};
use sessions::transcript::Point;
use store::cache::{CacheSnapshot, Lookup};

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
        page(console, &explanation(subject, &steps, &text, console))
    });
    Ok(Exit::Done)
}

/// A state: the word that JSON has, the words that are printed, what differs, and its style.
fn describe(state: &StepState) -> (&'static str, &'static str, Option<&Reason>, TextStyle) {
    match state {
        StepState::Cached => (
            "cached",
            localized("cached  (nothing has changed)", "已缓存  （没有变化）"),
            None,
            TextStyle::Good,
        ),
        StepState::Stale(reason) => (
            "stale",
            localized("stale  (it would run again)", "过期  （会重新运行）"),
            Some(reason),
            TextStyle::Bad,
        ),
        StepState::Superseded(reason) => {
            let words = localized(
                "superseded  (changed since; the current version has already run)",
                "已被取代  （之后有改动；当前版本已运行）",
            );
            ("superseded", words, reason.as_ref(), TextStyle::Warning)
        }
        StepState::Blocked => (
            "blocked",
            localized(
                "blocked  (waits for a stale action above)",
                "阻塞  （等待上面过期的动作）",
            ),
            None,
            TextStyle::Warning,
        ),
        StepState::Absent => (
            "absent",
            localized(
                "absent  (not in the current project)",
                "不存在  （不在当前项目中）",
            ),
            None,
            TextStyle::Dim,
        ),
    }
}

fn step_json(step: &ChainStep<'_>, snapshot: &CacheSnapshot, text: FindText<'_>) -> Value {
    let (state, _, reason, _) = describe(&step.state);
    let blocked = matches!(step.state, StepState::Blocked).then_some(StaleCause::Upstream);
    let entry = step.entry.as_ref();
    json!({
        "stage": step.place.stage,
        "point": step.place.point,
        "key": step.key.map(|key| key.to_string()),
        "state": state,
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
    console: &Console,
) -> String {
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
        lines.extend(step_lines(step, &subject.place, text, console));
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

fn step_lines(
    step: &ChainStep<'_>,
    cell: &CellCoordinate,
    text: FindText<'_>,
    console: &Console,
) -> Vec<String> {
    let (_, state, reason, style) = describe(&step.state);
    let at = if step.place.point == cell.point.0 {
        String::new()
    } else {
        say!(" at point {}", "，压缩点 {}", step.place.point)
    };
    let at = step.place.step.map_or(at.clone(), |step| {
        say!("{at} step {step}", "{at}，第 {step} 步")
    });
    let key = step
        .key
        .map_or_else(String::new, |key| format!(" {}", key.0.short()));
    let mut lines = vec![format!(
        "{}{}  {}",
        console.paint(
            TextStyle::Strong,
            &format!("{}{at}", step.place.stage.name())
        ),
        console.paint(TextStyle::Dim, &key),
        console.paint(style, state),
    )];
    if let Some(reason) = reason {
        let place = CellCoordinate {
            point: Point(step.place.point),
            ..cell.clone()
        };
        let blocks = reason_blocks(reason, style, Some(&place), text);
        let differs = console.styled(&styled(&blocks, usize::MAX));
        let differs = differs.lines().map(|line| format!("  {line}"));
        lines.extend(differs.map(|line| line.trim_end().to_owned()));
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
