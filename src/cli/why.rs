//! `compeval why`: the chain behind a score.

use serde::Serialize;

use super::args::{Common, ShowArgs};
use super::cache::{EntryJson, InputJson, hunk_lines, input_lines, inputs_json, provenance, snapshot};
use super::cell::{Choice, Chosen, choose, meaning_of};
use super::chain::{Differs, State, Step, chain_of};
use super::console::{Console, Meaning};
use super::failure::{Exit, Failure};
use super::pager::page;
use super::project::places_of;
use super::show::pipeline_of;
use crate::action::Stage;
use crate::cache::{Lookup, Snapshot};
use crate::plan::Explained;
use crate::results::RowKeys;

#[derive(Serialize)]
struct WhyJson<'a> {
    label: &'a str,
    fixture: &'a str,
    point: u32,
    method: &'a str,
    run: u32,
    probe: &'a str,
    overall: Option<f64>,
    keys: &'a RowKeys,
    chain: Vec<StepJson>,
}

#[derive(Serialize)]
struct StepJson {
    stage: Stage,
    point: u32,
    key: Option<String>,
    state: &'static str,
    why: Option<&'static str>,
    changed: Vec<String>,
    entry: Option<EntryJson>,
    inputs: Vec<InputJson>,
}

pub(crate) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let places = places_of(common)?;
    let chosen = match choose(&places.results, args)? {
        Choice::One(chosen) => chosen,
        Choice::Several(several) => {
            several.tell("why", console);
            return Ok(Exit::Done);
        }
    };
    let snapshot = snapshot(&places.cache, console)?;
    let pipeline = pipeline_of(common, &chosen.row);
    if pipeline.is_none() {
        console.tell(&format!(
            "{} today's project has no such method or fixture, or does not pass `compeval check`: shown is what was kept",
            console.paint(Meaning::Warning, "note:")
        ));
    }
    let steps = chain_of(&snapshot, pipeline.as_ref(), &chosen);
    console.json(&json(&chosen, &steps, &snapshot));
    if !console.is_json() {
        page(console, &told(&chosen, &steps, console));
    }
    Ok(Exit::Done)
}

impl State {
    /// The state in a word, what differs, and what it means to the eye.
    fn told(&self) -> (&'static str, Option<&Differs>, Meaning) {
        match self {
            State::Cached => ("cached", None, Meaning::Good),
            State::Stale(differs) => ("stale", Some(differs), Meaning::Bad),
            State::Superseded(differs) => ("superseded", Some(differs), Meaning::Warning),
            State::Blocked => ("blocked", None, Meaning::Warning),
            State::Absent => ("absent", None, Meaning::Dim),
        }
    }

    /// What the word means.
    fn meaning(&self) -> &'static str {
        match self {
            State::Cached => "nothing has changed",
            State::Stale(_) => "it would run again",
            State::Superseded(_) => "changed since; what it is now has run already",
            State::Blocked => "it waits for what is stale above",
            State::Absent => "today's project does not have it",
        }
    }
}

fn json<'a>(chosen: &'a Chosen, steps: &[Step], snapshot: &Snapshot) -> WhyJson<'a> {
    let row = &chosen.row;
    let step = |step: &Step| {
        let (state, differs, _) = step.state.told();
        let explained = differs.map(|differs| &differs.explained);
        let blocked = matches!(step.state, State::Blocked).then_some(Explained::UPSTREAM);
        StepJson {
            stage: step.stage,
            point: step.point,
            key: step.key.map(|key| key.to_string()),
            state,
            why: explained.map(|explained| explained.why).or(blocked),
            changed: explained.map(|explained| explained.changed.clone()).unwrap_or_default(),
            entry: step.entry.as_ref().map(|(record, meta)| EntryJson::new(record, meta, snapshot.last_used(record))),
            inputs: step.entry.as_ref().map(|(_, meta)| inputs_json(meta)).unwrap_or_default(),
        }
    };
    WhyJson {
        label: &chosen.manifest.label,
        fixture: &row.fixture,
        point: row.point,
        method: &row.method,
        run: row.run,
        probe: &row.probe,
        overall: row.overall,
        keys: &row.keys,
        chain: steps.iter().map(step).collect(),
    }
}

fn told(chosen: &Chosen, steps: &[Step], console: &Console) -> String {
    let row = &chosen.row;
    let place = format!("{} · point {} · {} · run {} · {}", row.fixture, row.point, row.method, row.run, row.probe);
    let score = row.overall.map_or("–".to_owned(), |score| format!("{score:.2} of 5"));
    let mut lines = vec![
        format!("{}   {}", console.paint(Meaning::Strong, &place), console.paint(meaning_of(row.overall), &score)),
        console.paint(Meaning::Dim, &format!("label {}", chosen.manifest.label)),
    ];
    for step in steps {
        lines.push(String::new());
        lines.extend(step_lines(step, row.point, console));
    }
    let runs = steps.iter().any(|step| matches!(step.state, State::Stale(_)));
    let show = format!("compeval show {} --method {} --run {} --probe {}", row.fixture, row.method, row.run, row.probe);
    let next = if runs { "compeval plan" } else { &show };
    lines.push(format!("\n{} {next}", console.paint(Meaning::Hint, "next:")));
    lines.join("\n")
}

fn step_lines(step: &Step, point: u32, console: &Console) -> Vec<String> {
    let (state, differs, meaning) = step.state.told();
    let at = if step.point == point { String::new() } else { format!(" at point {}", step.point) };
    let key = step.key.map_or_else(String::new, |key| format!(" {}", key.0.short()));
    let mut lines = vec![format!(
        "{}{}  {}  {}",
        console.paint(Meaning::Strong, &format!("{}{at}", step.stage.name())),
        console.paint(Meaning::Dim, &key),
        console.paint(meaning, state),
        console.paint(Meaning::Dim, &format!("({})", step.state.meaning())),
    )];
    if let Some(Differs { explained, files }) = differs {
        let changed = explained.changed.join("; ");
        let colon = if changed.is_empty() { "" } else { ": " };
        lines.push(format!("  {}{colon}{changed}", console.paint(meaning, explained.why)));
        for (file, hunks) in files {
            lines.push(console.paint(Meaning::Dim, &format!("    {file}")));
            lines.extend(hunk_lines(hunks, "    ", console));
        }
    }
    match &step.entry {
        Some((record, meta)) => {
            lines.extend(provenance(console, record, meta).into_iter().map(|line| format!("  {line}")));
            lines.extend(input_lines(meta, console).into_iter().map(|line| format!("  {line}")));
        }
        None => lines.push(console.paint(Meaning::Dim, "  (its entry is no longer in the cache)")),
    }
    lines
}
