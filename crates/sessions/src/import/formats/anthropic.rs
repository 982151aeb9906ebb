//! Messages as Anthropic's API has them: blocks of text, `tool_use` and `tool_result`.

use serde_json::Value;

use super::super::content::{
    arguments, content_of, is_true, list_of, result_text, str_of, text_of,
};
use super::super::detect::LogShape;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};

/// The parts of a message's content.
#[derive(Default)]
pub(super) struct ContentBlocks {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// The id and the result of each call.
    pub(super) results: Vec<(String, String)>,
    /// The summary of a compaction block.
    pub(super) summary: Option<String>,
}

/// Divides a content into its parts; reasoning is left out.
pub(super) fn blocks_of(content: &Value, draft: &mut ConversationDraft) -> ContentBlocks {
    let Value::Array(list) = content else {
        return ContentBlocks {
            text: text_of(content, draft),
            ..ContentBlocks::default()
        };
    };
    let mut blocks = ContentBlocks::default();
    let mut texts = Vec::new();
    for block in list {
        match str_of(block, "type") {
            "tool_use" => blocks.calls.push(ToolCall::new(
                str_of(block, "id"),
                str_of(block, "name"),
                arguments(block.get("input")),
            )),
            "tool_result" => {
                let text = content_of(block, draft);
                let text = result_text(text, is_true(block, "is_error"));
                blocks
                    .results
                    .push((str_of(block, "tool_use_id").to_owned(), text));
            }
            // Calls that the API itself makes, with their results in the same message.
            "server_tool_use" | "mcp_tool_use" => {
                texts.push(format!(
                    "[{} {}]",
                    str_of(block, "name"),
                    arguments(block.get("input"))
                ));
            }
            "mcp_tool_result" => texts.push(content_of(block, draft)),
            "compaction" => blocks.summary = Some(content_of(block, draft)),
            "web_search_tool_result" if !list_of(block, "content").is_empty() => texts.extend(
                list_of(block, "content")
                    .iter()
                    .map(|hit| format!("{} {}", str_of(hit, "title"), str_of(hit, "url"))),
            ),
            _ => texts.push(text_of(block, draft)),
        }
    }
    texts.retain(|text| !text.is_empty());
    blocks.text = texts.join("\n");
    blocks
}

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose = ConversationDraft::new(records.stem());
    let lines = records.shape == LogShape::Lines;
    while let Some(item) = records.next_item() {
        if item.get("messages").is_some() {
            let name = if lines {
                format!("{}-{}", records.stem(), drafts.len() + 1)
            } else {
                records.stem()
            };
            drafts.push(read_conversation(&item, name));
        } else {
            read_message(&item, &mut loose);
        }
    }
    drafts.push(loose);
    drafts
}

fn read_conversation(body: &Value, name: String) -> ConversationDraft {
    let mut draft = ConversationDraft::new(name);
    draft.set_model(str_of(body, "model"));
    draft.set_tools(body.get("tools"));
    let system = text_of(body.get("system").unwrap_or(&Value::Null), &mut draft);
    if !system.is_empty() {
        draft.say(Role::System, system);
    }
    for item in list_of(body, "messages") {
        read_message(item, &mut draft);
    }
    if let Some(reply) = body
        .get("response")
        .filter(|reply| reply.get("content").is_some())
    {
        read_message(reply, &mut draft);
    }
    draft
}

fn read_message(item: &Value, draft: &mut ConversationDraft) {
    let blocks = blocks_of(item.get("content").unwrap_or(&Value::Null), draft);
    if let Some(summary) = &blocks.summary {
        draft.note_compaction(Some(summary));
    }
    match str_of(item, "role") {
        "assistant" => draft.add_reply(blocks.text, blocks.calls),
        "user" => {
            let answers = !blocks.results.is_empty();
            for (id, text) in blocks.results {
                draft.add_result(&id, text);
            }
            if !answers || !blocks.text.is_empty() {
                draft.say(Role::User, blocks.text);
            }
        }
        "system" => draft.say(Role::System, blocks.text),
        other => draft.count_unknown(format!("role `{other}`")),
    }
}
