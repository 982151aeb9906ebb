//! The vendors' batch APIs: a file of requests, answered within a day at a lower price. This file has the calls: create,
//! find, poll, read results, cancel, delete. `lines` turns requests into uploads and result lines into replies.
//!
//! A call that changes nothing, an upload or a cancellation is repeated after a failure that may pass. The call that creates
//! a batch is repeated only while the vendor has certainly not accepted it: a batch that is created twice is paid for twice.
//! If the answer to it was lost, [`BatchClient::find`] looks for the batch. OpenAI's batches carry the nonce of their
//! creation as metadata. Anthropic's have no metadata, so the ids of their requests end in the nonce. Only results show
//! these ids, so such a batch is recognized once it has ended; until then the search is undecided.
//!
//! Results are streamed, a few at a time, so that a batch of any size takes little memory. Reading them is not repeated
//! here after it broke off, because some results were handed on already.
//!
//! Not here: what the requests are for, what is stored, and when to poll.

mod lines;

pub use lines::{BatchRequest, BatchResult};

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::call::{CallFailure, ErrorClass};
use crate::classify::{AttemptError, Delivery};
use crate::dialects::{NEWER_VERSION, messages_path};
use crate::http::{ApiKey, Exchange, Http, HttpReply, Method, missing_key};
use crate::retry::RetryPolicy;
use crate::signs::has_any;
use crate::spec::{Dialect, KeyPlace, ProviderSpec};
use lines::{anthropic_batch, endpoint, openai_lines, read_line};

/// The timeout of calls with little content.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout of the upload of requests and of results.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(1800);
/// Attempts of a call that may be repeated.
const ATTEMPTS: u32 = 5;
/// The longest wait between two attempts, whatever the vendor asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Batches on a page of a list: the most that both vendors give.
const PAGE: u32 = 100;
/// The key of the nonce in OpenAI's metadata.
const NONCE: &str = "compeval_nonce";

/// How far a batch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStatus {
    /// The provider's name of the batch.
    pub id: String,
    /// `None` while it is worked on.
    pub ending: Option<BatchEnding>,
    /// Requests that are done, as the vendor counts.
    pub done: u64,
    /// How long ago it ended, by the vendor's clock; `None` if the vendor does not say.
    pub ended_for: Option<Duration>,
    /// Requests with a reply, as the vendor counts.
    answered: u64,
    /// The ids of the files of results (OpenAI), at most two.
    results: Vec<String>,
    /// The id of the file of requests (OpenAI).
    input: Option<String>,
}

/// How a batch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchEnding {
    /// There may be results: it was completed, cancelled, failed on the way, or ran out of time.
    Done,
    /// The vendor refused its requests as a whole, and nothing is billed. If the class is a rate limit, the account may not
    /// have so much in batches at once.
    Refused(CallFailure),
    /// The vendor no longer keeps its results.
    ResultsGone,
}

/// The outcome of a search for a batch whose creation was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchSearch {
    /// There is such a batch, with this id.
    Found(String),
    /// No batch of the account has the nonce.
    Absent,
    /// A batch that has not ended may be the one.
    Undecided,
}

/// The call that creates a batch.
#[derive(Clone, Debug)]
pub struct PreparedBatch {
    headers: Vec<(&'static str, &'static str)>,
    body: Bytes,
}

/// The batch API of one account.
pub struct BatchClient {
    http: Http,
    spec: ProviderSpec,
    key_place: KeyPlace,
    key: Option<ApiKey>,
    policy: RetryPolicy,
}

impl BatchClient {
    /// A client with the key of the environment.
    ///
    /// # Errors
    /// The key is not set.
    pub fn new(spec: &ProviderSpec) -> Result<BatchClient, CallFailure> {
        let key = spec.api_key.as_ref().and_then(ApiKey::from_environment);
        if let Some(variable) = spec.api_key.as_ref().filter(|_| key.is_none()) {
            return Err(missing_key(&spec.name, variable).failure(0));
        }
        let usual = || KeyPlace::usual(spec.dialect, &spec.base_url);
        Ok(BatchClient {
            http: Http::new(),
            spec: spec.clone(),
            key_place: spec.key_place.clone().unwrap_or_else(usual),
            key,
            policy: RetryPolicy::default(),
        })
    }

