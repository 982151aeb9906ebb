//! OpenAI Chat Completions, and the many servers that speak it.
//!
//! Servers other than OpenAI's get a minimal request; what this endpoint cannot do (items of a compaction) is a fault
//! and never left out.

use serde::Deserialize;
use serde_json::{Value, json};

use super::conversation::{
    Body, BuildFault, ConversationPart, FlatConversation, HistoryStyle, HttpRequest, SentItem,
    conversation,
};
use super::endings::Said;
use super::json::{Fields, called, error_text, is_error, lacks, parse, raw, word};
use crate::call::{Call, Completion, Operation, OutputSchema, ReadFault};
use crate::spec::{Dialect, ProviderSpec, host, is_below};
use base::message::Function;
use base::words::WordList;

/// Puts `call` into the dialect.
pub(crate) fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    if !matches!(call.operation, Operation::Generate | Operation::UseTools) {
        return Err(BuildFault::unsupported(Dialect::OpenaiChat, call.operation));
    }
    let vendor = spec.is_openai();
    let conversation = conversation(call, HistoryStyle::NativeCalls)?;
    let limit = if vendor {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut body = Body::generating(call)?;
    body.set("messages", messages(&conversation)?)?;
    body.set(limit, call.settings.max_output_tokens)?;
    body.set("reasoning_effort", &call.settings.effort)?;
    body.set(
        "response_format",
        call.schema.as_deref().map(response_format),
    )?;
    body.set_tools(call, |name, tool| {
        let function =
            json!({"name": name, "description": tool.description, "parameters": tool.parameters});
        json!({"type": "function", "function": function})
    })?;
    body.set("tool_choice", call.forbids_tools().then_some("none"))?;
    if is_below(&host(&spec.base_url), "openrouter.ai") {
        body.set(
            "plugins",
            json!([{"id": "context-compression", "enabled": false}]),
        )?;
        body.set("provider", json!({"require_parameters": true}))?;
    }
    if vendor {
        body.set("prompt_cache_key", call.prompt_cache_key())?;
    }
    Ok(HttpRequest {
        path: "/chat/completions",
        headers: Vec::new(),
        body: body.bytes()?,
    })
}

fn response_format(schema: &OutputSchema) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": schema.name, "strict": true, "schema": schema.schema}})
}

fn result(call: &str, text: &str) -> SentItem<'static> {
    SentItem::Made(json!({"role": "tool", "tool_call_id": call, "content": text}))
}

fn messages<'a>(conversation: &FlatConversation<'a>) -> Result<Vec<SentItem<'a>>, BuildFault> {
    let said = |role: &str, text: &str| SentItem::Made(json!({"role": role, "content": text}));
    let system = conversation.system.iter().map(|text| said("system", text));
    let mut messages: Vec<SentItem<'a>> = system.collect();
    for part in &conversation.parts {
        match part {
            ConversationPart::Text(speaker, text) => messages.push(said(speaker.name(), text)),
            ConversationPart::Calls(text, calls) => {
                let content = Some(text).filter(|text| !text.is_empty());
                messages.push(SentItem::Made(
                    json!({"role": "assistant", "content": content, "tool_calls": calls}),
                ));
            }
            ConversationPart::Result { call, text } => messages.push(result(call, text)),
            ConversationPart::Items(_) => {
                let kind = Dialect::OpenaiChat.name();
                return Err(BuildFault::new(format!(
                    "items compacted by another provider cannot be sent to an endpoint of kind `{kind}`"
                )));
            }
            ConversationPart::Reply(items) => {
                messages.extend(items.iter().copied().map(SentItem::Stored));
            }
            ConversationPart::Results(results) => {
                let results = results.iter();
                messages.extend(results.map(|returned| result(&returned.id, &returned.text)));
            }
        }
    }
    Ok(messages)
}

/// The calls of a message. Servers write the only one in the field that `tool_calls` replaced.
fn calls(message: &Value) -> Vec<Function> {
    let listed = message["tool_calls"].as_array().into_iter().flatten();
    let listed = listed.map(|call| &call["function"]);
    let only = Some(&message["function_call"])
        .filter(|function| !matches!(function["name"].as_str(), None | Some("")));
    let all = listed.chain(only);
    all.map(|function| called(&function["name"], &function["arguments"]))
        .collect()
}

/// The fields of a message that go back with its calls. Servers have different names for reasoning. Some refuse other fields
/// of a reply in a request.
const SENT_BACK: WordList =
    WordList("role content tool_calls reasoning reasoning_content reasoning_details");

/// The answer in a reply, whose bytes are `body`.
pub(crate) fn completion(
    reply: &Value,
    operation: Operation,
    body: &[u8],
) -> Result<Completion, ReadFault> {
    let choice = &reply["choices"][0];
    if let Some(error) = [&reply["error"], &choice["error"]]
        .into_iter()
        .find(|error| is_error(error))
    {
        return Err(ReadFault::Upstream(error_text(error)));
    }
    if choice.is_null() {
        // Azure says of every prompt what its filter found.
        let filter = reply["prompt_filter_results"].to_string();
        let is_refused = filter.contains("\"filtered\":true");
        let refused = is_refused.then(|| ReadFault::Refused(Some("content filter".to_owned())));
        return Err(refused.unwrap_or_else(|| lacks("choices", body)));
    }
    let message = &choice["message"];
    if !message.is_object() {
        return Err(ReadFault::Malformed("its choice has no `message`".into()));
    }
    let refusal = message["refusal"].as_str();
    if let Some(refusal) = refusal.filter(|text| !text.is_empty()) {
        return Err(ReadFault::Refused(Some(refusal.to_owned())));
    }
    let text = match &message["content"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|p| p["type"].is_null() || p["type"] == "text" || p["type"] == "output_text")
            .filter_map(|p| p["text"].as_str().or(p.as_str()))
            .collect(),
        _ => {
            let fault = "`content` is neither text nor a list of parts";
            return Err(ReadFault::Malformed(fault.into()));
        }
    };
    let end = &choice["finish_reason"];
    let end = end.get("type").unwrap_or(end);
    Said {
        text: &text,
        calls: calls(message),
        end: word(end).as_deref(),
    }
    .completion(operation, || sent_back(body))
}

