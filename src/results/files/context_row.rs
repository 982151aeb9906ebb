//! A line of `contexts.jsonl`: what one compression cost, and which needed references its context has. A line of
//! `constraints.jsonl`: whether the context of one compression has the rule that was put into the session.

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest};
use crate::measure::{InventedReferences, NeedState, NeededRecall, ReferenceSource};
use lexical::claims::RulePosition;
use sessions::references::ReferenceKind;

/// One compression. Unknown values are null. `T` has the references, or the fields of them that figures need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct ContextRow<T = Vec<ContextReference>> {
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
    /// The needed references; null if the session uses none after the point, or the context cannot be read.
    pub needed: Option<ContextNeeded>,
    /// The references of the context that the transcript before the point does not have; null if the log begins in the
    /// middle of a session, or the context cannot be read.
    pub invented: Option<InventedReferences>,
    /// Each reference that is needed after the point.
    pub references: T,
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

/// A compression with only the fields that figures need.
pub type ContextFigures = ContextRow<Vec<AgedReference>>;

/// The fields of a needed reference that survival by age needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgedReference {
    /// As [`ContextReference::age`].
    pub age: u32,
    /// As [`ContextReference::kept`].
    pub kept: bool,
}

/// The recall of needed references of a context, and of the newest messages of the same size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextNeeded {
    /// The recall of the context itself.
    #[serde(flatten)]
    pub own: NeededRecall,
    /// The recall of the newest messages of the same size.
    pub truncate: Option<f64>,
}

impl ContextNeeded {
    /// The recall minus that of the newest messages of the same size.
    pub fn lift(&self) -> Option<f64> {
        Some(self.own.recall? - self.truncate?)
    }
}

/// A needed reference and whether the context has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextReference {
    /// As the session uses it.
    pub text: String,
    /// What kind of detail it is.
    pub kind: ReferenceKind,
    /// Where it last occurred before the point.
    pub source: ReferenceSource,
    /// Turns of the assistant from the point to its first use.
    pub distance: u32,
    /// Compressions since it last occurred, this one included.
    pub age: u32,
    /// Whether it was carried along, or fetched again, when the session used it.
    pub state: NeedState,
    /// Whether the context has it, with a word about it.
    pub kept: bool,
}

/// One compression of a session with a rule in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintRow {
    /// The fixture's name.
    pub fixture: String,
    /// The compression point, from 1, which is how many compressions the rule has been through.
    pub point: u32,
    /// The method's name.
    pub method: String,
    /// The run, which is the first: rules are put in only there.
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
    /// Whether the context has it word for word; null if only its provider can read it.
    pub literal: Option<bool>,
    /// Whether the context has it word for word, or its object and a prohibition in one sentence.
    pub near_literal: Option<bool>,
}
