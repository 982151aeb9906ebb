//! A report as what it says, in order: it is made once, and has three writers: one for terminals, one for Markdown, and
//! its JSON, which the page reads.

use serde::Serialize;

use super::styled::{StyledText, TextStyle, TextTable, fitted, plain_cell};
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
pub fn styled_sections(sections: &[Section], width: usize) -> StyledText {
    let mut out = StyledText::default();
    for section in sections {
        out.line([(TextStyle::Strong, section.title.clone())]);
        out.append(styled(&section.blocks, width));
        out.blank_line();
    }
    out
}

/// Blocks in a terminal. What is no sentence begins after a blank line; sentences follow a table directly.
pub fn styled(blocks: &[Block], width: usize) -> StyledText {
    let mut out = StyledText::default();
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        if !matches!(block, Block::Sentence(..) | Block::List(_)) && !out.lines.is_empty() {
            out.blank_line();
        }
        match block {
            Block::Sentence(style, text) => out.paragraph(*style, text, width),
            Block::List(texts) => texts
                .iter()
                .for_each(|text| out.paragraph(TextStyle::Plain, text, width)),
            Block::Lines(title, lines) => add_lines(&mut out, title, lines, width),
            Block::Table(table) => out.append(table.render(width)),
            Block::Diff(place, lines, more) => add_diff(&mut out, place, lines, *more, width),
        }
    }
    out
}

/// The title stands before the first line, and the others below it.
fn add_lines(out: &mut StyledText, title: &str, lines: &[String], width: usize) {
    for (number, line) in lines.iter().enumerate() {
        let start = match number {
            0 => format!("{title}  "),
            _ => " ".repeat(title.width() + 2),
        };
        let line = fitted(line, width.saturating_sub(start.width()));
        out.line([(TextStyle::Dim, start), (TextStyle::Plain, line)]);
    }
}

fn add_diff(out: &mut StyledText, place: &str, lines: &[String], more: usize, width: usize) {
    let more = if more > 0 {
        format!("  (+{more})")
    } else {
        String::new()
    };
    let head = fitted(&format!("{place}{more}"), width);
    out.line([(TextStyle::Dim, head)]);
    for line in lines {
        let style = match line.chars().next() {
            Some('-') => TextStyle::Bad,
            Some('+') => TextStyle::Good,
            _ => TextStyle::Dim,
        };
        out.line([(style, fitted(&format!("  {line}"), width))]);
    }
}
