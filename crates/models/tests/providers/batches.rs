//! The calls that create batches, as they arrive, are what the vendors' schemas allow.

use std::convert::Infallible;
use std::time::Duration;

use compeval_models::{
    BatchClient, BatchEnding, BatchRequest, BatchResult, BatchSearch, Dialect, ErrorClass, request,
};
use serde_json::Value;

use super::calls::{generations, spec};
use super::contract::{ANTHROPIC, OPENAI, allowed};
use crate::simulator::{Scripted, Seen, Simulator};

const NONCE: &str = "AAAAAAAAAAAAAAAA";

/// Creates a batch of every kind of generation at a vendor that answers with `script`. Returns the requests that arrived.
async fn created(dialect: Dialect, script: Vec<Scripted>) -> Vec<Seen> {
    let simulator = Simulator::scripted(script);
    let mut spec = spec(dialect, &format!("{}/v1", simulator.url()));
    spec.api_key = None;
    let batched = |(nth, call)| {
        let id = format!("{:_<43}-{:02}-{NONCE}", nth, 1);
        BatchRequest {
            id,
            request: request(&spec, &call).unwrap(),
        }
    };
    // A temperature needs an older version of Anthropic's API: a batch has one version.
    let calls = generations()
        .into_iter()
        .filter(|call| call.settings.temperature.is_none());
    let requests: Vec<BatchRequest> = calls.enumerate().map(batched).collect();
    let client = BatchClient::new(&spec).unwrap();
    let prepared = client.prepare(NONCE, &requests).await.unwrap();
    let id = client.create(&prepared).await.unwrap();
    assert_eq!(id.as_deref(), Some("batch_1"));
    simulator.seen()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[tokio::test]
async fn a_batch_at_openai_is_a_file_of_allowed_lines_and_an_allowed_call() {
    let script = vec![
        Scripted::new(200, r#"{"id":"file-1"}"#),
        Scripted::new(200, r#"{"id":"batch_1"}"#),
    ];
    let [upload, create] = created(Dialect::OpenaiChat, script)
        .await
        .try_into()
        .unwrap();
    let form = String::from_utf8(upload.body.to_vec()).unwrap();
    let (_, file) = form.split_once("application/jsonl\r\n\r\n").unwrap();
    let (lines, _) = file.split_once("\r\n--").unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| json(line.as_bytes())).collect();
    assert_eq!(lines.len(), 4);
    for line in &lines {
        allowed(OPENAI, "BatchFileLine", line);
        allowed(OPENAI, "CreateChatCompletionRequest", &line["body"]);
    }
    let create = json(&create.body);
    allowed(OPENAI, "CreateBatchRequest", &create);
    assert_eq!(
        (
            &create["input_file_id"],
            &create["metadata"]["compeval_nonce"]
        ),
        (&"file-1".into(), &NONCE.into())
    );
    assert_eq!(create["endpoint"], lines[0]["url"]);
}

#[tokio::test]
async fn a_batch_at_anthropic_is_one_allowed_call_under_the_version_of_its_requests() {
    let script = vec![Scripted::new(200, r#"{"id":"batch_1"}"#)];
    let [create] = created(Dialect::Anthropic, script)
        .await
        .try_into()
        .unwrap();
    assert_eq!(
        (create.uri.as_str(), &create.headers["anthropic-version"]),
        ("/v1/messages/batches", &"2026-10-21".parse().unwrap())
    );
    let body = json(&create.body);
    allowed(ANTHROPIC, "BatchCreateRequest", &body);
    assert_eq!(body["requests"].as_array().unwrap().len(), 4);
}

/// A client of OpenAI's batch API at a server that answers with `script`.
fn scripted(script: Vec<Scripted>) -> (Simulator, BatchClient) {
    let simulator = Simulator::scripted(script);
    let mut spec = spec(Dialect::OpenaiChat, &format!("{}/v1", simulator.url()));
    spec.api_key = None;
    let client = BatchClient::new(&spec).unwrap();
    (simulator, client)
}

#[tokio::test]
async fn replies_that_the_results_lack_are_counted_and_a_file_without_a_name_is_not_read() {
    let batch = r#"{"id":"batch_1","status":"completed","output_file_id":"file-2","error_file_id":"",
        "request_counts":{"total":2,"completed":2,"failed":0}}"#;
    let line = r#"{"custom_id":"a","response":{"status_code":200,"body":{}},"error":null}"#;
    let error = r#"{"custom_id":"b","response":{"status_code":400,"body":{}},"error":null}"#;
    for (lines, missing) in [
        ([line, line], 0),
        ([line, error], 1),
        ([line, "{"], 1),
        ([error, error], 2),
    ] {
        let results = lines.join("\n");
        let (simulator, client) =
            scripted(vec![Scripted::new(200, batch), Scripted::new(200, results)]);
        let status = client.status("batch_1").await.unwrap();
        let read = client
            .results(
                &status,
                async |_: Vec<BatchResult>| Ok::<(), Infallible>(()),
            )
            .await;
        assert_eq!(
            (read, status.ended_for),
            (Ok(Ok(missing)), None),
            "{lines:?}"
        );
        let paths: Vec<String> = simulator.seen().into_iter().map(|seen| seen.uri).collect();
        assert_eq!(paths, ["/v1/batches/batch_1", "/v1/files/file-2/content"]);
    }
}

#[tokio::test]
async fn a_batch_that_failed_after_some_replies_has_results() {
    for (file, is_refused) in [("null", true), ("\"\"", true), ("\"file-2\"", false)] {
        let batch = format!(r#"{{"id":"batch_1","status":"failed","output_file_id":{file}}}"#);
        let (_simulator, client) = scripted(vec![Scripted::new(200, batch)]);
        let ending = client.status("batch_1").await.unwrap().ending;
        assert_eq!(
            matches!(ending, Some(BatchEnding::Refused(_))),
            is_refused,
            "{file}: {ending:?}"
        );
        assert_eq!(ending == Some(BatchEnding::Done), !is_refused, "{file}");
    }
}

#[tokio::test]
async fn a_batch_for_which_the_account_has_no_room_is_refused_because_of_a_limit() {
    for (code, message, class) in [
        (
            "token_limit_exceeded",
            "Enqueued token limit reached for m in organization org-1. Limit: 90,000 enqueued tokens.",
            ErrorClass::RateLimited,
        ),
        ("invalid_json_line", "so it is", ErrorClass::Invalid),
        (
            "context_length_exceeded",
            "the token limit of the model is 8192",
            ErrorClass::Invalid,
        ),
        ("empty_file", "no tokens are enqueued", ErrorClass::Invalid),
    ] {
        let data = format!(r#"[{{"code":"{code}","message":"{message}","line":null}}]"#);
        let batch = format!(r#"{{"id":"batch_1","status":"failed","errors":{{"data":{data}}}}}"#);
        let (_simulator, client) = scripted(vec![Scripted::new(200, batch)]);
        let Some(BatchEnding::Refused(failure)) = client.status("batch_1").await.unwrap().ending
        else {
            panic!("{code}: not refused");
        };
        assert_eq!(failure.class, class, "{code}");
        assert!(failure.message.contains(message), "{}", failure.message);
    }
}

#[tokio::test]
async fn the_vendor_says_when_a_batch_ended() {
    let seconds = async |fields: &str| {
        let batch = format!(r#"{{"id":"batch_1",{fields}}}"#);
        let (_simulator, client) = scripted(vec![Scripted::new(200, batch)]);
        client
            .status("batch_1")
            .await
            .unwrap()
            .ended_for
            .map(|since| since > Duration::from_secs(1_000_000_000))
    };
    assert_eq!(
        seconds(r#""status":"completed","completed_at":1,"expired_at":null"#).await,
        Some(true)
    );
    assert_eq!(
        seconds(r#""status":"expired","completed_at":null,"expired_at":1"#).await,
        Some(true)
    );
    assert_eq!(
        seconds(r#""processing_status":"ended","ended_at":"1970-01-01T00:00:01Z""#).await,
        Some(true)
    );
    assert_eq!(
        seconds(r#""status":"completed","completed_at":99999999999"#).await,
        Some(false),
        "clocks differ"
    );
    assert_eq!(
        seconds(r#""status":"in_progress","expires_at":1"#).await,
        None
    );
}

#[tokio::test]
async fn an_answer_that_is_no_list_does_not_mean_that_a_batch_is_absent() {
    let find = async |body: &'static str| {
        let (_simulator, client) = scripted(vec![Scripted::new(200, body)]);
        client.find(NONCE, None, &[]).await
    };
    for body in [
        "{}",
        r#"{"error":{"message":"maintenance"}}"#,
        r#"{"data":{}}"#,
    ] {
        assert!(find(body).await.is_err(), "{body}");
    }
    for body in [
        r#"{"object":"list","data":[]}"#,
        r#"{"object":"list","data":null}"#,
    ] {
        assert_eq!(find(body).await, Ok(BatchSearch::Absent), "{body}");
    }
}

#[tokio::test]
async fn a_search_ends_where_a_server_gives_the_same_page_again() {
    let page = r#"{"object":"list","has_more":true,"data":[{"id":"batch_9","metadata":{}}]}"#;
    let (simulator, client) = scripted(vec![Scripted::new(200, page); 3]);
    assert_eq!(
        client.find(NONCE, None, &[]).await,
        Ok(BatchSearch::Undecided)
    );
    assert_eq!(simulator.seen().len(), 2);
}

#[test]
#[should_panic(expected = "stream")]
fn the_schema_refuses_what_a_batch_must_not_have() {
    let params = serde_json::json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "stream": true});
    allowed(
        ANTHROPIC,
        "BatchCreateRequest",
        &serde_json::json!({"requests": [{"custom_id": "a", "params": params}]}),
    );
}
