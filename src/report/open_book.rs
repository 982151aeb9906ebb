//! Open book beside closed book: what is said of it on the screen, and what searching alone comes to.

use super::numbers::score;
use super::translation::{Translation, fill};
use crate::action::BuiltInStrategy;
use crate::results::{MethodSummary, OpenBookSummary, Summary};

/// A search alone within so many points of the whole transcript measures the archive, not the method.
const NEAR_FULL: f64 = 1.0;

/// Open book in one line: what methods gain by searching, and whether a search alone does as well as the whole transcript.
pub(super) fn open_book_line(summary: &Summary, tr: &Translation) -> Option<String> {
    let gains = answered(summary).filter(|(_, method, _)| !method.is_anchor());
    let gains: Vec<String> = gains
        .map(|(name, _, open)| format!("{name} {} → {}", score(open.closed.median), score(open.open.median)))
        .collect();
    if gains.is_empty() {
        return None;
    }
    const SHOWN: usize = 3;
    let more = gains.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    let shown = gains.get(..SHOWN).unwrap_or(&gains).join(", ");
    let line = fill(tr.open_book_line, &[&format!("{shown}{more}")]);
    Some(archive_sentence(summary, tr).map_or(line.clone(), |sentence| format!("{line} {sentence}")))
}

/// The methods that were answered with a search, too.
fn answered(summary: &Summary) -> impl Iterator<Item = (&String, &MethodSummary, &OpenBookSummary)> {
    summary.methods.iter().filter_map(|(name, method)| Some((name, method, method.open_book.as_ref()?)))
}

/// That searching without any context comes near the whole transcript; `None` where it does not, or was not measured.
pub(super) fn archive_sentence(summary: &Summary, tr: &Translation) -> Option<String> {
    let none = answered(summary).find(|(_, method, _)| method.strategy == BuiltInStrategy::None.name())?;
    let (_, floor, OpenBookSummary { open, .. }) = none;
    let is_full =
        |method: &&MethodSummary| method.strategy == BuiltInStrategy::Full.name() && method.answerer == floor.answerer;
    let full = summary.methods.values().find(is_full)?.overall.median?;
    let alone = open.median?;
    (full - alone <= NEAR_FULL).then(|| fill(tr.archive_alone, &[&score(Some(alone)), &score(Some(full))]))
}
