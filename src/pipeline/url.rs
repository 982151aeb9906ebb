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
    if url.query().is_some_and(|query| !is_plain_query(query)) {
        return refuse(
            "base_url has a parameter that may be a key, or is not a known API parameter",
            "only parameters such as Azure's `?api-version=…` may follow the address; a key that travels as one is named in \
             api_key_env, and its parameter in key_parameter",
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

/// Whether the parameters of an address hold no key: short words under names that no key has.
fn is_plain_query(query: &str) -> bool {
    const OF_KEYS: [&str; 7] = [
        "key",
        "token",
        "secret",
        "pass",
        "sig",
        "auth",
        "credential",
    ];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    query.split('&').all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let lower = name.to_ascii_lowercase();
        !OF_KEYS.iter().any(|part| lower.contains(part))
            && (1..=32).contains(&value.len())
            && value.chars().all(is_plain)
    })
}

/// A base URL as it may be shown: credentials and suspicious parameters are masked, the rest stays, so that a check says what
/// is wrong with it. Its length in bytes stays the same.
pub(super) fn masked(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let user = rest.split_at(authority).0.rfind('@').unwrap_or(0);
    let query = rest.find('?').map_or(rest.len(), |at| at + 1);
    let is_plain = is_plain_query(rest.split_at(query).1.trim_end_matches(['"', '\'']));
    let hidden = |at: usize| at < user || at >= query && !is_plain;
    let shown = rest.char_indices().map(|(at, c)| match c {
        '"' | '\'' | '=' | '&' | '\n' => c.to_string(),
        c if hidden(at) => "*".repeat(c.len_utf8()),
        c => c.to_string(),
    });
    format!("{scheme}{}", shown.collect::<String>())
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
            "https://a/v1?api-version=1&subscription-key=abc",
            "https://a/v1?access_token=x",
            "https://a/v1?api-version=",
            "https://a/v1?q=a%20b",
            "https://a/v1?x=0123456789abcdef0123456789abcdef0",
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
    fn addresses_of_azure_and_gateways_pass_and_only_what_may_be_secret_is_masked() {
        for url in [
            "https://x.openai.azure.com/openai/deployments/d?api-version=2025-01-01-preview",
            "https://x.openai.azure.us/openai/v1?api-version=preview",
            "https://x.cognitiveservices.azure.com/openai/v1?api-version=v1",
            "https://gw.example.com/llm/v1?tenant=a&region=eu-1",
            "https://gw.example.com/v1?deployment=gpt-5.5",
        ] {
            assert_eq!(normalize(url, Dialect::OpenaiChat).as_deref(), Ok(url));
            assert_eq!(masked(url), url);
        }
        for (url, shown) in [
            ("http://u:pw@a/v1", "http://****@a/v1"),
            ("http://u@b@a/v1?x=1", "http://***@a/v1?x=1"),
            ("https://a/v1?key=1&b=2", "https://a/v1?***=*&*=*"),
            ("\"https://a/v1?key=é\"", "\"https://a/v1?***=**\""),
        ] {
            assert_eq!(masked(url), shown);
        }
    }

    #[test]
    fn anthropic_is_the_same_with_or_without_v1() {
        let [with, without] = ["https://api.anthropic.com/v1/", "https://api.anthropic.com"]
            .map(|url| normalize(url, Dialect::Anthropic));
        assert_eq!(with, without);
    }
}
