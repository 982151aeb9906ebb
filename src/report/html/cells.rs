//! The chunks of cells: the long texts of rows, for whole contexts.
//!
//! The texts of many cells compress much better together than each alone, but with all cells in one chunk the page
//! would decompress everything to show one cell. So a chunk has the rows of some consecutive contexts.

use std::ops::Range;

use serde::Serialize;

use super::chunks::{FactMark, FactMatcher, chunk};
use crate::action::ActionKey;
use crate::results::{Row, RowSearch};

/// A chunk with fewer cells takes in the next context.
const FEWEST: usize = 128;
/// How many digits of a key are shown; the cache accepts any unique prefix.
const KEY_DIGITS: usize = 16;

/// The long texts of a cell.
#[derive(Debug, Serialize)]
struct CellText<'r> {
    answer: &'r str,
    marks: Vec<FactMark>,
    criteria: Vec<(&'r str, u8, &'r str)>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stale: &'r [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    invented: &'r [String],
    /// Absent if the answerer could not search.
    #[serde(skip_serializing_if = "Option::is_none")]
    searches: Option<Vec<SearchText<'r>>>,
    keys: [String; 3],
}

/// A search of a cell.
#[derive(Debug, Serialize)]
struct SearchText<'r> {
    query: &'r str,
    returned: &'r str,
    /// How many messages of the session it returned; 0 if the archive is the method's own.
    messages: usize,
    marks: Vec<FactMark>,
}

impl<'r> SearchText<'r> {
    fn new(search: &'r RowSearch, matcher: Option<&FactMatcher>) -> SearchText<'r> {
        SearchText {
            query: &search.query,
            returned: &search.returned,
            messages: search.messages.len(),
            marks: matcher
                .map(|matcher| matcher.marks_in(&search.returned))
                .unwrap_or_default(),
        }
    }
}

impl<'r> CellText<'r> {
    fn new(row: &'r Row, matcher: Option<&FactMatcher>) -> CellText<'r> {
        let searches = row.open_book.as_ref().map(|open| open.searches.iter());
        CellText {
            answer: &row.answer,
            marks: matcher
                .map(|matcher| matcher.marks_in(&row.answer))
                .unwrap_or_default(),
            criteria: row
                .criteria
                .iter()
                .map(|c| (&*c.criterion.0, c.points(), c.reasoning.as_str()))
                .collect(),
            stale: &row.stale_facts,
            invented: &row.invented,
            searches: searches.map(|searches| {
                searches
                    .map(|search| SearchText::new(search, matcher))
                    .collect()
            }),
            keys: [&row.keys.compress, &row.keys.answer, &row.keys.judge].map(shown_key),
        }
    }
}

/// The beginning of a key.
fn shown_key(key: &ActionKey) -> String {
    key.to_string().chars().take(KEY_DIGITS).collect()
}

/// Chunks the texts of `rows`; `matchers` are parallel to them. Each chunk comes with its first cell.
pub(super) fn chunk_cells(rows: &[Row], matchers: &[Option<&FactMatcher>]) -> Vec<(usize, String)> {
    let chunks = groups(rows).into_iter().map(|cells| {
        let matchers = matchers.get(cells.clone()).unwrap_or_default();
        let rows = rows.get(cells.clone()).unwrap_or_default();
        let texts = rows.iter().zip(matchers);
        let texts = texts.map(|(row, matcher)| CellText::new(row, *matcher));
        (cells.start, chunk(&texts.collect::<Vec<CellText<'_>>>()))
    });
    chunks.collect()
}

/// Groups consecutive rows; those of a context stay together.
fn groups(rows: &[Row]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for context in rows.chunk_by(is_same_context) {
        let end = start + context.len();
        match groups.last_mut().filter(|group| group.len() < FEWEST) {
            Some(group) => group.end = end,
            None => groups.push(start..end),
        }
        start = end;
    }
    groups
}

fn is_same_context(one: &Row, other: &Row) -> bool {
    one.keys.compress == other.keys.compress
        && (one.point, one.run) == (other.point, other.run)
        && one.method == other.method
        && one.fixture == other.fixture
}
