//! Work: what one action does, complete. Owned data, nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::digest::{Digest, DigestBuilder};
use super::template::Prompt;
use crate::provider::{Endpoint, ModelName, Operation, OutputSchema, ProviderName, Settings};
use crate::transcript::Role;
use crate::units::Tokens;

/// The version of the built-in rules: the stand-in model, `truncate` and `extract`. Raised when they would put out
/// something else, so that what the old ones made is unseen.
pub(super) const RULES: &str = "3";

/// What one action does.
#[derive(Clone, Debug)]
pub enum Work {
    /// Asks a model.
    Ask(Request),
    /// Runs the user's own program.
    Execute(Program),
    /// Applies a rule of ours: no model, no program.
    Compute(Computation),
}

/// A value known by its digest, with a way to its bytes.
#[derive(Clone, Debug)]
pub enum Material {
    /// Text at hand.
    Text(Digest, Arc<str>),
    /// The text of an earlier output, fetched only to execute.
    Output(Digest),
    /// Text put together from named pieces.
    Composed(Arc<Pieces>),
}

impl From<&str> for Material {
    fn from(text: &str) -> Material {
        Material::Text(Digest::of(text), text.into())
    }
}

impl From<String> for Material {
    fn from(text: String) -> Material {
        Material::from(text.as_str())
    }
}

impl Material {
    /// Names the text without its bytes.
    pub fn digest(&self) -> Digest {
        match self {
            Material::Text(digest, _) | Material::Output(digest) => *digest,
            Material::Composed(pieces) => pieces.digest,
        }
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Material::Text(_, text) => text.is_empty(),
            Material::Output(digest) => *digest == Digest::of(""),
            Material::Composed(_) => false,
        }
    }

    /// The text; that of an output is fetched by `resolve`.
    ///
    /// # Errors
    /// What `resolve` raises.
    pub fn text<E>(&self, resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>) -> Result<Arc<str>, E> {
        match self {
            Material::Text(_, text) => Ok(text.clone()),
            Material::Output(digest) if *digest == Digest::of("") => Ok("".into()),
            Material::Output(digest) => resolve(digest),
            Material::Composed(pieces) => pieces.text(resolve),
        }
    }
}

/// A JSON text made of literal stretches and materials, each with a name to explain a change by.
#[derive(Clone, Debug)]
pub struct Pieces {
    digest: Digest,
    pieces: Vec<ComposedPiece>,
}

#[derive(Clone, Debug)]
struct ComposedPiece {
    name: &'static str,
    material: Material,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Raw,
    JsonString,
}

impl Pieces {
    /// An empty text to append to.
    pub fn builder() -> PiecesBuilder {
        PiecesBuilder(Vec::new())
    }

    /// The named parts, without the literal glue between them.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Material)> {
        self.pieces.iter().filter(|piece| piece.name != GLUE).map(|piece| (piece.name, &piece.material))
    }

    fn text<E>(&self, resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>) -> Result<Arc<str>, E> {
        let mut text = String::new();
        for piece in &self.pieces {
            let part = piece.material.text(resolve)?;
            match piece.form {
                Form::Raw => text.push_str(&part),
                // A text serialises to JSON; there is nothing in it that could fail.
                Form::JsonString => text.push_str(&serde_json::to_string(&*part).unwrap_or_default()),
            }
        }
        Ok(text.into())
    }
}

const GLUE: &str = "";

/// Collects the pieces of a composed text.
pub struct PiecesBuilder(Vec<ComposedPiece>);

impl PiecesBuilder {
    /// Appends fixed text.
    pub fn glue(self, text: &str) -> PiecesBuilder {
        self.piece(GLUE, text.into(), Form::Raw)
    }

    /// Appends fixed text that was hashed before.
    pub fn fixed(self, text: &Material) -> PiecesBuilder {
        self.piece(GLUE, text.clone(), Form::Raw)
    }

