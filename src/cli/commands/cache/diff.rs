//! `cache show A B`: compares two entries input by input, with line differences where the texts are stored.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::entry::{find_entry, model_of, output_of, place_of, status_line};
use crate::action::{Digest, InputChange, InputPart};
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta};
use crate::plan::{DiffSide, Hunk, hunks, source_label};
use base::locale::word;
use base::say;
use store::cache::{CacheSnapshot, EntryStatus, Lookup, Record};

/// Context lines around a difference.
const AROUND: usize = 2;

struct LoadedEntry {
    record: Record,
    meta: EntryMeta,
}

/// A difference in one input, one source or the output.
#[derive(Debug, Serialize)]
struct EntryDifference {
    part: String,
    old: Option<DiffValue>,
    new: Option<DiffValue>,
    /// A unified diff, if both texts are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Vec<String>>,
    #[serde(skip)]
    hunks: Vec<Hunk>,
}

#[derive(Debug, Serialize)]
struct DiffValue {
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize)]
struct DiffJson {
    a: String,
    b: String,
    a_status: String,
    b_status: String,
    same_output: Option<bool>,
    inputs: Vec<EntryDifference>,
    sources: Vec<EntryDifference>,
    output: Option<EntryDifference>,
    /// Whether both sides have a readable output.
    #[serde(skip)]
    is_readable: bool,
}

pub(super) fn run(snapshot: &CacheSnapshot, a: &str, b: &str, console: &Console) -> Result<Exit, Failure> {
    let (old, new) = (load(snapshot, a)?, load(snapshot, b)?);
    let outputs = outputs(snapshot, &old, &new);
    let changes = new.meta.inputs.changes_since(&old.meta.inputs);
    let texts = text_of(snapshot, &old.record).zip(text_of(snapshot, &new.record));
    let found = DiffJson {
        a: old.record.key.to_string(),
        b: new.record.key.to_string(),
        a_status: status_line(&old.record),
        b_status: status_line(&new.record),
        same_output: same_output(&old.record, &new.record),
        inputs: changes.iter().map(|change| of_input(change, &outputs)).collect(),
        sources: sources(snapshot, &old.meta, &new.meta),
        is_readable: texts.is_some(),
        output: texts.and_then(|(before, now)| output(&old, &new, &before, &now)),
    };
    console.report(&found, || page(console, &describe(&old, &new, &found, console)));
    Ok(Exit::Done)
}

fn load(snapshot: &CacheSnapshot, prefix: &str) -> Result<LoadedEntry, Failure> {
    let record = find_entry(snapshot, prefix)?;
    let meta = snapshot.meta(&record).map_err(|damage| Failure::error(damage.to_string()))?;
    Ok(LoadedEntry { record, meta })
}

/// The displayed output of an entry; `None` if it failed or is damaged.
fn text_of(snapshot: &CacheSnapshot, record: &Record) -> Option<String> {
    if let EntryStatus::Failed { .. } = record.status {
        return None;
    }
    let meta = snapshot.meta(record).ok()?;
    Some(output_of(record, &meta, &snapshot.body(record).ok()?).text())
}

/// The texts of outputs that are inputs of either entry.
type Outputs = HashMap<Digest, String>;

fn outputs(snapshot: &CacheSnapshot, old: &LoadedEntry, new: &LoadedEntry) -> Outputs {
    let parts = |entry: &LoadedEntry| entry.meta.inputs.parts.iter().map(|(_, part)| part.digest).collect::<Vec<_>>();
    let mut wanted: HashSet<Digest> = parts(old).into_iter().chain(parts(new)).collect();
    let mut found = Outputs::new();
    for record in snapshot.records() {
        let EntryStatus::Output { out, state, .. } = &record.status else { continue };
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
        (EntryStatus::Output { out: old, .. }, EntryStatus::Output { out: new, .. }) => Some(old == new),
        _ => None,
    }
}

fn of_input(change: &InputChange, outputs: &Outputs) -> EntryDifference {
    let text = |part: &Option<InputPart>| {
        let part = part.as_ref()?;
        part.text.clone().or_else(|| outputs.get(&part.digest).cloned())
    };
    let value = |part: &Option<InputPart>| {
        part.as_ref().map(|part| DiffValue { digest: part.digest.to_string(), text: part.text.clone() })
    };
    let is_short = |part: &Option<InputPart>| part.as_ref().is_none_or(|part| part.text.is_some());
    let hunks = match (text(&change.old), text(&change.new)) {
        (Some(old), Some(new)) if !(is_short(&change.old) && is_short(&change.new)) => hunks(&old, &new, AROUND),
        _ => Vec::new(),
    };
    difference(&change.part, value(&change.old), value(&change.new), hunks)
}

fn difference(part: &str, old: Option<DiffValue>, new: Option<DiffValue>, hunks: Vec<Hunk>) -> EntryDifference {
    let diff = (!hunks.is_empty()).then(|| unified(&hunks));
    EntryDifference { part: part.to_owned(), old, new, diff, hunks }
}

