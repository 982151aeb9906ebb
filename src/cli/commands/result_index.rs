//! `index.html` beside the result sets: a page that shows one of them and switches to the others.

use std::path::{Path, PathBuf};

use crate::report::html::{SetLink, sets_page};
use crate::results::{Label, ResultsFolder, labels, names};
use base::files::write_whole;
use base::locale::Locale;

const INDEX: &str = "index.html";

/// The pages of all result sets, the newest first, with their languages.
fn pages(results: &Path) -> Vec<(SetLink, Locale)> {
    let known = labels(results).unwrap_or_default();
    let mut sets: Vec<(SetLink, Locale)> = known.iter().filter_map(|label| page_of(results, label)).collect();
    sets.sort_by(|(a, _), (b, _)| (&b.started, &b.label).cmp(&(&a.started, &a.label)));
    sets
}

fn page_of(results: &Path, label: &Label) -> Option<(SetLink, Locale)> {
    let folder = ResultsFolder::new(results, label);
    let manifest = folder.manifest().ok().filter(|_| folder.file(names::HTML).is_file())?;
    let page = format!("{label}/{}", names::HTML);
    Some((SetLink { label: label.to_string(), started: manifest.started, page }, manifest.design.locale))
}

/// Writes the page with `chosen` shown first; `None` where there is no other set, or none can be written.
pub(crate) fn write_result_index(results: &Path, chosen: &str) -> Option<PathBuf> {
    let sets = pages(results);
    let locale = sets.iter().find(|(set, _)| set.label == chosen).map(|(_, locale)| *locale)?;
    if sets.len() < 2 {
        return None;
    }
    let sets: Vec<SetLink> = sets.into_iter().map(|(set, _)| set).collect();
    let path = results.join(INDEX);
    write_whole(&path, sets_page(locale, &sets, chosen)).ok()?;
    Some(path)
}

/// Brings an existing page up to date after result sets were removed, or removes it where there is nothing left to switch
/// between.
///
/// # Errors
/// A page that can neither be written nor removed: it would lead to pages that are gone.
pub(crate) fn refresh_result_index(results: &Path) -> std::io::Result<()> {
    let path = results.join(INDEX);
    if !path.is_file() {
        return Ok(());
    }
    let newest = pages(results).into_iter().next().map(|(set, _)| set.label);
    match newest.and_then(|newest| write_result_index(results, &newest)) {
        Some(_) => Ok(()),
        None => std::fs::remove_file(&path),
    }
}
