//! A line of `contexts.jsonl`: what one compression cost and kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest};
use guard::Verdict;
use lexical::InventedReferences;

/// One compression. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextRow {
    /// The fixture's name.
    pub fixture: String,
    /// The compression point, from 1.
    pub point: u32,
    /// The method's name.
    pub method: String,
    /// The run, from 1.
    pub run: u32,
    /// The key of the compression that made the context.
    pub key: ActionKey,
    /// The digest of the context as it was read: equal digests mean identical contexts.
    pub context: Digest,
    /// Tokens of the context; null if only its provider can read it.
    pub tokens: Option<u64>,
    /// Tokens of the messages that it replaces.
    pub replaced_tokens: u64,
    /// Tokens of the user's messages that a vendor returned word for word with its item; absent if the context is not a
    /// vendor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_tokens: Option<u64>,
    /// How long the compression took when it was executed.
    pub seconds: Option<f64>,
    /// What it cost then, in dollars; null if no price is known.
    pub usd: Option<f64>,
    /// The number of requests to a model.
    pub calls: u32,
    /// Whether anything was compressed; if not, the method kept everything that it was asked to replace.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub compressed: bool,
    /// The share of the expected facts that it has, the mean over the probes asked at its point; null if none of them
    /// has literal facts, and if the context cannot be read.
    pub fact_survival: Option<f64>,
    /// The references of the context that the transcript before the point does not have; null if the log begins in the
    /// middle of a session, or the context cannot be read.
    pub invented: Option<InventedReferences>,
    /// What the guard found, by its rule, each with the severity; null for the ends of the scale, and if the context
    /// cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<BTreeMap<String, Verdict>>,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(compressed: &bool) -> bool {
    *compressed
}
