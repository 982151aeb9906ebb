//! `cache show A B`: compares two entries: which inputs differ and why, and both outputs.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::json;

use super::entry::{find_entry, model_of, output_of, status_line};
use crate::action::Digest;
use crate::cli::changes::{AROUND, edited_lines, reason_blocks};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::with_fields;
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta};
use crate::plan::{Hunk, InputChange, Reason, difference, differing_inputs, hunks};
use crate::report::{Block, styled};
use store::cache::{CacheSnapshot, EntryStatus, Lookup, Record};

struct LoadedEntry {
    record: Record,
    meta: EntryMeta,
}

pub(super) fn run(
    snapshot: &CacheSnapshot,
    a: &str,
    b: &str,
    console: &Console,
) -> Result<Exit, Failure> {
    let (old, new) = (load(snapshot, a)?, load(snapshot, b)?);
    let outputs = input_outputs(snapshot, &old, &new);
    let text = |digest: &Digest| {
        let stored = snapshot.read_text(digest);
        stored.or_else(|| outputs.get(digest).cloned())
    };
    let changes = difference(&old.meta.inputs, &new.meta.inputs);
    let texts = text_of(snapshot, &old.record).zip(text_of(snapshot, &new.record));
    let output = texts.as_ref().map(|(before, now)| {
        let hunks = hunks(before, now, AROUND);
        hunks.iter().flat_map(Hunk::unified).collect::<Vec<_>>()
    });
    let place = new.meta.place.cell();
    let (same, differing) = (
        same_output(&old.record, &new.record),
        differing_inputs(&old.meta.inputs, &new.meta.inputs),
    );
    let told = changes.iter().map(|change| {
        let diff = edited_lines(change, place, &text).map(|(_, lines)| lines);
        with_fields(change, json!({ "diff": diff }))
    });
    let compared = json!({
        "a": old.record.key.to_string(),
        "b": new.record.key.to_string(),
        "a_status": status_line(&old.record),
        "b_status": status_line(&new.record),
        "same_output": same,
        "inputs": differing,
        // What has changed, as a person would say it, with a unified diff where both texts are available.
        "changes": told.collect::<Vec<_>>(),
        "output": output.as_ref().filter(|lines| !lines.is_empty()),
    });
    console.report(&compared, || {
        let mut blocks = vec![
            Block::Sentence(TextStyle::Bad, old.heading('-')),
            Block::Sentence(TextStyle::Good, new.heading('+')),
            Block::Sentence(TextStyle::Strong, counted(&old, &new, &differing)),
        ];
        if !changes.is_empty() {
            let reason = Reason::from(changes);
            blocks.extend(reason_blocks(&reason, TextStyle::Plain, place, &text));
        }
        blocks.extend(output_blocks(&old, &new, output, same));
        page(console, &console.styled(&styled(&blocks, usize::MAX)));
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
        format!(
            "{mark} {} {} · {} · {}",
            meta.inputs.stage.name(),
            record.key.0.short(),
            meta.place,
            model_of(meta)
        )
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
fn input_outputs(
    snapshot: &CacheSnapshot,
    old: &LoadedEntry,
    new: &LoadedEntry,
) -> HashMap<Digest, String> {
    let inputs = old.meta.inputs.inputs.iter().chain(&new.meta.inputs.inputs);
    let mut wanted: HashSet<Digest> = inputs.map(|input| input.digest).collect();
    let mut outputs = HashMap::new();
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

/// How many inputs differ, of those that either side has. The repetition and the schema may be among those that differ.
fn counted(old: &LoadedEntry, new: &LoadedEntry, differing: &[InputChange]) -> String {
    let inputs = old.meta.inputs.inputs.iter().chain(&new.meta.inputs.inputs);
    let names = inputs.map(|input| &*input.name);
    let names = names.chain(differing.iter().map(|change| change.name.as_str()));
    let total = names.collect::<BTreeSet<_>>().len();
    match differing.len() {
        0 => format!("All {total} inputs are the same."),
        n => format!("{n} of {total} inputs differ"),
    }
}

fn output_blocks(
    old: &LoadedEntry,
    new: &LoadedEntry,
    output: Option<Vec<String>>,
    same_output: Option<bool>,
) -> Vec<Block> {
    let sentence = |style, text: &str| Block::Sentence(style, text.to_owned());
    match (output, same_output) {
        (Some(lines), _) if !lines.is_empty() => vec![Block::Diff("Output".to_owned(), lines, 0)],
        (_, Some(true)) => vec![sentence(TextStyle::Good, "The outputs are the same.")],
        (Some(_), _) => vec![sentence(TextStyle::Dim, "The outputs have the same text.")],
        (None, _) => {
            let status = |mark, record| format!("{mark} {}", status_line(record));
            vec![
                sentence(TextStyle::Strong, "There are not two outputs to compare."),
                Block::Sentence(TextStyle::Bad, status('-', &old.record)),
                Block::Sentence(TextStyle::Good, status('+', &new.record)),
            ]
        }
    }
}