    /// A short fingerprint of the key, since another key sees other batches. 32 bits reveal nothing about a key.
    pub fn fingerprint(&self) -> u32 {
        self.key.as_ref().map_or(0, ApiKey::fingerprint)
    }

    fn is_anthropic(&self) -> bool {
        self.spec.dialect == Dialect::Anthropic
    }

    /// The path of the batches; `rest` begins with a slash, or is empty.
    fn batches_path(&self, rest: &str) -> String {
        let messages = if self.is_anthropic() {
            messages_path(&self.spec.base_url)
        } else {
            ""
        };
        format!("{messages}/batches{rest}")
    }

    /// A call without content.
    fn exchange<'e>(&'e self, method: Method, path: &'e str) -> Exchange<'e> {
        let headers: &[_] = if self.is_anthropic() {
            &[NEWER_VERSION]
        } else {
            &[]
        };
        Exchange {
            method,
            path,
            query: "",
            content_type: JSON,
            key_place: &self.key_place,
            headers,
            body: Bytes::new(),
        }
    }

    async fn send_once(&self, exchange: &Exchange<'_>) -> Result<HttpReply, AttemptError> {
        let timeout = if exchange.body.is_empty() {
            TIMEOUT
        } else {
            TRANSFER_TIMEOUT
        };
        let reply = self
            .http
            .send(&self.spec.base_url, exchange, self.key.as_ref(), timeout)
            .await?;
        reply.refusal().map_or(Ok(reply), Err)
    }

    /// Makes a call that may be made more than once.
    async fn send_repeatedly(&self, exchange: &Exchange<'_>) -> Result<HttpReply, CallFailure> {
        let mut attempt = 1;
        loop {
            match self.send_once(exchange).await {
                Ok(reply) => return Ok(reply),
                Err(fault) if attempt < ATTEMPTS && fault.is_retryable() => {
                    self.pause(&fault, attempt).await
                }
                Err(fault) => return Err(fault.failure(attempt)),
            }
            attempt += 1;
        }
    }

    async fn pause(&self, fault: &AttemptError, attempt: u32) {
        let wait = fault
            .wait
            .unwrap_or_else(|| self.policy.back_off(attempt, 0.0));
        tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
    }

    async fn get(&self, path: &str, query: &str) -> Result<Value, CallFailure> {
        let reply = self
            .send_repeatedly(&Exchange {
                query,
                ..self.exchange(Method::GET, path)
            })
            .await?;
        parse_body(&reply)
    }

    /// The newest batch of the account, where a later search needs to know it: Anthropic's batches have no metadata.
    pub async fn newest(&self) -> Result<Option<String>, CallFailure> {
        if !self.is_anthropic() {
            return Ok(None);
        }
        let page = self.get(&self.batches_path(""), "limit=1").await?;
        Ok(page["data"][0]["id"].as_str().map(str::to_owned))
    }

    /// Makes the call that creates a batch, with the headers of its first request. Uploads the requests where the vendor
    /// wants them first: nothing is billed by that.
    pub async fn prepare(
        &self,
        nonce: &str,
        requests: &[BatchRequest],
    ) -> Result<PreparedBatch, CallFailure> {
        if !self.is_anthropic() {
            return Ok(PreparedBatch {
                headers: Vec::new(),
                body: self.upload(nonce, requests).await?,
            });
        }
        let headers = requests
            .first()
            .map(|first| first.request.headers.clone())
            .unwrap_or_default();
        Ok(PreparedBatch {
            headers,
            body: anthropic_batch(requests).map_err(|error| unwritable(&error))?,
        })
    }

    /// Creates a batch and returns its id; `None` if it may have been created, although the call failed.
    ///
    /// # Errors
    /// The vendor refused it, or nothing was sent.
    pub async fn create(
        &self,
        PreparedBatch { headers, body }: &PreparedBatch,
    ) -> Result<Option<String>, CallFailure> {
        let path = self.batches_path("");
        let exchange = Exchange {
            headers,
            body: body.clone(),
            ..self.exchange(Method::POST, &path)
        };
        let mut attempt = 1;
        loop {
            let fault = match self.send_once(&exchange).await {
                Ok(reply) => match parse_body(&reply)
                    .ok()
                    .as_ref()
                    .and_then(|batch| batch["id"].as_str())
                {
                    Some(id) => return Ok(Some(id.to_owned())),
                    None => AttemptError::new(
                        ErrorClass::Malformed,
                        "the answer to a new batch names no id",
                    ),
                },
                Err(fault) => fault,
            };
            let may_exist = match fault.delivery {
                Delivery::NotSent => false,
                Delivery::Rejected => fault.may_be_outage(),
                Delivery::MaybeProcessed => true,
            };
            if may_exist {
                tracing::warn!(
                    "the creation of a batch was not confirmed: {}",
                    fault.message
                );
                return Ok(None);
            }
            if attempt >= ATTEMPTS || !fault.is_retryable() {
                return Err(self.hint_if_not_found(fault.failure(attempt)));
            }
            self.pause(&fault, attempt).await;
            attempt += 1;
        }
    }

