//! The input of the page, and the parts of it that come from a results folder.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use serde::Serialize;

use crate::action::{ActionKey, Digest};
use crate::judge::Rubric;
use crate::plan::{Blame, FailedAction};
use crate::probe::Probe;
use crate::report::breakdowns::{FigureTable, breakdowns};
use crate::report::comparison_notes::{comparison_changes, remarks};
use crate::report::compressions::compressions;
use crate::report::notes::{critical_warnings, has_answers, warnings};
use crate::report::numbers::count;
use crate::report::planted;
use crate::report::translation::{Translation, translation};
use crate::results::{
    Design, ListedRow, Manifest, MethodSummary, ModelInfo, Row, RowError, Summary,
};
use base::locale::Locale;
use sessions::transcript::Message;

/// The content of the page. Texts are untrusted: the page shows them and runs none of them.
#[derive(Clone)]
pub struct PageInput<'a> {
    pub label: &'a str,
    pub locale: Locale,
    /// The design and the version of the run, as names and values.
    pub facts: Vec<(String, String)>,
    /// Warnings without which the figures mislead: weak judges, a scale that measures nothing.
    pub critical: Vec<String>,
    /// Other warnings: a stand-in for a model, few fixtures.
    pub warnings: Vec<String>,
    /// The other notes of the report.
    pub notes: Vec<String>,
    /// What changed since the baseline: for the mean over methods, then by method.
    pub changes: Vec<(String, Vec<String>)>,
    /// The cost of compressions, what contexts say, constraints.
    pub tables: Vec<FigureTable>,
    pub models: Vec<PageModel>,
    /// In the order of tables, with the names of `summary`.
    pub methods: Vec<PageMethod>,
    pub rubric: &'a Rubric,
    /// The probes of each fixture. A row whose probe is missing is shown without question and facts.
    pub banks: BTreeMap<&'a str, &'a [Probe]>,
    pub rows: &'a [ListedRow],
    /// Reads rows with their texts, by position in `rows`.
    pub read_rows: &'a ReadRows<'a>,
    pub summary: &'a Summary,
    /// The contexts that are still in the cache; other contexts are shown as pruned.
    pub contexts: BTreeMap<ContextKey, PageContext<'a>>,
    pub chunks: &'a (dyn ChunkCache + Sync),
    pub costs: Vec<PageCost>,
    pub failures: Vec<PageFailure>,
    /// Whether to show the published scores.
    pub reference: bool,
    /// The sessions that did not change since the run.
    pub sessions: BTreeMap<&'a str, PageSession<'a>>,
    /// On the page of a comparison: each judged method and its baseline.
    pub pairs: Vec<(String, String)>,
}

/// Keeps the chunks of earlier pages, because compression is most of the work.
pub trait ChunkCache {
    fn get_chunk(&self, name: &Digest) -> Option<String>;

    /// Stores a chunk. A cache that can only be read stores nothing.
    fn put_chunk(&self, _name: Digest, _chunk: &str) {}
}

impl ChunkCache for () {
    fn get_chunk(&self, _: &Digest) -> Option<String> {
        None
    }
}

/// Reads rows with their texts.
pub type ReadRows<'a> = dyn Fn(Range<usize>) -> Result<Vec<Row>, RowError> + Sync + 'a;

/// The key of a context's compression, its method and its point. The key of the compression alone does not identify a
/// context, because what is kept verbatim depends on method and point and is not part of the compression.
pub type ContextKey = (ActionKey, String, u32);

/// A compressed context, read only if the cache has no chunk of it.
#[derive(Clone)]
pub struct PageContext<'a> {
    /// The digest of its content.
    pub digest: Digest,
    /// `None` if it is missing or damaged.
    pub read: Rc<dyn Fn() -> Option<ContextText> + 'a>,
}

/// A session, shown as a timeline.
#[derive(Clone, Copy)]
pub struct PageSession<'a> {
    /// The digest of transcript and points.
    pub digest: Digest,
    pub messages: &'a [Message],
    /// The index of the first message that a compression replaces.
    pub start: usize,
    /// The compression points: exclusive indices of messages.
    pub points: &'a [usize],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextText {
    Readable(String),
    /// Only its provider can read it.
    Opaque,
}

/// A stage and its model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct PageModel {
    /// `compress`, `answer` or `judge`.
    pub role: String,
    pub name: String,
    pub model: String,
}

impl PageModel {
    fn new(role: &str, info: &ModelInfo) -> PageModel {
        PageModel {
            role: role.to_owned(),
            name: info.name.clone(),
            model: info.model.clone(),
        }
    }
}

/// The role of a method as an end of the scale of scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleAnchor {
    #[default]
    Neither,
    Ceiling,
    Floor,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageMethod {
    pub name: String,
    /// The name as tables show it; empty if it is the same.
    pub label: String,
    pub strategy: String,
    pub model: Option<String>,
    pub anchor: ScaleAnchor,
}

