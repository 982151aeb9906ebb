//! Anthropic Messages, with structured output, compaction on demand and breakpoints for the prompt cache.
//!
//! A compaction block goes back first, alone in an assistant message, byte for byte, with the beta header.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::conversation::{
    Body, BuildFault, ConversationPart, FlatConversation, HistoryStyle, HttpRequest, conversation,
};
use super::endings::{Ending, Said, ending};
use super::json::{called, count, error_text, is_error, lacks, parse, word};
use crate::call::{Call, Completion, Operation, ReadFault};
use crate::estimate::estimate_text;
use crate::spec::{Dialect, ProviderSpec};
use base::message::ToolCall;
use base::units::{Tokens, Usage};

/// Sent where the user set no limit: the API demands one, and thinking counts towards it.
pub(crate) const DEFAULT_MAX_TOKENS: Tokens = Tokens(8192);

/// Most models cache no shared prefix that is shorter than this.
const MIN_CACHED_PREFIX: Tokens = Tokens(1024);

pub(crate) const NEWER_VERSION: (&str, &str) = ("anthropic-version", "2026-10-21");
/// Proxies may know only this one.
pub(crate) const OLDER_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

const COMPACTION_BETA: &str = "compact-2026-09-04";

#[derive(Serialize)]
struct AnthropicMessage<'a> {
    role: &'static str,
    content: Vec<RequestBlock<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RequestBlock<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Value>,
    },
    Stored(&'a RawValue),
    Call {
        #[serde(rename = "type")]
        kind: &'static str,
        id: String,
        name: String,
        input: Box<RawValue>,
    },
    Result {
        #[serde(rename = "type")]
        kind: &'static str,
        tool_use_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// Puts `call` into the dialect.
pub(crate) fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    if call.operation == Operation::Compact {
        return Err(BuildFault::unsupported(Dialect::Anthropic, call.operation));
    }
    // A history with calls as blocks needs the declarations of the tools.
    let is_declared = call.operation == Operation::Generate && call.tools.is_some();
    let style = if is_declared {
        HistoryStyle::CallsAsBlocks
    } else {
        HistoryStyle::CallsAsText
    };
    let conversation = conversation(call, style)?;
    let holds_items = conversation
        .parts
        .iter()
        .any(|part| matches!(part, ConversationPart::Items(_)));
    // The newer version refuses a temperature; the older one still serves models that honour it.
    let version = if call.settings.temperature.is_some() {
        OLDER_VERSION
    } else {
        NEWER_VERSION
    };
    let mut headers = vec![version];
    if call.operation == Operation::Summarize || holds_items {
        headers.push(("anthropic-beta", COMPACTION_BETA));
    }
    Ok(HttpRequest {
        path: messages_path(&spec.base_url),
        headers,
        body: body(call, conversation)?.bytes()?,
    })
}

/// The path of the messages below a base URL, which may end in the version already.
pub(crate) fn messages_path(base_url: &str) -> &'static str {
    let root = base_url
        .split('?')
        .next()
        .unwrap_or("")
        .trim_end_matches('/');
    if root.ends_with("/v1") {
        "/messages"
    } else {
        "/v1/messages"
    }
}

fn body(call: &Call, conversation: FlatConversation<'_>) -> Result<Body, BuildFault> {
    let settings = &call.settings;
    let summarize = call.operation == Operation::Summarize;
    let (system, messages) = prompt(conversation, !summarize, call.prefix_uses > 1);
    let mut body = Body::generating(call)?;
    let limit = settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    body.set("max_tokens", limit)?;
    body.set("system", (!system.is_empty()).then_some(system))?;
    body.set("messages", messages)?;
    body.set_tools(call, |name, tool| {
        json!({"name": name, "description": tool.description, "input_schema": tool.parameters})
    })?;
    let forbidden = call.forbids_tools().then(|| json!({"type": "none"}));
    body.set("tool_choice", forbidden)?;
    let mut output = Map::new();
    if let Some(effort) = &settings.effort {
        output.insert("effort".to_owned(), json!(effort));
    }
    if let Some(schema) = call.schema.as_deref().filter(|_| !summarize) {
        let format = json!({"type": "json_schema", "schema": schema.schema});
        output.insert("format".to_owned(), format);
    }
    body.set("output_config", (!output.is_empty()).then_some(output))?;
    if summarize {
        let own = call.instructions.as_deref();
        let compaction = match own.filter(|text| !text.trim().is_empty()) {
            Some(text) => json!({"type": "summarize", "instructions": text}),
            None => json!({"type": "summarize"}),
        };
        body.set("compaction", compaction)?;
    }
    Ok(body)
}

