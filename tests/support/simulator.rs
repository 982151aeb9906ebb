//! A provider on loopback in all three dialects. It enforces rate limits, announces them in each vendor's headers, and
//! fails with given rates. The fate of a request depends on the seed, the request and how often it came, never on the
//! order of arrival.

#![allow(dead_code, reason = "each test and bench uses a part")]

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use serde_json::json;

use vendor::Level;
pub use vendor::reply;

mod vendor;

/// How limits are announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Not at all; a 429 says nothing but its status.
    #[default]
    Silent,
    /// `x-ratelimit-*` with Go durations, and `retry-after-ms`.
    OpenAi,
    /// `anthropic-ratelimit-*` with times, and `retry-after`.
    Anthropic,
}

/// What the provider is like.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Decides about faults.
    pub seed: u64,
    /// From request to reply.
    pub latency: Duration,
    /// How limits are announced.
    pub style: Style,
    /// Requests a minute.
    pub requests_per_minute: Option<u64>,
    /// Input and output tokens a minute, as reported in usage.
    pub tokens_per_minute: Option<u64>,
    /// Seconds of the rate that may come at once.
    pub burst_s: f64,
    /// Share of requests that meet a 500.
    pub server_errors: f64,
    /// Share of replies whose body is cut or is no JSON.
    pub malformed: f64,
    /// Share of requests that are never answered.
    pub hangs: f64,
    /// The text of every answer.
    pub answer: String,
    /// Makes the text of an answer from the body of its request, where one text for all will not do.
    pub answers: Option<fn(&[u8]) -> String>,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            seed: 1,
            latency: Duration::ZERO,
            style: Style::Silent,
            requests_per_minute: None,
            tokens_per_minute: None,
            burst_s: 1.0,
            server_errors: 0.0,
            malformed: 0.0,
            hangs: 0.0,
            answer: "4711".into(),
            answers: None,
        }
    }
}

/// One reply that was written beforehand.
#[derive(Clone, Debug)]
pub struct Scripted {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
    /// Announces more body than it sends, then hangs up.
    pub broken_off: bool,
    pub latency: Duration,
}

impl Scripted {
    pub fn new(status: u16, body: impl Into<Bytes>) -> Scripted {
        Scripted { status, headers: Vec::new(), body: body.into(), broken_off: false, latency: Duration::ZERO }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Scripted {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub uri: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What the provider counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub requests: u64,
    /// Whole, well-formed answers.
    pub answered: u64,
    pub rate_limited: u64,
    /// Answers to a body that had been answered before.
    pub answered_again: u64,
    pub most_in_flight: u64,
}

#[derive(Default)]
struct Book {
    counts: Counts,
    in_flight: u64,
    seen: Vec<Seen>,
    keep_seen: bool,
    script: VecDeque<Scripted>,
    /// By request: how often it came, and how often it was answered.
    history: BTreeMap<u64, (u64, u64)>,
    requests: Option<Level>,
    tokens: Option<Level>,
    away: bool,
}

struct Shared {
    scenario: Scenario,
    book: Mutex<Book>,
}

/// A running provider; it ends when dropped.
pub struct Simulator {
    address: SocketAddr,
    shared: Arc<Shared>,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Simulator {
    /// Starts on a free port, on a thread of its own.
    pub fn start(scenario: Scenario) -> Simulator {
        let level = |per_minute: Option<u64>| per_minute.map(|n| Level::new(n as f64, scenario.burst_s));
        let book = Book {
            requests: level(scenario.requests_per_minute),
            tokens: level(scenario.tokens_per_minute),
            ..Book::default()
        };
        let shared = Arc::new(Shared { scenario, book: Mutex::new(book) });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("an address");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let router = axum::Router::new().fallback(answer).with_state(shared.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => served.expect("serving"),
                    _ = ended => {}
                }
            });
        });
        Simulator { address, shared, end: Some(end), thread: Some(thread) }
    }

    /// Starts a provider that gives `script` before anything else, and remembers what it was sent.
    pub fn scripted(script: impl IntoIterator<Item = Scripted>) -> Simulator {
        let simulator = Simulator::start(Scenario::default());
        let mut book = simulator.shared.book();
        book.script.extend(script);
        book.keep_seen = true;
        drop(book);
        simulator
    }

    /// The root, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Hangs up on everyone from now on, or no more.
    pub fn set_away(&self, away: bool) {
        self.shared.book().away = away;
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.shared.book().counts
    }

    /// Requests as they came, if they were to be remembered.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.book().seen.clone()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Fate {
    Answer,
    Away,
    Script(Scripted),
    Refuse(Duration),
    ServerError,
    Malformed(bool),
    Hang,
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let request = hasher.finish();
    let tokens = (body.len() / 4) as u64 + (shared.scenario.answer.len() / 4) as u64;
    let fate = shared.book().arrive(
        &shared.scenario,
        Seen { uri: uri.to_string(), headers, body: body.clone() },
        request,
        tokens,
    );
    let response = respond(&shared, &uri, &body, fate, request).await;
    shared.book().in_flight -= 1;
    response
}

