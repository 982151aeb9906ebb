//! The one reader of messages: content as OpenAI, Anthropic, Gemini and their relatives write it.
//!
//! All dialects have the same five things (text, reasoning, a call, a result, a summary) under a few names each. A format
//! says where its messages are; what they contain is read here.

use serde_json::{Value, json};

use super::content::{
    arguments, first_at, id_at, is_true, list_of, plain_text, result_text, str_at, str_of, text_of,
};
use super::conversation::DropReason;
use super::draft::{CallResult, ConversationDraft};
use super::text_results::{take_results, take_said};
use crate::transcript::{Role, ToolCall};
use base::words::WordList;

/// What a message consists of.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) results: Vec<CallResult>,
    /// The summary of a compaction that took place here.
    pub(super) summary: Option<String>,
}

/// What is called the id of the call says more than the id of a record.
pub(super) const CALL_IDS: [&str; 7] = [
    "/call_id",
    "/callId",
    "/toolCallId",
    "/toolUseId",
    "/tool_call_id",
    "/tool_id",
    "/id",
];
const RESULT_IDS: [&str; 9] = [
    "/tool_use_id",
    "/toolUseId",
    "/tool_call_id",
    "/toolCallId",
    "/call_id",
    "/callId",
    "/source_call_id",
    "/tool_id",
    "/id",
];
const NAMES: [&str; 8] = [
    "/name",
    "/toolCall/value/name",
    "/toolName",
    "/tool_name",
    "/function_name",
    "/function/name",
    "/custom/name",
    "/function",
];
const ARGUMENTS: [&str; 9] = [
    "/toolCall/value/arguments",
    "/function/arguments",
    "/custom/input",
    "/input",
    "/arguments",
    "/args",
    "/parameters",
    "/function/parameters",
    "/rawInput",
];

/// Reads one message of any dialect and adds it to the conversation. `speaker` is its role where it names none.
pub(super) fn read_message(message: &Value, speaker: &str, draft: &mut ConversationDraft) {
    let role = [str_of(message, "role"), speaker]
        .into_iter()
        .find(|role| !role.is_empty())
        .unwrap_or_default();
    let Some(speaker) = Speaker::of(role) else {
        return draft.count_unknown(format!("role `{role}`"));
    };
    draft.set_model(first_at(message, &["/model", "/modelInfo/modelId"]));
    if speaker == Speaker::Tool && !holds_results(message) {
        let result = result_of(message, draft);
        return add_result(result, draft);
    }
    let blocks = message_blocks(message, draft);
    add_blocks(speaker, blocks, draft);
}

/// Whether the content of a message is a list with results of calls, and not the result of one call.
fn holds_results(message: &Value) -> bool {
    let parts = list_of(message, "parts").iter();
    let mut blocks = parts.chain(list_of(message, "content"));
    blocks.any(|block| {
        RESULTS.has(str_of(block, "type")) || wrapped(block, &WRAPPED_RESULTS).is_some()
    })
}

/// The types of blocks with the result of a call.
const RESULTS: WordList =
    WordList("tool_result toolResult tool_call_response tool-result toolResponse");
/// The keys of blocks that name no type and hold a call, or the result of one.
const WRAPPED_CALLS: [&str; 3] = ["functionCall", "function_call", "toolUse"];
const WRAPPED_RESULTS: [&str; 3] = ["functionResponse", "function_response", "toolResult"];

fn wrapped<'b>(block: &'b Value, keys: &[&str]) -> Option<&'b Value> {
    let is_typed = block.get("type").is_some();
    let mut found = keys.iter().filter_map(|key| block.get(*key));
    found.next().filter(|_| !is_typed)
}

/// Adds what a message consists of.
pub(super) fn add_blocks(speaker: Speaker, blocks: Blocks, draft: &mut ConversationDraft) {
    if let Some(summary) = &blocks.summary {
        draft.note_compaction(summary);
    }
    let says_nothing = blocks.text.trim().is_empty();
    let does_more = blocks.summary.is_some() || !blocks.results.is_empty();
    match speaker {
        Speaker::System if !(says_nothing && does_more) => draft.say(Role::System, blocks.text),
        Speaker::Assistant if !(says_nothing && blocks.calls.is_empty() && does_more) => {
            draft.add_reply(blocks.text, blocks.calls);
        }
        Speaker::User | Speaker::Tool | Speaker::System | Speaker::Assistant => {
            for result in blocks.results {
                add_result(result, draft);
            }
            if speaker == Speaker::User && !(says_nothing && does_more) {
                say_user(&blocks.text, draft);
            }
            return;
        }
    }
    for result in blocks.results {
        draft.add_call_result(result);
    }
}

