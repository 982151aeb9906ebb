//! What contexts keep and cost: survival, attribution, tokens; shares of answers and facts with their intervals over fixtures;
//! and what answers gain by a search over the context alone, and how often a lost fact is not searched for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Answers;
use crate::action::StageName;
use crate::measure::{AnswerWhenLost, ContextShares, share};
use crate::results::Ordered;
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::MeasuredAnswer;
use crate::results::result_set::selection::{ScoreEstimate, Selection, VariantRuns, overall_level};
use stats::{self, Interval};

/// A share of answers or facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The mean over fixtures of the share within each; null where there is nothing to count.
    pub share: Option<f64>,
    /// 95% cluster t interval, clipped to 0 and 1; null with one fixture, and where all fixtures have the same share.
    pub ci95: Option<Interval>,
    /// The numerator, over all runs.
    pub count: u64,
    /// The denominator, over all runs.
    pub of: u64,
    /// Fixtures with anything to count.
    pub fixtures: usize,
}

impl Share {
    pub(super) fn new(by_fixture: &[f64], count: u64, of: u64) -> Share {
        let estimate = stats::share(by_fixture);
        Share {
            share: estimate.map(|estimate| estimate.center),
            ci95: estimate.and_then(|estimate| estimate.ci95),
            count,
            of,
            fixtures: by_fixture.len(),
        }
    }

    /// From the numerator and denominator of each fixture with anything to count.
    pub(crate) fn from_counts<'c>(counts: impl Iterator<Item = &'c (u64, u64)> + Clone) -> Share {
        let by_fixture: Vec<f64> = counts
            .clone()
            .map(|(count, of)| *count as f64 / *of as f64)
            .collect();
        Share::new(
            &by_fixture,
            counts.clone().map(|counts| counts.0).sum(),
            counts.map(|counts| counts.1).sum(),
        )
    }
}

/// What answers do if their context lost every expected fact of the probe. All four shares are of the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overclaim {
    /// They assert another value: an overclaim.
    pub other_value: Share,
    /// They say that they do not know.
    pub admission: Share,
    /// They neither admit nor name a value.
    pub vague: Share,
    /// They are right nevertheless.
    pub right: Share,
}

/// A share on both sides of a comparison. It is descriptive: no verdict depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ShareDifference {
    /// In the baseline; null where no context can be read.
    pub before: Option<Share>,
    /// On the judged side; null where no context can be read.
    pub after: Option<Share>,
    /// The mean of the differences over fixtures that have both.
    pub difference: Option<f64>,
    /// Its 95% cluster t interval over these fixtures; null in the same cases as [`Share::ci95`].
    pub ci95: Option<Interval>,
}

impl ShareDifference {
    /// Whether the counts of the two sides differ.
    pub fn is_any(&self) -> bool {
        let [before, after] =
            [self.before, self.after].map(|side| side.map(|share| (share.count, share.of)));
        before != after
    }
}

/// Whether an answer is in the numerator of a share; `None` if it is not even in the denominator.
pub(super) type Counts<'c> = &'c dyn Fn(&MeasuredAnswer) -> Option<bool>;

fn is_overclaim(measured: &MeasuredAnswer) -> Option<bool> {
    measured
        .when_lost
        .map(|does| does == AnswerWhenLost::OtherValue)
}

fn is_fabricated(measured: &MeasuredAnswer) -> Option<bool> {
    measured.fabricated
}

/// The share of answers that count.
pub(super) fn share_of(answers: &Answers<'_>, counts: Counts<'_>) -> Share {
    let by_fixture: Vec<f64> = fixture_shares(answers, counts).into_values().collect();
    let (mut count, mut of) = (0, 0);
    for counted in answers
        .measured
        .iter()
        .filter_map(|measured| counts(measured))
    {
        count += u64::from(counted);
        of += 1;
    }
    Share::new(&by_fixture, count, of)
}

/// The share of each fixture.
fn fixture_shares(answers: &Answers<'_>, counts: Counts<'_>) -> BTreeMap<usize, f64> {
    answers
        .fixture_means(|measured| counts(measured).map(|counted| f64::from(u8::from(counted))))
        .collect()
}

/// Whether any context with an expected fact can be read.
fn has_readable_context(answers: &Answers<'_>) -> bool {
    answers
        .measured
        .iter()
        .flat_map(|measured| &measured.facts)
        .any(|fact| fact.class.is_some())
}

impl Overclaim {
    /// What answers do without their facts; `None` where no context can be read.
    pub(super) fn from_answers(answers: &Answers<'_>) -> Option<Overclaim> {
        has_readable_context(answers).then(|| Overclaim {
            other_value: share_when_lost(answers, AnswerWhenLost::OtherValue),
            admission: share_when_lost(answers, AnswerWhenLost::Admission),
            vague: share_when_lost(answers, AnswerWhenLost::Vague),
            right: share_when_lost(answers, AnswerWhenLost::Right),
        })
    }
}

