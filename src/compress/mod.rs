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
pub enum CompressFault {
    #[error("the compressor returned nothing; an empty context is no compression")]
    Empty,
    /// A program's output is not JSON.
    #[error("standard output is not JSON: {error}; it begins: {seen}")]
    NotJson {
        /// What the parser says, with line and column.
        error: String,
        seen: String,
    },
    /// A program's output breaks the protocol.
    #[error("the program broke the protocol: {found}; expected {expected}")]
    Contract {
        found: String,
        expected: &'static str,
    },
    /// A reply without the tag that its method takes the summary from.
    #[error("the reply has no <{_0}>…</{_0}>, which `extract` takes the summary from")]
    NoTag(String),
    /// A program says that it could not work as it should.
    #[error("the program says that its result is degraded: {_0}")]
    Degraded(String),
    /// A vendor's reply without the items to send back.
    #[error("the reply holds no compaction item to send back later")]
    NoItems,
    /// A stored result that is not the list of messages it was written as.
    #[error("the computed context cannot be read: {_0}")]
    Damaged(String),
    /// The output is of another kind than the strategy makes.
    #[error("a `{strategy}` method cannot have made this kind of output")]
    WrongKind { strategy: &'static str },
}

impl CompressFault {
    /// A breach of the protocol of programs.
    pub(super) fn contract(found: impl Into<String>, expected: &'static str) -> CompressFault {
        CompressFault::Contract {
            found: found.into(),
            expected,
        }
    }
}

#[cfg(test)]
mod tests;
