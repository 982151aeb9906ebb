//! Reads values in records: strings, lists of parts, images, arguments of calls, counts of tokens.

use jiff::Timestamp;
use serde_json::Value;

use super::conversation::DropReason;
use super::draft::ConversationDraft;
use crate::transcript::recorded_exit_code;
use base::units::{Tokens, Usage};
use base::words::WordList;

/// The string under `key`; empty if there is none.
pub(super) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// The string at a JSON pointer; empty if there is none.
pub(super) fn str_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// The list under `key`; empty if there is none.
pub(super) fn list_of<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The list at a JSON pointer; empty if there is none.
pub(super) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The first string at these JSON pointers that is not empty; empty if there is none.
pub(super) fn first_at<'a>(value: &'a Value, pointers: &[&str]) -> &'a str {
    pointers
        .iter()
        .map(|pointer| str_at(value, pointer))
        .find(|text| !text.is_empty())
        .unwrap_or("")
}

/// The first id at these JSON pointers: a text that is not empty, or a number.
pub(super) fn id_at(value: &Value, pointers: &[&str]) -> Option<String> {
    let mut found = pointers.iter().filter_map(|pointer| value.pointer(pointer));
    found.find_map(|id| match id {
        Value::String(text) => non_empty(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// The whole number at a JSON pointer.
pub(super) fn number_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// The count of tokens at a JSON pointer. What no request can have is no count: sums of counts must not overflow.
pub(super) fn tokens_at(value: &Value, pointer: &str) -> Option<Tokens> {
    const MOST: u64 = 1 << 40;
    number_at(value, pointer)
        .filter(|tokens| *tokens <= MOST)
        .map(Tokens)
}

/// The first count at these JSON pointers.
fn first_count(usage: &Value, pointers: &[&str]) -> Option<Tokens> {
    pointers
        .iter()
        .find_map(|pointer| tokens_at(usage, pointer))
}

/// The counts of one request. What a log calls the input is with or without the tokens that the cache served: the name
/// of the count of the cache tells which. Output is with or without reasoning: the same.
pub(super) fn usage_of(usage: &Value) -> Usage {
    let beside = ["/cache_read_input_tokens", "/cacheRead", "/cache/read"];
    let within = [
        "/cached_input_tokens",
        "/cached_tokens",
        "/cached",
        "/cachedContentTokenCount",
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
    ];
    let written_beside = [
        "/cache_creation_input_tokens",
        "/cacheWrite",
        "/cache/write",
    ];
    let read_beside = first_count(usage, &beside);
    let written = first_count(usage, &written_beside);
    let input = [
        "/input_tokens",
        "/prompt_tokens",
        "/input",
        "/promptTokenCount",
    ];
    let thoughts = first_count(usage, &["/thoughts", "/thoughtsTokenCount"]);
    let apart = thoughts.or_else(|| usage.get("cache").and(tokens_at(usage, "/reasoning")));
    let counted_within = first_count(usage, &["/reasoning", "/reasoning_output_tokens"]);
    let output = [
        "/output_tokens",
        "/completion_tokens",
        "/output",
        "/candidatesTokenCount",
    ];
    Usage {
        input: first_count(usage, &input)
            .map(|plain| plain + read_beside.unwrap_or_default() + written.unwrap_or_default()),
        cached_input: read_beside.or_else(|| first_count(usage, &within)),
        cache_write: written.or_else(|| tokens_at(usage, "/extra/cache_creation_input_tokens")),
        cache_write_hour: tokens_at(usage, "/cache_creation/ephemeral_1h_input_tokens"),
        output: first_count(usage, &output).map(|output| output + apart.unwrap_or_default()),
        reasoning: apart.or(counted_within),
    }
}

/// A string as it is, anything else as JSON.
pub(super) fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The time under `timestamp`, in ISO 8601.
pub(super) fn time_of(record: &Value) -> Option<Timestamp> {
    str_of(record, "timestamp").parse().ok()
}

/// The text, unless it is empty.
pub(super) fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether the flag under `key` is set.
pub(super) fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

/// The `content` of a message as text.
pub(super) fn content_of(message: &Value, draft: &mut ConversationDraft) -> String {
    text_of(message.get("content").unwrap_or(&Value::Null), draft)
}

/// The text of a result. A message has no flag for an error, so the text of one that the log flags has to say it.
pub(super) fn result_text(text: String, is_error: bool) -> String {
    const MARKS: [&str; 5] = [
        "Error",
        "error:",
        "ERROR:",
        "<tool_use_error>",
        "[An error occurred",
    ];
    let needs_no_mark = !is_error
        || MARKS.iter().any(|mark| text.trim_start().starts_with(mark))
        || recorded_exit_code(&text).is_some_and(|code| code != 0);
    if needs_no_mark {
        text
    } else {
        format!("Error: {text}").trim_end().to_owned()
    }
}

/// A text that a program says in the person's name, marked as such.
pub(super) fn by_program(text: &str) -> String {
    if text.is_empty() || text.starts_with('<') {
        return text.to_owned();
    }
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// The content of a message of any vendor as text: a string, or parts joined by newlines, with placeholders for images.
/// Reasoning is left out. Sealed reasoning and unknown parts are counted in the draft.
pub(super) fn text_of(content: &Value, draft: &mut ConversationDraft) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(|part| part_text(part, draft)).collect();
            texts
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
        Value::Object(_) => part_text(content, draft),
        Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

fn part_text(part: &Value, draft: &mut ConversationDraft) -> String {
    let Value::Object(object) = part else {
        return text_of(part, draft);
    };
    match str_of(part, "type") {
        "thinking" | "reasoning" | "think" => {
            let keys = ["thinking", "reasoning", "think", "text", "content"];
            let texts = keys.map(|key| str_of(part, key));
            if texts
                .into_iter()
                .max_by_key(|text| text.len())
                .unwrap_or("")
                .trim()
                .is_empty()
            {
                draft.count(DropReason::SealedReasoning);
            }
            String::new()
        }
        "redacted_thinking" => {
            draft.count(DropReason::SealedReasoning);
            String::new()
        }
        kind => match (object.get("text"), media(part)) {
            (Some(Value::String(text)), _) => text.clone(),
            (_, Some(placeholder)) => placeholder,
            _ => unknown_part(kind, part, draft),
        },
    }
}

fn unknown_part(kind: &str, part: &Value, draft: &mut ConversationDraft) -> String {
    if kind == "tool_reference" {
        return format!("[tool {}]", str_of(part, "tool_name"));
    }
    let inner = part
        .get("content")
        .or_else(|| part.get("refusal"))
        .filter(|inner| !inner.is_null());
    if let Some(inner) = inner {
        return text_of(inner, draft);
    }
    draft.count(DropReason::Unknown(format!(
        "part {}",
        if kind.is_empty() {
            "without type"
        } else {
            kind
        }
    )));
    String::new()
}

/// The placeholder of an image, a sound or a document; `None` for anything else.
fn media(part: &Value) -> Option<String> {
    let kind = str_of(part, "type");
    if let Some(inline) = part.get("inlineData") {
        return Some(placeholder(
            "image",
            str_of(inline, "mimeType"),
            str_of(inline, "data"),
        ));
    }
    const KINDS: WordList =
        WordList("image image_url input_image document file input_file input_audio audio video");
    if !KINDS.has(kind) {
        return None;
    }
    let data = first_at(
        part,
        &[
            "/source/data",
            "/image_url/url",
            "/image_url",
            "/data",
            "/image",
            "/url",
            "/file/file_data",
            "/input_audio/data",
            "/source/url",
            "/document",
            "/audio",
            "/video",
        ],
    );
    let media_type = first_at(
        part,
        &["/source/media_type", "/mimeType", "/mime", "/mime_type"],
    );
    let kind = kind.trim_start_matches("input_").trim_end_matches("_url");
    Some(placeholder(kind, media_type, data))
}

/// `[image: image/png, 1234 bytes]` for inlined data, `[image: URL]` for a link.
pub(super) fn placeholder(kind: &str, media_type: &str, data: &str) -> String {
    if data.starts_with("http://") || data.starts_with("https://") || data.starts_with("file:") {
        return format!("[{kind}: {data}]");
    }
    let (media_type, data) = match data
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
    {
        Some((head, data)) => (head.split(';').next().unwrap_or(media_type), data),
        None => (media_type, data),
    };
    let media_type = if media_type.is_empty() {
        "unknown type"
    } else {
        media_type
    };
    format!("[{kind}: {media_type}, {} bytes]", data.len() / 4 * 3)
}

/// The arguments of a call as JSON text: a string as written, anything else serialized, and `{}` without arguments.
pub(super) fn arguments(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_request_can_have_is_no_count_of_tokens() {
        let usage = json!({"input": u64::MAX, "output": 12});
        assert_eq!(
            (tokens_at(&usage, "/input"), tokens_at(&usage, "/output")),
            (None, Some(Tokens(12)))
        );
    }

    #[test]
    fn images_become_placeholders_and_reasoning_is_left_out() {
        let mut draft = ConversationDraft::default();
        let content = json!([
            {"type":"thinking","thinking":"hm"},
            {"type":"text","text":"see"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAAAAAA"}},
            {"type":"image_url","image_url":{"url":"data:image/jpeg;base64,AAAA"}},
            {"type":"hologram"}
        ]);
        assert_eq!(
            text_of(&content, &mut draft),
            "see\n[image: image/png, 6 bytes]\n[image: image/jpeg, 3 bytes]"
        );
        let done = draft.finish();
        assert_eq!(
            done.dropped.get(&DropReason::SealedReasoning),
            None,
            "it is readable"
        );
        assert_eq!(
            done.dropped[&DropReason::Unknown("part hologram".into())],
            1
        );
    }
}
