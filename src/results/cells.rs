//! Cells judged, failed and missing, and whose fault it was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::failure::{Blame, FailedAction};
use super::grade::Grade;
use super::set::ResultSet;
use crate::action::StageName;
use crate::pipeline::CellCoordinate;
use crate::provider::ErrorClass;

/// Cells of the judge stage of one variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCounts {
    /// Judged.
    pub judged: u64,
    /// Without a grade because something failed.
    pub failed: u64,
    /// Of those, the method's own fault.
    pub failed_by_method: u64,
    /// Not there for another reason: never reached, held back.
    pub missing: u64,
}

/// One cell that should be there, in names.
struct ExpectedCell<'s> {
    fixture: &'s str,
    point: u32,
    method: &'s str,
    run: u32,
    probe: &'s str,
    answerer: &'s str,
    deterministic: bool,
}

impl ExpectedCell<'_> {
    /// Whether this failure leaves this cell without a grade. A failed compression takes with it what follows; one
    /// that serves all runs fails in all of them, though it is listed once.
    fn is_hit_by(&self, at: &CellCoordinate) -> bool {
        let compress = at.probe.is_none();
        let run = at.run == self.run || (compress && self.deterministic);
        let point = if compress { at.point.0 <= self.point } else { at.point.0 == self.point };
        let probe = at.probe.as_deref().is_none_or(|probe| probe == self.probe);
        let answerer = at.answerer.as_deref().is_none_or(|answerer| answerer == self.answerer);
        &*at.fixture == self.fixture && &*at.method == self.method && run && point && probe && answerer
    }
}

pub(super) fn cell_counts(set: &ResultSet, variant: usize) -> CellCounts {
    let design = set.design();
    let per_run = u64::from(design.runs.answer) * u64::from(design.runs.judge);
    let per_cell = per_run * design.judges.len() as u64;
    let (grades, failures) = (set.grades(variant), failures(set, variant));
    let mut counts = CellCounts { judged: grades.len() as u64, ..CellCounts::default() };
    for (probe, run) in (0..set.probes.len()).flat_map(|probe| (1..=design.runs.compress).map(move |run| (probe, run)))
    {
        let lacking = per_cell.saturating_sub(grades_at(grades, (variant, probe, run)));
        match (lacking > 0).then(|| cause(set, &failures, variant, probe, run)).flatten() {
            Some(Blame::Method) => {
                counts.failed += lacking;
                counts.failed_by_method += lacking;
            }
            Some(Blame::Infrastructure) => counts.failed += lacking,
            None => counts.missing += lacking,
        }
    }
    counts
}

/// The share of a variant's answers that the token limit cut off, graded or failed for it; `None` where there is none.
pub(super) fn truncated_share(set: &ResultSet, variant: usize) -> Option<f64> {
    let name = set.variants.get(variant).map(|variant| variant.answerer.as_str());
    let is_truncated = |failure: &&&FailedAction| {
        let answerer = failure.place.cell().and_then(|at| at.answerer.as_deref());
        failure.stage == StageName::Answer && failure.class == Some(ErrorClass::Truncated) && answerer == name
    };
    let failed = failures(set, variant).values().flatten().filter(is_truncated).count();
    let answers = set.answers(variant);
    let truncated = failed + answers.iter().filter(|answer| answer.truncated).count();
    let all = failed + answers.len();
    (all > 0).then(|| truncated as f64 / all as f64)
}

fn grades_at(grades: &[Grade], cell: (usize, usize, u32)) -> u64 {
    let from = grades.partition_point(|grade| grade.at.cell() < cell);
    let until = grades.partition_point(|grade| grade.at.cell() <= cell);
    until.saturating_sub(from) as u64
}

/// The failures of a variant's method, by fixture.
type Failures<'s> = BTreeMap<&'s str, Vec<&'s FailedAction>>;

fn failures(set: &ResultSet, variant: usize) -> Failures<'_> {
    let method = set
        .variants
        .get(variant)
        .and_then(|variant| set.design().methods.get(variant.method))
        .map(|method| &*method.name);
    let mut failures = Failures::new();
    for failure in &set.manifest.failures {
        if let Some(at) = failure.place.cell().filter(|at| Some(&*at.method) == method) {
            failures.entry(&at.fixture).or_default().push(failure);
        }
    }
    failures
}

/// Why a cell has no grade; `None` if no failure explains it. A method's own failure goes first.
fn cause(set: &ResultSet, failures: &Failures<'_>, variant: usize, probe: usize, run: u32) -> Option<Blame> {
    let (variant, probe) = (set.variants.get(variant)?, set.probes.get(probe)?);
    let method = set.design().methods.get(variant.method)?;
    let due = ExpectedCell {
        fixture: &set.design().fixtures.get(probe.fixture)?.name,
        point: probe.point,
        method: &method.name,
        run,
        probe: &probe.id,
        answerer: &variant.answerer,
        deterministic: method.deterministic,
    };
    let hits = |failure: &&&FailedAction| failure.place.cell().is_some_and(|at| due.is_hit_by(at));
    let blames: Vec<Blame> = failures.get(due.fixture)?.iter().filter(hits).map(|failure| failure.blame).collect();
    blames.iter().find(|blame| **blame == Blame::Method).or(blames.first()).copied()
}
