//! The files of batches: requests to lines, and result lines to replies. Pure.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::{CallFailure, ErrorClass};
use crate::classify::{AttemptError, classify};
use crate::dialects::{Fields, HttpRequest};
use crate::spec::Dialect;

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct BatchRequest {
    /// Identifies its result: at most 64 letters, digits, `-` and `_`.
    pub id: String,
    /// The request.
    pub request: HttpRequest,
}

/// The result of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchResult {
    /// The id that was submitted with the request.
    pub id: String,
    /// The id that the provider gave the request.
    pub request_id: Option<String>,
    /// The body of a successful reply, byte for byte; empty if it has none. Reading it shows whether it is an answer.
    /// A request that failed, or was not worked on, costs nothing.
    pub reply: Result<Bytes, CallFailure>,
}

#[derive(Serialize)]
struct OpenaiLine<'a> {
    custom_id: &'a str,
    method: &'static str,
    url: String,
    body: Fields,
}

#[derive(Serialize)]
struct AnthropicLine<'a> {
    custom_id: &'a str,
    params: Fields,
}

/// The path that lines of OpenAI's batches name, whatever the base URL.
pub(super) fn endpoint(request: &HttpRequest) -> String {
    format!("/v1{}", request.path)
}

/// The body of a request in a batch, where nothing is streamed.
fn fields(request: &HttpRequest) -> Result<Fields, serde_json::Error> {
    let mut fields: Fields = serde_json::from_slice(&request.body)?;
    fields.remove("stream");
    Ok(fields)
}

/// Requests in the format of OpenAI's batch files, one a line.
///
/// # Errors
/// A body is no JSON. No dialect makes such a body.
pub(super) fn openai_lines(requests: &[BatchRequest]) -> Result<Bytes, serde_json::Error> {
    let mut bytes = Vec::new();
    for BatchRequest { id, request } in requests {
        let body = fields(request)?;
        let line = OpenaiLine {
            custom_id: id,
            method: "POST",
            url: endpoint(request),
            body,
        };
        serde_json::to_writer(&mut bytes, &line)?;
        bytes.push(b'\n');
    }
    Ok(bytes.into())
}

/// Requests in the format of the body of Anthropic's call.
pub(super) fn anthropic_batch(requests: &[BatchRequest]) -> Result<Bytes, serde_json::Error> {
    let mut lines = Vec::with_capacity(requests.len());
    for BatchRequest { id, request } in requests {
        lines.push(AnthropicLine {
            custom_id: id,
            params: fields(request)?,
        });
    }
    Ok(serde_json::to_vec(&BTreeMap::from([("requests", lines)]))?.into())
}

#[derive(Deserialize)]
struct OpenaiResult<'a> {
    custom_id: String,
    #[serde(borrow, default)]
    response: Option<OpenaiResponse<'a>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct OpenaiResponse<'a> {
    status_code: u16,
    #[serde(default)]
    request_id: Option<String>,
    /// Engines such as vLLM leave it out of an error.
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicResult<'a> {
    custom_id: String,
    #[serde(borrow)]
    result: AnthropicOutcome<'a>,
}

#[derive(Deserialize)]
struct AnthropicOutcome<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads a line of a result file.
///
/// # Errors
/// The line is not a result.
pub(super) fn read_line(dialect: Dialect, line: &[u8]) -> Result<BatchResult, serde_json::Error> {
    if dialect == Dialect::Anthropic {
        let AnthropicResult {
            custom_id: id,
            result,
        } = serde_json::from_slice(line)?;
        return Ok(BatchResult {
            id,
            request_id: None,
            reply: anthropic_reply(&result),
        });
    }
    let OpenaiResult {
        custom_id: id,
        response,
        error,
    } = serde_json::from_slice(line)?;
    Ok(BatchResult {
        id,
        request_id: response
            .as_ref()
            .and_then(|response| response.request_id.clone()),
        reply: openai_reply(response, error.as_ref()),
    })
}

fn raw(value: &RawValue) -> Bytes {
    Bytes::copy_from_slice(value.get().as_bytes())
}

fn openai_reply(
    response: Option<OpenaiResponse<'_>>,
    error: Option<&Value>,
) -> Result<Bytes, CallFailure> {
    let error = error.unwrap_or(&Value::Null);
    match response {
        // A success may be billed even if there is nothing in it.
        Some(OpenaiResponse {
            status_code: 200..300,
            body,
            ..
        }) => Ok(body.map(raw).unwrap_or_default()),
        Some(OpenaiResponse {
            status_code, body, ..
        }) => {
            let said = body.map_or_else(|| error.to_string(), |body| body.get().to_owned());
            Err(failed(status_code, &said))
        }
        None => {
            let [code, message] = ["code", "message"]
                .map(|name| error[name].as_str().or(error.as_str()).unwrap_or_default());
            Err(unfinished(format!("{code}: {message}")))
        }
    }
}

fn anthropic_reply(outcome: &AnthropicOutcome<'_>) -> Result<Bytes, CallFailure> {
    match (outcome.kind.as_str(), outcome.message, outcome.error) {
        ("succeeded", message, _) => Ok(message.map(raw).unwrap_or_default()),
        ("errored", _, Some(error)) => Err(failed(status_of(error.get()), error.get())),
        (kind, ..) => Err(unfinished(format!("its result is `{kind}`"))),
    }
}

