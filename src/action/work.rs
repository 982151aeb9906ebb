//! Work: everything that one action needs in order to run, as plain owned data.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::template::Prompt;
use super::value::InputValue;
use base::named_enum;
use base::units::Tokens;
use models::{
    Endpoint, Lane, ModelName, ModelRef, ModelUse, Operation, OutputSchema, ProviderName, Settings,
    ToolOffer,
};
use sessions::transcript::Role;
use store::{Digest, DigestBuilder};

/// The version of the built-in rules: the stand-in for a model and the built-in strategies. It is part of their keys;
/// raising it makes older outputs stale.
pub(super) const RULES: &str = "21";

#[derive(Clone, Debug)]
pub enum Work {
    Ask(ModelRequest),
    /// Runs a program of the user.
    Execute(Program),
    /// Applies built-in rules, without a model or a program.
    Compute(Computation),
}

impl Work {
    /// The work of a request: the model is asked, or the built-in rules stand in for it. This is decided here alone.
    pub fn request(request: ModelRequest) -> Work {
        match &*request.endpoint.0 {
            "lexical" => Work::Compute(Computation::StandIn(request)),
            _ => Work::Ask(request),
        }
    }

    /// The model that the work is attributed to, as PROVIDER/MODEL.
    pub fn requested_model(&self) -> Option<String> {
        match self {
            Work::Ask(request) | Work::Compute(Computation::StandIn(request)) => {
                Some(format!("{}/{}", request.provider, request.model))
            }
            Work::Execute(_) | Work::Compute(Computation::Strategy { .. }) => None,
        }
    }
}

/// A request to a model, before it is encoded for a provider.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The configured provider that carries the request; not part of the key.
    pub provider: ProviderName,
    /// The identity in the key of who answers.
    pub endpoint: Endpoint,
    pub model: ModelName,
    pub operation: Operation,
    pub turns: Vec<RequestTurn>,
    /// Instructions outside the conversation, for `Compact` and `Summarize`.
    pub instructions: Option<Prompt>,
    pub settings: Settings,
    /// The JSON schema of the reply, where JSON is required.
    pub schema: Option<ReplyShape>,
    /// The tools that are declared; the model may call them only for `UseTools`.
    pub tools: Option<ToolOffer>,
    /// How it is sent; not part of the key.
    pub lane: Lane,
    /// Why the same request is sent again. It is part of the key and not sent: the earlier reply says nothing about the
    /// model of today.
    pub occasion: Option<Digest>,
}

impl ModelRequest {
    /// The model that is asked.
    pub fn model_ref(&self) -> ModelRef {
        ModelRef {
            provider: self.provider.clone(),
            model: self.model.clone(),
        }
    }

    /// A request to `model` without instructions and without a schema.
    pub fn new(model: &ModelUse, operation: Operation, turns: Vec<RequestTurn>) -> ModelRequest {
        ModelRequest {
            provider: model.provider.name.clone(),
            endpoint: model.provider.endpoint.clone(),
            model: model.reference.model.clone(),
            operation,
            turns,
            instructions: None,
            settings: model.settings.clone(),
            schema: None,
            tools: None,
            lane: model.lane,
            occasion: None,
        }
    }
}

/// One turn of a request, not yet assembled.
#[derive(Clone, Debug)]
pub enum RequestTurn {
    Text(Role, Prompt),
    /// Recorded messages, as a JSON array.
    Messages(InputValue),
    /// A provider's own items, as a JSON array that is sent back byte for byte.
    Items(InputValue),
    /// The reply of an earlier step that called a tool, as a JSON array of the dialect's items.
    Reply(InputValue),
    /// What its calls returned, as a JSON array of [`models::CallResult`].
    Results(InputValue),
}

/// The JSON schema of a reply together with its digest: hashed once, used in many requests.
#[derive(Clone, Debug)]
pub struct ReplyShape {
    schema: Arc<OutputSchema>,
    digest: Digest,
}

impl ReplyShape {
    pub fn new(schema: OutputSchema) -> ReplyShape {
        ReplyShape {
            digest: schema_digest(&schema.schema),
            schema: Arc::new(schema),
        }
    }

    pub fn schema(&self) -> &Arc<OutputSchema> {
        &self.schema
    }

    /// The digest of the schema, independent of the order of its keys.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Hashes a JSON value independently of the order of its keys.
fn schema_digest(value: &serde_json::Value) -> Digest {
    let mut builder = DigestBuilder::new("json");
    match value {
        serde_json::Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            for (key, inner) in sorted {
                builder.field(key, schema_digest(inner).0);
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                builder.field("item", schema_digest(item).0);
            }
        }
        scalar => {
            builder.field("scalar", scalar.to_string());
        }
    }
    builder.finish()
}

/// A program of the user, started without a shell.
#[derive(Clone, Debug)]
pub struct Program {
    pub argv: Vec<String>,
    /// Declared input files: the path as written in the pipeline, and the digest of the content.
    pub files: Vec<(String, Digest)>,
    /// Declared environment variables: the name, and the digest of the value; `None` if it is not set.
    pub environment: Vec<(String, Option<Digest>)>,
    /// What the user calls the account or server that it uses.
    pub identity: Option<String>,
    /// The JSON on its standard input.
    pub stdin: InputValue,
}

/// What built-in rules do.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "few are in memory at a time, and most are the larger one"
)]
pub enum Computation {
    /// A compression strategy, applied to messages.
    Strategy {
        rule: BuiltInStrategy,
        /// A JSON array of messages.
        messages: InputValue,
        target_tokens: Option<Tokens>,
    },
    /// The stand-in for a model. It reads every value of the prompts, so all values count as inputs.
    StandIn(ModelRequest),
}

named_enum! {
    /// The compression strategies that need no model, in the order of the documentation.
    pub enum BuiltInStrategy {
        Truncate = "truncate",
        /// Replaces what old tool calls read and wrote by a line each; the newest results stay.
        Mask = "mask",
        /// Writes an index of artifacts, errors, decisions and open tasks.
        Extract = "extract",
        /// What the product itself had, from its log.
        Recorded = "recorded",
        Full = "full",
        None = "none",
    }
}
