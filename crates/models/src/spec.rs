//! Providers, models and limits as a pipeline declares them, and the parts of a base URL: its host, on which dialects and
//! proxies depend, and the addresses below it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use base::units::Tokens;
use base::{named_enum, text_name};

text_name! {
    /// The name under which a pipeline refers to a provider.
    pub struct ProviderName;
}

text_name! {
    /// A model's id, an opaque string to us.
    pub struct ModelName;
}

text_name! {
    /// What the cache key calls the endpoint: the declared `identity`, or kind and base URL.
    pub struct Endpoint;
}

/// `provider/model`, as a pipeline writes it. Everything after the first slash is the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelRef {
    /// The provider.
    pub provider: ProviderName,
    /// The model's id at that provider.
    pub model: ModelName,
}

impl ModelRef {
    /// Reads `provider/model`; `lexical` alone is the built-in model. `None` if a part is missing.
    pub fn parse(text: &str) -> Option<ModelRef> {
        if text == "lexical" {
            return Some(ModelRef {
                provider: "lexical".into(),
                model: "lexical".into(),
            });
        }
        let (provider, model) = text.split_once('/')?;
        if provider.is_empty() || model.is_empty() {
            return None;
        }
        Some(ModelRef {
            provider: provider.into(),
            model: model.into(),
        })
    }

    /// Whether a name in a reply is that of another model. A vendor's prefix, a date or a version beside the name that was
    /// asked for is only another spelling of it.
    pub fn is_other(&self, answered: &str) -> bool {
        let (asked, answered) = (words_of_name(&self.model.0), words_of_name(answered));
        let beyond = |one: &[String], other: &[String]| {
            let more = one.iter().filter(|word| !other.contains(word));
            more.cloned().collect::<Vec<String>>()
        };
        let (missing, added) = (beyond(&asked, &answered), beyond(&answered, &asked));
        let is_spelling = (missing.is_empty() || added.is_empty())
            && missing.iter().chain(&added).all(|word| is_version(word));
        !is_spelling && !answered.is_empty()
    }
}

/// The words of a model's name in lower case, without the vendor before it.
fn words_of_name(name: &str) -> Vec<String> {
    let mut bare = name.rsplit('/').next().unwrap_or(name);
    while let Some((vendor, rest)) = bare.split_once('.')
        && vendor.chars().all(char::is_alphabetic)
    {
        bare = rest;
    }
    let words = bare.to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !matches!(*word, "" | "latest"))
        .map(str::to_owned)
        .collect()
}

/// Whether a word beside a model's name is a date or a version of it. A single figure makes another model: `gpt-4.1`.
fn is_version(word: &str) -> bool {
    const WORDS: [&str; 6] = ["preview", "exp", "experimental", "beta", "stable", "free"];
    let number = word.strip_prefix('v').unwrap_or(word);
    let is_number = number.chars().all(|c| c.is_ascii_digit());
    WORDS.contains(&word) || is_number && (word.len() > 1 || word == "0")
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.provider.0 == self.model.0 {
            f.write_str(&self.model.0)
        } else {
            write!(f, "{}/{}", self.provider, self.model)
        }
    }
}

named_enum! {
    /// The language an endpoint speaks (`kind` in a pipeline).
    pub enum Dialect {
        /// OpenAI Chat Completions and everything that speaks it.
        OpenaiChat = "openai-chat",
        /// OpenAI Responses.
        OpenaiResponses = "openai-responses",
        /// Anthropic Messages.
        Anthropic = "anthropic",
        /// The built-in rules: no endpoint at all.
        Lexical = "lexical",
    }
}

named_enum! {
    /// How requests are sent, at which price and with which latency. No action's key depends on it.
    #[derive(Default)]
    pub enum Lane {
        /// At once, at the full price.
        #[default]
        Live = "live",
        /// The vendors' batch APIs: cheaper, done within a day.
        Batch = "batch",
    }
}

text_name! {
    /// The name of the environment variable that holds a key; never the key.
    pub struct ApiKeyVariable;
}

/// One value for each kind of limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerKind<T> {
    /// Of requests.
    #[serde(rename = "requests_per_minute")]
    pub requests: T,
    /// Of input and output tokens together.
    #[serde(rename = "tokens_per_minute")]
    pub tokens: T,
    /// Of input tokens.
    #[serde(rename = "input_tokens_per_minute")]
    pub input: T,
    /// Of output tokens.
    #[serde(rename = "output_tokens_per_minute")]
    pub output: T,
}

impl<T> PerKind<T> {
    /// What `join` makes of the two values of each kind.
    pub(crate) fn zip<U, V>(self, other: PerKind<U>, join: impl Fn(T, U) -> V) -> PerKind<V> {
        PerKind {
            requests: join(self.requests, other.requests),
            tokens: join(self.tokens, other.tokens),
            input: join(self.input, other.input),
            output: join(self.output, other.output),
        }
    }

