//! Compression strategies: (previous state, truncated span, whole prefix, settings) to work, and an output to a context.
//!
//! `prepare` makes the work of a point, `read` its context. Outputs that are not in memory are known by digest only:
//! `context_ref` and `state_digest` derive the digests of what goes downstream from the one that the store keeps.
//!
//! Invariants: a tool call is never separated from its results; a bound context goes back byte for byte; nothing a model
//! or program returns may panic, and an empty output is a failure, never a context.
//!
//! Deliberately absent: answers and grades, and running anything: programs and calls are the scheduler's.

mod command;
mod compute;
mod context;
mod prepare;
mod prompts;
mod read;
mod shape;
mod spec;

pub use command::{ProgramUsage, reported_usage};
pub use compute::compute;
pub use context::{Context, ContextRef};
pub use prepare::{CompressInput, prepare, session_system};
pub use prompts::{VARIABLES, built_in, sections};
pub use read::{CompressOutput, Compressed, context_ref, read, state_digest};
pub use shape::{Kept, Shape, SpanText, Tail};
pub use spec::{
    CommandSpec, Method, MethodName, PromptPlacement, PromptStyle, Protocol, Strategy, StrategyKind,
};

/// Why there is no context: no output, or none that can be used as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompressFault(String);

impl CompressFault {
    fn new(message: impl Into<String>) -> CompressFault {
        CompressFault(message.into())
    }

    fn empty() -> CompressFault {
        CompressFault::new("the compressor returned nothing; an empty context is no compression")
    }

    /// A breach of the protocol of programs.
    fn contract(found: impl std::fmt::Display, expected: &str) -> CompressFault {
        CompressFault::new(format!(
            "the program broke the protocol: {found}; expected {expected}"
        ))
    }
}

#[cfg(test)]
mod tests;
