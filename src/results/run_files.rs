//! `FIXTURE-run-K.json`: one fixture in one run, every method with its scores and probes.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Ordered;
use super::files::design::MethodVariant;
use super::result_set::ResultSet;
use super::result_set::selection::{Selection, Subset, VariantRuns};
use crate::judge::Dimension;
use crate::probe::ProbeType;
use stats;

/// One fixture in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFile<'s> {
    /// The label of the result set.
    pub label: String,
    /// The fixture.
    pub fixture: String,
    /// The run, from 1: the number of the compression.
    pub run: u32,
    /// Every method that has a score here.
    pub methods: Ordered<MethodRun<'s>, &'s str>,
}

/// One method in one run on one fixture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodRun<'s> {
    /// The run's values, over all probes that the method has.
    #[serde(flatten)]
    pub scores: RunScores,
    /// The probes, in the order of the matrix.
    pub probes: Vec<ProbeRun<'s>>,
}

/// One probe of one method in one run, all its answers and judgements averaged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeRun<'s> {
    /// The probe's id.
    pub probe: &'s str,
    /// The point, from 1.
    pub point: u32,
    /// What it tests.
    #[serde(rename = "type")]
    pub kind: ProbeType,
    /// Its scores; the mean of the dimensions is for display only.
    #[serde(flatten)]
    pub scores: RunScores,
    /// Share of its expected facts in the context.
    pub fact_survival: Option<f64>,
}

/// The scores of a method or a probe in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunScores {
    /// The mean of the dimensions.
    pub overall: Option<f64>,
    /// The dimensions measured, by name.
    pub dimensions: Ordered<f64, &'static str>,
    /// `overall` under the name of the published method.
    #[serde(rename = "aggregateScore")]
    pub aggregate_score: Option<f64>,
    /// `dimensions` under the name of the published method.
    #[serde(rename = "dimensionScores")]
    pub dimension_scores: Ordered<f64, &'static str>,
}

impl RunScores {
    fn new(of: impl Fn(Dimension) -> Option<f64>) -> RunScores {
        let all = Dimension::ALL.into_iter();
        let dimensions: Ordered<f64, &'static str> = all
            .filter_map(|dimension| Some((dimension.name(), of(dimension)?)))
            .collect();
        let overall = stats::mean_of(dimensions.values().copied());
        RunScores {
            overall,
            aggregate_score: overall,
            dimension_scores: dimensions.clone(),
            dimensions,
        }
    }
}

/// One file for each fixture and run with a judged cell, in the order of the matrix.
pub fn run_files<'s>(set: &'s ResultSet) -> impl Iterator<Item = RunFile<'s>> {
    let variants: Vec<VariantFiles<'s>> = set
        .variants
        .iter()
        .enumerate()
        .map(|(ix, variant)| VariantFiles::new(set, ix, variant))
        .collect();
    let runs = 1..=set.design().runs.compress;
    let fixtures = set.design().fixtures.iter().enumerate();
    let all =
        fixtures.flat_map(move |(fixture, info)| runs.clone().map(move |run| (fixture, info, run)));
    let files = all.map(move |(fixture, info, run)| RunFile {
        label: set.manifest.label.clone(),
        fixture: info.name.clone(),
        run,
        methods: variants
            .iter()
            .filter_map(|variant| Some((variant.key, variant.method_run(fixture, run)?)))
            .collect(),
    });
    files.filter(|file| !file.methods.is_empty())
}

struct VariantFiles<'s> {
    set: &'s ResultSet,
    variant: usize,
    key: &'s str,
    judged: Subset,
    runs: VariantRuns,
}

impl<'s> VariantFiles<'s> {
    fn new(set: &'s ResultSet, ix: usize, variant: &'s MethodVariant) -> VariantFiles<'s> {
        let judged = set.scores.judged(ix);
        let runs = Selection::new(
            &set.scores,
            judged.clone(),
            judged.clone(),
            &BTreeSet::new(),
        )
        .runs(ix);
        VariantFiles {
            set,
            variant: ix,
            key: &variant.key,
            judged,
            runs,
        }
    }

    fn method_run(&self, fixture: usize, run: u32) -> Option<MethodRun<'s>> {
        let runs = self
            .runs
            .by_fixture
            .iter()
            .find(|runs| runs.fixture == fixture)?;
        let scores = RunScores::new(|dimension| in_run(&runs.dimension(dimension)?.values, run));
        let probes = self.judged.range(self.set.scores.span(fixture));
        let probes: Vec<ProbeRun<'s>> = probes
            .filter_map(|probe| self.probe_run(*probe, run))
            .collect();
        (!probes.is_empty()).then_some(MethodRun { scores, probes })
    }

    fn probe_run(&self, probe: usize, run: u32) -> Option<ProbeRun<'s>> {
        let info = self.set.probes.get(probe)?;
        let scores = RunScores::new(|dimension| {
            in_run(self.set.scores.by_run(self.variant, probe, dimension), run)
        });
        let answers = self.set.answers(self.variant);
        let first =
            answers.partition_point(|measured| (measured.at.probe, measured.at.run) < (probe, run));
        let measured = answers
            .get(first)
            .filter(|measured| measured.at.cell() == (self.variant, probe, run));
        scores.overall.is_some().then(|| ProbeRun {
            probe: &info.id,
            point: info.point,
            kind: info.kind,
            scores,
            fact_survival: measured.and_then(|measured| measured.survival),
        })
    }
}

/// The value of a run; runs count from 1.
fn in_run(by_run: &[Option<f64>], run: u32) -> Option<f64> {
    *by_run.get((run as usize).checked_sub(1)?)?
}
