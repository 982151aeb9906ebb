//! The client: the only retry loop. Permit, fair queue, pause, rates, then the wire; a reply is handed to the caller
//! to keep before it is read.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::api::{Billing, Call, CallFailure, Completion, ErrorClass, RawReply, ReadFault};
use super::classify::{Fault, Pressure, Reach, classify};
use super::dialect;
use super::event::{ClientEvent, Listener};
use super::gate::{Gate, Pass};
use super::headers::{Announced, Headers};
use super::http::{ApiKey, Http, HttpReply};
use super::line::{Lane, Line, account, shared_limits};
use super::meter::{Bill, Meter};
use super::rates::Need;
use super::retry::{Patience, Tally};
use super::spec::{ApiKeyVariable, Dialect, ModelName, ProviderName, ProviderSpec};
use super::standing::Standing;
use super::wire::HttpRequest;
use crate::units::{Tokens, Usage};

/// Asks models. One for a process; shared by reference.
pub struct Client {
    http: Http,
    lines: BTreeMap<ProviderName, Line>,
    patience: Patience,
    listener: Listener,
    /// Source of jitter.
    dice: AtomicU64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskFailure<E> {
    /// The provider yielded none within the attempts allowed.
    #[error(transparent)]
    Call(CallFailure),
    /// The reply arrived, but the caller could not keep it.
    #[error("a reply could not be kept")]
    Keep(E),
    /// The meter let no further attempt through.
    #[error("no further request is allowed")]
    NotAdmitted,
    /// It was called off before it was sent, or sent again.
    #[error("no further request is wanted")]
    CalledOff,
}

impl<E> From<CallFailure> for AskFailure<E> {
    fn from(failure: CallFailure) -> AskFailure<E> {
        AskFailure::Call(failure)
    }
}

impl Client {
    /// A client for `specs`, with keys from the environment.
    pub fn new(specs: impl IntoIterator<Item = Arc<ProviderSpec>>) -> Client {
        Client::with_keys(specs, ApiKey::from_environment)
    }

    /// A client that looks its keys up with `key`, once each.
    pub fn with_keys(
        specs: impl IntoIterator<Item = Arc<ProviderSpec>>,
        key: impl Fn(&ApiKeyVariable) -> Option<ApiKey>,
    ) -> Client {
        let specs: Vec<Arc<ProviderSpec>> = specs.into_iter().filter(|s| s.dialect != Dialect::Lexical).collect();
        let mut accounts: BTreeMap<(String, Option<Arc<str>>), Arc<Gate>> = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for spec in &specs {
            let identity = (spec.base_url.clone(), spec.api_key.as_ref().map(|v| v.0.clone()));
            let gate = accounts.entry(identity).or_insert_with(|| Arc::new(account(&shared_limits(spec, &specs))));
            let line = Line::new(spec.clone(), spec.api_key.as_ref().and_then(&key), gate.clone());
            lines.insert(spec.name.clone(), line);
        }
        let dice = AtomicU64::new(u64::from(std::process::id()));
        Client { http: Http::new(), lines, patience: Patience::default(), listener: Arc::new(|_| ()), dice }
    }

    /// Tells `listener` what happens.
    pub fn listened_by(self, listener: impl Fn(&ClientEvent) + Send + Sync + 'static) -> Client {
        Client { listener: Arc::new(listener), ..self }
    }

    /// Waits as `patience` says.
    pub fn with_patience(self, patience: Patience) -> Client {
        Client { patience, ..self }
    }

    /// How the models that were asked so far are doing, by provider and model.
    pub fn standings(&self) -> Vec<Standing> {
        self.lines.values().flat_map(Line::standings).collect()
    }

    /// Whether nothing gets through to a model that was asked before.
    pub fn is_away(&self, provider: &ProviderName, model: &ModelName) -> bool {
        self.lines.get(provider).is_some_and(|line| line.lane(model).gate.is_away())
    }

