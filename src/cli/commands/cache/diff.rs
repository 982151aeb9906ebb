//! `cache show A B`: compares two entries input by input, with line differences where the texts are stored.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::entry::{
    find_entry, model_of, model_words, output_of, place_of, status_line, status_of, status_word,
};
use crate::action::{Digest, InputChange, InputPart};
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta};
use crate::plan::{DiffSide, Hunk, hunks, source_label};
use store::cache::{CacheSnapshot, EntryStatus, Lookup, Record};

/// What stands before the name of a source that is built in, where JSON has the path of any other.
const BUILT_IN: &str = "built-in ";

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

pub(super) fn run(
    snapshot: &CacheSnapshot,
    a: &str,
    b: &str,
    console: &Console,
) -> Result<Exit, Failure> {
    let (old, new) = (load(snapshot, a)?, load(snapshot, b)?);
    let outputs = input_outputs(snapshot, &old, &new);
    let changes = new.meta.inputs.changes_since(&old.meta.inputs);
    let texts = text_of(snapshot, &old.record).zip(text_of(snapshot, &new.record));
    let difference = DiffJson {
        a: old.record.key.to_string(),
        b: new.record.key.to_string(),
        a_status: status_line(&old.record, status_of),
        b_status: status_line(&new.record, status_of),
        same_output: same_output(&old.record, &new.record),
        inputs: changes
            .iter()
            .map(|change| compare_input(change, &outputs))
            .collect(),
        sources: compare_sources(snapshot, &old.meta, &new.meta),
        is_readable: texts.is_some(),
        output: texts.and_then(|(before, now)| compare_output(&old, &new, &before, &now)),
    };
    console.report(&difference, || {
        page(console, &describe(&old, &new, &difference, console))
    });
    Ok(Exit::Done)
}

fn load(snapshot: &CacheSnapshot, prefix: &str) -> Result<LoadedEntry, Failure> {
    let record = find_entry(snapshot, prefix)?;
    let meta = snapshot
        .meta(&record)
        .map_err(|damage| Failure::error(damage.to_string()))?;
    Ok(LoadedEntry { record, meta })
}

impl LoadedEntry {
    fn heading(&self, mark: char) -> String {
        let LoadedEntry { record, meta } = self;
        let place = place_of(&meta.coordinate);
        format!(
            "{mark} {} {} · {place} · {}",
            meta.stage.name(),
            record.key.0.short(),
            model_words(&model_of(meta))
        )
    }
}

impl DiffValue {
    fn from_digest(digest: &Digest) -> DiffValue {
        DiffValue {
            digest: digest.to_string(),
            text: None,
        }
    }

    fn from_part(part: &InputPart) -> DiffValue {
        DiffValue {
            digest: part.digest.to_string(),
            text: part.text.clone(),
        }
    }

