//! The only place that chooses among dialects: it turns a call into a request, a body into a completion, and a reply that
//! calls tools into what later steps of the same conversation send back. All of it is pure.

mod anthropic;
mod chat;
mod conversation;
mod json;
mod reasoning;
mod request;
mod responses;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::{Billing, Call, Completion, Operation, ReadFault};
use crate::spec::{Dialect, ProviderSpec, host, is_below};
use crate::tools::call_id;
use base::text::without_half_surrogates;
use base::units::{Tokens, Usage};
use json::lenient;

pub(crate) use anthropic::{DEFAULT_MAX_TOKENS, messages_path};
pub(crate) use json::{beginning, error_text};
pub use request::{Auth, BuildFault, HttpRequest};

/// The header in which the key travels to an endpoint.
pub(crate) fn auth(dialect: Dialect, base_url: &str) -> Auth {
    match dialect {
        Dialect::Anthropic => anthropic::auth(&host(base_url)),
        _ if is_below(&host(base_url), "azure.com") => Auth::ApiKey,
        _ => Auth::Bearer,
    }
}

/// Puts `call` into the dialect of `spec`.
pub fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    match spec.dialect {
        Dialect::OpenaiChat => chat::request(spec, call),
        Dialect::OpenaiResponses => responses::request(spec, call),
        Dialect::Anthropic => anthropic::request(spec, call),
        dialect @ Dialect::Lexical => Err(BuildFault::Unsupported {
            dialect,
            operation: call.operation,
        }),
    }
}

/// Reads the body of a successful reply, or what the built-in rules wrote. A stored reply is read again at every use.
/// `expected` is the first value of [`estimate`](super::estimate()) for the call that was sent; with it a prompt that Ollama
/// cut is noticed.
pub fn read(
    dialect: Dialect,
    operation: Operation,
    body: &[u8],
    expected: Option<Tokens>,
) -> Result<Completion, ReadFault> {
    let body = &*readable(body);
    match dialect {
        Dialect::OpenaiChat => {
            let reply = chat::open(body)?;
            if reply.is_from_ollama()
                && let Some((reported, expected)) =
                    missing_prompt(&read_billing(dialect, body).usage, expected)
            {
                return Err(ReadFault::PromptCut {
                    reported: reported.0,
                    expected: expected.0,
                });
            }
            reply.completion(operation, body)
        }
        Dialect::OpenaiResponses => responses::open(body)?.completion(operation),
        Dialect::Anthropic => anthropic::open(body)?.completion(operation),
        // The built-in rules write plain text.
        Dialect::Lexical => {
            let text =
                std::str::from_utf8(body).map_err(|e| ReadFault::Malformed(e.to_string()))?;
            Ok(Completion {
                text: text.to_owned(),
                items: None,
                calls: Vec::new(),
                truncated: false,
            })
        }
    }
}

/// The body with whole characters: a model that stops within an emoji leaves half of it, and its reply is paid.
fn readable(body: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(body).map(without_half_surrogates) {
        Ok(Cow::Owned(whole)) => Cow::Owned(whole.into_bytes()),
        _ => Cow::Borrowed(body),
    }
}

/// Reads what a reply is billed by, whether or not it is an answer.
pub fn read_billing(dialect: Dialect, body: &[u8]) -> Billing {
    match dialect {
        Dialect::OpenaiChat => billing::<chat::ChatUsage>(body),
        Dialect::OpenaiResponses => billing::<responses::ResponsesUsage>(body),
        Dialect::Anthropic => billing::<anthropic::MessagesUsage>(body),
        Dialect::Lexical => Billing::default(),
    }
}

/// Reads the billing of a reply. Every dialect has model, usage and tier in the same place.
fn billing<U: DeserializeOwned + Into<Usage>>(body: &[u8]) -> Billing {
    #[derive(Deserialize)]
    #[serde(bound = "U: DeserializeOwned")]
    struct BilledReply<U> {
        #[serde(default, deserialize_with = "lenient")]
        model: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        usage: Option<U>,
        #[serde(default, deserialize_with = "lenient")]
        service_tier: Option<String>,
    }
    let reply = serde_json::from_slice::<BilledReply<U>>(&readable(body)).ok();
    reply.map_or_else(
        Billing::default,
        |BilledReply {
             model,
             usage,
             service_tier,
         }| Billing {
            model,
            service_tier,
            usage: usage.map(U::into).unwrap_or_default(),
        },
    )
}