    /// The variable that should hold the key of `provider` and does not; `None` if all is well.
    pub fn missing_key(&self, provider: &ProviderName) -> Option<&ApiKeyVariable> {
        let line = self.lines.get(provider)?;
        line.spec.api_key.as_ref().filter(|_| line.key.is_none())
    }

    /// Sends `call` until it is answered or cannot be. `expected` is its [`estimate`](super::estimate()). `meter` is
    /// asked before every attempt, and may call off what waits for its turn. `keep` is awaited with every successful
    /// reply, also one that turns out to be no answer, before it is read.
    ///
    /// # Errors
    /// The last failure, that of `keep`, or the word of the meter.
    pub async fn ask<M, K, F, E>(
        &self,
        provider: &ProviderName,
        call: &Call,
        expected: (Tokens, Tokens),
        meter: &M,
        mut keep: K,
    ) -> Result<(RawReply, Completion), AskFailure<E>>
    where
        M: Meter,
        K: FnMut(&RawReply) -> F,
        F: Future<Output = Result<(), E>>,
    {
        let errand = self.errand(provider, call, expected)?;
        let mut tally = Tally::default();
        loop {
            let set_aside = meter.admit().ok_or(AskFailure::NotAdmitted)?;
            let turn = errand.lane.gate.enter(&errand.line.account, errand.need);
            let Some(passes) = unless(meter.called_off(), turn).await else {
                meter.give_back(set_aside);
                return Err(AskFailure::CalledOff);
            };
            let attempt = self.attempt(&errand, &mut tally, passes).await;
            let (fault, held) = match attempt {
                Err((fault, held)) => {
                    meter.settle(set_aside, if fault.reach == Reach::Worked { Bill::Unknown } else { Bill::Free });
                    (fault, held)
                }
                Ok(reply) => {
                    meter.settle(set_aside, Bill::Reported(&reply.usage));
                    keep(&reply).await.map_err(AskFailure::Keep)?;
                    match errand.read(&reply) {
                        Ok(completion) => return Ok((reply, completion)),
                        Err(fault) => (fault, None),
                    }
                }
            };
            // Whoever answers, this request or others, may find fault with this request alone: its attempts count.
            let answered = errand.lane.gate.answered();
            let is_heard = fault.reach == Reach::TurnedAway || answered > *tally.answered.get_or_insert(answered);
            let held = held.filter(|_| !(fault.is_out() && fault.wait.is_none() && is_heard));
            let limits = &errand.line.spec.limits;
            let Some(wait) = tally.next(&fault, held, limits.max_attempts, &self.patience, self.jitter()) else {
                let waited = tally.waited > self.patience.wait_budget;
                return Err(failure(errand.lane.gate.last_word(fault, waited), tally.sent).into());
            };
            tracing::debug!(%provider, attempts = tally.sent, ?wait, "asking again after: {}", fault.message);
            let (provider, model) = (provider.clone(), call.model.clone());
            self.tell(ClientEvent::Retrying { provider, model, class: fault.class, cause: fault.message, wait });
            unless(meter.called_off(), tokio::time::sleep(wait)).await.ok_or(AskFailure::CalledOff)?;
        }
    }

