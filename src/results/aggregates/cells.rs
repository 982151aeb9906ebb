//! Cells judged, failed and missing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::StageName;
use crate::plan::FailedAction;
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::equal_range;
use models::ErrorClass;

/// Cells of the judge stage of one variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCounts {
    /// Cells with a grade.
    pub judged: u64,
    /// Without a grade because something failed.
    pub failed: u64,
    /// Without a grade for another reason: never reached, or held back.
    pub missing: u64,
    /// Graded, but from a context in which nothing was compressed; no figure of the method includes them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_compressed: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub(crate) fn cell_counts(set: &ResultSet, variant: usize) -> CellCounts {
    let design = set.design();
    let per_run = u64::from(design.runs.answer) * u64::from(design.runs.judge);
    let per_cell = per_run * design.judges.len() as u64;
    let (grades, failures) = (set.grades(variant), failures(set, variant));
    let uncompressed = set
        .not_compressed
        .as_ref()
        .map(|set| set.grades(variant))
        .unwrap_or_default();
    let (judged, not_compressed) = (grades.len() as u64, uncompressed.len() as u64);
    let mut counts = CellCounts {
        judged,
        not_compressed,
        ..CellCounts::default()
    };
    for (probe, run) in (0..set.probes.len())
        .flat_map(|probe| (1..=design.runs.compress).map(move |run| (probe, run)))
    {
        let graded = [grades, uncompressed]
            .map(|grades| equal_range(grades, |grade| grade.at.cell(), (variant, probe, run)));
        let lacking =
            per_cell.saturating_sub(graded.iter().map(|grades| grades.len() as u64).sum());
        if lacking > 0 && is_failed(set, &failures, variant, probe, run) {
            counts.failed += lacking;
        } else {
            counts.missing += lacking;
        }
    }
    counts
}

/// The share of a variant's answers that the token limit cut off, whether they were graded or failed; `None` where
/// nothing was answered.
pub(crate) fn truncated_share(set: &ResultSet, variant: usize) -> Option<f64> {
    let name = set
        .variants
        .get(variant)
        .map(|variant| variant.answerer.as_str());
    let failures = failures(set, variant);
    let failed = failures.values().flatten().filter(|failure| {
        let answerer = failure
            .place
            .recorded_cell()
            .and_then(|at| at.answerer.as_deref());
        failure.stage == StageName::Answer
            && failure.class == Some(ErrorClass::Truncated)
            && answerer == name
    });
    let (failed, answers) = (failed.count(), set.answers(variant));
    let truncated = failed + answers.iter().filter(|answer| answer.truncated).count();
    let all = failed + answers.len();
    (all > 0).then(|| truncated as f64 / all as f64)
}

/// The failures of a variant's method, by fixture.
type Failures<'s> = BTreeMap<&'s str, Vec<&'s FailedAction>>;

fn failures(set: &ResultSet, variant: usize) -> Failures<'_> {
    let method = set.method(variant).map(|method| &*method.name);
    let mut failures = Failures::new();
    for failure in &set.manifest.failures {
        if let Some(at) = failure
            .place
            .recorded_cell()
            .filter(|at| Some(&*at.method) == method)
        {
            failures.entry(&at.fixture).or_default().push(failure);
        }
    }
    failures
}

/// Whether a failure explains that a cell has no grade. A failed compression explains all cells below it. If one
/// compression serves all runs, it failed in all of them, although it is listed once.
fn is_failed(
    set: &ResultSet,
    failures: &Failures<'_>,
    variant: usize,
    probe: usize,
    run: u32,
) -> bool {
    let place = (
        set.method(variant),
        set.variants.get(variant),
        set.probes.get(probe),
    );
    let (Some(method), Some(variant), Some(probe)) = place else {
        return false;
    };
    let fixture = set.fixture_name(probe.fixture);
    let mut own = fixture
        .and_then(|name| failures.get(name))
        .into_iter()
        .flatten();
    own.any(|failure| {
        let Some(at) = failure.place.recorded_cell() else {
            return false;
        };
        let is_compression = at.probe.is_none();
        let same_run = at.run == run || (is_compression && method.deterministic);
        let same_point = if is_compression {
            at.point.0 <= probe.point
        } else {
            at.point.0 == probe.point
        };
        let same_probe = at.probe.as_deref().is_none_or(|id| id == probe.id);
        let same_answerer = at
            .answerer
            .as_deref()
            .is_none_or(|name| name == variant.answerer);
        same_run && same_point && same_probe && same_answerer
    })
}
