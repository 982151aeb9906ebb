//! Open book: what searching brings over answering from the context alone, and who does not know what it lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answers::Answers;
use super::shares::{Share, share_of};
use crate::pipeline::Book;
use crate::results::result_set::ResultSet;
use crate::results::result_set::level::{ScoreEstimate, overall_level};
use crate::results::result_set::selection::{Selection, Subset, VariantRuns};
use stats::{self, Interval};

/// The answers of one method with a search, beside those without. Figures are means over fixtures of the means within one.
/// They are tested only where the pipeline declares so before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenBookSummary {
    /// `overall` of the answers from the context alone.
    pub closed: ScoreEstimate,
    /// `overall` of those with a search.
    pub open: ScoreEstimate,
    /// The mean over fixtures of the differences; null where none has both.
    pub gain: Option<f64>,
    /// Its 95% cluster t interval; null with one fixture, and where all fixtures gain the same.
    pub gain_ci95: Option<Interval>,
    /// Searches that one answer asked for.
    pub searches: Option<f64>,
    /// Tokens that one answer got from its searches.
    pub tokens: Option<f64>,
    /// Answers that got a message with a lost fact, of those that lost one and searched.
    pub gold_found: Share,
    /// Answers by what their context lost and whether they searched.
    pub answers: SearchedCounts,
    /// Whether the method returned an archive that was searched in place of the replaced messages.
    #[serde(default)]
    pub own_archive: bool,
}

/// Answers to answerable probes with a search, by whether the context lost any expected fact and whether they searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedCounts {
    /// Something was lost, and they searched.
    pub lost_searched: u64,
    /// Something was lost, and they did not search: they do not know what they lost.
    pub lost_not_searched: u64,
    /// All was kept, and they searched all the same.
    pub kept_searched: u64,
    /// All was kept, and they did not search.
    pub kept_not_searched: u64,
}

/// The two sets of answers to the same probes: from the context alone, and with a search; `None` where there was none.
fn books(set: &ResultSet) -> Option<(&ResultSet, &ResultSet)> {
    let other = set.other_book.as_deref()?;
    Some(match set.design().primary {
        Book::Closed => (set, other),
        Book::Open => (other, set),
    })
}

/// The tokens that one answer of a variant got from its searches, on the probes whose contexts and lost facts are known;
/// `None` where it never answered with a search.
pub(super) fn measured_tokens(set: &ResultSet, variant: usize, kept: &Subset) -> Option<f64> {
    let (_, open) = books(set)?;
    let answers = Answers::new(open, variant, kept);
    answers.mean(|m| m.context_tokens.and(m.refetch).and(m.reach).map(|reach| reach.tokens as f64))
}

impl OpenBookSummary {
    /// Of a variant, on the probes that the figures of `whole` are of; `None` where it never answered with a search.
    pub(in crate::results) fn new(set: &ResultSet, variant: usize, whole: &Selection<'_>) -> Option<OpenBookSummary> {
        let (closed, open) = books(set)?;
        let answers = Answers::new(open, variant, &whole.kept);
        answers.measured.iter().find(|measured| measured.reach.is_some())?;
        let [closed, open] = [closed, open].map(|set| whole.with_scores(&set.scores).runs(variant));
        let differences = differences(&closed, &open);
        let estimate = stats::interval(&differences);
        Some(OpenBookSummary {
            closed: overall_level(&closed),
            open: overall_level(&open),
            gain: stats::mean(&differences),
            gain_ci95: estimate.and_then(|estimate| estimate.ci95),
            searches: answers.mean(|m| Some(m.reach?.searches as f64)),
            tokens: answers.mean(|m| Some(m.reach?.tokens as f64)),
            gold_found: share_of(&answers, &|m| m.reach?.gold_found),
            answers: SearchedCounts::from_answers(&answers),
            own_archive: answers.measured.iter().filter_map(|measured| measured.reach).any(|reach| reach.own_archive),
        })
    }
}

/// By how much the open-book answers are better, fixture by fixture, of those that have both.
fn differences(closed: &VariantRuns, open: &VariantRuns) -> Vec<f64> {
    let closed: BTreeMap<usize, f64> =
        closed.overall().filter_map(|(fixture, runs)| Some((fixture, runs.cluster_value()?))).collect();
    open.overall().filter_map(|(fixture, runs)| Some(runs.cluster_value()? - closed.get(&fixture)?)).collect()
}

impl SearchedCounts {
    fn from_answers(answers: &Answers<'_>) -> SearchedCounts {
        let mut counts = SearchedCounts::default();
        for measured in &answers.measured {
            let (Some(reach), Some(survival)) = (measured.reach, measured.survival) else { continue };
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
