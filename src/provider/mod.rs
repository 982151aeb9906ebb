//! Providers: what is asked of a model, in which dialect, at which pace, and what came back.
//!
//! The path of a call: [`request`] makes its bytes, once; [`Client::ask`] queues at the model's gate and the
//! account's, sends, hands every successful reply to the caller to keep, and only then [`read`]s it. Reading is pure
//! and is done again at every use of a kept reply.
//!
//! Invariants: a retry sends the same bytes; all waiting is in the gate or in the one retry loop; the user's limits
//! hold whatever a provider announces; a key can be sent and nothing else; what was not reported is `None`.
//!
//! Deliberately absent: cache, stages, printing. This room knows requests and replies, not what they are for.

mod spec;
mod api;
mod model_use;

// A call to bytes, and bytes to a completion: pure.
mod wire;
mod conversation;
mod reading;
mod chat;
mod responses;
mod anthropic;
mod anthropic_reply;
mod dialect;
mod estimate;

// What failures and headers mean: pure.
mod classify;
mod headers;
mod retry;
mod prices;

// Pace.
mod bucket;
mod rates;
mod tempo;
mod pace;
mod standing;
mod gate;
mod meter;
mod line;

// The wire and the loop.
mod http;
mod event;
mod client;

pub use api::{
    Billing, Call, CallFailure, Completion, ErrorClass, Operation, OutputSchema, RawReply, ReadFault, Settings, Turn,
};
pub use client::{AskFailure, Client};
pub use dialect::{read, read_billing, request};
pub use estimate::estimate;
pub use event::{ClientEvent, Listener};
pub use http::ApiKey;
pub use meter::{Bill, Meter, Unmetered};
pub use model_use::ModelUse;
pub use prices::{Price, Prices, context_window, longest_reply};
pub use retry::Patience;
pub use spec::{ApiKeyVariable, Dialect, Endpoint, Limits, ModelName, ModelRef, ProviderName, ProviderSpec};
pub use standing::{Standing, Waiting};
pub use wire::{Auth, BuildFault, HttpRequest};
