//! The formats: records in, drafts of conversations out. None fails: records that cannot be used are counted.
//!
//! What messages contain is read by one reader for all of them ([`super::blocks`]). Most formats are tables that say
//! where messages are; a format whose records depend on each other has a file of its own.

mod claude_code;
mod codex;
mod gemini;
mod hermes;
mod inspect;
mod messages;
mod open_telemetry;
mod opencode;
mod openhands;
mod pi;
mod tables;
mod trajectories;

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
        Format::Pi | Format::Droid => pi::read(records),
        Format::OpenCode => opencode::read(records),
        Format::Hermes => hermes::read(records),
        Format::SweAgent => trajectories::read_swe_agent(records),
        Format::MiniSweAgent => trajectories::read_mini(records),
        Format::OpenHands => openhands::read(records),
        Format::CopilotCli => tables::COPILOT_CLI.read_all(records),
        Format::QwenCode => tables::QWEN_CODE.read_all(records),
        Format::Cursor => tables::CURSOR.read_all(records),
        Format::Kimi => tables::KIMI_WIRE.read_all(records),
        Format::Inspect => inspect::read(records),
        Format::OpenAi | Format::Anthropic => messages::read(records),
        Format::Atif => trajectories::read_atif(records),
        Format::OpenTelemetry => open_telemetry::read(records),
    }
}
