//! `report.md`: short enough to paste into a pull request.

use base::text::{escape_controls, is_shown_escaped, one_line};
use std::fmt::Write;

use super::details::{SPENDING, details, facts, title};
use super::document::Block;
use super::headline::headline;
use super::screen::{Extent, SHOWN_QUESTIONS, front, sentences};
use super::styled::{TableCell, TextStyle, TextTable};
use super::translation::translation;
use crate::results::{Manifest, Summary};

/// What the report shows of the first screen.
const EXTENT: Extent = Extent {
    diff: 20,
    questions: SHOWN_QUESTIONS,
    rows: usize::MAX,
};

/// The report: what the first screen shows, and everything else folded. No times and no spending of the run are shown, so
/// that equal results give equal reports.
pub fn markdown(summary: &Summary, manifest: &Manifest) -> String {
    let tr = translation(manifest.locale());
    let found = headline(summary, manifest);
    let mut first = sentences(&found, summary, manifest);
    let facts = facts(summary, &manifest.design, tr);
    let facts = facts.iter().map(|(name, value)| format!("{name}: {value}"));
    let title = format!("{}: {}", tr.title, title(summary, tr));
    let about: Vec<String> = std::iter::once(title).chain(facts).collect();
    first.push(Block::plain(about.join(" · ")));
    first.extend(front(&found, summary, manifest, EXTENT));
    let mut out = blocks(&first).trim_start().to_owned();
    let sections = details(summary, manifest).into_iter();
    for section in sections.filter(|section| section.id != SPENDING) {
        // With the empty lines, the text between the tags is read as Markdown.
        let _ = write!(
            out,
            "\n<details><summary>{}</summary>\n{}\n</details>\n",
            escape(&section.title),
            blocks(&section.blocks)
        );
    }
    out
}

/// Blocks as Markdown, each after an empty line.
fn blocks(blocks: &[Block]) -> String {
    blocks.iter().fold(String::new(), |mut out, block| {
        let text = match block {
            Block::Sentence(style, text) => sentence(*style, &escape_outside_code(text)),
            Block::List(texts) => list(texts),
            Block::Lines(title, lines) if !lines.is_empty() => {
                format!("**{title}**\n\n{}", list(lines))
            }
            Block::Table(table) if table.has_figures() => table_lines(table),
            Block::Diff(place, lines, more) => diff(place, lines, *more),
            Block::Lines(..) | Block::Table(_) => String::new(),
        };
        if !text.is_empty() {
            let _ = write!(out, "\n{}\n", text.trim_end());
        }
        out
    })
}

/// A sentence with the mark of its weight.
fn sentence(style: TextStyle, text: &str) -> String {
    match style {
        TextStyle::Warning => format!("> **!** {text}"),
        TextStyle::Good => format!("**▲ {text}**"),
        TextStyle::Bad => format!("**▼ {text}**"),
        _ => styled_text(style, text),
    }
}

fn styled_text(style: TextStyle, text: &str) -> String {
    match style {
        TextStyle::Strong | TextStyle::Good | TextStyle::Bad if !text.is_empty() => {
            format!("**{text}**")
        }
        _ => text.to_owned(),
    }
}

/// A list of untrusted texts.
fn list(items: &[String]) -> String {
    let items = items.iter();
    items
        .map(|item| format!("- {}\n", escape_outside_code(item)))
        .collect()
}

fn diff(place: &str, lines: &[String], more: usize) -> String {
    // No line of the text may end the block.
    let lines = std::iter::once(format!("@@ {place} @@")).chain(lines.iter().cloned());
    let lines: Vec<String> = lines
        .map(|line| escape_controls(&line).replace("```", "` ` `"))
        .collect();
    let more = match more {
        0 => String::new(),
        more => format!("\n… +{more}"),
    };
    format!("```diff\n{}{more}\n```", lines.join("\n"))
}

fn table_lines(table: &TextTable) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let header = table.header.iter().map(|text| escape(text)).collect();
    let rule = "--:|".repeat(table.header.len().saturating_sub(1));
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().enumerate();
        line(cells.map(|(at, cell)| table_cell(at, cell)).collect())
    });
    format!("{}|---|{rule}\n{}", line(header), rows.collect::<String>())
}

/// The lines of a cell beside each other. The first column has names, the others figures.
fn table_cell(at: usize, cell: &TableCell) -> String {
    let parts = cell.iter().map(|(style, text)| match at {
        0 => escape(text),
        _ => styled_text(*style, text),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Escapes Markdown, HTML and mentions.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A zero-width space, so that `@name` and `#12` do not become mentions.
            '@' | '#' => {
                out.push(c);
                out.push('\u{200b}');
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c if is_shown_escaped(c) => {
                out.push('\\');
                out.extend(c.escape_default());
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Escapes a sentence except for its code spans. If backticks are not in pairs, everything is escaped.
fn escape_outside_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let parts = parts.iter().enumerate();
    parts
        .map(|(place, part)| {
            if place % 2 == 1 {
                code(part)
            } else {
                escape(part)
            }
        })
        .collect()
}

/// A code span. A backtick inside becomes an apostrophe, because longer fences do not work in tables.
fn code(text: &str) -> String {
    let line = one_line(text);
    format!(
        "`{}`",
        escape_controls(&line)
            .replace('`', "'")
            .replace('|', "\u{2502}")
    )
}
