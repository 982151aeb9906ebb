//! The formats of logs, and their properties.

use base::locale::word;
use base::named_enum;

named_enum! {
    /// The formats that can be read.
    pub enum Format {
        /// Claude Code: JSON lines.
        ClaudeCode = "claude-code",
        /// Codex CLI: rollout files.
        Codex = "codex",
        /// Gemini CLI: single JSON, JSONL, checkpoints.
        Gemini = "gemini-cli",
        /// pi: session files.
        Pi = "pi",
        /// `opencode export`.
        OpenCode = "opencode",
        /// Hermes: gateway transcript, session log, session export, trajectories.
        Hermes = "hermes",
        /// SWE-agent: trajectories.
        SweAgent = "swe-agent",
        /// mini-SWE-agent: trajectories.
        MiniSweAgent = "mini-swe-agent",
        /// OpenHands: event lists, evaluation output, agent SDK events.
        OpenHands = "openhands",
        /// Aider: chat history in Markdown.
        Aider = "aider",
        /// Copilot CLI: session events.
        CopilotCli = "copilot-cli",
        /// Inspect: evaluation logs.
        Inspect = "inspect",
        /// Messages as OpenAI's API has them.
        OpenAi = "openai-messages",
        /// Messages as Anthropic's API has them.
        Anthropic = "anthropic-messages",
        /// ShareGPT conversations.
        ShareGpt = "sharegpt",
        /// LangSmith: exported runs.
        LangSmith = "langsmith",
        /// The Agent Trajectory Interchange Format, as Harbor writes it.
        Atif = "atif",
        /// Spans of OpenTelemetry, OpenInference (Phoenix) and Langfuse.
        OpenTelemetry = "opentelemetry",
    }
}

/// How the logs of a format count tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenCounts {
    /// They count the tokens of every request.
    Whole,
    /// They count the tokens of every request, but not all of its output.
    OutputInPart,
    /// They do not count the tokens of every request.
    No,
}

/// The properties of a format. There is no default: for a new format all of them must be decided.
struct Properties {
    /// The program that writes them, as people call it.
    product: &'static str,
    /// Where this program keeps its sessions, if it keeps them as logs.
    folder: Option<&'static str>,
    /// The records of compactions, in English and Chinese. `None`: compactions are not analysed.
    compactions: Option<(&'static str, &'static str)>,
    tokens: TokenCounts,
    /// Whether a session may be one JSON document; otherwise it is JSON lines or text.
    is_document: bool,
    /// The fields that distinguish its records, a set for each kind of record.
    signs: &'static [&'static [&'static str]],
}

impl Format {
    /// The names of all formats.
    pub fn names() -> Vec<&'static str> {
        Format::ALL.map(Format::name).to_vec()
    }

    /// The format of this name.
    pub fn of_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The formats whose compactions are analysed.
    pub fn observed() -> Vec<Format> {
        Format::ALL.into_iter().filter(|format| format.is_observed()).collect()
    }

    /// The programs that write `formats`, in a sentence: `Claude Code, Codex and pi`; `last` stands before the last one.
    pub fn products(formats: &[Format], last: &str) -> String {
        let names: Vec<&str> = formats.iter().map(|format| format.product()).collect();
        match names.split_last() {
            Some((name, others @ [_, ..])) => format!("{} {last} {name}", others.join(", ")),
            _ => names.concat(),
        }
    }

    /// The formats that count the tokens of every request.
    pub fn counting_tokens() -> Vec<Format> {
        Format::ALL.into_iter().filter(|format| format.counts_tokens()).collect()
    }

