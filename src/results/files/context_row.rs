//! One compression as it stands in `contexts.jsonl`: what it cost, and which needed references its context has; and as it
//! stands in `constraints.jsonl`: whether its context has a rule that was put into the session.

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest};
use crate::measure::{InventedReferences, NeedState, NeededRecall, ReferenceSource};
use lexical::claims::RulePosition;
use sessions::references::ReferenceKind;

/// One compression. What is unknown is null. `T` is all of a reference, or a part.
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
    /// Of the context as it was read: contexts with equal names are identical.
    pub context: Digest,
    /// Tokens of the context; null where only its provider can read it.
    pub tokens: Option<u64>,
    /// Tokens of the messages it replaces.
    pub replaced_tokens: u64,
    /// Tokens of the user's messages that a vendor returned word for word beside its item; absent where the context is
    /// not a vendor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_tokens: Option<u64>,
    /// What the compression took when it was executed.
    pub seconds: Option<f64>,
    /// What it cost then; null where no price is known.
    pub usd: Option<f64>,
    /// Requests to a model that it takes.
    pub calls: u32,
    /// Whether anything was compressed. `false`: the method kept all that it was to replace.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub compressed: bool,
    /// The needed references; null where the session uses none after the point, or the context cannot be read.
    pub needed: Option<ContextNeeded>,
    /// The references of the context that the transcript before the point does not have; null where the log begins in the
    /// middle of a session, or the context cannot be read.
    pub invented: Option<InventedReferences>,
    /// What is needed after the point, one entry a reference.
    pub references: T,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_yes(compressed: &bool) -> bool {
    *compressed
}

/// A context as figures are made of it.
pub type ContextFigures = ContextRow<Vec<AgedReference>>;

/// What survival by age takes of a needed reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgedReference {
    /// As [`ContextReference::age`].
    pub age: u32,
    /// As [`ContextReference::kept`].
    pub kept: bool,
}

/// What a context has of the needed references, beside what baselines of the same size have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextNeeded {
    /// Of the context itself.
    #[serde(flatten)]
    pub own: NeededRecall,
    /// The recall of a bare list of references of the same size, newest first.
    pub list: Option<f64>,
    /// The recall of the newest messages of the same size.
    pub truncate: Option<f64>,
}

impl ContextNeeded {
    /// What the context has more than the newest messages of the same size.
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
    /// How the session had it at hand.
    pub state: NeedState,
    /// Whether the context has it, with a word about it.
    pub kept: bool,
}

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
