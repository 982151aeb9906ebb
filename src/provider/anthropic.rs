//! Anthropic Messages, with structured output, compaction on demand and a breakpoint for the prompt cache.
//!
//! A compaction block goes back first, alone in an assistant message, byte for byte, with the beta header.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::api::{Call, Operation};
use super::conversation::{Conversation, Part, Style, conversation};
use super::estimate::estimate_text;
use super::spec::{Dialect, ProviderSpec};
use super::wire::{self, Auth, BuildFault, HttpRequest};
use crate::units::Tokens;

/// Sent where the user set no limit: the API demands one, and thinking counts towards it.
pub(super) const DEFAULT_MAX_TOKENS: Tokens = Tokens(8192);

/// Shared prefixes shorter than this are not cached by most models.
const MIN_CACHED_PREFIX: Tokens = Tokens(1024);

const COMPACTION_BETA: &str = "compact-2026-09-04";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: Tokens,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Said<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<Compaction<'a>>,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Value>,
    },
    Kept(&'a RawValue),
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
}

#[derive(Serialize)]
struct Compaction<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

/// Puts `call` into the dialect.
pub(super) fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    if call.operation == Operation::Compact {
        return Err(BuildFault::Unsupported { dialect: Dialect::Anthropic, operation: call.operation });
    }
    let conversation = conversation(call, Style::CallsAsText)?;
    let holds_items = conversation.parts.iter().any(|part| matches!(part, Part::Items(_)));
    // The newer version refuses a temperature; the older one still serves models that honour it.
    let version = if call.settings.temperature.is_some() { "2023-06-01" } else { "2026-10-21" };
    let mut headers = vec![("anthropic-version", version)];
    if call.operation == Operation::Summarize || holds_items {
        headers.push(("anthropic-beta", COMPACTION_BETA));
    }
    let root = spec.base_url.split('?').next().unwrap_or("").trim_end_matches('/');
    Ok(HttpRequest {
        path: if root.ends_with("/v1") { "/messages" } else { "/v1/messages" },
        auth: auth(wire::host(&spec.base_url)),
        headers,
        body: wire::body(&body(call, conversation))?,
    })
}

/// Bedrock takes a bearer key; the vendor and its proxies take `x-api-key`.
fn auth(host: &str) -> Auth {
    if wire::is_below(host, "api.aws") || wire::is_below(host, "amazonaws.com") { Auth::Bearer } else { Auth::XApiKey }
}

fn body<'a>(call: &'a Call, conversation: Conversation<'a>) -> Body<'a> {
    let settings = &call.settings;
    let summarize = call.operation == Operation::Summarize;
    let format = call.schema.as_deref().filter(|_| !summarize);
    let format = format.map(|schema| json!({"type": "json_schema", "schema": schema.schema}));
    let effort = settings.effort.as_deref();
    let (system, messages) = prompt(conversation, !summarize);
    Body {
        model: &call.model.0,
        max_tokens: settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        system,
        messages,
        temperature: settings.temperature,
        output_config: (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format }),
        compaction: summarize.then(|| Compaction {
            kind: "summarize",
            instructions: call.instructions.as_deref().filter(|text| !text.trim().is_empty()),
        }),
    }
}

/// System blocks and messages, with a cache breakpoint at the end of what other questions share: all that comes
/// before the last turn.
fn prompt(conversation: Conversation<'_>, cached: bool) -> (Vec<Block<'_>>, Vec<Said<'_>>) {
    let mut length = conversation.system.as_deref().map_or(Tokens(0), estimate_text);
    let mut system: Vec<Block<'_>> = conversation.system.map(|text| block(Cow::Owned(text))).into_iter().collect();
    let mut messages: Vec<Said<'_>> = Vec::new();
    if cached && conversation.last_turn == 0 && length >= MIN_CACHED_PREFIX {
        mark(system.last_mut());
    }
    for (index, part) in conversation.parts.into_iter().enumerate() {
        if let Part::Text(_, text) = &part {
            length += estimate_text(text);
        }
        push(&mut messages, part);
        if cached && index + 1 == conversation.last_turn && length >= MIN_CACHED_PREFIX {
            mark(messages.last_mut().and_then(|said| said.content.last_mut()));
        }
    }
    (system, messages)
}

fn push<'a>(messages: &mut Vec<Said<'a>>, part: Part<'a>) {
    let (role, blocks) = match part {
        Part::Text(speaker, text) => (speaker.name(), vec![block(text)]),
        Part::Items(items) => {
            // The block stands alone in its message, so the next text opens a new one.
            messages.push(Said { role: "assistant", content: items.into_iter().map(Block::Kept).collect() });
            return;
        }
        // Calls are rendered as text in this dialect: a foreign history brings no tool definitions.
        Part::Calls(text, _) => ("assistant", vec![block(text)]),
        Part::Result { text, .. } => ("user", vec![block(Cow::Borrowed(text))]),
    };
    if messages.is_empty() && role == "assistant" {
        messages.push(Said { role: "user", content: vec![block(Cow::Borrowed("[the conversation so far]"))] });
    }
    match messages.last_mut() {
        Some(last) if last.role == role && !matches!(last.content.last(), Some(Block::Kept(_))) => {
            last.content.extend(blocks);
        }
        _ => messages.push(Said { role, content: blocks }),
    }
}

fn block(text: Cow<'_, str>) -> Block<'_> {
    Block::Text { kind: "text", text, cache_control: None }
}

fn mark(block: Option<&mut Block<'_>>) {
    if let Some(Block::Text { cache_control, .. }) = block {
        *cache_control = Some(json!({"type": "ephemeral"}));
    }
}