/// The share of the answers without their facts that do this.
fn share_when_lost(answers: &Answers<'_>, wanted: AnswerWhenLost) -> Share {
    share_of(answers, &|measured| {
        measured.when_lost.map(|does| does == wanted)
    })
}

/// Survival by the heading of the compression prompt that facts belong under.
pub(crate) fn survival_by_heading(answers: &Answers<'_>) -> Ordered<Share> {
    let facts = answers.measured.iter().flat_map(|measured| {
        let heading = measured.heading.iter();
        heading.flat_map(move |heading| {
            measured
                .facts
                .iter()
                .map(move |fact| (heading, fact, *measured))
        })
    });
    let shares = shares_by(facts.filter_map(|(heading, fact, measured)| {
        Some((
            heading.clone(),
            answers.fixture(measured)?,
            fact.is_present()?,
        ))
    }));
    shares.into_iter().collect()
}

/// By fixture: the numerator and the denominator of its share.
pub(crate) type FixtureCounts<Fixture> = BTreeMap<Fixture, (u64, u64)>;

/// Adds one thing to the counts of its fixture.
pub(crate) fn count<Fixture: Ord>(
    counts: &mut FixtureCounts<Fixture>,
    fixture: Fixture,
    is_counted: bool,
) {
    let (count, of) = counts.entry(fixture).or_default();
    *count += u64::from(is_counted);
    *of += 1;
}

/// The share of each group. Each item has its group, its fixture, and whether it counts.
pub(super) fn shares_by<Group: Ord, Fixture: Ord>(
    all: impl Iterator<Item = (Group, Fixture, bool)>,
) -> BTreeMap<Group, Share> {
    let mut groups: BTreeMap<Group, FixtureCounts<Fixture>> = BTreeMap::new();
    all.for_each(|(group, fixture, is_counted)| {
        count(groups.entry(group).or_default(), fixture, is_counted)
    });
    groups
        .into_iter()
        .map(|(group, fixtures)| (group, Share::from_counts(fixtures.values())))
        .collect()
}

