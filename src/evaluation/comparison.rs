//! Comparisons of the two sides that `compare` is given, and of a run with its baseline; and the page of a comparison, with
//! the cells of both sides, each next to its counterpart.
//!
//! It is the page of one result set that has the methods of both sides, named `LABEL:METHOD`, and the compared cells.
//! Its sections are those of the judged side with the comparison.

use std::collections::HashMap;

use indexmap::IndexSet;

use super::event::EvaluationError;
use super::publish::{banks, page_contexts, sessions};
use super::request::Baseline;
use crate::action::{ActionKey, CellCoordinate, Digest};
use crate::pipeline::{MatrixSelection, Pipeline, Problem};
use crate::plan::{changed_places, hunks};
use crate::report::html::{self, PageInput, PageMethod};
use crate::results::{
    Comparison, ComparisonScope, Design, FEW, FindTextEdit, FolderError, Label, ProbePlace,
    Regradings, ResultSet, ResultsFolder, Row, Side, Summary, TextEdit, compare, labels, open_side,
    require_comparable,
};
use base::files::FileError;
use base::locale::Locale;
use base::say;
use store::cache::Lookup;

/// A judged side that was compared with its baseline.
pub struct Compared {
    pub comparison: Comparison,
    /// The folder of the baseline.
    pub folder: ResultsFolder,
    pub baseline: ResultSet,
}

/// Reads both sides of a comparison and compares them: the judged one comes with its folder. A side is `LABEL`,
/// `LABEL:METHOD`, `LABEL:METHOD/ANSWERER` or the path of a results folder. `locale` is the language that was chosen.
///
/// # Errors
/// A side cannot be read, or the two do not measure the same.
pub fn compare_sides(
    pipeline: &Pipeline,
    a: &str,
    b: &str,
    scope: ComparisonScope,
    lines: FindTextEdit<'_>,
    locale: Option<Locale>,
) -> Result<(ResultsFolder, ResultSet, Compared), EvaluationError> {
    let (folder, method) = open_side_in(pipeline, a)?;
    let mut set = ResultSet::read(&folder)?;
    set.manifest.chosen_locale = locale;
    let judged = Side {
        set: &set,
        method: method.as_deref(),
    };
    let compared = compare_with(pipeline, judged, b, scope, lines)?;
    Ok((folder, set, compared))
}

/// The comparison with the baseline of the run; `None` if the run has no baseline.
///
/// # Errors
/// The baseline cannot be read, or does not measure the same.
pub fn compared_to_baseline<C: Lookup>(
    pipeline: &Pipeline,
    set: &ResultSet,
    cache: &C,
) -> Result<Option<Compared>, EvaluationError> {
    let judged = Side { set, method: None };
    let (lines, scope) = (text_edits_in(Some(cache)), set.manifest.compared_scope);
    let Some(side) = &set.manifest.compared_to else {
        return Ok(None);
    };
    let baseline = match &set.manifest.compared_began {
        Some(began) => side_that_began(pipeline, side, began)?,
        None => side.clone(),
    };
    compare_with(pipeline, judged, &baseline, scope, &lines).map(Some)
}

/// The side whose run began at this time: it was kept under a number if other results took its label.
fn side_that_began(pipeline: &Pipeline, side: &str, began: &str) -> Result<String, FolderError> {
    let (folder, method) = open_side_in(pipeline, side)?;
    if folder.manifest()?.started == began {
        return Ok(side.to_owned());
    }
    let label = Label::new(&folder.label())?;
    // A number moves on with each replacement.
    let name = label.successor().unwrap_or(label.as_str());
    let mut labels = labels(&pipeline.results)?.into_iter();
    let kept = labels.find(|label| {
        let folder = ResultsFolder::new(&pipeline.results, label);
        let kept = folder.manifest().ok();
        label.successor() == Some(name) && kept.is_some_and(|kept| kept.started == began)
    });
    let Some(kept) = kept else {
        return Err(FolderError::Unusable(format!(
            "`{side}` has other results than those that were compared with, which are no longer there"
        )));
    };
    let method = method.map_or_else(String::new, |method| format!(":{method}"));
    Ok(format!("{kept}{method}"))
}

