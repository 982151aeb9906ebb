//! Both vendors on loopback with their batch APIs: uploads, creation, lists, polls, results, cancellation. The server
//! answers by rules, live and in batches, and counts how often each request was billed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use serde_json::{Value, json};

use super::brain;
use super::loopback::LoopbackServer;

/// The vendor whose API the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    OpenAi,
    Anthropic,
}

/// The result of one line of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The reply of the rules.
    Sensible,
    /// This text.
    Text(&'static str),
    /// A call of the tool `search` with these words; for OpenAI's batches.
    Search(&'static str),
    /// An error with this status.
    Error(u16),
    Expired,
    /// The vendor cancelled it.
    Cancelled,
    /// The results lack it. It is not billed.
    Missing,
    /// The results lack it at first. It is billed.
    Late,
    /// The results have it twice.
    Twice,
    /// It succeeded without a reply. It is billed.
    Empty,
}

type Fates = dyn Fn(&Value, u8) -> Fate + Send + Sync;

/// How the vendor behaves.
pub struct Behaviour {
    /// The number of polls before a batch ends.
    pub polls: usize,
    /// The number of polls before a cancelled batch ends. By then half of its lines are done.
    pub polls_of_cancelled: usize,
    /// The number of create calls whose answer is lost.
    pub lost_answers: usize,
    /// Whether the requests of a batch are refused as a whole.
    pub refuses: bool,
    /// The most lines of batches that may be open at once: another batch fails as a whole.
    pub most_open: usize,
    /// Whether results are deleted before anybody reads them.
    pub deletes_results: bool,
    /// How often results are read before those that are late are among them.
    pub readings: usize,
    /// How long ago a batch ended when it is first said to have; without it the vendor does not say.
    pub ended_ago: Option<Duration>,
    /// The fate of a line, by its body and attempt.
    pub fates: Arc<Fates>,
    /// The reply to a live request, by its body and how often it was billed before.
    pub live_fates: Arc<Fates>,
    /// The latency of every call except the live ones.
    pub latency: Duration,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            polls: 1,
            polls_of_cancelled: 1,
            lost_answers: 0,
            refuses: false,
            most_open: usize::MAX,
            deletes_results: false,
            readings: 0,
            ended_ago: None,
            fates: Arc::new(|_, _| Fate::Sensible),
            live_fates: Arc::new(|_, _| Fate::Sensible),
            latency: Duration::ZERO,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub id: String,
    pub nonce: Value,
    pub lines: Vec<(String, Value)>,
    pub polls: usize,
    pub is_cancelled: bool,
    pub has_ended: bool,
    pub is_deleted: bool,
    has_expired: bool,
    is_refused: bool,
    is_over_limit: bool,
    has_lost_results: bool,
    ended_at: Option<SystemTime>,
    output: Vec<Value>,
    errors: Vec<Value>,
    late: Vec<Value>,
    readings: usize,
}

impl Batch {
    /// The lines with replies, as they are when they are read once more.
    fn read(&mut self, before_late: usize) -> Vec<Value> {
        self.readings += 1;
        let late = if self.readings > before_late {
            self.late.as_slice()
        } else {
            &[]
        };
        self.output.iter().chain(late).cloned().collect()
    }
}

#[derive(Default)]
pub struct Book {
    pub behaviour: Behaviour,
    pub batches: Vec<Batch>,
    files: HashMap<String, Vec<(String, Value)>>,
    pub files_deleted: usize,
    /// When requests were last uploaded.
    pub uploaded: Option<SystemTime>,
    /// The calls in the order of their arrival, without the live ones.
    pub calls: Vec<&'static str>,
    /// How often each request was billed, by its body.
    pub billed: BTreeMap<String, u32>,
    /// The number of requests sent live.
    pub live: usize,
    /// The requests that were billed in a batch, and those of them that were billed again afterwards.
    in_batches: BTreeSet<String>,
    pub repeated: Vec<String>,
}

struct Shared {
    vendor: Vendor,
    book: Mutex<Book>,
}

/// A running vendor; it ends when dropped.
pub struct BatchServer {
    http: LoopbackServer,
    shared: Arc<Shared>,
}

impl BatchServer {
    pub fn start(vendor: Vendor) -> BatchServer {
        let shared = Arc::new(Shared {
            vendor,
            book: Mutex::default(),
        });
        let http = LoopbackServer::start(Router::new().fallback(answer).with_state(shared.clone()));
        BatchServer { http, shared }
    }

    pub fn url(&self) -> String {
        format!("{}/v1", self.http.url())
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.shared
            .book
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn vendor(&self) -> Vendor {
        self.shared.vendor
    }

    /// Requests that were billed more than once.
    pub fn billed_twice(&self) -> usize {
        self.book()
            .billed
            .values()
            .filter(|times| **times > 1)
            .count()
    }
}

enum Reply {
    Json(u16, Value),
    Lines(Vec<Value>),
    HangUp,
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    assert!(
        method != Method::POST || headers.contains_key("content-length"),
        "{uri}"
    );
    let path = uri.path().trim_start_matches("/v1").to_owned();
    let is_live = matches!(path.as_str(), "/chat/completions" | "/messages");
    let latency = shared
        .book
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .behaviour
        .latency;
    {
        let mut book = shared.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.calls
            .extend((!is_live).then(|| kind_of(&method, &path)));
    }
    if !is_live {
        tokio::time::sleep(latency).await;
    }
    let reply = {
        let mut book = shared.book.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<&str> = path
            .trim_start_matches("/messages")
            .trim_matches('/')
            .split('/')
            .collect();
        match (is_live, shared.vendor) {
            (true, vendor) => book.live(vendor, &body),
            (false, Vendor::OpenAi) => {
                book.openai(&method, &parts, uri.query().unwrap_or_default(), &body)
            }
            (false, Vendor::Anthropic) => {
                book.anthropic(&method, &parts, uri.query().unwrap_or_default(), &body)
            }
        }
    };
    if !is_live {
        // The call takes effect before its answer is sent.
        tokio::time::sleep(latency).await;
    }
    let (status, text) = match reply {
        Reply::Json(status, value) => (status, value.to_string()),
        Reply::Lines(lines) => (200, lines.iter().map(|line| format!("{line}\n")).collect()),
        Reply::HangUp => {
            let error = || std::io::Error::other("hung up");
            let half = futures::stream::iter([Ok(Bytes::from_static(b"{\"id\"")), Err(error())]);
            return Response::new(Body::from_stream(half));
        }
    };
    Response::builder()
        .status(status)
        .body(text.into())
        .expect("a reply")
}

fn kind_of(method: &Method, path: &str) -> &'static str {
    match (method.as_str(), path.trim_start_matches("/messages")) {
        ("POST", "/files") => "upload",
        ("POST", "/batches") => "create",
        ("POST", _) => "cancel",
        ("DELETE", _) => "delete",
        (_, "/batches") => "list",
        (_, path) if path.ends_with("/content") || path.ends_with("/results") => "results",
        _ => "poll",
    }
}

/// The page of a list, newest first, after a cursor.
fn page(batches: &[Batch], query: &str, cursor: &str, show: impl Fn(&Batch) -> Value) -> Value {
    let value = |name: &str| {
        query
            .split('&')
            .find_map(|part| part.strip_prefix(&format!("{name}=")))
    };
    // Pages are small whatever limit is asked for, so that a client must follow them.
    let limit: usize = value("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(20)
        .min(2);
    let listed: Vec<&Batch> = batches
        .iter()
        .rev()
        .filter(|batch| !batch.is_deleted)
        .collect();
    let from = value(cursor)
        .and_then(|id| listed.iter().position(|batch| batch.id == id))
        .map_or(0, |at| at + 1);
    let shown: Vec<Value> = listed
        .iter()
        .skip(from)
        .take(limit)
        .map(|batch| show(batch))
        .collect();
    let has_more = from + shown.len() < listed.len();
    json!({"data": shown, "has_more": has_more, "object": "list"})
}

fn not_found() -> Reply {
    Reply::Json(
        404,
        json!({"error": {"message": "not found", "type": "not_found_error"}}),
    )
}

/// What a request asks, whether live or in a batch.
pub fn identity(body: &Value) -> String {
    let fields = body.as_object().into_iter().flatten();
    let asked: BTreeMap<_, _> = fields.filter(|(name, _)| *name != "stream").collect();
    json!(asked).to_string()
}

impl Book {
    fn live(&mut self, vendor: Vendor, body: &[u8]) -> Reply {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        self.live += 1;
        let billed = self.billed.get(&identity(&request)).copied().unwrap_or(0);
        let fate = (self.behaviour.live_fates)(&request, u8::try_from(billed).unwrap_or(u8::MAX));
        Reply::Json(200, self.reply(vendor, &request, &fate))
    }

    /// Requests that came, live and in batches.
    pub fn requests(&self) -> usize {
        self.live
            + self
                .batches
                .iter()
                .map(|batch| batch.lines.len())
                .sum::<usize>()
    }

    /// A billed reply.
    fn reply(&mut self, vendor: Vendor, request: &Value, fate: &Fate) -> Value {
        let name = identity(request);
        if self.in_batches.contains(&name) {
            self.repeated.push(name.clone());
        }
        *self.billed.entry(name).or_default() += 1;
        let text = match fate {
            Fate::Text(text) => (*text).to_owned(),
            _ => brain::reply(&as_chat(request)),
        };
        let (input, output) = (request.to_string().len() / 4, text.len() / 4 + 1);
        match vendor {
            Vendor::OpenAi => {
                let (reason, message) = match fate {
                    Fate::Search(words) => {
                        let arguments = json!({"query": words}).to_string();
                        let call = json!({"id": "r", "type": "function",
                            "function": {"name": "search", "arguments": arguments}});
                        (
                            "tool_calls",
                            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                        )
                    }
                    _ => ("stop", json!({"role": "assistant", "content": text})),
                };
                json!({"id": "c", "object": "chat.completion", "created": 0, "model": "small-1-2025",
                "choices": [{"index": 0, "finish_reason": reason, "message": message}],
                "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
            }
            Vendor::Anthropic => {
                json!({"id": "m", "type": "message", "role": "assistant", "model": "small-1-2025",
                "stop_reason": "end_turn", "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": input, "output_tokens": output}})
            }
        }
    }

    fn openai(&mut self, method: &Method, parts: &[&str], query: &str, body: &[u8]) -> Reply {
        match (method.as_str(), parts) {
            ("POST", ["files"]) => {
                let id = format!("file-{}", self.files.len() + 1);
                self.files.insert(id.clone(), uploaded(body));
                self.uploaded = Some(SystemTime::now());
                Reply::Json(200, json!({"id": id, "object": "file"}))
            }
            ("GET", ["files", id, "content"]) => self.content(id),
            ("DELETE", ["files", _]) => {
                self.files_deleted += 1;
                Reply::Json(200, json!({"deleted": true}))
            }
            ("POST", ["batches"]) => {
                let request: Value = serde_json::from_slice(body).unwrap_or_default();
                let lines = request["input_file_id"]
                    .as_str()
                    .and_then(|id| self.files.get(id))
                    .cloned();
                assert_eq!(request["endpoint"], "/v1/chat/completions");
                let nonce = request["metadata"]["compeval_nonce"].clone();
                self.create(lines.expect("an uploaded file"), nonce, openai_batch)
            }
            ("GET", ["batches"]) => {
                (0..self.batches.len()).for_each(|at| self.work(Vendor::OpenAi, at));
                Reply::Json(200, page(&self.batches, query, "after", openai_batch))
            }
            _ => self.one(Vendor::OpenAi, method, parts, openai_batch),
        }
    }

    fn anthropic(&mut self, method: &Method, parts: &[&str], query: &str, body: &[u8]) -> Reply {
        match (method.as_str(), parts) {
            ("POST", ["batches"]) => {
                let request: Value = serde_json::from_slice(body).unwrap_or_default();
                let lines = request["requests"].as_array().expect("requests").iter();
                let lines = lines.map(|line| {
                    (
                        line["custom_id"].as_str().unwrap_or("").into(),
                        line["params"].clone(),
                    )
                });
                if self.behaviour.refuses {
                    let error = json!({"type": "invalid_request_error", "message": "so it is"});
                    return Reply::Json(400, json!({"type": "error", "error": error}));
                }
                self.create(lines.collect(), Value::Null, anthropic_batch)
            }
            ("GET", ["batches"]) => {
                (0..self.batches.len()).for_each(|at| self.work(Vendor::Anthropic, at));
                Reply::Json(200, page(&self.batches, query, "after_id", anthropic_batch))
            }
            ("GET", ["batches", id, "results"]) => {
                let readings = self.behaviour.readings;
                match self.find(id) {
                    Some(batch) if batch.has_ended => {
                        Reply::Lines([batch.read(readings), batch.errors.clone()].concat())
                    }
                    _ => not_found(),
                }
            }
            ("DELETE", ["batches", id]) => {
                if let Some(batch) = self.find(id) {
                    batch.is_deleted = true;
                }
                Reply::Json(200, json!({"type": "message_batch_deleted"}))
            }
            _ => self.one(Vendor::Anthropic, method, parts, anthropic_batch),
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut Batch> {
        self.batches
            .iter_mut()
            .find(|batch| batch.id == id && !batch.is_deleted)
    }

    fn content(&mut self, file: &str) -> Reply {
        let Some((kind, id)) = file.split_once('-') else {
            return not_found();
        };
        let readings = self.behaviour.readings;
        match self.find(id) {
            Some(batch) if batch.has_lost_results => not_found(),
            Some(batch) if kind == "output" => Reply::Lines(batch.read(readings)),
            Some(batch) => Reply::Lines(batch.errors.clone()),
            None => not_found(),
        }
    }

    fn create(
        &mut self,
        lines: Vec<(String, Value)>,
        nonce: Value,
        show: impl Fn(&Batch) -> Value,
    ) -> Reply {
        for (id, body) in &lines {
            assert!(id.len() <= 64, "{id}");
            assert!(
                body["model"].is_string() && body["messages"].is_array(),
                "{body}"
            );
            assert!(body.get("stream").is_none() && body.get("service_tier").is_none());
        }
        let id = format!("batch_{}", self.batches.len() + 1);
        let open = self.batches.iter().filter(|batch| !batch.has_ended);
        let open: usize = open.map(|batch| batch.lines.len()).sum();
        let is_over_limit = open + lines.len() > self.behaviour.most_open;
        let is_refused = self.behaviour.refuses || is_over_limit;
        self.batches.push(Batch {
            id,
            nonce,
            lines,
            is_refused,
            is_over_limit,
            ..Batch::default()
        });
        if self.behaviour.lost_answers > 0 {
            self.behaviour.lost_answers -= 1;
            return Reply::HangUp;
        }
        Reply::Json(200, self.batches.last().map(show).unwrap_or_default())
    }

    /// Status or cancellation of one batch.
    fn one(
        &mut self,
        vendor: Vendor,
        method: &Method,
        parts: &[&str],
        show: impl Fn(&Batch) -> Value,
    ) -> Reply {
        let ["batches", id, rest @ ..] = parts else {
            return not_found();
        };
        let Some(at) = self
            .batches
            .iter()
            .position(|batch| batch.id == *id && !batch.is_deleted)
        else {
            return not_found();
        };
        if method == Method::POST && rest == ["cancel"] {
            self.batches[at].is_cancelled = true;
            self.batches[at].polls = 0;
            return Reply::Json(200, show(&self.batches[at]));
        }
        self.work(vendor, at);
        Reply::Json(200, show(&self.batches[at]))
    }

    /// Counts a poll of a batch, and ends the batch when it is time.
    fn work(&mut self, vendor: Vendor, at: usize) {
        let (polls, of_cancelled) = (self.behaviour.polls, self.behaviour.polls_of_cancelled);
        let batch = &mut self.batches[at];
        let enough = if batch.is_cancelled {
            of_cancelled
        } else {
            polls
        };
        batch.polls += 1;
        if batch.polls > enough && !batch.has_ended {
            self.end(vendor, at);
        }
    }

    /// Answers all lines of a batch, or half of a cancelled one. The results are in another order.
    fn end(&mut self, vendor: Vendor, at: usize) {
        let (lines, is_cancelled) = (
            self.batches[at].lines.clone(),
            self.batches[at].is_cancelled,
        );
        let fates = self.behaviour.fates.clone();
        self.batches[at].has_lost_results = self.behaviour.deletes_results;
        self.batches[at].ended_at = self.behaviour.ended_ago.map(|ago| SystemTime::now() - ago);
        if self.batches[at].is_refused {
            self.batches[at].has_ended = true;
            return;
        }
        let (mut output, mut errors, mut late) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, (id, body)) in lines.iter().enumerate().rev() {
            let attempt: u8 = id
                .get(44..46)
                .and_then(|digits| digits.parse().ok())
                .expect("an attempt");
            if is_cancelled && nth % 2 == 1 {
                errors.push(unanswered(vendor, id, "cancelled"));
                continue;
            }
            match fates(body, attempt) {
                Fate::Missing => {}
                Fate::Expired => {
                    self.batches[at].has_expired = true;
                    errors.push(unanswered(vendor, id, "expired"));
                }
                Fate::Cancelled => errors.push(unanswered(vendor, id, "cancelled")),
                Fate::Error(status) => errors.push(failed(vendor, id, status)),
                fate => {
                    let reply = self.reply(vendor, body, &fate);
                    self.in_batches.insert(identity(body));
                    let reply = match fate {
                        Fate::Empty => Value::Null,
                        _ => reply,
                    };
                    let line = answered(vendor, id, &reply);
                    output.extend((fate == Fate::Twice).then(|| line.clone()));
                    if fate == Fate::Late {
                        late.push(line)
                    } else {
                        output.push(line)
                    }
                }
            }
        }
        output.push(answered(vendor, "a-line-of-somebody-else", &json!({})));
        let batch = &mut self.batches[at];
        (batch.output, batch.errors, batch.late, batch.has_ended) = (output, errors, late, true);
    }
}

/// The request in OpenAI's dialect, which the rules read.
fn as_chat(request: &Value) -> Value {
    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(block) => {
                let inner = block.get("content").or_else(|| block.get("text"));
                inner.into_iter().for_each(|inner| texts(inner, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    texts(&request["system"], &mut found);
    texts(&request["messages"], &mut found);
    json!({"messages": [{"role": "user", "content": found.join("\n")}]})
}

/// The lines of the file in a multipart form.
fn uploaded(form: &[u8]) -> Vec<(String, Value)> {
    let text = String::from_utf8_lossy(form).into_owned();
    assert!(text.contains("name=\"purpose\"\r\n\r\nbatch\r\n"));
    let (_, file) = text.split_once("filename=").expect("a file");
    let (_, content) = file.split_once("\r\n\r\n").expect("its content");
    let (content, _) = content.split_once("\r\n--").expect("an end");
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!(
            (&line["method"], &line["url"]),
            (&json!("POST"), &json!("/v1/chat/completions"))
        );
        (
            line["custom_id"].as_str().expect("a name").to_owned(),
            line["body"].clone(),
        )
    };
    content.lines().map(line).collect()
}

fn answered(vendor: Vendor, id: &str, reply: &Value) -> Value {
    match vendor {
        Vendor::OpenAi => json!({"id": "r", "custom_id": id, "error": null,
            "response": {"status_code": 200, "request_id": "req_1", "body": reply}}),
        Vendor::Anthropic => {
            json!({"custom_id": id, "result": {"type": "succeeded", "message": reply}})
        }
    }
}

fn failed(vendor: Vendor, id: &str, status: u16) -> Value {
    let kind = match status {
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({"type": "error", "error": {"type": kind, "message": "so it is"}});
    match vendor {
        Vendor::OpenAi => json!({"id": "r", "custom_id": id, "error": null,
            "response": {"status_code": status, "request_id": "req_1", "body": error}}),
        Vendor::Anthropic => {
            json!({"custom_id": id, "result": {"type": "errored", "error": error}})
        }
    }
}

fn unanswered(vendor: Vendor, id: &str, why: &str) -> Value {
    match vendor {
        Vendor::OpenAi => json!({"id": "r", "custom_id": id, "response": null,
            "error": {"code": format!("batch_{why}"), "message": why}}),
        Vendor::Anthropic => {
            json!({"custom_id": id, "result": {"type": why.replace("cancelled", "canceled")}})
        }
    }
}

fn openai_batch(batch: &Batch) -> Value {
    let file = |kind: &str, lines: &[Value]| {
        if lines.is_empty() {
            Value::Null
        } else {
            json!(format!("{kind}-{}", batch.id))
        }
    };
    let status = match (batch.has_ended, batch.is_cancelled, batch.polls) {
        (true, ..) if batch.is_refused => "failed",
        (true, ..) if batch.has_expired => "expired",
        (true, true, _) => "cancelled",
        (true, false, _) => "completed",
        (false, true, _) => "cancelling",
        (false, false, 0) => "validating",
        (false, false, polls) if polls % 2 == 0 => "finalizing",
        (false, false, _) => "in_progress",
    };
    let fault = match batch.is_over_limit {
        true => json!({"code": "token_limit_exceeded", "param": null, "line": null,
            "message": "Enqueued token limit reached for small-1 in organization org-1. Limit: 90,000 enqueued tokens."}),
        false => {
            json!({"code": "invalid_json_line", "message": "so it is", "param": null, "line": 1})
        }
    };
    let errors = if status == "failed" {
        json!({"object": "list", "data": [fault]})
    } else {
        Value::Null
    };
    json!({"id": batch.id, "object": "batch", "status": status, "errors": errors,
        "metadata": {"compeval_nonce": batch.nonce},
        "input_file_id": "file-1", "output_file_id": file("output", &batch.output),
        "error_file_id": file("error", &batch.errors),
        "completed_at": batch.ended_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs()),
        "request_counts": {"total": batch.lines.len(), "completed": batch.output.len() + batch.late.len(),
            "failed": batch.errors.len()}})
}

fn anthropic_batch(batch: &Batch) -> Value {
    let status = match (batch.has_ended, batch.is_cancelled) {
        (true, _) => "ended",
        (false, true) => "canceling",
        (false, false) => "in_progress",
    };
    let archived = batch.has_lost_results.then_some("2026-01-01T00:00:00Z");
    let ended = batch
        .ended_at
        .and_then(|at| jiff::Timestamp::try_from(at).ok())
        .map(|at| at.to_string());
    json!({"id": batch.id, "type": "message_batch", "processing_status": status, "archived_at": archived,
        "ended_at": ended,
        "request_counts": {"processing": if batch.has_ended { 0 } else { batch.lines.len() },
            "succeeded": batch.output.len() + batch.late.len(), "errored": batch.errors.len(), "canceled": 0, "expired": 0}})
}