    /// Adds a hint if the address was not found.
    fn hint_if_not_found(&self, failure: CallFailure) -> CallFailure {
        if failure.class != ErrorClass::NotFound {
            return failure;
        }
        let hint = format!(
            "`{}` has no batch API at this address: use lane = \"live\"",
            self.spec.name
        );
        CallFailure {
            hint: Some(hint),
            ..failure
        }
    }

    /// Uploads the requests. Returns the body of the call that creates the batch.
    async fn upload(&self, nonce: &str, requests: &[BatchRequest]) -> Result<Bytes, CallFailure> {
        let lines = openai_lines(requests).map_err(|error| unwritable(&error))?;
        let boundary = format!("compeval-{nonce}");
        let mut form = Vec::with_capacity(lines.len() + 512);
        form.extend(
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{boundary}\r\n\
                 Content-Disposition: form-data; name=\"file\"; filename=\"{nonce}.jsonl\"\r\n\
                 Content-Type: application/jsonl\r\n\r\n"
            )
            .bytes(),
        );
        form.extend(&lines);
        form.extend(format!("\r\n--{boundary}--\r\n").bytes());
        let kind = format!("multipart/form-data; boundary={boundary}");
        let exchange = Exchange {
            content_type: &kind,
            body: form.into(),
            ..self.exchange(Method::POST, "/files")
        };
        let uploaded = self.send_repeatedly(&exchange).await;
        let uploaded = parse_body(&uploaded.map_err(|failure| self.hint_if_not_found(failure))?)?;
        let Some(file) = uploaded["id"].as_str() else {
            return Err(malformed("the answer to an upload names no file"));
        };
        let path = requests
            .first()
            .map(|first| endpoint(&first.request))
            .unwrap_or_default();
        let body = json!({"input_file_id": file, "endpoint": path, "completion_window": "24h", "metadata": {NONCE: nonce}});
        Ok(body.to_string().into())
    }

    /// Asks how far a batch is.
    pub async fn status(&self, id: &str) -> Result<BatchStatus, CallFailure> {
        let path = self.batches_path(&format!("/{id}"));
        let reply = self
            .send_repeatedly(&self.exchange(Method::GET, &path))
            .await?;
        let batch = parse_body(&reply)?;
        let status = if self.is_anthropic() {
            anthropic_status(id, &batch)
        } else {
            openai_status(id, &batch)
        };
        let ended_for =
            ended_at(&batch).map(|end| reply.at.duration_since(end).unwrap_or_default());
        Ok(BatchStatus {
            ended_for,
            ..status
        })
    }

    /// Looks for the batch with a nonce whose creation was not confirmed. `newest` was the newest batch before it was
    /// created; `known` are other batches of this cache.
    pub async fn find(
        &self,
        nonce: &str,
        newest: Option<&str>,
        known: &[String],
    ) -> Result<BatchSearch, CallFailure> {
        let cursor = if self.is_anthropic() {
            "after_id"
        } else {
            "after"
        };
        let (path, mut query) = (self.batches_path(""), format!("limit={PAGE}"));
        let mut unless_found = BatchSearch::Absent;
        loop {
            let page = self.get(&path, &query).await?;
            let batches = listed(&page)?;
            for batch in batches {
                let Some(id) = batch["id"].as_str() else {
                    continue;
                };
                if newest == Some(id) {
                    return Ok(unless_found);
                }
                if known.iter().any(|known| known == id) {
                    continue;
                }
                match self.is_ours(nonce, id, batch).await? {
                    Some(true) => return Ok(BatchSearch::Found(id.to_owned())),
                    Some(false) => {}
                    None => unless_found = BatchSearch::Undecided,
                }
            }
            let last = batches.last().and_then(|batch| batch["id"].as_str());
            let Some(last) = last.filter(|_| page["has_more"].as_bool() == Some(true)) else {
                return Ok(unless_found);
            };
            let next = format!("limit={PAGE}&{cursor}={last}");
            if next == query {
                // The server ignores the cursor, and would give this page without end.
                return Ok(BatchSearch::Undecided);
            }
            query = next;
        }
    }

    /// Whether a listed batch has the nonce; `None` if only its results would tell and it has not ended.
    async fn is_ours(
        &self,
        nonce: &str,
        id: &str,
        batch: &Value,
    ) -> Result<Option<bool>, CallFailure> {
        if !self.is_anthropic() {
            return Ok(Some(batch["metadata"][NONCE] == nonce));
        }
        let status = anthropic_status(id, batch);
        match status.ending {
            None => Ok(None),
            Some(BatchEnding::Done) => {
                // One result is enough, so the first one ends the reading.
                let mut first = None;
                let read = self.results(&status, async |results: Vec<BatchResult>| {
                    first = results.into_iter().next();
                    if first.is_some() { Err(()) } else { Ok(()) }
                });
                let missing = read.await?.unwrap_or(0);
                // If replies are missing, there may be a first one later.
                Ok(first
                    .map(|result| result.id.ends_with(nonce))
                    .or((missing == 0).then_some(false)))
            }
            Some(BatchEnding::Refused(_) | BatchEnding::ResultsGone) => Ok(Some(false)),
        }
    }

    /// Reads the results of a batch as they arrive and hands on some at a time, in the vendor's order. A line that
    /// cannot be read is left out, as if it were missing. Returns how many replies the vendor counts that are missing: they
    /// may be billed.
    ///
    /// # Errors
    /// The vendor's failure. The inner error comes from `each` and ends the reading.
    pub async fn results<E>(
        &self,
        status: &BatchStatus,
        mut each: impl AsyncFnMut(Vec<BatchResult>) -> Result<(), E>,
    ) -> Result<Result<u64, E>, CallFailure> {
        let (dialect, mut received) = (self.spec.dialect, 0);
        let paths: Vec<String> = match self.is_anthropic() {
            true => vec![self.batches_path(&format!("/{}/results", status.id))],
            false => status
                .results
                .iter()
                .map(|file| format!("/files/{file}/content"))
                .collect(),
        };
        for path in &paths {
            let exchange = self.exchange(Method::GET, path);
            let read = async |lines: Vec<Bytes>| {
                let results = lines.iter().filter_map(|line| {
                    let result = read_line(dialect, line);
                    result
                        .inspect_err(|error| {
                            tracing::warn!(
                                batch = status.id,
                                "a result line is unreadable: {error}"
                            )
                        })
                        .ok()
                });
                let results: Vec<BatchResult> = results.collect();
                let replies = results.iter().filter(|result| result.reply.is_ok());
                received += replies.count() as u64;
                each(results).await
            };
            let base_url = &self.spec.base_url;
            let done = self
                .http
                .lines(
                    base_url,
                    &exchange,
                    self.key.as_ref(),
                    TRANSFER_TIMEOUT,
                    read,
                )
                .await;
            match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Ok(Err(error)),
                Err(fault) => return Err(fault.failure(1)),
            }
        }
        Ok(Ok(status.answered.saturating_sub(received)))
    }

    /// Asks the vendor to end a batch early. It still takes a while to end.
    pub async fn cancel(&self, id: &str) -> Result<(), CallFailure> {
        self.send_repeatedly(
            &self.exchange(Method::POST, &self.batches_path(&format!("/{id}/cancel"))),
        )
        .await
        .map(drop)
    }

    /// Removes requests and results from the vendor's storage, as far as it lets us.
    pub async fn delete(&self, status: &BatchStatus) {
        let paths: Vec<String> = match self.is_anthropic() {
            true => vec![self.batches_path(&format!("/{}", status.id))],
            false => status
                .input
                .iter()
                .chain(&status.results)
                .map(|file| format!("/files/{file}"))
                .collect(),
        };
        for path in paths {
            if let Err(fault) = self.send_once(&self.exchange(Method::DELETE, &path)).await {
                tracing::debug!(path, "not deleted: {}", fault.message);
            }
        }
    }
}