/// System blocks and messages. There are cache breakpoints at the end of the system text, which most requests of a stage
/// share, and before the last turn, if other requests share the turns before it.
fn prompt(
    conversation: FlatConversation<'_>,
    is_cached: bool,
    is_prefix_shared: bool,
) -> (Vec<RequestBlock<'_>>, Vec<AnthropicMessage<'_>>) {
    let mut length = conversation
        .system
        .as_deref()
        .map_or(Tokens(0), estimate_text);
    let mut system: Vec<RequestBlock<'_>> = conversation
        .system
        .map(|text| text_block(Cow::Owned(text)))
        .into_iter()
        .collect();
    let mut messages: Vec<AnthropicMessage<'_>> = Vec::new();
    if is_cached && length >= MIN_CACHED_PREFIX {
        mark_cached(system.last_mut());
    }
    for (index, part) in conversation.parts.into_iter().enumerate() {
        if let ConversationPart::Text(_, text) = &part {
            length += estimate_text(text);
        }
        push_part(&mut messages, part);
        let ends_prefix = is_prefix_shared && index + 1 == conversation.last_turn;
        if is_cached && ends_prefix && length >= MIN_CACHED_PREFIX {
            let last = messages.last_mut();
            mark_cached(last.and_then(|message| message.content.last_mut()));
        }
    }
    (system, messages)
}

fn push_part<'a>(messages: &mut Vec<AnthropicMessage<'a>>, part: ConversationPart<'a>) {
    let (role, blocks) = match part {
        ConversationPart::Text(speaker, text) => (speaker.name(), vec![text_block(text)]),
        ConversationPart::Items(items) => {
            // The block is alone in its message, so the next text opens a new one.
            messages.push(AnthropicMessage {
                role: "assistant",
                content: items.into_iter().map(RequestBlock::Stored).collect(),
            });
            return;
        }
        ConversationPart::Reply(items) => (
            "assistant",
            items.into_iter().map(RequestBlock::Stored).collect(),
        ),
        ConversationPart::Results(results) => (
            "user",
            results
                .iter()
                .map(|result| result_block(result.id.as_str().into(), &result.text))
                .collect(),
        ),
        ConversationPart::Calls(text, calls) => {
            let text = Some(text)
                .filter(|text| !text.trim().is_empty())
                .map(text_block);
            (
                "assistant",
                text.into_iter()
                    .chain(calls.into_iter().filter_map(call_block))
                    .collect(),
            )
        }
        ConversationPart::Result { call, text } => {
            return push_result(messages, result_block(call.into(), text));
        }
    };
    if messages.is_empty() && role == "assistant" {
        messages.push(AnthropicMessage {
            role: "user",
            content: vec![text_block(Cow::Borrowed("[the conversation so far]"))],
        });
    }
    match messages.last_mut() {
        Some(last)
            if last.role == role
                && !matches!(last.content.last(), Some(RequestBlock::Stored(_))) =>
        {
            last.content.extend(blocks);
        }
        _ => messages.push(AnthropicMessage {
            role,
            content: blocks,
        }),
    }
}

/// Puts a result at the beginning of the message after its calls: the vendor refuses a text before results.
fn push_result<'a>(messages: &mut Vec<AnthropicMessage<'a>>, block: RequestBlock<'a>) {
    match messages.last_mut().filter(|last| last.role == "user") {
        Some(last) => {
            let results = last
                .content
                .iter()
                .take_while(|block| matches!(block, RequestBlock::Result { .. }));
            last.content.insert(results.count(), block);
        }
        None => messages.push(AnthropicMessage {
            role: "user",
            content: vec![block],
        }),
    }
}