    /// Appends a part that is JSON already.
    pub fn json(self, name: &'static str, material: Material) -> PiecesBuilder {
        self.piece(name, material, Form::Raw)
    }

    /// Appends a text as a JSON string.
    pub fn string(self, name: &'static str, material: Material) -> PiecesBuilder {
        self.piece(name, material, Form::JsonString)
    }

    fn piece(mut self, name: &'static str, material: Material, form: Form) -> PiecesBuilder {
        self.0.push(ComposedPiece { name, material, form });
        self
    }

    /// The composed text as a material.
    pub fn build(self) -> Material {
        let mut builder = DigestBuilder::new("composed");
        for piece in &self.0 {
            builder.field(if piece.form == Form::Raw { "raw" } else { "string" }, piece.material.digest().0);
        }
        Material::Composed(Arc::new(Pieces { digest: builder.finish(), pieces: self.0 }))
    }
}

/// A request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which declared provider carries it; not part of the key.
    pub provider: ProviderName,
    /// Who answers, as the key sees it.
    pub endpoint: Endpoint,
    /// The model.
    pub model: ModelName,
    /// What is asked.
    pub operation: Operation,
    /// The conversation.
    pub turns: Vec<RequestTurn>,
    /// Instructions beside the conversation, for `Compact` and `Summarize`.
    pub instructions: Option<Prompt>,
    /// Sampling settings.
    pub settings: Settings,
    /// The shape of the reply, if JSON is wanted.
    pub schema: Option<ReplyShape>,
}

/// The shape of a reply with its name in the key: hashed once, asked for many times.
#[derive(Clone, Debug)]
pub struct ReplyShape {
    schema: Arc<OutputSchema>,
    digest: Digest,
}

impl ReplyShape {
    /// Names `schema`.
    pub fn new(schema: OutputSchema) -> ReplyShape {
        ReplyShape { digest: schema_digest(&schema.schema), schema: Arc::new(schema) }
    }

    /// The schema as a provider is sent it.
    pub fn schema(&self) -> &Arc<OutputSchema> {
        &self.schema
    }

    /// Names the schema, whatever the order of its keys.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Digest of a JSON value that does not depend on the order in which a map keeps its keys.
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

impl Request {
    /// Whether the built-in rules answer. They read the values put into the prompts, so all of those count as inputs.
    pub fn is_lexical(&self) -> bool {
        &*self.endpoint.0 == "lexical"
    }
}

/// One turn of a request, not yet assembled.
#[derive(Clone, Debug)]
pub enum RequestTurn {
    /// Text by one speaker.
    Text(Role, Prompt),
    /// Recorded messages: a JSON array of them.
    Messages(Material),
    /// A provider's own items: a JSON array, sent back byte for byte.
    Items(Material),
}

/// The user's own program, started without a shell.
#[derive(Clone, Debug)]
pub struct Program {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Declared input files: path as the pipeline sees it, and digest of the content.
    pub files: Vec<(String, Digest)>,
    /// Declared variables: name, and digest of the value; `None` where unset.
    pub environment: Vec<(String, Option<Digest>)>,
    /// The JSON on its standard input.
    pub stdin: Material,
}

/// A rule of ours, applied to messages.
#[derive(Clone, Debug)]
pub struct Computation {
    /// Which rule.
    pub rule: Rule,
    /// A JSON array of messages.
    pub messages: Material,
    /// The size asked for.
    pub target_tokens: Option<Tokens>,
}

/// The strategies that need no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Keeps the newest messages.
    Truncate,
    /// Writes an index of artifacts, errors, decisions and open tasks.
    Extract,
    /// Keeps everything.
    Full,
    /// Keeps nothing.
    None,
}

impl Rule {
    /// The strategy's name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Truncate => "truncate",
            Rule::Extract => "extract",
            Rule::Full => "full",
            Rule::None => "none",
        }
    }
}
