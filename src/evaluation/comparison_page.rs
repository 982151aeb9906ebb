//! The page of a comparison: the cells of both sides on one page, each next to its counterpart.
//!
//! It is the page of one result set that has the methods of both sides, named `LABEL:METHOD`, and the compared cells.
//! It leaves out what belongs to a single set: the tables that come as text, the costs of the stages, the changes of
//! the design, and the gaps between methods.

use std::collections::BTreeMap;

use indexmap::IndexSet;

use super::comparison::ComparedSets;
use super::contexts::page_contexts;
use super::error::EvaluationError;
use super::publish::{banks, sessions};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::Preparer;
use crate::report::html::{self, ContextKey, PageFailure, PageInput, PageMethod, ReadContext};
use crate::results::{
    Comparison, Design, Headline, Manifest, ProbePlace, ResultSet, ResultsFolder, Row, Summary,
    summarize,
};
use base::locale::Locale;
use base::say;
use store::cache::Lookup;

/// One side with its compared rows.
struct PageSide<'a> {
    set: &'a ResultSet,
    label: String,
    rows: Vec<Row>,
    summary: Summary,
}

impl<'a> PageSide<'a> {
    fn read(
        (folder, set): &'a (ResultsFolder, ResultSet),
        label: String,
        methods: &IndexSet<String>,
        comparison: &Comparison,
    ) -> Result<PageSide<'a>, EvaluationError> {
        let rows = folder.few_rows()?;
        let rows = rows.ok_or_else(|| EvaluationError::TooManyCells(folder.label()))?;
        let compared = rows.into_iter().filter(|row| {
            methods.contains(&variant(set.design(), row))
                && comparison.asked.contains(&ProbePlace::of_row(row))
        });
        let rows = compared.collect();
        Ok(PageSide {
            set,
            label,
            rows,
            summary: summarize(set, None),
        })
    }

    fn manifest(&self) -> &Manifest {
        &self.set.manifest
    }

    fn page_name(&self, method: &str) -> String {
        format!("{}:{method}", self.label)
    }

    /// The page of this side alone, from which the page of the comparison takes parts.
    fn page<'p>(&'p self, pipeline: &'p Pipeline) -> PageInput<'p> {
        PageInput::new(self.manifest(), &self.summary, &pipeline.rubric, &[])
    }

    fn methods(&self, page: &PageInput<'_>, compared: &IndexSet<String>) -> Vec<PageMethod> {
        let methods = page
            .methods
            .iter()
            .filter(|method| compared.contains(&method.name));
        methods
            .map(|method| PageMethod {
                name: self.page_name(&method.name),
                ..method.clone()
            })
            .collect()
    }

    fn failures(&self, page: &PageInput<'_>) -> Vec<PageFailure> {
        let failures = page.failures.iter();
        failures
            .map(|failure| PageFailure {
                place: format!("{}: {}", self.label, failure.place),
                ..failure.clone()
            })
            .collect()
    }

    /// The rows with the names of the page. Judges are paired by their place, so both sides have the names of `design`.
    fn named_rows(&self, design: &Design) -> Vec<Row> {
        let judges = &self.set.design().judges;
        let named = self.rows.iter().map(|row| {
            let judge = judges.iter().position(|judge| judge.name == row.judge);
            let judge = judge.and_then(|place| design.judges.get(place));
            Row {
                judge: judge.map_or(&row.judge, |judge| &judge.name).clone(),
                method: self.page_name(&variant(self.set.design(), row)),
                ..row.clone()
            }
        });
        named.collect()
    }
}

/// The name of a row's method in summaries.
fn variant(design: &Design, row: &Row) -> String {
    design.variant_name(&row.method, row.closed_answerer())
}

/// The page of two sets that were compared.
///
/// # Errors
/// Rows cannot be read, or there are too many.
pub fn comparison_page<C: Lookup>(
    pipeline: &Pipeline,
    ComparedSets {
        sets: [judged, baseline],
        comparison,
        ..
    }: &ComparedSets,
    headline: Option<&Headline>,
    cache: Option<&C>,
) -> Result<String, EvaluationError> {
    let compared: [IndexSet<String>; 2] = [
        comparison.methods.keys().cloned().collect(),
        comparison
            .methods
            .values()
            .map(|method| method.against.clone())
            .collect(),
    ];
    let [label, against] = [&judged.1, &baseline.1].map(|set| set.manifest.label.clone());
    let against = if label == against {
        say!("{against} (baseline)", "{against}（基线）")
    } else {
        against
    };
    let [methods, others] = &compared;
    let sides = [
        PageSide::read(judged, label, methods, comparison)?,
        PageSide::read(baseline, against, others, comparison)?,
    ];
    Ok(render(
        pipeline, &sides, &compared, comparison, headline, cache,
    ))
}

