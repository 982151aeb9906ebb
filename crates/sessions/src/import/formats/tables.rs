//! The formats that a table says everything of: which kind of record holds what, and where.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::blocks::{add_result, call_of, output_of, read_message, result_of};
use super::super::content::{
    first_at, id_at, list_of, non_empty, number_at, str_at, str_of, time_of, usage_of,
};
use super::super::conversation::DropReason;
use super::super::draft::{CallResult, ConversationDraft};
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};
use Row::{Call, Compaction, Hook, Message, Noise, Result, Says};

/// The records of a format. Places are JSON pointers.
pub(super) struct Table {
    /// Where a record says its kind; of several places the words are joined by blanks.
    pub(super) kind: &'static [&'static str],
    /// What each kind holds. A name that ends in `*` stands for all that begin so; the first row that fits counts.
    pub(super) rows: &'static [(&'static str, Row)],
    /// Where a record names the model.
    pub(super) model: &'static [&'static str],
    /// Where a record counts the tokens of a request.
    pub(super) usage: &'static [&'static str],
    /// Where a record names the sub-agent that it belongs to.
    pub(super) side: &'static [&'static str],
}

/// What a record holds.
pub(super) enum Row {
    /// A message in any dialect at this place, by this speaker if it names none.
    Message(&'static str, &'static str),
    /// A text in this role: the first one of these places that has any.
    Says(Role, &'static [&'static str]),
    /// A call at this place, unless a message has made it already.
    Call(&'static str),
    /// The result of a call at this place.
    Result(&'static str),
    /// A compaction: where its summary is, and the sizes before and after it.
    Compaction(&'static [&'static str], &'static str, &'static str),
    /// State of the program.
    Noise,
    /// What no row can say.
    Hook(fn(&Value, &mut ConversationDraft)),
}

impl Table {
    /// The conversations of a log: that of the agent, and those of its sub-agents.
    pub(super) fn read_all(&self, records: &mut Records) -> Vec<ConversationDraft> {
        let mut drafts = vec![ConversationDraft::default()];
        let mut sides: HashMap<String, usize> = HashMap::new();
        while let Some(record) = records.next_item() {
            let side = first_at(&record, self.side);
            let at = match side {
                "" => 0,
                side => *sides.entry(side.to_owned()).or_insert_with(|| {
                    drafts.push(ConversationDraft::new(format!("agent-{}", drafts.len())));
                    drafts.len() - 1
                }),
            };
            if let Some(draft) = drafts.get_mut(at) {
                self.read(&record, draft);
            }
        }
        drafts
    }

    /// Reads one record.
    pub(super) fn read(&self, record: &Value, draft: &mut ConversationDraft) {
        let words = self.kind.iter().map(|place| str_at(record, place));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let kind = match words.as_slice() {
            [] => "without type".to_owned(),
            words => words.join(" "),
        };
        let row = self
            .rows
            .iter()
            .find(|(name, _)| match name.strip_suffix('*') {
                Some(start) => kind.starts_with(start),
                None => *name == kind,
            });
        let Some((_, row)) = row else {
            return draft.count_unknown(kind);
        };
        draft.set_model(first_at(record, self.model));
        let usage = self.usage.iter().find_map(|place| record.pointer(place));
        if let Some(usage) = usage.filter(|usage| usage.is_object()) {
            draft.count_request(usage_of(usage), time_of(record));
        }
        row.read(&kind, record, draft);
    }
}

impl Row {
    fn read(&self, kind: &str, record: &Value, draft: &mut ConversationDraft) {
        let at = |place: &str| record.pointer(place).unwrap_or(&Value::Null);
        match self {
            Row::Message(place, speaker) => read_message(at(place), speaker, draft),
            Row::Says(Role::Assistant, places) if at("/delta") == &Value::Bool(true) => {
                draft.append_to_reply(first_at(record, places));
            }
            Row::Says(role, places) => draft.say(*role, first_at(record, places)),
            Row::Call(place) => {
                let call = call_of(at(place), draft);
                if !draft.add_call(call) {
                    draft.count_bookkeeping(kind);
                }
            }
            Row::Result(place) => {
                let result = result_of(at(place), draft);
                add_result(result, draft);
            }
            // Copilot CLI notes those that failed, too.
            Row::Compaction(..) if at("/data/success") == &Value::Bool(false) => {
                draft.count_bookkeeping(kind);
            }
            Row::Compaction(summary, before, after) => {
                draft.note_compaction(first_at(record, summary));
                let [before, after] = [before, after].map(|place| number_at(record, place));
                draft.describe_compaction(non_empty(str_of(record, "timestamp")), before, after);
            }
            Row::Noise => draft.count_bookkeeping(kind),
            Row::Hook(read) => read(record, draft),
        }
    }
}

