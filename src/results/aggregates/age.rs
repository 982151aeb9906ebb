//! Survival by age: the share that contexts still have of what a session last mentioned a given number of compressions
//! ago.
//!
//! Each age has other references, because only what is rarely mentioned again grows old. So age 5 and age 1 compare
//! different references, and a fit over ages describes these sessions only.

use serde::{Deserialize, Serialize};

use super::contexts::{at, common_points};
use super::shares::shares_by;
use crate::results::result_set::ResultSet;
use crate::results::{Ordered, Share};

/// References and fixtures that an age needs to take part in the fit.
const FEWEST: (u64, usize) = (20, 3);

/// `survival_by_age` of a method in `summary.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SurvivalByAge {
    /// Needed references, by the number of compressions since they last occurred, from 1.
    pub references: Ordered<Share>,
    /// Expected facts, by the same number. Results without ages have two groups: `1`, and `2+` for facts that only an
    /// earlier span mentions.
    pub facts: Ordered<Share>,
    /// The share of references that each further compression loses, from the ages that have 20 references and 3
    /// fixtures; null with fewer than two such ages.
    pub drift: Option<f64>,
    /// The number of compressions after which half of the references are lost at that rate; null where nothing is lost.
    pub half_life: Option<f64>,
}

impl SurvivalByAge {
    /// Measures a method; `None` where nothing has an age.
    pub(crate) fn new(set: &ResultSet, method: &str, facts: Ordered<Share>) -> Option<SurvivalByAge> {
        let common = common_points(set);
        let contexts = set.contexts.iter().filter(|context| context.method == method && common.contains(&at(context)));
        let references =
            contexts.flat_map(|context| context.references.iter().map(move |reference| (&context.fixture, reference)));
        let shares = shares_by(references.map(|(fixture, reference)| (reference.age, fixture, reference.kept)));
        if shares.is_empty() && facts.is_empty() {
            return None;
        }
        let runs = u64::from(set.design().runs.compress).max(1);
        let large = (shares.iter())
            .filter(|(_, share)| share.of / runs >= FEWEST.0 && share.fixtures >= FEWEST.1)
            .map(|(age, share)| (*age, share));
        let drift = decay_rate(large);
        let half_life = drift.filter(|drift| (0.0..1.0).contains(drift) && *drift > 0.0);
        Some(SurvivalByAge {
            references: shares.into_iter().map(|(age, share)| (age.to_string(), share)).collect(),
            facts,
            drift,
            half_life: half_life.map(|drift| 0.5_f64.ln() / (1.0 - drift).ln()),
        })
    }
}

/// The loss per compression of a geometric decay, fitted by least squares to the logarithms of the shares. A share of 0
/// has no logarithm, so the fit ends before it.
fn decay_rate<'s>(shares: impl Iterator<Item = (u32, &'s Share)>) -> Option<f64> {
    let points: Vec<(f64, f64)> = shares
        .map_while(|(age, share)| Some((f64::from(age), share.share.filter(|share| *share > 0.0)?.ln())))
        .collect();
    if points.len() < 2 {
        return None;
    }
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let product: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(1.0 - (product / square).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::aggregates::contexts::fakes::{context, set};
    use crate::results::files::context_row::{AgedReference, ContextFigures};

    /// Contexts of three sessions whose compressor keeps three quarters of the references each time.
    fn decaying(ages: u32, references: usize) -> Vec<ContextFigures> {
        let of = |age: u32| {
            let kept = (0.75_f64.powi(age as i32) * references as f64).round() as usize;
            (0..references).map(move |at| AgedReference { age, kept: at < kept })
        };
        let with = |name: &str| {
            let references = (1..=ages).flat_map(of).collect();
            (1..=2)
                .map(|run| ContextFigures { references: Clone::clone(&references), ..context(name, 1, run, 0.5) })
                .collect::<Vec<_>>()
        };
        ["a", "b", "c"].into_iter().flat_map(with).collect()
    }

    #[test]
    fn a_known_loss_a_round_is_recovered_as_drift() {
        let found = SurvivalByAge::new(&set(decaying(4, 256)), "m", Ordered::new()).expect("ages");
        assert_eq!(found.references.keys().collect::<Vec<_>>(), ["1", "2", "3", "4"]);
        assert_eq!(found.references["2"].share, Some(0.5625));
        assert!((found.drift.expect("a drift") - 0.25).abs() < 1e-3, "{found:?}");
        assert!((found.half_life.expect("a half-life") - 2.409).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn few_references_have_shares_and_no_drift() {
        let found = SurvivalByAge::new(&set(decaying(4, 6)), "m", Ordered::new()).expect("ages");
        assert_eq!((found.references.len(), found.drift, found.half_life), (4, None, None));
        let one = SurvivalByAge::new(&set(decaying(1, 256)), "m", Ordered::new()).expect("ages");
        assert_eq!((one.references.len(), one.drift), (1, None));
        assert_eq!(SurvivalByAge::new(&set(decaying(0, 0)), "m", Ordered::new()), None);
    }
}
