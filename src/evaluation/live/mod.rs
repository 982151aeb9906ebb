//! The page of a run in progress, and the server that shows it to a browser on this machine.
//!
//! A page is made only when a browser asks for it. There are two addresses, for the page and for the progress of the
//! run.

mod loopback;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::evaluation::contexts::{find_contexts, page_contexts};
use crate::evaluation::project::open_snapshot;
use crate::evaluation::publish::{gather, page_input};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::Preparer;
use crate::report::html::{self, PageInput};
use crate::results::{ResultsFolder, names, summarize};
use base::files::read_text;
pub use loopback::{LoopbackServer, PageReply, PageRequest, Site};

/// Results that a browser can show while they grow.
pub trait LivePage: Send + Sync {
    /// A number that changes when there are more results.
    fn version(&self) -> u64;

    /// The page of that version; `None` if there are no results yet.
    fn page(&self, version: u64) -> Option<String>;
}

/// The results of a run in progress.
#[derive(Clone, Debug)]
pub struct PartialResults {
    pub pipeline: Pipeline,
    pub folder: ResultsFolder,
}

impl LivePage for PartialResults {
    /// The length of the file of rows, which never shrinks.
    fn version(&self) -> u64 {
        std::fs::metadata(self.folder.file(names::CELLS)).map_or(0, |found| found.len())
    }

    fn page(&self, version: u64) -> Option<String> {
        let PartialResults { pipeline, folder } = self;
        let rows = folder.few_rows().ok()?;
        let manifest = folder.manifest().ok()?;
        let design = manifest.design.clone();
        let set = gather(folder, manifest, rows.as_deref()).ok()?;
        let summary = summarize(&set, None);
        let rows = rows.unwrap_or_default();
        let matrix = Matrix::new(pipeline);
        let preparer = Preparer::new(pipeline, &matrix);
        // The run writes to the cache meanwhile, so it is read like the cache of another process.
        let cache = open_snapshot(&pipeline.cache).ok()?;
        let found = find_contexts(&rows, &design, preparer, &cache);
        let page = html::render(&PageInput {
            contexts: page_contexts(&found, preparer, &cache),
            chunks: &cache,
            live: Some(version),
            ..page_input(pipeline, &summary, &set.manifest, &rows, &|at| {
                folder.rows_at(at)
            })
        });
        page.ok()
    }
}

/// After a page is made, no other page is made for this many times as long, so pages need at most a tenth of a
/// processor.
const REST: u32 = 9;
/// If a browser asked within this time, somebody is looking at the page.
const LOOKING: Duration = Duration::from_secs(3);
/// How long the server waits at the end of a run for a browser to fetch the finished page.
const FAREWELL: Duration = Duration::from_secs(2);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server of one run. It ends with the run.
pub struct LiveServer {
    site: Arc<LiveSite>,
    server: LoopbackServer,
}

impl LiveServer {
    /// Begins to serve.
    ///
    /// # Errors
    /// No port is free, or no thread can be started.
    pub fn start(source: impl LivePage + 'static) -> io::Result<LiveServer> {
        let site = Arc::new(LiveSite::new(Box::new(source)));
        let server = LoopbackServer::start(site.clone())?;
        Ok(LiveServer { site, server })
    }

    pub fn address(&self) -> String {
        self.server.address()
    }

    /// Takes the progress of the run, as JSON.
    pub fn progress(&self) -> watch::Sender<String> {
        self.site.progress.clone()
    }

    /// Ends the server after the run; a browser that shows the page gets the finished page first.
    pub fn finish(self, page: PathBuf) {
        let mut visits = lock(&self.site.visits);
        if visits.last.is_some_and(|last| last.elapsed() <= LOOKING) {
            visits.finished = Some(page);
            drop(
                self.site
                    .fetched
                    .wait_timeout_while(visits, FAREWELL, |visits| !visits.fetched),
            );
        }
    }
}

#[derive(Debug, Default)]
struct Visits {
    last: Option<Instant>,
    /// The file of the finished page, after the run has ended.
    finished: Option<PathBuf>,
    /// Whether a browser fetched it.
    fetched: bool,
}

/// The page that was made last.
struct MadePage {
    version: u64,
    page: String,
    /// Until then no other page is made.
    until: Instant,
}

struct LiveSite {
    source: Box<dyn LivePage>,
    progress: watch::Sender<String>,
    visits: Mutex<Visits>,
    fetched: Condvar,
    made: Mutex<Option<MadePage>>,
    /// The version of that page, and until when no other page is made. It has a lock of its own, because `made` is locked
    /// while a page is made, and the progress is asked for meanwhile.
    resting: Mutex<Option<(u64, Instant)>>,
}

