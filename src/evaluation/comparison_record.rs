//! What the verdicts of a run rest on besides its rows: the number of tries, and answers of the baseline that were graded
//! again. Both are found out once, when the rows are finished, and kept in the manifest: whoever makes the report anew sends
//! nothing, and what is tried later changes nothing.

use super::comparison::{compared_to_baseline, record_tries, text_edits_in};
use super::error::EvaluationError;
use super::event::Listening;
use super::publish::gather;
use super::recorder::RunCounts;
use super::regrade::Regrader;
use super::request::Baseline;
use crate::results::{ListedRow, Manifest, Regradings, ResultsFolder, Tried};
use crate::scheduler::{Event, Listener};
use base::say;

/// A run whose rows are finished.
pub(super) struct FinishedRun<'r> {
    pub(super) folder: &'r ResultsFolder,
    /// The rows, if they are few.
    pub(super) rows: Option<&'r [ListedRow]>,
    /// With what is known of it so far.
    pub(super) manifest: Manifest,
}

/// Compares a run with its baseline, counts it in the ledger, and checks its judges. A comparison that is refused is
/// reported with the results.
///
/// # Errors
/// Rows that cannot be read, a cache or a file that cannot be written.
pub(super) fn record_comparison(
    regrader: &Regrader<'_>,
    FinishedRun { folder, rows, manifest }: FinishedRun<'_>,
    baseline: &Baseline,
    (listening, counts): (&Listening<'_>, &mut RunCounts),
) -> Result<(Tried, Regradings), EvaluationError> {
    let set = gather(folder, manifest, rows)?;
    let lines = text_edits_in(Some(regrader.store));
    let compared = compared_to_baseline(regrader.pipeline, &set, baseline.confirms, &lines).ok().flatten();
    let Some((counted, of_baseline)) = compared else { return Ok((Tried::default(), Regradings::default())) };
    let unrecorded = if baseline.is_recorded { record_tries(&counted.tries, &of_baseline).err() } else { None };
    if let Some(error) = unrecorded {
        let text = say!("the ledger of tries does not count this run: {error}", "尝试记录未计入本次运行：{error}");
        counts.on_event(&Event::Warning(text))?;
    }
    let sides = (folder, &of_baseline);
    let regradings = regrader.check_drift(&counted.comparison, sides, (listening, counts))?;
    Ok((counted.tried, regradings))
}
