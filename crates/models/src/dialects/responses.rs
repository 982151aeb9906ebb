//! OpenAI Responses, and `/responses/compact`, whose items go back as they came.
//!
//! Never sent: `truncation`, which may drop the oldest items without saying so.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::conversation::{
    Body, BuildFault, ConversationPart, FlatConversation, HistoryStyle, HttpRequest, SentItem,
    conversation,
};
use super::endings::Said;
use super::json::{Fields, called, error_text, is_error, lacks, parse, raw, word};
use crate::call::{Call, Completion, Operation, OutputSchema, ReadFault};
use crate::spec::{Dialect, ProviderSpec};

/// Puts `call` into the dialect.
pub(crate) fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    let path = match call.operation {
        Operation::Generate | Operation::UseTools => "/responses",
        Operation::Compact => "/responses/compact",
        operation @ Operation::Summarize => {
            return Err(BuildFault::unsupported(Dialect::OpenaiResponses, operation));
        }
    };
    // The compact endpoint takes no setting at all.
    let body = match call.operation {
        Operation::Compact => compaction(call)?,
        _ => generation(spec, call)?,
    };
    Ok(HttpRequest {
        path,
        headers: Vec::new(),
        body: body.bytes()?,
    })
}

fn compaction(call: &Call) -> Result<Body, BuildFault> {
    let mut body = Body::default();
    body.set("model", &call.model.0)?;
    set_conversation(&mut body, call)?;
    Ok(body)
}

fn generation(spec: &ProviderSpec, call: &Call) -> Result<Body, BuildFault> {
    let effort = call.settings.effort.as_ref();
    let mut body = Body::generating(call)?;
    set_conversation(&mut body, call)?;
    body.set("store", false)?;
    body.set("max_output_tokens", call.settings.max_output_tokens)?;
    body.set("reasoning", effort.map(|effort| json!({"effort": effort})))?;
    body.set("text", call.schema.as_deref().map(text_format))?;
    body.set("tool_choice", call.forbids_tools().then_some("none"))?;
    if call.operation == Operation::UseTools {
        // The vendor stores no reasoning, so it must go back with the next step.
        body.set("include", ["reasoning.encrypted_content"])?;
    }
    if spec.is_openai() {
        body.set("prompt_cache_key", call.prompt_cache_key())?;
    }
    Ok(body)
}

fn set_conversation(body: &mut Body, call: &Call) -> Result<(), BuildFault> {
    let conversation = conversation(call, HistoryStyle::NativeCalls)?;
    let instructions = call.instructions.as_deref();
    body.set(
        "instructions",
        instructions.or(conversation.system.as_deref()),
    )?;
    body.set("input", items(&conversation))?;
    body.set_tools(call, |name, tool| {
        json!({
            "type": "function",
            "name": name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": false,
        })
    })
}

fn text_format(schema: &OutputSchema) -> Value {
    json!({"format": {"type": "json_schema", "name": schema.name, "strict": true, "schema": schema.schema}})
}

fn items<'a>(conversation: &FlatConversation<'a>) -> Vec<SentItem<'a>> {
    let said = |role: &str, text: &str| SentItem::Made(json!({"role": role, "content": text}));
    let result = |call: &str, text: &str| {
        SentItem::Made(json!({"type": "function_call_output", "call_id": call, "output": text}))
    };
    let mut items = Vec::new();
    for part in &conversation.parts {
        match part {
            ConversationPart::Text(speaker, text) => items.push(said(speaker.name(), text)),
            ConversationPart::Calls(text, calls) => {
                items.extend((!text.trim().is_empty()).then(|| said("assistant", text)));
                items.extend(calls.iter().map(|call| {
                    SentItem::Made(json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.function.name,
                        "arguments": call.function.arguments,
                    }))
                }));
            }
            ConversationPart::Result { call, text } => items.push(result(call, text)),
            ConversationPart::Items(kept) | ConversationPart::Reply(kept) => {
                items.extend(kept.iter().copied().map(SentItem::Stored));
            }
            ConversationPart::Results(results) => {
                items.extend(
                    results
                        .iter()
                        .map(|returned| result(&returned.id, &returned.text)),
                );
            }
        }
    }
    items
}

