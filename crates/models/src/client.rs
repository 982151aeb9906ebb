//! The client: budget, rate limiters, request, counts, and the retry loop of all calls except to batch APIs. A successful
//! reply is handed to the caller to store before it is read, so that nothing that was paid for can be lost to a reading error.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Billing, Call, CallFailure, Completion, ErrorClass, RawReply, ReadFault};
use super::classify::{AttemptError, BLOCKED, Delivery, Throttle, upstream};
use super::connection::{Account, ModelConnection, ProviderConnection, shared_limits};
use super::dialects::{self, HttpRequest};
use super::estimate::checked_usage;
use super::http::{ApiKey, Exchange, Http, missing_key};
use super::limits::{AnnouncedLimits, Permit, ProviderStatus, Ticket, TokenDemand};
use super::retry::{AttemptBudget, AttemptCost, AttemptCounts, RetryPolicy};
use super::spec::{ApiKeyVariable, Dialect, ModelName, ProviderName, ProviderSpec};
use base::random::Random;
use base::units::{Tokens, Usage};

/// Asks models. A process has one and shares it by reference.
pub struct Client {
    http: Http,
    connections: BTreeMap<ProviderName, ProviderConnection>,
    policy: RetryPolicy,
    counts: Arc<RequestCounts>,
    /// The seed of the next jitter.
    jitter_state: AtomicU64,
}

/// What clients have sent.
#[derive(Debug, Default)]
pub struct RequestCounts {
    /// Requests, also those that failed.
    pub sent: AtomicU64,
    /// Requests that a provider refused because of a limit.
    pub rate_limited: AtomicU64,
    /// Failed attempts that were repeated with the same bytes.
    pub retries: AtomicU64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskFailure<E, R> {
    /// The provider gave none within the allowed attempts.
    Call(CallFailure),
    /// A reply arrived, but the caller could not store it.
    Store(E),
    /// The budget allows no further attempt.
    OverBudget(R),
    /// It was cancelled while it waited to be sent or sent again.
    Cancelled,
}

impl<E, R> From<CallFailure> for AskFailure<E, R> {
    fn from(failure: CallFailure) -> AskFailure<E, R> {
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
        let specs: Vec<Arc<ProviderSpec>> = specs
            .into_iter()
            .filter(|s| s.dialect != Dialect::Lexical)
            .collect();
        let mut accounts: BTreeMap<(String, Option<Arc<str>>), Arc<Account>> = BTreeMap::new();
        let mut connections = BTreeMap::new();
        for spec in &specs {
            let identity = (
                spec.base_url.clone(),
                spec.api_key.as_ref().map(|v| v.0.clone()),
            );
            let account = accounts.entry(identity);
            let account =
                account.or_insert_with(|| Arc::new(Account::new(&shared_limits(spec, &specs))));
            let connection = ProviderConnection::new(
                spec.clone(),
                spec.api_key.as_ref().and_then(&key),
                account.clone(),
            );
            connections.insert(spec.name.clone(), connection);
        }
        let jitter_state = AtomicU64::new(u64::from(std::process::id()));
        Client {
            http: Http::new(),
            connections,
            policy: RetryPolicy::default(),
            counts: Arc::default(),
            jitter_state,
        }
    }

    /// Counts its requests in `counts`.
    pub fn with_counts(self, counts: Arc<RequestCounts>) -> Client {
        Client { counts, ..self }
    }

    /// Uses `policy` between attempts.
    pub fn with_retry_policy(self, policy: RetryPolicy) -> Client {
        Client { policy, ..self }
    }

    /// The status of every model used so far, by provider and model.
    pub fn statuses(&self) -> Vec<ProviderStatus> {
        self.connections
            .values()
            .flat_map(ProviderConnection::statuses)
            .collect()
    }

    /// Whether a model that was used before is unavailable now.
    pub fn is_unavailable(&self, provider: &ProviderName, model: &ModelName) -> bool {
        self.model(provider, model)
            .is_some_and(|model| model.limiter.is_unavailable())
    }

    /// Whether a model has answered a call of this client.
    pub fn has_answered(&self, provider: &ProviderName, model: &ModelName) -> bool {
        self.model(provider, model)
            .is_some_and(|model| model.limiter.answered() > 0)
    }

