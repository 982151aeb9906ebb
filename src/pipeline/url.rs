//! Base URLs: validation, and the normal form from which default endpoint identities are made.
//!
//! The crate `url` parses and checks; the normal form keeps the user's spelling, because it is part of cache keys.

use models::Dialect;
use url::Url;

/// The normal form of a base URL: no slash at the end, and for Anthropic no `/v1`.
pub(super) fn normalize(text: &str, dialect: Dialect) -> Result<String, (String, String)> {
    let Some((scheme, rest)) = text.split_once("://") else {
        let help = format!(
            "write https://{0}, or http://{0} for a local server",
            text.trim_start_matches('/')
        );
        return Err((format!("base_url `{text}` has no scheme"), help));
    };
    if !matches!(scheme, "http" | "https") {
        return refuse(
            format!("base_url has the scheme `{scheme}`"),
            "use http or https",
        );
    }
    if rest
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default()
        .contains('@')
    {
        return refuse(
            "base_url contains credentials",
            "keys must not be in files: put the key into a variable and name it in api_key_env",
        );
    }
    let url = Url::parse(text)
        .ok()
        .filter(|url| url.fragment().is_none() && !text.contains(char::is_whitespace));
    let Some(url) = url else {
        return refuse(
            format!("base_url `{text}` is not a web address"),
            "write https://HOST/PATH",
        );
    };
    if url.query().is_some_and(|query| !is_api_version(query)) {
        return refuse(
            "base_url has a query",
            "a base_url is the root of an API; only Azure's `?api-version=…` may follow it",
        );
    }
    let (path, query) = rest
        .split_once('?')
        .map_or((rest, String::new()), |(path, query)| {
            (path, format!("?{query}"))
        });
    let mut path = path.trim_end_matches('/');
    if dialect == Dialect::Anthropic {
        path = path
            .strip_suffix("/v1")
            .unwrap_or(path)
            .trim_end_matches('/');
    }
    Ok(format!("{scheme}://{path}{query}"))
}

fn refuse(message: impl Into<String>, help: &str) -> Result<String, (String, String)> {
    Err((message.into(), help.to_owned()))
}

fn is_api_version(query: &str) -> bool {
    query
        .strip_prefix("api-version=")
        .is_some_and(|version| !version.is_empty() && !version.contains('&'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_one_normal_form_and_bad_ones_are_refused_without_their_secrets() {
        let chat = |url: &str| normalize(url, Dialect::OpenaiChat).map_err(|(message, _)| message);
        assert_eq!(
            chat("http://127.0.0.1:8080/v1/"),
            Ok("http://127.0.0.1:8080/v1".into())
        );
        assert_eq!(
            chat("https://x.azure.com/openai/deployments/d/?api-version=1"),
            Ok("https://x.azure.com/openai/deployments/d?api-version=1".into())
        );
        for bad in [
            "localhost:8080/v1",
            "ftp://a/v1",
            "https://",
            "https://a/v1?key=1",
            "https://u:p@a/v1",
            "https://a b",
        ] {
            assert!(chat(bad).is_err(), "{bad}");
        }
        assert!(
            !chat("https://u:secret@a/v1")
                .unwrap_err()
                .contains("secret")
        );
    }

    #[test]
    fn anthropic_is_the_same_with_or_without_v1() {
        let [with, without] = ["https://api.anthropic.com/v1/", "https://api.anthropic.com"]
            .map(|url| normalize(url, Dialect::Anthropic));
        assert_eq!(with, without);
    }
}
