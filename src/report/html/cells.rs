//! The chunks of cells: the long texts of rows, for whole contexts.
//!
//! The texts of many cells compress much better together than each alone, but with all cells in one chunk the page
//! would decompress everything to show one cell. So a chunk has the rows of some consecutive contexts. Where it ends
//! depends on the digests of the rows, not on their number: rows that are added or removed change only their own chunk
//! and at most a few chunks after it.

use std::ops::Range;

use serde::Serialize;

use super::chunks::{FactMark, FactMatcher, chunk, json};
use super::input::{ChunkCache, ReadRows};
use crate::action::{ActionKey, Digest, DigestBuilder, memo_key};
use crate::report::REPORTS;
use crate::results::{FolderError, ListedRow, Row, RowSearch};

/// A chunk with fewer cells takes in the next context.
const FEWEST: usize = 128;
/// A chunk with at least this many cells ends after its last context.
const MOST: usize = 512;
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

/// Chunks the texts of `rows`, which `read_rows` reads; `matchers` are parallel to `rows`. Each chunk comes with its first
/// cell.
///
/// # Errors
/// A row that cannot be read.
pub(super) fn chunk_cells(
    rows: &[ListedRow],
    read_rows: &ReadRows<'_>,
    matchers: &[Option<&FactMatcher>],
    cache: &dyn ChunkCache,
) -> Result<Vec<(usize, String)>, FolderError> {
    let groups = group_contexts(rows);
    let chunks = groups.iter().map(|group| {
        let matchers = matchers.get(group.cells.clone()).unwrap_or_default();
        Ok((group.cells.start, group.chunk(read_rows, matchers, cache)?))
    });
    chunks.collect()
}

/// The cells of a chunk.
#[derive(Debug)]
struct CellGroup {
    cells: Range<usize>,
    /// The digest of the rows of each context.
    contexts: Vec<Digest>,
}

impl CellGroup {
    /// The chunk of these cells; `matchers` are parallel to them.
    fn chunk(
        &self,
        read_rows: &ReadRows<'_>,
        matchers: &[Option<&FactMatcher>],
        cache: &dyn ChunkCache,
    ) -> Result<String, FolderError> {
        chunk(cache, self.key(matchers), || {
            let rows = read_rows(self.cells.clone())?;
            let texts = rows
                .iter()
                .zip(matchers)
                .map(|(row, matcher)| CellText::new(row, *matcher));
            Ok(json(&texts.collect::<Vec<CellText<'_>>>()))
        })
    }

    fn key(&self, matchers: &[Option<&FactMatcher>]) -> Digest {
        let mut key = memo_key("report cells", REPORTS);
        for context in &self.contexts {
            key.field("rows", context.0);
        }
        for matcher in matchers {
            key.field("facts", matcher.map_or([0; 32], |matcher| matcher.digest.0));
        }
        key.finish()
    }

    fn is_full(&self) -> bool {
        /// One context in this many ends a chunk that has enough cells.
        const CONTEXTS_PER_END: u8 = 4;
        let ends = self
            .contexts
            .last()
            .is_some_and(|last| last.0[0] % CONTEXTS_PER_END == 0);
        self.cells.len() >= MOST || (self.cells.len() >= FEWEST && ends)
    }
}

/// Groups consecutive rows; those of a context stay together.
fn group_contexts(rows: &[ListedRow]) -> Vec<CellGroup> {
    let mut groups: Vec<CellGroup> = Vec::new();
    let mut start = 0;
    for context in rows.chunk_by(is_same_context) {
        let end = start + context.len();
        match groups.last_mut().filter(|group| !group.is_full()) {
            Some(group) => {
                group.cells.end = end;
                group.contexts.push(rows_digest(context));
            }
            None => groups.push(CellGroup {
                cells: start..end,
                contexts: vec![rows_digest(context)],
            }),
        }
        start = end;
    }
    groups
}

fn is_same_context(one: &ListedRow, other: &ListedRow) -> bool {
    let (one, other) = (&one.row, &other.row);
    one.keys.compress == other.keys.compress
        && (one.point, one.run) == (other.point, other.run)
        && one.method == other.method
        && one.fixture == other.fixture
}

/// The digest of the content of a context's rows.
fn rows_digest(rows: &[ListedRow]) -> Digest {
    let mut digest = DigestBuilder::new("rows of a context");
    rows.iter().for_each(|row| {
        digest.field("row", row.name.0);
    });
    digest.finish()
}
