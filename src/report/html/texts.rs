//! Long texts with their marks, in packs that are opened only when somebody looks.

use std::collections::BTreeMap;

use serde::Serialize;

use super::columns::Names;
use super::input::ContextText;
use super::pack::{PackShelf, pack};
use crate::judge::CriterionId;
use crate::probe::{Fact, FactFinder, MappedFold, Probe};
use crate::results::Row;

/// Cells in one pack.
pub(super) const CELLS_IN_PACK: usize = 256;
/// Bytes of contexts after which a pack is full.
const CONTEXT_PACK_BYTES: usize = 400_000;
/// Digits of a key that are shown; the cache takes any prefix that is unique.
const KEY_DIGITS: usize = 16;

/// A fact in a text: which (expected ones count from 0 up, superseded ones from -1 down), where it begins and how
/// long it is, in UTF-16 units, as scripts count.
type Mark = (i64, usize, usize);

/// The facts of a probe, ready to be looked for.
#[derive(Debug)]
pub(super) struct Seeker(Vec<(i64, FactFinder)>);

impl Seeker {
    /// Looks for what `probe` expects and for what no longer holds.
    pub(super) fn new(probe: &Probe) -> Seeker {
        let finders = |facts: &[Fact]| -> Vec<FactFinder> { FactFinder::all(facts) };
        let expected = finders(&probe.expected_facts).into_iter().zip(0..);
        let superseded = finders(&probe.superseded_facts).into_iter().zip((i64::MIN..0).rev());
        Seeker(expected.chain(superseded).map(|(finder, number)| (number, finder)).collect())
    }

    /// Where they stand in the text behind `folded`, in rising order.
    fn marks(&self, text: &Searchable<'_>) -> Vec<Mark> {
        let found = self
            .0
            .iter()
            .flat_map(|(number, finder)| text.folded.find(finder).into_iter().map(move |range| (*number, range)));
        let mut marks: Vec<Mark> =
            found.map(|(number, range)| (number, text.units_before(range.start), text.units_in(range))).collect();
        marks.sort_by_key(|(number, start, length)| (*start, std::cmp::Reverse(*length), *number));
        marks
    }
}

/// A text made ready to be marked.
struct Searchable<'t> {
    text: &'t str,
    folded: MappedFold,
}

impl<'t> Searchable<'t> {
    fn new(text: &'t str) -> Searchable<'t> {
        Searchable { text, folded: MappedFold::new(text) }
    }

    fn units_before(&self, at: usize) -> usize {
        self.units_in(0..at)
    }

    fn units_in(&self, range: std::ops::Range<usize>) -> usize {
        let text = self.text.get(range).unwrap_or("");
        if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
    }
}

/// What a cell says at length.
#[derive(Debug, Serialize)]
struct CellText<'r> {
    answer: &'r str,
    marks: Vec<Mark>,
    criteria: Vec<(usize, u8, &'r str)>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stale: &'r [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    invented: &'r [String],
    keys: [String; 3],
}

/// The cells' texts, in the order of `rows`; `seekers` are parallel to them.
pub(super) fn pack_cells(
    rows: &[Row],
    seekers: &[Option<&Seeker>],
    criteria: &mut Names<CriterionId>,
    shelf: &dyn PackShelf,
) -> Vec<String> {
    let chunks = rows.chunks(CELLS_IN_PACK).zip(seekers.chunks(CELLS_IN_PACK));
    let texts = chunks.map(|(rows, seekers)| -> Vec<CellText<'_>> {
        rows.iter().zip(seekers).map(|(row, seeker)| cell_text(row, *seeker, criteria)).collect()
    });
    texts.map(|texts| pack(&texts, shelf)).collect()
}

fn cell_text<'r>(row: &'r Row, seeker: Option<&Seeker>, criteria: &mut Names<CriterionId>) -> CellText<'r> {
    let short = |key: &crate::action::ActionKey| key.to_string().chars().take(KEY_DIGITS).collect();
    let scores = row.criteria.iter();
    CellText {
        answer: &row.answer,
        marks: seeker.map(|seeker| seeker.marks(&Searchable::new(&row.answer))).unwrap_or_default(),
        criteria: scores.map(|c| (criteria.place(c.criterion.clone()), c.points(), c.reasoning.as_str())).collect(),
        stale: &row.stale_facts,
        invented: &row.invented,
        keys: [&row.keys.compress, &row.keys.answer, &row.keys.judge].map(short),
    }
}

/// A context with the places of the facts that the probes asked of it expect, by the probes' places in the page.
#[derive(Debug, Serialize)]
struct MarkedContext<'t> {
    text: &'t str,
    marks: BTreeMap<usize, Vec<Mark>>,
}

/// The contexts, and for each (in the order given) its pack: `None` of one that is not at hand, -1 of one that
/// nobody but its provider can read.
pub(super) fn pack_contexts(
    contexts: &[(Option<&ContextText>, BTreeMap<usize, &Seeker>)],
    shelf: &dyn PackShelf,
) -> (Vec<String>, Vec<Option<i64>>) {
    let (mut packs, mut homes) = (Vec::new(), Vec::new());
    let mut open: BTreeMap<usize, MarkedContext<'_>> = BTreeMap::new();
    let mut bytes = 0;
    for (place, (context, seekers)) in contexts.iter().enumerate() {
        homes.push(match context {
            None => None,
            Some(ContextText::Opaque) => Some(-1),
            Some(ContextText::Readable(text)) => {
                bytes += text.len();
                open.insert(place, marked(text, seekers));
                i64::try_from(packs.len()).ok()
            }
        });
        if bytes > CONTEXT_PACK_BYTES {
            packs.push(pack(&std::mem::take(&mut open), shelf));
            bytes = 0;
        }
    }
    if !open.is_empty() {
        packs.push(pack(&open, shelf));
    }
    (packs, homes)
}

fn marked<'t>(text: &'t str, seekers: &BTreeMap<usize, &Seeker>) -> MarkedContext<'t> {
    let searchable = Searchable::new(text);
    let marks = seekers.iter().map(|(probe, seeker)| (*probe, seeker.marks(&searchable)));
    MarkedContext { text, marks: marks.filter(|(_, marks)| !marks.is_empty()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_as_scripts_do() {
        let probe: Probe = serde_json::from_str(
            r#"{"id":"p","type":"recall","question":"?","expected_facts":["port 8081","8081"],
                "superseded_facts":["8080"]}"#,
        )
        .unwrap();
        let marks = Seeker::new(&probe).marks(&Searchable::new("🦀 Port\n8081, not 8080"));
        assert_eq!(marks, [(0, 3, 9), (1, 8, 4), (-1, 18, 4)]);
    }
}
