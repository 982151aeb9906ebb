//! Comparisons: of the two sides that `compare` is given, and of a run with its baseline.

use std::path::Path;

use super::error::EvaluationError;
use crate::action::Digest;
use crate::pipeline::Pipeline;
use crate::plan::{DiffSide, changed_places, hunks};
use crate::results::{
    Comparison, ComparisonScope, FindTextEdit, Regradings, ResultSet, ResultsFolder, Side, TextEdit, compare,
    labels_compared_with, open_side,
};
use store::cache::Lookup;

/// Two result sets that were compared: the judged one first, then the baseline.
pub struct ComparedSets {
    pub sets: [(ResultsFolder, ResultSet); 2],
    pub comparison: Comparison,
}

/// Reads both sides of a comparison, `LABEL`, `LABEL:METHOD` or a results folder each, and compares them.
///
/// # Errors
/// A side cannot be read, or the two do not measure the same.
pub fn compare_sides(
    results: &Path,
    (a, b): (&str, &str),
    scope: ComparisonScope,
    lines: FindTextEdit<'_>,
) -> Result<ComparedSets, EvaluationError> {
    let read = |text: &str| -> Result<(ResultsFolder, ResultSet, Option<String>), EvaluationError> {
        let (folder, method) = open_side(results, text)?;
        let set = ResultSet::read(&folder)?;
        Ok((folder, set, method))
    };
    let ((a_folder, a, a_method), (b_folder, b, b_method)) = (read(a)?, read(b)?);
    let (judged, baseline) =
        (Side { set: &a, method: a_method.as_deref() }, Side { set: &b, method: b_method.as_deref() });
    let comparison = compare_labels(results, judged, baseline, scope, lines)?;
    Ok(ComparedSets { sets: [(a_folder, a), (b_folder, b)], comparison })
}

/// Compares two sides, as one of all labels that were compared with the baseline.
fn compare_labels(
    results: &Path,
    judged: Side<'_>,
    baseline: Side<'_>,
    scope: ComparisonScope,
    lines: FindTextEdit<'_>,
) -> Result<Comparison, EvaluationError> {
    let (label, other) = (&judged.set.manifest.label, &baseline.set.manifest.label);
    let judged_by_looks = judged.set.manifest.until_decided;
    let tried = if label == other { 1 } else { labels_compared_with(results, other, label)? };
    let comparison = compare(judged, baseline, scope, lines)?;
    let comparison = if judged_by_looks { comparison.at_look() } else { comparison };
    let comparison = comparison.among(tried);
    let known = &judged.set.manifest.regradings;
    let none = Regradings::default();
    let is_of_baseline = known.baseline == baseline.set.manifest.started;
    Ok(comparison.with_regradings(if is_of_baseline { known } else { &none }))
}

/// A side of a comparison as the project names it: a path is relative to the project, or else to the current folder.
pub(super) fn side_in(pipeline: &Pipeline, side: &str) -> String {
    let path = pipeline.folder.join(side);
    let whole = side.rsplit_once(':').map_or(side, |(whole, _)| whole);
    let is_there = path.exists() || pipeline.folder.join(whole).exists();
    if side.contains(['/', '\\']) && is_there { path.display().to_string() } else { side.to_owned() }
}

/// The comparison with the baseline that the run was given, if it was given one.
pub(super) fn compared_to_baseline(
    pipeline: &Pipeline,
    set: &ResultSet,
    lines: FindTextEdit<'_>,
) -> Result<Option<Comparison>, EvaluationError> {
    let Some(baseline) = &set.manifest.compared_to else { return Ok(None) };
    let (other, method) = open_side(&pipeline.results, &side_in(pipeline, baseline))?;
    let other = ResultSet::read(&other)?;
    let baseline = Side { set: &other, method: method.as_deref() };
    let judged = Side { set, method: None };
    compare_labels(&pipeline.results, judged, baseline, set.manifest.compared_scope, lines).map(Some)
}

/// Finds how texts that the cache has differ; without the cache or a text, only that they do.
pub fn text_edits_in<C: Lookup>(cache: Option<&C>) -> impl Fn(&str, &Digest, &Digest) -> TextEdit {
    move |path, before, after| {
        let text = |digest| cache.and_then(|cache| cache.read_text(digest));
        match text(before).zip(text(after)) {
            None => TextEdit::unknown(path),
            Some((before, after)) => TextEdit {
                path: path.to_owned(),
                places: changed_places(path, &before, &after),
                diff: signed_lines(&before, &after),
            },
        }
    }
}

/// The lines that differ, each after its sign.
fn signed_lines(before: &str, after: &str) -> Vec<String> {
    let lines = hunks(before, after, 0).into_iter().flat_map(|hunk| hunk.lines);
    let signed = |(side, line): (DiffSide, String)| match side {
        DiffSide::Both => None,
        DiffSide::Old => Some(format!("-{line}")),
        DiffSide::New => Some(format!("+{line}")),
    };
    lines.filter_map(signed).collect()
}