    /// The program that writes these logs, as people call it.
    pub const fn product(self) -> &'static str {
        self.properties().product
    }

    /// Where this program keeps its sessions, if it keeps them as logs that can be read as they are.
    pub const fn session_folder(self) -> Option<&'static str> {
        self.properties().folder
    }

    /// What the records of compactions are called, in the language that is printed; `None` where they are not analysed.
    pub fn compaction_records(self) -> Option<&'static str> {
        self.properties().compactions.map(|(english, chinese)| word(english, chinese))
    }

    /// Whether the compactions of these logs are analysed.
    pub const fn is_observed(self) -> bool {
        self.properties().compactions.is_some()
    }

    /// Whether these logs count the tokens of every request.
    pub const fn counts_tokens(self) -> bool {
        matches!(self.properties().tokens, TokenCounts::Whole | TokenCounts::OutputInPart)
    }

    /// Whether these logs count only a part of the output.
    pub const fn counts_output_in_part(self) -> bool {
        matches!(self.properties().tokens, TokenCounts::OutputInPart)
    }

    /// The formats that count only a part of the output.
    pub fn counting_output_in_part() -> Vec<Format> {
        Format::ALL.into_iter().filter(|format| format.counts_output_in_part()).collect()
    }

    /// Whether a session may be one JSON document; otherwise it is JSON lines or text.
    pub(super) const fn is_document(self) -> bool {
        self.properties().is_document
    }

    /// The fields that distinguish the records of these logs, a set for each kind of record.
    pub(super) const fn signs(self) -> &'static [&'static [&'static str]] {
        self.properties().signs
    }

    const fn properties(self) -> Properties {
        match self {
            Format::ClaudeCode => Properties {
                product: "Claude Code",
                folder: Some("~/.claude/projects"),
                compactions: Some((
                    "`compact_boundary` and `microcompact_boundary` records",
                    "`compact_boundary` 与 `microcompact_boundary` 记录",
                )),
                tokens: TokenCounts::OutputInPart,
                is_document: false,
                signs: &[&["type", "sessionId", "uuid", "message"]],
            },
            Format::Codex => Properties {
                product: "Codex",
                folder: Some("~/.codex/sessions"),
                compactions: Some(("`compacted` records", "`compacted` 记录")),
                tokens: TokenCounts::Whole,
                is_document: false,
                signs: &[&["type", "timestamp", "payload"]],
            },
            Format::Gemini => Properties {
                product: "Gemini CLI",
                folder: None,
                compactions: None,
                tokens: TokenCounts::Whole,
                is_document: true,
                signs: &[&["sessionId", "projectHash", "messages"]],
            },
            Format::Pi => Properties {
                product: "pi",
                folder: Some("~/.pi/agent/sessions"),
                compactions: Some(("`compaction` entries", "`compaction` 条目")),
                tokens: TokenCounts::Whole,
                is_document: false,
                signs: &[&["type", "id", "timestamp", "cwd"]],
            },
            Format::OpenCode => Properties {
                product: "OpenCode",
                folder: None,
                compactions: None,
                tokens: TokenCounts::Whole,
                is_document: true,
                signs: &[&["info", "messages"]],
            },
            Format::Hermes => Properties {
                product: "Hermes",
                folder: None,
                compactions: Some(("`[CONTEXT COMPACTION` messages", "`[CONTEXT COMPACTION` 消息")),
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["session_id", "system_prompt", "messages"]],
            },
            Format::SweAgent => Properties {
                product: "SWE-agent",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["trajectory", "history"]],
            },
            Format::MiniSweAgent => Properties {
                product: "mini-SWE-agent",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["trajectory_format", "messages"]],
            },
            Format::OpenHands => Properties {
                product: "OpenHands",
                folder: Some("~/.openhands/conversations"),
                compactions: Some(("`Condensation` events", "`Condensation` 事件")),
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["source", "action"], &["instance_id", "history"]],
            },
            Format::Aider => Properties {
                product: "Aider",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: false,
                signs: &[],
            },
            Format::CopilotCli => Properties {
                product: "Copilot CLI",
                folder: Some("~/.copilot/session-state"),
                compactions: Some(("`session.compaction_complete` events", "`session.compaction_complete` 事件")),
                tokens: TokenCounts::No,
                is_document: false,
                signs: &[&["type", "data", "parentId"]],
            },
            Format::Inspect => Properties {
                product: "Inspect",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["eval", "version", "samples"]],
            },
            Format::OpenAi => Properties {
                product: "OpenAI",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["role", "content"], &["messages"]],
            },
            Format::Anthropic => Properties {
                product: "Anthropic",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                // Its messages have the fields of OpenAI's.
                signs: &[],
            },
            Format::ShareGpt => Properties {
                product: "ShareGPT",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["conversations"], &["from", "value"]],
            },
            Format::LangSmith => Properties {
                product: "LangSmith",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["run_type", "inputs"]],
            },
            Format::Atif => Properties {
                product: "ATIF",
                folder: None,
                compactions: None,
                tokens: TokenCounts::Whole,
                is_document: true,
                signs: &[&["schema_version", "agent", "steps"]],
            },
            Format::OpenTelemetry => Properties {
                product: "OpenTelemetry",
                folder: None,
                compactions: None,
                tokens: TokenCounts::No,
                is_document: true,
                signs: &[&["traceId", "spanId", "attributes"]],
            },
        }
    }
}
