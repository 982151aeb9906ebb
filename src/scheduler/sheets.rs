//! Sheets: the rows of one context together, with the actions they stand on. A full sheet is kept in the cache under a
//! name for all that its rows are made of besides answers and grades. So where nothing changed no key below a context
//! is made, no answer and no grade is read, and no row is made, a second time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest, DigestBuilder};
use crate::pipeline::{CompressCell, Pipeline};
use crate::plan::{CurrentSources, Preparer, READER, Resolved, ResolvedAnswer, ResolvedContext};
use crate::results::{ListedRow, ROWS};
use crate::units::Usd;

/// Contexts whose rows are held at once to be kept as sheets, so that memory stays flat where all wait for one judge.
const MOST: usize = 256;

/// The sheets of contexts that were begun.
#[derive(Debug, Default)]
pub(super) struct Sheets {
    open: HashMap<CompressCell, Sheet>,
    /// Contexts without one: a row is missing, or too many others were open.
    torn: HashSet<CompressCell>,
}

/// The rows of one context as they come, by places in the matrix.
pub(super) type Sheet = BTreeMap<u64, Entry>;

/// A row and what it stands on.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: String,
    pub(super) row: Arc<ListedRow>,
    pub(super) stands: [Footing; 2],
}

/// An action with the output that a row was made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Footing {
    pub(super) key: ActionKey,
    pub(super) out: Digest,
    pub(super) cost: Option<Usd>,
}

impl From<&ResolvedAnswer> for Footing {
    fn from(answer: &ResolvedAnswer) -> Footing {
        Footing { key: answer.key, out: answer.out, cost: answer.cost }
    }
}

impl From<&Resolved> for Footing {
    fn from(kept: &Resolved) -> Footing {
        Footing { key: kept.key, out: kept.out, cost: kept.cost }
    }
}

impl Footing {
    /// The same below a context that was unchanged, or was not.
    pub(super) fn kept(self, unchanged: bool) -> Resolved {
        Resolved { key: self.key, out: self.out, cost: self.cost, unchanged }
    }
}

/// A full sheet, as it lies in the cache; its lists are in the order of the matrix.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FullSheet<'t> {
    /// What is odd about the context.
    pub(super) warnings: Vec<String>,
    /// Answer and judgement of each row.
    pub(super) stands: Vec<[Footing; 2]>,
    pub(super) rows: Vec<Arc<ListedRow>>,
    #[serde(borrow)]
    pub(super) lines: Cow<'t, str>,
}

impl Sheets {
    /// Adds the row of a place to the sheet of a context, which is to have `cells` rows. Returns a sheet that is full.
    pub(super) fn add(&mut self, context: CompressCell, cells: u64, ordinal: u64, entry: Entry) -> Option<Sheet> {
        if !self.open.contains_key(&context) && self.open.len() >= MOST {
            self.torn.insert(context);
        }
        if self.torn.contains(&context) {
            return None;
        }
        let sheet = self.open.entry(context).or_default();
        sheet.insert(ordinal, entry);
        if sheet.len() as u64 == cells { self.open.remove(&context) } else { None }
    }

    /// The sheet of a context will never be full.
    pub(super) fn tear(&mut self, context: CompressCell) {
        self.open.remove(&context);
        self.torn.insert(context);
    }
}

impl<'t> FullSheet<'t> {
    pub(super) fn of(sheet: Sheet, warnings: Vec<String>) -> FullSheet<'static> {
        let lines = sheet.values().map(|entry| entry.line.as_str()).collect();
        let stands = sheet.values().map(|entry| entry.stands).collect();
        FullSheet { warnings, stands, rows: sheet.into_values().map(|entry| entry.row).collect(), lines }
    }

    /// Reads a sheet that was kept.
    pub(super) fn read(bytes: &'t [u8]) -> Option<FullSheet<'t>> {
        postcard::from_bytes(bytes).ok()
    }

    /// The bytes to keep.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        postcard::to_stdvec(self).ok()
    }
}

/// Names the sheet of a context that was read from `raw`; `None` of one whose rows stand on more than names say.
pub(super) fn name(preparer: &Preparer<'_>, context: &ResolvedContext, raw: Digest) -> Option<Digest> {
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
    // what is odd about a context depends on how it is read
    let task = context.task();
    let (method, current) = (task.method(pipeline)?, CurrentSources::of(pipeline, &task));
    builder.field("strategy", method.strategy.name()).field("raw", raw.0);
    builder.field("prompt", current.prompt.map_or(Digest::of(""), |prompt| prompt.digest).0);
    let cost = context.cost.map_or(Vec::new(), |Usd(usd)| usd.to_le_bytes().to_vec());
    builder.field("context", context.key.0.0).field("output", context.reference.digest().0).field("cost", cost);
    Some(builder.finish())
}

/// The names that rows call probes, answerers and judges by.
fn names(builder: &mut DigestBuilder, preparer: &Preparer<'_>, context: &ResolvedContext) {
    let Pipeline { answerers, judges, .. } = preparer.pipeline();
    let cell = context.cell;
    for probe in preparer.matrix().probes(cell.chain.fixture, cell.point) {
        builder.field("probe", (probe.0 as u64).to_le_bytes());
    }
    let readers =
        preparer.matrix().method_answerers(cell.chain.method).iter().filter_map(|reader| answerers.get(reader.0));
    for answerer in readers {
        builder.field("answerer", answerer.name.0.as_bytes());
    }
    for judge in judges {
        builder.field("judge", judge.name.0.as_bytes());
    }
}