    fn errand<'a>(
        &'a self,
        provider: &ProviderName,
        call: &'a Call,
        expected: (Tokens, Tokens),
    ) -> Result<Errand<'a>, CallFailure> {
        let line = self.lines.get(provider).ok_or_else(|| {
            failure(Fault::new(ErrorClass::Invalid, format!("no provider is called `{provider}`")), 0)
        })?;
        if let Some(variable) = self.missing_key(provider) {
            let fault =
                Fault::new(ErrorClass::Auth, format!("provider `{provider}` has no key: {} is not set", variable.0));
            return Err(failure(fault.hinted(format!("set {} to the provider's API key", variable.0)), 0));
        }
        let request = dialect::request(&line.spec, call)
            .map_err(|e| failure(Fault::new(ErrorClass::Invalid, e.to_string()), 0))?;
        let lane = line.lane(&call.model);
        let need = lane.need(expected);
        Ok(Errand { line, lane, call, request, expected: expected.0, need })
    }

    /// One request. Its places among those in flight are given back before the reply is handed on.
    async fn attempt(
        &self,
        errand: &Errand<'_>,
        tally: &mut Tally,
        passes: (Pass<'_>, Pass<'_>),
    ) -> Result<RawReply, (Fault, Option<Duration>)> {
        let line = errand.line;
        let spec = &line.spec;
        tally.sent += 1;
        self.tell(ClientEvent::Sent { provider: spec.name.clone() });
        let sent = Instant::now();
        let answer = self.http.send(&spec.base_url, &errand.request, line.key.as_ref(), spec.limits.timeout).await;
        drop(passes);
        let reply = match answer {
            Ok(reply) => reply,
            Err(fault) => return Err(self.refused(errand, fault, sent, &Announced::default())),
        };
        let announced = reply.headers.announced(reply.at);
        if let Some(fault) = refusal(&reply) {
            return Err(self.refused(errand, fault, sent, &announced));
        }
        errand.lane.gate.served(&announced);
        let latency = sent.elapsed();
        self.tell(ClientEvent::Answered { provider: spec.name.clone(), latency });
        let request_id = reply.headers.request_id().map(str::to_owned);
        let (dialect, body, attempts) = (spec.dialect, reply.body, tally.sent);
        let Billing { model, usage } = dialect::read_billing(dialect, &body);
        Ok(RawReply { dialect, body, model, usage, request_id, latency, attempts })
    }

    /// Slows down as the failure demands; answers it with how long everyone is held back because of it.
    fn refused(
        &self,
        errand: &Errand<'_>,
        fault: Fault,
        sent: Instant,
        announced: &Announced,
    ) -> (Fault, Option<Duration>) {
        let provider = errand.line.spec.name.clone();
        if fault.pressure.is_some() {
            // A request that was turned away at the door took no tokens.
            errand.settle(Need::default());
        }
        if fault.pressure.is_some_and(|p| p != Pressure::Overloaded) {
            self.tell(ClientEvent::RateLimited { provider: provider.clone() });
        }
        let held = errand.lane.gate.failed(&fault, sent, announced, &self.patience);
        if let Some(wait) = held {
            self.tell(ClientEvent::Paused { provider, model: errand.call.model.clone(), wait });
        }
        (fault, held)
    }

    fn tell(&self, event: ClientEvent) {
        (self.listener)(&event);
    }

    /// An even spread over 0..1; it decides about milliseconds only.
    fn jitter(&self) -> f64 {
        let step = self.dice.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        (step >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A call on its way, with the bytes that every attempt sends.
struct Errand<'a> {
    line: &'a Line,
    lane: Arc<Lane>,
    call: &'a Call,
    request: HttpRequest,
    expected: Tokens,
    need: Need,
}

impl Errand<'_> {
    fn read(&self, reply: &RawReply) -> Result<Completion, Fault> {
        self.lane.observe(self.expected, &reply.usage);
        self.settle(self.used(&reply.usage));
        let read = dialect::read(reply.dialect, self.call.operation, &reply.body, Some(self.expected));
        read.map_err(|fault| match fault {
            ReadFault::Truncated => cut_off(&reply.usage, self.call.settings.max_output_tokens),
            other => other.into(),
        })
    }

    /// What the limits count; what the provider did not report stays as reserved.
    fn used(&self, usage: &Usage) -> Need {
        let free = match self.line.spec.dialect {
            // Reads from the prompt cache do not count here.
            Dialect::Anthropic => usage.cached_input.unwrap_or_default().0,
            _ => 0,
        };
        Need {
            input: usage.input.map_or(self.need.input, |n| n.0.saturating_sub(free)),
            output: usage.output.map_or(self.need.output, |n| n.0),
        }
    }

    fn settle(&self, used: Need) {
        self.lane.gate.settle(self.need, used);
        self.line.account.settle(self.need, used);
    }
}

