//! The page's input from what a results folder holds.

use std::collections::BTreeMap;

use super::input::{Anchor, CostLine, FailureLine, MethodLine, ModelLine, PageInput, WholeRows};
use crate::judge::Rubric;
use crate::report::changes::changes;
use crate::report::figures::count;
use crate::report::notes::{about_comparison, caveats, confounds, scale_warning};
use crate::report::words::{Words, words};
use crate::results::{Asked, Blame, Design, ListedRow, Manifest, MethodSummary, Summary};
use crate::units::Tokens;

impl<'a> PageInput<'a> {
    /// A page of a result set, without what lies outside its folder: banks and contexts are empty, to be filled in.
    /// No time of the manifest is shown. `rubric` gives the criteria their names.
    pub fn new(
        manifest: &'a Manifest,
        summary: &'a Summary,
        rubric: &'a Rubric,
        (rows, whole): (&'a [ListedRow], &'a WholeRows<'a>),
    ) -> PageInput<'a> {
        let design = &manifest.design;
        let words = words(design.locale);
        let mut notes = confounds(summary, design, words);
        notes.extend(summary.comparison.iter().flat_map(|comparison| about_comparison(comparison, words)));
        PageInput {
            label: &summary.label,
            locale: design.locale,
            facts: facts(manifest, rows, words),
            warnings: scale_warning(summary, words).into_iter().chain(caveats(summary, manifest, words)).collect(),
            notes,
            changes: summary.comparison.as_ref().map(|comparison| changes(comparison, words)).unwrap_or_default(),
            models: models(design),
            methods: summary.methods.iter().map(|(name, method)| method_line(name, method, design)).collect(),
            rubric,
            banks: BTreeMap::new(),
            rows,
            whole,
            summary,
            contexts: BTreeMap::new(),
            packs: &(),
            costs: costs(manifest),
            failures: manifest.failures.iter().map(failure).collect(),
            reference: false,
        }
    }
}

fn facts(manifest: &Manifest, rows: &[ListedRow], words: &Words) -> Vec<(String, String)> {
    let design = &manifest.design;
    let models = |asked: &[Asked]| asked.iter().map(|a| a.model.clone()).collect::<Vec<_>>().join(", ");
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact(words.fixtures, design.fixtures.len().to_string()),
        fact(words.runs, design.runs.compress.to_string()),
        fact(words.cells, count(Some(rows.len() as f64))),
        fact(words.answered_by, models(&design.answerers)),
        fact(words.judged_by, models(&design.judges)),
        fact("compeval", manifest.version.clone()),
    ]
}

fn models(design: &Design) -> Vec<ModelLine> {
    let line = |role: &str, asked: &Asked| ModelLine {
        role: role.to_owned(),
        name: asked.name.clone(),
        model: asked.model.clone(),
    };
    let compressors = design.methods.iter().filter_map(|method| method.model.as_ref());
    let answerers = design.answerers.iter().map(|asked| line("answer", asked));
    let judges = design.judges.iter().map(|asked| line("judge", asked));
    compressors.map(|asked| line("compress", asked)).chain(answerers).chain(judges).collect()
}

fn method_line(name: &str, method: &MethodSummary, design: &Design) -> MethodLine {
    let read_by = format!("/{}", method.answerer);
    let plain = name.strip_suffix(&read_by).unwrap_or(name);
    let info = design.methods.iter().find(|info| info.name == name || info.name == plain);
    let anchor = match info {
        Some(info) if info.is_ceiling() => Anchor::Ceiling,
        Some(info) if info.is_floor() => Anchor::Floor,
        _ => Anchor::Neither,
    };
    let model = info.and_then(|info| info.model.as_ref()).map(|asked| asked.model.clone());
    MethodLine { name: name.to_owned(), strategy: method.strategy.clone(), model, anchor }
}

/// Actions by stage; tokens and money are known for the run in all.
fn costs(manifest: &Manifest) -> Vec<CostLine> {
    let stages = manifest.stages.iter().filter(|(_, counts)| counts.actions > 0);
    let by_stage = stages.map(|(stage, counts)| CostLine {
        part: stage.name().to_owned(),
        actions: Some(counts.actions),
        cached: Some(counts.cached),
        ..CostLine::default()
    });
    let number = |tokens: Option<Tokens>| tokens.map(|tokens| tokens.0);
    let all = CostLine {
        part: "all".to_owned(),
        actions: Some(manifest.stages.values().map(|counts| counts.actions).sum()),
        cached: Some(manifest.stages.values().map(|counts| counts.cached).sum()),
        input_tokens: number(manifest.usage.input),
        output_tokens: number(manifest.usage.output),
        usd: manifest.usd.map(|usd| usd.0),
    };
    by_stage.chain([all]).collect()
}

fn failure(failure: &crate::results::Failure) -> FailureLine {
    let hint = failure.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    FailureLine {
        place: failure.place.to_string(),
        stage: failure.stage.name().to_owned(),
        message: format!("{}{hint}", failure.message),
        by_method: failure.blame == Blame::Method,
    }
}
