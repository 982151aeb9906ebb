//! Survival by age: the share that contexts still have of what a session last mentioned a given number of compressions
//! ago.
//!
//! Each age has other references, because only what is rarely mentioned again grows old. So the shares of two ages are
//! of different references, and their difference is not what is lost with age.

use serde::{Deserialize, Serialize};

use super::contexts::{CountedPoints, at};
use super::shares::shares_by;
use crate::results::{Ordered, Share};

/// `survival_by_age` of a method in `summary.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SurvivalByAge {
    /// Needed references, by the number of compressions since they last occurred, from 1.
    pub references: Ordered<Share>,
    /// Expected facts, by the same number.
    pub facts: Ordered<Share>,
}

impl SurvivalByAge {
    /// Measures a method; `None` where nothing has an age.
    pub(crate) fn new(
        points: &CountedPoints<'_>,
        method: &str,
        facts: Ordered<Share>,
    ) -> Option<SurvivalByAge> {
        let CountedPoints { set, common, .. } = points;
        let contexts = set
            .contexts
            .iter()
            .filter(|context| context.method == method && common.contains(&at(context)));
        let references = contexts.flat_map(|context| {
            context
                .references
                .iter()
                .map(move |reference| (&context.fixture, reference))
        });
        let shares = shares_by(
            references.map(|(fixture, reference)| (reference.age, fixture, reference.kept)),
        );
        if shares.is_empty() && facts.is_empty() {
            return None;
        }
        Some(SurvivalByAge {
            references: shares
                .into_iter()
                .map(|(age, share)| (age.to_string(), share))
                .collect(),
            facts,
        })
    }
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
            (0..references).map(move |at| AgedReference {
                age,
                kept: at < kept,
            })
        };
        let with = |name: &str| {
            let references = (1..=ages).flat_map(of).collect();
            (1..=2)
                .map(|run| ContextFigures {
                    references: Clone::clone(&references),
                    ..context(name, 1, run, 0.5)
                })
                .collect::<Vec<_>>()
        };
        ["a", "b", "c"].into_iter().flat_map(with).collect()
    }

    fn survival(contexts: Vec<ContextFigures>) -> Option<SurvivalByAge> {
        SurvivalByAge::new(&CountedPoints::new(&set(contexts)), "m", Ordered::new())
    }

    #[test]
    fn references_are_counted_by_their_age() {
        let found = survival(decaying(4, 256)).expect("ages");
        assert_eq!(
            found.references.keys().collect::<Vec<_>>(),
            ["1", "2", "3", "4"]
        );
        assert_eq!(found.references["2"].share, Some(0.5625));
        assert_eq!(survival(decaying(0, 0)), None);
    }
}
