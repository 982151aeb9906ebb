//! Figures of one result set, method by method: what a summary consists of.

pub(super) mod contexts;
pub(super) mod judges;
pub(super) mod planted;
pub(super) mod ranking;
pub(super) mod scale;
pub(super) mod shares;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::StageName;
use crate::plan::FailedAction;
use crate::results::result_set::scores::{MeasuredAnswer, equal_range};
use crate::results::result_set::selection::{Selection, Subset};
use crate::results::result_set::{ProbeAt, ResultSet};
use models::ErrorClass;
use stats;

/// The answers of a variant to some probes, in the order of the matrix: by fixture, then by probe.
pub(crate) struct Answers<'s> {
    pub set: &'s ResultSet,
    pub variant: usize,
    pub measured: Vec<&'s MeasuredAnswer>,
}

impl<'s> Answers<'s> {
    /// The answers to the probes `kept`.
    pub(crate) fn new(set: &'s ResultSet, variant: usize, kept: &Subset) -> Answers<'s> {
        let measured = set
            .answers(variant)
            .iter()
            .filter(|measured| kept.contains(&measured.at.probe))
            .collect();
        Answers {
            set,
            variant,
            measured,
        }
    }

    /// The mean of the known values: over answers, then over probes, then over fixtures. Each fixture has the same
    /// weight, however many probes it has.
    pub(crate) fn mean(&self, value: impl Fn(&MeasuredAnswer) -> Option<f64>) -> Option<f64> {
        stats::mean_of(self.fixture_means(value).map(|(_, mean)| mean))
    }

    /// The mean of each fixture.
    pub(super) fn fixture_means<'a>(
        &'a self,
        value: impl Fn(&MeasuredAnswer) -> Option<f64> + 'a,
    ) -> impl Iterator<Item = (usize, f64)> + 'a {
        let fixtures = self
            .measured
            .chunk_by(|a, b| self.fixture(a) == self.fixture(b));
        fixtures.filter_map(move |answers| {
            let probes = answers.chunk_by(|a, b| a.at.probe == b.at.probe);
            let means = probes.filter_map(|answers| {
                stats::mean_of(answers.iter().filter_map(|measured| value(measured)))
            });
            Some((self.fixture(answers.first()?)?, stats::mean_of(means)?))
        })
    }

    /// The mean tokens of a context of each fixture.
    pub(crate) fn context_sizes(&self) -> Vec<f64> {
        self.fixture_means(|m| m.context_tokens.map(|tokens| tokens as f64))
            .map(|(_, mean)| mean)
            .collect()
    }

    pub(crate) fn fixture(&self, measured: &MeasuredAnswer) -> Option<usize> {
        self.set.scores.fixture_of(measured.at.probe)
    }
}

/// Lengths of transcripts: upper ends in tokens, and their names.
const LENGTHS: [(f64, &str); 4] = [
    (10_000.0, "under 10k"),
    (30_000.0, "10k to 30k"),
    (100_000.0, "30k to 100k"),
    (f64::INFINITY, "over 100k"),
];

/// Groups by name, each with its part of a selection. No part is empty.
pub(crate) type GroupSelections<'s, Name> = Vec<(Name, Selection<'s>)>;

/// All groups; they are the same for every method.
pub(crate) struct Groups<'s> {
    pub by_probe_type: GroupSelections<'s, String>,
    pub by_fixture: GroupSelections<'s, String>,
    pub by_tag: GroupSelections<'s, String>,
    /// By the number of the point.
    pub by_cycle: GroupSelections<'s, u32>,
    pub by_length: GroupSelections<'s, String>,
}

impl<'s> Groups<'s> {
    /// Divides `whole` into groups.
    pub(crate) fn new(set: &ResultSet, whole: &Selection<'s>) -> Groups<'s> {
        let (lengths, fixtures) = (lengths(set), &set.design().fixtures);
        let by_length = |probe: &ProbeAt| lengths.get(&probe.fixture).copied();
        let tags = |probe: &ProbeAt| {
            let fixture = fixtures.get(probe.fixture).into_iter();
            fixture.flat_map(|fixture| &fixture.tags)
        };
        let name = |fixture| set.fixture_name(fixture).map(str::to_owned);
        let length = |length: usize| Some(LENGTHS.get(length)?.1.to_owned());
        Groups {
            by_probe_type: parts(
                whole,
                set,
                |probe| [probe.kind],
                |kind| Some(kind.to_string()),
            ),
            by_fixture: parts(whole, set, |probe| [probe.fixture], name),
            by_tag: parts(whole, set, tags, |tag| Some(tag.clone())),
            by_cycle: parts(whole, set, |probe| [probe.point], Some),
            by_length: parts(whole, set, by_length, length),
        }
    }
}

/// Divides a selection by the groups that each probe is in, in the order of these, under their names.
fn parts<'s, Group: Ord, In: IntoIterator<Item = Group>, Name>(
    whole: &Selection<'s>,
    set: &ResultSet,
    groups_of: impl Fn(&ProbeAt) -> In,
    name: impl Fn(Group) -> Option<Name>,
) -> GroupSelections<'s, Name> {
    let mut groups: BTreeMap<Group, Subset> = BTreeMap::new();
    for (ix, probe) in set.probes.iter().enumerate() {
        for group in groups_of(probe) {
            groups.entry(group).or_default().insert(ix);
        }
    }
    let parts = groups
        .into_iter()
        .filter_map(|(group, probes)| Some((name(group)?, whole.only(&probes))));
    parts.filter(|(_, part)| !part.kept.is_empty()).collect()
}

/// The place in [`LENGTHS`] of each fixture that has an answer.
fn lengths(set: &ResultSet) -> BTreeMap<usize, usize> {
    let mut longest: BTreeMap<usize, f64> = BTreeMap::new();
    for measured in &set.answers {
        let fixture = set.probes.get(measured.at.probe).map(|probe| probe.fixture);
        if let Some((fixture, tokens)) = fixture.zip(measured.replaced_tokens) {
            let length = longest.entry(fixture).or_insert(0.0);
            *length = length.max(tokens as f64);
        }
    }
    let placed = longest.into_iter().filter_map(|(fixture, length)| {
        let place = LENGTHS.iter().position(|(end, _)| length < *end)?;
        Some((fixture, place))
    });
    placed.collect()
}

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
