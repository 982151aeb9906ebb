//! Sheets: the rows of one context together, with the actions they stand on. A full sheet is kept in the cache under a
//! name for all that its rows are made of besides answers and grades. So where nothing changed no key below a context
//! is made, no answer and no grade is read, and no row is made, a second time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest, DigestBuilder};
use crate::pipeline::{CompressCell, Pipeline};
use crate::plan::{Kept, Preparer, READER, SettledAnswer, SettledContext};
use crate::results::{ListedRow, ROWS};
use crate::units::Usd;

/// The sheets of contexts that were begun.
pub(super) type Sheets = HashMap<CompressCell, Sheet>;

/// The rows of one context as they come.
#[derive(Debug)]
pub(super) struct Sheet {
    /// How many rows it will have.
    cells: u64,
    /// The rows so far, by places in the matrix; `None` if one is missing, or too many other sheets are open.
    entries: Option<BTreeMap<u64, Entry>>,
}

/// A row and what it stands on.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: String,
    pub(super) row: Arc<ListedRow>,
    pub(super) stands: [Standing; 2],
}

/// An action with the output that a row was made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Standing {
    pub(super) key: ActionKey,
    pub(super) out: Digest,
    pub(super) cost: Option<Usd>,
}

impl From<&SettledAnswer> for Standing {
    fn from(answer: &SettledAnswer) -> Standing {
        Standing { key: answer.key, out: answer.out, cost: answer.cost }
    }
}

impl From<&Kept> for Standing {
    fn from(kept: &Kept) -> Standing {
        Standing { key: kept.key, out: kept.out, cost: kept.cost }
    }
}

impl Standing {
    /// The same below a context that was spared, or was not.
    pub(super) fn kept(self, spared: bool) -> Kept {
        Kept { key: self.key, out: self.out, cost: self.cost, spared }
    }
}

/// A full sheet, as it lies in the cache; its lists are in the order of the matrix.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FullSheet<'t> {
    /// What is odd about the context.
    pub(super) warnings: Vec<String>,
    /// Answer and judgement of each row.
    pub(super) stands: Vec<[Standing; 2]>,
    pub(super) rows: Vec<Arc<ListedRow>>,
    #[serde(borrow)]
    pub(super) lines: Cow<'t, str>,
}

impl Sheet {
    pub(super) fn new(cells: u64, is_kept: bool) -> Sheet {
        Sheet { cells, entries: is_kept.then(BTreeMap::new) }
    }

    /// Adds the row of a place. Returns whether the sheet is full.
    pub(super) fn add(&mut self, ordinal: u64, entry: Entry) -> bool {
        let Some(entries) = &mut self.entries else { return false };
        entries.insert(ordinal, entry);
        entries.len() as u64 == self.cells
    }

    /// It will never be full.
    pub(super) fn tear(&mut self) {
        self.entries = None;
    }

    /// The sheet as it is kept.
    pub(super) fn full(self, warnings: Vec<String>) -> Option<FullSheet<'static>> {
        let entries = self.entries?;
        let lines = entries.values().map(|entry| entry.line.as_str()).collect();
        let stands = entries.values().map(|entry| entry.stands).collect();
        Some(FullSheet { warnings, stands, rows: entries.into_values().map(|entry| entry.row).collect(), lines })
    }
}

impl<'t> FullSheet<'t> {
    /// Reads a sheet that was kept.
    pub(super) fn read(bytes: &'t [u8]) -> Option<FullSheet<'t>> {
        postcard::from_bytes(bytes).ok()
    }

    /// The bytes to keep.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        postcard::to_stdvec(self).ok()
    }
}

/// Names the sheet of a context; `None` of one whose rows stand on more than names say.
pub(super) fn name(preparer: &Preparer<'_>, context: &SettledContext) -> Option<Digest> {
    let asked = preparer.asked_below(context)?;
    let (pipeline, runs) = (preparer.pipeline(), preparer.matrix().runs());
    let (digests, place) = (context.texts.loaded().digests, pipeline.name_compress(&context.cell));
    let mut builder = DigestBuilder::new("compeval sheet v3");
    builder.field("version", env!("CARGO_PKG_VERSION")).field("rows", ROWS.to_le_bytes());
    builder.field("reader", READER.to_le_bytes()).field("asked", asked.0);
    builder.field("rubric", pipeline.rubric.digest().0).field("tail", [pipeline.settings.tail as u8]);
    for digest in [digests.transcript, digests.points, digests.bank] {
        builder.field("fixture", digest.0);
    }
    builder.field("fixture", place.fixture.as_bytes()).field("method", place.method.as_bytes());
    builder.field("point", place.point.0.to_le_bytes()).field("run", place.run.to_le_bytes());
    for number in [runs.answer, runs.judge] {
        builder.field("runs", number.to_le_bytes());
    }
    names(&mut builder, preparer, context);
    let cost = context.cost.map_or(Vec::new(), |Usd(usd)| usd.to_le_bytes().to_vec());
    builder.field("context", context.key.0.0).field("output", context.reference.digest().0).field("cost", cost);
    Some(builder.finish())
}

/// The names that rows call probes, answerers and judges by.
fn names(builder: &mut DigestBuilder, preparer: &Preparer<'_>, context: &SettledContext) {
    let Pipeline { answerers, judges, .. } = preparer.pipeline();
    let cell = context.cell;
    for probe in preparer.matrix().probes(cell.chain.fixture, cell.point) {
        builder.field("probe", (probe.0 as u64).to_le_bytes());
    }
    let readers = preparer.matrix().readers(cell.chain.method).iter().filter_map(|reader| answerers.get(reader.0));
    for answerer in readers {
        builder.field("answerer", answerer.name.0.as_bytes());
    }
    for judge in judges {
        builder.field("judge", judge.name.0.as_bytes());
    }
}
