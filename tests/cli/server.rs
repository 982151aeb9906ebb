//! A provider on loopback: OpenAI's chat dialect, replies by rules or as a test wants them, and a record of all
//! requests.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use serde_json::{Value, json};

use super::brain::{self, Wanted};
use super::loopback::LoopbackServer;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub json: Value,
    pub wanted: Wanted,
    /// All text of its messages.
    pub text: String,
    /// How often the same bytes arrived before.
    pub earlier: usize,
    pub came: Instant,
    /// When the reply was handed to the network; `None` if it never was.
    pub answered: Option<Instant>,
}

/// How a test wants a request to be answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The reply of the rules.
    Sensible,
    /// This text, as a complete reply.
    Text(String),
    /// This status and body.
    Raw(u16, String),
    /// Another reply with these headers, compressed if `content-encoding` is among them.
    Headed(Vec<(&'static str, String)>, Box<Reply>),
    /// The reply of the rules, after this time.
    Late(Duration),
    /// Another reply, after this time.
    After(Duration, Box<Reply>),
    /// The reply of the rules, as soon as [`Server::let_go`] is called.
    Held,
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

struct ServerState {
    asked: Vec<Asked>,
    script: Arc<Script>,
}

struct Shared {
    state: Mutex<ServerState>,
    free: tokio::sync::watch::Sender<bool>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running provider; it ends when dropped.
pub struct Server {
    http: LoopbackServer,
    shared: Arc<Shared>,
}

impl Server {
    /// Starts on a free port, answering by rules.
    pub fn start() -> Server {
        let script: Arc<Script> = Arc::new(|_| Reply::Sensible);
        let state = Mutex::new(ServerState {
            asked: Vec::new(),
            script,
        });
        let shared = Arc::new(Shared {
            state,
            free: tokio::sync::watch::Sender::new(false),
        });
        let http = LoopbackServer::start(Router::new().fallback(answer).with_state(shared.clone()));
        Server { http, shared }
    }

    /// Answers by `script` from now on.
    pub fn script(&self, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        self.shared.state().script = Arc::new(script);
    }

    /// Refuses to answer questions with these words from now on.
    pub fn refuse_answers(&self, words: &'static str) {
        self.script(move |asked| match asked.wanted {
            Wanted::Answer if asked.text.contains(words) => Reply::Raw(
                400,
                json!({"error": {"message": "not today", "type": "invalid"}}).to_string(),
            ),
            _ => Reply::Sensible,
        });
    }

    /// Answers all held requests, and holds no more.
    pub fn let_go(&self) {
        self.shared.free.send_replace(true);
    }

    /// The base URL of its API.
    pub fn url(&self) -> String {
        format!("{}/v1", self.http.url())
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state().asked.clone()
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.shared.state().asked.len()
    }

    /// The number of requests for each stage.
    pub fn counts(&self) -> BTreeMap<Wanted, usize> {
        let mut counts = BTreeMap::new();
        for asked in &self.shared.state().asked {
            *counts.entry(asked.wanted).or_default() += 1;
        }
        counts
    }

    /// Forgets all requests so far.
    pub fn forget(&self) {
        self.shared.state().asked.clear();
    }

    /// Waits until `n` requests have come.
    pub fn wait_for(&self, n: usize) {
        let began = Instant::now();
        while self.count() < n {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{} of {n} requests came",
                self.count()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Waits until a condition holds.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.let_go();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = brain::text_of(&json);
    let (nth, asked, script) = {
        let mut state = shared.state();
        let earlier = state
            .asked
            .iter()
            .filter(|asked| asked.body == body)
            .count();
        let (path, wanted) = (uri.path().to_owned(), brain::wanted(&text));
        let asked = Asked {
            path,
            headers,
            body,
            json,
            wanted,
            text,
            earlier,
            came: Instant::now(),
            answered: None,
        };
        state.asked.push(asked.clone());
        (state.asked.len() - 1, asked, state.script.clone())
    };
    let (headers, reply) = match script(&asked) {
        Reply::Headed(headers, reply) => (headers, *reply),
        Reply::After(wait, reply) => {
            tokio::time::sleep(wait).await;
            (Vec::new(), *reply)
        }
        reply => (Vec::new(), reply),
    };
    let (status, body) = match reply {
        Reply::Sensible => (200, chat(&asked, &brain::reply(&asked.json))),
        Reply::Text(text) => (200, chat(&asked, &text)),
        Reply::Raw(status, body) => (status, body),
        Reply::Headed(..) | Reply::After(..) => panic!("one reply within another"),
        Reply::Late(wait) => {
            tokio::time::sleep(wait).await;
            (200, chat(&asked, &brain::reply(&asked.json)))
        }
        Reply::Held => {
            let _ = shared.free.subscribe().wait_for(|free| *free).await;
            (200, chat(&asked, &brain::reply(&asked.json)))
        }
    };
    // A test may have cleared the record meanwhile.
    if let Some(entry) = shared
        .state()
        .asked
        .get_mut(nth)
        .filter(|entry| entry.body == asked.body)
    {
        entry.answered = Some(Instant::now());
    }
    let is_packed = headers.iter().any(|(name, _)| *name == "content-encoding");
    let body = if is_packed {
        gzip(body.as_bytes())
    } else {
        body.into_bytes()
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    let response = headers.iter().fold(response, |response, (name, value)| {
        response.header(*name, value)
    });
    response.body(body.into()).expect("a reply")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("memory")
}

fn chat(asked: &Asked, text: &str) -> String {
    with_finish(asked, text, "stop")
}

/// A chat completion that ended for `reason`. Its usage is a quarter of the bytes.
pub fn with_finish(asked: &Asked, text: &str, reason: &str) -> String {
    let (input, output) = (asked.body.len() / 4, text.len() / 4 + 1);
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "small-1-2025",
        "choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
    .to_string()
}
