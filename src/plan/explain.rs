//! Stub.
use super::prepare::Action;
use super::standing::Reason;
use crate::cache::{Coordinate, Lookup};
use crate::pipeline::Pipeline;

/// x
pub struct Explained {
    /// x
    pub why: String,
    /// x
    pub changed: Vec<String>,
}

/// x
pub fn explain<L: Lookup>(_: &L, _: &Pipeline, _: &Coordinate, _: &Action, reason: &Reason) -> Explained {
    Explained { why: format!("{reason:?}").chars().take(40).collect(), changed: vec![] }
}