/// A request that was not worked on: its batch expired or was cancelled.
fn unfinished(why: String) -> CallFailure {
    AttemptError::new(ErrorClass::Transient, why).failure(1)
}

/// The status that the same error has outside of a batch.
fn status_of(error: &str) -> u16 {
    let value: Value = serde_json::from_str(error).unwrap_or_default();
    let inner = value.get("error").unwrap_or(&value);
    match inner["type"].as_str().unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

fn failed(status: u16, body: &str) -> CallFailure {
    classify(status, body.as_bytes()).failure(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(dialect: Dialect, line: &str) -> Result<Bytes, ErrorClass> {
        let result = read_line(dialect, line.as_bytes()).unwrap();
        assert_eq!(result.id, "a");
        result.reply.map_err(|failure| failure.class)
    }

    #[test]
    fn lines_of_openai_have_every_outcome() {
        let line = |rest: &str| format!(r#"{{"id":"batch_req_1","custom_id":"a",{rest}}}"#);
        let read = |rest: &str| reply(Dialect::OpenaiChat, &line(rest));
        let body = r#"{"b" : 1.50,"a":"\u00e9"}"#;
        let answered = line(&format!(
            r#""response":{{"status_code":200,"request_id":"req_1","body":{body}}},"error":null"#
        ));
        let read_once = read_line(Dialect::OpenaiChat, answered.as_bytes()).unwrap();
        assert_eq!(read_once.reply, Ok(body.into()), "byte for byte");
        assert_eq!(read_once.request_id.as_deref(), Some("req_1"));
        for without_body in [
            r#""response":{"status_code":200}"#,
            r#""response":{"status_code":200,"body":null}"#,
        ] {
            assert_eq!(read(without_body), Ok(Bytes::new()), "it may be billed");
        }
        for status in [429, 500, 503] {
            let unfinished = read(&format!(
                r#""response":{{"status_code":{status},"body":{{}}}},"error":null"#
            ));
            assert!(unfinished.unwrap_err().is_retryable(), "{status}");
        }
        for (class, failed) in [
            (
                ErrorClass::Invalid,
                r#""response":{"status_code":400,"body":{"error":{"message":"no"}}},"error":null"#,
            ),
            (
                ErrorClass::Quota,
                r#""response":{"status_code":429,"body":{"error":{"code":"insufficient_quota"}}}"#,
            ),
            (
                ErrorClass::NotFound,
                r#""response":{"status_code":400},"error":"Unknown model: m""#,
            ),
        ] {
            assert_eq!(read(failed), Err(class), "{failed}");
            assert!(!class.is_retryable());
        }
        for code in ["batch_expired", "batch_cancelled"] {
            let unfinished = read(&format!(r#""response":null,"error":{{"code":"{code}"}}"#));
            assert!(unfinished.unwrap_err().is_retryable(), "{code}");
        }
    }

    #[test]
    fn lines_of_anthropic_have_every_outcome() {
        let read = |result: &str| {
            reply(
                Dialect::Anthropic,
                &format!(r#"{{"custom_id":"a","result":{result}}}"#),
            )
        };
        let answered = read(r#"{"type":"succeeded","message":{"id":"m"}}"#);
        assert_eq!(answered, Ok(r#"{"id":"m"}"#.into()));
        let empty = read(r#"{"type":"succeeded"}"#);
        assert_eq!(empty, Ok(Bytes::new()), "it may be billed");
        let error = |kind: &str| {
            let error = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"x"}}}}"#);
            read(&format!(r#"{{"type":"errored","error":{error}}}"#)).unwrap_err()
        };
        assert_eq!(error("invalid_request_error"), ErrorClass::Invalid);
        for kind in [
            "overloaded_error",
            "rate_limit_error",
            "api_error",
            "unheard_of",
        ] {
            assert!(error(kind).is_retryable(), "{kind}");
        }
        for kind in ["expired", "canceled"] {
            let unfinished = read(&format!(r#"{{"type":"{kind}"}}"#));
            assert!(unfinished.unwrap_err().is_retryable(), "{kind}");
        }
    }

    #[test]
    fn a_line_that_is_no_result_is_an_error() {
        for line in [
            "",
            "{",
            r#"{"custom_id":1}"#,
            r#"{"result":{"type":"succeeded"}}"#,
            "[]",
        ] {
            assert!(
                read_line(Dialect::Anthropic, line.as_bytes()).is_err(),
                "{line}"
            );
            assert!(
                read_line(Dialect::OpenaiChat, line.as_bytes()).is_err(),
                "{line}"
            );
        }
    }

    #[test]
    fn a_request_is_one_line() {
        let request = HttpRequest {
            path: "/chat/completions",
            headers: Vec::new(),
            body: r#"{"model":"m","messages":[],"stream":false}"#.into(),
        };
        let requests = [BatchRequest {
            id: "a".into(),
            request,
        }];
        let line = "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\
                    \"body\":{\"messages\":[],\"model\":\"m\"}}\n";
        assert_eq!(openai_lines(&requests).unwrap(), line);
        let batch = r#"{"requests":[{"custom_id":"a","params":{"messages":[],"model":"m"}}]}"#;
        assert_eq!(anthropic_batch(&requests).unwrap(), batch);
    }
}
