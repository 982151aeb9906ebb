//! Pages for a browser on this machine.
//!
//! An address has a random token in its path, so no other user of the machine can guess it. The `Host` must be
//! loopback, so no website can make a browser request it under another host name. API keys are removed from everything
//! that is sent, even if a transcript contains them. Each connection has a thread, because a browser opens connections
//! before it has requests for them. A reply closes its connection. There is a deadline for a whole request. If there
//! are too many connections, the oldest one that has sent no request is closed, so clients that send nothing cannot
//! keep others out.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use base::redaction::redact_bytes;

/// How long a connection may take to send its whole request, or to receive the reply.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_CONNECTIONS: usize = 16;
/// The longest request that is read, in bytes.
const LONGEST_REQUEST: u64 = 1 << 20;

/// What a page may load and do, besides the page's own policy: nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is served below the token.
pub trait Site: Send + Sync + 'static {
    fn reply(&self, request: &PageRequest) -> PageReply;

    /// Called after a reply was sent.
    fn sent(&self, _reply: &PageReply) {}
}

/// The parts of a request that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    pub method: String,
    /// The path below the token.
    pub path: String,
    pub host: String,
    pub is_json: bool,
    pub body: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct PageReply {
    pub status: &'static str,
    pub kind: &'static str,
    pub body: String,
    /// Whether nothing is served after this reply.
    pub is_last: bool,
}

impl PageReply {
    pub fn new(status: &'static str, kind: &'static str, body: String) -> PageReply {
        PageReply {
            status,
            kind,
            body,
            is_last: false,
        }
    }

    pub fn refused(status: &'static str) -> PageReply {
        PageReply::new(status, "text/plain", status.to_owned())
    }

    /// The whole reply with its head, without API keys.
    fn bytes(&self) -> Vec<u8> {
        let body = redact_bytes(self.body.as_bytes());
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: {POLICY}\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
            self.status,
            self.kind,
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }
}

/// A running server; it ends when dropped.
pub struct LoopbackServer {
    shared: Arc<Shared>,
    socket: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    token: String,
    site: Arc<dyn Site>,
    connections: Mutex<Connections>,
    closed: AtomicBool,
}

/// The open connections.
#[derive(Default)]
struct Connections {
    started: u64,
    open: usize,
    /// The connections whose request has not arrived, the oldest first.
    silent: BTreeMap<u64, TcpStream>,
}

impl LoopbackServer {
    /// Begins to serve.
    ///
    /// # Errors
    /// No port is free, or no thread can be started.
    pub fn start(site: Arc<dyn Site>) -> io::Result<LoopbackServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let socket = listener.local_addr()?;
        let shared = Arc::new(Shared {
            token: token()?,
            site,
            connections: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let served = shared.clone();
        let thread = Builder::new()
            .name("pages".to_owned())
            .spawn(move || served.serve(&listener))?;
        Ok(LoopbackServer {
            shared,
            socket,
            thread: Some(thread),
        })
    }

    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.socket, self.shared.token)
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        // The thread waits for a connection, so this wakes it.
        drop(TcpStream::connect_timeout(&self.socket, PATIENCE));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed why.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn serve(self: &Arc<Shared>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let Some(number) = self.admit(&stream) else {
                continue;
            };
            let connection = Connection {
                shared: self.clone(),
                number,
            };
            // A browser that went away needs no reply. Where no thread can be started, the connection is dropped.
            drop(
                Builder::new()
                    .name("page".to_owned())
                    .spawn(move || drop(connection.exchange(stream))),
            );
        }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new connection and returns its number; `None` if too many connections are receiving replies.
    fn admit(&self, stream: &TcpStream) -> Option<u64> {
        let mut connections = self.connections();
        if connections.open >= MOST_CONNECTIONS {
            let (_, oldest) = connections.silent.pop_first()?;
            // Its thread ends with an error, and then lowers the count.
            drop(oldest.shutdown(Shutdown::Both));
        }
        let number = connections.started;
        connections.silent.insert(number, stream.try_clone().ok()?);
        connections.started += 1;
        connections.open += 1;
        Some(number)
    }

    fn reply(&self, mut request: PageRequest) -> PageReply {
        if !is_loopback(&request.host) {
            return PageReply::refused("403 Forbidden");
        }
        let path = request
            .path
            .strip_prefix('/')
            .and_then(|path| path.strip_prefix(self.token.as_str()));
        let Some(path) = path else {
            return PageReply::refused("404 Not Found");
        };
        request.path = path.to_owned();
        self.site.reply(&request)
    }
}

/// An open connection. It is counted until this is dropped, which also happens where making its page panics.
struct Connection {
    shared: Arc<Shared>,
    number: u64,
}

impl Connection {
    fn exchange(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = PageRequest::read(TimedStream {
            stream: &stream,
            until: Instant::now() + PATIENCE,
        });
        self.shared.connections().silent.remove(&self.number);
        let Some(request) = request? else {
            return Ok(());
        };
        let reply = self.shared.reply(request);
        stream.write_all(&reply.bytes())?;
        stream.flush()?;
        self.shared.site.sent(&reply);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut connections = self.shared.connections();
        connections.open -= 1;
        connections.silent.remove(&self.number);
    }
}

