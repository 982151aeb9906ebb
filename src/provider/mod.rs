//! Providers: what is asked of a model, in which dialect, at which pace, and what came back.
//!
//! Deliberately absent: cache, stages, printing. This room knows requests and replies, not what they are for.

mod api;
mod model_use;
mod spec;

pub use api::{
    Call, CallFailure, Completion, ErrorClass, Operation, OutputSchema, RawReply, ReadFault, Settings, Turn,
};
pub use model_use::ModelUse;
pub use spec::{ApiKeyVariable, Dialect, Endpoint, Limits, ModelName, ModelRef, ProviderName, ProviderSpec};