    /// The text if it is known, else the beginning of its digest.
    fn shown(&self) -> String {
        self.text
            .clone()
            .unwrap_or_else(|| self.digest.chars().take(12).collect())
    }
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

fn input_outputs(snapshot: &CacheSnapshot, old: &LoadedEntry, new: &LoadedEntry) -> Outputs {
    let parts = old.meta.inputs.parts.iter().chain(&new.meta.inputs.parts);
    let mut wanted: HashSet<Digest> = parts.map(|(_, part)| part.digest).collect();
    let mut outputs = Outputs::new();
    for record in snapshot.records() {
        let EntryStatus::Output { out, state, .. } = &record.status else {
            continue;
        };
        for digest in [Some(*out), *state].into_iter().flatten() {
            if wanted.remove(&digest) {
                outputs.extend(text_of(snapshot, &record).map(|text| (digest, text)));
            }
        }
    }
    outputs
}

fn same_output(old: &Record, new: &Record) -> Option<bool> {
    match (&old.status, &new.status) {
        (EntryStatus::Output { out: old, .. }, EntryStatus::Output { out: new, .. }) => {
            Some(old == new)
        }
        _ => None,
    }
}

fn compare_input(change: &InputChange, outputs: &Outputs) -> EntryDifference {
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    // Short texts are values, which are shown whole.
    let are_short = [old, new]
        .into_iter()
        .flatten()
        .all(|part| part.text.is_some());
    let hunks = match (input_text(old, outputs), input_text(new, outputs)) {
        (Some(old), Some(new)) if !are_short => hunks(&old, &new, AROUND),
        _ => Vec::new(),
    };
    difference(
        &change.part,
        old.map(DiffValue::from_part),
        new.map(DiffValue::from_part),
        hunks,
    )
}

/// The text of an input: its own, or that of the earlier output that it is.
fn input_text(part: Option<&InputPart>, outputs: &Outputs) -> Option<String> {
    let part = part?;
    part.text
        .clone()
        .or_else(|| outputs.get(&part.digest).cloned())
}

fn difference(
    part: &str,
    old: Option<DiffValue>,
    new: Option<DiffValue>,
    hunks: Vec<Hunk>,
) -> EntryDifference {
    let diff = (!hunks.is_empty()).then(|| unified(&hunks, |line| format!("@@ line {line} @@")));
    EntryDifference {
        part: part.to_owned(),
        old,
        new,
        diff,
        hunks,
    }
}

/// The differences between the sources of both: prompts, a rubric.
fn compare_sources(
    snapshot: &CacheSnapshot,
    old: &EntryMeta,
    new: &EntryMeta,
) -> Vec<EntryDifference> {
    let changed = new.sources.0.iter().filter_map(|(name, source)| {
        let before = old
            .sources
            .0
            .get(name)
            .filter(|before| before.digest != source.digest)?;
        let texts = snapshot
            .read_text(&before.digest)
            .zip(snapshot.read_text(&source.digest));
        let hunks = texts
            .map(|(old, new)| hunks(&old, &new, AROUND))
            .unwrap_or_default();
        let [before, now] =
            [&before.digest, &source.digest].map(|digest| Some(DiffValue::from_digest(digest)));
        let part = source
            .path
            .clone()
            .unwrap_or_else(|| format!("{BUILT_IN}{name}"));
        Some(difference(&part, before, now, hunks))
    });
    changed.collect()
}

fn compare_output(
    old: &LoadedEntry,
    new: &LoadedEntry,
    before: &str,
    now: &str,
) -> Option<EntryDifference> {
    let [old, new] = [old, new].map(|entry| Some(DiffValue::from_digest(&entry.record.raw)));
    (before != now).then(|| difference("output", old, new, hunks(before, now, AROUND)))
}

/// The lines of a diff; `head` is the first line of a hunk, of which it gets the number.
fn unified(hunks: &[Hunk], head: impl Fn(usize) -> String) -> Vec<String> {
    let lines = hunks.iter().flat_map(|hunk| {
        [head(hunk.line)].into_iter().chain(
            hunk.lines
                .iter()
                .map(|(side, text)| format!("{}{text}", line_mark(*side))),
        )
    });
    lines.collect()
}

fn line_mark(side: DiffSide) -> char {
    match side {
        DiffSide::Both => ' ',
        DiffSide::Old => '-',
        DiffSide::New => '+',
    }
}

/// A diff for display, indented: removed lines in red, added lines in green.
pub(crate) fn hunk_lines(hunks: &[Hunk], indent: &str, console: &Console) -> Vec<String> {
    let lines = unified(hunks, |line| format!("@@ line {line} @@"));
    lines
        .iter()
        .map(|line| format!("{indent}{}", console.paint(line_style(line), line)))
        .collect()
}

fn line_style(line: &str) -> TextStyle {
    match line.as_bytes().first() {
        Some(b'-') => TextStyle::Bad,
        Some(b'+') => TextStyle::Good,
        _ => TextStyle::Dim,
    }
}

fn describe(
    old: &LoadedEntry,
    new: &LoadedEntry,
    difference: &DiffJson,
    console: &Console,
) -> String {
    let mut lines = vec![
        console.paint(TextStyle::Bad, &old.heading('-')),
        console.paint(TextStyle::Good, &new.heading('+')),
        String::new(),
    ];
    let total = input_names(old, new, &difference.inputs).len();
    let heading = match difference.inputs.len() {
        0 => format!("All {total} inputs are the same."),
        n => format!("{n} of {total} inputs differ"),
    };
    lines.push(console.paint(TextStyle::Strong, &heading));
    lines.extend(
        difference
            .inputs
            .iter()
            .flat_map(|part| part.value_lines(console)),
    );
    for source in &difference.sources {
        let label = match source.part.strip_prefix(BUILT_IN) {
            Some(name) => source_label(name, None),
            None => source.part.clone(),
        };
        lines.push(format!("\n{}", console.paint(TextStyle::Strong, &label)));
        lines.extend(source.text_lines(console));
    }
    lines.push(String::new());
    lines.extend(output_lines(old, new, difference, console));
    lines.join("\n")
}

fn output_lines(
    old: &LoadedEntry,
    new: &LoadedEntry,
    difference: &DiffJson,
    console: &Console,
) -> Vec<String> {
    match (&difference.output, difference.same_output) {
        (Some(output), _) => {
            let mut lines = vec![console.paint(TextStyle::Strong, "Output")];
            lines.extend(output.text_lines(console));
            lines
        }
        (None, Some(true)) => {
            vec![console.paint(TextStyle::Good, "The outputs are the same.")]
        }
        (None, _) if difference.is_readable => {
            vec![console.paint(TextStyle::Dim, "The outputs have the same text.")]
        }
        (None, _) => vec![
            console.paint(TextStyle::Strong, "There are not two outputs to compare."),
            console.paint(
                TextStyle::Bad,
                &format!("- {}", status_line(&old.record, status_word)),
            ),
            console.paint(
                TextStyle::Good,
                &format!("+ {}", status_line(&new.record, status_word)),
            ),
        ],
    }
}

/// The names of all inputs of either side. `differing` can contain the repetition and the schema, which are not among the
/// parts.
fn input_names<'a>(
    old: &'a LoadedEntry,
    new: &'a LoadedEntry,
    differing: &'a [EntryDifference],
) -> BTreeSet<&'a str> {
    let parts = old
        .meta
        .inputs
        .parts
        .iter()
        .chain(&new.meta.inputs.parts)
        .map(|(name, _)| &**name);
    parts
        .chain(differing.iter().map(|difference| difference.part.as_str()))
        .collect()
}

impl EntryDifference {
    fn value_lines(&self, console: &Console) -> Vec<String> {
        let values = [&self.old, &self.new];
        let [old, new] = values.map(|value| {
            value
                .as_ref()
                .map_or_else(|| "–".to_owned(), DiffValue::shown)
        });
        let mut lines = vec![format!("  {}: {old} → {new}", self.part)];
        lines.extend(hunk_lines(&self.hunks, "    ", console));
        lines
    }

    fn text_lines(&self, console: &Console) -> Vec<String> {
        match self.hunks.is_empty() {
            true => vec![console.paint(TextStyle::Dim, "  the texts are not stored")],
            false => hunk_lines(&self.hunks, "  ", console),
        }
    }
}