/// The call as a block. Its arguments are an object, since [`conversation()`] turns other calls into text.
fn call_block<'a>(call: ToolCall) -> Option<RequestBlock<'a>> {
    Some(RequestBlock::Call {
        kind: "tool_use",
        id: call.id,
        name: call.function.name,
        input: serde_json::from_str(&call.function.arguments).ok()?,
    })
}

fn result_block<'a>(tool_use_id: Cow<'a, str>, content: &'a str) -> RequestBlock<'a> {
    RequestBlock::Result {
        kind: "tool_result",
        tool_use_id,
        content,
    }
}

fn text_block(text: Cow<'_, str>) -> RequestBlock<'_> {
    RequestBlock::Text {
        kind: "text",
        text,
        cache_control: None,
    }
}

fn mark_cached(block: Option<&mut RequestBlock<'_>>) {
    if let Some(RequestBlock::Text { cache_control, .. }) = block {
        *cache_control = Some(json!({"type": "ephemeral"}));
    }
}

/// The usage of a call as this dialect reports it. Where a compaction ran, the top-level numbers leave it out: the
/// iterations are summed.
pub(crate) fn usage(reported: &Value) -> Usage {
    let iterations = reported["iterations"].as_array();
    let iterations = iterations.filter(|list| list.iter().all(Value::is_object));
    let sum = iterations.and_then(|list| list.iter().map(usage_of).reduce(|a, b| a + b));
    sum.unwrap_or_else(|| usage_of(reported))
}

/// `input_tokens` counts only the tokens after the last breakpoint. Those that the cache wrote or read come on top.
fn usage_of(counts: &Value) -> Usage {
    let read = count(&counts["cache_read_input_tokens"]);
    let written = count(&counts["cache_creation_input_tokens"]);
    let cached = read.unwrap_or_default() + written.unwrap_or_default();
    let input = count(&counts["input_tokens"]).map(|n| n + cached);
    Usage {
        input: input.filter(|n| n.0 > 0),
        cached_input: read,
        cache_write: written,
        cache_write_hour: count(&counts["cache_creation"]["ephemeral_1h_input_tokens"]),
        output: count(&counts["output_tokens"]),
        reasoning: None,
    }
}

/// The answer in a reply.
pub(crate) fn completion(operation: Operation, body: &[u8]) -> Result<Completion, ReadFault> {
    let reply: Value = parse(body)?;
    if reply["type"] == "error" || is_error(&reply["error"]) {
        return Err(ReadFault::Upstream(error_text(&reply["error"])));
    }
    let end = word(&reply["stop_reason"]);
    let end = end.as_deref();
    if ending(end) == Ending::Declined {
        let details = &reply["stop_details"];
        let why = details["explanation"].as_str();
        let why = why.or(details["category"].as_str()).map(str::to_owned);
        return Err(ReadFault::Refused(why));
    }
    let blocks = reply["content"].as_array();
    let blocks = blocks.ok_or_else(|| lacks("content", body))?;
    if let Some(odd) = blocks.iter().find(|block| !block.is_object()) {
        return Err(ReadFault::Malformed(format!("a content block: {odd}")));
    }
    if operation == Operation::Summarize {
        return compacted(blocks, body, end);
    }
    let spoken = blocks.iter().filter(|block| block["type"] == "text");
    let text: String = spoken.filter_map(|block| block["text"].as_str()).collect();
    Said {
        text: &text,
        calls: blocks
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| called(&block["name"], &block["input"]))
            .collect(),
        end,
    }
    .completion(operation, || {
        let items = raw_blocks(body)?.into_iter().map(RawValue::get);
        Ok(format!("[{}]", items.collect::<Vec<_>>().join(",")))
    })
}