/// The answer in a reply.
pub(crate) fn completion(operation: Operation, body: &[u8]) -> Result<Completion, ReadFault> {
    let reply: Value = parse(body)?;
    if is_error(&reply["error"]) {
        return Err(upstream(&reply["error"]));
    }
    let output = reply["output"].as_array();
    let output = output.ok_or_else(|| lacks("output", body))?;
    if operation == Operation::Compact {
        let is_compacted =
            |item: &Value| item["type"] == "compaction" && item["encrypted_content"].is_string();
        if !output.iter().any(is_compacted) {
            let fault = "its `output` holds no compaction item";
            return Err(ReadFault::Malformed(fault.into()));
        }
        return Ok(Completion {
            items: Some(raw_output(body)?.get().to_owned()),
            ..Completion::text("", false)
        });
    }
    // `incomplete` says no more than that it has a reason.
    let status = word(&reply["status"]);
    let reason = reply["incomplete_details"]["reason"].as_str();
    let end = match status.as_deref() {
        Some("incomplete") => reason.or(Some("incomplete")),
        status => status,
    };
    Said {
        text: &answer(output)?,
        calls: output
            .iter()
            .filter(|item| item["type"] == "function_call")
            .map(|item| called(&item["name"], &item["arguments"]))
            .collect(),
        end,
    }
    .completion(operation, || sent_back(raw_output(body)?))
}

/// The items of a reply, byte for byte.
fn raw_output(body: &[u8]) -> Result<&RawValue, ReadFault> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        output: &'a RawValue,
    }
    parse::<Reply<'_>>(body).map(|reply| reply.output)
}

/// The fault of an error inside a 200. Some are verdicts on the request: the same bytes would get the same one again.
fn upstream(error: &Value) -> ReadFault {
    match error["code"].as_str() {
        Some("invalid_prompt" | "bio_policy" | "cyber_policy" | "content_filter") => {
            ReadFault::Refused(Some(error_text(error)))
        }
        _ => ReadFault::Upstream(error_text(error)),
    }
}

/// The items of a reply as the next request sends them back. The vendor's ids of calls and messages are left out: they
/// would tie the items to a reply that it has not stored.
fn sent_back(output: &RawValue) -> Result<String, ReadFault> {
    let items: Vec<&RawValue> = parse(output.get().as_bytes())?;
    let mut texts = Vec::with_capacity(items.len());
    for given in items {
        let mut item: Fields = parse(given.get().as_bytes())?;
        let kind = item.get("type").map_or("", |kind| kind.get());
        texts.push(if matches!(kind, "\"function_call\"" | "\"message\"") {
            item.remove("id");
            item.remove("status");
            raw(&item)?.get().to_owned()
        } else {
            given.get().to_owned()
        });
    }
    Ok(format!("[{}]", texts.join(",")))
}

fn answer(output: &[Value]) -> Result<String, ReadFault> {
    let messages = output.iter().filter(|item| item["type"] == "message");
    let is_final = |message: &Value| message["phase"] == "final_answer";
    let is_marked = messages.clone().any(is_final);
    let parts = messages
        .filter(|message| !is_marked || is_final(message))
        .flat_map(|message| message["content"].as_array().into_iter().flatten());
    if let Some(part) = parts.clone().find(|part| part["type"] == "refusal") {
        let why = part["refusal"].as_str().map(str::to_owned);
        return Err(ReadFault::Refused(why));
    }
    let spoken = parts.filter(|part| part["type"] == "output_text");
    Ok(spoken.filter_map(|part| part["text"].as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::read_billing;
    use base::units::Tokens;

    fn read(operation: Operation, body: &str) -> Result<Completion, ReadFault> {
        completion(operation, body.as_bytes())
    }

    #[test]
    fn only_the_final_answer_counts_where_messages_have_phases() {
        let body = r#"{"status":"completed","output":[{"type":"reasoning","summary":[]},
            {"type":"message","phase":"commentary","content":[{"type":"output_text","text":"let me see"}]},
            {"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"4711"}]}]}"#;
        assert_eq!(read(Operation::Generate, body).unwrap().text, "4711");
    }

    #[test]
    fn a_compacted_window_is_kept_byte_for_byte() {
        let output = r#"[ {"type":"message","role":"user","content":[]}, {"type":"compaction" ,"encrypted_content":"gA\u00e9="}]"#;
        let body = format!(
            r#"{{"object":"response.compaction","output":{output},"usage":{{"input_tokens":9}}}}"#
        );
        let completion = read(Operation::Compact, &body).unwrap();
        assert_eq!(completion.items.as_deref(), Some(output));
        assert_eq!(
            read_billing(Dialect::OpenaiResponses, body.as_bytes())
                .usage
                .input,
            Some(Tokens(9))
        );
        let without = r#"{"output":[{"type":"message","content":[]}]}"#;
        assert!(matches!(
            read(Operation::Compact, without),
            Err(ReadFault::Malformed(_))
        ));
    }

    #[test]
    fn a_policy_verdict_inside_a_200_is_a_refusal() {
        let body =
            r#"{"status":"failed","error":{"code":"invalid_prompt","message":"no"},"output":[]}"#;
        assert_eq!(
            read(Operation::Generate, body),
            Err(ReadFault::Refused(Some("no".into())))
        );
        let body =
            r#"{"status":"failed","error":{"code":"server_error","message":"oops"},"output":[]}"#;
        assert_eq!(
            read(Operation::Generate, body),
            Err(ReadFault::Upstream("oops".into()))
        );
    }
}