/// How the shares of overclaims, of fabrications and of truncated answers differ. `sides` are the judged one and the
/// baseline; `fixtures` maps each fixture of the first to the same one of the second.
pub(crate) fn share_differences(
    sides: [&Answers<'_>; 2],
    fixtures: &BTreeMap<usize, usize>,
) -> [ShareDifference; 3] {
    let readable = sides.map(|side| Some(side).filter(|side| has_readable_context(side)));
    // Where the token limit cut off no answer, nothing is recorded.
    let mut all = sides.iter().flat_map(|side| &side.measured);
    let is_any_cut = all.any(|measured| measured.truncated);
    let cut = sides.map(|side| Some(side).filter(|_| is_any_cut));
    [
        difference(&is_overclaim, readable, fixtures),
        difference(&is_fabricated, sides.map(Some), fixtures),
        difference(&|measured| Some(measured.truncated), cut, fixtures),
    ]
}

/// How a share differs; a side is `None` if it is unknown there.
fn difference(
    counts: Counts<'_>,
    [after, before]: [Option<&Answers<'_>>; 2],
    fixtures: &BTreeMap<usize, usize>,
) -> ShareDifference {
    let [now, earlier] = [after, before].map(|side| {
        side.map(|side| fixture_shares(side, counts))
            .unwrap_or_default()
    });
    let differences: Vec<f64> = now
        .iter()
        .filter_map(|(fixture, share)| Some(share - earlier.get(fixtures.get(fixture)?)?))
        .collect();
    let [before, after] = [before, after].map(|side| side.map(|side| share_of(side, counts)));
    let estimate = stats::share_difference(&differences);
    ShareDifference {
        before,
        after,
        difference: estimate.map(|estimate| estimate.center),
        ci95: estimate.and_then(|estimate| estimate.ci95),
    }
}

/// What contexts keep, and what they cost. Means are taken within each fixture, then over fixtures; for context tokens
/// the mean over fixtures is the geometric one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Economy {
    /// 1 − context tokens / replaced tokens.
    pub compression_ratio: Option<f64>,
    /// Tokens of a context, the geometric mean over fixtures.
    pub context_tokens: Option<f64>,
    /// The interval of these tokens for other sessions like these.
    pub context_tokens_ci95: Option<Interval>,
    /// The share of expected facts that occur in the context.
    pub fact_survival: Option<f64>,
    /// The share of expected facts that occur in the summary; null where contexts are nothing but a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_survival: Option<f64>,
    /// How contexts state the expected facts; null where no context can be read.
    pub in_context: ContextShares,
    /// The share of the facts of probes with the tag `constraint` that occur in the context; null without such probes.
    pub constraints_kept: Option<f64>,
    /// `fact_survival` without the facts that the floor method answers, too; null without a floor method.
    pub fact_survival_lift: Option<f64>,
    /// Tokens of a question, failures asked again with the whole transcript; null where sizes are unknown.
    pub tokens_per_question: Option<f64>,
    /// Survival by the heading of the compression prompt that facts belong under by their words; empty without
    /// headings.
    pub survival_by_heading: Ordered<Share>,
    /// What answers do if their context lost every expected fact; null where no context can be read.
    pub overclaim: Option<Overclaim>,
    /// The share of answers to unanswerable probes that assert something.
    pub fabrication: Share,
    /// Superseded facts stated as current, in all answers.
    pub stale_facts: u64,
    /// What the method's distinct actions cost when they were executed, in dollars, by stage; null where a price is
    /// unknown.
    pub usd: BTreeMap<StageName, Option<f64>>,
}

/// A fact by its probe and its place there.
type FactAt = (usize, usize);

/// The facts that a variant answers, in any run.
pub(crate) fn answered_facts(set: &ResultSet, variant: usize) -> BTreeSet<FactAt> {
    let mut facts = BTreeSet::new();
    for measured in set.answers(variant) {
        let answered = measured
            .facts
            .iter()
            .enumerate()
            .filter(|(_, fact)| fact.answered);
        facts.extend(answered.map(|(fact, _)| (measured.at.probe, fact)));
    }
    facts
}

impl Economy {
    /// Measures contexts and answers. `guessable` are the facts that the floor method answers.
    pub(crate) fn new(answers: &Answers<'_>, guessable: Option<&BTreeSet<FactAt>>) -> Economy {
        let tokens = stats::geometric_mean(&answers.context_sizes());
        Economy {
            compression_ratio: answers.mean(|m| m.ratio),
            context_tokens: tokens.map(|tokens| tokens.center),
            context_tokens_ci95: tokens.and_then(|tokens| tokens.ci95),
            fact_survival: answers.mean(|m| m.survival),
            summary_survival: answers.mean(|m| m.summary_survival),
            in_context: in_context(answers),
            constraints_kept: answers.mean(|m| m.survival.filter(|_| m.is_constraint)),
            fact_survival_lift: guessable
                .and_then(|guessable| answers.mean(|m| lift(m, guessable))),
            tokens_per_question: answers.mean(|m| tokens_of_question(m, guessable)),
            survival_by_heading: survival_by_heading(answers),
            overclaim: Overclaim::from_answers(answers),
            fabrication: share_of(answers, &is_fabricated),
            stale_facts: answers.measured.iter().map(|m| m.stale).sum(),
            usd: costs(answers.set, answers.variant),
        }
    }
}

fn in_context(answers: &Answers<'_>) -> ContextShares {
    ContextShares {
        placed: mean_in_context(answers, |shares| shares.placed),
        denied: mean_in_context(answers, |shares| shares.denied),
        contradicted: mean_in_context(answers, |shares| shares.contradicted),
        stale: mean_in_context(answers, |shares| shares.stale),
        sound: mean_in_context(answers, |shares| shares.sound),
    }
}

fn mean_in_context(answers: &Answers<'_>, share: fn(ContextShares) -> Option<f64>) -> Option<f64> {
    answers.mean(|m| m.in_context.and_then(share))
}

/// The tokens of a question: of its context and, where the answer lacks an expected fact, of the whole transcript, with
/// which it is asked again. This assumes that the reader notices a failure. Facts
/// that the floor answers too do not count; `None` where no other is expected.
fn tokens_of_question(
    measured: &MeasuredAnswer,
    guessable: Option<&BTreeSet<FactAt>>,
) -> Option<f64> {
    let is_guessable =
        |fact| guessable.is_some_and(|known| known.contains(&(measured.at.probe, fact)));
    let facts = measured.facts.iter().enumerate();
    let mut facts = facts.filter(|(fact, _)| !is_guessable(*fact)).peekable();
    facts.peek()?;
    let again = match facts.all(|(_, fact)| fact.answered) {
        true => 0,
        false => measured.replaced_tokens?,
    };
    Some((measured.context_tokens? + again) as f64)
}

fn lift(measured: &MeasuredAnswer, guessable: &BTreeSet<FactAt>) -> Option<f64> {
    let own = measured
        .facts
        .iter()
        .enumerate()
        .filter(|(fact, _)| !guessable.contains(&(measured.at.probe, *fact)));
    let present: Option<Vec<bool>> = own.map(|(_, fact)| fact.is_present()).collect();
    share(present?)
}

/// What distinct actions cost, by stage; one unknown price makes a sum unknown.
fn costs(set: &ResultSet, variant: usize) -> BTreeMap<StageName, Option<f64>> {
    let of_variant = set.costs.get(variant).into_iter().flatten();
    of_variant
        .map(|(stage, actions)| (*stage, actions.iter().map(|(_, usd)| *usd).sum()))
        .collect()
}

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
        })
    }
}

/// How much better open-book answers are, for each fixture that has both kinds.
fn differences(closed: &VariantRuns, open: &VariantRuns) -> Vec<f64> {
    let (closed, open) = (closed.overall_values(), open.overall_values());
    let both = open.iter();
    both.filter_map(|(fixture, open)| Some(open - closed.get(fixture)?))
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
}
