//! Open book next to closed book: its figures, its line on the screen, and how well searching alone does.

use super::figures::share_cell;
use super::numbers::{UNKNOWN, brackets, count, level, score, signed};
use super::styled::{TableCell, TextStyle, plain_cell};
use super::translation::{Translation, fill, joined};
use crate::action::BuiltInStrategy;
use crate::results::{MethodSummary, OpenBookSummary, Summary};

/// If the score of searching alone is within this many points of the whole transcript, open scores measure the archive
/// and not the method.
const NEAR_FULL: f64 = 1.0;

/// Open book in one line: what methods gain by searching, and whether searching alone does as well as the whole
/// transcript.
pub(super) fn open_book_line(summary: &Summary, tr: &Translation) -> Option<String> {
    let gains = answered(summary).filter(|(_, method, _)| !method.is_anchor());
    let gains = gains.map(|(name, _, open)| {
        let [closed, open] = [&open.closed, &open.open].map(|level| score(level.median));
        format!("{name} {closed} → {open}")
    });
    const SHOWN: usize = 3;
    let more = match gains.clone().count().saturating_sub(SHOWN) {
        0 => String::new(),
        more => fill(tr.and_others, &[&more]),
    };
    let shown = joined(gains.take(SHOWN), tr.and_comma)? + &more;
    let line = fill(tr.open_book_line, &[&shown]);
    joined([line].into_iter().chain(archive_sentence(summary, tr)), " ")
}

/// The row of a method in the table of open book.
pub(super) fn open_book_figures(open: &OpenBookSummary, tr: &Translation) -> Vec<TableCell> {
    let counts = open.answers;
    let archive = match open.own_archive {
        true => tr.own_notes,
        false => tr.search_only,
    };
    let interval = open
        .gain_ci95
        .map(|ci| (TextStyle::Dim, brackets(Some(ci))));
    let gain = open.gain.map_or_else(|| UNKNOWN.to_owned(), signed);
    let gain = std::iter::once((TextStyle::Plain, gain)).chain(interval);
    let searches = open.searches;
    let searches = searches.map_or_else(|| UNKNOWN.to_owned(), |number| format!("{number:.1}"));
    let searched = [
        [counts.lost_searched, counts.lost_not_searched],
        [counts.kept_searched, counts.kept_not_searched],
    ];
    let [lost, kept] = searched.map(|[some, others]| plain_cell(format!("{some}/{others}")));
    vec![
        plain_cell(archive.to_owned()),
        plain_cell(level(&open.closed)),
        plain_cell(level(&open.open)),
        gain.collect(),
        plain_cell(searches),
        plain_cell(count(open.tokens)),
        share_cell(Some(&open.gold_found), tr),
        lost,
        kept,
    ]
}

/// The methods that were also answered with a search.
fn answered(
    summary: &Summary,
) -> impl Iterator<Item = (&String, &MethodSummary, &OpenBookSummary)> + Clone {
    summary
        .methods
        .iter()
        .filter_map(|(name, method)| Some((name, method, method.open_book.as_ref()?)))
}

/// How the open scores compare with a search without any context: whether its score is near that of the whole
/// transcript, and which methods score no higher than it. If it was not measured, the sentence says so.
pub(super) fn archive_sentence(summary: &Summary, tr: &Translation) -> Option<String> {
    answered(summary).next()?;
    let Some((_, floor, alone)) =
        answered(summary).find(|(_, method, _)| is_built_in(method, BuiltInStrategy::None))
    else {
        return Some(tr.archive_unmeasured.to_owned());
    };
    let alone = alone.open.median?;
    let full = (summary.methods.values()).find(|method| {
        method.answerer == floor.answerer && is_built_in(method, BuiltInStrategy::Full)
    });
    let near = match full.and_then(|full| full.overall.median) {
        None => Some(tr.full_unmeasured.to_owned()),
        Some(full) if full - alone > NEAR_FULL => None,
        Some(full) => Some(fill(
            tr.archive_alone,
            &[&score(Some(alone)), &score(Some(full))],
        )),
    };
    let candidates = answered(summary)
        .filter(|(_, method, _)| !method.is_anchor() && method.answerer == floor.answerer);
    let not_above =
        candidates.filter(|(_, _, open)| open.open.median.is_some_and(|open| open <= alone));
    let names = joined(not_above.map(|(name, _, _)| name.clone()), ", ");
    let not_above = names.map(|names| fill(tr.not_above_archive, &[&names]));
    joined(near.into_iter().chain(not_above), " ")
}

fn is_built_in(method: &MethodSummary, strategy: BuiltInStrategy) -> bool {
    method.strategy == strategy.name()
}
