//! The input of the page, and the parts of it that come from a results folder.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use crate::action::ActionKey;
use crate::judge::Rubric;
use crate::plan::{Blame, FailedAction};
use crate::probe::Probe;
use crate::report::comparison_notes::remarks;
use crate::report::details::details;
use crate::report::document::{Block, Section};
use crate::report::figures::count;
use crate::report::notes::{critical_warnings, has_answers, warnings};
use crate::report::screen::main_table;
use crate::report::translation::{Translation, translation};
use crate::results::{Design, Manifest, MethodSummary, ModelInfo, Row, Summary};
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
    /// The sections of the report, without its notes.
    pub sections: Vec<Section>,
    /// In the order of tables, with the names of `summary`.
    pub methods: Vec<PageMethod>,
    pub rubric: &'a Rubric,
    /// The probes of each fixture. A row whose probe is missing is shown without question and facts.
    pub banks: BTreeMap<&'a str, &'a [Probe]>,
    pub rows: &'a [Row],
    pub summary: &'a Summary,
    /// The contexts that are still in the cache; other contexts are shown as pruned.
    pub contexts: BTreeMap<ContextKey, ReadContext<'a>>,
    pub failures: Vec<PageFailure>,
    /// The sessions that did not change since the run.
    pub sessions: BTreeMap<&'a str, PageSession<'a>>,
    /// On the page of a comparison: each judged method and its baseline.
    pub pairs: Vec<(String, String)>,
}

/// The key of a context's compression, its method and its point. The key of the compression alone does not identify a
/// context, because what is kept verbatim depends on method and point and is not part of the compression.
pub type ContextKey = (ActionKey, String, u32);

/// Reads a compressed context, because all of them may need too much memory; `None` if it is missing or damaged. The inner
/// `None` is a context that only its provider can read.
pub type ReadContext<'a> = Rc<dyn Fn() -> Option<Option<String>> + 'a>;

/// A session, shown as a timeline.
#[derive(Clone, Copy)]
pub struct PageSession<'a> {
    pub messages: &'a [Message],
    /// The index of the first message that a compression replaces.
    pub start: usize,
    /// The compression points: exclusive indices of messages.
    pub points: &'a [usize],
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
        rows: &'a [Row],
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
            sections: overview(summary, manifest)
                .into_iter()
                .chain(details(summary, manifest))
                .filter(|section| section.id != "notes")
                .collect(),
            methods: summary
                .methods
                .iter()
                .map(|(name, method)| page_method(name, method, design))
                .collect(),
            rubric,
            banks: BTreeMap::new(),
            rows,
            summary,
            contexts: BTreeMap::new(),
            failures: manifest.failures.iter().map(failure).collect(),
            sessions: BTreeMap::new(),
            pairs: Vec::new(),
        }
    }
}

/// The one table of the first screen of a terminal: score, retention, facts kept, size.
fn overview(summary: &Summary, manifest: &Manifest) -> Option<Section> {
    let tr = translation(manifest.design.locale.of_report());
    let (table, _) = main_table(summary, manifest, usize::MAX, tr);
    let title = tr.pick("Scores", "得分");
    Section::new("overview", title, [Block::Table(table)]).filter(|_| has_answers(&manifest.design))
}

fn facts(manifest: &Manifest, rows: &[Row], tr: &Translation) -> Vec<(String, String)> {
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