const JSON: &str = "application/json";

fn parse_body(reply: &HttpReply) -> Result<Value, CallFailure> {
    let read = serde_json::from_slice(&reply.body);
    read.map_err(|error| malformed(format!("the batch API's answer is no JSON: {error}")))
}

/// The failure of a call whose answer is not what the API promises.
fn malformed(message: impl Into<String>) -> CallFailure {
    AttemptError::new(ErrorClass::Malformed, message).failure(1)
}

/// The batches on a page of a list. Another answer is not taken for an empty list: the batch that is searched would count as
/// absent, and its requests would be sent and paid for again.
fn listed(page: &Value) -> Result<&[Value], CallFailure> {
    match &page["data"] {
        Value::Array(batches) => Ok(batches),
        // as some servers write an empty list
        Value::Null if page["object"] == "list" => Ok(&[]),
        _ => Err(malformed("the batch API's answer is no list of batches")),
    }
}

fn unwritable(error: &serde_json::Error) -> CallFailure {
    AttemptError::new(
        ErrorClass::Invalid,
        format!("the requests cannot be written: {error}"),
    )
    .failure(0)
}

fn openai_status(id: &str, batch: &Value) -> BatchStatus {
    let ending = match batch["status"].as_str().unwrap_or_default() {
        "completed" | "expired" | "cancelled" => Some(BatchEnding::Done),
        // It failed while it was worked on: what was done by then may be billed.
        "failed" if file_id(batch, "output_file_id").is_some() => Some(BatchEnding::Done),
        "failed" => Some(BatchEnding::Refused(refusal_of(batch))),
        _ => None,
    };
    BatchStatus {
        id: id.to_owned(),
        ending,
        done: request_count(batch, "completed") + request_count(batch, "failed"),
        ended_for: None,
        answered: request_count(batch, "completed"),
        results: ["output_file_id", "error_file_id"]
            .into_iter()
            .filter_map(|name| file_id(batch, name))
            .collect(),
        input: file_id(batch, "input_file_id"),
    }
}

