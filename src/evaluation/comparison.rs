//! Comparisons of the two sides that `compare` is given, and of a run with its baseline.

use super::error::EvaluationError;
use super::request::Baseline;
use crate::action::Digest;
use crate::pipeline::{MatrixSelection, Pipeline};
use crate::plan::{DiffSide, changed_places, hunks};
use crate::results::{
    Comparison, ComparisonScope, Design, FindTextEdit, FolderError, Regradings, ResultSet,
    ResultsFolder, Side, TextEdit, Tried, Tries, Try, compare, count_tries, open_side,
    require_comparable, variant_designs,
};
use base::files::FileError;
use store::cache::Lookup;

/// Two result sets that were compared: the judged one first, then the baseline.
pub struct ComparedSets {
    pub sets: [(ResultsFolder, ResultSet); 2],
    pub comparison: Comparison,
    /// Why the comparison is not in the ledger of the baseline.
    pub unrecorded: Option<FileError>,
}

/// Reads both sides of a comparison and compares them. A side is `LABEL`, `LABEL:METHOD`, `LABEL:METHOD/ANSWERER` or the
/// path of a results folder. `is_recorded` is whether the comparison is added to the ledger of the baseline.
///
/// # Errors
/// A side or the ledger cannot be read, or the two do not measure the same.
pub fn compare_sides(
    pipeline: &Pipeline,
    a: &str,
    b: &str,
    scope: ComparisonScope,
    is_recorded: bool,
    lines: FindTextEdit<'_>,
) -> Result<ComparedSets, EvaluationError> {
    let (a_folder, a_method) = open_side_in(pipeline, a)?;
    let a = ResultSet::read(&a_folder)?;
    let (b_folder, b_method) = open_side_in(pipeline, b)?;
    let b = ResultSet::read(&b_folder)?;
    let (judged, baseline) = (
        Side {
            set: &a,
            method: a_method.as_deref(),
        },
        Side {
            set: &b,
            method: b_method.as_deref(),
        },
    );
    let CountedComparison {
        comparison, tries, ..
    } = compare_counted(judged, baseline, &b_folder, scope, false, lines)?;
    let unrecorded = if is_recorded {
        record_tries(&tries, &b_folder).err()
    } else {
        None
    };
    Ok(ComparedSets {
        sets: [(a_folder, a), (b_folder, b)],
        comparison,
        unrecorded,
    })
}

/// A comparison whose verdicts are corrected for the number of tries.
pub(super) struct CountedComparison {
    pub(super) comparison: Comparison,
    pub(super) tried: Tried,
    /// The entries that the ledger of the baseline should have.
    pub(super) tries: Vec<Try>,
}

/// Compares two sides; `folder` is that of the baseline. `confirms` is whether a winner is tested on fixtures that no
/// try used, if the judged side does not record that itself.
fn compare_counted(
    judged: Side<'_>,
    baseline: Side<'_>,
    folder: &ResultsFolder,
    scope: ComparisonScope,
    confirms: bool,
    lines: FindTextEdit<'_>,
) -> Result<CountedComparison, EvaluationError> {
    let (manifest, other) = (&judged.set.manifest, &baseline.set.manifest);
    let comparison = compare(judged, baseline, scope, lines)?;
    let comparison = if manifest.until_decided {
        comparison.at_look()
    } else {
        comparison
    };
    // Methods of the same set are not tries against each other.
    if manifest.started == other.started && manifest.label == other.label {
        return Ok(CountedComparison {
            comparison,
            tried: Tried::default(),
            tries: Vec::new(),
        });
    }
    let ledger = Tries::read(folder)?;
    let (tried, tries) = count_tries(
        &comparison,
        &manifest.design,
        other,
        &ledger,
        &manifest.tried,
        confirms,
    );
    let none = Regradings::default();
    let regradings = if manifest.regradings.baseline == other.started {
        &manifest.regradings
    } else {
        &none
    };
    let comparison = comparison.among(&tried).with_regradings(regradings);
    Ok(CountedComparison {
        comparison,
        tried,
        tries,
    })
}

