//! Why a session is left out, and why nothing is said about other policies. In JSON the reasons are English; messages
//! are in the language of messages.

use base::say;
use serde::Serialize;

/// With a larger median error over sessions, nothing is advised.
pub const MOST_ERROR: f64 = 0.10;

/// Why the bill of a session cannot be simulated. The words also fit a list of several sessions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// No request has counters.
    #[error("the log counts no tokens")]
    NoCounters,
    /// Some requests lack the count of the tokens that the cache served, or of the output.
    #[error("the log does not count cache reads and output of every request")]
    NoCacheCounters,
    /// The first request has nothing before it that a cache could serve.
    #[error("fewer than 2 requests have counters")]
    TooShort,
    /// Without times it is not known when the cache expired.
    #[error("the log has no times, so it is not known when the cache expired")]
    NoTimes,
    /// The price of a model is unknown.
    #[error("no price is known for `{0}`; price it as another with --price-as MODEL")]
    NoPrice(String),
    /// The log names no model.
    #[error("the log names no model; price it with --price-as MODEL")]
    NoModel,
}

impl LeftOut {
    /// The reason in the language of messages.
    pub fn message(&self) -> String {
        let chinese = match self {
            LeftOut::NoCounters => "日志未统计词元",
            LeftOut::NoCacheCounters => "日志未统计每次请求的缓存读取与输出",
            LeftOut::TooShort => "带计数的请求不足 2 次",
            LeftOut::NoTimes => "日志没有时间，因此不知缓存何时过期",
            LeftOut::NoPrice(model) => {
                &format!("`{model}` 的价格未知；可用 --price-as MODEL 按另一模型计价")
            }
            LeftOut::NoModel => "日志未写模型名；可用 --price-as MODEL 计价",
        };
        say!("{self}", "{chinese}")
    }
}

impl Serialize for LeftOut {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A session that is not simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOutSession {
    /// The log.
    pub file: String,
    /// The session.
    pub session: String,
    /// Why.
    pub why: LeftOut,
}

/// Why nothing is said about other policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// No session can be priced.
    #[error("no session has counters, times and prices")]
    NoSession,
    /// The back-test holds for no format.
    #[error(
        "in the median session of each format the computed bill is more than {:.0}% off the logged one, so the prompt cache \
         did not work as is assumed here, or other requests came in between",
        100.0 * MOST_ERROR
    )]
    BackTest,
    /// There is no method to simulate.
    #[error("no log records a compaction, and --contexts names no methods")]
    NoMethod,
    /// Nothing would ever be compacted.
    #[error("no session grows much beyond its system prompt and tools")]
    NoGrowth,
}

impl Withheld {
    /// The reason in the language of messages.
    pub fn message(self) -> String {
        let chinese = match self {
            Withheld::NoSession => "没有同时带计数、时间与价格的会话",
            Withheld::BackTest => &format!(
                "每种格式的中位会话，算出的账单与记录的相差都超过 {:.0}%：提示缓存并未如此处假定的那样工作，或其间另有请求",
                100.0 * MOST_ERROR
            ),
            Withheld::NoMethod => "没有日志记录过压缩，--contexts 也未给出方法",
            Withheld::NoGrowth => "没有会话明显超出其系统提示与工具的大小",
        };
        say!("{self}", "{chinese}")
    }
}

impl Serialize for Withheld {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
