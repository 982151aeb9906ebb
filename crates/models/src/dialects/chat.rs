//! OpenAI Chat Completions, and the many servers that speak it.
//!
//! Servers other than OpenAI's get a minimal request; what this endpoint cannot do (items of a compaction) is a fault
//! and never left out.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::conversation::{ConversationPart, FlatConversation, HistoryStyle, conversation};
use super::json::{TokenDetails, count, error_text, lenient, openai_usage, parse};
use super::reasoning::without_reasoning;
use super::request::{self, Auth, BuildFault, HttpRequest};
use crate::call::{Call, Completion, Operation, OutputSchema, ReadFault};
use crate::spec::{Dialect, ProviderSpec, host, is_below};
use crate::tools::{Tool, ToolOffer};
use base::message::ToolCall;
use base::units::{Tokens, Usage};

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<ChatTurn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugins: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatTurn<'a> {
    Message(ChatMessage<'a>),
    Stored(&'a RawValue),
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [&'a ToolCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> ChatMessage<'a> {
    fn from_text(role: &'static str, text: &'a str) -> ChatMessage<'a> {
        ChatMessage {
            role,
            content: Some(text),
            tool_calls: &[],
            tool_call_id: None,
        }
    }

    fn from_result(call: &'a str, text: &'a str) -> ChatMessage<'a> {
        ChatMessage {
            tool_call_id: Some(call),
            ..ChatMessage::from_text("tool", text)
        }
    }
}

/// Puts `call` into the dialect.
pub(crate) fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    if !matches!(call.operation, Operation::Generate | Operation::UseTools) {
        return Err(BuildFault::Unsupported {
            dialect: Dialect::OpenaiChat,
            operation: call.operation,
        });
    }
    let host = host(&spec.base_url);
    let azure = is_below(&host, "azure.com");
    let vendor = azure || is_below(&host, "openai.com");
    let router = is_below(&host, "openrouter.ai");
    let conversation = conversation(call, HistoryStyle::NativeCalls)?;
    let limit = call.settings.max_output_tokens;
    let body = ChatRequest {
        model: &call.model.0,
        messages: messages(&conversation)?,
        max_tokens: limit.filter(|_| !vendor),
        max_completion_tokens: limit.filter(|_| vendor),
        temperature: call.settings.temperature,
        reasoning_effort: call.settings.effort.as_deref(),
        response_format: call.schema.as_deref().map(response_format),
        tools: call.tools.as_ref().map(tools),
        tool_choice: call
            .tools
            .as_ref()
            .filter(|offer| !offer.is_open)
            .map(|_| "none"),
        plugins: router.then(|| json!([{"id": "context-compression", "enabled": false}])),
        provider: router.then(|| json!({"require_parameters": true})),
        service_tier: request::service_tier(call),
        prompt_cache_key: call.prompt_cache_key().filter(|_| vendor),
    };
    Ok(HttpRequest {
        path: "/chat/completions",
        auth: if azure { Auth::ApiKey } else { Auth::Bearer },
        headers: Vec::new(),
        body: request::write_body(&body)?,
    })
}

fn response_format(schema: &OutputSchema) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": schema.name, "strict": true, "schema": schema.schema}})
}

fn tools(offer: &ToolOffer) -> Value {
    let declared = offer.tools.iter().map(
        |Tool {
             name,
             description,
             parameters,
         }| {
            let function =
                json!({"name": name, "description": description, "parameters": parameters});
            json!({"type": "function", "function": function})
        },
    );
    declared.collect()
}

fn messages<'a>(conversation: &'a FlatConversation<'a>) -> Result<Vec<ChatTurn<'a>>, BuildFault> {
    let system = conversation
        .system
        .iter()
        .map(|text| ChatTurn::Message(ChatMessage::from_text("system", text)));
    let mut messages: Vec<ChatTurn<'a>> = system.collect();
    for part in &conversation.parts {
        messages.push(ChatTurn::Message(match part {
            ConversationPart::Text(speaker, text) => ChatMessage::from_text(speaker.name(), text),
            ConversationPart::Calls(text, calls) => ChatMessage {
                content: Some(text.as_ref()).filter(|text| !text.is_empty()),
                tool_calls: calls,
                ..ChatMessage::from_text("assistant", "")
            },
            ConversationPart::Result { call, text } => ChatMessage::from_result(call, text),
            ConversationPart::Items(_) => {
                return Err(BuildFault::ForeignItems(Dialect::OpenaiChat));
            }
            ConversationPart::Reply(items) => {
                messages.extend(items.iter().copied().map(ChatTurn::Stored));
                continue;
            }
            ConversationPart::Results(results) => {
                let results = results
                    .iter()
                    .map(|result| ChatMessage::from_result(&result.id, &result.text));
                messages.extend(results.map(ChatTurn::Message));
                continue;
            }
        }));
    }
    Ok(messages)
}

/// A reply of this dialect, not yet judged to be an answer.
#[derive(Deserialize)]
pub(crate) struct ChatReply {
    #[serde(default)]
    choices: Option<Vec<ChatChoice>>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    system_fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct ChatChoice {
    #[serde(default)]
    message: Option<ChatReplyMessage>,
    #[serde(default, deserialize_with = "lenient")]
    finish_reason: Option<String>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
struct ChatReplyMessage {
    #[serde(default)]
    content: Option<ChatContent>,
    #[serde(default, deserialize_with = "lenient")]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    tool_calls: Option<Vec<ToolCall>>,
}

/// The fields of a message that go back with its calls. Servers have different names for reasoning. Some refuse other fields
/// of a reply in a request.
const SENT_BACK: [&str; 6] = [
    "role",
    "content",
    "tool_calls",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
];

#[derive(Deserialize)]
#[serde(try_from = "Value")]
enum ChatContent {
    Text(String),
    Parts(Vec<Value>),
}

impl TryFrom<Value> for ChatContent {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<ChatContent, &'static str> {
        match value {
            Value::String(text) => Ok(ChatContent::Text(text)),
            Value::Array(parts) => Ok(ChatContent::Parts(parts)),
            _ => Err("`content` is neither text nor a list of parts"),
        }
    }
}

/// The usage of a call as this dialect reports it.
#[derive(Clone, Copy, Deserialize)]
pub(crate) struct ChatUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<TokenDetails>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<TokenDetails>,
}