fn render<C: Lookup>(
    pipeline: &Pipeline,
    sides: &[PageSide<'_>; 2],
    compared: &[IndexSet<String>; 2],
    comparison: &Comparison,
    headline: Option<&Headline>,
    cache: Option<&C>,
) -> String {
    let [judged, baseline] = sides;
    let design = judged.set.design();
    let rows = [judged.named_rows(design), baseline.named_rows(design)].concat();
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let contexts = cache.map_or_else(BTreeMap::new, |cache| {
        named_contexts(sides, preparer, cache)
    });
    let pages = sides.each_ref().map(|side| side.page(pipeline));
    let summary = Summary {
        headline: headline.cloned(),
        ..joined(sides, comparison)
    };
    let label = match design.locale.of_report() {
        Locale::En => format!("{} against {}", judged.label, baseline.label),
        Locale::Zh => format!("{} 对比 {}", judged.label, baseline.label),
    };
    let page = PageInput::new(judged.manifest(), &summary, &pipeline.rubric, &rows);
    let methods = [0, 1].map(|at| sides[at].methods(&pages[at], &compared[at]));
    let critical: IndexSet<String> = pages
        .iter()
        .flat_map(|page| page.critical.iter().cloned())
        .collect();
    let warnings: IndexSet<String> = pages
        .iter()
        .flat_map(|page| page.warnings.iter().cloned())
        .collect();
    let pairs = comparison.methods.iter();
    html::render(&PageInput {
        label: &label,
        methods: side_by_side(methods),
        critical: critical.into_iter().collect(),
        warnings: warnings.into_iter().collect(),
        failures: sides
            .iter()
            .zip(&pages)
            .flat_map(|(side, page)| side.failures(page))
            .collect(),
        banks: banks(pipeline),
        sessions: sessions(pipeline, design),
        contexts,
        pairs: pairs
            .map(|(name, method)| (judged.page_name(name), baseline.page_name(&method.against)))
            .collect(),
        ..page
    })
}

/// The methods of both sides, each followed by its counterpart. Both lists are in the order of the pairs.
fn side_by_side([judged, baseline]: [Vec<PageMethod>; 2]) -> Vec<PageMethod> {
    let (mut judged, mut baseline) = (judged.into_iter(), baseline.into_iter());
    let pairs = std::iter::from_fn(|| {
        let pair = [judged.next(), baseline.next()];
        pair.iter().any(Option::is_some).then_some(pair)
    });
    pairs.flatten().flatten().collect()
}

/// The contexts of both sides, by the names that the page has for their methods.
fn named_contexts<'a, C: Lookup>(
    sides: &[PageSide<'_>; 2],
    preparer: Preparer<'a>,
    cache: &'a C,
) -> BTreeMap<ContextKey, ReadContext<'a>> {
    let mut contexts = BTreeMap::new();
    for side in sides {
        let found = page_contexts(&side.rows, side.set.design(), preparer, cache);
        for row in &side.rows {
            let context = found.get(&(row.keys.compress, row.method.clone(), row.point));
            let name = side.page_name(&variant(side.set.design(), row));
            contexts.extend(
                context.map(|context| ((row.keys.compress, name, row.point), context.clone())),
            );
        }
    }
    contexts
}

/// The summary of both sides, with the comparison between them.
fn joined(sides: &[PageSide<'_>; 2], comparison: &Comparison) -> Summary {
    let [judged, _] = sides;
    let named = sides.iter().flat_map(|side| {
        side.summary
            .methods
            .iter()
            .map(|(name, method)| (side.page_name(name), method.clone()))
    });
    let methods = comparison
        .methods
        .iter()
        .map(|(name, method)| (judged.page_name(name), method.clone()))
        .collect();
    Summary {
        methods: named.collect(),
        comparison: Some(Comparison {
            methods,
            ..comparison.clone()
        }),
        ..judged.summary.clone()
    }
}
