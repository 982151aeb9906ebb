//! What the page is made from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use serde::Serialize;

use super::pack::PackShelf;
use crate::action::{ActionKey, Digest};
use crate::judge::Rubric;
use crate::locale::Locale;
use crate::probe::Probe;
use crate::results::{ListedRow, Row, RowError, Summary};

/// Everything that the page shows. Texts are untrusted: the page shows them as they are and runs none of them.
#[derive(Clone)]
pub struct PageInput<'a> {
    /// The label of the result set.
    pub label: &'a str,
    /// The language of the page's own words.
    pub locale: Locale,
    /// What ran, as names and values for people; shown in this order.
    pub facts: Vec<(String, String)>,
    /// What must be known before a figure is believed (stand-in model, weak judge, pending cells), in sentences.
    pub warnings: Vec<String>,
    /// Notes on the method, in sentences.
    pub notes: Vec<String>,
    /// What changed since the baseline, in sentences: by method, and first for the mean over methods.
    pub changes: Vec<(String, Vec<String>)>,
    /// Who compressed, answered and judged.
    pub models: Vec<ModelLine>,
    /// The methods, in the order of tables, named as `summary` names them.
    pub methods: Vec<MethodLine>,
    /// What the answers were graded by.
    pub rubric: &'a Rubric,
    /// The probes of each fixture, by its name. A row without its probe is shown without question and facts.
    pub banks: BTreeMap<&'a str, &'a [Probe]>,
    /// The judged cells, in the order of lists.
    pub rows: &'a [ListedRow],
    /// Reads some of them whole, by their places in the list.
    pub whole: &'a WholeRows<'a>,
    /// Levels, breakdowns and the comparison.
    pub summary: &'a Summary,
    /// The contexts that are still at hand. The page says which are not.
    pub contexts: BTreeMap<ContextPlace, PageContext<'a>>,
    /// Where the packs of earlier pages are kept.
    pub packs: &'a (dyn PackShelf + Sync),
    /// What the run cost.
    pub costs: Vec<CostLine>,
    /// What failed.
    pub failures: Vec<FailureLine>,
    /// Whether the figures that others published are to stand at the end, apart from what was measured.
    pub reference: bool,
}

/// Reads rows with all that was said.
pub type WholeRows<'a> = dyn Fn(Range<usize>) -> Result<Vec<Row>, RowError> + Sync + 'a;

/// The compression that made a context, its method and its point: an artifact index belongs to these and is no part of
/// the compression.
pub type ContextPlace = (ActionKey, String, u32);

/// A compressed context that is read only when it is needed: where no earlier page was made from it.
#[derive(Clone)]
pub struct PageContext<'a> {
    /// Names what there is to read.
    pub name: Digest,
    /// Reads it; `None` if it is gone or damaged.
    pub read: Rc<dyn Fn() -> Option<ContextText> + 'a>,
}

/// A compressed context as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextText {
    /// Its messages as one text.
    Readable(String),
    /// Only its provider can read it.
    Opaque,
}

/// A stage and who serves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelLine {
    /// The stage: `compress`, `answer` or `judge`.
    pub role: String,
    /// The name declared for it.
    pub name: String,
    /// The model, as declared or as the provider names it.
    pub model: String,
}

/// What a method is to the scale of scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Anchor {
    /// An ordinary method.
    #[default]
    Neither,
    /// It keeps everything.
    Ceiling,
    /// It keeps nothing.
    Floor,
}

/// A method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MethodLine {
    /// Its name in the summary.
    pub name: String,
    /// How it compresses, in a word or two.
    pub strategy: String,
    /// The model it asks, if any.
    pub model: Option<String>,
    /// Whether it is the ceiling or the floor.
    pub anchor: Anchor,
}

/// What a part of the run cost. What nobody reported is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CostLine {
    /// The part: a stage by its name, `all`, or anything else in words.
    pub part: String,
    /// Distinct actions.
    pub actions: Option<u64>,
    /// Of those, served from the cache.
    pub cached: Option<u64>,
    /// Input tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
}

/// A cell, or a stage of one, that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailureLine {
    /// Where, as people name it.
    pub place: String,
    /// The stage that failed.
    pub stage: String,
    /// What happened.
    pub message: String,
    /// The method's own fault, not that of the infrastructure.
    pub by_method: bool,
}