/// The blocks of a reply, each byte for byte.
fn raw_blocks(body: &[u8]) -> Result<Vec<&RawValue>, ReadFault> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    parse::<Reply<'_>>(body).map(|reply| reply.content)
}

/// The readable summary, and the block itself for the requests to come. One that was cut off is a fault.
fn compacted(blocks: &[Value], body: &[u8], end: Option<&str>) -> Result<Completion, ReadFault> {
    match (end, ending(end)) {
        (Some("compaction"), _) => {}
        (_, Ending::Cut) => return Err(ReadFault::Truncated),
        (_, Ending::Declined) => return Err(ReadFault::Refused(None)),
        (reason, _) => {
            let reason = reason.unwrap_or("null");
            return Err(ReadFault::Malformed(format!(
                "no compaction took place: stop_reason `{reason}`"
            )));
        }
    }
    let mut both = blocks.iter().zip(raw_blocks(body)?);
    let compaction = both.find(|(block, _)| block["type"] == "compaction");
    let (block, raw) =
        compaction.ok_or_else(|| ReadFault::Malformed("it holds no compaction block".into()))?;
    let text = block["content"]
        .as_str()
        .filter(|text| !text.trim().is_empty());
    Ok(Completion {
        items: Some(format!("[{}]", raw.get())),
        ..Completion::text(text.ok_or(ReadFault::Empty)?, false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::read_billing;

    fn read(operation: Operation, body: &str) -> Result<Completion, ReadFault> {
        completion(operation, body.as_bytes())
    }

    #[test]
    fn the_text_is_found_by_type_and_the_prompt_is_all_three_counts() {
        let body = r#"{"type":"message","model":"m","stop_reason":"end_turn",
            "content":[{"type":"thinking","thinking":""},{"type":"text","text":"Oslo"}],
            "usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":4,
            "cache_creation":{"ephemeral_5m_input_tokens":50,"ephemeral_1h_input_tokens":150}}}"#;
        assert_eq!(read(Operation::Generate, body).unwrap().text, "Oslo");
        let usage = read_billing(Dialect::Anthropic, body.as_bytes()).usage;
        assert_eq!(usage.input, Some(Tokens(3210)));
        assert_eq!(usage.cached_input, Some(Tokens(3000)));
        assert_eq!(usage.cache_write_hour, Some(Tokens(150)));
        assert_eq!(usage.output, Some(Tokens(4)));
    }

    #[test]
    fn a_block_is_kept_byte_for_byte_and_its_iterations_are_its_cost() {
        let block = r#"{"type":"compaction", "content":"code 4711","signature":"E\u0075"}"#;
        let body = format!(
            r#"{{"type":"message","content":[{{"type":"thinking"}},{block}],"stop_reason":"compaction",
            "usage":{{"input_tokens":0,"output_tokens":0,"iterations":[{{"type":"compaction","input_tokens":144,"output_tokens":276}}]}}}}"#
        );
        let completion = read(Operation::Summarize, &body).unwrap();
        assert_eq!(completion.items, Some(format!("[{block}]")));
        assert_eq!(completion.text, "code 4711");
        let usage = read_billing(Dialect::Anthropic, body.as_bytes()).usage;
        assert_eq!(
            (usage.input, usage.output),
            (Some(Tokens(144)), Some(Tokens(276)))
        );
    }

    #[test]
    fn a_compaction_that_did_not_take_place_is_no_answer() {
        let with =
            |reason: &str| format!(r#"{{"type":"message","content":[],"stop_reason":"{reason}"}}"#);
        assert_eq!(
            read(Operation::Summarize, &with("max_tokens")),
            Err(ReadFault::Truncated)
        );
        assert!(matches!(
            read(Operation::Summarize, &with("end_turn")),
            Err(ReadFault::Malformed(_))
        ));
        assert_eq!(
            read(Operation::Generate, &with("refusal")),
            Err(ReadFault::Refused(None))
        );
        assert_eq!(
            read(Operation::Generate, &with("end_turn")),
            Err(ReadFault::Empty)
        );
    }
}
