//! What became of planted items: which closed tasks came back, which open ones were forgotten; and whether more did than
//! in a baseline.
//!
//! The tests of a comparison are a family of their own: half of the level is for the two pooled figures, half for the
//! kinds, each half by Holm over all methods.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::shares::{FixtureCounts, Share, count};
use crate::planted::{Kind, State};
use crate::results::Ordered;
use crate::results::files::row::PlantedRow;
use crate::results::result_set::ResultSet;
use base::say;
use stats::RiseTest;
use stats::thresholds::ALPHA;

/// `planted` of a method in `summary.json`. The shares are null without an answerer, and where the control voids them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlantedSummary {
    /// Contexts of planted sessions.
    pub contexts: usize,
    /// Half the share of open actions done plus half the share of closed ones left: 50% is no knowledge.
    pub obeyed: Share,
    /// Finished, cancelled, replaced, quoted and forbidden actions that the next step does.
    pub resurrected: Share,
    /// Open actions that it leaves, and jobs that it starts again or whose handle is lost.
    pub forgotten: Share,
    /// Decoys that it does.
    pub decoys: Share,
    /// Actions whose state is right.
    pub state_right: Share,
    /// States that are wrong in a way that can do harm.
    pub state_harmful: Share,
    /// Rules that the context has, word for word or nearly so.
    pub rules_kept: Share,
    /// Actions with the right next step.
    pub by_kind: Ordered<Share>,
    /// What went wrong in each kind: resurrected, or forgotten.
    pub wrong_by_kind: Ordered<Share>,
    /// The same by where the item stands.
    pub by_position: Ordered<Share>,
    /// The same by the number of compressions, from 1.
    pub by_compressions: Ordered<Share>,
    /// How often each state was said, by the true one.
    pub states: Ordered<Ordered<u64>>,
}

/// What the whole transcript shows of the answerer, so of what the figures of other methods mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlantedControl {
    /// Why there are no figures.
    pub void: Option<String>,
    /// Kinds that even the whole transcript gets wrong too often.
    pub left_alone: BTreeSet<Kind>,
}

/// The whole transcript has this share of states right, or is not surely under it.
const STATES: f64 = 0.85;
/// It obeys in this share.
const OBEYED: f64 = 0.8;
/// It gets this share of a kind right, or the kind is left alone.
const OF_KIND: f64 = 0.75;

impl PlantedControl {
    /// Whether all figures of planted items count.
    pub fn is_clear(&self) -> bool {
        self.void.is_none() && self.left_alone.is_empty()
    }

    pub(crate) fn new(set: &ResultSet) -> PlantedControl {
        let locale = set.manifest.locale();
        let ceilings = set.design().methods.iter().filter(|info| info.is_ceiling());
        let names: Vec<&str> = ceilings.map(|info| info.name.as_str()).collect();
        let rows: Vec<&PlantedRow> = (set.planted.iter())
            .filter(|row| names.contains(&row.method.as_str()))
            .collect();
        let is_asked =
            (set.design().planted.as_ref()).is_some_and(|planted| planted.answerer.is_some());
        if rows.is_empty() || !is_asked {
            return PlantedControl::default();
        }
        let states: Vec<bool> = rows.iter().filter_map(|row| row.is_state_right()).collect();
        let right = states.iter().filter(|right| **right).count();
        let void = if rows.iter().all(|row| row.done.is_none()) || states.is_empty() {
            Some(say!(
                locale,
                "no reply about the whole transcript has the required form",
                "关于完整会话的回复没有一条符合格式"
            ))
        } else if binomial_at_most(right, states.len(), STATES) < ALPHA {
            Some(say!(
                locale,
                "from the whole transcript, {right} of {} states are right, significantly under 85%",
                "在完整会话上，{} 个状态中答对 {right} 个，明显低于 85%",
                states.len()
            ))
        } else {
            let obeyed = obeyed(&rows).share.filter(|share| *share < OBEYED);
            obeyed.map(|share| {
                say!(
                    locale,
                    "from the whole transcript, {:.0}% is obeyed, under 80%",
                    "在完整会话上只遵守了 {:.0}%，低于 80%",
                    100.0 * share
                )
            })
        };
        let is_weak = |kind: &Kind| {
            let rows: Vec<&PlantedRow> = rows
                .iter()
                .filter(|row| row.kind == *kind)
                .copied()
                .collect();
            let right = share(&rows, PlantedRow::is_right).share;
            right.is_some_and(|share| share < OF_KIND)
        };
        PlantedControl {
            left_alone: Kind::ALL.into_iter().filter(is_weak).collect(),
            void,
        }
    }
}

