//! A client of model providers: requests in the dialect of an API, the limits under which they are sent, and replies.
//!
//! The path of a call: [`request`] builds its bytes once. [`Client::ask`] waits for the model's and the account's rate
//! limiter, sends, hands every successful reply to the caller to store, and only then [`read`]s it. Reading is pure and
//! is repeated whenever a stored reply is used, so a new reading rule never costs a request.
//!
//! Invariants:
//!
//! - A retry sends the same bytes, without an optional field once the server refused it.
//! - A call waits only in the rate limiter or in the client's retry loop; a call of a batch API waits only in the retry loop
//!   of the batch client.
//! - The user's limits hold whatever a provider announces.
//! - A key can be sent and nothing else.
//! - A value that a provider did not report is `None`.
//!
//! Not here: cache, stages, printing. This crate knows requests and replies, not what they are for.

mod call;
mod spec;

// A call to bytes and bytes to a completion: pure.
mod dialects;
mod estimate;

// What failures mean and what tokens cost: pure.
mod classify;
mod prices;
mod retry;
mod signs;

mod connection;
mod fields;
mod limits;

mod batch;
mod client;
mod http;

pub use batch::{
    BatchClient, BatchEnding, BatchRequest, BatchResult, BatchSearch, BatchStatus, PreparedBatch,
};
pub use call::{
    Billing, Call, CallFailure, Completion, ErrorClass, ModelUse, Operation, OutputSchema,
    RawReply, ReadFault, Settings, Turn,
};
pub use call::{CallResult, Tool, ToolOffer, call_id};
pub use client::{AskFailure, Client, RequestCounts, reply_failure, truncated_call};
pub use dialects::{BuildFault, HttpRequest, read, read_billing, renumber_calls, request};
pub use estimate::estimate;
pub use http::ApiKey;
pub use limits::{ProviderStatus, WaitReason};
pub use prices::{Price, Prices, context_window, longest_reply};
pub use retry::{AttemptBudget, AttemptCost, RetryPolicy, Unlimited};
pub use spec::{
    ApiKeyVariable, Dialect, Endpoint, KeyPlace, Lane, Limits, ModelName, ModelRef, PerKind,
    ProviderName, ProviderSpec, RatesPerMinute,
};
