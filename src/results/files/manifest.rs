//! `manifest.json`: what ran, what went wrong, and what it cost. Times and facts about the machine are only in this file.
//!
//! It keeps what the verdicts of a comparison were corrected for: how today's judges grade answers of the baseline, compared
//! with their grades then. So repeating a comparison sends nothing and gives the same verdicts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::design::Design;
use crate::action::{Digest, StageName};
use crate::entries::Refresh;
use crate::judge::{Dimension, SelfTestDesign, UnqualifiedJudge};
use crate::parts::PartNumber;
use crate::plan::{CostEstimate, FailedAction};
use base::locale::Locale;
use base::named_enum;
use base::units::{Usage, Usd};
use stats::{Regrading, mean_of};
use store::remote::Exchanged;

/// The version of the format of a results folder. A folder of any other format is refused.
pub const FORMAT: u32 = 7;

/// What ran, how it ended, and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the folder.
    pub format: u32,
    /// The version of the program that wrote it.
    pub version: String,
    /// The label; a set that was replaced no longer has the label that it was written under.
    pub label: String,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// When it ended; `None` while it runs, and after a crash.
    pub ended: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it asks for again (`--refresh`). The next run with the same refresh continues it if this one is stopped.
    #[serde(default, skip_serializing_if = "Refresh::is_empty")]
    pub refresh: Refresh,
    /// The git commit that was checked out in the project's repository; `None` outside of a repository. Files may
    /// differ from it: their digests are in `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The pipeline as resolved, with the digests of fixtures, points, banks, prompts and rubric.
    pub design: Design,
    /// The digests of the project's text files that the run used, by path relative to the pipeline.
    pub files: BTreeMap<String, Digest>,
    /// The models that providers named in their replies, by the `provider/model` that was asked.
    pub models: BTreeMap<String, BTreeSet<String>>,
    /// What each stage did.
    pub stages: BTreeMap<StageName, StageCounts>,
    /// Requests that were sent, including failed attempts.
    pub requests_sent: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// How often a provider reported a rate limit.
    pub rate_limited: u64,
    /// The usage that providers reported for all replies to this run, including unused ones; null where none was
    /// reported.
    pub usage: Usage,
    /// What this run cost, including unused replies; null where a price is unknown.
    pub usd: Option<Usd>,
    /// The part of usage and cost that was not used for any result.
    pub unused: Unused,
    /// Dollars that providers' prompt caches saved, as far as prices are known.
    pub saved_by_prompt_cache: Usd,
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// Every action that failed, once.
    pub failures: Vec<FailedAction>,
    /// The seed and the padding that the cases of the judges' self-test were drawn with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selftest: Option<SelfTestDesign>,
    /// The forecast before the run.
    pub forecast: Option<CostEstimate>,
    /// What must be printed on every report.
    pub caveats: Caveats,
    /// What it was compared with (`--compare-to`); it is compared again when the report is made anew.
    pub compared_to: Option<String>,
    /// When the run of that baseline began: other results may have its label by now.
    pub compared_began: Option<String>,
    /// What that comparison may leave out.
    pub compared_scope: ComparisonScope,
    /// The second grades of baseline answers, if a changed judge would explain a verdict.
    #[serde(default, skip_serializing_if = "Regradings::is_empty")]
    pub regradings: Regradings,
    /// The part of the matrix that it has; `None` if it has all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartNumber>,
    /// The shared cache that the run used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Exchanged>,
    /// The language that its reader chose; not stored.
    #[serde(skip)]
    pub chosen_locale: Option<Locale>,
}

/// What may be left out of a comparison. Each scope includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonScope {
    /// Nothing: both sides must have measured the same fixtures and probes.
    #[default]
    All,
    /// Fixtures, methods and probes that one side did not select (`run --fixtures`).
    Selected,
    /// Everything that the two sides measured differently (`--only-common`).
    Common,
}

named_enum! {
    /// How a run ended, the gravest last.
    #[derive(Default)]
    pub enum Outcome {
        /// It has not ended, or it crashed.
        #[default]
        Running = "running",
        /// All cells have their results.
        Complete = "complete",
        /// Work is left, because the run was offline or batches are open.
        Pending = "pending",
        /// Some cells failed or are missing.
        Incomplete = "incomplete",
        /// A budget stopped it.
        Budget = "budget",
        /// The user stopped it.
        Interrupted = "interrupted",
        /// A judge failed its self-test, or the cache could keep nothing more. Its results are incomplete or complete.
        Broken = "broken",
    }
}

