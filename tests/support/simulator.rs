//! A provider on loopback in all three dialects. It enforces rate limits, announces them in each vendor's headers, and
//! fails with given rates. The fate of a request depends on the seed, the request and how often it came, never on the
//! order of arrival.

#![allow(dead_code, reason = "each test and bench uses a part")]

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};

use limited::{Arrivals, Limiters, ProviderLimit, Refusal};
use loopback::LoopbackServer;
pub use vendor::reply;

pub mod limited;
mod loopback;
mod vendor;

/// The time from a request to its refusal.
const REFUSAL: Duration = Duration::from_millis(4);

/// How limits are announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Not at all: a 429 has nothing but its status.
    #[default]
    Silent,
    /// `x-ratelimit-*` with Go durations, and `retry-after-ms`.
    OpenAi,
    /// `anthropic-ratelimit-*` with times, and `retry-after`.
    Anthropic,
}

/// How the provider behaves.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed that decides which requests fail.
    pub seed: u64,
    /// The time from a request to its reply.
    pub latency: Duration,
    /// How limits are announced.
    pub style: Style,
    /// Limits of requests and tokens.
    pub limits: Vec<ProviderLimit>,
    /// Share of requests that are refused whatever the rate.
    pub random_refusals: f64,
    /// The share of requests that are answered with a 500.
    pub server_errors: f64,
    /// The share of replies whose body is cut off or is no JSON.
    pub malformed: f64,
    /// Share of requests that are never answered.
    pub hangs: f64,
    /// The text of every answer.
    pub answer: String,
    /// Makes the text of an answer from the body of its request; `None` gives all answers `text`.
    pub answers: Option<fn(&[u8]) -> String>,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            seed: 1,
            latency: Duration::ZERO,
            style: Style::Silent,
            limits: Vec::new(),
            random_refusals: 0.0,
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
        Scripted {
            status,
            headers: Vec::new(),
            body: body.into(),
            broken_off: false,
            latency: Duration::ZERO,
        }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Scripted {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A request as it arrived.
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
    /// For each request how often it arrived, and how often it was answered.
    history: BTreeMap<u64, (u64, u64)>,
    limiters: Limiters,
    /// When the first request arrived, and the times of all others since then.
    began: Option<Instant>,
    arrivals: Arrivals,
    away: bool,
}

struct Shared {
    scenario: Scenario,
    book: Mutex<Book>,
}

/// A running provider; it ends when dropped.
pub struct Simulator {
    http: LoopbackServer,
    shared: Arc<Shared>,
}

impl Simulator {
    /// Starts on a free port, on a thread of its own.
    pub fn start(scenario: Scenario) -> Simulator {
        let limiters = Limiters::new(&scenario.limits, scenario.random_refusals);
        let book = Book {
            limiters,
            ..Book::default()
        };
        let shared = Arc::new(Shared {
            scenario,
            book: Mutex::new(book),
        });
        let http = LoopbackServer::start(
            axum::Router::new()
                .fallback(answer)
                .with_state(shared.clone()),
        );
        Simulator { http, shared }
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
        self.http.url()
    }

    /// Whether connections are closed without an answer from now on.
    pub fn set_away(&self, away: bool) {
        self.shared.book().away = away;
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.shared.book().counts
    }

    /// When requests arrived, in seconds since the first.
    pub fn arrivals(&self) -> Arrivals {
        self.shared.book().arrivals.clone()
    }

    /// The requests as they arrived, if the provider was started to remember them.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.book().seen.clone()
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
    Refuse(Refusal),
    ServerError,
    Malformed(bool),
    Hang,
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let request = hasher.finish();
    let seen = Seen {
        uri: uri.to_string(),
        headers,
        body: body.clone(),
    };
    let fate = shared.book().arrive(&shared.scenario, seen, request);
    let response = respond(&shared, &uri, &body, fate, request).await;
    shared.book().in_flight -= 1;
    response
}