async fn respond(shared: &Shared, uri: &Uri, body: &Bytes, fate: Fate, request: u64) -> Response<Body> {
    let scenario = &shared.scenario;
    match fate {
        Fate::Script(scripted) => {
            tokio::time::sleep(scripted.latency).await;
            let mut builder = Response::builder().status(scripted.status);
            for (name, value) in &scripted.headers {
                builder = builder.header(*name, value);
            }
            let body = if scripted.broken_off { broken(scripted.body) } else { Body::from(scripted.body) };
            return builder.body(body).expect("a scripted reply");
        }
        Fate::Hang => std::future::pending::<()>().await,
        _ => wait(scenario.latency).await,
    }
    let announced = shared.book().announced(scenario.style);
    let (status, body) = match fate {
        Fate::Refuse(wait) => {
            let error = json!({"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}});
            return finish(429, Body::from(error.to_string()), vendor::retry_after(scenario.style, wait, announced));
        }
        Fate::ServerError => (500, Body::from("<html>Internal Server Error</html>")),
        Fate::Away => (503, Body::empty()),
        Fate::Malformed(true) => (200, broken(Bytes::from_static(b"{\"choices\":["))),
        Fate::Malformed(false) => (200, Body::from("<html>Welcome</html>")),
        _ => {
            shared.book().pay(request);
            let text = scenario.answers.map_or_else(|| scenario.answer.clone(), |answer| answer(body));
            (200, Body::from(reply(uri.path(), body, &text)))
        }
    };
    finish(status, body, announced)
}

/// Timers cost; without latency none is set.
async fn wait(latency: Duration) {
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
}

fn broken(body: Bytes) -> Body {
    let error = || std::io::Error::other("hung up");
    Body::from_stream(futures::stream::iter([Ok(body), Err(error())]))
}

fn finish(status: u16, body: Body, headers: Vec<(&'static str, String)>) -> Response<Body> {
    let builder = Response::builder().status(status).header("x-request-id", "req_sim");
    let builder = headers.into_iter().fold(builder, |builder, (name, value)| builder.header(name, value));
    builder.body(body).expect("a reply")
}

impl Book {
    fn arrive(&mut self, scenario: &Scenario, seen: Seen, request: u64, tokens: u64) -> Fate {
        self.counts.requests += 1;
        self.in_flight += 1;
        self.counts.most_in_flight = self.counts.most_in_flight.max(self.in_flight);
        if self.keep_seen {
            self.seen.push(seen);
        }
        if let Some(scripted) = self.script.pop_front() {
            return Fate::Script(scripted);
        }
        if self.away {
            return Fate::Away;
        }
        if let Some(wait) = self.over_limit(tokens) {
            self.counts.rate_limited += 1;
            return Fate::Refuse(wait);
        }
        let entry = self.history.entry(request).or_default();
        entry.0 += 1;
        let mut hasher = DefaultHasher::new();
        (scenario.seed, request, entry.0).hash(&mut hasher);
        let dice = hasher.finish() as f64 / u64::MAX as f64;
        let (errors, malformed) = (scenario.server_errors, scenario.server_errors + scenario.malformed);
        match dice {
            dice if dice < errors => Fate::ServerError,
            dice if dice < malformed => Fate::Malformed(request.is_multiple_of(2)),
            dice if dice < malformed + scenario.hangs => Fate::Hang,
            _ => Fate::Answer,
        }
    }

    fn over_limit(&mut self, tokens: u64) -> Option<Duration> {
        let needs = [(&mut self.requests, 1.0), (&mut self.tokens, tokens as f64)];
        let mut waits = Duration::ZERO;
        for (level, need) in needs {
            if let Some(level) = level {
                level.refill();
                waits = waits.max(level.until(need.min(level.size)));
            }
        }
        if !waits.is_zero() {
            return Some(waits);
        }
        self.requests.iter_mut().for_each(|level| level.level -= 1.0);
        self.tokens.iter_mut().for_each(|level| level.level -= tokens as f64);
        None
    }

    fn announced(&mut self, style: Style) -> Vec<(&'static str, String)> {
        vendor::announced(style, [self.requests.as_mut(), self.tokens.as_mut()])
    }

    fn pay(&mut self, request: u64) {
        self.counts.answered += 1;
        let entry = self.history.entry(request).or_default();
        entry.1 += 1;
        self.counts.answered_again += u64::from(entry.1 > 1);
    }
}
