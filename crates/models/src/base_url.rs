//! Base URLs as requests use them: the host, which decides about dialects and proxies, and the addresses below.

use url::{Host, Url};

/// The host of a base URL, without port and brackets; empty if there is none.
pub(super) fn host(base_url: &str) -> String {
    match Url::parse(base_url).ok().as_ref().and_then(Url::host) {
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(host) => host.to_string(),
        None => String::new(),
    }
}

/// Whether `host` is `domain` or lies below it.
pub(super) fn is_below(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// The full address: `path` goes before a query that the base URL carries (Azure's `api-version`). An address that does
/// not parse is returned as it is, for the transport to refuse.
pub(super) fn address(base_url: &str, path: &str) -> String {
    let Ok(mut url) = Url::parse(base_url) else { return base_url.to_owned() };
    url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_goes_before_the_query() {
        let azure = "https://a.openai.azure.com/openai/deployments/d?api-version=2025-01-01";
        assert_eq!(
            address(azure, "/chat/completions"),
            "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01"
        );
        assert_eq!(address("http://127.0.0.1:1/v1/", "/x"), "http://127.0.0.1:1/v1/x");
    }

    #[test]
    fn hosts_are_read_from_any_base_url() {
        assert_eq!(host("https://api.openai.com/v1"), "api.openai.com");
        assert_eq!(host("http://[::1]:8080/v1"), "::1");
        assert_eq!(host("http://me@localhost:8080?x=1"), "localhost");
        assert!(is_below("a.openai.azure.com", "azure.com"));
        assert!(!is_below("notazure.com", "azure.com"));
    }
}