    /// How many calls to a model wait before they are sent again; they hold no slot.
    pub fn delayed(&self, provider: &ProviderName, model: &ModelName) -> usize {
        self.model(provider, model)
            .map_or(0, |model| model.delayed())
    }

    fn model(&self, provider: &ProviderName, model: &ModelName) -> Option<Arc<ModelConnection>> {
        Some(self.connections.get(provider)?.model(model))
    }

    /// The variable that should hold the key of `provider` but is not set; `None` if none is missing.
    pub fn missing_key(&self, provider: &ProviderName) -> Option<&ApiKeyVariable> {
        let connection = self.connections.get(provider)?;
        connection
            .spec
            .api_key
            .as_ref()
            .filter(|_| connection.key.is_none())
    }

    /// Sends `call` until it is answered or cannot be. `expected` is its [`estimate`](super::estimate()). `budget` is
    /// asked before every attempt and may cancel one that waits. `store` is awaited with every successful reply before
    /// it is read, including one that turns out not to be an answer.
    ///
    /// # Errors
    /// The last failed attempt, an error of `store`, or that the budget ended the call.
    pub async fn ask<B, S, F, E>(
        &self,
        provider: &ProviderName,
        call: &Call,
        expected: (Tokens, Tokens),
        budget: &B,
        mut store: S,
    ) -> Result<(RawReply, Completion), AskFailure<E, B::Refusal>>
    where
        B: AttemptBudget,
        S: FnMut(&RawReply) -> F,
        F: Future<Output = Result<(), E>>,
    {
        let mut prepared = self.prepare(provider, call, expected)?;
        let mut counts = AttemptCounts::after(budget.unusable_before());
        loop {
            let (error, pause) = match self
                .budgeted_attempt(&prepared, &mut counts, budget, &mut store)
                .await?
            {
                Ok(answered) => return Ok(answered),
                Err(failed) => failed,
            };
            if let Some(field) = prepared.model.learn(&error, &prepared.request) {
                tracing::info!(%provider, model = %call.model, "asking again without `{field}`, or with another one: {}", error.message);
                prepared = self.prepare(provider, prepared.call, expected)?;
                continue;
            }
            if prepared.model.is_failing(&error) {
                let hint = "other models of the provider work: is this one loaded, and able to do what is asked of it?";
                let class = ErrorClass::Failing;
                return Err(AttemptError { class, ..error }
                    .with_hint(hint)
                    .failure(counts.sent)
                    .into());
            }
            let Some(wait) = self.wait_for_next(&prepared, &mut counts, &error, pause) else {
                let waited = counts.waited > prepared.policy.wait_budget;
                return Err(prepared
                    .model
                    .limiter
                    .final_error(error, waited)
                    .failure(counts.sent)
                    .into());
            };
            // All others to the model may wait longer than this call by itself.
            let least = wait.max(pause.unwrap_or_default());
            tracing::info!(%provider, model = %call.model, attempts = counts.sent, wait = ?least, "retrying after: {}", error.message);
            self.counts.retries.fetch_add(1, Ordering::Relaxed);
            let _delayed = prepared.model.delay();
            run_until(budget.cancelled(), tokio::time::sleep(wait))
                .await
                .ok_or(AskFailure::Cancelled)?;
        }
    }

    /// Makes one attempt within the budget, stores the reply and then reads it. The inner error may be retried.
    async fn budgeted_attempt<B, S, F, E>(
        &self,
        prepared: &PreparedCall<'_>,
        counts: &mut AttemptCounts,
        budget: &B,
        store: &mut S,
    ) -> Result<Result<(RawReply, Completion), FailedAttempt>, AskFailure<E, B::Refusal>>
    where
        B: AttemptBudget,
        S: FnMut(&RawReply) -> F,
        F: Future<Output = Result<(), E>>,
    {
        let reservation = budget.reserve().map_err(AskFailure::OverBudget)?;
        let (limiter, account) = (
            &prepared.model.limiter,
            &prepared.connection.account.limiter,
        );
        let acquired = limiter.acquire(account, prepared.need, prepared.policy.wait_budget);
        let permits = match run_until(budget.cancelled(), acquired).await {
            Some(Ok(permits)) => permits,
            ended => {
                budget.release(reservation);
                let Some(wait) = ended.and_then(Result::err) else {
                    return Err(AskFailure::Cancelled);
                };
                let error = prepared
                    .policy
                    .waits_too_long(&prepared.connection.spec.name, wait);
                return Err(error.failure(counts.sent).into());
            }
        };
        let (reply, ticket) = match self.attempt(prepared, counts, permits).await {
            Ok(answered) => answered,
            Err(failed) => {
                let cost = match failed.0.delivery {
                    Delivery::MaybeProcessed => AttemptCost::Unknown,
                    Delivery::NotSent | Delivery::Rejected => AttemptCost::Free,
                };
                budget.settle(reservation, cost);
                return Ok(Err(failed));
            }
        };
        budget.settle(reservation, AttemptCost::Reported(&reply.usage));
        store(&reply).await.map_err(AskFailure::Store)?;
        let read = prepared.read(&reply, ticket);
        Ok(read
            .map(|completion| (reply, completion))
            .map_err(|error| (error, None)))
    }

