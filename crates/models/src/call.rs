//! Calls, the tools that they declare, and replies, the same for every dialect.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::spec::{Dialect, Lane, ModelName, ModelRef, ProviderSpec};
use base::message::{Function, Message, Role};
use base::named_enum;
use base::units::{Tokens, Usage};
use base::words::hash_of;

/// What is asked of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Generates a text.
    Generate,
    /// Generates a text or calls a tool ([`Call::tools`]).
    UseTools,
    /// Makes an opaque compaction item (OpenAI's `POST /responses/compact`).
    Compact,
    /// Makes a readable compaction block (Anthropic's compaction on demand).
    Summarize,
}

/// One turn of the conversation that is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Plain text by one speaker; a leading one may be a system text.
    Text {
        /// Who says it.
        role: Role,
        /// What is said.
        text: Arc<str>,
    },
    /// Recorded messages, tool calls included, rendered as the dialect renders a history.
    Messages(Arc<[Message]>),
    /// Items that a provider returned earlier: a JSON array that goes back byte for byte.
    Items(Arc<str>),
    /// An earlier reply to the same conversation that called a tool, as [`Completion::items`] has it. The results follow.
    Reply(Arc<str>),
    /// The results of its calls, in order.
    Results(Arc<[CallResult]>),
}

/// Sampling settings; those that the user did not write are not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The limit on the reply, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<Tokens>,
    /// Sampling temperature, sent only if the user wrote one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Reasoning effort, in the provider's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// The JSON shape that a reply must have.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSchema {
    /// A short name, as providers want one: letters, digits, `_`, `-`.
    pub name: &'static str,
    /// A JSON Schema within the limits of the vendors' strict modes.
    pub schema: serde_json::Value,
}

/// A request, complete: nothing else determines the reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The model, as the provider names it.
    pub model: ModelName,
    /// What the model is to do.
    pub operation: Operation,
    /// The conversation. For `Summarize` the instructions are `instructions`, not a turn.
    pub turns: Vec<Turn>,
    /// Instructions of a `Compact` or `Summarize`, beside the conversation.
    pub instructions: Option<Arc<str>>,
    /// The settings of the model.
    pub settings: Settings,
    /// The shape of the reply, if it must be JSON.
    pub schema: Option<Arc<OutputSchema>>,
    /// The tools that are declared. For [`Operation::UseTools`] the model may call them; for [`Operation::Generate`] they
    /// are the tools of a recorded session, and a call is a fault.
    pub tools: Option<ToolOffer>,
    /// How many requests share all turns but the last. It controls the provider's prompt cache and so the price of a reply,
    /// not its content; no cache key contains it.
    pub prefix_uses: u32,
}

impl Call {
    /// All turns but the last, if other requests begin with them too. The later steps of a conversation have the shared
    /// prefix of its first one.
    pub fn shared_prefix(&self) -> Option<&[Turn]> {
        let first_step = self
            .turns
            .iter()
            .position(|turn| matches!(turn, Turn::Reply(_)))
            .unwrap_or(self.turns.len());
        let (_, before) = self.turns.get(..first_step)?.split_last()?;
        (self.prefix_uses > 1 && !before.is_empty()).then_some(before)
    }

    /// Whether tools are declared and may not be called.
    pub(super) fn forbids_tools(&self) -> bool {
        self.tools.as_ref().is_some_and(|offer| !offer.is_open)
    }

    /// Names the shared prefix: equal prefixes have equal names.
    fn prefix_id(&self) -> Option<u64> {
        let tools = self.tools.iter().flat_map(|offer| offer.tools.iter());
        let tools: Vec<&str> = tools.map(|tool| &*tool.name).collect();
        Some(hash_of(&format!(
            "{} {tools:?} {:?}",
            self.model,
            self.shared_prefix()?
        )))
    }

    /// OpenAI's routing key of the prompt cache. The vendor serves about 15 requests a minute with one key, so a prefix that
    /// is used more often gets several keys.
    pub(super) fn prompt_cache_key(&self) -> Option<String> {
        const USES_PER_KEY: u32 = 15;
        let prefix = self.prefix_id()?;
        let own = hash_of(&format!("{:?}", self.turns.last()));
        let nth = own % u64::from(self.prefix_uses.div_ceil(USES_PER_KEY));
        Some(format!("compeval-{prefix:016x}-{nth}"))
    }
}

/// A reply as it came over the wire, with what only the transport knows.
#[derive(Clone, Debug)]
pub struct RawReply {
    /// The dialect in which the body is to be read.
    pub dialect: Dialect,
    /// The bytes of the body.
    pub body: Bytes,
    /// The model that the body names, even if the reply is not an answer.
    pub model: Option<String>,
    /// The usage that the body reports, even if the reply is not an answer; an estimate where the report cannot be true.
    pub usage: Usage,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
    /// From sending to the last byte, of the attempt that succeeded.
    pub latency: Duration,
    /// Attempts made, this one included.
    pub attempts: u32,
    /// What is wrong with the usage that the provider reported.
    pub usage_warning: Option<&'static str>,
    /// The permit that a large body needs to be in memory.
    #[expect(dead_code, reason = "held until it is dropped")]
    pub(super) memory: Option<Arc<OwnedSemaphorePermit>>,
}