impl Outcome {
    /// Whether the run came to its end, with or without failures.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, Outcome::Complete | Outcome::Incomplete)
    }
}

/// What a stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounts {
    /// Cells of the matrix at this stage; many may need the same action.
    pub cells: u64,
    /// Distinct actions that were settled: executed, cached or failed.
    pub actions: u64,
    /// Actions that asked a model or computed something in this run.
    pub executed: u64,
    /// Actions that were found in the cache.
    pub cached: u64,
    /// Actions that failed, by any cause.
    pub failed: u64,
    /// Cached actions that are still valid although something above them was edited, because its output stayed the
    /// same.
    pub early_cutoff: u64,
    /// Cells that were not begun: offline, over budget, interrupted, provider unavailable, weak judge. Cells that
    /// depend on them are not counted here.
    pub skipped: u64,
    /// Cells that can have no output, because one above them, or one with the same action, has none.
    #[serde(default)]
    pub blocked: u64,
}

/// Replies that were paid for and not used for any result: malformed, cut off, refused, or against the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unused {
    /// How many such replies there were.
    pub replies: u64,
    /// The usage that providers reported for them.
    pub usage: Usage,
    /// What they cost; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Requests, besides these, that were never answered: whether they are billed is unknown.
    pub unanswered: u64,
}

/// How a judge graded answers to the longest contexts of the run, as they were and with a fact made false.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingCheck {
    /// The judge's name.
    pub judge: String,
    /// How many of the changed answers it graded below the unchanged ones, in the mean of accuracy and completeness.
    pub below: usize,
    /// How many it graded above them.
    pub above: usize,
    /// How many answers there were; with fewer than [`ReadingCheck::ANSWERS`] the judge is not checked.
    pub of: usize,
}

impl ReadingCheck {
    /// The number of answers in a check.
    pub const ANSWERS: usize = 20;
    /// How many more must be graded below than above.
    pub const NEEDED: usize = 8;

    /// Whether the judge was checked.
    pub fn is_done(&self) -> bool {
        self.of >= ReadingCheck::ANSWERS
    }

    /// Whether the judge hardly reads what it grades.
    pub fn is_failed(&self) -> bool {
        self.is_done() && self.below < self.above + ReadingCheck::NEEDED
    }
}

/// What must be printed on every report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveats {
    /// No request was sent and no program started.
    pub offline: bool,
    /// Judges that failed their self-test.
    pub weak_judges: Vec<String>,
    /// Such judges were used nevertheless (`--allow-weak-judge`).
    pub allow_weak_judge: bool,
    /// Judges that are not qualified in some dimensions, which `overall` and the gate therefore leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unqualified: Vec<UnqualifiedJudge>,
    /// Judges that were checked on answers of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reading: Vec<ReadingCheck>,
    /// Expected facts that occur nowhere in the transcript were accepted.
    pub allow_unproven: bool,
    /// How many sessions are in another language than the one that judges are tested in.
    pub other_language: usize,
    /// Other remarks, as sentences.
    pub notes: Vec<String>,
}

impl Manifest {
    /// The manifest of a run that begins.
    pub fn begin(label: &str, started: &str, design: Design) -> Manifest {
        let stages = StageName::OF_RUN
            .into_iter()
            .map(|stage| (stage, StageCounts::default()))
            .collect();
        Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            label: label.to_owned(),
            started: started.to_owned(),
            ended: None,
            outcome: Outcome::Running,
            refresh: Refresh::default(),
            commit: None,
            design,
            files: BTreeMap::new(),
            models: BTreeMap::new(),
            stages,
            requests_sent: 0,
            retries: 0,
            rate_limited: 0,
            usage: Usage::default(),
            usd: None,
            unused: Unused::default(),
            saved_by_prompt_cache: Usd(0.0),
            wall_s: 0.0,
            failures: Vec::new(),
            forecast: None,
            selftest: None,
            caveats: Caveats::default(),
            compared_to: None,
            compared_began: None,
            compared_scope: ComparisonScope::All,
            regradings: Regradings::default(),
            part: None,
            remote: None,
            chosen_locale: None,
        }
    }

    /// The language of a report on it: the one that its reader chose, else its own.
    pub fn locale(&self) -> Locale {
        self.chosen_locale.unwrap_or(self.design.locale)
    }

    /// The share of settled actions that came from the cache, from 0 to 1; `None` if none was settled.
    pub fn cached_share(&self) -> Option<f64> {
        let (cached, done) = self.stages.values().fold((0, 0), |(cached, done), stage| {
            (
                cached + stage.cached,
                done + stage.cached + stage.executed + stage.failed,
            )
        });
        (done > 0).then(|| cached as f64 / done as f64)
    }
}

