//! Reading what the user's own program wrote (the command protocol, version 1).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::context::Context;
use super::fault::{CompressFault, Warning};
use super::truncate::pairs_hold;
use base::text::shortened;
use base::units::{Tokens, Usage};
use sessions::transcript::Message;

/// What a program returned, checked.
#[derive(Debug)]
pub(super) struct Returned {
    pub(super) context: Context,
    /// The object it is given as `previous` at the next point.
    pub(super) previous: String,
    /// The tokens it says it used.
    pub(super) usage: Option<Usage>,
    /// Keys that mean nothing here.
    pub(super) warnings: Vec<Warning>,
}

#[derive(Deserialize)]
struct Reported {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

/// Reads a program's standard output.
pub(super) fn read(stdout: &[u8]) -> Result<Returned, CompressFault> {
    let mut object = object_of(stdout)?;
    let usage = taken(&mut object, "usage").map(usage_of).transpose()?;
    let state = taken(&mut object, "state");
    if state.as_ref().is_some_and(|state| !state.is_object()) {
        return Err(contract("`state` is no object", "a JSON object, or no `state` at all"));
    }
    let (name, body) = match (taken(&mut object, "messages"), taken(&mut object, "summary")) {
        (Some(_), Some(_)) => return Err(contract("both `messages` and `summary` are there", "one of the two")),
        (None, None) => return Err(contract("neither `messages` nor `summary` is there", "one of the two")),
        (Some(messages), None) => ("messages", messages),
        (None, Some(summary)) => ("summary", summary),
    };
    let context = context_of(name, &body)?;
    let warnings = object.keys().map(|key| Warning::UnknownKey(key.clone())).collect();
    Ok(Returned { context, previous: previous_of(name, body, state), usage, warnings })
}

fn object_of(stdout: &[u8]) -> Result<Map<String, Value>, CompressFault> {
    if stdout.iter().all(u8::is_ascii_whitespace) {
        return Err(CompressFault::Empty);
    }
    let fault = |error: serde_json::Error| CompressFault::NotJson { error: error.to_string(), seen: head(stdout) };
    match serde_json::from_slice(stdout).map_err(fault)? {
        Value::Object(object) => Ok(object),
        _ => Err(contract("standard output is JSON, but no object", "{\"messages\":[…]} or {\"summary\":\"…\"}")),
    }
}

/// The value under `key`; null counts as absent.
fn taken(object: &mut Map<String, Value>, key: &str) -> Option<Value> {
    object.remove(key).filter(|value| !value.is_null())
}

fn context_of(name: &str, body: &Value) -> Result<Context, CompressFault> {
    if name == "summary" {
        let text = body.as_str().ok_or_else(|| contract("`summary` is no text", "a JSON string"))?;
        return if text.trim().is_empty() { Err(CompressFault::Empty) } else { Ok(Context::summary(text.trim())) };
    }
    let list = body.as_array().ok_or_else(|| contract("`messages` is no list", "a JSON array of messages"))?;
    let mut messages = Vec::with_capacity(list.len());
    for (index, one) in list.iter().enumerate() {
        let message = Message::deserialize(one)
            .map_err(|error| contract(format!("message {index} cannot be read: {error}"), "OpenAI's chat shape"))?;
        messages.push(message);
    }
    if !pairs_hold(&messages) {
        let expected = "every tool call directly followed by its results, and no result without its call";
        return Err(contract("a tool call is separated from its result", expected));
    }
    if messages.iter().all(|message| message.content.trim().is_empty() && message.tool_calls.is_empty()) {
        return Err(CompressFault::Empty);
    }
    Ok(Context::Readable { messages })
}

fn previous_of(name: &str, body: Value, state: Option<Value>) -> String {
    let mut previous = Map::new();
    previous.insert(name.to_owned(), body);
    if let Some(state) = state {
        previous.insert("state".to_owned(), state);
    }
    Value::Object(previous).to_string()
}

fn usage_of(value: Value) -> Result<Usage, CompressFault> {
    let reported: Reported = serde_json::from_value(value).map_err(|error| {
        contract(format!("`usage` cannot be read: {error}"), "{\"input_tokens\":N,\"output_tokens\":N}")
    })?;
    let (input, output) = (reported.input_tokens.map(Tokens), reported.output_tokens.map(Tokens));
    Ok(Usage { input, output, ..Usage::default() })
}

fn contract(found: impl Into<String>, expected: &'static str) -> CompressFault {
    CompressFault::Contract { found: found.into(), expected }
}

fn head(bytes: &[u8]) -> String {
    const SHOWN: usize = 200;
    shortened(String::from_utf8_lossy(bytes).trim(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(stdout: &str) -> String {
        read(stdout.as_bytes()).expect_err("a fault").to_string()
    }

    #[test]
    fn a_summary_with_state_and_usage_is_read() {
        let stdout = r#"{"summary":" done \n","state":{"n":1},"usage":{"input_tokens":7},"mood":"calm"}"#;
        let returned = read(stdout.as_bytes()).expect("sound");
        assert_eq!(returned.context, Context::summary("done"));
        assert_eq!(returned.previous, r#"{"state":{"n":1},"summary":" done \n"}"#);
        assert_eq!(returned.usage.and_then(|u| u.input), Some(Tokens(7)));
        assert_eq!(returned.usage.and_then(|u| u.output), None);
        assert_eq!(returned.warnings, [Warning::UnknownKey("mood".into())]);
    }

    #[test]
    fn every_breach_of_the_protocol_is_named() {
        assert!(message("Traceback (most recent call last)").contains("Traceback"));
        assert!(message("[1]").contains("no object"));
        assert!(message("{}").contains("neither `messages` nor `summary`"));
        assert!(message(r#"{"summary":"a","messages":[]}"#).contains("both"));
        assert!(message(r#"{"summary":3}"#).contains("no text"));
        assert!(message(r#"{"messages":[{"role":"robot","content":"x"}]}"#).contains("message 0"));
        assert!(message(r#"{"summary":"a","state":[1]}"#).contains("`state`"));
        assert!(message(r#"{"summary":"a","usage":{"input_tokens":-1}}"#).contains("`usage`"));
    }

    #[test]
    fn a_parted_pair_and_an_empty_output_fail() {
        let orphan = r#"{"messages":[{"role":"tool","tool_call_id":"c1","content":"x"}]}"#;
        assert!(message(orphan).contains("separated"));
        for empty in ["", " \n", r#"{"summary":"  "}"#, r#"{"messages":[]}"#] {
            assert_eq!(read(empty.as_bytes()).expect_err("empty"), CompressFault::Empty, "{empty:?}");
        }
    }
}
