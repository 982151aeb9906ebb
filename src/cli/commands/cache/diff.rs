//! `cache diff`: two entries, input by input, with line differences where the texts are at hand.

use std::collections::BTreeSet;

use serde::Serialize;

use super::entry::{model_of, output_of, place_of, standing_of};
use super::failure;
use crate::action::{Change, Digest, Part};
use crate::cache::{Lookup, Meta, Record, Snapshot, Status};
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::{Console, Meaning, page};
use crate::plan::{Hunk, Side, hunks, source_label};

/// Lines around a difference.
const AROUND: usize = 2;

/// One side.
struct Entry {
    record: Record,
    meta: Meta,
}

/// What differs in one input, or in the output.
#[derive(Debug, Serialize)]
struct Difference {
    part: String,
    old: Option<Value>,
    new: Option<Value>,
    /// As a unified difference, where both texts are at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Vec<String>>,
    #[serde(skip)]
    hunks: Vec<Hunk>,
}

#[derive(Debug, Serialize)]
struct Value {
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize)]
struct DiffJson {
    a: String,
    b: String,
    /// What each side is good for, and if for nothing, why.
    a_status: String,
    b_status: String,
    same_output: Option<bool>,
    inputs: Vec<Difference>,
    sources: Vec<Difference>,
    output: Option<Difference>,
    /// Whether both sides have something to be read.
    #[serde(skip)]
    is_readable: bool,
}

pub(super) fn run(snapshot: &Snapshot, a: &str, b: &str, console: &Console) -> Result<Exit, Failure> {
    let (old, new) = (load(snapshot, a)?, load(snapshot, b)?);
    let outputs = outputs(snapshot, &old, &new);
    let changes = new.meta.inputs.changes_since(&old.meta.inputs);
    let texts = text_of(snapshot, &old.record).zip(text_of(snapshot, &new.record));
    let found = DiffJson {
        a: old.record.key.to_string(),
        b: new.record.key.to_string(),
        a_status: standing_of(&old.record),
        b_status: standing_of(&new.record),
        same_output: same_output(&old.record, &new.record),
        inputs: changes.iter().map(|change| of_input(change, &outputs)).collect(),
        sources: sources(snapshot, &old.meta, &new.meta),
        is_readable: texts.is_some(),
        output: texts.and_then(|(before, now)| output(&old, &new, &before, &now)),
    };
    console.json(&found);
    if !console.is_json() {
        page(console, &told(&old, &new, &found, console));
    }
    Ok(Exit::Done)
}

fn load(snapshot: &Snapshot, prefix: &str) -> Result<Entry, Failure> {
    let key = snapshot.resolve(prefix).map_err(failure)?;
    let record = snapshot.find(&key).ok_or_else(|| Failure::error(format!("the entry {key} is gone")))?;
    let meta = snapshot.meta(&record).map_err(|damage| Failure::error(damage.to_string()))?;
    Ok(Entry { record, meta })
}

/// What is to be read of an entry; `None` of one that failed or is damaged.
fn text_of(snapshot: &Snapshot, record: &Record) -> Option<String> {
    if let Status::Failed { .. } = record.status {
        return None;
    }
    let meta = snapshot.meta(record).ok()?;
    Some(output_of(record, &meta, &snapshot.body(record).ok()?).text())
}

/// Texts of outputs that the inputs of both entries name by digest.
type Outputs = std::collections::HashMap<Digest, String>;

fn outputs(snapshot: &Snapshot, old: &Entry, new: &Entry) -> Outputs {
    let parts = |entry: &Entry| entry.meta.inputs.parts.iter().map(|(_, part)| part.digest).collect::<Vec<_>>();
    let mut wanted: std::collections::HashSet<Digest> = parts(old).into_iter().chain(parts(new)).collect();
    let mut found = Outputs::new();
    for record in snapshot.records() {
        let Status::Output { out, state, .. } = &record.status else { continue };
        for digest in [Some(*out), *state].into_iter().flatten() {
            if wanted.remove(&digest) {
                found.extend(text_of(snapshot, &record).map(|text| (digest, text)));
            }
        }
    }
    found
}

fn same_output(old: &Record, new: &Record) -> Option<bool> {
    match (&old.status, &new.status) {
        (Status::Output { out: old, .. }, Status::Output { out: new, .. }) => Some(old == new),
        _ => None,
    }
}

fn of_input(change: &Change, outputs: &Outputs) -> Difference {
    let text = |part: &Option<Part>| {
        let part = part.as_ref()?;
        part.text.clone().or_else(|| outputs.get(&part.digest).cloned())
    };
    let value = |part: &Option<Part>| {
        part.as_ref().map(|part| Value { digest: part.digest.to_string(), text: part.text.clone() })
    };
    let is_short = |part: &Option<Part>| part.as_ref().is_none_or(|part| part.text.is_some());
    let hunks = match (text(&change.old), text(&change.new)) {
        (Some(old), Some(new)) if !(is_short(&change.old) && is_short(&change.new)) => hunks(&old, &new, AROUND),
        _ => Vec::new(),
    };
    difference(&change.part, value(&change.old), value(&change.new), hunks)
}

