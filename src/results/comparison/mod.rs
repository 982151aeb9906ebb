//! Two result sets compared: what is comparable, what changed, verdicts and the gate.

pub(super) mod comparable;
pub(super) mod changes;
pub(super) mod costs;
pub(super) mod reliability;
pub(super) mod drift;
pub(super) mod tries;
pub(super) mod compare;
pub(super) mod gate;
pub(super) mod lost_constraints;

#[cfg(test)]
mod compare_tests;
