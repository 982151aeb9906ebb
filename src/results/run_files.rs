//! `FIXTURE-run-K.json`: one fixture in one run, every method with its scores and probes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ordered::Ordered;
use super::scores::{Scores, Subset, place};
use super::set::{AnswerAt, ResultSet};
use crate::judge::Dimension;
use crate::probe::ProbeType;
use crate::stats::{self, RunValues};

/// One fixture in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFile {
    /// The label.
    pub label: String,
    /// The fixture.
    pub fixture: String,
    /// The run, from 1: the number of the compression.
    pub run: u32,
    /// Every method that has a score here.
    pub methods: Ordered<MethodRun>,
}

/// One method in one run on one fixture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodRun {
    /// The mean of the dimensions of this run.
    pub overall: Option<f64>,
    /// The run's values, over all probes that the method has.
    pub dimensions: Ordered<f64>,
    /// The probes, in the order of the matrix.
    pub probes: Vec<ProbeRun>,
}

/// One probe of one method in one run, all its answers and judgements averaged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeRun {
    /// The probe's id.
    pub probe: String,
    /// The point, from 1.
    pub point: u32,
    /// What it tests.
    #[serde(rename = "type")]
    pub kind: ProbeType,
    /// Mean of its dimensions; for display only.
    pub overall: Option<f64>,
    /// Its dimensions.
    pub dimensions: Ordered<f64>,
    /// Share of its expected facts in the context.
    pub fact_survival: Option<f64>,
}

/// One file a fixture and run that has a judged cell, in the order of the matrix.
pub fn run_files(set: &ResultSet) -> impl Iterator<Item = RunFile> {
    let desk = Desk { set, scores: Scores::of(set) };
    (0..set.design().fixtures.len()).flat_map(move |fixture| desk.files(fixture))
}

struct Desk<'s> {
    set: &'s ResultSet,
    scores: Scores,
}

/// An arm on one fixture, in all runs.
struct ArmRuns {
    arm: usize,
    probes: Subset,
    dimensions: Vec<(Dimension, RunValues)>,
}

impl Desk<'_> {
    fn files(&self, fixture: usize) -> Vec<RunFile> {
        let arms: Vec<ArmRuns> = (0..self.set.arms.len()).map(|arm| self.arm(arm, fixture)).collect();
        let method = |arm: &ArmRuns, run| Some((self.set.arms.get(arm.arm)?.key.clone(), self.method(arm, run)?));
        let file = |run: u32| RunFile {
            label: self.set.manifest.label.clone(),
            fixture: self.set.design().fixtures.get(fixture).map(|info| info.name.clone()).unwrap_or_default(),
            run,
            methods: arms.iter().filter_map(|arm| method(arm, run)).collect(),
        };
        let runs = 1..=self.set.design().runs.compress;
        runs.map(file).filter(|file| !file.methods.is_empty()).collect()
    }

    fn arm(&self, arm: usize, fixture: usize) -> ArmRuns {
        let probes = self.scores.judged_among(arm, self.scores.span(fixture));
        let runs =
            |dimension: Dimension| Some((dimension, self.scores.dimension(arm, fixture, dimension, &probes, &probes)?));
        ArmRuns { arm, dimensions: Dimension::ALL.into_iter().filter_map(runs).collect(), probes }
    }

    fn method(&self, arm: &ArmRuns, run: u32) -> Option<MethodRun> {
        let value = |(dimension, runs): &(Dimension, RunValues)| -> Option<(String, f64)> {
            let value = (*runs.values.get((run as usize).checked_sub(1)?)?)?;
            Some((dimension.name().to_owned(), value))
        };
        let probes: Vec<ProbeRun> = arm.probes.iter().filter_map(|probe| self.probe(arm.arm, *probe, run)).collect();
        let dimensions: Ordered<f64> = arm.dimensions.iter().filter_map(value).collect();
        (!probes.is_empty()).then(|| MethodRun { overall: mean(&dimensions), dimensions, probes })
    }

    fn probe(&self, arm: usize, probe: usize, run: u32) -> Option<ProbeRun> {
        let info = self.set.probes.get(probe)?;
        let here = |at: &AnswerAt| (at.arm, at.probe, at.run) == (arm, probe, run);
        let mut by_dimension: BTreeMap<Dimension, Vec<f64>> = BTreeMap::new();
        let from = self.scores.graded.partition_point(|g| (g.at.arm, g.at.probe, g.at.run) < (arm, probe, run));
        for graded in self.scores.graded.iter().skip(from).take_while(|graded| here(&graded.at)) {
            for dimension in Dimension::ALL {
                if let Some(score) = graded.dimensions.get(place(dimension)).copied().flatten() {
                    by_dimension.entry(dimension).or_default().push(score);
                }
            }
        }
        let dimensions: Ordered<f64> = (by_dimension.iter())
            .filter_map(|(dimension, scores)| Some((dimension.name().to_owned(), stats::mean(scores)?)))
            .collect();
        let first = AnswerAt { arm, probe, run, answer_n: 0 };
        let measured = self.set.answers.range(first..).next().filter(|(at, _)| here(at));
        (!dimensions.is_empty()).then(|| ProbeRun {
            probe: info.id.clone(),
            point: info.point,
            kind: info.kind,
            overall: mean(&dimensions),
            dimensions,
            fact_survival: measured.and_then(|(_, measured)| measured.survival),
        })
    }
}

fn mean(values: &Ordered<f64>) -> Option<f64> {
    stats::mean(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}
