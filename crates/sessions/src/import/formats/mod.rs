//! The formats: records in, drafts of conversations out. None fails: records that cannot be used are counted.
//!
//! What messages contain is read by one reader for all of them ([`super::blocks`]). Most formats are tables that say
//! where messages are; a format whose records depend on each other has a file of its own.
//!
//! Read here: messages as the APIs have them, as a body, a list, one message or one body per line, of Responses too.

mod claude_code;
mod codex;
mod gemini;
mod hermes;
mod inspect;
mod opencode;
mod openhands;
mod pi;
mod tables;
mod trajectories;
mod tree;

pub(super) use inspect::read_archive;
pub(super) use openhands::EventView;

use serde_json::Value;

use super::blocks::read_message;
use super::content::{first_at, list_at, list_of, str_of, text_of};
use super::draft::ConversationDraft;
use super::format::Format;
use super::source::Records;
use crate::transcript::Role;
use codex::CodexItems;

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
        Format::OpenAi | Format::Anthropic => read_messages(records),
        Format::Atif => trajectories::read_atif(records),
    }
}

/// Where a body keeps its messages: as the APIs do, or as benchmarks call them.
const LISTS: [&str; 3] = ["messages", "traj", "conversation"];

fn read_messages(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose = ConversationDraft::default();
    while let Some(item) = records.next_item() {
        let runs = match list_of(&item, "simulations") {
            [] => std::slice::from_ref(&item),
            runs => runs,
        };
        for run in runs {
            if is_body(run) {
                drafts.push(read_body(run));
            } else {
                read_one(run, &mut loose);
            }
        }
    }
    drafts.push(loose);
    drafts
}

fn is_body(item: &Value) -> bool {
    let has_list = |key: &&str| item.get(*key).is_some_and(Value::is_array);
    LISTS.iter().any(&has_list) || has_list(&"input")
}

/// A request body, with its response where one is logged.
fn read_body(body: &Value) -> ConversationDraft {
    let mut draft = ConversationDraft::default();
    let models = ["/model", "/kwargs/model", "/response/model"];
    draft.set_model(first_at(body, &models));
    draft.set_tools(body.get("tools").or_else(|| body.pointer("/kwargs/tools")));
    let system = body.get("instructions").or_else(|| body.get("system"));
    let system = text_of(system.unwrap_or(&Value::Null), &mut draft);
    if !system.is_empty() {
        draft.say(Role::System, system);
    }
    let mut items = CodexItems::default();
    let lists = [
        list_of(body, "input"),
        list_at(body, "/response/output"),
        list_of(body, "output"),
    ];
    for item in lists.into_iter().flatten() {
        items.read_item(item, &mut draft);
    }
    items.flush(&mut draft);
    for item in LISTS.iter().flat_map(|key| list_of(body, key)) {
        read_one(item, &mut draft);
    }
    let reply = body
        .pointer("/response/choices/0/message")
        .or_else(|| body.pointer("/choices/0/message"))
        .or_else(|| {
            body.get("response")
                .filter(|reply| reply.get("content").is_some())
        });
    if let Some(reply) = reply {
        read_message(reply, "assistant", &mut draft);
    }
    draft
}

/// One message. Kimi writes marks of its own between them, with roles that begin with `_`.
fn read_one(item: &Value, draft: &mut ConversationDraft) {
    match str_of(item, "role") {
        "_system_prompt" => draft.say(Role::System, str_of(item, "content")),
        role if role.starts_with('_') => draft.count_bookkeeping(role),
        _ => read_message(item, "", draft),
    }
}