impl PlantedSummary {
    /// Measures a method; `None` where nothing was planted in its sessions.
    pub(crate) fn new(
        set: &ResultSet,
        method: &str,
        control: &PlantedControl,
    ) -> Option<PlantedSummary> {
        let rows: Vec<&PlantedRow> = set
            .planted
            .iter()
            .filter(|row| row.method == method)
            .collect();
        PlantedSummary::from_rows(&rows, control)
    }

    /// Measures these rows.
    pub(crate) fn from_rows(
        rows: &[&PlantedRow],
        control: &PlantedControl,
    ) -> Option<PlantedSummary> {
        rows.first()?;
        let contexts: BTreeSet<_> = rows
            .iter()
            .map(|row| (&row.fixture, row.variant, row.point))
            .collect();
        let kept = PlantedSummary {
            contexts: contexts.len(),
            rules_kept: share(rows, |row| row.near_literal),
            ..PlantedSummary::default()
        };
        if control.void.is_some()
            || rows
                .iter()
                .all(|row| row.done.is_none() && row.said.is_none())
        {
            return Some(kept);
        }
        let rows: Vec<&PlantedRow> = (rows.iter())
            .filter(|row| !control.left_alone.contains(&row.kind))
            .copied()
            .collect();
        let mut states: BTreeMap<State, BTreeMap<State, u64>> = BTreeMap::new();
        let own = rows.iter().filter_map(|row| Some((row.state, row.said?)));
        let decoys = rows
            .iter()
            .filter_map(|row| Some((State::NotInContext, row.decoy_said?)));
        for (truth, said) in own.chain(decoys) {
            *states.entry(truth).or_default().entry(said).or_default() += 1;
        }
        let named = |counts: BTreeMap<State, u64>| {
            counts
                .into_iter()
                .map(|(said, count)| (said.to_string(), count))
                .collect()
        };
        Some(PlantedSummary {
            obeyed: obeyed(&rows),
            resurrected: share(&rows, PlantedRow::is_resurrected),
            forgotten: share(&rows, PlantedRow::is_forgotten),
            decoys: share(&rows, |row| row.decoy_done),
            state_right: share(&rows, PlantedRow::is_state_right),
            state_harmful: share(&rows, PlantedRow::is_harmful),
            by_kind: by(&rows, |row| row.kind, PlantedRow::is_right),
            wrong_by_kind: by(&rows, |row| row.kind, PlantedRow::is_wrong),
            by_position: by(&rows, |row| row.position, PlantedRow::is_right),
            by_compressions: by(&rows, |row| row.point, PlantedRow::is_right),
            states: states
                .into_iter()
                .map(|(truth, said)| (truth.to_string(), named(said)))
                .collect(),
            ..kept
        })
    }
}

/// The share of rows of which something holds, of those for which it is known.
fn share(rows: &[&PlantedRow], holds: impl Fn(&PlantedRow) -> Option<bool>) -> Share {
    Share::from_counts(counts(rows, holds).values())
}

pub(crate) fn counts<'r>(
    rows: &[&'r PlantedRow],
    holds: impl Fn(&PlantedRow) -> Option<bool>,
) -> FixtureCounts<&'r str> {
    let mut counts = FixtureCounts::new();
    let known = rows
        .iter()
        .filter_map(|row| Some((row.fixture.as_str(), holds(row)?)));
    known.for_each(|(fixture, holds)| count(&mut counts, fixture, holds));
    counts
}

