//! What servers on loopback have in common: an address that nobody can guess, the check of the `Host`, whole replies.

use std::io;

use crate::redaction::redact_bytes;

/// 128 bits that nobody can guess, for the path of an address.
pub(crate) fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a `Host` is this machine, whatever its port: a tunnel has another one. A website that has a browser ask under a
/// name of its own is refused by this.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

/// A reply, after which the connection is closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
    /// Whether nothing is served after it.
    pub(crate) is_last: bool,
}

impl Reply {
    pub(crate) fn of(status: &'static str, kind: &'static str, body: String) -> Reply {
        Reply { status, kind, body, is_last: false }
    }

    pub(crate) fn refused(status: &'static str) -> Reply {
        Reply::of(status, "text/plain", status.to_owned())
    }

    /// Whole, and without API keys.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let body = redact_bytes(self.body.as_bytes());
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
            self.status,
            self.kind,
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }
}
