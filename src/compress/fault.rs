//! Warnings about a context, and why there is none.

use base::locale::localized;
use base::say;

/// A finding about an output that is used anyway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The prompt asks for sections, and the summary has none of these names.
    #[error("{}", say!("the summary lacks sections that its prompt asks for: {}", "摘要缺少提示词要求的小节：{}", _0.join(", ")))]
    MissingSections(Vec<&'static str>),
    /// A fixture without tool schemas, sent with a conversation that calls tools.
    #[error("{}", say!(
        "the fixture records no tool schemas: the request declares tools made of its calls",
        "样本没有记录工具定义：请求声明的工具由其中的调用生成"
    ))]
    StubTools,
    /// A program returned a key that means nothing.
    #[error("{}", say!("the program returned the unknown key `{_0}`; it is ignored", "程序返回了未知键 `{_0}`，已忽略"))]
    UnknownKey(String),
    /// A program's own warning.
    #[error("{}", say!("the program warns: {_0}", "程序警告：{_0}"))]
    Reported(String),
    /// A program left the messages as they are.
    #[error(
        "{}",
        localized(
            "the program compressed nothing: the context is the history as it is",
            "程序什么也没有压缩：上下文就是原样的历史"
        )
    )]
    NotCompressed,
    /// A program says that it compressed nothing, and its context lacks some of the history.
    #[error(
        "{}",
        localized(
            "the program says `compressed: false`, but its context lacks some of the history: it is scored as usual",
            "程序声明 `compressed: false`，但其上下文缺少部分历史：照常评分"
        )
    )]
    NotWhole,
    /// A compressed context that takes more room than what it replaces.
    #[error("{}", say!("the context has {context} tokens and replaces {replaced}: it is larger than the history", "上下文有 {context} 个词元，替代 {replaced} 个：比历史还大"))]
    Larger { context: u64, replaced: u64 },
}

/// Why there is no context: no output, or none that can be used as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressFault {
    #[error(
        "{}",
        localized(
            "the compressor returned nothing; an empty context is no compression",
            "压缩程序没有返回内容；空上下文不是压缩"
        )
    )]
    Empty,
    /// A program's output is not JSON.
    #[error("{}", say!("standard output is not JSON: {error}; it begins: {seen}", "标准输出不是 JSON：{error}；开头为：{seen}"))]
    NotJson {
        /// What the parser says, with line and column.
        error: String,
        seen: String,
    },
    /// A program's output breaks the protocol.
    #[error("{}", say!("the program broke the protocol: {found}; expected {expected}", "程序违反协议：{found}；应为：{expected}"))]
    Contract {
        found: String,
        expected: &'static str,
    },
    /// A reply without the tag that its method takes the summary from.
    #[error("{}", say!("the reply has no <{_0}>…</{_0}>, which `extract` takes the summary from", "回复中没有 `extract` 取摘要所用的 <{_0}>…</{_0}>"))]
    NoTag(String),
    /// A program says that it could not work as it should.
    #[error("{}", say!("the program says that its result is degraded: {_0}", "程序说其结果不完善：{_0}"))]
    Degraded(String),
    /// The modules that a program loaded are not known, so its output could not be found again.
    #[error("{0}")]
    Modules(String),
    /// A vendor's reply without the items to send back.
    #[error(
        "{}",
        localized(
            "the reply holds no compaction item to send back later",
            "回复中没有可供以后送回的压缩项"
        )
    )]
    NoItems,
    /// A stored result that is not the list of messages it was written as.
    #[error("{}", say!("the computed context cannot be read: {_0}", "无法读取计算出的上下文：{_0}"))]
    Damaged(String),
    /// The output is of another kind than the strategy makes.
    #[error("{}", say!("a `{strategy}` method cannot have made this kind of output", "`{strategy}` 方法不可能产生这种输出"))]
    WrongKind { strategy: &'static str },
    /// A rule cannot reach its target.
    #[error("{}", say!("the texts alone have more than {target} tokens, and `prune` drops no text", "仅文字就超过 {target} 个词元，而 `prune` 不删文字"))]
    TextsTooLarge { target: u64 },
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