/// The differences between the sources of both: prompts, a rubric.
fn sources(snapshot: &CacheSnapshot, old: &EntryMeta, new: &EntryMeta) -> Vec<EntryDifference> {
    let changed = new.sources.0.iter().filter_map(|(name, source)| {
        let before = old.sources.0.get(name).filter(|before| before.digest != source.digest)?;
        let texts = snapshot.read_text(&before.digest).zip(snapshot.read_text(&source.digest));
        let hunks = texts.map(|(old, new)| hunks(&old, &new, AROUND)).unwrap_or_default();
        let value = |digest: &Digest| Some(DiffValue { digest: digest.to_string(), text: None });
        let path = source_label(name, source.path.as_deref());
        Some(difference(&path, value(&before.digest), value(&source.digest), hunks))
    });
    changed.collect()
}

fn output(old: &LoadedEntry, new: &LoadedEntry, before: &str, now: &str) -> Option<EntryDifference> {
    let value = |entry: &LoadedEntry| Some(DiffValue { digest: entry.record.raw.to_string(), text: None });
    (before != now).then(|| difference("output", value(old), value(new), hunks(before, now, AROUND)))
}

fn unified(hunks: &[Hunk]) -> Vec<String> {
    let mark = |side: &DiffSide| match side {
        DiffSide::Both => ' ',
        DiffSide::Old => '-',
        DiffSide::New => '+',
    };
    let lines = hunks.iter().flat_map(|hunk| {
        let head = say!("@@ line {} @@", "@@ 第 {} 行 @@", hunk.line);
        [head].into_iter().chain(hunk.lines.iter().map(move |(side, text)| format!("{}{text}", mark(side))))
    });
    lines.collect()
}

/// A diff for display, indented: removed lines in red, added lines in green.
pub(crate) fn hunk_lines(hunks: &[Hunk], indent: &str, console: &Console) -> Vec<String> {
    let paint = |line: String| {
        let style = match line.as_bytes().first() {
            Some(b'-') => TextStyle::Bad,
            Some(b'+') => TextStyle::Good,
            _ => TextStyle::Dim,
        };
        format!("{indent}{}", console.paint(style, &line))
    };
    unified(hunks).into_iter().map(paint).collect()
}

fn describe(old: &LoadedEntry, new: &LoadedEntry, found: &DiffJson, console: &Console) -> String {
    let side = |mark: &str, LoadedEntry { record, meta }: &LoadedEntry| {
        let place = place_of(&meta.coordinate);
        format!("{mark} {} {} · {place} · {}", meta.stage.name(), record.key.0.short(), model_of(meta))
    };
    let mut lines = vec![
        console.paint(TextStyle::Bad, &side("-", old)),
        console.paint(TextStyle::Good, &side("+", new)),
        String::new(),
    ];
    let total = input_names(old, new, &found.inputs).len();
    let heading = match found.inputs.len() {
        0 => say!("All {total} inputs are the same.", "全部 {total} 个输入相同。"),
        n => say!("{n} of {total} inputs differ", "{total} 个输入中 {n} 个不同"),
    };
    lines.push(console.paint(TextStyle::Strong, &heading));
    lines.extend(found.inputs.iter().flat_map(|part| part.value_lines(console)));
    for source in &found.sources {
        lines.push(format!("\n{}", console.paint(TextStyle::Strong, &source.part)));
        lines.extend(source.text_lines(console));
    }
    lines.push(String::new());
    match (&found.output, found.same_output) {
        (Some(output), _) => {
            lines.push(console.paint(TextStyle::Strong, word("Output", "输出")));
            lines.extend(output.text_lines(console));
        }
        (None, Some(true)) => {
            lines.push(console.paint(TextStyle::Good, word("The outputs are the same.", "输出相同。")))
        }
        (None, _) if found.is_readable => {
            lines.push(console.paint(TextStyle::Dim, word("The outputs have the same text.", "输出的文字相同。")))
        }
        (None, _) => {
            lines.push(
                console.paint(
                    TextStyle::Strong,
                    word("There are not two outputs to compare.", "没有可供比较的两个输出。"),
                ),
            );
            lines.push(console.paint(TextStyle::Bad, &format!("- {}", found.a_status)));
            lines.push(console.paint(TextStyle::Good, &format!("+ {}", found.b_status)));
        }
    }
    lines.join("\n")
}

/// The names of all inputs of either side. `differing` can contain the repetition and the schema, which are not among the
/// parts.
fn input_names<'a>(old: &'a LoadedEntry, new: &'a LoadedEntry, differing: &'a [EntryDifference]) -> BTreeSet<&'a str> {
    let parts = old.meta.inputs.parts.iter().chain(&new.meta.inputs.parts).map(|(name, _)| &**name);
    parts.chain(differing.iter().map(|difference| difference.part.as_str())).collect()
}

impl EntryDifference {
    fn value_lines(&self, console: &Console) -> Vec<String> {
        let value = |value: &Option<DiffValue>| match value {
            None => "–".to_owned(),
            Some(DiffValue { text: Some(text), .. }) => text.clone(),
            Some(DiffValue { digest, .. }) => digest.chars().take(12).collect(),
        };
        let line = format!("  {}: {} → {}", self.part, value(&self.old), value(&self.new));
        let mut lines = vec![line];
        lines.extend(hunk_lines(&self.hunks, "    ", console));
        lines
    }

    fn text_lines(&self, console: &Console) -> Vec<String> {
        match self.hunks.is_empty() {
            true => vec![console.paint(TextStyle::Dim, word("  the texts are not stored", "  文字没有保存"))],
            false => hunk_lines(&self.hunks, "  ", console),
        }
    }
}