    /// How long to wait before the next attempt; `None` if there is none.
    fn wait_for_next(
        &self,
        prepared: &PreparedCall<'_>,
        counts: &mut AttemptCounts,
        error: &AttemptError,
        pause: Option<Duration>,
    ) -> Option<Duration> {
        let limiter = &prepared.model.limiter;
        // While the provider answers this or other requests, the fault may lie with this request alone, so its
        // attempts count.
        let answered = limiter.answered();
        let is_answering =
            error.status.is_some() || answered > *counts.answered.get_or_insert(answered);
        let pause =
            pause.filter(|_| !(error.may_be_outage() && error.wait.is_none() && is_answering));
        if limiter.is_given_up() {
            return None;
        }
        counts.next(
            error,
            pause,
            prepared.connection.spec.limits.max_attempts,
            &prepared.policy,
            self.jitter(),
        )
    }

    fn prepare<'a>(
        &'a self,
        provider: &ProviderName,
        call: &'a Call,
        expected: (Tokens, Tokens),
    ) -> Result<PreparedCall<'a>, CallFailure> {
        let connection = self.connections.get(provider).ok_or_else(|| {
            AttemptError::new(
                ErrorClass::Invalid,
                format!("no provider is called `{provider}`"),
            )
            .failure(0)
        })?;
        if let Some(variable) = self.missing_key(provider) {
            return Err(missing_key(provider, variable).failure(0));
        }
        self.http
            .warm_up(&connection.spec.base_url)
            .map_err(|fault| fault.failure(0))?;
        let request = dialects::request(&connection.spec, call)
            .map_err(|e| AttemptError::new(ErrorClass::Invalid, e.to_string()).failure(0))?;
        let model = connection.model(&call.model);
        let request = model.without_refused(request);
        let need = model.demand(expected.0, expected.1);
        let give_up_after = connection.spec.limits.give_up_after;
        let policy = RetryPolicy {
            wait_budget: give_up_after.unwrap_or(self.policy.wait_budget),
            ..self.policy
        };
        Ok(PreparedCall {
            connection,
            policy,
            model,
            call,
            request,
            expected: expected.0,
            need,
        })
    }

    /// Sends one request. Its permits are released before the reply is handed on.
    async fn attempt(
        &self,
        prepared: &PreparedCall<'_>,
        counts: &mut AttemptCounts,
        permits: (Permit<'_>, Permit<'_>),
    ) -> Result<(RawReply, Option<Ticket>), FailedAttempt> {
        let connection = prepared.connection;
        let spec = &connection.spec;
        counts.sent += 1;
        tracing::debug!(provider = %spec.name, "sending a request");
        self.counts.sent.fetch_add(1, Ordering::Relaxed);
        let (sent, timeout) = (Instant::now(), spec.limits.timeout);
        let answer = self
            .http
            .send(
                &spec.base_url,
                &Exchange::new(&prepared.request, &connection.key_place),
                connection.key.as_ref(),
                timeout,
            )
            .await;
        let ticket = permits.0.ticket();
        drop(permits);
        let reply = match answer {
            Ok(reply) => reply,
            Err(fault) => {
                return Err(self.record_failure(
                    prepared,
                    fault,
                    ticket,
                    sent,
                    &AnnouncedLimits::default(),
                ));
            }
        };
        let announced = reply.headers.announced(reply.at);
        if let Some(mut fault) = reply.refusal() {
            if fault.class == ErrorClass::Auth && connection.key.is_none() {
                let hint = "no key was sent: name its variable in api_key_env";
                fault.hint = Some(hint.to_owned());
            }
            let is_forbidden = fault.class == ErrorClass::Auth && fault.status == Some(403);
            if is_forbidden && prepared.model.limiter.answered() > 0 {
                fault.class = ErrorClass::Invalid;
                fault.hint = Some(BLOCKED.to_owned());
            }
            return Err(self.record_failure(prepared, fault, ticket, sent, &announced));
        }
        prepared.model.limiter.succeeded(ticket, &announced);
        prepared
            .model
            .takes_schema
            .fetch_or(prepared.call.schema.is_some(), Ordering::Relaxed);
        let latency = sent.elapsed();
        let request_id = reply.headers.request_id().map(str::to_owned);
        let (dialect, body, attempts, memory) =
            (spec.dialect, reply.body, counts.sent, reply.memory);
        let Billing { model, usage } = dialects::read_billing(dialect, &body);
        let (usage, usage_warning) = checked_usage(
            usage,
            prepared.call,
            prepared.request.body.len(),
            prepared.expected,
            &body,
        );
        let reply = RawReply {
            dialect,
            body,
            model,
            usage,
            request_id,
            latency,
            attempts,
            usage_warning,
            memory,
        };
        Ok((reply, ticket))
    }

    /// Adapts the limits to a failure. Returns it with the pause that it causes for all requests.
    fn record_failure(
        &self,
        prepared: &PreparedCall<'_>,
        fault: AttemptError,
        ticket: Option<Ticket>,
        sent: Instant,
        announced: &AnnouncedLimits,
    ) -> FailedAttempt {
        if fault.took_no_tokens() {
            prepared
                .connection
                .account
                .limiter
                .settle(None, prepared.need, TokenDemand::default());
        }
        if matches!(fault.throttle, Some(Throttle::Rate | Throttle::Concurrency)) {
            tracing::info!(provider = %prepared.connection.spec.name, "refused because of a limit");
            self.counts.rate_limited.fetch_add(1, Ordering::Relaxed);
        }
        let limiter = &prepared.model.limiter;
        let pause = limiter.failed(&fault, ticket, sent, announced, &prepared.policy);
        (fault, pause)
    }

    /// A uniform value in 0..1, which spreads retries over time.
    fn jitter(&self) -> f64 {
        Random::seeded(self.jitter_state.fetch_add(1, Ordering::Relaxed)).uniform()
    }
}