impl Site for LiveSite {
    fn reply(&self, request: &PageRequest) -> PageReply {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => self.page(),
            ("GET", "/progress") => self.progress_reply(),
            ("GET", _) => PageReply::refused("404 Not Found"),
            _ => PageReply::refused("405 Method Not Allowed"),
        }
    }

    fn sent(&self, reply: &PageReply) {
        if reply.is_last {
            lock(&self.visits).fetched = true;
            self.fetched.notify_all();
        }
    }
}

impl LiveSite {
    fn new(source: Box<dyn LivePage>) -> LiveSite {
        LiveSite {
            source,
            progress: watch::Sender::new("null".to_owned()),
            visits: Mutex::default(),
            fetched: Condvar::new(),
            made: Mutex::default(),
            resting: Mutex::default(),
        }
    }

    fn page(&self) -> PageReply {
        let finished = {
            let mut visits = lock(&self.visits);
            visits.last = Some(Instant::now());
            visits
                .finished
                .as_ref()
                .and_then(|file| read_text(file).ok())
        };
        let is_last = finished.is_some();
        let body = finished.unwrap_or_else(|| self.partial());
        PageReply {
            is_last,
            ..PageReply::new("200 OK", "text/html", body)
        }
    }

    /// The page of the results so far.
    fn partial(&self) -> String {
        let mut made = lock(&self.made);
        let (began, version) = (Instant::now(), self.source.version());
        if let Some(made) = made
            .as_ref()
            .filter(|made| made.version == version || made.until > began)
        {
            return made.page.clone();
        }
        let Some(page) = self.source.page(version) else {
            let begins = "The run begins …";
            return format!(
                "<!doctype html><meta http-equiv=\"refresh\" content=\"1\"><title>compeval</title><p>{begins}</p>"
            );
        };
        let until = Instant::now() + began.elapsed() * REST;
        *made = Some(MadePage {
            version,
            page: page.clone(),
            until,
        });
        *lock(&self.resting) = Some((version, until));
        page
    }

    /// The progress of the run, and the version that the page would have.
    fn progress_reply(&self) -> PageReply {
        let is_ended = {
            let mut visits = lock(&self.visits);
            visits.last = Some(Instant::now());
            visits.finished.is_some()
        };
        let resting = lock(&self.resting).filter(|(_, until)| *until > Instant::now());
        let version = resting.map_or_else(|| self.source.version(), |(version, _)| version);
        let run = self.progress.borrow();
        let body = format!(
            "{{\"version\":{version},\"ended\":{is_ended},\"run\":{}}}",
            *run
        );
        PageReply::new("200 OK", "application/json", body)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Numbered(AtomicUsize);

    impl LivePage for Numbered {
        fn version(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed) as u64
        }

        fn page(&self, version: u64) -> Option<String> {
            (version > 0).then(|| format!("page {version}"))
        }
    }

    fn site() -> LiveSite {
        LiveSite::new(Box::new(Numbered(AtomicUsize::new(0))))
    }

    fn ask(site: &LiveSite, method: &str, path: &str) -> PageReply {
        site.reply(&PageRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            ..PageRequest::default()
        })
    }

    #[test]
    fn only_pages_and_progress_are_served() {
        let site = site();
        assert_eq!(ask(&site, "GET", "/../t0ken/").status, "404 Not Found");
        assert_eq!(ask(&site, "POST", "/").status, "405 Method Not Allowed");
        assert!(lock(&site.visits).last.is_none(), "nobody was looking");
    }

    #[test]
    fn a_page_is_made_when_there_is_one_and_progress_is_reported() {
        let site = site();
        let get = |path: &str| ask(&site, "GET", path).body;
        assert!(get("/").contains("The run begins"));
        assert_eq!(get("/"), "page 1");
        site.progress
            .send_replace("{\"pace\":\"1 call/s\"}".to_owned());
        assert!(get("/progress").contains("\"ended\":false,\"run\":{\"pace\":\"1 call/s\"}}"));
    }

    #[test]
    fn the_finished_page_is_the_last_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        base::files::write_whole(file.path(), "finished").unwrap();
        let site = site();
        lock(&site.visits).finished = Some(file.path().to_owned());
        assert!(
            ask(&site, "GET", "/progress")
                .body
                .contains("\"ended\":true")
        );
        let page = ask(&site, "GET", "/");
        assert_eq!((page.body.as_str(), page.is_last), ("finished", true));
        assert!(!lock(&site.visits).fetched);
        site.sent(&page);
        assert!(lock(&site.visits).fetched);
    }
}
