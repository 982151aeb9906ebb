//! The files of batches: requests to lines, and result lines to replies. Pure.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::CallFailure;
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
    /// The reply to the request.
    pub reply: BatchReply,
}

/// The reply to one request of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchReply {
    /// The body of a successful reply, byte for byte; empty if it has none. Reading it shows whether it is an answer.
    Answered {
        /// The bytes of the body.
        body: Bytes,
        /// The id that the provider gave the request.
        request_id: Option<String>,
    },
    /// It was not worked on, or failed for a reason that may pass (429, 5xx, expired), and costs nothing. A live call would
    /// be sent again after such a failure, too.
    Unfinished(String),
    /// It would fail again, and costs nothing.
    Failed(CallFailure),
    /// The batch was cancelled before it was worked on.
    Cancelled,
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
        reply: openai_reply(response, error.as_ref()),
    })
}

fn raw(value: &RawValue) -> Bytes {
    Bytes::copy_from_slice(value.get().as_bytes())
}

fn openai_reply(response: Option<OpenaiResponse<'_>>, error: Option<&Value>) -> BatchReply {
    match response {
        // A success may be billed even if there is nothing in it.
        Some(OpenaiResponse {
            status_code: 200..300,
            request_id,
            body,
        }) => BatchReply::Answered {
            body: body.map(raw).unwrap_or_default(),
            request_id,
        },
        Some(OpenaiResponse {
            status_code, body, ..
        }) => match (body, error) {
            (Some(body), _) => failed(status_code, body.get().as_bytes()),
            (None, Some(Value::String(message))) => failed(
                status_code,
                serde_json::json!({"error": {"message": message}})
                    .to_string()
                    .as_bytes(),
            ),
            (None, error) => failed(
                status_code,
                error.map(Value::to_string).unwrap_or_default().as_bytes(),
            ),
        },
        None => {
            let error = error.unwrap_or(&Value::Null);
            let [code, message] = ["code", "message"]
                .map(|name| error[name].as_str().or(error.as_str()).unwrap_or_default());
            match code {
                "batch_cancelled" => BatchReply::Cancelled,
                _ => BatchReply::Unfinished(format!("{code}: {message}")),
            }
        }
    }
}

fn anthropic_reply(outcome: &AnthropicOutcome<'_>) -> BatchReply {
    match (outcome.kind.as_str(), outcome.message, outcome.error) {
        ("succeeded", message, _) => BatchReply::Answered {
            body: message.map(raw).unwrap_or_default(),
            request_id: None,
        },
        ("errored", _, Some(error)) => failed(status_of(error.get()), error.get().as_bytes()),
        ("canceled", ..) => BatchReply::Cancelled,
        (kind, ..) => BatchReply::Unfinished(format!("the request {kind}")),
    }
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

fn failed(status: u16, body: &[u8]) -> BatchReply {
    let fault: AttemptError = classify(status, body);
    if fault.is_retryable() {
        BatchReply::Unfinished(fault.message)
    } else {
        BatchReply::Failed(fault.failure(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ErrorClass;

    fn reply(dialect: Dialect, line: &str) -> BatchReply {
        let result = read_line(dialect, line.as_bytes()).unwrap();
        assert_eq!(result.id, "a");
        result.reply
    }

    #[test]
    fn lines_of_openai_have_every_outcome() {
        let line = |rest: &str| format!(r#"{{"id":"batch_req_1","custom_id":"a",{rest}}}"#);
        let read = |rest: &str| reply(Dialect::OpenaiChat, &line(rest));
        let body = r#"{"b" : 1.50,"a":"\u00e9"}"#;
        let answered = read(&format!(
            r#""response":{{"status_code":200,"request_id":"req_1","body":{body}}},"error":null"#
        ));
        let kept = BatchReply::Answered {
            body: body.into(),
            request_id: Some("req_1".into()),
        };
        assert_eq!(answered, kept, "byte for byte");
        for without_body in [
            r#""response":{"status_code":200}"#,
            r#""response":{"status_code":200,"body":null}"#,
        ] {
            let empty = BatchReply::Answered {
                body: Bytes::new(),
                request_id: None,
            };
            assert_eq!(read(without_body), empty, "it may be billed");
        }
        for status in [429, 500, 503] {
            let unfinished = read(&format!(
                r#""response":{{"status_code":{status},"body":{{}}}},"error":null"#
            ));
            assert!(matches!(unfinished, BatchReply::Unfinished(_)), "{status}");
        }
        let failed = read(
            r#""response":{"status_code":400,"body":{"error":{"message":"no"}}},"error":null"#,
        );
        assert!(matches!(
            failed,
            BatchReply::Failed(CallFailure {
                class: ErrorClass::Invalid,
                ..
            })
        ));
        let quota = read(
            r#""response":{"status_code":429,"body":{"error":{"code":"insufficient_quota"}}}"#,
        );
        assert!(matches!(
            quota,
            BatchReply::Failed(CallFailure {
                class: ErrorClass::Quota,
                ..
            })
        ));
        assert!(matches!(
            read(r#""response":null,"error":{"code":"batch_expired"}"#),
            BatchReply::Unfinished(_)
        ));
        assert_eq!(
            read(r#""response":null,"error":{"code":"batch_cancelled"}"#),
            BatchReply::Cancelled
        );
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
        assert_eq!(
            answered,
            BatchReply::Answered {
                body: r#"{"id":"m"}"#.into(),
                request_id: None
            }
        );
        assert_eq!(
            read(r#"{"type":"succeeded"}"#),
            BatchReply::Answered {
                body: Bytes::new(),
                request_id: None
            },
            "it may be billed"
        );
        let error = |kind: &str| {
            read(&format!(
                r#"{{"type":"errored","error":{{"type":"error","error":{{"type":"{kind}","message":"x"}}}}}}"#
            ))
        };
        assert!(matches!(
            error("invalid_request_error"),
            BatchReply::Failed(_)
        ));
        for kind in [
            "overloaded_error",
            "rate_limit_error",
            "api_error",
            "unheard_of",
        ] {
            assert!(matches!(error(kind), BatchReply::Unfinished(_)), "{kind}");
        }
        assert!(matches!(
            read(r#"{"type":"expired"}"#),
            BatchReply::Unfinished(_)
        ));
        assert_eq!(read(r#"{"type":"canceled"}"#), BatchReply::Cancelled);
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
