//! What a failed attempt means: its class, the provider's message, and what the user can do.

use std::time::Duration;

use serde_json::{Value, json};

use super::call::{CallFailure, ErrorClass, ReadFault};
use super::dialects::{beginning, error_text, is_filled};
use super::signs::{OF_A_DAY, SIGNS, has_any};
use base::text::plain;

/// A failure of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttemptError {
    pub class: ErrorClass,
    /// The status of the reply, if one came.
    pub status: Option<u16>,
    pub message: String,
    pub hint: Option<String>,
    /// The limit that the provider enforced, if it did.
    pub throttle: Option<Throttle>,
    /// The kind of rate limit, if the error names one.
    pub limit: Option<LimitKind>,
    /// How long the provider asks to wait.
    pub wait: Option<Duration>,
    /// Whether the provider itself says that a retry may help.
    pub should_retry: Option<bool>,
    /// How far the request got.
    pub delivery: Delivery,
    /// Whether a reply arrived that lacks the answer: nobody can read it, or the provider counts output for it.
    pub is_billed: bool,
}

/// How far a failed request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// No connection was established: nothing was sent.
    NotSent,
    /// The provider rejected it, so it costs nothing.
    Rejected,
    /// There was no answer, or a gateway ended its wait for one. The provider may have processed it, so it may be billed.
    MaybeProcessed,
}

impl Delivery {
    /// How far a request got that was answered with a status other than 2xx.
    pub(super) fn from_status(status: u16) -> Delivery {
        match status {
            504 | 524 => Delivery::MaybeProcessed,
            _ => Delivery::Rejected,
        }
    }
}

/// Which limit a provider enforced by rejecting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Throttle {
    /// Too many requests or tokens a minute.
    Rate,
    /// Too many requests in flight.
    Concurrency,
    /// The provider is overloaded, independently of our rate.
    Overloaded,
}

/// What a rate limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    Requests,
    Tokens,
    Input,
    Output,
}

impl LimitKind {
    pub(super) const ALL: [LimitKind; 4] = [
        LimitKind::Requests,
        LimitKind::Tokens,
        LimitKind::Input,
        LimitKind::Output,
    ];
}

impl AttemptError {
    /// Whether the provider may be down, rather than the request wrong.
    pub(super) fn may_be_outage(&self) -> bool {
        matches!(self.class, ErrorClass::Overloaded | ErrorClass::Transient)
    }

    /// Whether the provider certainly worked on no token of the request. Before a server error or a gateway's time-out, a
    /// model may have.
    pub(super) fn took_no_tokens(&self) -> bool {
        match self.delivery {
            Delivery::NotSent => true,
            Delivery::Rejected => self.class != ErrorClass::Transient,
            Delivery::MaybeProcessed => false,
        }
    }

