//! `cache show`: one entry with its provenance, its inputs and its output; or two, compared: which inputs differ and why, and
//! both outputs.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::json;

use super::entry::{
    entry_json, fault_of, find_entry, input_values, model_of, output_of, provenance, status_line,
    status_of,
};
use crate::action::Digest;
use crate::cli::changes::{AROUND, edited_lines, reason_blocks};
use crate::cli::failure::{Exit, Failure, not_as_json};
use crate::cli::format::with_fields;
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta};
use crate::plan::{Hunk, InputChange, Reason, difference, differing_inputs, hunks};
use crate::report::{Block, Section, styled};
use base::locale::Locale;
use store::cache::{CacheSnapshot, Damage, EntryStatus, Lookup, Record};

pub(super) fn run(
    snapshot: &CacheSnapshot,
    prefix: &str,
    raw: bool,
    console: &Console,
) -> Result<Exit, Failure> {
    if raw && console.is_json {
        return Err(not_as_json("--raw"));
    }
    let record = find_entry(snapshot, prefix)?;
    if raw && let EntryStatus::Failed { .. } = record.status {
        let why = fault_of(&record).unwrap_or_default();
        let message = format!(
            "{} has no stored reply: its call failed: {why}",
            record.key.0.short()
        );
        return Err(Failure::error(message).hinted("`compeval run` calls the model again"));
    }
    if raw {
        console.raw(&snapshot.body(&record).map_err(damaged)?);
        return Ok(Exit::Done);
    }
    let meta = snapshot.meta(&record).map_err(damaged)?;
    let output = match record.status {
        EntryStatus::Failed { .. } => None,
        _ => {
            let body = snapshot.body(&record).map_err(damaged)?;
            Some(output_of(&record, &meta, &body))
        }
    };
    let details = json!({
        "sources": meta.inputs.sources,
        "inputs": meta.inputs.inputs,
        "output": output,
    });
    let entry = entry_json(&record, &meta, snapshot.last_used(&record));
    let json = with_fields(&entry, details);
    console.report(&json, || {
        let sections = describe(&record, &meta, output);
        page(console, &console.document(&sections));
    });
    Ok(Exit::Done)
}

fn damaged(damage: Damage) -> Failure {
    Failure::error(damage.to_string())
        .hinted("`compeval cache verify` removes it; the next run makes it again")
}

fn describe(record: &Record, meta: &EntryMeta, output: Option<String>) -> Vec<Section> {
    let (stage, key, place) = (meta.inputs.stage.name(), record.key.0.short(), &meta.place);
    let fault = fault_of(record);
    let fault = fault.map(|fault| format!("{}: {fault}", status_of(&record.status)));
    let about = [
        Block::dim(record.key.to_string()),
        Block::Sentence(TextStyle::Bad, fault.unwrap_or_default()),
        Block::values(provenance(record, meta)),
    ];
    let inputs = [Block::values(input_values(meta))];
    let sections = [
        Section::plain(format!("{stage} {key} · {place}"), about),
        Section::plain("Inputs", inputs),
    ];
    let output = output.map(|output| Section::plain("Output", [Block::plain(output)]));
    sections.into_iter().chain(output).collect()
}

struct LoadedEntry {
    record: Record,
    meta: EntryMeta,
}

pub(super) fn compare(
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
    let same = same_output(&old.record, &new.record);
    let differing = differing_inputs(&old.meta.inputs, &new.meta.inputs);
    let told = changes.iter().map(|change| {
        let diff = edited_lines(change, place, &text, Locale::En).map(|(_, lines)| lines);
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
            let (reason, style) = (Reason::from(changes), TextStyle::Plain);
            blocks.extend(reason_blocks(&reason, style, place, &text, Locale::En));
        }
        blocks.extend(output_blocks(&old, &new, output, same));
        page(console, &styled(&blocks, usize::MAX));
    });
    Ok(Exit::Done)
}

fn load(snapshot: &CacheSnapshot, prefix: &str) -> Result<LoadedEntry, Failure> {
    let record = find_entry(snapshot, prefix)?;
    let meta = snapshot.meta(&record).map_err(damaged)?;
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
    Some(output_of(record, &meta, &snapshot.body(record).ok()?))
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
        if let EntryStatus::Output { out, .. } = record.status
            && wanted.remove(&out)
        {
            outputs.extend(text_of(snapshot, &record).map(|text| (out, text)));
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