fn difference(part: &str, old: Option<Value>, new: Option<Value>, hunks: Vec<Hunk>) -> Difference {
    let diff = (!hunks.is_empty()).then(|| unified(&hunks));
    Difference { part: part.to_owned(), old, new, diff, hunks }
}

/// The texts that both were made from: prompts, a rubric.
fn sources(snapshot: &Snapshot, old: &Meta, new: &Meta) -> Vec<Difference> {
    let changed = new.sources.0.iter().filter_map(|(name, source)| {
        let before = old.sources.0.get(name).filter(|before| before.digest != source.digest)?;
        let texts = snapshot.read_text(&before.digest).zip(snapshot.read_text(&source.digest));
        let hunks = texts.map(|(old, new)| hunks(&old, &new, AROUND)).unwrap_or_default();
        let value = |digest: &Digest| Some(Value { digest: digest.to_string(), text: None });
        let path = source_label(name, source.path.as_deref());
        Some(difference(&path, value(&before.digest), value(&source.digest), hunks))
    });
    changed.collect()
}

fn output(old: &Entry, new: &Entry, before: &str, now: &str) -> Option<Difference> {
    let value = |entry: &Entry| Some(Value { digest: entry.record.raw.to_string(), text: None });
    (before != now).then(|| difference("output", value(old), value(new), hunks(before, now, AROUND)))
}

fn unified(hunks: &[Hunk]) -> Vec<String> {
    let mark = |side: &Side| match side {
        Side::Both => ' ',
        Side::Old => '-',
        Side::New => '+',
    };
    let lines = hunks.iter().flat_map(|hunk| {
        let head = format!("@@ line {} @@", hunk.line);
        [head].into_iter().chain(hunk.lines.iter().map(move |(side, text)| format!("{}{text}", mark(side))))
    });
    lines.collect()
}

/// Differing lines for people, below `indent`: what went in red, what came in green.
pub(crate) fn hunk_lines(hunks: &[Hunk], indent: &str, console: &Console) -> Vec<String> {
    let paint = |line: String| {
        let meaning = match line.as_bytes().first() {
            Some(b'-') => Meaning::Bad,
            Some(b'+') => Meaning::Good,
            _ => Meaning::Dim,
        };
        format!("{indent}{}", console.paint(meaning, &line))
    };
    unified(hunks).into_iter().map(paint).collect()
}

fn told(old: &Entry, new: &Entry, found: &DiffJson, console: &Console) -> String {
    let side = |mark: &str, Entry { record, meta }: &Entry| {
        let place = place_of(&meta.coordinate);
        format!("{mark} {} {} · {place} · {}", record.stage.name(), record.key.0.short(), model_of(meta))
    };
    let mut lines = vec![
        console.paint(Meaning::Bad, &side("-", old)),
        console.paint(Meaning::Good, &side("+", new)),
        String::new(),
    ];
    let total = named(old, new, &found.inputs).len();
    let heading = match found.inputs.len() {
        0 => format!("All {total} inputs are the same."),
        n => format!("{n} of {total} inputs differ"),
    };
    lines.push(console.paint(Meaning::Strong, &heading));
    lines.extend(found.inputs.iter().flat_map(|part| part.told(console)));
    for source in &found.sources {
        lines.push(format!("\n{}", console.paint(Meaning::Strong, &source.part)));
        lines.extend(source.lines(console));
    }
    lines.push(String::new());
    match (&found.output, found.same_output) {
        (Some(output), _) => {
            lines.push(console.paint(Meaning::Strong, "Output"));
            lines.extend(output.lines(console));
        }
        (None, Some(true)) => lines.push(console.paint(Meaning::Good, "The outputs are the same.")),
        (None, _) if found.is_readable => lines.push(console.paint(Meaning::Dim, "The outputs read the same.")),
        (None, _) => {
            lines.push(console.paint(Meaning::Strong, "There are no two outputs to compare."));
            lines.push(console.paint(Meaning::Bad, &format!("- {}", found.a_status)));
            lines.push(console.paint(Meaning::Good, &format!("+ {}", found.b_status)));
        }
    }
    lines.join("\n")
}

/// The names of all inputs of either side. Among those that differ there may be a replica, which is no part.
fn named<'a>(old: &'a Entry, new: &'a Entry, differing: &'a [Difference]) -> BTreeSet<&'a str> {
    let parts = old.meta.inputs.parts.iter().chain(&new.meta.inputs.parts).map(|(name, _)| &**name);
    parts.chain(differing.iter().map(|difference| difference.part.as_str())).collect()
}

impl Difference {
    fn told(&self, console: &Console) -> Vec<String> {
        let value = |value: &Option<Value>| match value {
            None => "–".to_owned(),
            Some(Value { text: Some(text), .. }) => text.clone(),
            Some(Value { digest, .. }) => digest.chars().take(12).collect(),
        };
        let line = format!("  {}: {} → {}", self.part, value(&self.old), value(&self.new));
        let mut lines = vec![line];
        lines.extend(hunk_lines(&self.hunks, "    ", console));
        lines
    }

    fn lines(&self, console: &Console) -> Vec<String> {
        match self.hunks.is_empty() {
            true => vec![console.paint(Meaning::Dim, "  the texts are not at hand")],
            false => hunk_lines(&self.hunks, "  ", console),
        }
    }
}
