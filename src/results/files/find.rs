//! Finds result sets: by label or path, the newest, all of them.

use std::collections::BTreeSet;
use std::path::Path;

use super::folder::{ResultsFolder, list_entries, names};
use super::label_folders::{INCOMPLETE, LabelFolders, REPLACED, remove_folder};
use super::manifest::{Manifest, Outcome};
use super::{FolderError, Label};
use crate::action::Stage;
use crate::entries::Refresh;
use base::clock::moment;
use base::fault::nearest;
use base::files::FileError;
use base::guarded;
use base::lock::FileLock;

/// Finds the folder of a result set by its label or its path.
///
/// # Errors
/// There is no such result set (the nearest label is named), or the text is neither a label nor a path.
pub fn open_results(results: &Path, label: &str) -> Result<ResultsFolder, FolderError> {
    let missing = |near: Option<&str>| FolderError::Missing {
        label: label.to_owned(),
        results: results.to_owned(),
        near: near.map(str::to_owned),
    };
    if label.contains(['/', '\\']) {
        if !Path::new(label).join(names::MANIFEST).is_file() {
            return Err(missing(None));
        }
        guarded::check_below(Path::new(label))?;
        return Ok(ResultsFolder::at(label));
    }
    let folders = LabelFolders::new(results, &Label::new(label)?);
    // If this fails, there is still something to read.
    let _ = folders.recover();
    if let Some(folder) = [folders.published(), folders.incomplete()]
        .into_iter()
        .find(ResultsFolder::exists)
    {
        return Ok(folder);
    }
    let known = labels(results)?;
    if known.is_empty() {
        return Err(FolderError::Empty(results.to_owned()));
    }
    let known: Vec<&str> = known.iter().map(Label::as_str).collect();
    Err(missing(nearest(label, &known)))
}

/// The refresh of these stages that the last run with one began, under any label, if that run was stopped before it was
/// done; with its label.
pub fn unfinished_refresh(results: &Path, stages: &BTreeSet<Stage>) -> Option<(Label, Refresh)> {
    use Outcome::{Budget, Interrupted, Pending, Running};
    if stages.is_empty() {
        return None;
    }
    let manifests = all_sets(results).ok()?.into_iter();
    let last = manifests
        .filter_map(|set| set.manifest().ok())
        .filter(|manifest| manifest.refresh.is_of(stages))
        .max_by_key(|manifest| moment(&manifest.started))?;
    let was_stopped = matches!(last.outcome, Running | Interrupted | Budget | Pending);
    Some((Label::new(&last.label).ok()?, last.refresh)).filter(|_| was_stopped)
}

/// The incomplete set of a label that also has published results.
pub fn incomplete_beside(folder: &ResultsFolder) -> Option<ResultsFolder> {
    let folders = folders(folder).filter(|folders| folders.published() == *folder)?;
    Some(folders.incomplete()).filter(ResultsFolder::exists)
}

fn folders(folder: &ResultsFolder) -> Option<LabelFolders> {
    let parent = folder.path().parent()?;
    let is_beside = parent.file_name().is_some_and(|name| name == INCOMPLETE);
    let results = if is_beside { parent.parent()? } else { parent };
    Some(LabelFolders::new(
        results,
        &Label::new(&folder.label()).ok()?,
    ))
}

/// Takes the lock under which the reports of a set are written.
///
/// # Errors
/// Another process holds it.
pub fn lock_reports(folder: &ResultsFolder) -> Result<Option<FileLock>, FolderError> {
    folders(folder)
        .map(|folders| folders.lock_files())
        .transpose()
}

/// Takes the locks under which a run writes and publishes a set.
///
/// # Errors
/// Another process holds one of them.
pub fn lock_results(folder: &ResultsFolder) -> Result<Option<(FileLock, FileLock)>, FolderError> {
    folders(folder)
        .map(|folders| Ok::<_, FolderError>((folders.lock_run()?, folders.lock_files()?)))
        .transpose()
}

/// Removes a set, the incomplete set of the same label, and its parts that are complete.
///
/// # Errors
/// The set is protected or a run writes it, or the file system refuses.
pub fn remove_results(folder: &ResultsFolder) -> Result<(), FolderError> {
    let _locks = lock_results(folder)?;
    if folder.is_protected() {
        return Err(FolderError::Protected(Label::new(&folder.label())?));
    }
    if let Some(folders) = folders(folder) {
        folders.remove_parts()?;
    }
    // First, because no run can begin with an incomplete set beside what is left of a removed one.
    incomplete_beside(folder).map_or(Ok(()), |incomplete| remove_folder(incomplete.path()))?;
    Ok(remove_folder(folder.path())?)
}