/// Prompts under this size vary too much to distinguish truncation from differences of tokenizers.
const MIN_JUDGED_PROMPT: u64 = 500;

/// The reported and the expected size of a prompt, if the provider reports fewer tokens than any tokenizer finds.
pub(crate) fn missing_prompt(usage: &Usage, expected: Option<Tokens>) -> Option<(Tokens, Tokens)> {
    let (reported, expected) = (usage.input?, expected?);
    let is_missing = expected.0 > MIN_JUDGED_PROMPT
        && reported.0.saturating_mul(10) < expected.0.saturating_mul(7);
    is_missing.then_some((reported, expected))
}

/// Numbers the calls in the items of a reply from `first`: vendors give random ids, and requests must not differ in those
/// alone. Items without calls stay as they are, byte for byte.
///
/// # Errors
/// The items are no JSON array.
pub fn renumber_calls(dialect: Dialect, items: &str, first: usize) -> Result<String, ReadFault> {
    let items: Vec<&RawValue> =
        serde_json::from_str(items).map_err(|error| ReadFault::Malformed(error.to_string()))?;
    let mut number = first;
    let mut texts = Vec::with_capacity(items.len());
    for raw in items {
        let item = serde_json::from_str::<Value>(raw.get());
        let mut item = item.map_err(|error| ReadFault::Malformed(error.to_string()))?;
        let before = number;
        match dialect {
            Dialect::OpenaiResponses if item["type"] == "function_call" => {
                set_call_id(item.get_mut("call_id"), &mut number)
            }
            Dialect::Anthropic if item["type"] == "tool_use" => {
                set_call_id(item.get_mut("id"), &mut number)
            }
            Dialect::OpenaiChat => {
                let calls = item.get_mut("tool_calls").and_then(Value::as_array_mut);
                calls
                    .into_iter()
                    .flatten()
                    .for_each(|call| set_call_id(call.get_mut("id"), &mut number));
            }
            Dialect::OpenaiResponses | Dialect::Anthropic | Dialect::Lexical => {}
        }
        texts.push(if number == before {
            raw.get().to_owned()
        } else {
            item.to_string()
        });
    }
    Ok(format!("[{}]", texts.join(",")))
}

/// Gives a call the next number.
fn set_call_id(id: Option<&mut Value>, number: &mut usize) {
    if let Some(id) = id {
        *id = Value::from(call_id(*number));
        *number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_numbered_and_reasoning_stays_as_it_was() {
        let reasoning = r#"{"type":"reasoning", "id":"rs_1","encrypted_content":"g\u00e9"}"#;
        let items = format!(
            r#"[{reasoning},{{"type":"function_call","call_id":"x9","name":"search","arguments":"{{}}"}}]"#
        );
        let renumbered = renumber_calls(Dialect::OpenaiResponses, &items, 3).expect("an array");
        assert!(
            renumbered.starts_with(&format!("[{reasoning},"))
                && renumbered.contains(r#""call_id":"call_3""#)
        );
        let blocks = r#"[{"type":"thinking","signature":"s"},{"type":"tool_use","id":"toolu_1"},{"type":"tool_use","id":"b"}]"#;
        let renumbered = renumber_calls(Dialect::Anthropic, blocks, 1).expect("an array");
        assert!(renumbered.contains(r#""id":"call_1""#) && renumbered.contains(r#""id":"call_2""#));
        let message = r#"[{"role":"assistant","tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"t"}}}]}]"#;
        let renumbered = renumber_calls(Dialect::OpenaiChat, message, 1).expect("an array");
        assert!(
            renumbered.contains(r#""id":"call_1""#) && renumbered.contains("thought_signature")
        );
        assert!(renumber_calls(Dialect::OpenaiChat, "{", 1).is_err());
    }
}