/// The id of a file of a batch. Where there is no file, OpenAI writes an empty text or null.
fn file_id(batch: &Value, name: &str) -> Option<String> {
    batch[name]
        .as_str()
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
}

/// How many requests of a batch are in this state. Both vendors report it in the same place.
fn request_count(batch: &Value, state: &str) -> u64 {
    batch["request_counts"][state].as_u64().unwrap_or(0)
}

/// Why the vendor refused a file of requests.
fn refusal_of(batch: &Value) -> CallFailure {
    let errors = batch["errors"]["data"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let texts = errors.iter().take(3).map(|error| {
        let [code, message] =
            ["code", "message"].map(|name| error[name].as_str().unwrap_or_default());
        let line = error["line"]
            .as_u64()
            .map(|line| format!(" (line {line})"))
            .unwrap_or_default();
        format!("{code}: {message}{line}")
    });
    let mut why = texts.collect::<Vec<_>>().join("; ");
    if why.is_empty() {
        why.push_str("no reason is given");
    }
    let is_limit = has_any(&why.to_lowercase(), "token_limit_exceeded|enqueued token");
    let class = if is_limit {
        ErrorClass::RateLimited
    } else {
        ErrorClass::Invalid
    };
    AttemptError::new(class, format!("the provider refused the batch: {why}")).failure(1)
}

/// When a batch ended, by the vendor's clock.
fn ended_at(batch: &Value) -> Option<SystemTime> {
    let seconds = ["completed_at", "expired_at", "cancelled_at"]
        .into_iter()
        .find_map(|name| batch[name].as_u64());
    let at_openai = seconds
        .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    at_openai.or_else(|| Some(base::clock::moment(batch["ended_at"].as_str()?)?.into()))
}

fn anthropic_status(id: &str, batch: &Value) -> BatchStatus {
    let has_ended = batch["processing_status"] == "ended";
    let is_archived = batch["archived_at"].is_string();
    let states = ["succeeded", "errored", "canceled", "expired"];
    let done: u64 = states.iter().map(|state| request_count(batch, state)).sum();
    let ended = if is_archived {
        BatchEnding::ResultsGone
    } else {
        BatchEnding::Done
    };
    BatchStatus {
        id: id.to_owned(),
        ending: has_ended.then_some(ended),
        done,
        ended_for: None,
        answered: request_count(batch, "succeeded"),
        results: Vec::new(),
        input: None,
    }
}
