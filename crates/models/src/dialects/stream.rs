//! A stream that came although none was asked for, as the whole reply that it stands for.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The end that is noted where a stream broke off.
const BROKEN_OFF: &str = "network_error";

/// The reply that a body of server-sent events, or of one JSON object a line, stands for; `None` for any other body.
pub(crate) fn from_events(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let is_events = ["data:", "event:", "id:", "retry:", ":"]
        .iter()
        .any(|field| text.starts_with(field));
    let is_lines = || {
        let first = text.split_once('\n').map(|(first, _)| first.trim_end());
        first.is_some_and(|line| line.starts_with('{') && line.ends_with('}'))
    };
    if !is_events && !is_lines() {
        return None;
    }
    let data = text.lines().filter_map(|line| {
        let whole = (!is_events).then_some(line);
        whole.or_else(|| line.strip_prefix("data:"))
    });
    let (mut chunks, mut is_done) = (Vec::new(), false);
    for data in data.map(str::trim) {
        is_done |= data == "[DONE]";
        chunks.extend(serde_json::from_str::<Value>(data).ok());
    }
    let whole = if let Some(error) = chunks.iter().find(|chunk| !chunk["error"].is_null()) {
        error.clone()
    } else if let Some(last) = chunks
        .iter_mut()
        .rev()
        .find(|chunk| chunk["response"].is_object())
    {
        last["response"].take()
    } else if chunks.iter().any(|chunk| chunk["type"] == "message_start") {
        message(chunks)
    } else {
        chat(chunks, is_done)
    };
    serde_json::to_vec(&whole).ok()
}

/// Joins the chunks of Chat Completions.
fn chat(chunks: Vec<Value>, is_done: bool) -> Value {
    let mut whole = json!({});
    for chunk in chunks {
        merge("", &mut whole, chunk);
    }
    for choice in whole["choices"].as_array_mut().into_iter().flatten() {
        if choice["message"].is_null() {
            choice["message"] = choice["delta"].take();
        }
        if choice["finish_reason"].is_null() && !is_done {
            choice["finish_reason"] = BROKEN_OFF.into();
        }
    }
    whole
}

/// Adds what a chunk says: texts grow, lists grow by index, anything else is replaced.
fn merge(key: &str, into: &mut Value, delta: Value) {
    match (into, delta) {
        (_, Value::Null) => {}
        (Value::Object(fields), Value::Object(new)) => {
            for (key, value) in new {
                merge(
                    &key,
                    fields.entry(key.clone()).or_insert(Value::Null),
                    value,
                );
            }
        }
        (Value::Array(items), Value::Array(new)) => {
            for item in new {
                let same =
                    |old: &&mut Value| !item["index"].is_null() && old["index"] == item["index"];
                match items.iter_mut().find(same) {
                    Some(old) => merge("", old, item),
                    None => items.push(item),
                }
            }
        }
        (Value::String(text), Value::String(more))
            if matches!(key, "content" | "arguments" | "refusal") =>
        {
            text.push_str(&more);
        }
        (into, new) => *into = new,
    }
}

/// Joins the events of Anthropic's API.
fn message(events: Vec<Value>) -> Value {
    const TEXTS: [&str; 4] = ["text", "thinking", "content", "signature"];
    let mut whole = json!({});
    let (mut blocks, mut inputs) = (BTreeMap::new(), BTreeMap::<u64, String>::new());
    let mut is_done = false;
    for mut event in events {
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str().unwrap_or("") {
            "message_start" => whole = event["message"].take(),
            "content_block_start" => drop(blocks.insert(index, event["content_block"].take())),
            "content_block_delta" => {
                let block = blocks
                    .entry(index)
                    .or_insert_with(|| Value::Object(Map::new()));
                for (key, value) in event["delta"].as_object().into_iter().flatten() {
                    let more = value.as_str().unwrap_or("");
                    if key == "partial_json" {
                        inputs.entry(index).or_default().push_str(more);
                    } else if TEXTS.contains(&key.as_str()) {
                        block[key] = format!("{}{more}", block[key].as_str().unwrap_or("")).into();
                    }
                }
            }
            "message_delta" => {
                merge("", &mut whole, event["delta"].take());
                merge("", &mut whole["usage"], event["usage"].take());
            }
            "message_stop" => is_done = true,
            _ => {}
        }
    }
    for (index, input) in inputs {
        if let Some(block) = blocks.get_mut(&index) {
            block["input"] = serde_json::from_str(&input).unwrap_or_default();
        }
    }
    whole["content"] = blocks.into_values().collect();
    if !is_done {
        whole["stop_reason"] = BROKEN_OFF.into();
    }
    whole
}

#[cfg(test)]
mod tests {
    use crate::call::{Operation, ReadFault};
    use crate::dialects::{read, read_billing};
    use crate::spec::Dialect;

    fn text(dialect: Dialect, body: &str) -> Result<String, ReadFault> {
        read(dialect, Operation::Generate, body.as_bytes(), None).map(|reply| reply.text)
    }

    const CHAT: &str = ": ping\n\ndata: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"47\"},\"finish_reason\":null}]}\r\n\r\n\
        data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"11\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

    #[test]
    fn streams_of_every_dialect_are_read() {
        assert_eq!(text(Dialect::OpenaiChat, CHAT), Ok("4711".into()));
        let lines: Vec<&str> = CHAT
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .collect();
        let lines = lines.join("\n").replace("[DONE]", "");
        assert_eq!(text(Dialect::OpenaiChat, &lines), Ok("4711".into()));
        let billing = read_billing(Dialect::OpenaiChat, CHAT.as_bytes());
        assert_eq!(
            (billing.model.as_deref(), billing.usage.output.map(|n| n.0)),
            (Some("m"), Some(2))
        );
        let responses = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n\
            data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"4711\"}]}]}}\n\n";
        assert_eq!(text(Dialect::OpenaiResponses, responses), Ok("4711".into()));
        let messages = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"content\":[],\"usage\":{\"input_tokens\":9}}}\n\n\
            data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"47\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"11\"}}\n\n\
            data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n\
            data: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(text(Dialect::Anthropic, messages), Ok("4711".into()));
        let usage = read_billing(Dialect::Anthropic, messages.as_bytes()).usage;
        assert_eq!(
            (usage.input.map(|n| n.0), usage.output.map(|n| n.0)),
            (Some(9), Some(3))
        );
    }

    #[test]
    fn a_stream_that_breaks_off_or_ends_in_an_error_is_no_answer() {
        let cut = CHAT
            .split("data: {\"choices\":[{\"index\":0,\"delta\":{},")
            .next()
            .unwrap();
        assert!(matches!(
            text(Dialect::OpenaiChat, cut),
            Err(ReadFault::Upstream(_))
        ));
        let failed = format!("{cut}data: {{\"error\":{{\"message\":\"lost\"}}}}\n\n");
        assert_eq!(
            text(Dialect::OpenaiChat, &failed),
            Err(ReadFault::Upstream("lost".into()))
        );
    }
}
