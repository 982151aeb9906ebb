//! One compression of a session with a rule in it, as it stands in `constraints.jsonl`.

use serde::{Deserialize, Serialize};

use super::context_row::{is_yes, yes};
use crate::action::ActionKey;
use lexical::claims::RulePosition;

/// A line of `constraints.jsonl`: one compression of a session with a rule in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintRow {
    /// The fixture's name.
    pub fixture: String,
    /// The compression point, from 1: the rule has been through so many compressions.
    pub point: u32,
    /// The method's name.
    pub method: String,
    /// The run: the first, in which alone rules are put in.
    pub run: u32,
    /// The key of the compression that made the context.
    pub key: ActionKey,
    /// Whether anything was compressed.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub compressed: bool,
    /// The rule's name.
    pub rule: String,
    /// Where it was put.
    pub position: RulePosition,
    /// Whether the context has it word for word; null where only its provider can read it.
    pub literal: Option<bool>,
    /// Whether the context has it word for word, or its object and a prohibition in one sentence.
    pub near_literal: Option<bool>,
}
