//! Whether more closed tasks come back, or more open ones are forgotten, than in the baseline.
//!
//! The tests are a family of their own: half of the level is for the two pooled figures, half for the kinds, each half
//! by Holm over all methods.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::results::Ordered;
use crate::results::aggregates::planted::{PlantedControl, counts};
use crate::results::aggregates::shares::Share;
use crate::results::files::row::PlantedRow;
use crate::results::result_set::ResultSet;
use stats::RiseTest;
use stats::thresholds::ALPHA;

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
pub(super) fn planted_comparison(
    [judged, baseline]: [(&ResultSet, &str); 2],
) -> Option<PlantedComparison> {
    if !judged.0.design().planted.as_ref()?.is_tested {
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
pub(super) fn of_pairs(own: &[&PlantedRow], other: &[&PlantedRow]) -> Option<PlantedComparison> {
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
pub(super) fn test_family(methods: &mut [&mut PlantedComparison]) {
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
