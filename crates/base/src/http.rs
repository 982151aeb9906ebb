//! Makes the HTTP clients of model providers and of shared caches.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

/// Whether a host, without brackets, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let is_address = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    host == "localhost" || host.parse().is_ok_and(is_address)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_like_an_address_of_this_machine_is_another_host() {
        assert!(["localhost", "127.0.0.1", "127.1.2.3", "::1", "0.0.0.0"].into_iter().all(is_loopback));
        assert!(!["127.example.com", "api.example.com", "10.0.0.1", ""].into_iter().any(is_loopback));
    }
}
