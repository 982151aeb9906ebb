//! Long texts with their marks, in packs that are opened only when somebody looks.

use std::collections::BTreeMap;

use serde::Serialize;

use super::columns::Names;
use super::input::{ContextText, PageContext, WholeRows};
use super::pack::{PackShelf, json, pack};
use crate::action::{Digest, DigestBuilder};
use crate::judge::CriterionId;
use crate::probe::{Fact, FactFinder, Probe};
use crate::results::{ListedRow, Row, RowError};
use crate::transcript::MappedFold;

/// The version of all that makes packs from rows, contexts and facts: raised when marks or texts would be others.
const PACKS: u32 = 2;
/// Cells in one pack.
pub(super) const CELLS_IN_PACK: usize = 256;
/// Digits of a key that are shown; the cache takes any prefix that is unique.
const KEY_DIGITS: usize = 16;

/// A fact in a text: which (expected ones count from 0 up, superseded ones from -1 down), where it begins and how
/// long it is, in UTF-16 units, as scripts count.
type Mark = (i64, usize, usize);

/// The facts of a probe, ready to be looked for.
#[derive(Debug)]
pub(super) struct Seeker {
    /// Names the facts.
    name: Digest,
    finders: Vec<(i64, FactFinder)>,
}

impl Seeker {
    /// Looks for what `probe` expects and for what no longer holds.
    pub(super) fn new(probe: &Probe) -> Seeker {
        let finders = |facts: &[Fact]| -> Vec<FactFinder> { FactFinder::all(facts) };
        let expected = finders(&probe.expected_facts).into_iter().zip(0..);
        let superseded = finders(&probe.superseded_facts).into_iter().zip((i64::MIN..0).rev());
        let name = Digest::of(json(&(&probe.expected_facts, &probe.superseded_facts)));
        Seeker { name, finders: expected.chain(superseded).map(|(finder, number)| (number, finder)).collect() }
    }

    /// Where they stand in the text behind `folded`, in rising order.
    fn marks(&self, text: &Searchable<'_>) -> Vec<Mark> {
        let found = self
            .finders
            .iter()
            .flat_map(|(number, finder)| finder.find(&text.folded).into_iter().map(move |range| (*number, range)));
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

/// The cells' texts, in the order of `rows`, which `whole` reads whole; `seekers` are parallel to them.
///
/// # Errors
/// A row that cannot be read whole.
pub(super) fn pack_cells(
    (rows, whole): (&[ListedRow], &WholeRows<'_>),
    seekers: &[Option<&Seeker>],
    criteria: &Names<CriterionId>,
    shelf: &dyn PackShelf,
) -> Result<Vec<String>, RowError> {
    let ids: Vec<&str> = criteria.all().iter().map(|id| &*id.0).collect();
    let chunks = rows.chunks(CELLS_IN_PACK).zip(seekers.chunks(CELLS_IN_PACK)).enumerate();
    let packed = chunks.map(|(number, (rows, seekers))| {
        let mut name = name_of("report cells v1");
        name.field("criteria", ids.join("\n"));
        for (row, seeker) in rows.iter().zip(seekers) {
            name.field("row", row.name.0).field("facts", seeker.map_or([0; 32], |seeker| seeker.name.0));
        }
        let first = number * CELLS_IN_PACK;
        pack(shelf, name.finish(), || {
            let whole = whole(first..first + rows.len())?;
            let texts = whole.iter().zip(seekers).map(|(row, seeker)| cell_text(row, *seeker, criteria));
            Ok(json(&texts.collect::<Vec<CellText<'_>>>()))
        })
    });
    packed.collect()
}

/// The beginning of a pack's name.
fn name_of(kind: &str) -> DigestBuilder {
    let mut name = DigestBuilder::new(kind);
    name.field("version", env!("CARGO_PKG_VERSION")).field("packs", PACKS.to_le_bytes());
    name
}

fn cell_text<'r>(row: &'r Row, seeker: Option<&Seeker>, criteria: &Names<CriterionId>) -> CellText<'r> {
    let short = |key: &crate::action::ActionKey| key.to_string().chars().take(KEY_DIGITS).collect();
    let scores = row.criteria.iter();
    CellText {
        answer: &row.answer,
        marks: seeker.map(|seeker| seeker.marks(&Searchable::new(&row.answer))).unwrap_or_default(),
        criteria: scores
            .filter_map(|c| Some((criteria.find(&c.criterion)?, c.points(), c.reasoning.as_str())))
            .collect(),
        stale: &row.stale_facts,
        invented: &row.invented,
        keys: [&row.keys.compress, &row.keys.answer, &row.keys.judge].map(short),
    }
}

/// A context as the page opens it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum MarkedContext<'t> {
    /// With the places of the facts that the probes asked of it expect, by the probes' places in the page.
    Readable { text: &'t str, marks: BTreeMap<usize, Vec<Mark>> },
    /// Nobody but its provider can read it.
    Opaque { absent: &'static str },
}

/// The packs of contexts, in the order given; `None` of one that is not at hand.
pub(super) fn pack_contexts(
    contexts: &[(Option<&PageContext<'_>>, BTreeMap<usize, &Seeker>)],
    shelf: &dyn PackShelf,
) -> Vec<Option<String>> {
    contexts.iter().map(|(context, seekers)| pack_context((*context)?, seekers, shelf)).collect()
}

fn pack_context(
    context: &PageContext<'_>,
    seekers: &BTreeMap<usize, &Seeker>,
    shelf: &dyn PackShelf,
) -> Option<String> {
    let mut name = name_of("report context v1");
    name.field("context", context.name.0);
    for (probe, seeker) in seekers {
        name.field("probe", (*probe as u64).to_le_bytes()).field("facts", seeker.name.0);
    }
    let read = || (context.read)().map(|text| json(&marked(&text, seekers))).ok_or(());
    pack(shelf, name.finish(), read).ok()
}

fn marked<'t>(context: &'t ContextText, seekers: &BTreeMap<usize, &Seeker>) -> MarkedContext<'t> {
    let ContextText::Readable(text) = context else { return MarkedContext::Opaque { absent: "opaque" } };
    let searchable = Searchable::new(text);
    let marks = seekers.iter().map(|(probe, seeker)| (*probe, seeker.marks(&searchable)));
    MarkedContext::Readable { text, marks: marks.filter(|(_, marks)| !marks.is_empty()).collect() }
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
