//! The messages that a program returns, in OpenAI's chat shape or in Anthropic's. A part that is not understood is an
//! error: a context that silently lost its tool results would be graded as if the compressor had dropped them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::compress::CompressFault;
use base::message::unpaired;
use sessions::transcript::{Message, Role, ToolCall};

fn shapes() -> &'static str {
    "messages in OpenAI's chat shape or in Anthropic's"
}

/// Keys of messages that say nothing about their content.
const SILENT_KEYS: &[&str] = &[
    "name",
    "id",
    "type",
    "refusal",
    "annotations",
    "timestamp",
    "created_at",
    "model",
    "stop_reason",
    "stop_sequence",
    "finish_reason",
    "usage",
    "metadata",
    "additional_kwargs",
    "response_metadata",
    "cache_control",
    "tool_name",
];

/// Reasoning, which no history of a fixture holds.
const REASONING_KEYS: &[&str] = &[
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
];
const REASONING_PARTS: &[&str] = &["thinking", "redacted_thinking", "reasoning"];

/// Reads a list of messages.
///
/// # Errors
/// A part or key that is not known, a message that does not read, and a call without its results.
pub(super) fn read(body: &Value) -> Result<Vec<Message>, CompressFault> {
    let list = body.as_array().ok_or_else(|| {
        CompressFault::contract("`messages` is no list", "a JSON array of messages")
    })?;
    let mut messages = Vec::with_capacity(list.len());
    for (index, message) in list.iter().enumerate() {
        let read = messages_of(message).map_err(|found| {
            CompressFault::contract(format!("message {index} {found}"), shapes())
        })?;
        messages.extend(read);
    }
    if !unpaired(&messages).is_empty() {
        let expected =
            "every tool call directly followed by its results, and no result without its call";
        return Err(CompressFault::contract(
            "a tool call is separated from its result",
            expected,
        ));
    }
    if messages
        .iter()
        .all(|message| message.content.trim().is_empty() && message.tool_calls.is_empty())
    {
        return Err(CompressFault::empty());
    }
    Ok(messages)
}

fn is_known(key: &str) -> bool {
    ["role", "content", "tool_calls", "tool_call_id"].contains(&key)
        || SILENT_KEYS.contains(&key)
        || REASONING_KEYS.contains(&key)
        // Agents mark messages with key names that no API has.
        || key.starts_with('_')
}

/// The messages that one message of the program stands for: in Anthropic's shape, tool results are parts of a user's
/// message.
fn messages_of(value: &Value) -> Result<Vec<Message>, String> {
    let object = value.as_object().ok_or("is no object")?;
    if let Some((key, _)) = object
        .iter()
        .find(|(key, value)| !value.is_null() && !is_known(key))
    {
        return Err(format!("has the key `{key}`, which is not known"));
    }
    match object.get("content").and_then(Value::as_array) {
        Some(parts) => messages_from_parts(object, parts),
        None => Ok(vec![with_content(object, object.get("content").cloned())?]),
    }
}

/// The message with this content.
fn with_content(object: &Map<String, Value>, content: Option<Value>) -> Result<Message, String> {
    let mut bare = object.clone();
    bare.retain(|key, _| ["role", "tool_calls", "tool_call_id"].contains(&key.as_str()));
    bare.extend(content.map(|content| ("content".to_owned(), content)));
    Message::deserialize(Value::Object(bare)).map_err(|error| format!("cannot be read: {error}"))
}

fn messages_from_parts(
    object: &Map<String, Value>,
    parts: &[Value],
) -> Result<Vec<Message>, String> {
    let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Value::String(text) => texts.push(text.clone()),
            Value::Object(part) => match part.get("type").and_then(Value::as_str).unwrap_or("text")
            {
                "text" | "input_text" | "output_text" => texts.push(text(part, "text")?),
                "tool_use" => calls.push(call(part)?),
                "tool_result" => results.push(result(part)?),
                kind if REASONING_PARTS.contains(&kind) => {}
                kind => {
                    return Err(format!(
                        "has a part of the type `{kind}`, which is not known"
                    ));
                }
            },
            _ => {
                return Err("has a part that is neither a text nor an object".to_owned());
            }
        }
    }
    let mut message = with_content(object, Some(texts.join("\n").into()))?;
    if !results.is_empty() && message.role != Role::User
        || !calls.is_empty() && message.role != Role::Assistant
    {
        return Err(format!(
            "of the role `{}` has a part of another role",
            message.role.name()
        ));
    }
    let is_empty = message.content.is_empty() && message.tool_calls.is_empty() && calls.is_empty();
    message.tool_calls.extend(calls);
    let message = (!is_empty || results.is_empty()).then_some(message);
    Ok(results.into_iter().chain(message).collect())
}

fn text(part: &Map<String, Value>, key: &str) -> Result<String, String> {
    let text = part.get(key).and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| format!("has a part without `{key}`"))
}

fn call(part: &Map<String, Value>) -> Result<ToolCall, String> {
    let input = part.get("input").ok_or("calls a tool without `input`")?;
    let arguments = input
        .as_str()
        .map_or_else(|| input.to_string(), str::to_owned);
    Ok(ToolCall::new(
        text(part, "id")?,
        text(part, "name")?,
        arguments,
    ))
}

fn result(part: &Map<String, Value>) -> Result<Message, String> {
    let content = match part.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().map(|part| {
                match part.get("type").and_then(Value::as_str).unwrap_or("text") {
                    "text" => part
                        .get("text")
                        .and_then(Value::as_str)
                        .ok_or("has a result without `text`".to_owned()),
                    kind => Err(format!(
                        "has a result with a part of the type `{kind}`, which is not known"
                    )),
                }
            });
            texts.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        Some(_) => {
            return Err("has a result that is no text".to_owned());
        }
    };
    Ok(Message::result(text(part, "tool_use_id")?, content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_shapes_are_read_to_the_same_messages() {
        let openai = json!([
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": "Looking.", "reasoning_content": "hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a.rs\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "fn main() {}", "name": "read"},
            {"role": "user", "content": "And now?"},
        ]);
        let anthropic = json!([
            {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.rs"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "fn main() {}"}]},
                {"type": "text", "text": "And now?"}]},
        ]);
        let messages = read(&openai).unwrap();
        assert_eq!(messages.len(), 4);
        assert_eq!(read(&anthropic).unwrap(), messages);
    }

    #[test]
    fn unknown_parts_are_named_and_never_dropped() {
        let fault = |message: Value| read(&json!([message])).unwrap_err().to_string();
        let image = json!({"role": "user", "content": [{"type": "image", "source": {}}]});
        assert!(fault(image).contains("message 0 has a part of the type `image`"));
        assert!(
            fault(json!({"role": "user", "parts": [{"text": "a"}]})).contains("the key `parts`")
        );
        assert!(
            fault(json!({"role": "robot", "content": "a"})).contains("message 0 cannot be read")
        );
        let nested = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "document"}]}]});
        assert!(fault(nested).contains("type `document`"));
        let swapped =
            json!({"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "c"}]});
        assert!(fault(swapped).contains("a part of another role"));
        let orphan = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]});
        assert!(fault(orphan).contains("separated"));
    }
}
