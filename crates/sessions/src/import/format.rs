//! The formats of logs, and their properties.

use base::named_enum;

use Format::{
    Anthropic, Atif, ClaudeCode, Codex, CopilotCli, Cursor, Droid, Gemini, Hermes, Inspect, Kimi,
    MiniSweAgent, OpenAi, OpenCode, OpenHands, Pi, QwenCode, SweAgent,
};

named_enum! {
    /// The formats that can be read.
    pub enum Format {
        /// Claude Code: session files, stream-json, output of the SDK.
        ClaudeCode = "claude-code",
        /// Codex CLI: rollout files, `exec --json`.
        Codex = "codex",
        /// Gemini CLI: single JSON, JSONL, checkpoints, stream-json.
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
        /// Copilot CLI: session events.
        CopilotCli = "copilot-cli",
        /// Inspect: evaluation logs.
        Inspect = "inspect",
        /// Messages as OpenAI's API has them.
        OpenAi = "openai-messages",
        /// Messages as Anthropic's API has them.
        Anthropic = "anthropic-messages",
        /// The Agent Trajectory Interchange Format, as Harbor writes it.
        Atif = "atif",
        /// Qwen Code: session files.
        QwenCode = "qwen-code",
        /// Cursor's agent: stream-json.
        Cursor = "cursor",
        /// Kimi CLI: `wire.jsonl`; its `context.jsonl` is messages of OpenAI's API.
        Kimi = "kimi",
        /// Factory's Droid: session files.
        Droid = "droid",
    }
}

impl Format {
    /// The formats of which this holds.
    pub fn those(holds: fn(Format) -> bool) -> Vec<Format> {
        let all = Format::ALL.into_iter();
        all.filter(|format| holds(*format)).collect()
    }

    /// The programs that write `formats`, in a sentence: `Claude Code, Codex and pi`; `last` stands before the last one.
    pub fn products(formats: &[Format], last: &str) -> String {
        let names: Vec<&str> = formats.iter().map(|format| format.product()).collect();
        match names.split_last() {
            Some((name, others @ [_, ..])) => format!("{} {last} {name}", others.join(", ")),
            _ => names.concat(),
        }
    }

    /// Whether the compactions of these logs are analysed.
    pub const fn is_observed(self) -> bool {
        match self {
            ClaudeCode | Codex | Pi | Hermes | OpenHands | CopilotCli => true,
            Gemini | OpenCode | SweAgent | MiniSweAgent | Inspect | OpenAi | Anthropic | Atif
            | QwenCode | Cursor | Kimi | Droid => false,
        }
    }
}

/// The properties of each format. None has a default: for a new format all of them must be decided.
impl Format {
    /// The program that writes these logs, as people call it.
    pub const fn product(self) -> &'static str {
        match self {
            ClaudeCode => "Claude Code",
            Codex => "Codex",
            Gemini => "Gemini CLI",
            Pi => "pi",
            OpenCode => "OpenCode",
            Hermes => "Hermes",
            SweAgent => "SWE-agent",
            MiniSweAgent => "mini-SWE-agent",
            OpenHands => "OpenHands",
            CopilotCli => "Copilot CLI",
            Inspect => "Inspect",
            OpenAi => "OpenAI",
            Anthropic => "Anthropic",
            Atif => "ATIF",
            QwenCode => "Qwen Code",
            Cursor => "Cursor",
            Kimi => "Kimi CLI",
            Droid => "Droid",
        }
    }

    /// Where this program keeps its sessions, if it keeps them as logs that can be read as they are.
    pub const fn session_folder(self) -> Option<&'static str> {
        match self {
            ClaudeCode => Some("~/.claude/projects"),
            Codex => Some("~/.codex/sessions"),
            Pi => Some("~/.pi/agent/sessions"),
            OpenHands => Some("~/.openhands/conversations"),
            CopilotCli => Some("~/.copilot/session-state"),
            Gemini | OpenCode | Hermes | SweAgent | MiniSweAgent | Inspect | OpenAi | Anthropic
            | Atif | QwenCode | Cursor | Kimi | Droid => None,
        }
    }

    /// Whether these logs count only a part of the output.
    pub const fn counts_output_in_part(self) -> bool {
        matches!(self, ClaudeCode)
    }
}