/// Adds the result of a call, and after it what the person said in it.
pub(super) fn add_result(mut result: CallResult, draft: &mut ConversationDraft) {
    let said = take_said(&mut result.text);
    draft.add_call_result(result);
    if !said.is_empty() {
        draft.say(Role::User, said);
    }
}

/// Adds what stands in the user's role: results of calls that are written as text, and the rest as the person's words.
pub(super) fn say_user(text: &str, draft: &mut ConversationDraft) {
    let rest = take_results(text, draft);
    if !rest.trim().is_empty() || text.trim().is_empty() {
        draft.say(Role::User, rest);
    }
}

/// Who speaks in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

impl Speaker {
    pub(super) fn of(role: &str) -> Option<Speaker> {
        Some(match role {
            "system" | "developer" => Speaker::System,
            "user" | "human" | "custom" => Speaker::User,
            "assistant" | "model" | "agent" | "ai" => Speaker::Assistant,
            "tool" | "function" | "toolResult" => Speaker::Tool,
            _ => return None,
        })
    }
}

/// What a message consists of, beside its role.
pub(super) fn message_blocks(message: &Value, draft: &mut ConversationDraft) -> Blocks {
    let content = ["content", "parts", "message"]
        .into_iter()
        .find_map(|key| message.get(key).filter(|content| !content.is_null()));
    let mut blocks = blocks_of(content.unwrap_or(&Value::Null), draft);
    if blocks.text.is_empty() {
        blocks.text = str_of(message, "refusal").to_owned();
    }
    let is_sealed = |block: &&Value| str_of(block, "thinking").trim().is_empty();
    let sealed = list_of(message, "thinking_blocks")
        .iter()
        .filter(is_sealed)
        .count()
        + usize::from(!first_at(message, &["/reasoningOpaque", "/encryptedContent"]).is_empty());
    (0..sealed).for_each(|_| draft.count(DropReason::SealedReasoning));
    for key in ["tool_calls", "toolRequests"] {
        let calls = calls_in(message.get(key), draft);
        blocks.calls.extend(calls);
    }
    // The AI SDK has the result in the call.
    for call in list_of(message, "toolInvocations") {
        blocks.calls.push(call_of(call, draft));
        blocks.results.push(result_of(call, draft));
    }
    if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
        blocks.calls.push(call_of(call, draft));
    }
    blocks
}

/// The calls in a list, or in a JSON text of one.
fn calls_in(list: Option<&Value>, draft: &mut ConversationDraft) -> Vec<ToolCall> {
    let parsed: Option<Value> = list
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok());
    let list = parsed.as_ref().or(list).and_then(Value::as_array);
    let calls = list.map_or(&[] as &[Value], Vec::as_slice);
    calls.iter().map(|call| call_of(call, draft)).collect()
}

/// A call of any dialect.
pub(super) fn call_of(call: &Value, draft: &mut ConversationDraft) -> ToolCall {
    let id = id_at(call, &CALL_IDS).unwrap_or_else(|| draft.new_id());
    let name = match first_at(call, &NAMES) {
        "" => "unknown",
        name => name,
    };
    let given = ARGUMENTS
        .iter()
        .find_map(|key| call.pointer(key).filter(|given| !given.is_null()));
    ToolCall::new(id, name, arguments(given))
}

/// A call of the shell that an agent without calls writes in its text.
pub(super) fn shell_call(command: &str, draft: &mut ConversationDraft) -> ToolCall {
    let arguments = json!({ "command": command }).to_string();
    ToolCall::new(draft.new_id(), "bash", arguments)
}

/// A result of any dialect: a message of its own, a block, or the record of an event.
pub(super) fn result_of(result: &Value, draft: &mut ConversationDraft) -> CallResult {
    let error = str_at(result, "/error/message");
    let mut text = output_of(result, draft);
    if !error.is_empty() && !text.contains(error) {
        let separator = if text.is_empty() { "" } else { "\n" };
        text = format!("{text}{separator}Error: {error}");
    }
    let state = str_of(result, "status");
    if text.is_empty() && NOT_DONE.has(state) {
        state.clone_into(&mut text);
    }
    CallResult {
        id: id_at(result, &RESULT_IDS).unwrap_or_default(),
        name: first_at(result, &NAMES).to_owned(),
        text: result_text(text, has_failed(result)),
    }
}

