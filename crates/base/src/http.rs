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

/// Whether requests to this URL can go the way that the environment prescribes. The transport passes over a proxy that it
/// cannot use, and the request would go past it.
///
/// # Errors
/// Which variable names no usable proxy.
pub fn usable_proxy(url: &str) -> Result<(), String> {
    check_proxy(url, |name| std::env::var(name).ok())
}

fn check_proxy(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    let set = |name: &str| {
        let names = [name.to_owned(), name.to_lowercase()];
        let mut set = names
            .into_iter()
            .filter_map(|name| Some((variable(&name)?, name)));
        set.find(|(value, _)| !value.trim().is_empty())
    };
    let Some(url) = Url::parse(url)
        .ok()
        .filter(|_| Route::from_url(url) == Route::Outside)
    else {
        return Ok(());
    };
    let proxy = set(&format!("{}_PROXY", url.scheme().to_uppercase())).or_else(|| set("ALL_PROXY"));
    let Some((proxy, name)) = proxy else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default();
    let exempt = set("NO_PROXY").map_or(String::new(), |(hosts, _)| hosts);
    let mut exempt = exempt
        .split(',')
        .map(|entry| entry.trim().trim_start_matches('.'));
    if exempt.any(|entry| {
        entry == "*" || !entry.is_empty() && (host == entry || host.ends_with(&format!(".{entry}")))
    }) {
        return Ok(());
    }
    let proxy = proxy.trim();
    let full = if proxy.contains("://") {
        proxy.to_owned()
    } else {
        format!("http://{proxy}")
    };
    let read = Url::parse(&full).ok();
    let is_usable = read.as_ref().is_some_and(|proxy| {
        matches!(proxy.scheme(), "http" | "https")
            && proxy.host().is_some()
            && matches!(proxy.path(), "" | "/")
    });
    let scheme = proxy
        .split_once("://")
        .map_or(String::new(), |(scheme, _)| {
            format!(" of the kind {scheme}://")
        });
    if is_usable {
        Ok(())
    } else {
        Err(format!(
            "{name} names a proxy{scheme} that cannot be used, so nothing is sent: expected http://HOST:PORT"
        ))
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
    fn a_proxy_that_cannot_be_used_is_refused_where_it_would_be_used() {
        let check = |url: &str, set: &[(&str, &str)]| {
            check_proxy(url, |name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            })
        };
        let there = "https://api.example.com/v1";
        for proxy in [
            "socks://p:1",
            "socks5://u:secret@p:1",
            "socks5h://p:1",
            "htp://p:1",
            "http//p:1",
            "ftp://p",
            "http://",
            "https://:1",
            "http://p:99999999",
            "https://p/path",
        ] {
            let refusal = check(there, &[("HTTPS_PROXY", proxy)]).unwrap_err();
            assert!(
                refusal.contains("HTTPS_PROXY") && !refusal.contains("secret"),
                "{refusal}"
            );
            assert!(check(there, &[("all_proxy", proxy)]).is_err(), "{proxy}");
            assert!(
                check(
                    there,
                    &[("https_proxy", "http://p:1"), ("ALL_PROXY", proxy)]
                )
                .is_ok()
            );
            assert!(
                check(there, &[("HTTP_PROXY", proxy)]).is_ok(),
                "another scheme's proxy"
            );
            assert!(
                check(
                    there,
                    &[("HTTPS_PROXY", proxy), ("NO_PROXY", "x, .example.com")]
                )
                .is_ok()
            );
            assert!(check("http://127.0.0.1:1", &[("HTTP_PROXY", proxy)]).is_ok());
        }
        for proxy in [
            "http://p:1",
            "https://u:p@p:1/",
            "p:3128",
            "10.0.0.1:8080",
            "",
        ] {
            assert!(check(there, &[("HTTPS_PROXY", proxy)]).is_ok(), "{proxy}");
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