/// Reads from a connection until a deadline.
struct TimedStream<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl Read for TimedStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

impl PageRequest {
    /// Reads a request; `None` if there is none. A request that is too long is cut, and therefore refused.
    fn read(from: impl Read) -> io::Result<Option<PageRequest>> {
        let mut reader = BufReader::new(from.take(LONGEST_REQUEST));
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let mut request = PageRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            ..PageRequest::default()
        };
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
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
}

/// 128 random bits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a `Host` is this machine. The port is ignored, because a tunnel has another port.
fn is_loopback(host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Site for Echo {
        fn reply(&self, request: &PageRequest) -> PageReply {
            let PageRequest {
                method,
                path,
                is_json,
                body,
                ..
            } = request;
            let body = String::from_utf8_lossy(body);
            PageReply::new(
                "200 OK",
                "text/plain",
                format!("{method} {path} {is_json} {body}"),
            )
        }
    }

    fn ask(request: &str) -> (&'static str, String) {
        let shared = Shared {
            token: "t0ken".to_owned(),
            site: Arc::new(Echo),
            connections: Mutex::default(),
            closed: AtomicBool::new(false),
        };
        let request = PageRequest::read(format!("{request}\r\n\r\n").as_bytes())
            .unwrap()
            .unwrap();
        let PageReply { status, body, .. } = shared.reply(request);
        (status, body)
    }

    /// What a server replies to a browser; empty if it closes the connection.
    fn get(server: &LoopbackServer, page: &str) -> String {
        let mut stream = TcpStream::connect(server.socket).unwrap();
        let address = server.address();
        let path = address.splitn(4, '/').nth(3).unwrap();
        stream
            .write_all(format!("GET /{path}{page} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
            .unwrap();
        let mut reply = String::new();
        drop(stream.read_to_string(&mut reply));
        reply
    }

    struct Fragile;

    impl Site for Fragile {
        fn reply(&self, request: &PageRequest) -> PageReply {
            assert!(
                !request.path.ends_with("broken"),
                "this page cannot be made"
            );
            PageReply::new("200 OK", "text/plain", "whole".to_owned())
        }
    }

    #[test]
    fn pages_that_panic_keep_nobody_out() {
        let server = LoopbackServer::start(Arc::new(Fragile)).unwrap();
        for _ in 0..2 * MOST_CONNECTIONS {
            assert_eq!(get(&server, "broken"), "");
        }
        assert!(get(&server, "page").ends_with("whole"));
    }

    #[test]
    fn nobody_is_served_without_the_token_or_from_elsewhere() {
        let refused = [
            ("403 Forbidden", "GET /t0ken/ HTTP/1.1"),
            (
                "403 Forbidden",
                "GET /t0ken/ HTTP/1.1\r\nHost: evil.example",
            ),
            (
                "403 Forbidden",
                "GET /t0ken/ HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80",
            ),
            (
                "403 Forbidden",
                "GET /t0ken/ HTTP/1.1\r\nX: 1\r\n\r\nHost: localhost",
            ),
            ("404 Not Found", "GET / HTTP/1.1\r\nHost: localhost:1"),
            ("404 Not Found", "GET /t0kem/ HTTP/1.1\r\nHost: localhost:1"),
        ];
        for (status, request) in refused {
            assert_eq!(ask(request).0, status, "{request}");
        }
        for host in ["127.0.0.1:4000", "localhost", "[::1]:80"] {
            assert_eq!(
                ask(&format!("GET /t0ken/x HTTP/1.1\r\nhost: {host}")).1,
                "GET /x false ",
                "{host}"
            );
        }
    }

    #[test]
    fn clients_that_send_nothing_keep_nobody_out() {
        let server = LoopbackServer::start(Arc::new(Echo)).unwrap();
        let silent: Vec<TcpStream> = (0..3 * MOST_CONNECTIONS)
            .map(|_| TcpStream::connect(server.socket).unwrap())
            .collect();
        let reply = get(&server, "");
        assert!(
            reply.starts_with("HTTP/1.1 200 OK")
                && reply.contains("Content-Security-Policy: default-src 'none'")
        );
        drop(silent);
    }

    #[test]
    fn a_request_is_read_with_its_body_and_no_further() {
        let head = "POST /t0ken/decide HTTP/1.1\r\nHOST: localhost\r\nContent-Type: application/json\r\nContent-Length: 4";
        assert_eq!(
            ask(&format!("{head}\r\n\r\nabcdefg")).1,
            "POST /decide true abcd"
        );
        assert_eq!(PageRequest::read(b"".as_slice()).unwrap(), None);
        assert_eq!(PageRequest::read(b"\r\n\r\n".as_slice()).unwrap(), None);
        let endless = io::repeat(b'x').take(LONGEST_REQUEST * 4);
        let read = PageRequest::read(b"GET / HTTP/1.1\r\nHost: ".chain(endless))
            .unwrap()
            .unwrap();
        assert!((read.host.len() as u64) < LONGEST_REQUEST);
    }
}
