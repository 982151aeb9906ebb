//! Warnings and errors about the output of a compressor.

use base::say;

/// A finding about an output that is used anyway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The prompt asks for sections, and the summary has none of these names.
    #[error("the summary lacks sections that its prompt asks for: {}", .0.join(", "))]
    MissingSections(Vec<&'static str>),
    /// A fixture without tool schemas, sent with a conversation that calls tools.
    #[error("{}", say!(
        "the fixture records no tool schemas: the request declares tools made of its calls",
        "样本没有记录工具定义：请求声明的工具由其中的调用生成"
    ))]
    StubTools,
    /// A program returned a key that means nothing.
    #[error("the program returned the unknown key `{0}`; it is ignored")]
    UnknownKey(String),
    /// A program's own warning.
    #[error("the program warns: {0}")]
    Reported(String),
    /// A program left the messages as they are.
    #[error("the program compressed nothing: the context is the history as it is")]
    NotCompressed,
    /// A compressed context that takes more room than what it replaces.
    #[error("the context has {context} tokens and replaces {replaced}: it is larger than the history")]
    Larger { context: u64, replaced: u64 },
}

/// Why an output cannot be used as a context.
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
    Contract { found: String, expected: &'static str },
    /// A reply without the tag that its method takes the summary from.
    #[error("the reply has no <{0}>…</{0}>, which `extract` takes the summary from")]
    NoTag(String),
    /// A program says that it could not work as it should.
    #[error("the program says that its result is degraded: {0}")]
    Degraded(String),
    /// A vendor's reply without the items to send back.
    #[error("the reply holds no compaction item to send back later")]
    NoItems,
    /// A stored result that is not the list of messages it was written as.
    #[error("the computed context cannot be read: {0}")]
    Damaged(String),
    /// The output is of another kind than the strategy makes.
    #[error("a `{strategy}` method cannot have made this kind of output")]
    WrongKind { strategy: &'static str },
}

impl CompressFault {
    /// A breach of the protocol of programs.
    pub(super) fn contract(found: impl Into<String>, expected: &'static str) -> CompressFault {
        CompressFault::Contract { found: found.into(), expected }
    }
}