    /// The values in the order of `LimitKind::ALL`.
    pub(crate) fn all(self) -> [T; 4] {
        [self.requests, self.tokens, self.input, self.output]
    }
}

/// Limits per minute; `None` means no limit.
pub type RatesPerMinute = PerKind<Option<u64>>;

/// The limits that a user declares. Rates have no default: an unset rate is unlimited until the provider's headers announce
/// one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Requests and tokens a minute; `None` if no limit is declared.
    #[serde(flatten)]
    pub rates: RatesPerMinute,
    /// Requests in flight at once. A declared number is used from the first call.
    pub max_in_flight: Option<u32>,
    /// Groups of models that share the provider's limits, where [`ProviderSpec::limit_group`] would assume others.
    pub limit_groups: Vec<Vec<ModelName>>,
    /// Attempts an action may take; 1 fails fast.
    pub max_attempts: u32,
    /// How long one request may take.
    pub timeout: Duration,
    /// How long a model may answer nobody before its calls fail; `None` for [`RetryPolicy::wait_budget`](super::RetryPolicy).
    pub give_up_after: Option<Duration>,
    /// The wait before a batch is polled for the second time. All other waits for batches are in proportion to it.
    pub batch_poll: Duration,
    /// The maximum number of tokens in a prompt, if the user declared it: the setting with which a local server was
    /// started.
    pub context_window: Option<Tokens>,
    /// Processes that share the account. Each takes its part of a rate that the provider announces.
    pub sharers: NonZeroU32,
}

impl Limits {
    /// The most requests in flight at once if the user declared no number.
    pub const DEFAULT_IN_FLIGHT: u32 = 64;
    /// The default of [`Limits::batch_poll`]: a batch takes at least some minutes.
    pub const BATCH_POLL: Duration = Duration::from_secs(15);

    /// The limits of one of `sharers` processes that share an account. Together the processes stay within `self`.
    ///
    /// # Errors
    /// The name in `pipeline.toml` of a limit that leaves less than one for each process.
    pub fn divided(&self, sharers: NonZeroU32) -> Result<Limits, &'static str> {
        let parts = u64::from(sharers.get());
        let part = |name, whole: Option<u64>| match whole.map(|whole| whole / parts) {
            Some(0) => Err(name),
            part => Ok(part),
        };
        let RatesPerMinute {
            requests,
            tokens,
            input,
            output,
        } = self.rates;
        let in_flight = part("max_in_flight", self.max_in_flight.map(u64::from))?;
        Ok(Limits {
            rates: RatesPerMinute {
                requests: part("requests_per_minute", requests)?,
                tokens: part("tokens_per_minute", tokens)?,
                input: part("input_tokens_per_minute", input)?,
                output: part("output_tokens_per_minute", output)?,
            },
            max_in_flight: in_flight.and_then(|most| u32::try_from(most).ok()),
            sharers,
            ..self.clone()
        })
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            rates: RatesPerMinute::default(),
            max_in_flight: None,
            limit_groups: Vec::new(),
            max_attempts: 6,
            timeout: Duration::from_secs(180),
            give_up_after: None,
            batch_poll: Limits::BATCH_POLL,
            context_window: None,
            sharers: NonZeroU32::MIN,
        }
    }
}

/// A provider that a pipeline declares, or a built-in one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderSpec {
    /// The name models refer to.
    pub name: ProviderName,
    /// The API that it speaks.
    pub dialect: Dialect,
    /// Root of its API without a trailing slash; empty for `lexical`.
    pub base_url: String,
    /// The variable that holds its key; `None` sends none.
    pub api_key: Option<ApiKeyVariable>,
    /// What the cache key calls it.
    pub endpoint: Endpoint,
    /// The limits that the user declared.
    pub limits: Limits,
    /// The lane of stages that name none.
    pub lane: Lane,
    /// Where the key travels; `None` for what is usual at the endpoint.
    pub key_place: Option<KeyPlace>,
}

/// Where in a request a key travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyPlace {
    /// The header of this name; in `authorization` after the word `Bearer`.
    Header(String),
    /// The parameter of this name in the address.
    Parameter(String),
}

impl ProviderSpec {
    /// The name of the group of models with which `model` shares its limits. A group that the user declared comes first.
    /// Otherwise each model at OpenAI is a group, each class of models at Anthropic, elsewhere all models of the account.
    pub fn limit_group(&self, model: &ModelName) -> String {
        if let Some(declared) = self
            .limits
            .limit_groups
            .iter()
            .position(|models| models.contains(model))
        {
            return format!("declared {declared}");
        }
        match self.dialect {
            Dialect::Anthropic => {
                let mut words = model.0.split(|c: char| !c.is_ascii_alphabetic());
                words
                    .rfind(|word| word.len() > 2 && *word != "claude")
                    .unwrap_or_default()
                    .to_owned()
            }
            Dialect::OpenaiResponses => model.0.to_string(),
            Dialect::OpenaiChat if self.is_at("api.openai.com") => model.0.to_string(),
            Dialect::OpenaiChat | Dialect::Lexical => String::new(),
        }
    }

