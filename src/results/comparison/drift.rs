//! What is known of the judge where a change of its would explain a verdict: then all fixtures differ by about the same.

use serde::Serialize;

use crate::results::files::regradings::Regraded;
use stats::{DifferenceTest, Regrading};

/// Whether answers of the baseline were graded again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum DriftCheck {
    /// They were not: a judge that has changed would look like the verdict.
    Unchecked,
    /// They were: verdicts that their shift explains are none.
    Checked(Regraded),
}

impl DriftCheck {
    pub(super) fn new(regraded: Option<&Regraded>) -> DriftCheck {
        regraded.map_or(DriftCheck::Unchecked, |regraded| DriftCheck::Checked(regraded.clone()))
    }
}

/// Takes a verdict back that the judge's shift explains.
pub(super) fn take_back(test: &mut DifferenceTest, regrading: Option<&Regrading>) {
    if let Some(regrading) = regrading {
        *test = test.unless_drifted(regrading);
    }
}
