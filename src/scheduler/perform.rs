//! One action's life: work is put together, done, its raw output kept, read, and its reading noted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::budget::{Budget, BudgetReached};
use super::event::{Blame, Failure, Place};
use super::provenance::Provenance;
use super::shelf::{OutOfReach, Shelf};
use super::{program, window};
use crate::action::{ActionKey, Computation, Digest, Inputs, Request, RequestTurn, Work};
use crate::cache::{CacheError, Lookup, Meta, Reading, Reported, Store};
use crate::compress::{self, Strategy};
use crate::fixture::count_tokens;
use crate::lexical;
use crate::plan::{Action, Body, Output, Preparer, READER, Task, Unreadable, completion};
use crate::provider::{Call, CallFailure, Client, Dialect, ErrorClass, PriceTable, RawReply, Turn};
use crate::transcript::Message;
use crate::units::{Usage, Usd};

/// An output just made.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) out: Digest,
    pub(super) output: Output,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
}

/// Why an action has no output.
#[derive(Debug)]
pub(super) enum NoOutput {
    /// It failed; the run goes on.
    Failed(Box<Failure>),
    /// The budget does not allow it.
    OverBudget(BudgetReached),
    /// The store cannot keep anything more: the run ends.
    Store(CacheError),
}

impl From<CacheError> for NoOutput {
    fn from(error: CacheError) -> NoOutput {
        NoOutput::Store(error)
    }
}

/// What performing needs; shared by all actions under way.
pub(super) struct Performer<'e> {
    pub(super) preparer: Preparer<'e>,
    pub(super) store: &'e Store,
    pub(super) shelf: &'e Shelf<'e, Store>,
    pub(super) client: &'e Client,
    pub(super) budget: &'e Budget,
    pub(super) prices: &'e PriceTable,
    pub(super) provenance: &'e Provenance,
}

/// What an action is performed for.
pub(super) struct Errand<'t> {
    /// Reads the output of a body.
    pub(super) place: Place,
    pub(super) action: &'t Action,
    pub(super) coordinate: crate::cache::Coordinate,
    /// Replies that break the contract, before it is given up.
    pub(super) attempts: u32,
}