/// Why an attempt yielded no answer, and the pause that it causes for all requests.
type FailedAttempt = (AttemptError, Option<Duration>);

/// A call ready to be sent, with the bytes that every attempt sends.
struct PreparedCall<'a> {
    connection: &'a ProviderConnection,
    policy: RetryPolicy,
    model: Arc<ModelConnection>,
    call: &'a Call,
    request: HttpRequest,
    expected: Tokens,
    need: TokenDemand,
}

impl PreparedCall<'_> {
    /// Records what the reply used and reads it.
    fn read(&self, reply: &RawReply, ticket: Option<Ticket>) -> Result<Completion, AttemptError> {
        self.model.observe(self.expected, &reply.usage);
        let used = self.used(&reply.usage);
        self.model.limiter.settle(ticket, self.need, used);
        self.connection
            .account
            .limiter
            .settle(None, self.need, used);
        let read = dialects::read(
            reply.dialect,
            self.call.operation,
            &reply.body,
            Some(self.expected),
        );
        let limit = self.call.settings.max_output_tokens;
        read.map_err(|fault| unusable(fault, &reply.body, &reply.usage, limit))
    }

    /// The tokens that count against the limits; a count that the provider did not report stays as reserved.
    fn used(&self, usage: &Usage) -> TokenDemand {
        let free = match self.connection.spec.dialect {
            // Reads from the prompt cache do not count here.
            Dialect::Anthropic => usage.cached_input.unwrap_or_default().0,
            _ => 0,
        };
        TokenDemand {
            input: usage
                .input
                .map_or(self.need.input, |n| n.0.saturating_sub(free)),
            output: usage.output.map_or(self.need.output, |n| n.0),
        }
    }
}

/// The output of `work`, or `None` if `end` completes first.
async fn run_until<T>(end: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = end => None,
        done = work => Some(done),
    }
}

/// The failure of a call whose reply was cut off although only a whole one is of use.
pub fn truncated_call(reply: &RawReply, call: &Call) -> CallFailure {
    truncated(&reply.usage, call.settings.max_output_tokens).failure(reply.attempts)
}