/// Compares a side with its baseline. The verdicts are corrected by the regradings of the judged side.
fn compare_with(
    pipeline: &Pipeline,
    judged: Side<'_>,
    baseline: &str,
    scope: ComparisonScope,
    lines: FindTextEdit<'_>,
) -> Result<Compared, EvaluationError> {
    let (folder, method) = open_side_in(pipeline, baseline)?;
    let mut baseline = ResultSet::read(&folder)?;
    // What is said of both sides is in one language.
    baseline.manifest.chosen_locale = Some(judged.set.manifest.locale());
    let side = Side {
        set: &baseline,
        method: method.as_deref(),
    };
    let (manifest, other) = (&judged.set.manifest, &baseline.manifest);
    let mut comparison = compare(judged, side, scope, lines)?;
    if manifest.started != other.started || manifest.label != other.label {
        let none = Regradings::default();
        let regradings = match manifest.regradings.baseline == other.started {
            true => &manifest.regradings,
            false => &none,
        };
        if manifest.design.judges.iter().any(|judge| !judge.lexical) {
            comparison = comparison.with_regradings(regradings);
        }
        comparison.labels = compared_labels(pipeline, &other.started, &manifest.label)?;
    }
    Ok(Compared {
        comparison,
        folder,
        baseline,
    })
}

/// How many labels were compared by `run --compare-to` with the baseline whose run began at this time, and `own`: the best
/// of several looks better than it is. Sets that cannot be read are not counted.
fn compared_labels(pipeline: &Pipeline, began: &str, own: &str) -> Result<usize, FileError> {
    let labels = labels(&pipeline.results)?;
    let others = labels.iter().filter(|label| label.as_str() != own);
    let others = others.filter_map(|label| {
        let folder = ResultsFolder::new(&pipeline.results, label);
        folder.manifest().ok()?.compared_began
    });
    Ok(others.filter(|compared| compared == began).count() + 1)
}

/// Opens a side of a comparison. A path is relative to the project, or else to the current folder.
fn open_side_in(
    pipeline: &Pipeline,
    side: &str,
) -> Result<(ResultsFolder, Option<String>), FolderError> {
    let path = pipeline.folder.join(side);
    let whole = side.rsplit_once(':').map_or(side, |(whole, _)| whole);
    let is_there = path.exists() || pipeline.folder.join(whole).exists();
    let side = if whole.contains(['/', '\\']) && is_there {
        path.display().to_string()
    } else {
        side.to_owned()
    };
    open_side(&pipeline.results, &side)
}

/// Refuses a run of this design and selection that could not be compared with its baseline, before anything is sent; `own`
/// is the label of the run. Returns when the run of the baseline began.
///
/// # Errors
/// The baseline cannot be read, measured something else, or is the run itself.
pub fn check_baseline(
    pipeline: &Pipeline,
    design: &Design,
    baseline: &Baseline,
    selection: &MatrixSelection,
    own: Option<&Label>,
) -> Result<String, EvaluationError> {
    let (folder, method) = open_side_in(pipeline, &baseline.side)?;
    let manifest = folder.manifest()?;
    let is_own = own.is_some_and(|own| folder == ResultsFolder::new(&pipeline.results, own));
    if is_own && manifest.design == *design {
        let message = format!("`{}` would be compared with itself", folder.label());
        let help = "name another label; what was replaced is LABEL~1";
        return Err(Problem::error(message).help(help).into());
    }
    let (scope, began) = (scope(selection, Some(baseline)), manifest.started.clone());
    require_comparable(design.clone(), manifest, method.as_deref(), scope)
        .map_err(EvaluationError::OtherBaseline)?;
    Ok(began)
}

/// The actions behind the rows of a baseline, by their places: a plan says what has changed since.
///
/// # Errors
/// The baseline cannot be read.
pub fn baseline_actions(
    pipeline: &Pipeline,
    baseline: &Baseline,
) -> Result<HashMap<CellCoordinate, ActionKey>, EvaluationError> {
    let (folder, method) = open_side_in(pipeline, &baseline.side)?;
    let design = folder.manifest()?.design;
    let mut actions = HashMap::new();
    for row in folder.rows()? {
        let row = row?;
        let variant = design.variant_name(&row.method, row.closed_answerer());
        let is_named = |side: &String| *side == row.method || *side == variant;
        if method.as_ref().is_none_or(is_named) {
            actions.extend(row.actions());
        }
    }
    Ok(actions)
}

/// What the comparison may leave out. A run of selected fixtures or probes is compared only on what both
/// sides have.
pub(super) fn scope(selection: &MatrixSelection, baseline: Option<&Baseline>) -> ComparisonScope {
    if baseline.is_some_and(|baseline| baseline.only_common) {
        ComparisonScope::Common
    } else if selection.is_whole() {
        ComparisonScope::All
    } else {
        ComparisonScope::Selected
    }
}

