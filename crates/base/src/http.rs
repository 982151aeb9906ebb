//! Makes the HTTP clients of model providers and of shared caches.

use std::error::Error;
use std::time::Duration;

use url::{Host, Url};

/// How a client reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this machine, by http: without a proxy, and without the system's certificates, which take time to read.
    PlainLoopback,
    /// To this machine, by https: without a proxy.
    Loopback,
    /// To any other host.
    Outside,
}

impl Route {
    /// The route to the server of a URL; `Outside` for a text that is no URL.
    pub fn from_url(url: &str) -> Route {
        let Ok(url) = Url::parse(url) else {
            return Route::Outside;
        };
        let is_local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
            Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
            None => false,
        };
        match (is_local, url.scheme()) {
            (false, _) => Route::Outside,
            (true, "http") => Route::PlainLoopback,
            (true, _) => Route::Loopback,
        }
    }
}

/// A client for servers on a route. It follows no redirects, which could carry credentials elsewhere.
///
/// # Errors
/// If the system has no certificates or random numbers.
pub fn client(route: Route) -> Result<reqwest::Client, String> {
    build(route).map_err(|error| root_cause(&error))
}

fn build(route: Route) -> reqwest::Result<reqwest::Client> {
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
    match route {
        Route::PlainLoopback => builder.no_proxy().tls_certs_only([]).build(),
        Route::Loopback => builder.no_proxy().build(),
        Route::Outside => builder.build(),
    }
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
        let near = [
            "localhost",
            "127.0.0.1",
            "127.1.2.3:80",
            "[::1]:8080",
            "0.0.0.0",
            "a.localhost",
        ];
        for host in near {
            assert_eq!(
                Route::from_url(&format!("http://{host}/v1")),
                Route::PlainLoopback,
                "{host}"
            );
            assert_eq!(
                Route::from_url(&format!("https://{host}/v1")),
                Route::Loopback,
                "{host}"
            );
        }
        for url in [
            "http://127.example.com",
            "https://localhost.example.com",
            "http://10.0.0.1",
            "localhost:80",
            "",
        ] {
            assert_eq!(Route::from_url(url), Route::Outside, "{url}");
        }
    }

    #[test]
    fn a_client_can_be_built_for_each_route() {
        assert!(
            [Route::PlainLoopback, Route::Loopback, Route::Outside]
                .map(client)
                .iter()
                .all(Result::is_ok)
        );
    }
}