/// A reply cut off by a token limit: the stage's or, where it set none, the server's own or the end of its window.
fn truncated(usage: &Usage, limit: Option<Tokens>) -> AttemptError {
    let fault = AttemptError::from(ReadFault::Truncated);
    let length = usage
        .output
        .map_or(String::new(), |n| format!(" after {} tokens", n.0));
    let hint = match limit {
        Some(limit) => format!("max_output_tokens of this stage is {}: raise it (reasoning counts towards it), unless the model only \
             repeats itself, as small ones do",
            limit.0),
        None => "this stage sets no max_output_tokens, so the server's own limit or the end of its window was \
                 reached: set one, or enlarge the window"
        .to_owned(),
    };
    AttemptError {
        message: format!("{}{length}", fault.message),
        hint: Some(hint),
        ..fault
    }
}

/// The error of a reply that is not an answer.
fn unusable(fault: ReadFault, body: &[u8], usage: &Usage, limit: Option<Tokens>) -> AttemptError {
    let error = match fault {
        ReadFault::Truncated => truncated(usage, limit),
        ReadFault::Upstream(_) => upstream(fault, &dialects::readable(body)),
        ReadFault::Malformed(_) if body.trim_ascii_start().starts_with(b"<") => {
            let hint = "the reply is a web page: does base_url name the API? It mostly ends in /v1";
            AttemptError::from(fault).with_hint(hint)
        }
        other => other.into(),
    };
    let has_output = usage.output.is_some_and(|output| output.0 > 0);
    AttemptError {
        is_billed: has_output && error.class.is_retryable(),
        ..error
    }
}

/// The failure of a request of a batch whose reply is not an answer, and whether another reply may be one. `limit` is the
/// most tokens that the reply was allowed.
pub fn reply_failure(
    fault: ReadFault,
    dialect: Dialect,
    body: &[u8],
    limit: Option<Tokens>,
) -> (CallFailure, bool) {
    let usage = dialects::read_billing(dialect, body).usage;
    let error = unusable(fault, body, &usage, limit);
    let is_retryable = error.is_retryable();
    (error.failure(1), is_retryable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn a_client_may_be_shared_between_threads() {
        fn assert_shareable<T: Send + Sync>(_: &T) {}
        assert_shareable(&Client::new([]));
    }

    #[test]
    fn a_truncated_reply_says_whose_limit_it_was() {
        let used = Usage {
            output: Some(Tokens(800)),
            ..Usage::default()
        };
        let ours = truncated(&used, Some(Tokens(800)));
        assert_eq!(
            (ours.class, ours.is_retryable()),
            (ErrorClass::Truncated, false)
        );
        assert!(
            ours.message.ends_with("token limit after 800 tokens"),
            "{}",
            ours.message
        );
        assert!(
            ours.hint
                .is_some_and(|hint| hint.contains("is 800: raise it"))
        );
        let theirs = truncated(&Usage::default(), None);
        assert!(
            theirs.message.ends_with("token limit"),
            "{}",
            theirs.message
        );
        assert!(
            theirs
                .hint
                .is_some_and(|hint| hint.contains("sets no max_output_tokens"))
        );
    }

    #[test]
    fn providers_at_one_address_keep_the_strictest_of_their_limits() {
        let spec = |name: &str, requests: Option<u64>, in_flight: Option<u32>| {
            Arc::new(ProviderSpec {
                name: name.into(),
                dialect: Dialect::OpenaiChat,
                base_url: "http://127.0.0.1:1".into(),
                api_key: None,
                endpoint: name.into(),
                limits: Limits {
                    rates: crate::RatesPerMinute {
                        requests,
                        ..Default::default()
                    },
                    max_in_flight: in_flight,
                    ..Limits::default()
                },
                lane: Default::default(),
                key_place: None,
            })
        };
        let all = [spec("a", Some(100), None), spec("b", Some(50), Some(8))];
        let limits = shared_limits(&all[0], &all);
        assert_eq!(
            (limits.rates.requests, limits.max_in_flight),
            (Some(50), Some(8))
        );
        let client = Client::new(all);
        let account = |name: &str| {
            client
                .connections
                .get(&name.into())
                .map(|connection| connection.account.clone())
                .unwrap()
        };
        assert!(Arc::ptr_eq(&account("a"), &account("b")));
    }
}