/// The states of a call that was not carried out.
const NOT_DONE: WordList = WordList(
    "error errored failed failure cancelled canceled declined denied rejected aborted interrupted",
);

/// Whether a result, or the object that it holds, is marked as that of a call that failed or was not allowed.
pub(super) fn has_failed(result: &Value) -> bool {
    let is_named = match result.get("error") {
        Some(Value::Bool(is_error)) => *is_error,
        Some(error) => !is_void(error),
        None => false,
    };
    let state = str_of(result, "status").to_ascii_lowercase();
    let code = result.get("exit_code").and_then(Value::as_i64);
    let held = ["response", "output", "result", "toolResult"].map(|key| result.get(key));
    is_named
        || is_true(result, "is_error")
        || is_true(result, "isError")
        || result.get("success").and_then(Value::as_bool) == Some(false)
        || NOT_DONE.has(&state)
        || code.is_some_and(|code| code != 0)
        || held.into_iter().flatten().any(has_failed)
}

/// The text of a result, wherever it stands in it.
pub(super) fn output_of(result: &Value, draft: &mut ConversationDraft) -> String {
    const KEYS: WordList = WordList(
        "content toolResult value content_items parts output aggregated_output result response error message text",
    );
    let found = KEYS
        .iter()
        .find_map(|key| result.get(key).filter(|found| !is_void(found)));
    match found {
        Some(object @ Value::Object(_)) => {
            let mut texts = KEYS.iter().filter_map(|key| object.get(key));
            let is_text = texts.any(Value::is_string);
            let mut lists = ["content", "value"].iter();
            let is_list = lists.any(|key| object.get(*key).is_some_and(Value::is_array));
            if is_text || is_list {
                output_of(object, draft)
            } else {
                object.to_string()
            }
        }
        Some(other) => text_of(other, draft),
        None => String::new(),
    }
}

fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Divides a content into its parts; reasoning is left out.
pub(super) fn blocks_of(content: &Value, draft: &mut ConversationDraft) -> Blocks {
    let Value::Array(list) = content else {
        return Blocks {
            text: text_of(content, draft),
            ..Blocks::default()
        };
    };
    let mut blocks = Blocks::default();
    let mut texts = Vec::new();
    for block in list {
        texts.extend(read_block(block, &mut blocks, draft));
    }
    texts.retain(|text| !text.is_empty());
    blocks.text = texts.join("\n");
    blocks
}

/// Reads one block, and returns its text if it is one.
fn read_block(block: &Value, blocks: &mut Blocks, draft: &mut ConversationDraft) -> Option<String> {
    if let Some(call) = wrapped(block, &WRAPPED_CALLS) {
        blocks.calls.push(call_of(call, draft));
        return None;
    }
    if let Some(response) = wrapped(block, &WRAPPED_RESULTS) {
        blocks.results.push(result_of(response, draft));
        return None;
    }
    match str_of(block, "type") {
        "tool_use" | "toolCall" | "tool_call" | "tool-call" | "function_call" | "toolRequest" => {
            blocks.calls.push(call_of(block, draft));
        }
        kind if RESULTS.has(kind) => blocks.results.push(result_of(block, draft)),
        // Calls that the API itself makes, with their results in the same message.
        "server_tool_use" | "mcp_tool_use" => {
            let (name, input) = (str_of(block, "name"), arguments(block.get("input")));
            return Some(format!("[{name} {input}]"));
        }
        "web_search_tool_result" => {
            let hits = list_of(block, "content").iter();
            let lines = hits.map(|hit| format!("{} {}", str_of(hit, "title"), str_of(hit, "url")));
            return Some(lines.collect::<Vec<_>>().join("\n"));
        }
        "compaction" => {
            let summary = block.get("content").map(plain_text);
            blocks.summary = Some(summary.unwrap_or_default());
        }
        _ if is_true(block, "thought") => {}
        "text" if block.get("text").is_none() => {
            return block.get("content").map(|text| text_of(text, draft));
        }
        _ => return Some(text_of(block, draft)),
    }
    None
}
