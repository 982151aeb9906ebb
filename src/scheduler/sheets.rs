//! Sheets: the rows of one context together. A full sheet is kept in the cache under a digest of all that its rows are
//! made of, so that where nothing changed no answer and no grade is read, and no row is made, a second time.

use std::collections::{BTreeMap, HashMap};

use memchr::memchr_iter;

use crate::action::{ActionKey, Digest, DigestBuilder};
use crate::compress::ContextRef;
use crate::pipeline::{CompressCell, Pipeline};
use crate::plan::{JudgeTask, Kept, SettledContext};
use crate::results::ROWS;
use crate::units::Usd;

/// The sheets of contexts that were begun.
pub(super) type Sheets = HashMap<CompressCell, Sheet>;

/// The rows of one context, by their places in the matrix.
#[derive(Debug)]
pub(super) struct Sheet {
    /// Names what all rows are made of.
    common: Digest,
    /// Cells that are not judged yet.
    pub(super) open: u64,
    pub(super) lines: BTreeMap<u64, Line>,
    pub(super) fate: Fate,
}

/// The row of a judged cell.
#[derive(Debug)]
pub(super) struct Line {
    /// Names what the row is made of, besides what is common to all.
    pub(super) name: Digest,
    /// The row; `None` while nobody needs it.
    pub(super) row: Option<String>,
    pub(super) task: JudgeTask,
    pub(super) kept: Kept,
}

/// What becomes of the rows of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// All is cached so far: the rows are looked up when it is full.
    Waiting,
    /// Rows are told as they come, and kept when it is full.
    Filling,
    /// Rows are told as they come, and not kept: one is missing, they stand on more than their names say, or too many
    /// other sheets are open.
    Torn,
}

impl Sheet {
    pub(super) fn new(pipeline: &Pipeline, context: &SettledContext, cells: u64, is_kept: bool) -> Sheet {
        // How long an opaque context is, its provider says, in words that no digest here names.
        let is_readable = matches!(context.reference, ContextRef::Readable { .. });
        let fate = if is_readable && is_kept { Fate::Waiting } else { Fate::Torn };
        Sheet { common: common(pipeline, context), open: cells, lines: BTreeMap::new(), fate }
    }

    /// Names the sheet.
    pub(super) fn name(&self) -> Digest {
        let mut builder = DigestBuilder::new("compeval rows v1");
        builder.field("common", self.common.0);
        for line in self.lines.values() {
            builder.field("row", line.name.0);
        }
        builder.finish()
    }

    /// The rows of a text that was kept, and what is odd about the context; `None` if it is no sheet like this one.
    pub(super) fn read<'t>(&self, text: &'t str) -> Option<(Vec<String>, &'t str)> {
        let (head, rows) = text.split_once('\n')?;
        let is_whole = memchr_iter(b'\n', rows.as_bytes()).count() == self.lines.len() && rows.ends_with('\n');
        Some((serde_json::from_str(head).ok()?, rows)).filter(|_| is_whole)
    }

    /// The sheet as it is kept; `None` if a row is missing.
    pub(super) fn text(&self, warnings: &[String]) -> Option<String> {
        if self.fate == Fate::Torn {
            return None;
        }
        let mut text = serde_json::to_string(warnings).ok()?;
        text.push('\n');
        for line in self.lines.values() {
            text.push_str(line.row.as_deref()?);
        }
        Some(text)
    }
}

/// Names what all rows of a context are made of.
fn common(pipeline: &Pipeline, context: &SettledContext) -> Digest {
    let (digests, place) = (context.texts.loaded().digests, pipeline.name_compress(&context.cell));
    let mut builder = DigestBuilder::new("compeval sheet v2");
    builder.field("version", env!("CARGO_PKG_VERSION")).field("rows", ROWS.to_le_bytes());
    builder.field("rubric", pipeline.rubric.digest().0).field("tail", [pipeline.settings.tail as u8]);
    for digest in [digests.transcript, digests.points, digests.bank] {
        builder.field("fixture", digest.0);
    }
    builder.field("fixture", place.fixture.as_bytes()).field("method", place.method.as_bytes());
    builder.field("point", place.point.0.to_le_bytes()).field("run", place.run.to_le_bytes());
    for answerer in &pipeline.answerers {
        builder.field("answerer", answerer.name.0.as_bytes());
    }
    for judge in &pipeline.judges {
        builder.field("judge", judge.name.0.as_bytes());
    }
    add_action(&mut builder, context.key, context.reference.digest(), context.cost);
    builder.finish()
}

/// Names what the row of a judged cell is made of besides: its place among what `common` names, and its actions.
pub(super) fn own(task: &JudgeTask, kept: &Kept) -> Digest {
    let (answer, judge) = (&task.cell.answer, &task.cell);
    let mut builder = DigestBuilder::new("compeval row v2");
    for index in [answer.probe.0, answer.answerer.0, judge.judge.0] {
        builder.field("index", (index as u64).to_le_bytes());
    }
    builder.field("answer_n", answer.answer_n.to_le_bytes()).field("judge_n", judge.judge_n.to_le_bytes());
    add_action(&mut builder, task.answer.key, task.answer.out, task.answer.cost);
    add_action(&mut builder, kept.key, kept.out, kept.cost);
    builder.finish()
}

fn add_action(builder: &mut DigestBuilder, key: ActionKey, out: Digest, cost: Option<Usd>) {
    let cost = cost.map_or(Vec::new(), |Usd(usd)| usd.to_le_bytes().to_vec());
    builder.field("action", key.0.0).field("output", out.0).field("cost", cost);
}
