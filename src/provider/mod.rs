//! Providers: what is asked of a model, in which dialect, at which pace, and what came back.
//!
//! Deliberately absent: cache, stages, printing. This room knows requests and replies, not what they are for.

mod spec;
mod api;
mod model_use;
mod wire;
mod reading;
mod estimate;
mod conversation;
mod chat;
mod responses;
mod anthropic_reply;
mod anthropic;
mod dialect;
mod headers;
mod classify;
mod retry;
mod pace;
mod bucket;
mod rates;
mod tempo;
mod gate;
mod line;
mod event;
mod prices;
mod http;
mod client;

pub use api::{
    Call, CallFailure, Completion, ErrorClass, Operation, OutputSchema, RawReply, ReadFault, Settings, Turn,
};
pub use client::{AskFailure, Client};
pub use dialect::{read, read_usage, request};
pub use estimate::estimate;
pub use event::{ClientEvent, Listener};
pub use http::ApiKey;
pub use model_use::ModelUse;
pub use prices::{Price, Prices};
pub use retry::Patience;
pub use spec::{ApiKeyVariable, Dialect, Endpoint, Limits, ModelName, ModelRef, ProviderName, ProviderSpec};
pub use wire::{Auth, BuildFault, HttpRequest};
