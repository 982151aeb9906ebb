//! Lenient reading of bodies for all dialects: counts that may be missing or odd, errors in any shape.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::ReadFault;
use base::message::Function;
use base::text::one_line;
use base::units::{Tokens, Usage};
use base::words::WordList;

/// Reads a body as `T`. Any other body is malformed; the fault quotes its beginning.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ReadFault> {
    serde_json::from_slice(body).map_err(|e| {
        if body.iter().all(u8::is_ascii_whitespace) {
            return ReadFault::Malformed("the body is empty".into());
        }
        ReadFault::Malformed(format!("{e}; it begins with `{}`", beginning(body, 80)))
    })
}

/// The first `limit` bytes of a body as one line of text.
pub(crate) fn beginning(body: &[u8], limit: usize) -> String {
    let part = body.get(..limit).unwrap_or(body);
    let text = String::from_utf8_lossy(part);
    let line = one_line(&text);
    if body.len() > limit {
        format!("{line}…")
    } else {
        line
    }
}

/// A count that may be missing, null, a float or nonsense: anything but a whole number is unknown.
pub(crate) fn count(value: &Value) -> Option<Tokens> {
    let float = value
        .as_f64()
        .filter(|f| *f >= 0.0 && f.fract() == 0.0)
        .map(|f| f as u64);
    value.as_u64().or(float).map(Tokens)
}

/// Reads a field that counts as absent unless it has the shape of `T`.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(T::deserialize(value).ok())
}

/// Usage as either of OpenAI's APIs reports it. Servers that count nothing report 0: no request has an empty prompt.
pub(crate) fn openai_usage(reported: &Value) -> Usage {
    let either = |chat: &str, responses: &str| match &reported[chat] {
        Value::Null => &reported[responses],
        value => value,
    };
    let prompt = either("prompt_tokens_details", "input_tokens_details");
    let reply = either("completion_tokens_details", "output_tokens_details");
    let input = count(either("prompt_tokens", "input_tokens")).filter(|tokens| tokens.0 > 0);
    let output = count(either("completion_tokens", "output_tokens")).unwrap_or_default();
    let cached = |name: &&str| count(&prompt[*name]).or_else(|| count(&reported[*name]));
    let cached_input = ["cached_tokens", "prompt_cache_hit_tokens"]
        .iter()
        .find_map(cached);
    let cache_write = count(&prompt["cache_write_tokens"]);
    let reasoning = count(&reply["reasoning_tokens"]);
    // xAI counts reasoning beside the reply, and Gemini in the total alone, which may hold tokens of a cache, too.
    let counted = input.unwrap_or_default() + output;
    let total = count(&reported["total_tokens"]).unwrap_or_default();
    let beside = Tokens(total.0.saturating_sub(counted.0));
    let is_uncached = input.is_some() && cached_input.max(cache_write) <= Some(Tokens(0));
    let is_output = is_uncached || reasoning == Some(beside);
    Usage {
        input,
        cached_input,
        cache_write,
        cache_write_hour: None,
        output: Some(if is_output { output + beside } else { output })
            .filter(|tokens| tokens.0 > 0),
        reasoning,
    }
}

/// The word for the end of a reply, or an id. What is neither a text nor null is shown as JSON: it is no known word.
pub(crate) fn word(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(word) => Some(word.clone()),
        other => Some(other.to_string()),
    }
}

/// The fields of an object, each byte for byte: numbers and the order of what is inside survive.
pub(crate) type Fields = BTreeMap<String, Box<RawValue>>;

/// A value as JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, ReadFault> {
    serde_json::value::to_raw_value(value).map_err(|error| ReadFault::Malformed(error.to_string()))
}

/// What a call calls. Some servers send the arguments as an object and not as text.
pub(crate) fn called(name: &Value, arguments: &Value) -> Function {
    Function {
        name: name.as_str().unwrap_or_default().to_owned(),
        arguments: word(arguments).unwrap_or_default(),
    }
}

/// The names under which servers put a message into an error, or an error into a body.
const MESSAGES: WordList = WordList(
    "error message Message msg detail errors base_resp status_msg error_msg error_message \
    errmsg err_msg error_description description reason",
);

/// The names under which an error says which fields of the request it is about.
const PLACES: WordList =
    WordList("param loc field fields parameter property invalid-params invalid_params");

/// The message of an error value of any shape: an object, a string, an object in an array, `detail`; with the field that
/// it is about, if it says so.
pub(crate) fn error_text(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(error_text).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => {
            let named = MESSAGES.iter().filter_map(|name| fields.get(name));
            let named = named.filter(|value| !value.is_null());
            let is_word = |value: &&Value| value.as_str().is_some_and(|word| !word.is_empty());
            let message = named
                .clone()
                .find(is_message)
                .or(named.clone().find(is_word));
            let text = message
                .or(named.clone().next())
                .map_or_else(|| error.to_string(), error_text);
            // OpenRouter's message only says that the provider behind it sent an error, which stands here.
            let text = match &fields.get("metadata").map(|more| &more["raw"]) {
                Some(Value::String(raw)) if !text.contains(raw) => format!("{text}: {raw}"),
                _ => text,
            };
            let place = PLACES.iter().find_map(|name| fields.get(name));
            let place = place.map(place_text).unwrap_or_default();
            if matches!(&*place, "" | "None") || text.contains(&place) {
                text
            } else {
                format!("{text} ({place})")
            }
        }
        other => other.to_string(),
    }
}

