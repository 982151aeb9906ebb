//! `cache show`: one entry with its provenance, its inputs and its output.

use serde_json::json;

use super::entry::{
    EntryOutput, entry_json, fault_of, find_entry, output_of, provenance, status_of,
};
use crate::cli::failure::{Exit, Failure, not_as_json};
use crate::cli::format::{display_width, left, with_fields};
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::{EntryLookup, EntryMeta};
use base::text::one_line;
use store::cache::{CacheSnapshot, Damage, EntryStatus, Lookup, Record};

pub(super) fn run(
    snapshot: &CacheSnapshot,
    prefix: &str,
    raw: bool,
    inputs: bool,
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
        _ => Some(output_of(
            &record,
            &meta,
            &snapshot.body(&record).map_err(damaged)?,
        )),
    };
    let details = json!({
        "sources": meta.inputs.sources,
        "inputs": meta.inputs.inputs,
        "output": output.as_ref().map(EntryOutput::text),
    });
    let entry = entry_json(&record, &meta, snapshot.last_used(&record));
    let json = with_fields(&entry, details);
    console.report(&json, || {
        page(
            console,
            &describe(&record, &meta, output.as_ref(), inputs, console),
        )
    });
    Ok(Exit::Done)
}

fn damaged(damage: Damage) -> Failure {
    Failure::error(damage.to_string())
        .hinted("`compeval cache verify` removes it; the next run makes it again")
}

fn describe(
    record: &Record,
    meta: &EntryMeta,
    output: Option<&EntryOutput>,
    inputs: bool,
    console: &Console,
) -> String {
    let mut lines = vec![heading(record, meta, console)];
    lines.push(console.paint(TextStyle::Dim, &record.key.to_string()));
    lines.extend(provenance(console, record, meta));
    if let Some(fault) = fault_of(record) {
        lines.push(format!(
            "{} {fault}",
            console.paint(TextStyle::Bad, &format!("{}:", status_of(&record.status)))
        ));
    }
    if inputs {
        lines.push(format!("\n{}", console.paint(TextStyle::Strong, "Inputs")));
        lines.extend(input_lines(meta, console));
    }
    match output {
        None => {}
        Some(EntryOutput::Grades(grades)) => {
            lines.push(format!("\n{}", console.paint(TextStyle::Strong, "Grades")));
            for (criterion, score, reason) in grades {
                lines.push(format!(
                    "  {} {}",
                    left(criterion, 28),
                    console.paint(TextStyle::Strong, score)
                ));
                let options = textwrap::Options::new(console.width())
                    .initial_indent("      ")
                    .subsequent_indent("      ");
                lines.push(console.paint(TextStyle::Dim, &textwrap::fill(reason, options)));
            }
        }
        Some(output) => {
            lines.push(format!("\n{}", console.paint(TextStyle::Strong, "Output")));
            lines.push(output.text());
        }
    }
    lines.join("\n")
}

fn heading(record: &Record, meta: &EntryMeta, console: &Console) -> String {
    console.paint(
        TextStyle::Strong,
        &format!(
            "{} {} · {}",
            meta.inputs.stage.name(),
            record.key.0.short(),
            meta.place
        ),
    )
}

/// The inputs of an entry, one line each: name, digest, and the value if it is short.
pub(crate) fn input_lines(meta: &EntryMeta, console: &Console) -> Vec<String> {
    let inputs = &meta.inputs.inputs;
    let widths = inputs.iter().map(|input| display_width(&input.name));
    let width = widths.max().unwrap_or(0);
    let lines = inputs.iter().map(|input| {
        let text = first_words(
            input.text.as_deref(),
            console.width().saturating_sub(width + 18).max(20),
        );
        let digest = console.paint(TextStyle::Dim, &input.digest.short());
        format!("  {}  {digest}  {text}", left(&input.name, width))
            .trim_end()
            .to_owned()
    });
    lines.collect()
}

/// A text on one line, cut at `width`; nothing where it is not stored.
fn first_words(text: Option<&str>, width: usize) -> String {
    let text = match text {
        Some("") => "(empty)".to_owned(),
        text => text.map(one_line).unwrap_or_default(),
    };
    match textwrap::wrap(&text, width).first() {
        Some(first) if first.len() < text.len() => format!("{first}…"),
        Some(first) => first.to_string(),
        None => String::new(),
    }
}
