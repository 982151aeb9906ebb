//! Dimensions that count neither in `overall` nor in the gate, and why.
//!
//! A judge may be unqualified in a dimension; and a dimension may hardly tell the whole transcript from an empty context
//! ("I do not know" can follow every instruction). In a comparison the baseline decides the latter for both sides: else a
//! change could move the mean by moving what it is the mean of.

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
    /// `full` is graded less than a point above `none` in it.
    NarrowScale {
        /// The mean difference over the probes graded on both.
        difference: f64,
        /// How many those are.
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

/// Whether ceiling and floor are too near to each other in a dimension, on enough probes to say so.
fn narrow_scale(set: &ResultSet, dimension: Dimension) -> Option<ExclusionReason> {
    let (full, none) = ceiling_and_floor(set)?;
    let apart = differences_by_probe(set, full, none, |grade| grade.dimensions.get(dimension));
    let difference = mean(&apart).filter(|difference| *difference < NEEDED)?;
    (apart.len() >= PROBES_TO_REFUSE).then_some(ExclusionReason::NarrowScale { difference, probes: apart.len() })
}
