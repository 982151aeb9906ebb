//! Sheets: the rows of one context together. A full sheet is kept in the cache under a digest of all that its rows are
//! made of, so that where nothing changed no answer and no grade is read, and no row is made, a second time.

use std::collections::{BTreeMap, HashMap};

use crate::action::{Digest, DigestBuilder};
use crate::compress::ContextRef;
use crate::pipeline::{CompressCell, Pipeline};
use crate::plan::{JudgeTask, Kept};
use crate::results::ROWS;
use crate::units::Usd;

/// The sheets of contexts that were begun.
pub(super) type Sheets = HashMap<CompressCell, Sheet>;

/// The rows of one context, by their places in the matrix.
#[derive(Debug)]
pub(super) struct Sheet {
    /// Cells that are not judged yet.
    pub(super) open: u64,
    pub(super) lines: BTreeMap<u64, Line>,
    pub(super) fate: Fate,
}

/// The row of a judged cell.
#[derive(Debug)]
pub(super) struct Line {
    /// Names all that the row is made of.
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
    /// Rows are told as they come, and not kept: one is missing, or they stand on more than their names say.
    Torn,
}

impl Sheet {
    pub(super) fn new(context: &ContextRef, cells: u64) -> Sheet {
        // How long an opaque context is, its provider says, in words that no digest here names.
        let is_readable = matches!(context, ContextRef::Readable { .. });
        let fate = if is_readable { Fate::Waiting } else { Fate::Torn };
        Sheet { open: cells, lines: BTreeMap::new(), fate }
    }

    /// Names the sheet.
    pub(super) fn name(&self) -> Digest {
        let mut builder = DigestBuilder::new("compeval sheet v1");
        builder.field("version", env!("CARGO_PKG_VERSION")).field("rows", ROWS.to_le_bytes());
        for line in self.lines.values() {
            builder.field("row", line.name.0);
        }
        builder.finish()
    }

    /// The rows of a text that was kept, and what is odd about the context; `None` if it is no sheet like this one.
    pub(super) fn read<'t>(&self, text: &'t str) -> Option<(Vec<String>, &'t str)> {
        let (head, rows) = text.split_once('\n')?;
        let is_whole = rows.lines().count() == self.lines.len() && rows.ends_with('\n');
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

/// Names all that the row of a judged cell is made of.
pub(super) fn name(pipeline: &Pipeline, task: &JudgeTask, kept: &Kept) -> Digest {
    let place = pipeline.name_judge(&task.cell);
    let (context, answer) = (&task.context, &task.answer);
    let digests = task.context.texts.loaded().digests;
    let mut builder = DigestBuilder::new("compeval row v1");
    builder.field("rubric", pipeline.rubric.digest().0).field("tail", [pipeline.settings.tail as u8]);
    for digest in [digests.transcript, digests.points, digests.bank] {
        builder.field("fixture", digest.0);
    }
    builder.field("place", place.to_string());
    for number in [place.point.0, place.run, task.cell.answer.answer_n, task.cell.judge_n] {
        builder.field("number", number.to_le_bytes());
    }
    for (key, out, cost) in [
        (context.key, context.reference.digest(), context.cost),
        (answer.key, answer.out, answer.cost),
        (kept.key, kept.out, kept.cost),
    ] {
        let cost = cost.map_or(Vec::new(), |Usd(usd)| usd.to_le_bytes().to_vec());
        builder.field("action", key.0.0).field("output", out.0).field("cost", cost);
    }
    builder.finish()
}
