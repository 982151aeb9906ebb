//! Providers: the built-in ones, merged with what the file declares, and the keys they need.
//!
//! The crate `url` checks base URLs; the normal form from which default endpoint identities are made keeps the user's
//! spelling, because it is part of cache keys.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::file::tables::ProviderTable;
use super::file::{Located, Map, value};
use super::model::SourceFile;
use super::problem::{Problem, Problems, list, suggest};
use base::http::Route;
use models::{
    ApiKeyVariable, Dialect, Endpoint, KeyPlace, Lane, Limits, ModelName, ProviderName,
    ProviderSpec, RatesPerMinute,
};
use url::Url;

/// The value of an environment variable by its name; `None` if it is not set.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

struct BuiltIn {
    name: &'static str,
    dialect: Dialect,
    base_url: &'static str,
    /// A variable that moves the base URL, as the vendor's own clients read it.
    url_variable: Option<&'static str>,
    key: Option<&'static str>,
}

const OPENAI: &str = "https://api.openai.com/v1";
const OPENAI_URL: Option<&str> = Some("OPENAI_BASE_URL");
const OPENAI_KEY: Option<&str> = Some("OPENAI_API_KEY");

/// The providers that exist without being declared.
const BUILT_IN: [BuiltIn; 6] = [
    BuiltIn {
        name: "openai",
        dialect: Dialect::OpenaiChat,
        base_url: OPENAI,
        url_variable: OPENAI_URL,
        key: OPENAI_KEY,
    },
    // It moves with `openai`: otherwise a proxy's key would be sent to OpenAI itself.
    BuiltIn {
        name: "openai-responses",
        dialect: Dialect::OpenaiResponses,
        base_url: OPENAI,
        url_variable: OPENAI_URL,
        key: OPENAI_KEY,
    },
    BuiltIn {
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        url_variable: None,
        key: Some("ANTHROPIC_API_KEY"),
    },
    BuiltIn {
        name: "openrouter",
        dialect: Dialect::OpenaiChat,
        base_url: "https://openrouter.ai/api/v1",
        url_variable: None,
        key: Some("OPENROUTER_API_KEY"),
    },
    BuiltIn {
        name: "ollama",
        dialect: Dialect::OpenaiChat,
        base_url: "http://localhost:11434/v1",
        url_variable: None,
        key: None,
    },
    BuiltIn {
        name: "lexical",
        dialect: Dialect::Lexical,
        base_url: "",
        url_variable: None,
        key: None,
    },
];

/// The endpoint of the built-in rules in cache keys. No other endpoint may be called that.
const LEXICAL: &str = "lexical";

/// The variables that contain keys, of providers declared and built in.
pub(super) fn key_variables(
    declared: Option<&Map<ProviderTable>>,
) -> impl Iterator<Item = ApiKeyVariable> {
    let named = declared
        .into_iter()
        .flat_map(BTreeMap::values)
        .filter_map(|table| table.value.api_key_env.as_ref());
    let named = named
        .map(|variable| variable.value.as_str())
        .filter(|name| is_variable(name));
    named
        .chain(BUILT_IN.iter().filter_map(|provider| provider.key))
        .map(|name| ApiKeyVariable(name.into()))
}

/// Whether a text is the name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// All providers, declared and built in. One with errors is reported and left out; its name is kept.
pub(super) struct Providers {
    pub(super) known: BTreeMap<ProviderName, Arc<ProviderSpec>>,
    faulty: Vec<String>,
}

impl Providers {
    /// Merges the declared providers into the built-in ones.
    pub(super) fn resolve(
        declared: &Map<ProviderTable>,
        file: &SourceFile,
        environment: &Environment<'_>,
        problems: &mut Problems,
    ) -> Providers {
        let mut providers = Providers {
            known: BTreeMap::new(),
            faulty: Vec::new(),
        };
        let built_in_names = BUILT_IN
            .iter()
            .map(|b| b.name)
            .filter(|name| !declared.contains_key(*name));
        for name in declared.keys().map(String::as_str).chain(built_in_names) {
            let built_in = BUILT_IN.iter().find(|b| b.name == name);
            let mut draft = ProviderDraft {
                name,
                built_in,
                table: declared.get(name),
                file,
                environment,
                problems,
            };
            match draft.resolve() {
                Some(spec) => drop(providers.known.insert(spec.name.clone(), Arc::new(spec))),
                None => providers.faulty.push(name.to_owned()),
            }
        }
        providers
    }

    /// Reduces the limits of each provider to the share of one of `sharers` processes.
    pub(super) fn divide_limits(&mut self, sharers: NonZeroU32, problems: &mut Problems) {
        for (name, spec) in &mut self.known {
            match spec.limits.divided(sharers) {
                Ok(limits) => Arc::make_mut(spec).limits = limits,
                Err(limit) => problems.0.push(
                    Problem::error(format!(
                        "{limit} of provider `{name}` cannot be divided among {sharers} parts"
                    ))
                    .help("use fewer parts, or raise the limit"),
                ),
            }
        }
    }