/// Finds how texts differ. If the cache or one of the texts in it is missing, the result is only that they differ.
pub fn text_edits_in<C: Lookup>(cache: Option<&C>) -> impl Fn(&str, &Digest, &Digest) -> TextEdit {
    move |path, before, after| match cache
        .and_then(|cache| cache.read_text(before).zip(cache.read_text(after)))
    {
        None => TextEdit::unknown(path),
        Some((before, after)) => TextEdit {
            path: path.to_owned(),
            places: changed_places(path, &before, &after),
            diff: signed_lines(&before, &after),
        },
    }
}

/// The lines that differ, each after `-` or `+`.
fn signed_lines(before: &str, after: &str) -> Vec<String> {
    let hunks = hunks(before, after, 0).into_iter();
    hunks.flat_map(|hunk| hunk.lines).collect()
}

/// One side with its compared rows.
struct PageSide<'a> {
    set: &'a ResultSet,
    label: String,
    rows: Vec<Row>,
    /// The methods that are compared.
    methods: IndexSet<String>,
}

impl<'a> PageSide<'a> {
    fn read(
        folder: &ResultsFolder,
        set: &'a ResultSet,
        label: String,
        methods: IndexSet<String>,
        comparison: &Comparison,
    ) -> Result<PageSide<'a>, EvaluationError> {
        let rows = folder.few_rows()?;
        let rows = rows.ok_or_else(|| {
            let label = folder.label();
            let message =
                format!("`{label}` has more than {FEW} cells, which are too many for a page");
            Problem::error(message).help("compare without --html")
        })?;
        let compared = rows.into_iter().filter(|row| {
            methods.contains(&variant(set.design(), row))
                && comparison.asked.contains(&ProbePlace::of_row(row))
        });
        Ok(PageSide {
            set,
            label,
            rows: compared.collect(),
            methods,
        })
    }

    fn page_name(&self, method: &str) -> String {
        format!("{}:{method}", self.label)
    }

    fn page_methods(&self) -> impl Iterator<Item = PageMethod> {
        let methods = html::page_methods(&self.set.manifest).into_iter();
        methods
            .filter(|method| self.methods.contains(&method.name))
            .map(|method| PageMethod {
                name: self.page_name(&method.name),
                ..method
            })
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

/// The page of two sets that were compared; `summary` is that of the judged one, with the comparison.
///
/// # Errors
/// Rows cannot be read, or there are too many.
pub fn comparison_page<C: Lookup>(
    pipeline: &Pipeline,
    (judged_folder, judged): (&ResultsFolder, &ResultSet),
    Compared {
        comparison,
        folder,
        baseline,
    }: &Compared,
    summary: &Summary,
    cache: Option<&C>,
) -> Result<String, EvaluationError> {
    let methods = comparison.methods.iter();
    let pairs = methods.map(|(name, method)| (name.clone(), method.against.clone()));
    let (methods, others): (IndexSet<String>, IndexSet<String>) = pairs.unzip();
    let [label, against] = [judged, baseline].map(|set| set.manifest.label.clone());
    let against = if label == against {
        say!(
            comparison.locale,
            "{against} (baseline)",
            "{against}（基线）"
        )
    } else {
        against
    };
    let sides = [
        PageSide::read(judged_folder, judged, label, methods, comparison)?,
        PageSide::read(folder, baseline, against, others, comparison)?,
    ];
    let [judged, baseline] = &sides;
    let design = judged.set.design();
    let rows = [judged.named_rows(design), baseline.named_rows(design)].concat();
    let contexts = cache.into_iter().flat_map(|cache| {
        sides.iter().flat_map(move |side| {
            let design = side.set.design();
            let name = |row: &Row| side.page_name(&variant(design, row));
            page_contexts(&side.rows, design, name, pipeline, cache)
        })
    });
    let pairs = comparison.methods.iter();
    let pairs =
        pairs.map(|(name, method)| (judged.page_name(name), baseline.page_name(&method.against)));
    Ok(html::render(&PageInput {
        methods: sides.iter().flat_map(PageSide::page_methods).collect(),
        banks: banks(pipeline),
        sessions: sessions(pipeline, design),
        contexts: contexts.collect(),
        pairs: pairs.collect(),
        ..PageInput::new(&judged.set.manifest, summary, &pipeline.rubric, &rows)
    }))
}
