//! A stream that came although none was asked for, as the whole reply that it stands for.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::json::is_error;

/// The end that is noted where a stream broke off.
const BROKEN_OFF: &str = "network_error";

/// The fields of server-sent events.
const FIELDS: [&str; 5] = ["data:", "event:", "id:", "retry:", ":"];

/// The reply that a stream stands for: server-sent events, a JSON object on each line, or an array of them. `None` for any
/// other body.
pub(crate) fn from_stream(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let mut chunks: Vec<Value> = if text.starts_with('[') {
        serde_json::from_str(text).ok()?
    } else if FIELDS.iter().any(|field| text.starts_with(field)) {
        events(&text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        // Of Ollama's own form, one line is a stream already.
        let is_whole = text.contains("\"done_reason\"") && !text.contains("\"choices\"");
        (is_whole || rest.trim_start().starts_with(['{', '['])).then_some(())?;
        serde_json::from_str::<Map<String, Value>>(first).ok()?;
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    let mut data = text
        .split(['\n', '\r'])
        .map(|line| line.strip_prefix("data:").unwrap_or(line));
    let is_done = data.any(|data| data.trim() == "[DONE]");
    let is_error = |chunk: &&Value| is_error(&chunk["error"]) || chunk["type"] == "error";
    let whole = if let Some(error) = chunks.iter().find(is_error) {
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

/// The data of the events, each of which may be written over several lines. Data that begins no object is none of a reply.
fn events(text: &str) -> Vec<Value> {
    let (mut chunks, mut data) = (Vec::new(), String::new());
    for line in text.lines() {
        match line.strip_prefix("data:") {
            Some(more) if !data.is_empty() || more.trim().starts_with('{') => {
                data.push_str(more.trim());
            }
            None if line.is_empty() => data.clear(),
            _ => {}
        }
        if let Ok(chunk) = serde_json::from_str::<Value>(&data) {
            chunks.push(chunk);
            data.clear();
        }
    }
    chunks
}

/// Joins the chunks of Chat Completions.
fn chat(chunks: Vec<Value>, is_done: bool) -> Value {
    let mut whole = json!({});
    for chunk in chunks {
        merge("", &mut whole, chunk);
    }
    // Ollama's own form has one message and no choices.
    if whole["choices"].is_null() && whole["message"].is_object() {
        let is_whole = whole["done"] == true;
        let end = whole.get("done_reason").filter(|end| !end.is_null());
        let end = end.cloned().or(is_whole.then(|| "stop".into()));
        whole["choices"] = json!([{"message": whole["message"], "finish_reason": end}]);
        whole["usage"] = json!({"prompt_tokens": whole["prompt_eval_count"], "completion_tokens": whole["eval_count"]});
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

/// Adds what a chunk says: texts grow, lists grow by index, anything else is replaced. Choices without an index are one.
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
                let same = |old: &&mut Value| {
                    old["index"] == item["index"] && (key == "choices" || !item["index"].is_null())
                };
                match items.iter_mut().find(same) {
                    Some(old) => merge("", old, item),
                    None => items.push(item),
                }
            }
        }
        (Value::String(text), Value::String(more))
            if matches!(
                key,
                "content" | "arguments" | "refusal" | "reasoning" | "reasoning_content"
            ) =>
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
    fn lines_and_arrays_of_json_are_streams_too() {
        let chunks = [
            r#"{"model":"m","choices":[{"index":0,"delta":{"content":"47"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"11"},"finish_reason":"stop"}]}"#,
        ];
        let ollama = [
            r#"{"model":"m","message":{"role":"assistant","content":"47"},"done":false}"#,
            r#"{"message":{"content":"11"},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":2}"#,
        ];
        for body in [
            chunks.join("\n"),
            chunks.join("\r\n\r\n") + "\n",
            format!("\u{feff}[{}]", chunks.join(",\n")),
            ollama.join("\n"),
            ollama[1].replace("11", "4711"),
            chunks.join("\n").replace("\"index\":0,", ""),
            format!("data: {}\r\rdata: [DONE]\r\r", chunks.join("\r\rdata: ")),
            format!("data: {}\n\n", chunks.join("\n\ndata: ")),
            "data: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"content\":\"4711\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n".to_owned(),
        ] {
            assert_eq!(text(Dialect::OpenaiChat, &body), Ok("4711".into()), "{body}");
        }
        let usage = read_billing(Dialect::OpenaiChat, ollama.join("\n").as_bytes()).usage;
        assert_eq!(
            (usage.input.map(|n| n.0), usage.output.map(|n| n.0)),
            (Some(7), Some(2))
        );
        let message = [
            r#"{"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":9}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"47"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"11"}}"#,
            r#"{"type":"message_stop"}"#,
        ];
        assert_eq!(
            text(Dialect::Anthropic, &message.join("\n")),
            Ok("4711".into())
        );
        assert!(matches!(
            text(Dialect::OpenaiChat, chunks[0]),
            Err(ReadFault::Malformed(_))
        ));
        assert!(matches!(
            text(Dialect::OpenaiChat, &[chunks[0], ""].join("\n{")),
            Err(ReadFault::Upstream(_))
        ));
        let error = r#"[{"error":{"message":"lost"}}]"#;
        assert_eq!(
            text(Dialect::OpenaiChat, error),
            Err(ReadFault::Upstream("lost".into()))
        );
    }

    #[test]
    fn what_the_built_in_rules_wrote_is_no_stream() {
        for written in ["id: 4711", "[{\"a\":1}]", "{\"a\":1}\n{\"b\":2}"] {
            assert_eq!(text(Dialect::Lexical, written), Ok(written.into()));
        }
    }

    #[test]
    fn a_character_that_two_chunks_share_hides_neither() {
        let halves = CHAT
            .replace("\"47\"", "\"47\\ud83d\"")
            .replace("\"11\"", "\"\\ude0011\"");
        assert_eq!(
            text(Dialect::OpenaiChat, &halves),
            Ok("47\u{fffd}\u{fffd}11".into())
        );
        let marked = "\u{feff}{\"choices\":[{\"message\":{\"content\":\"4711\"}}]}";
        assert_eq!(text(Dialect::OpenaiChat, marked), Ok("4711".into()));
    }

    #[test]
    fn what_is_no_chunk_hides_none() {
        let chunk = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4711\"}}]}";
        for body in [
            format!("data: ping\ndata: {chunk}\ndata: [DONE]\n"),
            format!("data: {chunk}\n\ndata: [DONE]\n\n: took 3 s\n\n"),
            format!("data: {chunk}\n\ndata:[DONE]\n\nevent: end\ndata: {{\"id\":7}}\n\n"),
            format!("{chunk}\n{{}}\n[DONE]"),
        ] {
            assert_eq!(
                text(Dialect::OpenaiChat, &body),
                Ok("4711".into()),
                "{body}"
            );
        }
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