    pub(super) fn new(class: ErrorClass, message: impl Into<String>) -> AttemptError {
        AttemptError {
            class,
            status: None,
            message: message.into(),
            hint: None,
            throttle: None,
            limit: None,
            wait: None,
            should_retry: None,
            delivery: Delivery::MaybeProcessed,
            is_billed: false,
        }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> AttemptError {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of a call whose last attempt ended with this error.
    pub(super) fn failure(self, attempts: u32) -> CallFailure {
        CallFailure {
            class: self.class,
            message: self.message,
            hint: self.hint,
            attempts,
        }
    }

    /// Whether sending the same bytes again may help.
    pub(super) fn is_retryable(&self) -> bool {
        self.should_retry
            .filter(|_| !self.class.is_terminal())
            .unwrap_or(self.class.is_retryable())
    }
}

impl From<ReadFault> for AttemptError {
    fn from(fault: ReadFault) -> AttemptError {
        let class = match &fault {
            ReadFault::Malformed(_) | ReadFault::CalledTool(_) => ErrorClass::Malformed,
            ReadFault::Empty => ErrorClass::Empty,
            ReadFault::Upstream(_) => ErrorClass::Transient,
            ReadFault::Truncated => ErrorClass::Truncated,
            ReadFault::Refused(_) => ErrorClass::Refused,
            ReadFault::PromptCut { .. } => ErrorClass::TooLong,
        };
        let hint = match class {
            ErrorClass::Truncated => {
                Some("raise max_output_tokens of this stage; reasoning counts towards it".into())
            }
            ErrorClass::TooLong => Some(
                "raise the server's context size (llama-server: -c, Ollama: OLLAMA_CONTEXT_LENGTH)"
                    .into(),
            ),
            _ => None,
        };
        // Retrying until the model calls no tool would hide what it does.
        let should_retry = matches!(fault, ReadFault::CalledTool(_)).then_some(false);
        AttemptError {
            hint,
            should_retry,
            ..AttemptError::new(class, fault.to_string())
        }
    }
}

/// The error inside a successful status. A router passes on the status of the provider behind it as `code`; others have
/// a word there.
pub(super) fn upstream(fault: ReadFault, body: &[u8]) -> AttemptError {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let choice = value
        .as_ref()
        .and_then(|value| value.pointer("/choices/0/error"));
    let error = choice
        .filter(|error| error.is_object())
        .or(value.as_ref())
        .map(inner);
    let Some(error) = error.filter(|error| error.is_object() || error.is_string()) else {
        return fault.into();
    };
    let number = |name: &&str| match &error[*name] {
        Value::String(code) => code.parse().ok(),
        code => u16::try_from(code.as_u64()?).ok(),
    };
    let status = ["code", "status", "status_code", "statusCode", "http_status"]
        .iter()
        .filter_map(number)
        .find(|code| (400..600).contains(code));
    let status = status.unwrap_or_else(|| {
        let said = plain(&error_text(&error));
        status_of(&plain_words(&words(&error, value.as_ref())), &said)
    });
    // The provider's limits accepted the request: it is not throttled, and each attempt counts.
    let classified = classify(status, json!({ "error": error }).to_string().as_bytes());
    AttemptError {
        message: fault.to_string(),
        throttle: None,
        ..classified
    }
}

/// The status that a server would send with these code words and this message, all as [`plain`] makes them; that of an
/// unknown error for others. That a model is unknown only a code word says: `invalid model output` is another matter.
fn status_of(codes: &[String], message: &str) -> u16 {
    const STATUSES: [(u16, &str); 6] = [
        (
            401,
            "apikey|apisecretkey|loginfail|authenticat|unauthorized|permission|accessdenied|invalidtoken",
        ),
        (405, "unexpectedendpoint"),
        (
            404,
            "modelnotfound|modelnotexist|modeldoesnotexist|nosuchmodel|unknownmodel|invalidmodel",
        ),
        (429, "ratelimit|throttl|toomanyrequests|resourceexhausted"),
        (503, "overload|unavailable|capacity"),
        (
            400,
            "invalidrequest|badrequest|invalidargument|invalidparameter",
        ),
    ];
    let is_one_of = |parts: &str| codes.iter().any(|code| has_any(code, parts));
    let status = STATUSES
        .iter()
        .find(|(status, parts)| is_one_of(parts) || *status != 404 && has_any(message, parts));
    status.map_or(500, |(status, _)| *status)
}

/// Reads a reply whose status is not 2xx, in any of the shapes that servers use.
pub(super) fn classify(status: u16, body: &[u8]) -> AttemptError {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let error = &value.as_ref().map_or(Value::Null, inner);
    let text = match &value {
        Some(value) => error_text(value),
        None if body.iter().all(u8::is_ascii_whitespace) => "(empty body)".to_owned(),
        None => beginning(body, 300),
    };
    let named = words(error, value.as_ref());
    let (codes, lower) = (plain_words(&named), text.to_lowercase());
    // Google names the limit of a day, and the wait, in the details alone.
    let detailed = format!("{lower} {error}").to_lowercase();
    let is_of_day = status == 429
        && has_any(&detailed, OF_A_DAY)
        // The limit of a day as Groq and OpenAI have it frees tokens all the time.
        && wait_after(&lower, "try again in").is_none_or(|wait| wait >= AN_HOUR);
    let class = match class_of(status, &codes, &lower) {
        ErrorClass::RateLimited if is_of_day => ErrorClass::Quota,
        class => class,
    };
    let mut message: String = text.chars().take(2048).collect();
    if let Some(code) = named.first() {
        message = format!("{code}: {message}");
    }
    let mut fault = AttemptError::new(class, format!("HTTP {status}: {message}"));
    fault.status = Some(status);
    fault.throttle = throttle(class, &codes, &lower);
    fault.hint = if is_of_day {
        Some(
            "a limit of a day or longer: run again when it is reset; what was answered is kept"
                .into(),
        )
    } else {
        hint(status, class, error, &lower)
    };
    fault.limit = limit_kind(&named, &lower);
    fault.wait = body_wait(&detailed, &named).filter(|_| !is_of_day);
    fault
}

const AN_HOUR: Duration = Duration::from_secs(3600);

/// The object that describes the error, inside arrays, wrappers and texts.
fn inner(value: &Value) -> Value {
    const WRAPPERS: [&str; 4] = ["error", "errors", "detail", "base_resp"];
    let inside = match value {
        Value::Array(list) => list.first().map(inner),
        Value::Object(fields) => {
            let parts = WRAPPERS.iter().filter_map(|name| fields.get(*name));
            let text = fields.get("error").filter(|error| error.is_string());
            parts
                .clone()
                .find(|inside| is_filled(inside))
                .map(inner)
                .or_else(|| quoted(text?))
        }
        _ => quoted(value),
    };
    inside.unwrap_or_else(|| value.clone())
}

/// The error in a text, as gateways quote that of the provider behind them.
fn quoted(text: &Value) -> Option<Value> {
    let text = text.as_str()?;
    let (_, json) = text.split_at(text.find('{')?);
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    Some(inner(&values.next()?.ok()?))
}

/// Every code word of an error, the most specific first. Numbers repeat the status and are left out.
fn words(error: &Value, whole: Option<&Value>) -> Vec<String> {
    let behind = [&error["message"], &error["metadata"]["raw"]];
    let behind = behind.into_iter().filter_map(quoted);
    let mut words: Vec<String> = behind.flat_map(|error| words(&error, None)).collect();
    let own = [
        &error["details"]["error_code"],
        &error["innererror"]["code"],
        &error["code"],
        &error["error_code"],
        &error["type"],
        &error["status"],
        &error["__type"],
    ];
    let is_code = |text: &&str| !text.contains(char::is_whitespace);
    let own = own.into_iter().filter_map(Value::as_str);
    let own = own.chain(error["error"].as_str().filter(is_code));
    let outer = whole
        .and_then(|w| w["type"].as_str())
        .filter(|t| *t != "error");
    let is_word = |word: &&str| word.parse::<u16>().is_err() && !word.is_empty();
    words.extend(own.chain(outer).filter(is_word).map(str::to_owned));
    words
}

/// The code words as [`SIGNS`] has them: in lower case, without punctuation.
fn plain_words(words: &[String]) -> Vec<String> {
    words.iter().map(|word| plain(word)).collect()
}

fn class_of(status: u16, codes: &[String], text: &str) -> ErrorClass {
    // A limit of the account, not the model's window: no method is to blame for it.
    if matches!(status, 413 | 429) && text.contains(OVER_THE_RATE) {
        return ErrorClass::Invalid;
    }
    // Pydantic says the one of every field, and xAI the other of every refused text.
    let text = &text
        .replace("input should be", "")
        .replace("api key id", "");
    if let Some(sign) = SIGNS.iter().find(|sign| sign.fits(status, codes, text)) {
        return sign.class;
    }
    match status {
        // Groq: the model's reply did not fit the schema.
        _ if codes.iter().any(|code| code == "jsonvalidatefailed") => ErrorClass::Malformed,
        401 => ErrorClass::Auth,
        402 => ErrorClass::Quota,
        404 | 405 => ErrorClass::NotFound,
        413 => ErrorClass::TooLong,
        429 => ErrorClass::RateLimited,
        451 => ErrorClass::Refused,
        503 | 529 => ErrorClass::Overloaded,
        408 | 409 | 425 | 500.. => ErrorClass::Transient,
        _ => ErrorClass::Invalid,
    }
}

/// How OpenAI, with status 429, and Groq, with 413, refuse a request that alone has more tokens than the account may use a
/// minute. It would never pass, however long it waits.
const OVER_THE_RATE: &str = "request too large for";

fn throttle(class: ErrorClass, codes: &[String], text: &str) -> Option<Throttle> {
    let has_code = |part: &str| codes.iter().any(|code| code.contains(part));
    match class {
        ErrorClass::RateLimited if has_any(text, "concurren|in parallel") => {
            Some(Throttle::Concurrency)
        }
        ErrorClass::RateLimited if has_code("overloaded") => Some(Throttle::Overloaded),
        ErrorClass::RateLimited => Some(Throttle::Rate),
        ErrorClass::Overloaded => Some(Throttle::Overloaded),
        _ => None,
    }
}

/// The kind of limit that a refusal names: OpenAI in `type`, OpenAI and Anthropic in words.
fn limit_kind(words: &[String], text: &str) -> Option<LimitKind> {
    const KINDS: [(LimitKind, &str, &str); 4] = [
        (
            LimitKind::Input,
            "input tokens per minute|input_tokens",
            "input_tokens",
        ),
        (
            LimitKind::Output,
            "output tokens per minute|output_tokens",
            "output_tokens",
        ),
        (LimitKind::Tokens, "tokens per min|(tpm)", "tokens"),
        (LimitKind::Requests, "requests per min|(rpm)", "requests"),
    ];
    let is_named = |code: &str| words.iter().any(|word| word == code);
    let kind = KINDS
        .iter()
        .find(|(_, phrases, code)| has_any(text, phrases) || is_named(code));
    kind.map(|(kind, ..)| *kind)
}

/// What to do about a 403 that says nothing of the key, or comes although the key has worked.
pub(super) const BLOCKED: &str = "the server gives no reason that is known: the key may lack a permission, or a filter blocks this text";

fn hint(status: u16, class: ErrorClass, error: &Value, text: &str) -> Option<String> {
    let words = match class {
        ErrorClass::Auth => {
            "check the key in the variable that api_key_env names, and what it may do"
        }
        ErrorClass::Quota => "the account's money or plan limit is reached; nothing more will pass",
        ErrorClass::TooLong => return Some(hint_of_too_long(error, text)),
        ErrorClass::RateLimited => {
            "declare requests_per_minute or tokens_per_minute below the provider's limit"
        }
        ErrorClass::NotFound if text.contains("model") => {
            "check the model's name as this provider spells it"
        }
        ErrorClass::NotFound => {
            "check base_url: it ends before the endpoint's own path, mostly in /v1"
        }
        ErrorClass::Invalid if text.contains(OVER_THE_RATE) => {
            "the request alone has more tokens than the account may use a minute: have that limit raised, or take an \
             earlier compression point"
        }
        ErrorClass::Invalid if (300..400).contains(&status) => {
            "check base_url: the server redirects"
        }
        ErrorClass::Invalid if status == 403 => BLOCKED,
        ErrorClass::Invalid => {
            let setting = SETTINGS.iter().find(|(names, _)| has_any(text, names))?.1;
            return Some(format!(
                "the server refuses {setting}: change or remove it in this stage"
            ));
        }
        _ => return None,
    };
    Some(words.to_owned())
}

/// How servers name settings that a stage may have, and how a pipeline does.
const SETTINGS: [(&str, &str); 3] = [
    ("temperature", "temperature"),
    ("effort", "effort"),
    (
        "max_tokens|max_completion_tokens|max_output_tokens|maxoutputtokens|max_new_tokens|maximum tokens you",
        "max_output_tokens",
    ),
];

/// What to do about a prompt that the window cannot hold.
fn hint_of_too_long(error: &Value, text: &str) -> String {
    match (error["n_prompt_tokens"].as_u64(), error["n_ctx"].as_u64()) {
        (Some(got), Some(limit)) => format!("the prompt has {got} tokens, the window {limit}: enlarge it (llama-server: -c), or take an earlier point"),
        // vLLM and OpenAI count the room for the reply too.
        _ if has_any(text, "in the completion|max_tokens") => "prompt and max_output_tokens exceed the window together: lower that, or take a larger window"
        .to_owned(),
        _ => "take a model with a larger window, or an earlier compression point"
        .to_owned(),
    }
}

/// What stands before a wait in an error, in words or, as in Google's `RetryInfo`, as the name of a field.
const BEFORE_WAITS: &str =
    "try again in|try again after|retry in|retry after|please wait|wait for|resets in|retrydelay";

/// A wait that the body, in lower case, announces, and that of a local server that is loading its model.
fn body_wait(text: &str, words: &[String]) -> Option<Duration> {
    if words.iter().any(|word| word == "unavailable_error") {
        return Some(Duration::from_secs(2));
    }
    let mut before = BEFORE_WAITS.split('|');
    before.find_map(|before| wait_after(text, before))
}

/// The wait that a text names behind these words: `7m12.5s`, `800ms`, `20 seconds`.
fn wait_after(text: &str, before: &str) -> Option<Duration> {
    let (_, said) = text.split_once(before)?;
    let said = said.trim_start_matches([' ', ':', '"', '\\']);
    // The longest of its beginnings that is a time.
    let ends = said.match_indices(|c: char| !c.is_alphanumeric());
    let ends = ends.map(|(at, _)| at).take(8).chain([said.len()]);
    ends.filter_map(|end| duration(said.get(..end)?)).last()
}

/// A duration in Go's notation or in words: `120ms`, `6m0s`, `1h2m3.5s`, `20 seconds`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let duration: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok()
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
