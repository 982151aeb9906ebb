//! The review as a page on loopback, for a browser on this machine.
//!
//! The page asks for one question at a time. Each decision is written as in the terminal, and the server ends after the
//! last question.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use serde::Deserialize;
use serde_json::{Value, json};

use super::session::{Decision, Review, ReviewCounts};
use crate::cli::browser::open_in_browser;
use crate::cli::failure::{Failure, chain};
use crate::cli::terminal::Console;
use crate::evaluation::{LoopbackServer, PageReply, PageRequest, Site};
use crate::probe::ProbeId;
use base::files::temporary_file;

const PAGE: &str = include_str!("../../../../../assets/review/page.html");
/// The style that all pages share.
const GROUND: &str = include_str!("../../../../../assets/ground.css");

/// A review that is served.
struct ReviewSite {
    review: Mutex<Review>,
    over: mpsc::Sender<()>,
}

/// A decision that the page sends.
#[derive(Deserialize)]
struct Decided {
    /// The place of the question, from 0.
    at: usize,
    /// The probe that the page shows: another tab may have gone on.
    id: Option<ProbeId>,
    #[serde(flatten)]
    decision: Decision,
}

/// The question that the page shows.
#[derive(Deserialize)]
struct Shown {
    at: usize,
    id: Option<ProbeId>,
}

/// Serves the review until its last question is answered. Returns what was decided, and how many questions are left.
pub(super) fn review(review: Review, console: &Console) -> Result<(ReviewCounts, usize), Failure> {
    let (over, is_over) = mpsc::channel();
    let site = Arc::new(ReviewSite {
        review: Mutex::new(review),
        over,
    });
    let server = LoopbackServer::start(site.clone());
    let server = server
        .map_err(|error| Failure::error(format!("the page cannot be served: {}", chain(&error))))?;
    let address = server.address();
    console.eprint(&format!(
        "review: {address}   (Ctrl-C ends it; decisions are saved immediately)"
    ));
    // Other users see the arguments of programs, so the browser gets a file that only this user can read.
    let redirect = temporary_file(&redirect_page(&address), ".html")
        .map_err(|error| Failure::error(chain(&error)))?;
    open_in_browser(redirect.path().as_os_str());
    // The site keeps a sender, so this waits until the last question was answered.
    let _ = is_over.recv();
    let review = site.review();
    Ok((review.counts, review.left()))
}

impl Site for ReviewSite {
    fn reply(&self, request: &PageRequest) -> PageReply {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => PageReply::new("200 OK", "text/html", page()),
            ("GET", path) => match path.strip_prefix("/card/").and_then(|at| at.parse().ok()) {
                Some(at) => self.card(at),
                None => PageReply::refused("404 Not Found"),
            },
            ("POST", "/decide") if request.is_json => self.decide(&request.body),
            ("POST", "/undo") if request.is_json => match self.review().undo() {
                Ok(at) => json_reply(&json!({ "at": at })),
                Err(failure) => refusal(&failure),
            },
            ("POST", "/accept-all") if request.is_json => self.accept_all(&request.body),
            _ => PageReply::refused("405 Method Not Allowed"),
        }
    }

    fn sent(&self, reply: &PageReply) {
        if reply.is_last {
            let _ = self.over.send(());
        }
    }
}

impl ReviewSite {
    fn review(&self) -> MutexGuard<'_, Review> {
        self.review.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first open question at a place or after it: a page that is loaded again begins at the first.
    fn card(&self, from: usize) -> PageReply {
        let mut review = self.review();
        if from > review.items.len() {
            return PageReply::refused("404 Not Found");
        }
        let Some(at) = review.next_open(from) else {
            let over = json_reply(&json!({ "over": true, "tally": review.counts.to_string() }));
            return PageReply {
                is_last: true,
                ..over
            };
        };
        let decided = review.items.len() - review.left();
        let progress = review.progress();
        match review.card(at) {
            Ok(card) => {
                json_reply(&json!({ "decided": decided, "progress": progress, "card": card }))
            }
            Err(failure) => refusal(&failure),
        }
    }

    /// Accepts all open probes of the fixture of the question that the page shows.
    fn accept_all(&self, body: &[u8]) -> PageReply {
        let shown: Shown = match serde_json::from_slice(body) {
            Ok(shown) => shown,
            Err(error) => return refusal(&Failure::input(error.to_string())),
        };
        let mut review = self.review();
        if review
            .items
            .get(shown.at)
            .is_none_or(|item| item.probe.is_none() || item.probe != shown.id)
        {
            return refusal(&Failure::input(
                "this question is no longer asked: load the page again",
            ));
        }
        match review.accept_all(shown.at) {
            Ok(accepted) => json_reply(&json!({ "accepted": accepted })),
            Err(failure) => refusal(&failure),
        }
    }

    fn decide(&self, body: &[u8]) -> PageReply {
        let decided: Decided = match serde_json::from_slice(body) {
            Ok(decided) => decided,
            Err(error) => return refusal(&Failure::input(error.to_string())),
        };
        let mut review = self.review();
        if review
            .items
            .get(decided.at)
            .is_none_or(|item| item.probe != decided.id)
        {
            return refusal(&Failure::input(
                "this question is no longer asked: load the page again",
            ));
        }
        match review.decide(decided.at, decided.decision) {
            Ok(is_settled) => json_reply(&json!({ "settled": is_settled })),
            Err(failure) => refusal(&failure),
        }
    }
}

/// The page in the language that is printed. Its script has both languages and asks for that of the document.
fn page() -> String {
    let texts = [
        ("{{ground}}", GROUND),
        ("{{language}}", "en"),
        ("{{title}}", "compeval: review of probes"),
        ("{{heading}}", "Review of probes"),
        ("{{decided}}", "Decided questions"),
        ("{{decision}}", "Decision"),
        (
            "{{keys}}",
            "The underlined letters are keys. Every decision is saved at once.",
        ),
    ];
    texts.iter().fold(PAGE.to_owned(), |page, (place, text)| {
        page.replace(place, text)
    })
}

/// A page that leads to an address.
fn redirect_page(address: &str) -> String {
    format!(
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={address}\"><a href=\"{address}\">compeval</a>\n"
    )
}

fn json_reply(value: &Value) -> PageReply {
    PageReply::new("200 OK", "application/json", value.to_string())
}

/// A reply that says why something could not be done.
fn refusal(failure: &Failure) -> PageReply {
    let words = match failure {
        Failure::Message { message, .. } => message.clone(),
        Failure::Problems(problems) => problems.to_string(),
    };
    PageReply::new(
        "422 Unprocessable Content",
        "application/json",
        json!({ "error": words }).to_string(),
    )
}
