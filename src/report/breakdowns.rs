//! Descriptive tables without verdicts: what contexts say and open book. They are the same in the terminal, in Markdown and on the page.

use serde::Serialize;

use super::figures;
use super::numbers::{is_figure, level, share};
use super::open_book::{archive_sentence, open_book_figures};
use super::translation::Translation;
use crate::results::{FigureTableId, MethodSummary, Summary};
use base::text::grouped;

/// A table as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FigureTable {
    /// Names its part of the page.
    pub id: &'static str,
    pub title: String,
    pub lead: String,
    pub header: Vec<String>,
    /// The name of a method, and its figures.
    pub rows: Vec<(String, Vec<String>)>,
}

impl FigureTable {
    /// The table of these figures, with its title and its lead; `None` if it has none.
    pub(super) fn of_figures(
        id: &'static str,
        table: FigureTableId,
        [title, lead]: [&str; 2],
        summary: &Summary,
        tr: &Translation,
    ) -> Option<FigureTable> {
        let columns = figures::columns(table, summary);
        let headings = columns.iter().map(|figure| figure.words(tr.locale));
        let rows = summary.methods.iter().map(|(name, method)| {
            let cells = columns
                .iter()
                .map(|figure| figures::text(figure, method, tr));
            (tr.method_label(name, method), cells.collect())
        });
        let table = FigureTable {
            id,
            title: title.to_owned(),
            lead: lead.to_owned(),
            header: header(tr, headings.map(str::to_owned)),
            rows: rows.collect(),
        };
        table.without_void()
    }

    /// The table without the rows and columns that have no figure; `None` if no row is left.
    pub(super) fn without_void(mut self) -> Option<FigureTable> {
        self.rows
            .retain(|(_, figures)| figures.iter().any(|text| is_figure(text)));
        let columns = self.header.len().saturating_sub(1);
        let is_kept: Vec<bool> = (0..columns)
            .map(|at| {
                self.rows
                    .iter()
                    .any(|(_, figures)| figures.get(at).is_some_and(|text| is_figure(text)))
            })
            .collect();
        // The header also has the column of names, which the figures do not have.
        retain_marked(
            &mut self.header,
            std::iter::once(true).chain(is_kept.iter().copied()),
        );
        for (_, figures) in &mut self.rows {
            retain_marked(figures, is_kept.iter().copied());
        }
        (!self.rows.is_empty()).then_some(self)
    }
}

/// Keeps the texts whose mark is true.
fn retain_marked(texts: &mut Vec<String>, marks: impl IntoIterator<Item = bool>) {
    let mut marks = marks.into_iter();
    texts.retain(|_| marks.next().unwrap_or(false));
}

/// The tables for which there is something to show.
pub(super) fn breakdowns(summary: &Summary, tr: &Translation) -> Vec<FigureTable> {
    let tables = [
        in_context(summary, tr),
        not_compressed(summary, tr),
        open_book(summary, tr),
    ];
    tables
        .into_iter()
        .flatten()
        .filter_map(FigureTable::without_void)
        .collect()
}

/// The rows of the methods for which `part` has a value.
fn rows<'s, T: 's>(
    summary: &'s Summary,
    part: impl Fn(&'s MethodSummary) -> Option<&'s T>,
    figures: impl Fn(&T) -> Vec<String>,
) -> Vec<(String, Vec<String>)> {
    let methods = summary.methods.iter();
    methods
        .filter_map(|(name, method)| Some((name.to_owned(), figures(part(method)?))))
        .collect()
}

fn header(tr: &Translation, columns: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(tr.method.to_owned())
        .chain(columns)
        .collect()
}

/// How contexts state the facts of probes, and what they name that their transcripts do not have.
fn in_context(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let texts = [tr.in_context_title, tr.in_context_note];
    FigureTable::of_figures("in-context", FigureTableId::Contexts, texts, summary, tr)
}

/// The scores of contexts in which nothing was compressed; `None` if there are no such contexts.
fn not_compressed(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let columns = [tr.contexts, tr.overall, tr.survival].map(str::to_owned);
    let rows = rows(
        summary,
        |method| method.not_compressed.as_ref(),
        |left_out| {
            let contexts = format!("{}/{}", grouped(left_out.contexts), grouped(left_out.of));
            vec![
                contexts,
                level(&left_out.overall),
                share(left_out.fact_survival),
            ]
        },
    );
    (!rows.is_empty()).then(|| FigureTable {
        id: "not-compressed",
        title: tr.not_compressed_title.to_owned(),
        lead: tr.not_compressed_note.to_owned(),
        header: header(tr, columns),
        rows,
    })
}

/// Open book next to closed book; `None` if no answerer may search.
fn open_book(summary: &Summary, tr: &Translation) -> Option<FigureTable> {
    let columns = [
        tr.archive,
        tr.closed_book,
        tr.open_book,
        tr.gain,
        tr.searches,
        tr.search_tokens,
        tr.gold_found,
        tr.lost_searched,
        tr.kept_searched,
    ];
    let lead = [
        Some(tr.open_book_note.to_owned()),
        archive_sentence(summary, tr),
    ]
    .into_iter()
    .flatten();
    let rows = rows(
        summary,
        |method| method.open_book.as_ref(),
        |open| open_book_figures(open, tr),
    );
    (!rows.is_empty()).then(|| FigureTable {
        id: "open-book",
        title: tr.open_book_title.to_owned(),
        lead: lead.collect::<Vec<_>>().join(" "),
        header: header(tr, columns.map(str::to_owned)),
        rows,
    })
}