async fn respond(
    shared: &Shared,
    uri: &Uri,
    body: &Bytes,
    fate: Fate,
    request: u64,
) -> Response<Body> {
    let scenario = &shared.scenario;
    match fate {
        Fate::Script(scripted) => {
            tokio::time::sleep(scripted.latency).await;
            let mut builder = Response::builder().status(scripted.status);
            for (name, value) in &scripted.headers {
                builder = builder.header(*name, value);
            }
            let body = if scripted.broken_off {
                broken(scripted.body)
            } else {
                Body::from(scripted.body)
            };
            return builder.body(body).expect("a scripted reply");
        }
        Fate::Hang => std::future::pending::<()>().await,
        Fate::Refuse(_) => wait(REFUSAL).await,
        _ => wait(scenario.latency).await,
    }
    let announced = shared.book().announced(scenario.style, body);
    let (status, body) = match fate {
        Fate::Refuse(refusal) => {
            let headers = vendor::retry_after(scenario.style, refusal.wait, announced);
            return finish(429, Body::from(vendor::refusal(refusal.unit)), headers);
        }
        Fate::ServerError => (500, Body::from("<html>Internal Server Error</html>")),
        Fate::Away => (503, Body::empty()),
        Fate::Malformed(true) => (200, broken(Bytes::from_static(b"{\"choices\":["))),
        Fate::Malformed(false) => (200, Body::from("<html>Welcome</html>")),
        _ => {
            shared.book().pay(request);
            let text = scenario
                .answers
                .map_or_else(|| scenario.answer.clone(), |answer| answer(body));
            (200, Body::from(reply(uri.path(), body, &text)))
        }
    };
    finish(status, body, announced)
}

/// Waits for the latency; without one no timer is set, because timers cost time.
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
    let builder = Response::builder()
        .status(status)
        .header("x-request-id", "req_sim");
    let builder = headers.into_iter().fold(builder, |builder, (name, value)| {
        builder.header(name, value)
    });
    builder.body(body).expect("a reply")
}

impl Book {
    fn arrive(&mut self, scenario: &Scenario, seen: Seen, request: u64) -> Fate {
        let (model, input) = (model_of(&seen.body), (seen.body.len() / 4) as f64);
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
        let mut hasher = DefaultHasher::new();
        (scenario.seed, request, self.counts.requests).hash(&mut hasher);
        let dice = hasher.finish() as f64 / u64::MAX as f64;
        let now = self.now();
        if let Err(refusal) = self.limiters.take(&model, input, dice, now) {
            self.counts.rate_limited += 1;
            self.arrivals.refused.push(now);
            return Fate::Refuse(refusal);
        }
        self.arrivals.accepted.push(now);
        self.arrivals.input.push(input);
        let entry = self.history.entry(request).or_default();
        entry.0 += 1;
        let mut hasher = DefaultHasher::new();
        (scenario.seed, request, entry.0).hash(&mut hasher);
        let dice = hasher.finish() as f64 / u64::MAX as f64;
        let (errors, malformed) = (
            scenario.server_errors,
            scenario.server_errors + scenario.malformed,
        );
        match dice {
            dice if dice < errors => Fate::ServerError,
            dice if dice < malformed => Fate::Malformed(request.is_multiple_of(2)),
            dice if dice < malformed + scenario.hangs => Fate::Hang,
            _ => Fate::Answer,
        }
    }

    /// Seconds since the first request.
    fn now(&mut self) -> f64 {
        self.began
            .get_or_insert_with(Instant::now)
            .elapsed()
            .as_secs_f64()
    }

    fn announced(&mut self, style: Style, body: &[u8]) -> Vec<(&'static str, String)> {
        let now = self.now();
        vendor::announced(style, &self.limiters.announced(&model_of(body), now))
    }

    fn pay(&mut self, request: u64) {
        self.counts.answered += 1;
        let entry = self.history.entry(request).or_default();
        entry.1 += 1;
        self.counts.answered_again += u64::from(entry.1 > 1);
    }
}

/// The model that a request names.
fn model_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let named = text
        .split_once("\"model\":\"")
        .and_then(|(_, rest)| rest.split_once('"'));
    named.map_or_else(String::new, |(model, _)| model.to_owned())
}
