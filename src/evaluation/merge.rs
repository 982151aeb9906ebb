//! The results of a matrix that ran in parts, made from what the parts pushed. The matrix is run as usual, but no model
//! is asked: everything that the remote has is pulled, and cells of a missing part are missing. This module reads the
//! records of the parts: which parts there are, and what they sent and paid, which the manifest sums up.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Add;

use super::error::EvaluationError;
use crate::action::StageName;
use crate::parts::{Assignment, Engine, PartNumber};
use crate::pipeline::Pipeline;
use crate::results::{
    Design, DesignChange, FORMAT, ForecastTotals, Label, Manifest, MergedPart, Outcome, Unused,
};
use base::clock::moment;
use base::units::{Usage, Usd, add_known};
use store::remote::{FoundRecord, SharedSummary};

/// The parts of a run, by their records in the remote.
#[derive(Debug)]
pub(super) struct Merge {
    of: NonZeroU32,
    /// Every run of every part, the oldest first.
    attempts: Vec<Manifest>,
}

/// Which parts a merge found, and in what state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeCoverage {
    /// Parts that pushed no record.
    pub missing: Vec<PartNumber>,
    /// Parts whose last run ended early.
    pub incomplete: Vec<PartNumber>,
    /// Parts that two processes ran at the same time.
    pub doubled: Vec<PartNumber>,
    /// The engine of all parts, if they have the same engine.
    pub engine: Option<Engine>,
    /// The number of actions that two parts performed: both outputs are paid for, and one is used.
    pub made_twice: u64,
}

impl MergeCoverage {
    /// The parts that have to be run, in order.
    pub fn unfinished(&self) -> Vec<PartNumber> {
        let mut parts: Vec<PartNumber> = self
            .missing
            .iter()
            .chain(&self.incomplete)
            .copied()
            .collect();
        parts.sort();
        parts
    }
}

impl Merge {
    /// Reads the records of the parts of `label`. Records of another project, design or version are left out.
    ///
    /// # Errors
    /// No record belongs to this project in its current state.
    pub(super) fn new(
        pipeline: &Pipeline,
        label: &Label,
        of: NonZeroU32,
        records: &[FoundRecord],
    ) -> Result<Merge, EvaluationError> {
        let (design, assignment) = (
            Design::from_pipeline(pipeline),
            Assignment::new(pipeline, of).digest(),
        );
        let manifests = records
            .iter()
            .filter_map(|record| serde_json::from_slice::<Manifest>(&record.content).ok());
        let ours = manifests.filter(|manifest| {
            let is_named = manifest.format == FORMAT && manifest.label == label.as_str();
            is_named
                && manifest
                    .part
                    .is_some_and(|part| part.assignment == assignment && part.number.count() == of)
        });
        let ours: Vec<Manifest> = ours.collect();
        let differs = ours
            .last()
            .map(|newest| differences(newest, &design))
            .unwrap_or_default();
        let attempts: Vec<Manifest> = ours
            .into_iter()
            .filter(|part| differences(part, &design).is_empty())
            .collect();
        let label = label.clone();
        match attempts.is_empty() {
            false => Ok(Merge { of, attempts }),
            true if !differs.is_empty() => Err(EvaluationError::OtherParts { label, differs }),
            true if !records.is_empty() => Err(EvaluationError::OtherAssignment { label }),
            true => Err(EvaluationError::NoParts { label, of }),
        }
    }

    /// The runs that count: the last run of each part, and the runs before it that ended early, back to the last
    /// complete one.
    fn counted(&self) -> BTreeMap<PartNumber, Vec<&Manifest>> {
        let mut by_part: BTreeMap<PartNumber, Vec<&Manifest>> = BTreeMap::new();
        for attempt in &self.attempts {
            let Some(part) = attempt.part else { continue };
            let counted = by_part.entry(part.number).or_default();
            let is_over = counted.last().is_some_and(|before| {
                before.outcome == Outcome::Complete && !overlap(before, attempt)
            });
            if is_over {
                counted.clear();
            }
            counted.push(attempt);
        }
        by_part
    }

    /// Which parts were found, and in what state.
    pub(super) fn coverage(&self, remote: Option<&SharedSummary>) -> MergeCoverage {
        let counted = self.counted();
        let all =
            (1..=self.of.get()).filter_map(|index| PartNumber::new(index, self.of.get()).ok());
        let (mut incomplete, mut doubled) = (Vec::new(), Vec::new());
        for (number, runs) in &counted {
            if runs.iter().all(|run| run.outcome != Outcome::Complete) {
                incomplete.push(*number);
            }
            if runs.windows(2).any(|pair| overlap(pair[0], pair[1])) {
                doubled.push(*number);
            }
        }
        let mut engines = self
            .attempts
            .iter()
            .map(|attempt| attempt.part.and_then(|part| part.engine));
        let engine = engines
            .next()
            .flatten()
            .filter(|first| engines.all(|engine| engine == Some(*first)));
        MergeCoverage {
            missing: all.filter(|number| !counted.contains_key(number)).collect(),
            incomplete,
            doubled,
            engine,
            made_twice: remote.map_or(0, |remote| remote.made_twice),
        }
    }

