//! Figures of one result set, method by method: what a summary consists of.

pub(super) mod cells;
pub(super) mod contexts;
pub(super) mod economy;
pub(super) mod excluded;
pub(super) mod found;
pub(super) mod groups;
pub(super) mod literal_check;
pub(super) mod noise;
pub(super) mod open_book;
pub(super) mod planted;
pub(super) mod ranking;
pub(super) mod scale;
pub(super) mod shares;

use crate::results::result_set::ResultSet;
use crate::results::result_set::grade::MeasuredAnswer;
use crate::results::result_set::selection::Subset;
use stats::{self, Estimate};

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

    /// The share of expected facts that occur in the context.
    pub(crate) fn fact_survival(&self) -> Option<f64> {
        self.mean(|m| m.survival)
    }

    /// Tokens of a context: the geometric mean over fixtures of the means over probes.
    pub(crate) fn context_tokens(&self) -> Option<Estimate> {
        stats::geometric_mean(&self.context_sizes())
    }

    /// The mean tokens of a context of each fixture.
    pub(crate) fn context_sizes(&self) -> Vec<f64> {
        self.fixture_means(|m| m.context_tokens.map(|tokens| tokens as f64))
            .map(|(_, mean)| mean)
            .collect()
    }

    /// 1 − context tokens / replaced tokens.
    pub(crate) fn compression_ratio(&self) -> Option<f64> {
        self.mean(|m| m.ratio)
    }

    pub(crate) fn fixture(&self, measured: &MeasuredAnswer) -> Option<usize> {
        self.set.scores.fixture_of(measured.at.probe)
    }
}
