//! The page of a run while it goes on, served on loopback.
//!
//! The server has threads of its own, and a page is made only when a browser asks for it. It answers two addresses: the
//! page, and how far the run is. Both have a random token in their path, and the `Host` has to be loopback: no other user
//! of the machine can guess the address, and no website can have a browser ask for it under a name of its own. What is
//! sent is free of API keys, whatever a transcript contains.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::cli::failure::Failure;
use crate::cli::loopback::{Reply, is_loopback, token};
use crate::cli::terminal::LiveProgress;
use crate::files::read_text;

/// What there is so far.
pub(crate) trait LivePage: Send + Sync {
    /// A number that changes when there is more to show.
    fn version(&self) -> u64;

    /// The page of that version; `None` while there is nothing to show.
    fn page(&self, version: u64) -> Option<String>;
}

/// The longest request that is read; a browser's has a few hundred bytes.
const LONGEST_REQUEST: usize = 16 * 1024;
/// How long a connection may take to send its request, or to take the reply.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_CONNECTIONS: usize = 16;
/// A page is made again after this many times the time that it took: at most a tenth of a processor goes into it.
const REST: u32 = 9;
/// A browser that asked in this time is looking at the page.
const LOOKING: Duration = Duration::from_secs(3);
/// How long the end of a run waits for a browser to fetch the finished page.
const FAREWELL: Duration = Duration::from_secs(2);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server of one run. It ends with the run.
pub(crate) struct LiveServer {
    site: Arc<Site>,
    socket: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl LiveServer {
    /// Begins to serve.
    ///
    /// # Errors
    /// No port is free, or no thread can be started.
    pub(crate) fn start(source: impl LivePage + 'static) -> Result<LiveServer, Failure> {
        let fault = |error: io::Error| Failure::error(format!("the live page cannot be served: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fault)?;
        let socket = listener.local_addr().map_err(fault)?;
        let site = Arc::new(Site::new(token().map_err(fault)?, Box::new(source)));
        let served = site.clone();
        let thread = Builder::new().name("live".to_owned()).spawn(move || served.serve(&listener)).map_err(fault)?;
        Ok(LiveServer { site, socket, thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}/{}/", self.socket, self.site.token)
    }

    pub(crate) fn progress(&self) -> LiveProgress {
        self.site.progress.clone()
    }

    /// The run is over: a browser that is looking gets the finished page, then nobody is served any more.
    pub(crate) fn finish(self, page: PathBuf) {
        let mut visits = lock(&self.site.visits);
        if visits.last.is_some_and(|last| last.elapsed() <= LOOKING) {
            visits.finished = Some(page);
            let waiting = |visits: &mut Visits| !visits.fetched;
            drop(self.site.fetched.wait_timeout_while(visits, FAREWELL, waiting));
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        lock(&self.site.visits).closed = true;
        // The thread waits for a connection.
        drop(TcpStream::connect_timeout(&self.socket, PATIENCE));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

#[derive(Debug, Default)]
struct Visits {
    last: Option<Instant>,
    /// The file of the finished page, once the run is over.
    finished: Option<PathBuf>,
    /// Whether it was fetched.
    fetched: bool,
    closed: bool,
}

/// A page that was made, and until when no other is.
struct MadePage {
    version: u64,
    page: String,
    until: Instant,
}

/// What is served, and for which address.
struct Site {
    token: String,
    source: Box<dyn LivePage>,
    progress: LiveProgress,
    visits: Mutex<Visits>,
    fetched: Condvar,
    connections: AtomicUsize,
    made: Mutex<Option<MadePage>>,
    /// The version of the page that was made, and until when no other is.
    resting: Mutex<Option<(u64, Instant)>>,
}

impl Site {
    fn new(token: String, source: Box<dyn LivePage>) -> Site {
        Site {
            token,
            source,
            progress: LiveProgress::default(),
            visits: Mutex::default(),
            fetched: Condvar::new(),
            connections: AtomicUsize::new(0),
            made: Mutex::default(),
            resting: Mutex::default(),
        }
    }

    /// Serves until the site is closed. A browser keeps connections open that it has no request for yet, so each has a
    /// thread.
    fn serve(self: &Arc<Site>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if lock(&self.visits).closed {
                return;
            }
            let Ok(stream) = stream else { continue };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let site = self.clone();
            let answer = move || {
                // A browser that went away needs no reply.
                drop(site.answer(stream));
                site.connections.fetch_sub(1, Ordering::Relaxed);
            };
            if Builder::new().name("live page".to_owned()).spawn(answer).is_err() {
                self.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut request, mut buffer) = (Vec::new(), [0; 2048]);
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                read => request.extend(buffer.iter().take(read)),
            }
            if request.len() > LONGEST_REQUEST {
                return stream.write_all(&Reply::refused("431 Request Header Fields Too Large").bytes());
            }
        }
        let reply = self.reply(&String::from_utf8_lossy(&request));
        stream.write_all(&reply.bytes())?;
        stream.flush()?;
        if reply.is_last {
            lock(&self.visits).fetched = true;
            self.fetched.notify_all();
        }
        Ok(())
    }

    fn reply(&self, request: &str) -> Reply {
        let mut lines = request.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut fields = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'));
        let host = fields.find(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.trim());
        if !host.is_some_and(is_loopback) {
            return Reply::refused("403 Forbidden");
        }
        let Some(page) = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.token.as_str())) else {
            return Reply::refused("404 Not Found");
        };
        match (method, page) {
            ("GET", "/") => self.page(),
            ("GET", "/progress") => self.progress_reply(),
            ("GET", _) => Reply::refused("404 Not Found"),
            _ => Reply::refused("405 Method Not Allowed"),
        }
    }

    fn page(&self) -> Reply {
        let finished = {
            let mut visits = lock(&self.visits);
            visits.last = Some(Instant::now());
            visits.finished.as_ref().and_then(|file| read_text(file).ok())
        };
        let is_last = finished.is_some();
        let body = finished.unwrap_or_else(|| self.partial());
        Reply { is_last, ..Reply::of("200 OK", "text/html", body) }
    }

    /// The page of what there is so far.
    fn partial(&self) -> String {
        const NOTHING: &str = "<!doctype html><meta http-equiv=\"refresh\" content=\"1\"><title>compeval</title>\
                               <p>The run begins …</p>";
        let mut made = lock(&self.made);
        let (began, version) = (Instant::now(), self.source.version());
        if let Some(made) = made.as_ref().filter(|made| made.version == version || made.until > began) {
            return made.page.clone();
        }
        let Some(page) = self.source.page(version) else { return NOTHING.to_owned() };
        let until = Instant::now() + began.elapsed() * REST;
        *made = Some(MadePage { version, page: page.clone(), until });
        *lock(&self.resting) = Some((version, until));
        page
    }

    /// How far the run is, and the version that the page would have.
    fn progress_reply(&self) -> Reply {
        let is_ended = {
            let mut visits = lock(&self.visits);
            visits.last = Some(Instant::now());
            visits.finished.is_some()
        };
        let resting = lock(&self.resting).filter(|(_, until)| *until > Instant::now());
        let version = resting.map_or_else(|| self.source.version(), |(version, _)| version);
        let run = self.progress.json();
        let body = format!("{{\"version\":{version},\"ended\":{is_ended},\"run\":{run}}}");
        Reply::of("200 OK", "application/json", body)
    }
}

#[cfg(test)]
mod tests {
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

    fn site() -> Site {
        Site::new("t0ken".to_owned(), Box::new(Numbered(AtomicUsize::new(0))))
    }

    fn ask(site: &Site, request: &str) -> (String, String) {
        let Reply { status, body, .. } = site.reply(&format!("{request}\r\n\r\n"));
        (status.to_owned(), body)
    }

    #[test]
    fn nobody_is_served_without_the_token_from_elsewhere_or_otherwise() {
        let site = site();
        let refused = [
            ("403 Forbidden", "GET /t0ken/ HTTP/1.1"),
            ("403 Forbidden", "GET /t0ken/ HTTP/1.1\r\nHost: evil.example"),
            ("403 Forbidden", "GET /t0ken/ HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80"),
            ("403 Forbidden", "GET /t0ken/ HTTP/1.1\r\nX: 1\r\n\r\nHost: localhost"),
            ("404 Not Found", "GET / HTTP/1.1\r\nHost: localhost:1"),
            ("404 Not Found", "GET /t0kem/ HTTP/1.1\r\nHost: localhost:1"),
            ("404 Not Found", "GET /t0ken/../t0ken/ HTTP/1.1\r\nHost: localhost:1"),
            ("405 Method Not Allowed", "POST /t0ken/ HTTP/1.1\r\nhost: [::1]:80"),
            ("403 Forbidden", ""),
        ];
        for (status, request) in refused {
            assert_eq!(ask(&site, request).0, status, "{request}");
        }
        assert!(lock(&site.visits).last.is_none(), "nobody was looking");
    }

    #[test]
    fn a_page_is_made_when_there_is_one_and_progress_is_told() {
        let site = site();
        let get = |path: &str| ask(&site, &format!("GET /t0ken{path} HTTP/1.1\r\nHost: 127.0.0.1:4000"));
        assert!(get("/").1.contains("The run begins"));
        assert_eq!(get("/").1, "page 1");
        site.progress.set("{\"pace\":\"1 call/s\"}".to_owned());
        assert!(get("/progress").1.contains("\"ended\":false,\"run\":{\"pace\":\"1 call/s\"}}"));
    }

    #[test]
    fn the_finished_page_is_the_last_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        crate::files::write_whole(file.path(), "finished").unwrap();
        let site = site();
        lock(&site.visits).finished = Some(file.path().to_owned());
        let get = |path: &str| ask(&site, &format!("GET /t0ken{path} HTTP/1.1\r\nHost: localhost"));
        assert!(get("/progress").1.contains("\"ended\":true"));
        assert_eq!(get("/").1, "finished");
        assert!(site.reply("GET /t0ken/ HTTP/1.1\r\nHost: localhost\r\n\r\n").is_last);
    }
}
