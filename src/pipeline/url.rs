//! Base URLs: what one must look like, and its normal form, which default identities are made from.

use crate::provider::Dialect;

/// The normal form of a base URL: no slash at the end, and for Anthropic no `/v1`. Or what is wrong with it, and
/// what to do.
pub(super) fn normal(url: &str, dialect: Dialect) -> Result<String, (String, String)> {
    let fault = |message: String, help: &str| Err((message, help.to_owned()));
    let Some((scheme, rest)) = url.split_once("://") else {
        let help = format!("write https://{0}, or http://{0} for a local server", url.trim_start_matches('/'));
        return Err((format!("base_url `{url}` has no scheme"), help));
    };
    if !matches!(scheme, "http" | "https") {
        return fault(format!("base_url has the scheme `{scheme}`"), "a provider is reached by http or https");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    if authority.contains('@') {
        return fault(
            "base_url holds credentials".to_owned(),
            "keys never stand in files: put the key into a variable and name it in api_key_env",
        );
    }
    if host(url).is_empty() || url.contains(char::is_whitespace) || url.contains('#') {
        return fault(format!("base_url `{url}` is not a web address"), "write https://HOST/PATH");
    }
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    if query.is_some_and(|query| !is_api_version(query)) {
        return fault(
            "base_url has a query".to_owned(),
            "a base_url is the root of an API; only Azure's `?api-version=…` may follow it",
        );
    }
    let mut path = path.trim_end_matches('/');
    if dialect == Dialect::Anthropic {
        path = path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/');
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("{scheme}://{path}{query}"))
}

fn is_api_version(query: &str) -> bool {
    query.strip_prefix("api-version=").is_some_and(|version| !version.is_empty() && !version.contains('&'))
}

/// The host of a URL with a scheme, without its port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => authority.split(':').next().unwrap_or(""),
    }
}

/// Whether a URL leads to this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let host = host(url);
    host == "localhost" || host.ends_with(".localhost") || host == "::1" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms() {
        let chat = |url: &str| normal(url, Dialect::OpenaiChat).map_err(|(message, _)| message);
        assert_eq!(chat("http://127.0.0.1:8080/v1/"), Ok("http://127.0.0.1:8080/v1".into()));
        assert_eq!(
            chat("https://x.azure.com/openai/deployments/d/?api-version=1"),
            Ok("https://x.azure.com/openai/deployments/d?api-version=1".into())
        );
        for bad in
            ["localhost:8080/v1", "ftp://a/v1", "https://", "https://a/v1?key=1", "https://u:p@a/v1", "https://a b"]
        {
            assert!(chat(bad).is_err(), "{bad}");
        }
        assert!(!chat("https://u:secret@a/v1").unwrap_err().contains("secret"));
    }

    #[test]
    fn anthropic_is_the_same_with_or_without_v1() {
        let of = |url| normal(url, Dialect::Anthropic);
        assert_eq!(of("https://api.anthropic.com/v1/"), of("https://api.anthropic.com"));
    }

    #[test]
    fn this_machine_is_told_from_others() {
        assert!(["http://localhost:1/v1", "http://127.0.0.1", "http://[::1]:80/v1"].into_iter().all(is_loopback));
        assert!(!is_loopback("https://localhost.example.com/v1"));
    }
}