/// Adds these tries to the ledger of a baseline.
///
/// # Errors
/// The files cannot be written; the baseline may be read-only.
pub(super) fn record_tries(tries: &[Try], baseline: &ResultsFolder) -> Result<(), FileError> {
    tries.iter().try_for_each(|entry| entry.record(baseline))
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

/// The folder of a baseline, as the project names it.
///
/// # Errors
/// There are no such results.
pub(super) fn find_baseline(pipeline: &Pipeline, side: &str) -> Result<ResultsFolder, FolderError> {
    open_side_in(pipeline, side).map(|(folder, _)| folder)
}

/// Refuses a run of this design and selection that could not be compared with its baseline, before anything is sent.
///
/// # Errors
/// The baseline cannot be read or measured something else; fixtures that are to confirm a winner were used before.
pub fn check_baseline(
    pipeline: &Pipeline,
    design: &Design,
    baseline: &Baseline,
    selection: &MatrixSelection,
) -> Result<(), EvaluationError> {
    let (folder, method) = open_side_in(pipeline, &baseline.side)?;
    if baseline.confirms {
        refuse_used_fixtures(design, &folder)?;
    }
    let scope = scope(selection, Some(baseline));
    require_comparable(design.clone(), folder.manifest()?, method.as_deref(), scope)
        .map_err(EvaluationError::OtherBaseline)
}

/// Refuses to confirm a winner on fixtures that a try used, or that confirmed another winner.
fn refuse_used_fixtures(design: &Design, baseline: &ResultsFolder) -> Result<(), EvaluationError> {
    let tries = Tries::read(baseline)?;
    let designs = variant_designs(design).into_values().collect();
    let used = design
        .fixtures
        .iter()
        .filter(|fixture| tries.have_used(&fixture.digests.transcript, &designs));
    let fixtures: Vec<String> = used.map(|fixture| fixture.name.clone()).collect();
    match fixtures.is_empty() {
        true => Ok(()),
        false => Err(EvaluationError::UsedFixtures {
            fixtures,
            baseline: baseline.label(),
        }),
    }
}

/// What the comparison may leave out. A run of selected fixtures or probes, such as a look, is compared only on what both
/// sides have.
pub(super) fn scope(selection: &MatrixSelection, baseline: Option<&Baseline>) -> ComparisonScope {
    let is_look = baseline.is_some_and(|baseline| baseline.until_decided);
    if baseline.is_some_and(|baseline| baseline.only_common) {
        ComparisonScope::Common
    } else if selection.fixtures.is_none() && selection.probes.is_none() && !is_look {
        ComparisonScope::All
    } else {
        ComparisonScope::Selected
    }
}

/// The comparison with the baseline of the run and the folder of the baseline; `None` if the run has no baseline.
pub(super) fn compared_to_baseline(
    pipeline: &Pipeline,
    set: &ResultSet,
    confirms: bool,
    lines: FindTextEdit<'_>,
) -> Result<Option<(CountedComparison, ResultsFolder)>, EvaluationError> {
    let Some(baseline) = &set.manifest.compared_to else {
        return Ok(None);
    };
    let (folder, method) = open_side_in(pipeline, baseline)?;
    let other = ResultSet::read(&folder)?;
    let baseline = Side {
        set: &other,
        method: method.as_deref(),
    };
    let judged = Side { set, method: None };
    let counted = compare_counted(
        judged,
        baseline,
        &folder,
        set.manifest.compared_scope,
        confirms,
        lines,
    )?;
    Ok(Some((counted, folder)))
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
    let lines = hunks(before, after, 0)
        .into_iter()
        .flat_map(|hunk| hunk.lines);
    let signed = lines.filter_map(|(side, line)| match side {
        DiffSide::Both => None,
        DiffSide::Old => Some(format!("-{line}")),
        DiffSide::New => Some(format!("+{line}")),
    });
    signed.collect()
}
