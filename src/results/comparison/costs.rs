//! What a method costs on both sides of a comparison.

use serde::Serialize;

use super::changes::ComparedVariants;
use crate::results::aggregates::answers::Answers;
use crate::results::aggregates::contexts::paired_compression_costs;
use crate::results::result_set::ResultSet;
use crate::results::result_set::selection::Subset;

/// A figure on both sides; null where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostChange {
    /// Of the baseline.
    pub before: Option<f64>,
    /// Of the judged side.
    pub after: Option<f64>,
}

impl CostChange {
    /// The change relative to the baseline: 0.75 is 75% more. `None` where a side is unknown or the baseline is 0.
    pub fn relative(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before > 0.0).then(|| after / before - 1.0)
    }

    /// Whether both sides are known and differ.
    pub fn is_any(&self) -> bool {
        self.before
            .zip(self.after)
            .is_some_and(|(before, after)| before != after)
    }
}

/// What a method costs on both sides, over what both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostChanges {
    /// Tokens of a context, the geometric mean over fixtures; where a fixture has none, the arithmetic mean on both sides.
    pub tokens: CostChange,
    /// Dollars of one compression.
    pub usd: CostChange,
    /// Seconds of one compression.
    pub seconds: CostChange,
}

impl CostChanges {
    pub(super) fn from_matched(matched: &ComparedVariants<'_>) -> CostChanges {
        let own = answered(matched.judged, matched.pair.a.place);
        let other = answered(matched.baseline, matched.pair.b.place);
        let both = matched
            .probes
            .iter()
            .filter(|(a, b)| own.contains(a) && other.contains(b));
        let (judged, baseline): (Subset, Subset) = both.map(|(a, b)| (*a, *b)).unzip();
        let after = Answers::new(matched.judged, matched.pair.a.place, &judged);
        let before = Answers::new(matched.baseline, matched.pair.b.place, &baseline);
        let [paid, paid_before] = paired_compression_costs(matched.methods());
        let [tokens, tokens_before] =
            stats::paired_sizes([&after.context_sizes(), &before.context_sizes()]);
        CostChanges {
            tokens: CostChange {
                before: tokens_before.or(paid_before.tokens),
                after: tokens.or(paid.tokens),
            },
            usd: CostChange {
                before: paid_before.usd,
                after: paid.usd,
            },
            seconds: CostChange {
                before: paid_before.seconds,
                after: paid.seconds,
            },
        }
    }
}

/// The probes of a variant that were answered.
fn answered(set: &ResultSet, variant: usize) -> Subset {
    set.answers(variant)
        .iter()
        .map(|measured| measured.at.probe)
        .collect()
}