/// What a reply is billed by. A reply need not be an answer: refusals and cut replies cost as much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Billing {
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The tokens that the provider reports.
    pub usage: Usage,
}

/// The answer in a reply. What it is billed by is in [`RawReply`] and [`Billing`].
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The text, without reasoning. For `Compact` empty; for `Summarize` the block's readable summary.
    pub text: String,
    /// For `Compact` and `Summarize`: the items to send back later, a JSON array byte for byte as received. For `UseTools`
    /// where a tool is called: the reply as [`Turn::Reply`] takes it, reasoning included.
    pub items: Option<String>,
    /// The calls of tools, for `UseTools`; with calls the text may be empty.
    pub calls: Vec<Function>,
    /// Whether the text was cut off by a token limit. A reply that was cut off before its text began is a fault.
    pub truncated: bool,
}

impl Completion {
    /// A text alone.
    pub(super) fn text(text: impl Into<String>, truncated: bool) -> Completion {
        Completion {
            text: text.into(),
            items: None,
            calls: Vec::new(),
            truncated,
        }
    }
}

/// Why a reply that arrived is not an answer. Such a reply is kept and never served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ReadFault {
    /// The body is not what the API promises.
    #[error("the provider's reply could not be read: {_0}")]
    Malformed(String),
    /// An error inside a successful status.
    #[error("the provider answered with an error: {_0}")]
    Upstream(String),
    /// There is no text in the reply besides reasoning.
    #[error("the reply is empty, or has only reasoning")]
    Empty,
    /// The reply was cut off by its token limit.
    #[error("the reply was cut off by the token limit")]
    Truncated,
    /// The model or a filter declined.
    #[error("the model declined{}", _0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Refused(Option<String>),
    /// The model called a tool that it was not to call.
    #[error("the model called the tool `{_0}` instead of answering")]
    CalledTool(String),
    /// The provider shortened the prompt without saying so.
    #[error(
        "the provider silently cut the prompt: it reports {reported} prompt tokens where about {expected} were sent (raise the server's context size)"
    )]
    PromptCut {
        /// Prompt tokens the provider reports.
        reported: u64,
        /// Our estimate of what was sent.
        expected: u64,
    },
}

named_enum! {
    /// What a failed call means for the calls after it.
    pub enum ErrorClass {
        /// Too many requests or tokens a minute; worth asking again later.
        RateLimited = "rate-limited",
        /// The provider has too much to do.
        Overloaded = "overloaded",
        /// A 5xx, a reset, a time-out, a cut body: may work the next time.
        Transient = "transient",
        /// A 2xx whose body is not what the API promises.
        Malformed = "malformed",
        /// A reply without any text: another one may have some.
        Empty = "empty",
        /// The model or a filter declined: the same request is declined again.
        Refused = "refused",
        /// Stopped at the output limit.
        Truncated = "truncated",
        /// Longer than the model's window.
        TooLong = "too-long",
        /// Money or plan limit: every further call fails the same way.
        Quota = "quota",
        /// The key is missing, wrong or not allowed: every further call fails the same way.
        Auth = "auth",
        /// The provider knows no such model, or nothing at this address: every further call to the model fails the same
        /// way.
        NotFound = "not-found",
        /// The provider could never be reached, or has been unavailable for longer than a call waits: every further call
        /// fails the same way.
        Unreachable = "unreachable",
        /// The model fails every request in the same way, while others of its provider work.
        Failing = "failing",
        /// The provider rejects the request as it is: the same request is rejected again.
        Invalid = "invalid",
    }
}

impl ErrorClass {
    /// Whether the model replied, although the reply is not usable.
    pub fn was_answered(self) -> bool {
        matches!(
            self,
            ErrorClass::Malformed | ErrorClass::Empty | ErrorClass::Refused | ErrorClass::Truncated
        )
    }

    /// Whether sending the same request again may help.
    pub fn is_retryable(self) -> bool {
        use ErrorClass::{Empty, Malformed, Overloaded, RateLimited, Transient};
        matches!(
            self,
            RateLimited | Overloaded | Transient | Malformed | Empty
        )
    }

    /// Whether every further call to the same model would fail the same way.
    pub fn is_terminal(self) -> bool {
        use ErrorClass::{Auth, Failing, NotFound, Quota, Unreachable};
        matches!(self, Quota | Auth | NotFound | Unreachable | Failing)
    }
}

/// A call that yielded no answer within its attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CallFailure {
    /// What it means for the calls after it.
    pub class: ErrorClass,
    /// What the provider or the transport said, without secrets, with status and request id where known.
    pub message: String,
    /// What the user can do.
    pub hint: Option<String>,
    /// How often the request was sent.
    pub attempts: u32,
}

/// A model, its provider and the settings to ask it with.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelUse {
    /// `provider/model` as written.
    pub reference: ModelRef,
    /// Who is asked.
    pub provider: Arc<ProviderSpec>,
    /// The settings of the model.
    pub settings: Settings,
    /// How its requests are sent.
    pub lane: Lane,
}

