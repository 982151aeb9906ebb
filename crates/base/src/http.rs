//! Makes the HTTP clients of model providers and of shared caches.

use std::error::Error;
use std::net::IpAddr;
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
        // The transport's own choice passes over a proxy that it cannot use.
        Route::Outside => {
            let chosen = |url: &Url| proxy_for(url.as_str()).ok().flatten();
            let proxy = reqwest::Proxy::custom(move |url| chosen(url).map(|proxy| proxy.url));
            builder.no_proxy().proxy(proxy).build()
        }
    }
}

/// A proxy that the environment prescribes.
pub struct Proxy {
    /// Its address, with credentials if it has some.
    url: Url,
    /// The variable that names it.
    pub variable: String,
}

/// The proxy through which a URL is to be asked. The first variable that is not blank counts.
///
/// # Errors
/// Which variable names no usable proxy: a request must not go past it.
pub fn proxy_for(url: &str) -> Result<Option<Proxy>, String> {
    proxy_in(url, |name| std::env::var(name).ok())
}

fn proxy_in(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, String> {
    let set = |name: &str| {
        let names = [name.to_owned(), name.to_lowercase()];
        let set = names
            .into_iter()
            .filter_map(|name| Some((variable(&name)?.trim().to_owned(), name)));
        set.into_iter().find(|(value, _)| !value.is_empty())
    };
    let outside = Route::from_url(url) == Route::Outside;
    let Some(url) = Url::parse(url).ok().filter(|_| outside) else {
        return Ok(None);
    };
    let named = set(&format!("{}_PROXY", url.scheme().to_uppercase())).or_else(|| set("ALL_PROXY"));
    let Some((text, variable)) = named else {
        return Ok(None);
    };
    let exempt = set("NO_PROXY").map_or(String::new(), |(hosts, _)| hosts.to_lowercase());
    if exempt.split(',').any(|entry| is_exempt(&url, entry.trim())) {
        return Ok(None);
    }
    let full = match text.contains("://") {
        true => text.clone(),
        false => format!("http://{text}"),
    };
    let proxy = Url::parse(&full).ok().filter(|proxy| {
        matches!(proxy.scheme(), "http" | "https")
            && proxy.host().is_some()
            && matches!(proxy.path(), "" | "/")
    });
    match proxy {
        Some(url) => Ok(Some(Proxy { url, variable })),
        None => {
            let kind = text.split_once("://").map_or(String::new(), |(scheme, _)| {
                format!(" of the kind {scheme}://")
            });
            Err(format!(
                "{variable} names a proxy{kind} that cannot be used, so nothing is sent: expected http://HOST:PORT"
            ))
        }
    }
}

/// Whether an entry of `NO_PROXY` covers a URL: a domain with all below it, an address, a range of addresses, or `*`.
fn is_exempt(url: &Url, entry: &str) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or_default();
    let entry = entry
        .strip_suffix(&format!(":{port}"))
        .unwrap_or(entry)
        .trim_start_matches("*.")
        .trim_start_matches('.');
    entry == "*"
        || !entry.is_empty() && (host == entry || host.ends_with(&format!(".{entry}")))
        || is_in_range(host, entry)
}

/// Whether `range`, such as `10.0.0.0/8`, has this address.
fn is_in_range(host: &str, range: &str) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let inside = || {
        let (network, length) = range.split_once('/')?;
        let (network, longest) = bits(network.parse().ok()?);
        let (address, kind) = bits(host.parse().ok()?);
        let length: u32 = length.parse().ok().filter(|length| *length <= longest)?;
        let differ = (network ^ address).leading_zeros();
        Some(kind == longest && differ >= length)
    };
    inside().unwrap_or(false)
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
            let found = proxy_in(url, |name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            });
            found.map(drop)
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
    fn the_first_variable_with_a_text_names_the_proxy_and_no_proxy_its_exceptions() {
        let chosen = |url: &str, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            proxy_in(url, variable).unwrap().map(|proxy| proxy.variable)
        };
        let there = "https://api.example.com/v1";
        let blank = ("HTTPS_PROXY", " \n");
        let lower = ("https_proxy", " http://p:1\n");
        assert_eq!(chosen(there, &[blank, lower]).unwrap(), "https_proxy");
        assert_eq!(chosen(there, &[blank]), None);
        for exempt in [
            "*",
            "example.com",
            "x, .EXAMPLE.com",
            "*.example.com",
            "api.example.com:443",
        ] {
            assert_eq!(
                chosen(there, &[lower, ("NO_PROXY", exempt)]),
                None,
                "{exempt}"
            );
        }
        for other in ["ample.com", "", ",", "api.example.com:8443", "10.0.0.0/8"] {
            assert!(
                chosen(there, &[lower, ("NO_PROXY", other)]).is_some(),
                "{other}"
            );
        }
        for (host, range, is_exempt) in [
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("10.1.2.3", "0.0.0.0/0", true),
            ("10.1.2.3", "10.0.0.0/99", false),
            ("[fd00::1]", "fd00::/8", true),
            ("[fd00::1]", "10.0.0.0/8", false),
        ] {
            let url = format!("https://{host}/v1");
            let proxy = chosen(&url, &[lower, ("no_proxy", range)]);
            assert_eq!(proxy.is_none(), is_exempt, "{host} in {range}");
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