/// The cost of a part of the run. Figures that were not reported are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageCost {
    /// The name of a stage, or `all`.
    pub part: String,
    pub actions: Option<u64>,
    /// The actions whose results were in the cache.
    pub cached: Option<u64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub usd: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageFailure {
    pub place: String,
    pub stage: String,
    pub message: String,
    /// Whether the method caused the failure, and not the infrastructure.
    pub by_method: bool,
}

impl<'a> PageInput<'a> {
    /// The content that a results folder has; banks and contexts are empty. No times of the manifest are shown.
    pub fn new(
        manifest: &'a Manifest,
        summary: &'a Summary,
        rubric: &'a Rubric,
        rows: &'a [ListedRow],
        read_rows: &'a ReadRows<'a>,
    ) -> PageInput<'a> {
        let design = &manifest.design;
        let tr = translation(design.locale.of_report());
        PageInput {
            label: &summary.label,
            locale: design.locale.of_report(),
            facts: facts(manifest, rows, tr),
            critical: critical_warnings(summary, manifest, tr),
            warnings: warnings(summary, manifest, tr),
            notes: remarks(summary, manifest, tr),
            changes: summary
                .comparison
                .as_ref()
                .map(|comparison| comparison_changes(comparison, tr))
                .unwrap_or_default(),
            tables: compressions(summary, tr)
                .into_iter()
                .chain(breakdowns(summary, tr))
                .chain(planted::tables(summary, tr))
                .collect(),
            models: models(design),
            methods: summary
                .methods
                .iter()
                .map(|(name, method)| page_method(name, method, design))
                .collect(),
            rubric,
            banks: BTreeMap::new(),
            rows,
            read_rows,
            summary,
            contexts: BTreeMap::new(),
            chunks: &(),
            costs: costs(manifest),
            failures: manifest.failures.iter().map(failure).collect(),
            reference: false,
            sessions: BTreeMap::new(),
            pairs: Vec::new(),
        }
    }
}

fn facts(manifest: &Manifest, rows: &[ListedRow], tr: &Translation) -> Vec<(String, String)> {
    let design = &manifest.design;
    let mut facts = vec![
        (tr.fixtures, design.fixtures.len().to_string()),
        (tr.runs, design.runs.compress.to_string()),
    ];
    if has_answers(design) {
        facts.push((tr.cells, count(Some(rows.len() as f64))));
        facts.push((tr.answered_by, model_names(&design.answerers)));
        facts.push((tr.judged_by, model_names(&design.judges)));
    }
    facts.push(("compeval", manifest.version.clone()));
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn model_names(models: &[ModelInfo]) -> String {
    models
        .iter()
        .map(|info| info.model.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn models(design: &Design) -> Vec<PageModel> {
    let compressors = design
        .methods
        .iter()
        .filter_map(|method| method.model.as_ref());
    let answerers = design
        .answerers
        .iter()
        .map(|info| PageModel::new("answer", info));
    let judges = design
        .judges
        .iter()
        .map(|info| PageModel::new("judge", info));
    compressors
        .map(|info| PageModel::new("compress", info))
        .chain(answerers)
        .chain(judges)
        .collect()
}

fn page_method(name: &str, method: &MethodSummary, design: &Design) -> PageMethod {
    let with_answerer = format!("/{}", method.answerer);
    let plain = name.strip_suffix(&with_answerer).unwrap_or(name);
    let info = design.method(name).or_else(|| design.method(plain));
    let anchor = match info {
        Some(info) if info.is_ceiling() => ScaleAnchor::Ceiling,
        Some(info) if info.is_floor() => ScaleAnchor::Floor,
        _ => ScaleAnchor::Neither,
    };
    let model = info
        .and_then(|info| info.model.as_ref())
        .map(|model| model.model.clone());
    let label = translation(design.locale).method_label(name, method);
    PageMethod {
        name: name.to_owned(),
        label,
        strategy: method.strategy.clone(),
        model,
        anchor,
    }
}

/// Actions by stage; tokens and money are known for the whole run only.
fn costs(manifest: &Manifest) -> Vec<PageCost> {
    let stages = manifest
        .stages
        .iter()
        .filter(|(_, counts)| counts.actions > 0);
    let by_stage = stages.map(|(stage, counts)| PageCost {
        part: stage.name().to_owned(),
        actions: Some(counts.actions),
        cached: Some(counts.cached),
        ..PageCost::default()
    });
    let all = PageCost {
        part: "all".to_owned(),
        actions: Some(manifest.stages.values().map(|counts| counts.actions).sum()),
        cached: Some(manifest.stages.values().map(|counts| counts.cached).sum()),
        input_tokens: manifest.usage.input.map(|tokens| tokens.0),
        output_tokens: manifest.usage.output.map(|tokens| tokens.0),
        usd: manifest.usd.map(|usd| usd.0),
    };
    by_stage.chain([all]).collect()
}

fn failure(failure: &FailedAction) -> PageFailure {
    let hint = failure
        .hint
        .as_ref()
        .map(|hint| format!("\n{hint}"))
        .unwrap_or_default();
    PageFailure {
        place: failure.place.to_string(),
        stage: failure.stage.name().to_owned(),
        message: format!("{}{hint}", failure.message),
        by_method: failure.blame == Blame::Method,
    }
}