/// The scores of one answer by dimension.
pub type AnswerScores = BTreeMap<Dimension, f64>;

/// How the grades of baseline answers moved when they were graded again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regraded {
    /// The mean over the dimensions; `None` if none was measured both times.
    pub overall: Option<Regrading>,
    /// Each dimension that was measured both times.
    pub dimensions: BTreeMap<Dimension, Regrading>,
}

impl Regraded {
    /// Compares the scores of the same answers, then and today. `overall` is without the dimensions `left_out`.
    pub fn between(
        answers: &[(AnswerScores, AnswerScores)],
        left_out: &BTreeSet<Dimension>,
    ) -> Regraded {
        let overall = regrade(answers, |scores| {
            let kept = scores
                .iter()
                .filter(|(dimension, _)| !left_out.contains(dimension));
            mean_of(kept.map(|(_, score)| *score))
        });
        let dimensions = Dimension::ALL.into_iter().filter_map(|dimension| {
            Some((
                dimension,
                regrade(answers, |scores| scores.get(&dimension).copied())?,
            ))
        });
        Regraded {
            overall,
            dimensions: dimensions.collect(),
        }
    }

    /// The dimension with this name.
    pub fn dimension(&self, name: &str) -> Option<&Regrading> {
        self.dimensions
            .iter()
            .find(|(dimension, _)| dimension.name() == name)
            .map(|(_, regrading)| regrading)
    }
}

/// How a score moved, over the answers that have it both times.
fn regrade(
    answers: &[(AnswerScores, AnswerScores)],
    score: impl Fn(&AnswerScores) -> Option<f64>,
) -> Option<Regrading> {
    let both = answers
        .iter()
        .filter_map(|(then, today)| score(then).zip(score(today)));
    let (then, today): (Vec<f64>, Vec<f64>) = both.unzip();
    Regrading::between(&then, &today)
}

/// All regradings of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regradings {
    /// When the run of the baseline began: a later run under its label has other answers.
    pub baseline: String,
    /// For the mean over the tested methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Regraded>,
    /// By method of the judged side.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<String, Regraded>,
}

impl Regradings {
    /// Whether nothing was graded again.
    pub fn is_empty(&self) -> bool {
        self.primary.is_none() && self.methods.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_are_by_dimension_and_overall_without_what_is_left_out() {
        let scores = |accuracy, completeness| {
            AnswerScores::from([
                (Dimension::Accuracy, accuracy),
                (Dimension::Completeness, completeness),
            ])
        };
        let only = AnswerScores::from([(Dimension::Accuracy, 3.0)]);
        let answers = [
            (scores(4.0, 2.0), scores(3.0, 2.0)),
            (scores(5.0, 1.0), scores(3.0, 2.0)),
            (only.clone(), only),
        ];
        let all = Regraded::between(&answers, &BTreeSet::new());
        let shift = |found: Option<&Regrading>| found.map(|found| (found.answers, found.shift));
        assert_eq!(shift(all.dimension("accuracy")), Some((3, -1.0)));
        assert_eq!(shift(all.dimension("completeness")), Some((2, 0.5)));
        assert_eq!(shift(all.overall.as_ref()), Some((3, -1.0 / 3.0)));
        let accuracy = Regraded::between(&answers, &[Dimension::Completeness].into());
        assert_eq!(shift(accuracy.overall.as_ref()), Some((3, -1.0)));
        assert_eq!(all.dimension("continuity"), None);
        assert_eq!(
            Regraded::between(&[], &BTreeSet::new()),
            Regraded::default()
        );
    }
}
