//! Reads the output of the user's own program (the command protocol).

mod messages;
mod usage;

use serde_json::{Map, Value};

use super::CompressFault;
use super::context::Context;
use base::text::shortened;

pub use usage::ProgramUsage;

/// What a program returned, checked.
#[derive(Debug)]
pub(super) struct ReturnedContext {
    pub(super) context: Context,
    /// The object that it gets as `previous` at the next point.
    pub(super) previous: String,
    /// The usage that it reports.
    pub(super) usage: Option<ProgramUsage>,
    /// Its own warnings, and those about unknown keys.
    pub(super) warnings: Vec<String>,
    /// Whether it says that it left the messages as they are.
    pub(super) is_unchanged: bool,
}

/// Reads a program's standard output.
pub(super) fn read(stdout: &[u8]) -> Result<ReturnedContext, CompressFault> {
    let mut object = parse_object(stdout)?;
    if let Some(why) = take(&mut object, "degraded") {
        let why = why.as_str().map_or_else(|| why.to_string(), str::to_owned);
        return Err(CompressFault::new(format!(
            "the program says that its result is degraded: {why}"
        )));
    }
    let usage = take(&mut object, "usage").map(usage::read).transpose()?;
    let mut warnings = warnings_of(take(&mut object, "warnings"))?;
    let is_unchanged = is_unchanged(take(&mut object, "compressed"))?;
    let state = take(&mut object, "state");
    if state.as_ref().is_some_and(|state| !state.is_object()) {
        return Err(CompressFault::contract(
            "`state` is no object",
            "a JSON object, or no `state` at all",
        ));
    }
    let (name, body) = take_body(&mut object)?;
    let context = context_of(name, &body)?;
    let unknown = object
        .keys()
        .map(|key| format!("the program returned the unknown key `{key}`; it is ignored"));
    warnings.extend(unknown);
    let previous = previous_of([(name, Some(body)), ("state", state)]);
    Ok(ReturnedContext {
        context,
        previous,
        usage,
        warnings,
        is_unchanged,
    })
}

/// The usage that a program reports, also where the rest of its output is of no use: that was paid for, too.
pub fn reported_usage(stdout: &[u8]) -> Option<ProgramUsage> {
    let mut object = parse_object(stdout).ok()?;
    usage::read(take(&mut object, "usage")?).ok()
}

fn parse_object(stdout: &[u8]) -> Result<Map<String, Value>, CompressFault> {
    if stdout.iter().all(u8::is_ascii_whitespace) {
        return Err(CompressFault::empty());
    }
    let fault = |error: serde_json::Error| {
        let seen = head(stdout);
        CompressFault::new(format!(
            "standard output is not JSON: {error}; it begins: {seen}"
        ))
    };
    match serde_json::from_slice(stdout).map_err(fault)? {
        Value::Object(object) => Ok(object),
        _ => Err(CompressFault::contract(
            "standard output is JSON, but no object",
            "{\"messages\":[…]} or {\"summary\":\"…\"}",
        )),
    }
}

/// The value under `key`; null counts as absent.
fn take(object: &mut Map<String, Value>, key: &str) -> Option<Value> {
    object.remove(key).filter(|value| !value.is_null())
}

/// Whether the program says that it left the messages as they are.
fn is_unchanged(compressed: Option<Value>) -> Result<bool, CompressFault> {
    match compressed {
        None => Ok(false),
        Some(Value::Bool(compressed)) => Ok(!compressed),
        Some(_) => Err(CompressFault::contract(
            "`compressed` is no truth value",
            "true, false, or no `compressed` at all",
        )),
    }
}

/// Takes out the new context, `messages` or `summary`, with the name of its key.
fn take_body(object: &mut Map<String, Value>) -> Result<(&'static str, Value), CompressFault> {
    let found = match (take(object, "messages"), take(object, "summary")) {
        (Some(messages), None) => return Ok(("messages", messages)),
        (None, Some(summary)) => return Ok(("summary", summary)),
        (Some(_), Some(_)) => "both `messages` and `summary` are there".to_owned(),
        (None, None) if object.is_empty() => "neither `messages` nor `summary` is there".to_owned(),
        (None, None) => {
            let keys: Vec<&str> = object.keys().map(String::as_str).collect();
            format!(
                "neither `messages` nor `summary` is there, but `{}`",
                keys.join("`, `")
            )
        }
    };
    Err(CompressFault::contract(found, "one of the two"))
}