/// What `work` comes to, unless `end` comes first.
async fn unless<T>(end: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = end => None,
        done = work => Some(done),
    }
}

/// A reply that its token limit cut off: ours, or where none was sent, the server's own or the end of its window.
fn cut_off(usage: &Usage, limit: Option<Tokens>) -> Fault {
    let fault = Fault::from(ReadFault::Truncated);
    let told = usage.output.map_or(String::new(), |n| format!(" after {} tokens", n.0));
    let hint = match limit {
        Some(limit) => format!(
            "max_output_tokens of this stage is {}: raise it (reasoning counts towards it), unless the model only \
             repeats itself, as small ones do",
            limit.0
        ),
        None => "this stage sets no max_output_tokens, so the server's own limit or the end of its window was \
                 reached: set one, or enlarge the window"
            .to_owned(),
    };
    Fault { message: format!("{}{told}", fault.message), hint: Some(hint), ..fault }
}

/// What a reply of another status than 2xx means.
fn refusal(reply: &HttpReply) -> Option<Fault> {
    if (200..300).contains(&reply.status) {
        return None;
    }
    let mut fault = Fault { reach: Reach::TurnedAway, ..classify(reply.status, &reply.body) };
    fault.wait = reply.headers.wait(reply.at).or(fault.wait);
    fault.should_retry = reply.headers.should_retry();
    fault.message = with_request_id(fault.message, &reply.headers);
    Some(fault)
}

fn with_request_id(message: String, headers: &Headers) -> String {
    match headers.request_id() {
        Some(id) => format!("{message} (request {id})"),
        None => message,
    }
}

fn failure(fault: Fault, attempts: u32) -> CallFailure {
    CallFailure { class: fault.class, message: fault.message, hint: fault.hint, attempts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Limits;

    #[test]
    fn a_client_may_be_shared_between_threads() {
        fn shared<T: Send + Sync>(_: &T) {}
        shared(&Client::new([]));
    }

    #[test]
    fn a_reply_cut_off_tells_whose_limit_it_was() {
        let used = Usage { output: Some(Tokens(800)), ..Usage::default() };
        let ours = cut_off(&used, Some(Tokens(800)));
        assert_eq!((ours.class, ours.may_pass()), (ErrorClass::Truncated, false));
        assert!(ours.message.ends_with("token limit after 800 tokens"), "{}", ours.message);
        assert!(ours.hint.is_some_and(|hint| hint.contains("is 800: raise it")));
        let theirs = cut_off(&Usage::default(), None);
        assert!(theirs.message.ends_with("token limit"), "{}", theirs.message);
        assert!(theirs.hint.is_some_and(|hint| hint.contains("sets no max_output_tokens")));
    }

    #[test]
    fn providers_at_one_address_keep_the_strictest_of_their_limits() {
        let spec = |name: &str, requests: Option<u32>, in_flight: Option<u32>| {
            Arc::new(ProviderSpec {
                name: name.into(),
                dialect: Dialect::OpenaiChat,
                base_url: "http://127.0.0.1:1".into(),
                api_key: None,
                endpoint: name.into(),
                limits: Limits { requests_per_minute: requests, max_in_flight: in_flight, ..Limits::default() },
            })
        };
        let all = [spec("a", Some(100), None), spec("b", Some(50), Some(8))];
        let limits = shared_limits(&all[0], &all);
        assert_eq!((limits.requests_per_minute, limits.max_in_flight), (Some(50), Some(8)));
        let client = Client::new(all);
        let account = |name: &str| client.lines.get(&name.into()).map(|line| line.account.clone()).unwrap();
        assert!(Arc::ptr_eq(&account("a"), &account("b")));
    }
}