/// Finds the result set of `LABEL` or `LABEL:METHOD`, and returns it with the method. A path that exists is taken as a
/// whole, even if it has a colon.
///
/// # Errors
/// As [`open_results`].
pub fn open_side(
    results: &Path,
    text: &str,
) -> Result<(ResultsFolder, Option<String>), FolderError> {
    let whole = open_results(results, text);
    let Some((label, method)) = text
        .rsplit_once(':')
        .filter(|(_, method)| !method.is_empty())
    else {
        return whole.map(|folder| (folder, None));
    };
    match whole {
        Ok(folder) => Ok((folder, None)),
        Err(_) => open_results(results, label).map(|folder| (folder, Some(method.to_owned()))),
    }
}

/// All labels that have results, sorted. If a process was killed while it published a label, the publication is
/// finished first, so that the label is among them.
///
/// # Errors
/// The file system's error, with the path.
pub fn labels(results: &Path) -> Result<Vec<Label>, FileError> {
    for folder in [REPLACED, INCOMPLETE] {
        for label in labels_in(&results.join(folder))? {
            // If this fails, there is still something to read.
            let _ = LabelFolders::new(results, &label).recover();
        }
    }
    labels_in(results)
}

/// The labels of the sets in a folder, sorted.
fn labels_in(folder: &Path) -> Result<Vec<Label>, FileError> {
    let entries = list_entries(folder)?;
    let names = entries
        .iter()
        .filter(|path| path.join(names::MANIFEST).is_file())
        .filter_map(|path| path.file_name());
    let mut labels: Vec<Label> = names
        .filter_map(|name| Label::new(&name.to_string_lossy()).ok())
        .collect();
    labels.sort();
    Ok(labels)
}

/// All result sets: those of labels, the incomplete ones beside them, and those that a crash left between two renames.
///
/// # Errors
/// The file system's error, with the path.
pub fn all_sets(results: &Path) -> Result<Vec<ResultsFolder>, FileError> {
    let mut sets = Vec::new();
    for folder in [
        results.to_owned(),
        results.join(INCOMPLETE),
        results.join(REPLACED),
    ] {
        let labels = labels_in(&folder)?.into_iter();
        sets.extend(labels.map(|label| ResultsFolder::new(&folder, &label)));
    }
    Ok(sets)
}

/// The results whose run began last; of equals the last by name. A run that ended early, or that has not ended, counts
/// only where no other has ended: it has a part of the cells. With it comes the label whose run began last, if that run is
/// unfinished. Sets that cannot be read are skipped.
///
/// # Errors
/// There are no results.
pub fn newest(results: &Path) -> Result<(ResultsFolder, Option<Label>), FolderError> {
    let runs = runs(results)?;
    let began = |run: &&(Label, Manifest)| moment(&run.1.started);
    let newest = runs
        .iter()
        .max_by_key(|run| (run.1.outcome.is_end(), began(run), &run.0))
        .ok_or_else(|| FolderError::Empty(results.to_owned()))?;
    let last = runs
        .iter()
        .max_by_key(|run| (began(run), &run.0))
        .filter(|(_, last)| !last.outcome.is_end());
    let unfinished = last.map(|(label, _)| label.clone());
    Ok((ResultsFolder::new(results, &newest.0), unfinished))
}

/// The label of the newest complete results of another label than `own`: with answers if there are such, or with planted
/// items if those are wanted.
///
/// # Errors
/// There are none, or the folder cannot be read.
pub fn previous(results: &Path, own: Option<&str>, is_planted: bool) -> Result<Label, FolderError> {
    let runs = runs(results)?.into_iter().filter(|(label, manifest)| {
        Some(label.as_str()) != own && manifest.outcome == Outcome::Complete
    });
    let last = runs.max_by_key(|(_, manifest)| {
        let is_wanted = match is_planted {
            true => manifest.design.planted.is_some(),
            false => manifest.design.has_answers(),
        };
        (is_wanted, moment(&manifest.started))
    });
    last.map(|(label, _)| label).ok_or_else(|| {
        let results = results.display();
        FolderError::Unusable(format!(
            "there are no other complete results in `{results}`; make some with `compeval run`"
        ))
    })
}

/// The labels with their manifests, sorted. Sets that cannot be read are skipped.
fn runs(results: &Path) -> Result<Vec<(Label, Manifest)>, FileError> {
    let runs = labels(results)?.into_iter();
    let runs = runs.filter_map(|label| {
        let manifest = ResultsFolder::new(results, &label).manifest().ok()?;
        Some((label, manifest))
    });
    Ok(runs.collect())
}