pub(crate) fn open(body: &[u8]) -> Result<ChatReply, ReadFault> {
    parse(body)
}

impl From<ChatUsage> for Usage {
    fn from(usage: ChatUsage) -> Usage {
        openai_usage(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.prompt_tokens_details,
            usage.completion_tokens_details,
        )
    }
}

impl ChatReply {
    /// Whether Ollama answered, which cuts a prompt that is too long without saying so. If another server counts few tokens,
    /// its count is more likely wrong than its prompt cut.
    pub(crate) fn is_from_ollama(&self) -> bool {
        self.system_fingerprint.as_deref() == Some("fp_ollama")
    }

    pub(crate) fn completion(
        self,
        operation: Operation,
        body: &[u8],
    ) -> Result<Completion, ReadFault> {
        if let Some(error) = self.error.as_ref().filter(|e| !e.is_null()) {
            return Err(ReadFault::Upstream(error_text(error)));
        }
        let choice = self.choices.into_iter().flatten().next();
        let choice = choice.ok_or_else(|| ReadFault::Malformed("it has no `choices`".into()))?;
        let calls = choice.calls(operation)?;
        if calls.is_empty() {
            let (text, truncated) = choice.answer()?;
            return Ok(Completion {
                text,
                items: None,
                calls,
                truncated,
            });
        }
        let text = choice.answer().map(|(text, _)| text).unwrap_or_default();
        Ok(Completion {
            text,
            items: Some(sent_back(body)?),
            calls,
            truncated: false,
        })
    }
}

/// The message of a reply as the next request sends it back, alone in a JSON array.
fn sent_back(body: &[u8]) -> Result<String, ReadFault> {
    let mut reply: Value = parse(body)?;
    let message = reply
        .pointer_mut("/choices/0/message")
        .and_then(Value::as_object_mut);
    let message =
        message.ok_or_else(|| ReadFault::Malformed("its choice has no `message`".into()))?;
    message.retain(|name, value| {
        SENT_BACK.contains(&name.as_str()) && (name == "content" || !value.is_null())
    });
    message.entry("role").or_insert_with(|| "assistant".into());
    Ok(json!([message]).to_string())
}

impl ChatChoice {
    /// The tools that are called, where they may be; none where a call was cut off.
    fn calls(&self, operation: Operation) -> Result<Vec<ToolCall>, ReadFault> {
        let calls = self
            .message
            .as_ref()
            .and_then(|message| message.tool_calls.as_deref())
            .unwrap_or_default();
        match (operation, calls.first()) {
            (_, None) => Ok(Vec::new()),
            (Operation::UseTools, _) if self.finish_reason.as_deref() == Some("length") => {
                Ok(Vec::new())
            }
            (Operation::UseTools, _) => Ok(calls.to_vec()),
            (_, Some(call)) => Err(ReadFault::CalledTool(call.function.name.clone())),
        }
    }

    /// The text, and whether it was cut off.
    fn answer(self) -> Result<(String, bool), ReadFault> {
        if let Some(error) = self.error.as_ref().filter(|e| !e.is_null()) {
            return Err(ReadFault::Upstream(error_text(error)));
        }
        let message = self
            .message
            .ok_or_else(|| ReadFault::Malformed("its choice has no `message`".into()))?;
        if let Some(refusal) = message.refusal.filter(|text| !text.is_empty()) {
            return Err(ReadFault::Refused(Some(refusal)));
        }
        let content = message.content.map(ChatContent::text).unwrap_or_default();
        let text = without_reasoning(&content).to_owned();
        match self.finish_reason.as_deref() {
            Some("error") => Err(ReadFault::Upstream("finish_reason `error`".into())),
            Some("content_filter") => Err(ReadFault::Refused(Some("content filter".into()))),
            Some("length") if text.is_empty() => Err(ReadFault::Truncated),
            _ if text.is_empty() => Err(ReadFault::Empty),
            reason => Ok((text, reason == Some("length"))),
        }
    }
}

impl ChatContent {
    fn text(self) -> String {
        match self {
            ChatContent::Text(text) => text,
            ChatContent::Parts(parts) => parts
                .iter()
                .filter(|p| p["type"] == "text")
                .filter_map(|p| p["text"].as_str())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Billing;
    use crate::dialects::read_billing;

    fn read(body: &str) -> Result<Completion, ReadFault> {
        open(body.as_bytes())?.completion(Operation::Generate, body.as_bytes())
    }

    #[test]
    fn odd_fields_do_not_spoil_a_good_answer() {
        let body = r#"{"model":null,"usage":"n/a","choices":[{"finish_reason":null,
            "message":{"content":[{"type":"text","text":"a"},{"type":"x"}],"reasoning_content":"secret"}}]}"#;
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
    fn a_filtered_answer_is_a_refusal() {
        let body =
            r#"{"choices":[{"finish_reason":"content_filter","message":{"content":"par"}}]}"#;
        assert_eq!(
            read(body),
            Err(ReadFault::Refused(Some("content filter".into())))
        );
    }
}
