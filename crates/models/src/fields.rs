//! Fields of a request that a server may not know. Once it refuses one, requests to this model leave it out or call it by
//! its other name. None of them is part of what a key stands for: the prompt describes the form of a reply anyway, and
//! what a user set, such as a temperature, is never left out.

use bytes::Bytes;
use serde_json::value::to_raw_value;

use super::call::ErrorClass;
use super::classify::AttemptError;
use super::dialects::Fields;
use super::signs::has_any;

/// A field that requests can do without: its name (that of a field inside another one after a point), the words for it in
/// messages with blanks in place of `_` and `-`, and the other name under which it is then sent.
#[derive(Debug, PartialEq)]
pub(super) struct OptionalField(pub &'static str, &'static str, Option<&'static str>);

/// The words for a schema of the reply, whatever its field.
const STRUCTURED: &str = "response format|responseformat|response schema|output config|output format|text.format|json schema|jsonschema|\
     json mode|json object|json output|structured output|structured decoding|guided json|guided decoding|\
     guided generation|constrained decoding|grammar|requested parameters|xgrammar|outlines|response mime type|\
     responsemimetype|output schema|schema too complex|schema is too complex|required for format";

/// What servers say whose models only stream: such streams are read.
const STREAM_ONLY: &str = "only support stream|only supports stream|only support streaming|only supports streaming|stream mode|\
     streaming mode|must have stream=true|for non streaming call|streaming is required";

/// Name, words, other name.
const OPTIONAL: [OptionalField; 12] = [
    OptionalField("response_format", STRUCTURED, None),
    OptionalField("text", STRUCTURED, None),
    OptionalField("output_config.format", STRUCTURED, None),
    OptionalField("max_tokens", "max tokens", Some("max_completion_tokens")),
    OptionalField(
        "max_completion_tokens",
        "max completion tokens",
        Some("max_tokens"),
    ),
    OptionalField("stream", STREAM_ONLY, Some("stream")),
    OptionalField("stream", "stream", None),
    OptionalField("tool_choice", "tool choice|toolchoice", None),
    OptionalField("prompt_cache_key", "prompt cache key", None),
    OptionalField("store", "store", None),
    OptionalField("plugins", "plugins", None),
    OptionalField("include", "include|encrypted content", None),
];

/// The field of a request that an error refuses. `known` are those that were refused before. A server may refuse a schema
/// without naming it, as long as it has taken none.
pub(super) fn refused_field(
    error: &AttemptError,
    body: &[u8],
    known: &[&'static OptionalField],
    takes_schema: bool,
) -> Option<&'static OptionalField> {
    const UNKNOWN: &str = "support|unknown|unrecognized|unexpected|not permitted|invalid|unavailable|not allowed|extra|not implemented|notimplemented|keyerror|must be|not enabled|failed to load|failed to create|不支持|未知|非法|无效";
    let text = error.message.to_lowercase();
    let is_refusal = match error.class {
        ErrorClass::Invalid | ErrorClass::NotFound => true,
        ErrorClass::Transient => has_any(&text, UNKNOWN),
        _ => false,
    };
    if error.status.is_none() || !is_refusal {
        return None;
    }
    let sent: Fields = serde_json::from_slice(body).ok()?;
    let refused = |OptionalField(name, words, other): &&OptionalField| {
        let is_back = known.iter().any(|known| Some(known.0) == *other);
        holds(&sent, name)
            && words.split('|').any(|word| has_word(&text, word))
            && other.is_none_or(|other| match sent.get(other) {
                // Only a stream is called the same, once it is asked for.
                Some(value) => value.get() == "false",
                None => !is_back && is_renamed(&text, other),
            })
    };
    // A hint says what else is refused.
    let is_unnamed = !takes_schema
        && (error.class, &error.hint) == (ErrorClass::Invalid, &None)
        && matches!(error.status, Some(400 | 422));
    let schema = |field: &&OptionalField| field.1 == STRUCTURED && holds(&sent, field.0);
    let unnamed = || OPTIONAL.iter().find(schema).filter(|_| is_unnamed);
    OPTIONAL.iter().find(refused).or_else(unnamed)
}

/// Whether a message blames the name of a field, or asks for the other one. A refused value is the user's to change: a server
/// that does not know the other name would ignore it there.
fn is_renamed(text: &str, other: &str) -> bool {
    const NAME: &str =
        "not support|unsupported|unrecognized|unknown|unexpected|not permitted|extra|不支持|未知";
    const VALUE: &str = "too large|too small|at most|at least|less than|greater than|maximum|range|exceed|above|value for|value of|unsupported value";
    let (is_name, is_value) = (has_any(text, NAME), has_any(text, VALUE));
    let is_asked_for = has_word(text, &other.replace('_', " "));
    (is_name || is_asked_for) && (!is_value || is_name && is_asked_for)
}

/// Whether a request has a field: the error may be about another one inside the same outer field.
fn holds(sent: &Fields, name: &str) -> bool {
    let (outer, part) = name.split_once('.').unwrap_or((name, ""));
    sent.get(outer)
        .is_some_and(|value| value.get().contains(part))
}

/// Whether a text has these words whole, or the last of them in the plural.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = char::is_alphanumeric;
    let text = text.replace(['_', '-'], " ");
    text.match_indices(word).any(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let after = rest.get(word.len()..).unwrap_or("");
        let after = after.strip_prefix('s').unwrap_or(after);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

/// The body without these fields, or with their other names.
pub(super) fn without_fields(body: Bytes, refused: &[&'static OptionalField]) -> Bytes {
    let Some(mut fields) = serde_json::from_slice::<Fields>(&body)
        .ok()
        .filter(|_| !refused.is_empty())
    else {
        return body;
    };
    for OptionalField(name, _, other) in refused {
        let removed = fields.remove(name.split('.').next().unwrap_or(name));
        let kept = match (other, name.split_once('.')) {
            // A model that only streams is asked to.
            (Some("stream"), _) => {
                removed.and_then(|_| Some(("stream", to_raw_value(&true).ok()?)))
            }
            (Some(other), _) => removed.map(|value| (*other, value)),
            (None, Some((name, part))) => removed.and_then(|value| {
                let mut inner: Fields = serde_json::from_str(value.get()).ok()?;
                inner.remove(part);
                let rest = to_raw_value(&inner).ok()?;
                (!inner.is_empty()).then_some((name, rest))
            }),
            (None, None) => None,
        };
        fields.extend(kept.map(|(name, value)| (name.to_owned(), value)));
    }
    serde_json::to_vec(&fields).map_or(body, Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Operation;
    use crate::classify::{classify, upstream};
    use crate::dialects::read;
    use crate::spec::Dialect;

    fn refused(status: u16, reply: &str, body: &str) -> Option<&'static str> {
        let error = match status {
            200 => upstream(
                read(
                    Dialect::OpenaiChat,
                    Operation::Generate,
                    reply.as_bytes(),
                    None,
                )
                .unwrap_err(),
                reply.as_bytes(),
            ),
            _ => classify(status, reply.as_bytes()),
        };
        refused_field(&error, body.as_bytes(), &[], true).map(|field| field.0)
    }

    #[test]
    fn a_refused_field_is_recognised_in_the_words_of_many_servers() {
        let body = r#"{"response_format":{},"max_tokens":5,"stream":false,"tool_choice":"none","prompt_cache_key":"x","messages":[]}"#;
        for (field, status, reply) in [
            (
                "response_format",
                400,
                r#"{"error":{"message":"Structured outputs are not enabled for this deployment"}}"#,
            ),
            (
                "response_format",
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","response_format"],"msg":"Extra inputs are not permitted"}]}"#,
            ),
            (
                "response_format",
                404,
                r#"{"error":{"message":"No endpoints found that can handle the requested parameters.","code":404}}"#,
            ),
            (
                "response_format",
                500,
                r#"{"error":"grammar is not supported by this backend"}"#,
            ),
            (
                "response_format",
                500,
                r#"{"error":"failed to load model vocabulary required for format"}"#,
            ),
            (
                "response_format",
                400,
                r#"{"error":{"message":"Schema too complex: nesting depth 6"}}"#,
            ),
            (
                "response_format",
                400,
                r#"{"error":{"message":"'response_format.type' must be 'text' or 'json_object'"}}"#,
            ),
            (
                "response_format",
                422,
                r#"{"detail":[{"loc":["body","response_format","type"],"msg":"Input should be 'text' or 'json_object'"}]}"#,
            ),
            (
                "response_format",
                400,
                r#"[{"error":{"message":"Unknown name \"additionalProperties\" at 'generation_config.response_schema'"}}]"#,
            ),
            (
                "response_format",
                400,
                r#"{"error":{"message":"Response formats are only available from tier 3 on"}}"#,
            ),
            (
                "response_format",
                501,
                r#"{"error":"constrained decoding is not implemented for this model"}"#,
            ),
            (
                "max_tokens",
                400,
                r#"{"error":{"message":"'max_tokens' is not supported: 'max_completion_tokens' sets the maximum"}}"#,
            ),
            (
                "max_tokens",
                400,
                r#"{"error":{"message":"Unrecognized request argument supplied: max_tokens"}}"#,
            ),
            (
                "max_tokens",
                400,
                r#"{"error":{"message":"this model needs 'max_completion_tokens'","param":"max_tokens"}}"#,
            ),
            (
                "stream",
                400,
                r#"{"error":{"message":"Unknown field: stream"}}"#,
            ),
            (
                "response_format",
                500,
                r#"{"error":"KeyError: 'json_schema'"}"#,
            ),
            (
                "response_format",
                400,
                r#"{"message":"Validation failed","fields":{"response_format":"not allowed"}}"#,
            ),
            (
                "response_format",
                400,
                r#"{"title":"Bad request","invalid-params":[{"name":"response_format","reason":"no"}]}"#,
            ),
            (
                "response_format",
                200,
                r#"{"error":{"message":"response_format is not supported","code":400}}"#,
            ),
            (
                "response_format",
                200,
                r#"{"error":{"message":"Json_output is not supported","type":"invalid_request_error"}}"#,
            ),
            ("tool_choice", 400, r#"{"error":"no option tool-choice"}"#),
            (
                "tool_choice",
                400,
                r#"{"message":"tool_choice none is not supported"}"#,
            ),
            (
                "prompt_cache_key",
                400,
                r#"{"error":{"message":"Unsupported parameter","param":"prompt_cache_key"}}"#,
            ),
        ] {
            assert_eq!(refused(status, reply, body), Some(field), "{reply}");
        }
        for (status, reply) in [
            (
                400,
                r#"{"error":{"message":"max_tokens is too large: 5. This model supports at most 4 completion tokens"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"temperature is not supported","param":"temperature"}}"#,
            ),
            (400, r#"{"error":{"message":"max_tokens must be <= 8192"}}"#),
            (
                400,
                r#"{"error":{"message":"Invalid value for 'max_tokens': 20000"}}"#,
            ),
            (
                422,
                r#"{"error":{"message":"max_tokens must be between 1 and 8192"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"参数 max_tokens 非法，应在 1 到 8192 之间"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"max_tokens above 8192 is not supported"}}"#,
            ),
            (429, r#"{"error":{"message":"stream limit"}}"#),
            (500, r#"{"error":"the upstream is gone"}"#),
        ] {
            assert_eq!(refused(status, reply, body), None, "{reply}");
        }
    }

    #[test]
    fn a_schema_may_be_refused_without_being_named() {
        let unnamed = |status: u16, reply: &str, body: &str| {
            let error = classify(status, reply.as_bytes());
            assert_eq!(
                refused_field(&error, body.as_bytes(), &[], true).filter(|_| status < 500),
                None
            );
            refused_field(&error, body.as_bytes(), &[], false).map(|field| field.0)
        };
        let body = r#"{"model":"m","messages":[],"response_format":{},"stream":false}"#;
        for (status, reply) in [
            (
                400,
                r#"[{"error":{"message":"The specified schema produces a constraint that has too many states for serving.","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (
                400,
                r#"{"error":{"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"API 调用参数有误，请检查文档。","code":"1210"}}"#,
            ),
            (422, r#"{"detail":"Unprocessable Entity"}"#),
            (400, ""),
            (500, r#"{"error":{"message":"failed to create grammar"}}"#),
        ] {
            assert_eq!(
                unnamed(status, reply, body),
                Some("response_format"),
                "{reply}"
            );
            for without in [
                r#"{"messages":[]}"#,
                r#"{"output_config":{"effort":"low"}}"#,
            ] {
                assert_eq!(unnamed(status, reply, without), None, "{reply}");
            }
        }
        for (status, reply) in [
            (
                400,
                r#"{"error":{"message":"temperature must be 1 for this model"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"this effort is not one of low, high"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"max_tokens must be at most 8192"}}"#,
            ),
            (401, r#"{"error":{"message":"schema of the key"}}"#),
            (429, ""),
            (500, ""),
            (
                400,
                r#"{"error":{"message":"Failed to validate JSON","code":"json_validate_failed"}}"#,
            ),
        ] {
            assert_eq!(unnamed(status, reply, body), None, "{reply}");
        }
    }

    #[test]
    fn fields_are_left_out_or_renamed_and_the_rest_stays_byte_for_byte() {
        let without = |body: &'static str, names: &[&str]| {
            let fields: Vec<_> = OPTIONAL
                .iter()
                .filter(|field| names.contains(&field.0))
                .collect();
            without_fields(Bytes::from(body), &fields)
        };
        let body =
            r#"{"a":{"z":1.50,"b":98765432109876543210},"max_tokens":5,"response_format":{}}"#;
        assert_eq!(
            without(body, &["max_tokens", "response_format"]),
            r#"{"a":{"z":1.50,"b":98765432109876543210},"max_completion_tokens":5}"#
        );
        let anthropic = r#"{"output_config":{"effort":"low","format":{}}}"#;
        assert_eq!(
            without(anthropic, &["output_config.format"]),
            r#"{"output_config":{"effort":"low"}}"#
        );
        assert_eq!(without(body, &[]), body);
        assert_eq!(
            without(r#"{"stream":false}"#, &["max_tokens"]),
            r#"{"stream":false}"#
        );
    }

    #[test]
    fn a_model_that_only_streams_is_asked_to() {
        let body = Bytes::from(r#"{"messages":[],"stream":false}"#);
        let sent = |message: &str| {
            let reply = serde_json::json!({"error": {"message": message}}).to_string();
            let field = refused_field(&classify(400, reply.as_bytes()), &body, &[], true)?;
            let asked = without_fields(body.clone(), &[field]);
            let again = refused_field(&classify(400, reply.as_bytes()), &body, &[field], true);
            assert_eq!(again, Some(field), "of a request under way");
            let after = refused_field(&classify(400, reply.as_bytes()), &asked, &[field], true);
            assert!(after != Some(field), "it would be asked without end");
            Some(asked)
        };
        for only in [
            "This model only support stream mode, please enable the stream parameter to access the model. ",
            "parameter.enable_thinking must be set to false for non-streaming calls",
            "Requests with max_tokens > 4096 must have stream=true",
        ] {
            assert_eq!(
                sent(only).unwrap(),
                r#"{"messages":[],"stream":true}"#,
                "{only}"
            );
        }
        for refused in ["Unknown field: stream", "stream is not supported"] {
            assert_eq!(sent(refused).unwrap(), r#"{"messages":[]}"#, "{refused}");
        }
        assert_eq!(sent("the upstream is gone"), None);
    }
}