/// GitHub Copilot CLI: events, one per line. Those of a sub-agent name the call that started it.
pub(super) const COPILOT_CLI: Table = Table {
    kind: &["/type"],
    model: &["/data/newModel", "/data/selectedModel"],
    usage: &[],
    side: &["/data/parentToolCallId", "/agentId", "/data/agentId"],
    rows: &[
        ("system.message", Says(Role::System, &["/data/content"])),
        (
            "user.message",
            Says(Role::User, &["/data/content", "/data/transformedContent"]),
        ),
        ("assistant.message", Message("/data", "assistant")),
        ("tool.execution_start", Call("/data")),
        ("tool.execution_complete", Result("/data")),
        (
            "session.compaction_complete",
            Compaction(
                &["/data/summaryContent"],
                "/data/preCompactionTokens",
                "/data/postCompactionTokens",
            ),
        ),
        ("session.*", Noise),
        ("hook.*", Noise),
        ("permission.*", Noise),
        ("assistant.*", Noise),
        ("tool.*", Noise),
        ("system.*", Noise),
        ("subagent.*", Noise),
        ("skill.*", Noise),
        ("abort", Noise),
    ],
};

/// `gemini --output-format stream-json`.
pub(super) const GEMINI_STREAM: Table = Table {
    kind: &["/type", "/role"],
    model: &["/model"],
    usage: &[],
    side: &[],
    rows: &[
        ("message user", Says(Role::User, &["/content"])),
        ("message assistant", Says(Role::Assistant, &["/content"])),
        ("tool_use", Call("")),
        ("tool_result", Result("")),
        ("init", Noise),
        ("result", Noise),
        ("error", Noise),
    ],
};

/// `codex exec --json`: items of which each is a call with its result, a text, or reasoning.
pub(super) const CODEX_EXEC: Table = Table {
    kind: &["/type", "/item/type", "/item/item_type"],
    model: &[],
    usage: &["/usage"],
    side: &[],
    rows: &[
        (
            "item.completed agent_message",
            Says(Role::Assistant, &["/item/text"]),
        ),
        (
            "item.completed assistant_message",
            Says(Role::Assistant, &["/item/text"]),
        ),
        ("item.started command_execution", Hook(started)),
        ("item.started file_change", Hook(started)),
        ("item.started mcp_tool_call", Hook(started)),
        ("item.completed command_execution", Hook(executed)),
        ("item.completed file_change", Hook(executed)),
        ("item.completed mcp_tool_call", Hook(executed)),
        ("item.completed dynamic_tool_call", Hook(executed)),
        ("item.completed reasoning", Noise),
        ("item.completed todo_list", Noise),
        ("item.completed web_search", Noise),
        ("item.completed error", Noise),
        ("item.started*", Noise),
        ("item.updated*", Noise),
        ("thread.*", Noise),
        ("turn.*", Noise),
        ("error", Noise),
    ],
};

/// A call that begins: one that was interrupted is never completed.
fn started(record: &Value, draft: &mut ConversationDraft) {
    draft.begin_call(call_of_item(record.get("item").unwrap_or(&Value::Null)));
}

/// A call that has ended. It is told at its beginning, too, but not by all versions.
fn executed(record: &Value, draft: &mut ConversationDraft) {
    let item = record.get("item").unwrap_or(&Value::Null);
    let call = call_of_item(item);
    let is_change = call.function.name == "apply_patch";
    let id = call.id.clone();
    draft.add_call(call);
    let mut result = result_of(item, draft);
    if is_change && result.text.is_empty() {
        "Success. The files were changed.".clone_into(&mut result.text);
    }
    result.id = id;
    draft.add_call_result(result);
}

/// The call of an item. That of a change of files names them and has no text, so the call names them as a patch does.
fn call_of_item(item: &Value) -> ToolCall {
    let (name, arguments) = match first_at(item, &["/type", "/item_type"]) {
        "command_execution" => ("shell", json!({ "command": str_of(item, "command") })),
        "file_change" => ("apply_patch", json!({ "input": patch_of(item) })),
        _ => (
            str_of(item, "tool"),
            item.get("arguments").cloned().unwrap_or_else(|| json!({})),
        ),
    };
    ToolCall::new(str_of(item, "id"), name, arguments.to_string())
}

fn patch_of(item: &Value) -> String {
    let lines = list_of(item, "changes").iter().map(|change| {
        let head = match str_of(change, "kind") {
            "add" => "Add",
            "delete" => "Delete",
            _ => "Update",
        };
        format!("*** {head} File: {}\n", str_of(change, "path"))
    });
    let files: String = lines.collect();
    format!("*** Begin Patch\n{files}*** End Patch")
}

