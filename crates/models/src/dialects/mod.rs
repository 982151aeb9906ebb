//! The only place that chooses among dialects: it turns a call into a request, a body into a completion, and a reply that
//! calls tools into what later steps of the same conversation send back. All of it is pure.

mod anthropic;
mod chat;
mod conversation;
mod endings;
mod json;
mod reasoning;
mod responses;
mod stream;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::call::call_id;
use crate::call::{Billing, Call, Completion, Operation, ReadFault};
use crate::estimate::missing_prompt;
use crate::spec::{Dialect, ProviderSpec};
use base::text::without_half_surrogates;
use base::units::Tokens;
use json::{lenient, openai_usage, parse, raw};

pub(crate) use anthropic::{DEFAULT_MAX_TOKENS, NEWER_VERSION, OLDER_VERSION, messages_path};
pub use conversation::{BuildFault, HttpRequest};
pub(crate) use json::{Fields, beginning, error_text, is_filled};

/// Puts `call` into the dialect of `spec`.
pub fn request(spec: &ProviderSpec, call: &Call) -> Result<HttpRequest, BuildFault> {
    match spec.dialect {
        Dialect::OpenaiChat => chat::request(spec, call),
        Dialect::OpenaiResponses => responses::request(spec, call),
        Dialect::Anthropic => anthropic::request(spec, call),
        dialect @ Dialect::Lexical => Err(BuildFault::unsupported(dialect, call.operation)),
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
    let body = &*match dialect {
        Dialect::Lexical => without_halves(Cow::Borrowed(body)),
        _ => readable(body),
    };
    match dialect {
        Dialect::OpenaiChat => {
            let reply: Value = parse(body)?;
            // Ollama cuts a prompt that is too long without saying so. If another server counts few tokens, its count is
            // more likely wrong than its prompt cut.
            if reply["system_fingerprint"] == "fp_ollama"
                && let Some((reported, expected)) =
                    missing_prompt(&read_billing(dialect, body).usage, expected)
            {
                return Err(ReadFault::PromptCut {
                    reported: reported.0,
                    expected: expected.0,
                });
            }
            chat::completion(&reply, operation, body)
        }
        Dialect::OpenaiResponses => responses::completion(operation, body),
        Dialect::Anthropic => anthropic::completion(operation, body),
        // The built-in rules write plain text.
        Dialect::Lexical => {
            let text =
                std::str::from_utf8(body).map_err(|e| ReadFault::Malformed(e.to_string()))?;
            Ok(Completion::text(text, false))
        }
    }
}

/// The body as one reply with whole characters: some servers stream unasked, and a model that stops within an emoji leaves
/// half of it. Either reply is paid.
pub(crate) fn readable(body: &[u8]) -> Cow<'_, [u8]> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let whole = without_halves(Cow::Borrowed(body));
    stream::from_stream(&whole).map_or(whole, Cow::Owned)
}

fn without_halves(whole: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match std::str::from_utf8(&whole).map(without_half_surrogates) {
        Ok(Cow::Owned(mended)) => Cow::Owned(mended.into_bytes()),
        _ => whole,
    }
}

/// Reads what a reply is billed by, whether or not it is an answer. Every dialect has model and usage in the same place.
pub fn read_billing(dialect: Dialect, body: &[u8]) -> Billing {
    #[derive(Deserialize)]
    struct BilledReply {
        #[serde(default, deserialize_with = "lenient")]
        model: Option<String>,
        #[serde(default)]
        usage: Value,
    }
    let reply = serde_json::from_slice(&readable(body));
    match (dialect, reply) {
        (Dialect::Lexical, _) | (_, Err(_)) => Billing::default(),
        (_, Ok(BilledReply { model, usage })) => Billing {
            model,
            usage: match dialect {
                Dialect::Anthropic => anthropic::usage(&usage),
                _ => openai_usage(&usage),
            },
        },
    }
}

/// Numbers the calls in the items of a reply from `first`: vendors give random ids, and requests must not differ in those
/// alone. Items without calls stay as they are, byte for byte.
///
/// # Errors
/// The items are no JSON array.
pub fn renumber_calls(dialect: Dialect, items: &str, first: usize) -> Result<String, ReadFault> {
    let malformed = |error: serde_json::Error| ReadFault::Malformed(error.to_string());
    let items: Vec<&serde_json::value::RawValue> =
        serde_json::from_str(items).map_err(malformed)?;
    let mut number = first;
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        let mut fields: Fields = serde_json::from_str(item.get()).map_err(malformed)?;
        let before = number;
        let kind = fields.get("type").map_or("", |kind| kind.get());
        match (dialect, kind) {
            (Dialect::OpenaiResponses, "\"function_call\"") => {
                set_id(&mut fields, "call_id", &mut number)?
            }
            (Dialect::Anthropic, "\"tool_use\"") => set_id(&mut fields, "id", &mut number)?,
            (Dialect::OpenaiChat, _) => {
                let calls = fields
                    .get("tool_calls")
                    .map(|calls| serde_json::from_str::<Vec<Fields>>(calls.get()));
                let mut calls = calls.transpose().map_err(malformed)?.unwrap_or_default();
                calls
                    .iter_mut()
                    .try_for_each(|call| set_id(call, "id", &mut number))?;
                if !calls.is_empty() {
                    fields.insert("tool_calls".to_owned(), raw(&calls)?);
                }
            }
            _ => {}
        }
        texts.push(if number == before {
            item.get().to_owned()
        } else {
            raw(&fields)?.get().to_owned()
        });
    }
    Ok(format!("[{}]", texts.join(",")))
}

/// Gives a call the next number.
fn set_id(call: &mut Fields, key: &str, number: &mut usize) -> Result<(), ReadFault> {
    call.insert(key.to_owned(), raw(&call_id(*number))?);
    *number += 1;
    Ok(())
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