/// The message of a reply as the next request sends it back, alone in a JSON array.
fn sent_back(body: &[u8]) -> Result<String, ReadFault> {
    #[derive(Deserialize)]
    struct Reply {
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        message: Fields,
    }
    let reply: Reply = parse(body)?;
    let choice = reply.choices.into_iter().next();
    let mut message = choice.ok_or_else(|| lacks("choices", body))?.message;
    message
        .retain(|name, value| SENT_BACK.has(name) && (name == "content" || value.get() != "null"));
    message
        .entry("role".to_owned())
        .or_insert(raw(&"assistant")?);
    Ok(raw(&[message])?.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Billing;
    use crate::dialects::read_billing;
    use base::units::Tokens;

    fn read(body: &str) -> Result<Completion, ReadFault> {
        let body = body.as_bytes();
        completion(&parse(body)?, Operation::Generate, body)
    }

    #[test]
    fn odd_fields_do_not_spoil_a_good_answer() {
        let body = r#"{"model":null,"usage":"n/a","choices":[{"finish_reason":null,
            "message":{"content":[{"type":"text","text":"a"},{"type":"x"}],"reasoning_content":"secret","function_call":{}}}]}"#;
        assert_eq!(
            read(body),
            Ok(Completion {
                text: "a".into(),
                items: None,
                calls: Vec::new(),
                truncated: false
            })
        );
        assert_eq!(
            read_billing(Dialect::OpenaiChat, body.as_bytes()),
            Billing::default()
        );
    }

    #[test]
    fn a_small_models_endless_grading_is_cut_off_and_its_usage_known() {
        let body = r#"{"choices":[{"finish_reason":"length","index":0,"message":{"role":"assistant","content":
            "{\"criterionResults\":[{\"criterionId\":\"accuracy_factual\",\"reasoning\":\"1.1.1.1.1.1.1.1.1.1.1.1"}}],
            "created":1,"model":"small","object":"chat.completion","usage":{"completion_tokens":800,
            "prompt_tokens":1475,"total_tokens":2275,"prompt_tokens_details":{"cached_tokens":1086}},"id":"c-1",
            "timings":{"cache_n":1086,"prompt_n":389,"predicted_n":800}}"#;
        let usage = read_billing(Dialect::OpenaiChat, body.as_bytes()).usage;
        // The prompt counts whole, although most of it came from the server's own cache.
        assert_eq!(
            (usage.input, usage.cached_input),
            (Some(Tokens(1475)), Some(Tokens(1086)))
        );
        let cut = read(body).unwrap();
        assert!(cut.truncated && cut.text.starts_with("{\"criterionResults\""));
        let text = "\"{\\\"criterionResults\\\":[{\\\"criterionId\\\":\\\"accuracy_factual\\\",\\\"reasoning\\\":\\\"1.1.1.1.1.1.1.1.1.1.1.1\"";
        let empty = body.replace(text, "\"<think>1.1.1.1\"");
        assert!(
            empty != body && read(&empty) == Err(ReadFault::Truncated),
            "its text never began"
        );
    }

    #[test]
    fn parts_need_no_type_and_a_call_needs_a_name() {
        for (text, message) in [
            ("ab", r#"{"content":[{"text":"a"},"b"]}"#),
            (
                "a",
                r#"{"content":"a","function_call":{"name":"","arguments":""}}"#,
            ),
            (
                "b",
                r#"{"content":[{"type":"thinking","text":"a"},{"type":"text","text":"b"}]}"#,
            ),
        ] {
            for error in ["{}", "\"\"", "false", "null"] {
                let body = format!(
                    r#"{{"error":{error},"choices":[{{"message":{message},"error":{error}}}]}}"#
                );
                assert_eq!(read(&body).unwrap().text, text, "{body}");
            }
        }
        let called = r#"{"choices":[{"message":{"content":"a","function_call":{"name":"x"}}}]}"#;
        assert_eq!(read(called), Err(ReadFault::CalledTool("x".into())));
    }

    #[test]
    fn a_filtered_answer_is_a_refusal() {
        let body =
            r#"{"choices":[{"finish_reason":"content_filter","message":{"content":"par"}}]}"#;
        assert_eq!(
            read(body),
            Err(ReadFault::Refused(Some("content filter".into())))
        );
        let filtered = |is: bool| {
            format!(
                r#"{{"choices":[],"prompt_filter_results":[{{"content_filter_results":{{"hate":{{"filtered":{is}}}}}}}]}}"#
            )
        };
        assert!(matches!(read(&filtered(true)), Err(ReadFault::Refused(_))));
        assert!(matches!(
            read(&filtered(false)),
            Err(ReadFault::Malformed(_))
        ));
    }

    #[test]
    fn the_word_of_an_end_may_stand_in_an_object() {
        let read = |end: &str| {
            let choice = format!(r#"{{"finish_reason":{end},"message":{{"content":"a"}}}}"#);
            read(&format!(r#"{{"choices":[{choice}]}}"#))
        };
        assert!(!read(r#"{"type":"stop","matched":7}"#).unwrap().truncated);
        assert!(read(r#"{"type":"length"}"#).unwrap().truncated);
        assert!(matches!(
            read(r#"{"matched":7}"#),
            Err(ReadFault::Upstream(_))
        ));
    }
}