fn by<K: Ord + ToString>(
    rows: &[&PlantedRow],
    key: impl Fn(&PlantedRow) -> K,
    holds: impl Fn(&PlantedRow) -> Option<bool>,
) -> Ordered<Share> {
    let mut groups: BTreeMap<K, Vec<&PlantedRow>> = BTreeMap::new();
    rows.iter()
        .for_each(|row| groups.entry(key(row)).or_default().push(row));
    groups
        .into_iter()
        .map(|(key, rows)| (key.to_string(), share(&rows, &holds)))
        .collect()
}

/// The mean of the two shares in each session, over the sessions that have both.
fn obeyed(rows: &[&PlantedRow]) -> Share {
    let done = counts(rows, |row| row.done.filter(|_| row.state.is_open()));
    let left = counts(rows, |row| {
        row.done.filter(|_| !row.state.is_open()).map(|done| !done)
    });
    let part = |(count, of): &(u64, u64)| *count as f64 / *of as f64;
    let sessions = done
        .iter()
        .filter_map(|(fixture, open)| Some((open, left.get(fixture)?)));
    let (mut shares, mut count, mut of) = (Vec::new(), 0, 0);
    for (open, closed) in sessions {
        shares.push(f64::midpoint(part(open), part(closed)));
        count += open.0 + closed.0;
        of += open.1 + closed.1;
    }
    Share::new(&shares, count, of)
}

/// The probability of at most `count` of `of` where each has the probability `p`.
fn binomial_at_most(count: usize, of: usize, p: f64) -> f64 {
    // In logarithms: the first terms of many trials are too small for a number.
    let mut term = of as f64 * (1.0 - p).ln();
    let mut sum = term.exp();
    for k in 0..count.min(of) {
        term += ((of - k) as f64 / (k + 1) as f64 * p / (1.0 - p)).ln();
        sum += term.exp();
    }
    sum.min(1.0)
}

/// One share of what went wrong, on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlantedTest {
    /// In the baseline.
    pub before: Share,
    /// On the judged side.
    pub after: Share,
    #[serde(flatten)]
    test: RiseTest,
    /// Adjusted for its half of the family; to be compared with .05.
    pub p_adjusted: Option<f64>,
    /// The smallest rise that 80% of such runs find.
    pub smallest_found: Option<f64>,
    /// Whether it rose by more than chance.
    pub regressed: bool,
}

/// `planted` of a compared method: `resurrected`, `forgotten`, and each kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlantedComparison {
    /// `resurrected` and `forgotten`.
    pub pooled: Ordered<PlantedTest>,
    /// What went wrong in each kind.
    pub by_kind: Ordered<PlantedTest>,
}

impl PlantedComparison {
    /// What went wrong more often, with its test.
    pub fn regressed(&self) -> impl Iterator<Item = (&str, &PlantedTest)> {
        let all = self.pooled.iter().chain(self.by_kind.iter());
        all.filter(|(_, test)| test.regressed)
            .map(|(name, test)| (name.as_str(), test))
    }

    /// Whether any share differs.
    pub fn is_changed(&self) -> bool {
        let all = self.pooled.values().chain(self.by_kind.values());
        all.into_iter()
            .any(|test| test.before.count != test.after.count)
    }
}

impl PlantedTest {
    fn new(
        own: &[&PlantedRow],
        other: &[&PlantedRow],
        is_wrong: impl Fn(&PlantedRow) -> Option<bool>,
    ) -> Option<PlantedTest> {
        let [after, before] = [own, other].map(|rows| counts(rows, &is_wrong));
        let part = |(count, of): &(u64, u64)| *count as f64 / *of as f64;
        let both = after
            .iter()
            .filter_map(|(fixture, now)| Some((now, before.get(fixture)?)));
        let differences: Vec<f64> = both
            .clone()
            .map(|(now, then)| part(now) - part(then))
            .collect();
        let most = both.map(|(now, _)| now.1).max()?;
        Some(PlantedTest {
            before: Share::from_counts(before.values()),
            after: Share::from_counts(after.values()),
            test: RiseTest::new(&differences, 1.0 / most as f64)?,
            p_adjusted: None,
            smallest_found: None,
            regressed: false,
        })
    }
}

