//! Methods by their score, and which of them are clearly below the best one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stats::{Interval, PairTest, Separation, pair_tests};

use super::super::result_set::ResultSet;
use super::super::result_set::selection::VariantRuns;

/// The methods of the first answerer without ceiling and floor, by their score over the fixtures that all of them have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The method with the highest score.
    pub best: String,
    /// The others, highest first.
    pub others: Vec<RankedMethod>,
    /// The fixtures that all of them have.
    pub fixtures: usize,
    /// Methods that are graded above the whole transcript, by more than the interval of the difference.
    pub above_full: Vec<RankedMethod>,
}

/// A method against another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankedMethod {
    /// Its name.
    pub method: String,
    /// Its score minus that of the other one, in points: of the best method, or of the whole transcript.
    pub difference: f64,
    /// 95% interval of this difference; null on one fixture, and where all fixtures differ by the same.
    pub ci95: Option<Interval>,
    /// What the difference shows, after correction for all pairs of methods.
    pub separation: Separation,
}

impl RankedMethod {
    /// The second of a pair against the first, or the first against the second.
    fn new(method: &str, test: &PairTest, sign: f64) -> RankedMethod {
        RankedMethod {
            method: method.to_owned(),
            difference: sign * test.difference,
            ci95: test
                .ci95
                .map(|ci| if sign < 0.0 { ci.negated() } else { ci }),
            separation: test.separation,
        }
    }
}

impl Ranking {
    /// `None` where no method has a score. `runs` are those of all variants over the common probes.
    pub(crate) fn new(set: &ResultSet, runs: &[VariantRuns]) -> Option<Ranking> {
        let answerer = &set.design().answerers.first()?.name;
        let of_answerer = |variant: &usize| {
            set.variants
                .get(*variant)
                .is_some_and(|found| &found.answerer == answerer)
        };
        let scored: Vec<Scored<'_>> = (0..set.variants.len())
            .filter(of_answerer)
            .filter_map(|variant| Scored::new(set, runs, variant))
            .collect();
        let (methods, anchors): (Vec<_>, Vec<_>) =
            scored.into_iter().partition(|scored| !scored.is_anchor);
        let common = common_fixtures(&methods);
        let values: Vec<Vec<f64>> = methods.iter().map(|one| one.on(&common)).collect();
        let means: Vec<f64> = values.iter().filter_map(|of| stats::mean(of)).collect();
        // Of equals the first in the pipeline.
        let (best, _) = means
            .iter()
            .enumerate()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let tests = pair_tests(&values);
        let others = tests.iter().filter_map(|test| {
            let [one, other] = test.pair;
            let (place, sign) = match best {
                best if best == one => (other, -1.0),
                best if best == other => (one, 1.0),
                _ => return None,
            };
            Some(RankedMethod::new(methods.get(place)?.name, test, sign))
        });
        let mut others: Vec<RankedMethod> = others.collect();
        // stable: equals stay in the order of the pipeline
        others.sort_by(|a, b| b.difference.total_cmp(&a.difference));
        let full = anchors.iter().find(|anchor| anchor.is_full);
        let above_full = methods
            .iter()
            .filter_map(|method| above(method, full?))
            .collect();
        Some(Ranking {
            best: methods.get(best)?.name.to_owned(),
            others,
            fixtures: common.len(),
            above_full,
        })
    }
}

/// A method with its score by fixture.
struct Scored<'s> {
    name: &'s str,
    is_anchor: bool,
    is_full: bool,
    fixtures: BTreeMap<usize, f64>,
}

impl<'s> Scored<'s> {
    fn new(set: &'s ResultSet, runs: &[VariantRuns], variant: usize) -> Option<Scored<'s>> {
        let info = set.method(variant)?;
        let fixtures = runs.get(variant)?.overall_values();
        (!fixtures.is_empty()).then_some(Scored {
            name: &set.variants.get(variant)?.key,
            is_anchor: info.is_anchor(),
            is_full: info.is_ceiling(),
            fixtures,
        })
    }

    fn on(&self, fixtures: &BTreeSet<usize>) -> Vec<f64> {
        let known = self.fixtures.iter();
        known
            .filter(|(fixture, _)| fixtures.contains(fixture))
            .map(|(_, value)| *value)
            .collect()
    }
}

/// The fixtures in which all of these have a score.
fn common_fixtures<'s>(methods: impl IntoIterator<Item = &'s Scored<'s>>) -> BTreeSet<usize> {
    let all = methods
        .into_iter()
        .map(|one| one.fixtures.keys().copied().collect());
    all.reduce(|common: BTreeSet<usize>, own| &common & &own)
        .unwrap_or_default()
}

/// A method that is clearly above the whole transcript; on one fixture, by as much as a verdict needs.
fn above(method: &Scored<'_>, full: &Scored<'_>) -> Option<RankedMethod> {
    let common = common_fixtures([method, full]);
    let test = *pair_tests(&[method.on(&common), full.on(&common)]).first()?;
    let is_above = match test.ci95 {
        Some(ci) => ci.low() > 0.0,
        None => test.difference >= stats::thresholds::MARGIN,
    };
    is_above.then(|| RankedMethod::new(method.name, &test, 1.0))
}
