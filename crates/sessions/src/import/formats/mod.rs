//! One file per format: records in, drafts of conversations out. None fails: records that cannot be used are counted.
//! Two files are helpers of a format: `claude_tree` follows the links between its records, `openhands_sdk` reads its
//! newer events.

mod aider;
mod anthropic;
mod atif;
mod claude_code;
mod claude_tree;
mod codex;
mod copilot_cli;
mod gemini;
mod hermes;
mod inspect;
mod langsmith;
mod mini_swe_agent;
mod open_telemetry;
mod openai;
mod opencode;
mod openhands;
mod openhands_sdk;
mod pi;
mod sharegpt;
mod swe_agent;

pub(super) use inspect::read_sample as inspect_sample;
pub(super) use openhands::EventView;

use super::draft::ConversationDraft;
use super::format::Format;
use super::source::Records;

/// Reads all conversations of a log in this format.
pub(super) fn read(format: Format, records: &mut Records) -> Vec<ConversationDraft> {
    match format {
        Format::ClaudeCode => claude_code::read(records),
        Format::Codex => codex::read(records),
        Format::Gemini => gemini::read(records),
        Format::Pi => pi::read(records),
        Format::OpenCode => opencode::read(records),
        Format::Hermes => hermes::read(records),
        Format::SweAgent => swe_agent::read(records),
        Format::MiniSweAgent => mini_swe_agent::read(records),
        Format::OpenHands => openhands::read(records),
        Format::Aider => aider::read(records),
        Format::CopilotCli => copilot_cli::read(records),
        Format::Inspect => inspect::read(records),
        Format::OpenAi => openai::read(records),
        Format::Anthropic => anthropic::read(records),
        Format::ShareGpt => sharegpt::read(records),
        Format::Atif => atif::read(records),
        Format::OpenTelemetry => open_telemetry::read(records),
        Format::LangSmith => langsmith::read(records),
    }
}