/// The shares of a pair of methods, not yet tested together with others. `None` where a side has none, or its control
/// voids them, or where no session has the same items on both sides.
pub(crate) fn planted_comparison(
    [judged, baseline]: [(&ResultSet, &str); 2],
) -> Option<PlantedComparison> {
    let planted = judged.0.design().planted.as_ref()?;
    let there = baseline.0.design().planted.as_ref()?;
    if !planted.is_tested || !planted.differences(there).is_empty() {
        return None;
    }
    let [own, other] = [judged, baseline].map(|(set, _)| PlantedControl::new(set));
    if own.void.is_some() || other.void.is_some() {
        return None;
    }
    let left_alone: BTreeSet<_> = own.left_alone.union(&other.left_alone).collect();
    let [own, other] = [judged, baseline].map(|(set, method)| {
        let mut sessions: BTreeMap<&str, BTreeMap<_, &PlantedRow>> = BTreeMap::new();
        for row in set.planted.iter().filter(|row| row.method == method) {
            let place = (row.variant, row.point, &row.item, &row.object, row.state);
            sessions.entry(&row.fixture).or_default().insert(place, row);
        }
        sessions
    });
    // Sessions with other items, or more of them, have another density.
    let same = own.iter().filter_map(|(fixture, rows)| {
        let there = other.get(fixture)?;
        rows.keys().eq(there.keys()).then_some((rows, there))
    });
    let pairs = same.flat_map(|(rows, there)| rows.values().zip(there.values()));
    let (own, other): (Vec<&PlantedRow>, Vec<&PlantedRow>) = pairs
        .filter(|(row, there)| {
            !left_alone.contains(&row.kind)
                && row.is_wrong().is_some()
                && there.is_wrong().is_some()
        })
        .unzip();
    of_pairs(&own, &other)
}

/// The same of rows that are the same items on both sides.
pub(crate) fn of_pairs(own: &[&PlantedRow], other: &[&PlantedRow]) -> Option<PlantedComparison> {
    let mut found = PlantedComparison::default();
    let pooled = [
        (
            "resurrected",
            PlantedTest::new(own, other, PlantedRow::is_resurrected),
        ),
        (
            "forgotten",
            PlantedTest::new(own, other, PlantedRow::is_forgotten),
        ),
    ];
    let tested = pooled
        .into_iter()
        .filter_map(|(name, test)| Some((name.to_owned(), test?)));
    found.pooled.extend(tested);
    for kind in crate::planted::Kind::ALL {
        let is_wrong = |row: &PlantedRow| row.is_wrong().filter(|_| row.kind == kind);
        if let Some(test) = PlantedTest::new(own, other, is_wrong) {
            found.by_kind.insert(kind.to_string(), test);
        }
    }
    (!found.pooled.is_empty()).then_some(found)
}

/// Tests all methods together.
pub(crate) fn test_family(methods: &mut [&mut PlantedComparison]) {
    let halves: [fn(&mut PlantedComparison) -> &mut Ordered<PlantedTest>; 2] =
        [|found| &mut found.pooled, |found| &mut found.by_kind];
    for half in halves {
        let mut tests: Vec<&mut PlantedTest> = methods
            .iter_mut()
            .flat_map(|found| half(found).values_mut())
            .filter(|test| test.test.p.is_some())
            .collect();
        let p: Vec<f64> = tests.iter().filter_map(|test| test.test.p).collect();
        let each = ALPHA / 2.0 / p.len().max(1) as f64;
        for (test, p) in tests.iter_mut().zip(stats::holm(&p)) {
            let p = (2.0 * p).min(1.0);
            test.p_adjusted = Some(p);
            test.regressed = p <= ALPHA && test.test.difference > 0.0;
            test.smallest_found = test.test.smallest_found(each);
        }
    }
}
