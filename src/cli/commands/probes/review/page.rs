//! The review as a page on loopback, for a browser on this machine.
//!
//! The address has a random token in its path, and the `Host` has to be loopback: no other user of the machine can guess
//! it, and no website can have a browser send a decision. The page asks for one question at a time. Each decision is written
//! as in the terminal, and the server ends after the last question.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::Builder;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::session::{Decision, Review, Tally};
use crate::cli::browser::open_in_browser;
use crate::cli::failure::{Failure, chain};
use crate::cli::loopback::{Reply, is_loopback, token};
use crate::cli::terminal::Console;
use crate::probe::ProbeId;

const PAGE: &str = include_str!("../../../../../assets/review/page.html");

/// How long a connection may take to send its request, or to take the reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest request that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// A review that is served.
struct ReviewServer {
    review: Mutex<Review>,
    token: String,
    over: mpsc::Sender<()>,
}

/// A request, as far as it matters.
#[derive(Default)]
struct Request {
    method: String,
    path: String,
    host: String,
    is_json: bool,
    body: Vec<u8>,
}

/// What the page sends.
#[derive(Deserialize)]
struct Decided {
    /// The place of the question, from 0.
    at: usize,
    /// The probe that the page shows: another tab may have gone on.
    id: Option<ProbeId>,
    #[serde(flatten)]
    decision: Decision,
}

/// Serves the review until its last question is answered. Returns what was decided, and how many questions are left.
pub(super) fn review(review: Review, console: &Console) -> Result<(Tally, usize), Failure> {
    let fault = |error: io::Error| Failure::error(format!("the page cannot be served: {}", chain(&error)));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fault)?;
    let (over, is_over) = mpsc::channel();
    let server = Arc::new(ReviewServer { review: Mutex::new(review), token: token().map_err(fault)?, over });
    let address = format!("http://{}/{}/", listener.local_addr().map_err(fault)?, server.token);
    console.eprint(&format!("review: {address}   (Ctrl-C ends it; decisions are written at once)"));
    open_in_browser(address.as_ref());
    let served = server.clone();
    let serve = move || listener.incoming().flatten().for_each(|stream| served.clone().answer(stream));
    Builder::new().name("review".to_owned()).spawn(serve).map_err(fault)?;
    // The server itself has a sender, so this waits for the page.
    let _ = is_over.recv();
    let review = server.review();
    Ok((review.tally, review.left()))
}

impl ReviewServer {
    fn review(&self) -> MutexGuard<'_, Review> {
        self.review.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one connection on a thread of its own: a browser keeps connections open that it has no request for yet.
    fn answer(self: Arc<ReviewServer>, stream: TcpStream) {
        // A browser that went away needs no reply.
        let answer = move || drop(self.exchange(stream));
        drop(Builder::new().name("review page".to_owned()).spawn(answer));
    }

    fn exchange(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(request) = read_request(&stream)? else { return Ok(()) };
        let reply = self.reply(&request);
        stream.write_all(&reply.bytes())?;
        if reply.is_last {
            let _ = self.over.send(());
        }
        Ok(())
    }

    fn reply(&self, request: &Request) -> Reply {
        if !is_loopback(&request.host) {
            return Reply::refused("403 Forbidden");
        }
        let path = request.path.strip_prefix('/').and_then(|path| path.strip_prefix(self.token.as_str()));
        let Some(path) = path else { return Reply::refused("404 Not Found") };
        match (request.method.as_str(), path) {
            ("GET", "/") => Reply::of("200 OK", "text/html", PAGE.to_owned()),
            ("GET", path) => match path.strip_prefix("/card/").and_then(|at| at.parse().ok()) {
                Some(at) => self.card(at),
                None => Reply::refused("404 Not Found"),
            },
            ("POST", "/decide") if request.is_json => self.decide(&request.body),
            _ => Reply::refused("405 Method Not Allowed"),
        }
    }

    /// The first open question from a place on: a page that is loaded again begins at the first.
    fn card(&self, from: usize) -> Reply {
        let mut review = self.review();
        let Some(at) = review.next_open(from) else {
            let over = json_reply(&json!({ "over": true, "tally": review.tally.to_string() }));
            return Reply { is_last: true, ..over };
        };
        review.card(at).map_or_else(|failure| refusal(&failure), |card| json_reply(&json!(card)))
    }

    fn decide(&self, body: &[u8]) -> Reply {
        let decided: Decided = match serde_json::from_slice(body) {
            Ok(decided) => decided,
            Err(error) => return refusal(&Failure::input(error.to_string())),
        };
        let mut review = self.review();
        if review.items.get(decided.at).is_none_or(|item| item.probe != decided.id) {
            return refusal(&Failure::input("this question is no longer asked: load the page again"));
        }
        match review.decide(decided.at, decided.decision) {
            Ok(is_settled) => json_reply(&json!({ "settled": is_settled })),
            Err(failure) => refusal(&failure),
        }
    }
}

fn read_request(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream.take(LONGEST));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut request = Request { method: method.to_owned(), path: path.to_owned(), ..Request::default() };
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "host" => value.trim().clone_into(&mut request.host),
            "content-type" => request.is_json = value.trim().starts_with("application/json"),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    reader.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}

fn json_reply(value: &Value) -> Reply {
    Reply::of("200 OK", "application/json", value.to_string())
}

/// What could not be done, in words.
fn refusal(failure: &Failure) -> Reply {
    let words = match failure {
        Failure::Message { message, .. } => message.clone(),
        Failure::Problems(problems) => problems.to_string(),
    };
    Reply::of("422 Unprocessable Content", "application/json", json!({ "error": words }).to_string())
}
