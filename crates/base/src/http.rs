//! Makes the HTTP clients of model providers and of shared caches.

use std::error::Error;
use std::time::Duration;

/// Whether a host is this machine.
pub fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "::1" | "0.0.0.0") || host.starts_with("127.")
}

/// A client for `host`. It reaches this machine without a proxy, and follows no redirects, which could carry
/// credentials elsewhere.
///
/// # Errors
/// If the system has no certificates or random numbers.
pub fn client(host: &str) -> Result<reqwest::Client, String> {
    build(is_loopback(host)).map_err(|error| root_cause(&error))
}

fn build(is_local: bool) -> reqwest::Result<reqwest::Client> {
    // Fails only if a provider is already installed, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("compeval/", env!("CARGO_PKG_VERSION")))
        // HTTP/2 would put all calls on one connection, under the server's limit of streams.
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(90))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never());
    if is_local { builder.no_proxy().build() } else { builder.build() }
}

/// The innermost error, which says what really went wrong.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