    /// A provider by name; a hint if it is unknown, `Err(None)` if its own error is already reported.
    pub(super) fn find(&self, name: &ProviderName) -> Result<Arc<ProviderSpec>, Option<String>> {
        match self.known.get(name) {
            Some(spec) => Ok(spec.clone()),
            None if self.faulty.iter().any(|faulty| *faulty == *name.0) => Err(None),
            None => Err(Some(suggest(
                &name.0,
                self.known.keys().map(|name| &*name.0),
            ))),
        }
    }
}

/// One provider on its way from table to spec.
struct ProviderDraft<'a> {
    name: &'a str,
    built_in: Option<&'a BuiltIn>,
    table: Option<&'a Located<ProviderTable>>,
    file: &'a SourceFile,
    environment: &'a Environment<'a>,
    problems: &'a mut Problems,
}

impl ProviderDraft<'_> {
    fn resolve(&mut self) -> Option<ProviderSpec> {
        let dialect = self.resolve_dialect()?;
        // A built-in provider that is declared with another kind keeps nothing but its name.
        self.built_in = self.built_in.filter(|b| b.dialect == dialect);
        let limits = self.resolve_limits();
        let name = ProviderName::from(self.name);
        if dialect == Dialect::Lexical {
            self.reject_on_lexical();
            let endpoint = Endpoint::from(LEXICAL);
            return Some(ProviderSpec {
                name,
                dialect,
                base_url: String::new(),
                api_key: None,
                endpoint,
                limits,
                lane: Lane::Live,
                key_place: None,
            });
        }
        let base_url = self.resolve_base_url(dialect)?;
        let endpoint = self.resolve_endpoint(dialect, &base_url)?;
        let api_key = self.resolve_api_key(&base_url);
        self.reject_key_in_clear(&base_url, api_key.as_ref());
        let lane = self.table.and_then(|table| value(&table.value.lane));
        let key_place = self.resolve_key_place();
        Some(ProviderSpec {
            name,
            dialect,
            base_url,
            api_key,
            endpoint,
            limits,
            lane: lane.unwrap_or_default(),
            key_place,
        })
    }

    fn resolve_key_place(&mut self) -> Option<KeyPlace> {
        let table = &self.table?.value;
        let (written, place): (_, fn(String) -> KeyPlace) =
            match (&table.key_header, &table.key_parameter) {
                (Some(header), None) => (header, KeyPlace::Header),
                (None, Some(parameter)) => (parameter, KeyPlace::Parameter),
                (None, None) => return None,
                (Some(_), Some(parameter)) => {
                    let help = "a key travels in one place: remove key_header or key_parameter";
                    self.error(
                        &parameter.place,
                        "key_header and key_parameter exclude each other",
                        help,
                    );
                    return None;
                }
            };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if (1..=64).contains(&written.value.len()) && written.value.chars().all(is_name) {
            return Some(place(written.value.clone()));
        }
        let help = "write the name alone, such as \"api-key\"; the key itself stays in the variable that api_key_env names";
        self.error(
            &written.place,
            "this is not the name of a header or parameter",
            help,
        );
        None
    }

    fn resolve_dialect(&mut self) -> Option<Dialect> {
        let table = self.table.map(|table| &table.value);
        if let Some(kind) = table.and_then(|table| value(&table.kind)) {
            return Some(kind);
        }
        let is_faulty = table.is_some_and(|table| table.faulty.contains(&"kind"));
        if self.built_in.is_none() && !is_faulty {
            let help = format!(
                "add kind = \"openai-chat\" or another of {}",
                list(Dialect::ALL.map(Dialect::name))
            );
            self.error_at_header(format!("provider `{}` has no kind", self.name), help);
        }
        self.built_in.filter(|_| !is_faulty).map(|b| b.dialect)
    }

    fn reject_on_lexical(&mut self) {
        for (key, place) in self
            .table
            .map(|table| table.value.written())
            .unwrap_or_default()
        {
            if !matches!(key, "kind" | "limits") {
                let help =
                    "the built-in rules have no endpoint: remove the key, or name another kind";
                self.error(
                    &place,
                    format!("`{key}` says nothing for kind \"lexical\""),
                    help,
                );
            }
        }
    }

    fn resolve_base_url(&mut self, dialect: Dialect) -> Option<String> {
        if let Some(declared) = self.table.and_then(|table| table.value.base_url.as_ref()) {
            let url = normalize(&declared.value, dialect);
            return url
                .map_err(|(message, help)| self.error(&declared.place, message, help))
                .ok();
        }
        let Some(built_in) = self.built_in else {
            let help = "add base_url, the root of its API, such as \"http://127.0.0.1:8080/v1\"";
            self.error_at_header(format!("provider `{}` has no base_url", self.name), help);
            return None;
        };
        let moved = built_in
            .url_variable
            .and_then(|name| Some((name, (self.environment)(name)?)));
        let Some((variable, url)) = moved.filter(|(_, url)| !url.trim().is_empty()) else {
            return Some(built_in.base_url.to_owned());
        };
        let url = normalize(url.trim(), dialect).map_err(|(message, help)| {
            self.problems
                .push(Problem::error(format!("the variable {variable}: {message}")).help(help));
        });
        url.ok()
    }

    fn resolve_endpoint(&mut self, dialect: Dialect, base_url: &str) -> Option<Endpoint> {
        let Some(identity) = self.table.and_then(|table| table.value.identity.as_ref()) else {
            return Some(Endpoint(format!("{} {base_url}", dialect.name()).into()));
        };
        let name = identity.value.trim();
        if name.is_empty() || name == LEXICAL {
            let help = "an identity is what cache keys call this endpoint: any name of your own";
            self.error(
                &identity.place,
                format!("`{name}` cannot be an identity"),
                help,
            );
            return None;
        }
        Some(Endpoint::from(name))
    }

    /// A local server needs no key unless `api_key_env` names one.
    fn resolve_api_key(&mut self, base_url: &str) -> Option<ApiKeyVariable> {
        let written = self
            .table
            .and_then(|table| table.value.api_key_env.as_ref());
        if let Some(variable) = written {
            if is_variable(&variable.value) {
                return Some(ApiKeyVariable(variable.value.as_str().into()));
            }
            // The value may be the key itself, so the message does not repeat it; where the file is shown, it is
            // masked.
            let help = "keys must not be in files: export the key in a variable and write that variable's NAME here";
            self.error(
                &variable.place,
                "api_key_env is not the name of a variable",
                help,
            );
            return None;
        }
        let usual = self.built_in.and_then(|b| b.key)?;
        let is_set = (self.environment)(usual).is_some_and(|key| !key.is_empty());
        (is_set || Route::from_url(base_url) == Route::Outside)
            .then(|| ApiKeyVariable(usual.into()))
    }

    /// Reports a key that would be sent over `http://`, where everyone on the way can read it.
    fn reject_key_in_clear(&mut self, base_url: &str, api_key: Option<&ApiKeyVariable>) {
        let declared = self.table.map(|table| &table.value);
        let is_allowed = declared
            .and_then(|table| table.insecure.as_ref())
            .is_some_and(|insecure| insecure.value);
        let Some(variable) = api_key.filter(|_| {
            base_url.starts_with("http://") && Route::from_url(base_url) == Route::Outside
        }) else {
            return;
        };
        if is_allowed {
            return;
        }
        let message = format!(
            "the key in {} would be sent unencrypted to {base_url}",
            variable.0
        );
        let help = format!(
            "use https, or permit it by insecure = true under [providers.{}]",
            self.name
        );
        let url = declared.and_then(|table| table.base_url.as_ref());
        let problem = Problem::error(message).help(help);
        let place = url.map(|url| url.place.clone());
        self.problems.push(problem.at_known(self.file, place));
    }

    fn resolve_limits(&self) -> Limits {
        let usual = Limits::default();
        let Some(table) = self.table.and_then(|table| table.value.limits.as_ref()) else {
            return usual;
        };
        let table = &table.value;
        let groups = table.limit_groups.iter().flat_map(|groups| &groups.value);
        let models = groups.map(|group| group.value.split(','));
        Limits {
            rates: RatesPerMinute {
                requests: value(&table.requests_per_minute).map(u64::from),
                tokens: value(&table.tokens_per_minute),
                input: value(&table.input_tokens_per_minute),
                output: value(&table.output_tokens_per_minute),
            },
            max_in_flight: value(&table.max_in_flight),
            limit_groups: models
                .map(|models| models.map(|model| ModelName(model.trim().into())).collect())
                .collect(),
            max_attempts: value(&table.max_attempts).unwrap_or(usual.max_attempts),
            timeout: value(&table.timeout_s).unwrap_or(usual.timeout),
            give_up_after: value(&table.give_up_after_s),
            batch_poll: value(&table.batch_poll_s).unwrap_or(usual.batch_poll),
            context_window: value(&table.context_window),
            sharers: usual.sharers,
        }
    }

    fn error(&mut self, place: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(
            Problem::error(message)
                .at(self.file, place.clone())
                .help(help),
        );
    }

    fn error_at_header(&mut self, message: String, help: impl Into<String>) {
        if let Some(table) = self.table {
            self.error(&table.key.clone(), message, help);
        }
    }
}

/// The normal form of a base URL: no slash at the end, and for Anthropic no `/v1`.
fn normalize(text: &str, dialect: Dialect) -> Result<String, (String, String)> {
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
pub(super) fn masked_url(url: &str) -> String {
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
            assert_eq!(masked_url(url), url);
        }
        for (url, shown) in [
            ("http://u:pw@a/v1", "http://****@a/v1"),
            ("http://u@b@a/v1?x=1", "http://***@a/v1?x=1"),
            ("https://a/v1?key=1&b=2", "https://a/v1?***=*&*=*"),
            ("\"https://a/v1?key=é\"", "\"https://a/v1?***=**\""),
        ] {
            assert_eq!(masked_url(url), shown);
        }
    }

    #[test]
    fn anthropic_is_the_same_with_or_without_v1() {
        let [with, without] = ["https://api.anthropic.com/v1/", "https://api.anthropic.com"]
            .map(|url| normalize(url, Dialect::Anthropic));
        assert_eq!(with, without);
    }
}
