//! Why a compaction is not counted, and why there is little to see in a session. In JSON the reasons are English
//! sentences.

use base::locale::localized;
use base::named_enum;

named_enum! {
    /// Why a compaction is listed but not counted.
    pub enum NotCounted {
        /// Only old tool results were cleared.
        Clearing = "cleared old tool results, no summary",
        /// What came before it is not in the log.
        BeginsMidway = "the log begins in the middle of the session",
        /// Most of what was compacted is not in the log.
        MostMissing = "the log holds less than a tenth of the tokens that were compacted",
        /// The window is too short.
        FewTurns = "fewer than 10 turns follow",
        /// The calls of the window cannot be read.
        UnknownCalls = "it is not known what the calls after it do",
    }
}

named_enum! {
    /// Why there is little to see in a session.
    pub enum SessionNote {
        /// Nothing was answered.
        NoTurn = "there is no turn of the assistant in it",
        /// One turn has nothing after it.
        OneTurn = "it has only one turn of the assistant",
        /// Nothing can have been read again.
        NoCalls = "it has no tool calls",
        /// What came before is not in the log.
        BeginsMidway = "it begins in the middle of a session",
    }
}

impl NotCounted {
    /// The reason in the language of messages.
    pub fn message(self) -> &'static str {
        let chinese = match self {
            NotCounted::Clearing => "只清除了旧的工具结果，没有摘要",
            NotCounted::BeginsMidway => "日志从会话中途开始",
            NotCounted::MostMissing => "日志所含不足被压缩词元的十分之一",
            NotCounted::FewTurns => "其后不足 10 轮",
            NotCounted::UnknownCalls => "不知其后的调用做了什么",
        };
        localized(self.name(), chinese)
    }
}

impl SessionNote {
    /// The reason in the language of messages.
    pub fn message(self) -> &'static str {
        let chinese = match self {
            SessionNote::NoTurn => "其中没有助手的轮次",
            SessionNote::OneTurn => "助手只有一轮",
            SessionNote::NoCalls => "没有工具调用",
            SessionNote::BeginsMidway => "从会话中途开始",
        };
        localized(self.name(), chinese)
    }
}