    /// Adds to the manifest what the parts did. `has_all` is whether every cell has its result.
    pub(super) fn complete(&self, manifest: &mut Manifest, has_all: bool) {
        let counted = self.counted();
        let parts: Vec<&Manifest> = counted.values().flatten().copied().collect();
        add_parts(manifest, &parts);
        // The runs of a part were one after another; the parts ran in parallel.
        let times = counted
            .values()
            .map(|runs| runs.iter().map(|run| run.wall_s).sum());
        manifest.wall_s = times.fold(0.0, f64::max);
        if has_all {
            manifest.failures.clear();
        } else if matches!(manifest.outcome, Outcome::Pending | Outcome::Complete) {
            manifest.outcome = Outcome::Incomplete;
        }
    }
}

/// Whether two runs of a part overlapped in time.
fn overlap(one: &Manifest, other: &Manifest) -> bool {
    ends_after_start_of(one, other) && ends_after_start_of(other, one)
}

fn ends_after_start_of(one: &Manifest, other: &Manifest) -> bool {
    one.ended
        .as_ref()
        .is_none_or(|ended| moment(ended) > moment(&other.started))
}

/// How the design of a part differs from the project's current design; empty if only names and orders differ.
fn differences(part: &Manifest, design: &Design) -> Vec<String> {
    let DesignChange {
        conflicts,
        additions,
    } = DesignChange::between(&part.design, design);
    let mut differences: Vec<String> = conflicts;
    differences.extend(
        additions
            .into_iter()
            .map(|added| format!("the parts do not have {added}")),
    );
    differences
}

/// Adds up what all parts sent and paid.
fn add_parts(manifest: &mut Manifest, parts: &[&Manifest]) {
    manifest.merged = parts
        .iter()
        .filter_map(|part| MergedPart::new(part))
        .collect();
    // The merge itself sent nothing.
    (
        manifest.requests_sent,
        manifest.retries,
        manifest.rate_limited,
    ) = (0, 0, 0);
    (manifest.usage, manifest.usd) = (Usage::default(), Some(Usd(0.0)));
    manifest.unused = Unused {
        usd: Some(Usd(0.0)),
        ..Unused::default()
    };
    parts.iter().for_each(|part| manifest.add_spending(part));
    manifest.saved_by_prompt_cache = parts
        .iter()
        .fold(Usd(0.0), |all, part| all + part.saved_by_prompt_cache);
    if let Some(started) = parts
        .iter()
        .map(|part| &part.started)
        .min_by_key(|started| moment(started))
    {
        manifest.started.clone_from(started);
    }
    manifest.forecast = parts
        .iter()
        .map(|part| part.forecast)
        .reduce(both_forecasts)
        .flatten();
    manifest.failures = parts
        .iter()
        .flat_map(|part| part.failures.iter().cloned())
        .collect();
    for stage in StageName::OF_RUN {
        let executed: u64 = parts
            .iter()
            .filter_map(|part| part.stages.get(&stage))
            .map(|counts| counts.executed)
            .sum();
        if let Some(counts) = manifest.stages.get_mut(&stage) {
            let sent = parts
                .iter()
                .filter_map(|part| part.stages.get(&stage))
                .map(|counts| counts.prompt_cache);
            counts.prompt_cache = sent.fold(counts.prompt_cache, Add::add);
            // Actions that two parts executed count once.
            counts.executed = (counts.executed + executed).min(counts.executed + counts.cached);
            counts.cached = counts
                .actions
                .saturating_sub(counts.executed + counts.failed);
        }
    }
    let caveats = &mut manifest.caveats;
    caveats.offline = parts.iter().any(|part| part.caveats.offline);
    caveats.allow_weak_judge = parts.iter().any(|part| part.caveats.allow_weak_judge);
    caveats.allow_unproven |= parts.iter().any(|part| part.caveats.allow_unproven);
    for unqualified in parts.iter().flat_map(|part| &part.caveats.unqualified) {
        if !caveats.unqualified.contains(unqualified) {
            caveats.unqualified.push(unqualified.clone());
        }
    }
    for judge in parts.iter().flat_map(|part| &part.caveats.weak_judges) {
        if !caveats.weak_judges.contains(judge) {
            caveats.weak_judges.push(judge.clone());
        }
    }
}

fn both_forecasts(a: Option<ForecastTotals>, b: Option<ForecastTotals>) -> Option<ForecastTotals> {
    let (a, b) = (a?, b?);
    Some(ForecastTotals {
        requests: a.requests + b.requests,
        input_tokens: a.input_tokens + b.input_tokens,
        output_tokens: a.output_tokens + b.output_tokens,
        usd: add_known(a.usd, b.usd),
        seconds: a.seconds.max(b.seconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fakes::design;

    #[test]
    fn runs_overlap_by_their_times_and_not_by_the_texts_of_these() {
        let run = |started: &str, ended: &str| Manifest {
            ended: Some(ended.to_owned()),
            ..Manifest::begin("a", started, design(&[("mine", "extract")], &[("f", 1)], 1))
        };
        let first = run("2026-01-02T03:04:00Z", "2026-01-02T03:04:05Z");
        assert!(!overlap(
            &first,
            &run("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:09Z")
        ));
        assert!(overlap(
            &first,
            &run("2026-01-02T03:04:04.5Z", "2026-01-02T03:04:09Z")
        ));
    }
}
