//! Dimensions that count neither in `overall` nor in the gate, and why.
//!
//! A judge may be unqualified in a dimension, or a dimension may hardly distinguish the whole transcript from an empty
//! context ("I do not know" can follow every instruction). In a comparison, the baseline decides the latter for both
//! sides: otherwise a change could move the mean by changing which dimensions it includes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::scale::{NEEDED, PROBES_TO_REFUSE, ceiling_and_floor, differences_by_probe};
use crate::judge::Dimension;
use crate::results::result_set::ResultSet;
use stats::mean;

/// A dimension that is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExcludedDimension {
    /// Which one.
    pub dimension: Dimension,
    /// Why.
    #[serde(flatten)]
    pub reason: ExclusionReason,
}

/// Why a dimension is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum ExclusionReason {
    /// Judges failed its part of their self-test.
    Unqualified {
        /// Their names.
        judges: Vec<String>,
    },
    /// `full` is graded less than a point above `none`.
    NarrowScale {
        /// The mean difference over the probes that were graded for both.
        difference: f64,
        /// How many such probes there are.
        probes: usize,
    },
}

/// The dimensions that the figures of a set leave out, in the order of tables.
pub(in crate::results) fn excluded(set: &ResultSet) -> Vec<ExcludedDimension> {
    excluded_of(&[set], set)
}

/// The dimensions that a comparison leaves out on both sides.
pub(in crate::results) fn excluded_of(sets: &[&ResultSet], baseline: &ResultSet) -> Vec<ExcludedDimension> {
    let excluded = Dimension::ALL.into_iter().filter_map(|dimension| {
        let judges: BTreeSet<&String> = (sets.iter().flat_map(|set| &set.manifest.caveats.unqualified))
            .filter(|unqualified| unqualified.dimensions.contains(&dimension))
            .map(|unqualified| &unqualified.judge)
            .collect();
        let reason = match judges.is_empty() {
            false => ExclusionReason::Unqualified { judges: judges.into_iter().cloned().collect() },
            true => narrow_scale(baseline, dimension)?,
        };
        Some(ExcludedDimension { dimension, reason })
    });
    excluded.collect()
}

/// The reason to exclude a dimension if ceiling and floor are too close in it, on enough probes to know that.
fn narrow_scale(set: &ResultSet, dimension: Dimension) -> Option<ExclusionReason> {
    let (full, none) = ceiling_and_floor(set)?;
    let differences = differences_by_probe(set, full, none, |grade| grade.dimensions.get(dimension));
    let (difference, probes) = (mean(&differences).filter(|mean| *mean < NEEDED)?, differences.len());
    (probes >= PROBES_TO_REFUSE).then_some(ExclusionReason::NarrowScale { difference, probes })
}