fn context_of(name: &str, body: &Value) -> Result<Context, CompressFault> {
    if name == "summary" {
        let text = body
            .as_str()
            .ok_or_else(|| CompressFault::contract("`summary` is no text", "a JSON string"))?;
        return if text.trim().is_empty() {
            Err(CompressFault::empty())
        } else {
            Ok(Context::summary(text.trim()))
        };
    }
    Ok(Context::Readable {
        messages: messages::read(body)?,
    })
}

/// The program's own warnings.
fn warnings_of(value: Option<Value>) -> Result<Vec<String>, CompressFault> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let texts: Option<Vec<String>> = value.as_array().and_then(|list| {
        list.iter()
            .map(|text| Some(format!("the program warns: {}", text.as_str()?)))
            .collect()
    });
    texts.ok_or_else(|| CompressFault::contract("`warnings` is no list of texts", "[\"…\"]"))
}

fn previous_of(parts: [(&str, Option<Value>); 2]) -> String {
    let present = parts
        .into_iter()
        .filter_map(|(name, part)| Some((name.to_owned(), part?)));
    Value::Object(present.collect()).to_string()
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
        let stdout =
            r#"{"summary":" done \n","state":{"n":1},"usage":{"input_tokens":7},"mood":"calm"}"#;
        let returned = read(stdout.as_bytes()).expect("sound");
        assert_eq!(returned.context, Context::summary("done"));
        assert_eq!(
            returned.previous,
            r#"{"state":{"n":1},"summary":" done \n"}"#
        );
        let usage = returned.usage.expect("a usage").tokens;
        assert_eq!(
            (usage.input, usage.output),
            (Some(base::units::Tokens(7)), None)
        );
        assert_eq!(
            returned.warnings,
            ["the program returned the unknown key `mood`; it is ignored"]
        );
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
        assert!(
            message(r#"{"summary":"a","usage":{"input_tokens":-1}}"#)
                .contains("`usage.input_tokens` is -1")
        );
    }

    #[test]
    fn a_degraded_result_fails_and_warnings_and_an_unchanged_history_are_passed_on() {
        assert_eq!(
            message(r#"{"summary":"a","degraded":"no model answered"}"#),
            "the program says that its result is degraded: no model answered"
        );
        let returned = read(br#"{"summary":"a","compressed":false,"warnings":["short of room"]}"#)
            .expect("sound");
        assert!(returned.is_unchanged);
        assert_eq!(returned.warnings, ["the program warns: short of room"]);
        assert!(message(r#"{"summary":"a","warnings":"x"}"#).contains("`warnings`"));
        assert!(message(r#"{"summary":"a","compressed":"no"}"#).contains("`compressed`"));
    }

    #[test]
    fn usage_is_read_where_the_rest_is_of_no_use() {
        let usage = reported_usage(br#"{"degraded":"no model answered","usage":{"cost":0.5}}"#)
            .expect("a usage");
        assert_eq!(usage.cost, Some(base::units::Usd(0.5)));
        assert!(
            reported_usage(b"Traceback").is_none()
                && reported_usage(br#"{"usage":{"cost":-1}}"#).is_none()
        );
    }

    #[test]
    fn a_separated_pair_and_an_empty_output_fail() {
        let orphan = r#"{"messages":[{"role":"tool","tool_call_id":"c1","content":"x"}]}"#;
        assert!(message(orphan).contains("separated"));
        for empty in ["", " \n", r#"{"summary":"  "}"#, r#"{"messages":[]}"#] {
            assert_eq!(
                read(empty.as_bytes()).expect_err("empty"),
                CompressFault::empty(),
                "{empty:?}"
            );
        }
    }
}