impl ModelUse {
    /// Whether requests are sent to it. No requests are sent to the built-in rules, which cost nothing and always answer the
    /// same.
    pub fn is_asked(&self) -> bool {
        self.provider.dialect != Dialect::Lexical
    }
}

/// A function that a model may call instead of answering.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, as providers want one: letters, digits, `_`, `-`.
    pub name: Arc<str>,
    /// What it does and when to call it, for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}

impl Tool {
    /// Reads a declaration in the shape of any vendor; `None` if it names no function.
    pub fn from_schema(schema: &Value) -> Option<Tool> {
        let function = schema.get("function").unwrap_or(schema);
        let name = function
            .get("name")?
            .as_str()
            .filter(|name| !name.is_empty())?;
        let description = function
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let given = ["parameters", "input_schema", "inputSchema"]
            .into_iter()
            .find_map(|key| function.get(key));
        let mut parameters = given
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        // Arguments are an object, and Anthropic requires that the schema says so.
        parameters.entry("type").or_insert_with(|| "object".into());
        parameters.entry("properties").or_insert_with(|| json!({}));
        let parameters = Value::Object(parameters);
        Some(Tool {
            name: name.into(),
            description: description.into(),
            parameters,
        })
    }
}

/// The tools as one request declares them.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOffer {
    /// The tools. They stay in the request after their last call: some vendors refuse a conversation with calls of an
    /// undeclared tool, and prompt caches are keyed by them.
    pub tools: Arc<[Tool]>,
    /// Whether they may be called now.
    pub is_open: bool,
}

impl ToolOffer {
    /// The tools of a recorded session, none of which may be called; `None` if `schemas` declare none. Of two with one
    /// name the first counts, since vendors refuse a name that is declared twice.
    pub fn from_recorded(schemas: &[Value]) -> Option<ToolOffer> {
        let mut names = HashSet::new();
        let read = schemas.iter().filter_map(Tool::from_schema);
        let tools: Vec<Tool> = read
            .filter(|tool| names.insert(tool.name.clone()))
            .collect();
        (!tools.is_empty()).then(|| ToolOffer {
            tools: tools.into(),
            is_open: false,
        })
    }
}

/// What a call of a tool returned.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallResult {
    /// The id of the call.
    pub id: String,
    /// The result as the model reads it.
    pub text: String,
}

/// The id of the call with this number in a conversation, from 1.
pub fn call_id(number: usize) -> String {
    format!("call_{number}")
}

/// The longest name of a tool: OpenAI's limit, the strictest of the vendors'.
pub(crate) const LONGEST_NAME: usize = 64;
/// The longest id of a call: OpenAI's Chat Completions.
pub(crate) const LONGEST_ID: usize = 40;

/// A name of letters, digits, `_` and `-` that begins with a letter or `_`, `most` characters long. Of any other name the
/// fitting characters are kept, with a checksum that distinguishes it from similar ones.
pub(crate) fn fit(name: &str, most: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins_well =
        most == LONGEST_ID || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && (1..=most).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut kept: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    kept.truncate(most - 10);
    if !begins_well {
        kept.insert(0, '_');
    }
    Cow::Owned(format!("{kept}_{:08x}", crc32fast::hash(name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_every_vendor_are_read_and_no_name_is_declared_twice() {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let schemas = [
            json!({"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": parameters}}),
            json!({"name": "write", "input_schema": parameters}),
            json!({"type": "function", "name": "read", "parameters": {}}),
            json!({"type": "web_search"}),
        ];
        let offer = ToolOffer::from_recorded(&schemas).unwrap();
        let names: Vec<&str> = offer.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            (names.as_slice(), offer.is_open),
            (["read", "write"].as_slice(), false)
        );
        assert!(offer.tools.iter().all(|tool| tool.parameters == parameters));
        assert_eq!(
            ToolOffer::from_recorded(&[json!({"type": "web_search"})]),
            None
        );
    }

    use std::collections::HashSet;

    #[test]
    fn names_that_no_vendor_takes_are_made_fit_and_stay_different() {
        let long = "mcp__".repeat(20);
        let names = [
            "functions.exec",
            "functions/exec",
            "a b",
            "a:b",
            "读取文件",
            "写入文件",
            "",
            "9lives",
            "tool\n",
            "émile",
            &long,
            &format!("{long}x"),
            "-x",
        ];
        for most in [LONGEST_NAME, LONGEST_ID] {
            let fitted: HashSet<_> = names.iter().map(|name| fit(name, most)).collect();
            assert_eq!(fitted.len(), names.len());
            for name in &fitted {
                assert!(
                    (1..=most).contains(&name.len()) && *fit(name, most) == **name,
                    "{name}"
                );
            }
        }
        for plain in [
            "edit_file",
            "mcp__server__list-files",
            "_x",
            &"a".repeat(64),
        ] {
            assert_eq!(fit(plain, LONGEST_NAME), plain);
        }
        assert_eq!(fit("call_1", LONGEST_ID), "call_1");
    }
}
