//! What the guard says of the contexts of a method.

use serde::{Deserialize, Serialize};

use super::contexts::contexts;
use crate::results::Ordered;
use crate::results::result_set::ResultSet;
use guard::{Options, Verdict};

/// The findings of the guard in the contexts of one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardSummary {
    /// How many contexts it looked at.
    pub contexts: u64,
    /// How many it would have rejected.
    pub rejected: u64,
    /// The share of these.
    pub rejected_share: f64,
    /// How many contexts have a finding of each rule, warnings among them.
    pub findings: Ordered<u64>,
}

impl GuardSummary {
    /// Of the contexts of `method`; `None` where the guard looked at none.
    pub(crate) fn new(set: &ResultSet, method: &str) -> Option<GuardSummary> {
        let guarded = contexts(set, method).into_iter();
        let guarded: Vec<_> = guarded.filter_map(|row| row.guard.as_ref()).collect();
        let rejected = guarded
            .iter()
            .filter(|found| found.values().any(|verdict| *verdict == Verdict::Reject))
            .count();
        let findings = Options::KINDS.into_iter().filter_map(|kind| {
            let count = guarded
                .iter()
                .filter(|found| found.contains_key(kind))
                .count();
            (count > 0).then(|| (kind.to_owned(), count as u64))
        });
        (!guarded.is_empty()).then(|| GuardSummary {
            contexts: guarded.len() as u64,
            rejected: rejected as u64,
            rejected_share: rejected as f64 / guarded.len() as f64,
            findings: findings.collect(),
        })
    }
}