    /// Whether OpenAI's own API answers, at OpenAI or Azure, which takes fields that other servers may not know.
    pub(super) fn is_openai(&self) -> bool {
        let host = host(&self.base_url);
        is_azure(&host) || is_below(&host, "openai.com")
    }

    fn is_at(&self, domain: &str) -> bool {
        is_below(&host(&self.base_url), domain)
    }

    /// Whether the provider keeps long prompts for a while, so that a second request with the same beginning is cheaper
    /// once the first one was answered.
    pub fn caches_prompts(&self) -> bool {
        match self.dialect {
            Dialect::Anthropic | Dialect::OpenaiResponses => true,
            Dialect::OpenaiChat => self.is_at("api.openai.com") || self.is_at("openrouter.ai"),
            Dialect::Lexical => false,
        }
    }
}

impl KeyPlace {
    /// Where a key usually travels to an endpoint.
    pub(super) fn usual(dialect: Dialect, base_url: &str) -> KeyPlace {
        let host = host(base_url);
        let is_aws = is_below(&host, "api.aws") || is_below(&host, "amazonaws.com");
        let header = match dialect {
            // Bedrock takes a bearer key; the vendor and its proxies take `x-api-key`.
            Dialect::Anthropic if !is_aws => "x-api-key",
            Dialect::OpenaiChat | Dialect::OpenaiResponses if is_azure(&host) => "api-key",
            _ => "authorization",
        };
        KeyPlace::Header(header.to_owned())
    }
}

/// Whether a host is Azure's, in any of its clouds.
fn is_azure(host: &str) -> bool {
    ["azure.com", "azure.us", "azure.cn"]
        .iter()
        .any(|domain| is_below(host, domain))
}

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
    host == domain
        || host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.ends_with('.'))
}

/// The full address: `path` goes before a query that the base URL carries (Azure's `api-version`). An address that does
/// not parse is returned as it is, for the transport to refuse.
pub(super) fn address(base_url: &str, path: &str) -> String {
    let Ok(mut url) = Url::parse(base_url) else {
        return base_url.to_owned();
    };
    url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_rates_are_stored_beside_the_other_limits() {
        let limits = Limits {
            rates: RatesPerMinute {
                requests: Some(7),
                ..RatesPerMinute::default()
            },
            ..Limits::default()
        };
        let stored = serde_json::to_value(&limits).expect("it is written");
        assert_eq!(stored["requests_per_minute"], 7);
        assert!(stored["output_tokens_per_minute"].is_null());
        let read: Limits = serde_json::from_value(stored).expect("it is read");
        assert_eq!(read, limits);
    }

    #[test]
    fn the_path_goes_before_the_query() {
        let azure = "https://a.openai.azure.com/openai/deployments/d?api-version=2025-01-01";
        assert_eq!(
            address(azure, "/chat/completions"),
            "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01"
        );
        assert_eq!(
            address("http://127.0.0.1:1/v1/", "/x"),
            "http://127.0.0.1:1/v1/x"
        );
    }

    #[test]
    fn another_model_is_told_from_another_spelling_of_its_name() {
        let is_other = |asked: &str, answered: &str| {
            ModelRef::parse(&format!("p/{asked}")).is_some_and(|asked| asked.is_other(answered))
        };
        for (asked, answered) in [
            ("gpt-4o", "gpt-4o"),
            ("gpt-4o", "gpt-4o-2024-08-06"),
            ("gpt-4", "gpt-4-1106-preview"),
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("claude-sonnet-4", "claude-sonnet-4-20250514"),
            (
                "anthropic/claude-sonnet-4",
                "anthropic/claude-4-sonnet-20250522",
            ),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
            ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620"),
            ("claude-3-opus", "us.anthropic.claude-3-opus-20240229-v1:0"),
            ("gemini-2.5-pro", "models/gemini-2.5-pro-preview-05-06"),
            ("command-r", "command-r-08-2024"),
            ("llama3", "llama3:latest"),
            ("meta-llama/llama-3.1-8b:free", "Meta-Llama/Llama-3.1-8B"),
            (
                "ft:gpt-4o-mini:org::id",
                "ft:gpt-4o-mini-2024-07-18:org::id",
            ),
            ("gpt-4o", ""),
        ] {
            assert!(!is_other(asked, answered), "{asked}: {answered}");
        }
        for (asked, answered) in [
            ("gpt-4o", "cheap-fallback-8b"),
            ("gpt-4o", "gpt-4o-mini-2024-07-18"),
            ("gpt-4", "gpt-4.1"),
            ("gpt-4", "gpt-4o"),
            ("gpt-4-0314", "gpt-4-0613"),
            ("claude-sonnet-4", "claude-sonnet-4-5-20250929"),
            ("qwen2.5-72b-instruct", "qwen2.5-7b-instruct"),
            ("prod", "gpt-4o-2024-08-06"),
        ] {
            assert!(is_other(asked, answered), "{asked}: {answered}");
        }
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
