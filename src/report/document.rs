//! A report as what it says, in order: it is made once, and has three writers: one for terminals, one for Markdown, and
//! its JSON, which the page reads.

use serde::Serialize;

use super::styled::{
    TextStyle, TextTable, fitted, paint, plain_cell, push_blank_line, push_line, wrap_lines,
};
use unicode_width::UnicodeWidthStr;

/// What a report says in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// A sentence, or a text with lines of its own; its style is its weight.
    Sentence(TextStyle, String),
    /// Sentences below each other.
    List(Vec<String>),
    /// Short texts under a word, each on one line of a terminal.
    Lines(String, Vec<String>),
    /// Figures of methods.
    Table(TextTable),
    /// Lines of a text as they are, under where they are, and how many more there are; edited ones have `+` or `-` in front.
    Diff(String, Vec<String>, usize),
}

impl Block {
    pub fn plain(text: impl Into<String>) -> Block {
        Block::Sentence(TextStyle::Plain, text.into())
    }

    pub fn dim(text: impl Into<String>) -> Block {
        Block::Sentence(TextStyle::Dim, text.into())
    }

    /// Values after their names, in a table without a header.
    pub fn values(values: impl IntoIterator<Item = (String, String)>) -> Block {
        let rows = values.into_iter();
        let rows = rows.map(|(name, value)| vec![vec![(TextStyle::Dim, name)], plain_cell(value)]);
        Block::Table(TextTable {
            words: vec![1],
            cuts_last: true,
            ..TextTable::new(["", ""], rows)
        })
    }

    fn is_empty(&self) -> bool {
        match self {
            Block::Sentence(_, text) => text.is_empty(),
            Block::List(texts) | Block::Lines(_, texts) | Block::Diff(_, texts, _) => {
                texts.is_empty()
            }
            Block::Table(table) => !table.has_figures(),
        }
    }
}

/// A part of a report under a heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Names its part of the page.
    pub id: &'static str,
    pub title: String,
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that only a terminal shows.
    pub fn plain(title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Section {
        Section {
            id: "",
            title: title.into(),
            blocks: blocks.into_iter().collect(),
        }
    }

    /// The section without blocks that say nothing; `None` if nothing but sentences is left.
    pub(super) fn new(
        id: &'static str,
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Option<Section> {
        let blocks = blocks.into_iter().filter(|block| !block.is_empty());
        let blocks: Vec<Block> = blocks.collect();
        let has_content = |block: &Block| !matches!(block, Block::Sentence(..));
        blocks.iter().any(has_content).then(|| Section {
            id,
            title: title.into(),
            blocks,
        })
    }
}

/// Sections in a terminal of this width, at least 60.
pub fn styled_sections(sections: &[Section], width: usize) -> String {
    let mut out = String::new();
    for section in sections {
        push_line(&mut out, &paint(TextStyle::Strong, &section.title));
        out.push_str(&styled(&section.blocks, width));
        push_blank_line(&mut out);
    }
    out
}

/// Blocks in a terminal. What is no sentence begins after a blank line; sentences follow a table directly.
pub fn styled(blocks: &[Block], width: usize) -> String {
    let mut out = String::new();
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        if !matches!(block, Block::Sentence(..) | Block::List(_)) && !out.is_empty() {
            push_blank_line(&mut out);
        }
        match block {
            Block::Sentence(style, text) => add_sentence(&mut out, *style, text, width),
            Block::List(texts) => texts
                .iter()
                .for_each(|text| add_sentence(&mut out, TextStyle::Plain, text, width)),
            Block::Lines(title, lines) => add_lines(&mut out, title, lines, width),
            Block::Table(table) => out.push_str(&table.render(width)),
            Block::Diff(place, lines, more) => add_diff(&mut out, place, lines, *more, width),
        }
    }
    out
}

/// A text in one style, whose lines are broken as by [`wrap_lines`].
fn add_sentence(out: &mut String, style: TextStyle, text: &str, width: usize) {
    let lines = wrap_lines(text, width);
    lines
        .lines()
        .for_each(|line| push_line(out, &paint(style, line.trim_end())));
}

/// The title stands before the first line, and the others below it.
fn add_lines(out: &mut String, title: &str, lines: &[String], width: usize) {
    for (number, line) in lines.iter().enumerate() {
        let start = match number {
            0 => format!("{title}  "),
            _ => " ".repeat(title.width() + 2),
        };
        let line = fitted(line, width.saturating_sub(start.width()));
        push_line(out, &format!("{}{line}", paint(TextStyle::Dim, &start)));
    }
}

fn add_diff(out: &mut String, place: &str, lines: &[String], more: usize, width: usize) {
    let more = if more > 0 {
        format!("  (+{more})")
    } else {
        String::new()
    };
    let head = fitted(&format!("{place}{more}"), width);
    push_line(out, &paint(TextStyle::Dim, &head));
    for line in lines {
        let style = match line.chars().next() {
            Some('-') => TextStyle::Bad,
            Some('+') => TextStyle::Good,
            _ => TextStyle::Dim,
        };
        let line = fitted(&format!("  {line}"), width);
        push_line(out, &paint(style, line.trim_end()));
    }
}