/// The field that an error is about: a name, a path of names, or an object of complaints by field.
fn place_text(place: &Value) -> String {
    match place {
        Value::String(name) => name.clone(),
        Value::Array(path) if path.iter().all(|step| !step.is_object()) => {
            let names = path.iter().filter_map(Value::as_str);
            let inner: Vec<&str> = names.filter(|name| *name != "body").collect();
            inner.join(".")
        }
        other if is_filled(other) => other.to_string(),
        _ => String::new(),
    }
}

/// Whether a value is a message, or holds one. A word alone is a code where a message stands beside it, and a flag or an empty
/// list says nothing.
fn is_message(value: &&Value) -> bool {
    match value {
        Value::String(text) => text.contains(char::is_whitespace) || !text.is_ascii(),
        other => is_filled(other),
    }
}

/// Whether the field for an error holds one. Some servers always send the field, with an empty value beside a good answer.
pub(crate) fn is_error(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(is_error),
        Value::Object(fields) => fields.values().any(is_error),
        word => !["null", "false", "0", "\"\""].contains(&&*word.to_string()),
    }
}

/// Whether a value is a list or an object with something in it.
pub(crate) fn is_filled(value: &Value) -> bool {
    match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// The fault of a body without `part`: the error that it holds instead, if it has the form of one.
pub(crate) fn lacks(part: &str, body: &[u8]) -> ReadFault {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    if MESSAGES
        .iter()
        .any(|name| value.get(name).is_some_and(|value| !value.is_null()))
    {
        ReadFault::Upstream(error_text(&value))
    } else {
        ReadFault::Malformed(format!("it has no `{part}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_read_in_every_shape() {
        for (error, text) in [
            (json!("model 'x' not found"), "model 'x' not found"),
            (json!({"message": "no", "code": 400}), "no"),
            (json!([{"error": {"message": "key"}}]), "key"),
            (
                json!({"detail": [{"loc": ["body"], "msg": "field required"}]}),
                "field required",
            ),
            (json!({"code": 5}), "{\"code\":5}"),
            (
                json!({"Message": "Bearer Token has expired"}),
                "Bearer Token has expired",
            ),
            (json!({"error": true, "message": "no key"}), "no key"),
            (json!({"error": 1, "message": "forbidden"}), "forbidden"),
            (json!({"error": {}, "detail": "no key"}), "no key"),
            (json!({"error": "", "message": "denied"}), "denied"),
            (
                json!({"error": "Bad\nrequest", "reason": "a b"}),
                "Bad\nrequest",
            ),
            (
                json!({"error": "余额不足", "detail": "see the page"}),
                "余额不足",
            ),
        ] {
            assert_eq!(error_text(&error), text);
        }
    }

    #[test]
    fn an_empty_error_is_none() {
        for empty in [
            json!(null),
            json!({}),
            json!(""),
            json!(false),
            json!([]),
            json!({"code": 0, "message": ""}),
            json!({"code": null, "message": null}),
        ] {
            assert!(!is_error(&empty), "{empty}");
        }
        for error in [
            json!("lost"),
            json!(true),
            json!({"code": 429}),
            json!({"type": "server_error"}),
            json!([{"message": "lost"}]),
        ] {
            assert!(is_error(&error), "{error}");
        }
    }

    #[test]
    fn odd_counts_are_unknown() {
        assert_eq!(count(&json!(7)), Some(Tokens(7)));
        assert_eq!(count(&json!(7.0)), Some(Tokens(7)));
        for odd in [json!(null), json!(-1), json!("7"), json!([])] {
            assert_eq!(count(&odd), None, "{odd}");
        }
    }

    #[test]
    fn reasoning_and_cached_tokens_count_wherever_they_stand() {
        let (of_500, cached) = (
            |output: u64| json!({"prompt_tokens": 500, "completion_tokens": output}),
            Some(Tokens(400)),
        );
        for (counts, more, output, cached_input) in [
            (
                20,
                json!({"total_tokens": 1520, "completion_tokens_details": {"reasoning_tokens": 1000}}),
                1020,
                None,
            ),
            (
                0,
                json!({"total_tokens": 560, "completion_tokens_details": {"reasoning_tokens": 60}}),
                60,
                None,
            ),
            (20, json!({"total_tokens": 1520}), 1020, None),
            (
                1020,
                json!({"total_tokens": 1520, "completion_tokens_details": {"reasoning_tokens": 1000}}),
                1020,
                None,
            ),
            (
                20,
                json!({"total_tokens": 520, "completion_tokens_details": {"reasoning_tokens": 0}}),
                20,
                None,
            ),
            (20, json!({"total_tokens": 20}), 20, None),
            (
                20,
                json!({"total_tokens": 920, "cached_tokens": 400}),
                20,
                cached,
            ),
            (
                20,
                json!({"total_tokens": 520, "prompt_cache_hit_tokens": 400}),
                20,
                cached,
            ),
            (20, json!({}), 20, None),
        ] {
            let mut reported = of_500(counts);
            reported
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let usage = openai_usage(&reported);
            assert_eq!(
                (usage.input, usage.output, usage.cached_input),
                (Some(Tokens(500)), Some(Tokens(output)), cached_input),
                "{reported}"
            );
        }
        let uncounted = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 520});
        assert_eq!(openai_usage(&uncounted).output, None);
    }
}
