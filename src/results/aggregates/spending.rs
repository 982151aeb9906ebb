//! How the differences of two methods varied in a result set, from which the power of another run is planned.

use std::collections::BTreeMap;

use crate::action::StageName;
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::MergedScores;
use stats::thresholds::MIN_CLUSTERS_FOR_VARIANCE;
use stats::{
    CallCosts, Components, DifferenceVariances, Observation, components, mean, mean_of, sample_sd,
};

/// Variances of `overall`, averaged over all pairs of methods except ceiling and floor, and the number of pairs; `None`
/// if no pair has four fixtures in common.
pub fn difference_variances(set: &ResultSet) -> Option<(DifferenceVariances, usize)> {
    let measured: Vec<MeasuredMethod> = candidates(set)
        .map(|variant| MeasuredMethod::new(set, variant))
        .collect();
    let pairs = measured
        .iter()
        .enumerate()
        .flat_map(|(at, a)| measured.iter().skip(at + 1).map(move |b| (a, b)));
    let found: Vec<DifferenceVariances> = pairs
        .filter_map(|(a, b)| pair_variances(set, a, b))
        .collect();
    let average = DifferenceVariances {
        fixture: mean_of(found.iter().map(|v| v.fixture))?,
        probe: mean_of(found.iter().map(|v| v.probe))?,
        compress_run: mean_of(found.iter().map(|v| v.compress_run))?,
        compress_probe: mean_of(found.iter().map(|v| v.compress_probe))?,
        answer: mean_of(found.iter().map(|v| v.answer))?,
        judge: mean_of(found.iter().map(|v| v.judge))?,
    };
    Some((average, found.len()))
}

/// What a call of these methods cost on average; `None` where a price is unknown.
pub fn mean_call_costs(set: &ResultSet) -> Option<CallCosts> {
    Some(CallCosts {
        compress: mean_cost(set, StageName::Compress)?,
        answer: mean_cost(set, StageName::Answer)?,
        judge: mean_cost(set, StageName::Judge)?,
    })
}

fn mean_cost(set: &ResultSet, stage: StageName) -> Option<f64> {
    let actions = candidates(set)
        .filter_map(|variant| set.costs.get(variant)?.get(&stage))
        .flatten();
    let known: Option<Vec<f64>> = actions.map(|(_, usd)| *usd).collect();
    mean(&known?)
}

/// The variants of methods that are neither ceiling nor floor.
fn candidates(set: &ResultSet) -> impl Iterator<Item = usize> {
    (0..set.variants.len()).filter(move |variant| set.is_candidate(*variant))
}

/// The means of the probes of a variant, and the noise of its runs.
struct MeasuredMethod {
    probes: BTreeMap<usize, f64>,
    noise: Components,
    /// The fewest runs of a probe that did work of their own.
    runs: usize,
}

impl MeasuredMethod {
    fn new(set: &ResultSet, variant: usize) -> MeasuredMethod {
        let scores = &set.scores;
        let runs = scores
            .judged(variant)
            .iter()
            .filter_map(|probe| scores.distinct_runs(variant, *probe))
            .min();
        let runs = runs.unwrap_or(1);
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut observations = Vec::new();
        for MergedScores { at, dimensions } in scores
            .graded(variant)
            .iter()
            .filter(|s| runs > 1 || s.at.run == 1)
        {
            let overall = mean_of(dimensions.measured());
            let Some((value, cluster)) = overall.zip(scores.fixture_of(at.probe)) else {
                continue;
            };
            values.entry(at.probe).or_default().push(value);
            let (run, answer) = (at.run as usize, at.answer_n as usize);
            observations.push(Observation {
                cluster,
                item: at.probe,
                run,
                answer,
                value,
            });
        }
        let probes = values
            .into_iter()
            .filter_map(|(probe, values)| Some((probe, mean(&values)?)))
            .collect();
        MeasuredMethod {
            probes,
            noise: components(&observations),
            runs,
        }
    }

    /// A component by its name, alone or merged with finer components, which then count as this one.
    fn variance(&self, names: &[&str]) -> f64 {
        names
            .iter()
            .find_map(|name| self.noise.named(name)?.variance)
            .unwrap_or(0.0)
    }

    /// The noise of its runs, and the variance that this noise gives to a probe's mean.
    fn run_noise(&self, set: &ResultSet) -> (DifferenceVariances, f64) {
        let noise = DifferenceVariances {
            compress_run: self.variance(&["compress_run"]),
            compress_probe: self.variance(&[
                "compress_probe",
                "answer+compress_probe",
                "judge+answer+compress_probe",
            ]),
            answer: self.variance(&["answer", "judge+answer"]),
            judge: self.variance(&["judge"]),
            ..DifferenceVariances::default()
        };
        let (answers, gradings) = (
            f64::from(set.design().runs.answer),
            f64::from(set.design().runs.judge),
        );
        let of_probe =
            noise.compress_probe + noise.answer / answers + noise.judge / (answers * gradings);
        (noise, of_probe / self.runs as f64)
    }
}

/// The variances of one difference: the noise of runs is subtracted from how it varies over probes and fixtures.
fn pair_variances(
    set: &ResultSet,
    a: &MeasuredMethod,
    b: &MeasuredMethod,
) -> Option<DifferenceVariances> {
    let mut differences: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (probe, value) in &a.probes {
        if let Some((fixture, other)) = set.scores.fixture_of(*probe).zip(b.probes.get(probe)) {
            differences.entry(fixture).or_default().push(value - other);
        }
    }
    if differences.len() < MIN_CLUSTERS_FOR_VARIANCE {
        return None;
    }
    let ((noise_a, probe_a), (noise_b, probe_b)) = (a.run_noise(set), b.run_noise(set));
    let fixtures: Option<Vec<f64>> = differences.values().map(|values| mean(values)).collect();
    let between = sample_sd(&fixtures?)?.powi(2);
    // half the mean squared difference of two probes of a fixture is the variance of one
    let within = mean_of(
        differences
            .values()
            .filter_map(|values| sample_sd(values))
            .map(|sd| sd * sd),
    )
    .unwrap_or(0.0);
    let probes =
        differences.values().map(Vec::len).sum::<usize>() as f64 / differences.len() as f64;
    let runs = noise_a.compress_run / a.runs as f64 + noise_b.compress_run / b.runs as f64;
    Some(DifferenceVariances {
        fixture: (between - within / probes - runs).max(0.0),
        probe: (within - probe_a - probe_b).max(0.0),
        compress_run: noise_a.compress_run + noise_b.compress_run,
        compress_probe: noise_a.compress_probe + noise_b.compress_probe,
        answer: noise_a.answer + noise_b.answer,
        judge: noise_a.judge + noise_b.judge,
    })
}