/// Qwen Code: envelopes as Claude Code writes them, around messages as Gemini's API has them.
pub(super) const QWEN_CODE: Table = Table {
    kind: &["/type", "/subtype"],
    model: &["/model"],
    usage: &["/usageMetadata"],
    side: &["/agentId"],
    rows: &[
        ("user", Message("/message", "user")),
        ("user *", Message("/message", "user")),
        ("assistant", Message("/message", "model")),
        ("tool_result", Hook(qwen_result)),
        (
            "system chat_compression",
            Compaction(
                &["/systemPayload/summary"],
                "/systemPayload/info/originalTokenCount",
                "/systemPayload/info/newTokenCount",
            ),
        ),
        ("system*", Noise),
    ],
};

/// The state of the call stands beside the message with its result.
fn qwen_result(record: &Value, draft: &mut ConversationDraft) {
    let mut message = record.get("message").cloned().unwrap_or(Value::Null);
    let state = record.pointer("/toolCallResult/status");
    let response = message.pointer_mut("/parts/0/functionResponse");
    if let (Some(state), Some(Value::Object(response))) = (state, response) {
        response.insert("status".to_owned(), state.clone());
    }
    read_message(&message, "user", draft);
}

/// Cursor's agent: `--output-format stream-json`, where a call is a record of its own and again with its result.
pub(super) const CURSOR: Table = Table {
    kind: &["/type", "/subtype"],
    model: &["/model"],
    usage: &[],
    side: &[],
    rows: &[
        ("user", Message("/message", "user")),
        ("assistant", Message("/message", "assistant")),
        ("tool_call started", Hook(cursor_started)),
        ("tool_call completed", Hook(cursor_completed)),
        ("tool_call*", Noise),
        ("thinking*", Noise),
        ("system*", Noise),
        ("result*", Noise),
    ],
};

/// A call that begins: one that was interrupted is never completed.
fn cursor_started(record: &Value, draft: &mut ConversationDraft) {
    if let Some((call, _)) = cursor_call(record) {
        draft.begin_call(call);
    }
}

/// The call of a record, with what it is told in: `{"readToolCall": {"args": …, "result": {"success": …}}}`.
fn cursor_call(record: &Value) -> Option<(ToolCall, &Value)> {
    let named = record.get("tool_call")?.as_object()?;
    let (key, inner) = named.iter().next()?;
    let name = match key.strip_suffix("ToolCall") {
        Some("function") | None => str_of(inner, "name"),
        Some(name) => name,
    };
    let given = inner.get("args").or_else(|| inner.get("arguments"));
    let arguments = super::super::content::arguments(given);
    Some((
        ToolCall::new(str_of(record, "call_id"), name, arguments),
        inner,
    ))
}

fn cursor_completed(record: &Value, draft: &mut ConversationDraft) {
    let Some((call, inner)) = cursor_call(record) else {
        return draft.count_unknown("tool_call without a tool");
    };
    let id = call.id.clone();
    draft.add_call(call);
    let result = inner.get("result").unwrap_or(&Value::Null);
    let (outcome, text) = ["success", "error", "rejected", "failure"]
        .into_iter()
        .find_map(|key| Some((key, result.get(key)?)))
        .unwrap_or(("success", result));
    let said = match text {
        Value::String(text) => text.clone(),
        other => output_of(other, draft),
    };
    let said = if said.is_empty() && !text.is_null() {
        text.to_string()
    } else {
        said
    };
    let text = super::super::content::result_text(said, outcome != "success");
    draft.add_call_result(CallResult {
        id,
        name: String::new(),
        text,
    });
}

/// Kimi's `wire.jsonl`: what passes between the agent and its screen.
pub(super) const KIMI_WIRE: Table = Table {
    kind: &["/message/type"],
    model: &[],
    usage: &[],
    side: &[],
    rows: &[
        ("TurnBegin", Hook(kimi_turn)),
        ("ContentPart", Hook(kimi_text)),
        ("ToolCall", Call("/message/payload")),
        ("ToolResult", Hook(kimi_result)),
        ("CompactionEnd", Compaction(&[], "", "")),
        ("*", Noise),
    ],
};

fn kimi_turn(record: &Value, draft: &mut ConversationDraft) {
    let input = record.pointer("/message/payload/user_input");
    let text = super::super::content::text_of(input.unwrap_or(&Value::Null), draft);
    draft.say(Role::User, text);
}

fn kimi_text(record: &Value, draft: &mut ConversationDraft) {
    match str_at(record, "/message/payload/type") {
        "text" => draft.append_to_reply(str_at(record, "/message/payload/text")),
        "think" => {}
        kind => draft.count(DropReason::Bookkeeping(format!("part {kind}"))),
    }
}

fn kimi_result(record: &Value, draft: &mut ConversationDraft) {
    let payload = record.pointer("/message/payload").unwrap_or(&Value::Null);
    let mut result = result_of(payload.get("return_value").unwrap_or(payload), draft);
    result.id = id_at(payload, &["/tool_call_id", "/id"]).unwrap_or_default();
    draft.add_call_result(result);
}
