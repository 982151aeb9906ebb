//! Open book: what answers gain by a search over the context alone, and how often a lost fact is not searched for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Answers;
use super::shares::{Share, share_of};
use crate::results::result_set::ResultSet;
use crate::results::result_set::selection::{ScoreEstimate, Selection, VariantRuns, overall_level};
use stats::{self, Interval};

/// The answers of one method with a search, and those without. Means are taken within each fixture, then over fixtures.
/// Answers with a search have no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenBookSummary {
    /// `overall` of the answers from the context alone.
    pub closed: ScoreEstimate,
    /// `overall` of the answers with a search.
    pub open: ScoreEstimate,
    /// The mean over fixtures of open minus closed; null where no fixture has both.
    pub gain: Option<f64>,
    /// The 95% cluster t interval of the gain; null with one fixture, and where all fixtures gain the same.
    pub gain_ci95: Option<Interval>,
    /// Searches per answer.
    pub searches: Option<f64>,
    /// Tokens that searches returned, per answer.
    pub tokens: Option<f64>,
    /// Of the answers that lacked a fact and searched, the share that got a message with such a fact.
    pub gold_found: Share,
    /// Answers by whether their context lost a fact and whether they searched.
    pub answers: SearchedCounts,
    /// Whether the method has an archive of its own, which was searched in place of the replaced messages.
    pub own_archive: bool,
}

/// Answers that could search, to answerable probes: by whether the context lost an expected fact and whether they
/// searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedCounts {
    /// Something was lost, and they searched.
    pub lost_searched: u64,
    /// Something was lost, and they did not search: the answerer did not know what it had lost.
    pub lost_not_searched: u64,
    /// Everything was kept, and they searched nevertheless.
    pub kept_searched: u64,
    /// Everything was kept, and they did not search.
    pub kept_not_searched: u64,
}

impl OpenBookSummary {
    /// Measures a variant on the probes of `whole`; `None` if it never answered with a search.
    pub(crate) fn new(
        set: &ResultSet,
        variant: usize,
        whole: &Selection<'_>,
    ) -> Option<OpenBookSummary> {
        let open = set.open_book.as_deref()?;
        let answers = Answers::new(open, variant, &whole.kept);
        answers
            .measured
            .iter()
            .find(|measured| measured.reach.is_some())?;
        let [closed, open] = [set, open].map(|set| whole.with_scores(&set.scores).runs(variant));
        let differences = differences(&closed, &open);
        let estimate = stats::interval(&differences);
        Some(OpenBookSummary {
            closed: overall_level(&closed),
            open: overall_level(&open),
            gain: stats::mean(&differences),
            gain_ci95: estimate.and_then(|estimate| estimate.ci95),
            searches: answers.mean(|m| Some(m.reach.as_ref()?.searches as f64)),
            tokens: answers.mean(|m| Some(m.reach.as_ref()?.tokens as f64)),
            gold_found: share_of(&answers, &|m| m.reach.as_ref()?.gold_found),
            answers: SearchedCounts::from_answers(&answers),
            own_archive: answers
                .measured
                .iter()
                .filter_map(|measured| measured.reach.as_ref())
                .any(|reach| reach.own_archive),
        })
    }
}

/// How much better open-book answers are, for each fixture that has both kinds.
fn differences(closed: &VariantRuns, open: &VariantRuns) -> Vec<f64> {
    let closed: BTreeMap<usize, f64> = closed
        .overall()
        .filter_map(|(fixture, runs)| Some((fixture, runs.cluster_value()?)))
        .collect();
    open.overall()
        .filter_map(|(fixture, runs)| Some(runs.cluster_value()? - closed.get(&fixture)?))
        .collect()
}

impl SearchedCounts {
    fn from_answers(answers: &Answers<'_>) -> SearchedCounts {
        let mut counts = SearchedCounts::default();
        for measured in &answers.measured {
            let (Some(reach), Some(survival)) = (&measured.reach, measured.survival) else {
                continue;
            };
            let count = match (survival < 1.0, reach.searches > 0) {
                (true, true) => &mut counts.lost_searched,
                (true, false) => &mut counts.lost_not_searched,
                (false, true) => &mut counts.kept_searched,
                (false, false) => &mut counts.kept_not_searched,
            };
            *count += 1;
        }
        counts
    }

    /// All answers counted.
    pub fn all(&self) -> u64 {
        self.lost_searched + self.lost_not_searched + self.kept_searched + self.kept_not_searched
    }
}
