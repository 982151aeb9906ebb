//! Methods: the ways to compress that a pipeline declares, checked and resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::shape::Shape;
use crate::action::{BuiltInStrategy, Digest, Template};
use base::files::{open_regular, read_file};
use base::units::Tokens;
use base::{named_enum, text_name};
use models::ModelUse;

text_name! {
    /// The name of a method in results; part of no cache key.
    pub struct MethodName;
}

/// One declared way to compress: a strategy with its prompt, model and settings.
#[derive(Clone, Debug)]
pub struct Method {
    pub name: MethodName,
    pub strategy: Strategy,
    /// The size asked for, where the strategy can be asked.
    pub target_tokens: Option<Tokens>,
}

named_enum! {
    /// Where a compress prompt is in its request.
    #[derive(Default)]
    pub enum PromptPlacement {
        /// The prompt is the request and inserts the transcript as text.
        #[default]
        Inline = "inline",
        /// The prompt is the system message, as its author wrote it; the transcript is the conversation after it, and a last
        /// message of the user asks for the summary. Coding agents send their compaction prompts so.
        System = "system",
        /// The conversation as the agent has it, its system message first, and the prompt as the user's last message.
        Last = "last",
    }
}

/// How a method compresses, with exactly what its strategy needs.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// A model writes a summary by a prompt.
    Prompted {
        /// How state is carried from one point to the next.
        style: PromptStyle,
        model: ModelUse,
        /// The prompt (variables: [`crate::compress::VARIABLES`]).
        template: Template,
        /// Where the prompt is in the request.
        placement: PromptPlacement,
        /// What is kept verbatim beside the summary.
        shape: Shape,
        /// The tag of the reply that the summary stands in; `None`: the whole reply is the summary.
        extract: Option<String>,
    },
    /// OpenAI's compaction: an item only its provider can read.
    Opaque {
        model: ModelUse,
    },
    /// Anthropic's compaction on demand: a readable block, bound to its endpoint.
    ProviderCompaction {
        model: ModelUse,
        /// Instructions in place of the vendor's own.
        template: Option<Template>,
    },
    /// The user's own program.
    Command(CommandSpec),
    Rule(BuiltInStrategy),
}

/// The strategies as a pipeline names them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StrategyKind {
    Prompted(PromptStyle),
    Opaque,
    ProviderCompaction,
    Command,
    Rule(BuiltInStrategy),
}

impl StrategyKind {
    /// All of them, in the order of the documentation.
    pub const ALL: [StrategyKind; 11] = [
        StrategyKind::Prompted(PromptStyle::Anchored),
        StrategyKind::Prompted(PromptStyle::Regenerative),
        StrategyKind::Opaque,
        StrategyKind::ProviderCompaction,
        StrategyKind::Command,
        StrategyKind::Rule(BuiltInStrategy::Truncate),
        StrategyKind::Rule(BuiltInStrategy::Mask),
        StrategyKind::Rule(BuiltInStrategy::Extract),
        StrategyKind::Rule(BuiltInStrategy::Recorded),
        StrategyKind::Rule(BuiltInStrategy::Full),
        StrategyKind::Rule(BuiltInStrategy::None),
    ];

    pub fn name(self) -> &'static str {
        match self {
            StrategyKind::Prompted(PromptStyle::Anchored) => "anchored-iterative",
            StrategyKind::Prompted(PromptStyle::Regenerative) => "regenerative",
            StrategyKind::Opaque => "opaque",
            StrategyKind::ProviderCompaction => "provider-compaction",
            StrategyKind::Command => "command",
            StrategyKind::Rule(rule) => rule.name(),
        }
    }
}

/// The two ways to keep a summary over several points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromptStyle {
    /// One standing summary, handed over as `previous_summary`.
    Anchored,
    /// The last output is ordinary history: the first message of `transcript`.
    Regenerative,
}

/// The user's own program, its declared inputs read and hashed.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    pub argv: Vec<String>,
    /// The model that the program is asked to use, as the user wrote it.
    pub model: Option<String>,
    /// Where it is started: the pipeline's folder.
    pub folder: PathBuf,
    /// Declared input files: path relative to the folder, and digest of the content, sorted by path.
    pub files: Vec<(String, Digest)>,
    /// Declared variables with the digest of their values, sorted by name; `None` where unset.
    pub environment: Vec<(String, Option<Digest>)>,
    /// Variables with keys that the program sees, sorted. Their values are in no key and are redacted.
    pub secrets: Vec<String>,
    /// The name of the account or server behind the secrets in cache keys.
    pub identity: Option<String>,
    pub protocol: Protocol,
    /// Whether one execution serves all runs.
    pub deterministic: bool,
    pub timeout: std::time::Duration,
}

/// How compeval talks to a program; it is not part of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// One process for each request.
    #[default]
    Process,
    /// Workers that answer one request after the other, each a line.
    Lines {
        /// The most workers at a time.
        workers: NonZeroU32,
        /// The time in which a worker must be ready.
        start_timeout: std::time::Duration,
    },
}

impl Method {
    /// What decides its contexts besides its strategy, model and prompt, by the names of the pipeline; `kept` is what stays
    /// verbatim besides the summary.
    pub fn settings(&self) -> Map<String, Value> {
        let mut settings = Map::new();
        let tokens = self.target_tokens.map(|tokens| Value::from(tokens.0));
        settings.extend(tokens.map(|tokens| ("target_tokens".to_owned(), tokens)));
        let kept = self.strategy.shape().map(|shape| Value::from(shape.name()));
        settings.extend(kept.map(|kept| ("kept".to_owned(), kept)));
        match &self.strategy {
            Strategy::Prompted {
                placement, extract, ..
            } => {
                settings.insert("placement".to_owned(), placement.name().into());
                settings.insert("extract".to_owned(), extract.clone().into());
            }
            Strategy::Command(spec) => {
                settings.insert("program".to_owned(), spec.settings());
            }
            _ => {}
        }
        settings
    }
}

impl CommandSpec {
    /// What decides its output, by the names of the pipeline. The values of its variables are in cache keys alone, because
    /// this is written to files that are shared, and a short secret can be guessed from its digest.
    pub fn settings(&self) -> Value {
        let inputs: BTreeMap<&String, &Digest> = self
            .files
            .iter()
            .map(|(path, digest)| (path, digest))
            .collect();
        json!({
            "command": self.argv,
            "model": self.model,
            "inputs": inputs,
            "variables": self.variables().collect::<BTreeSet<_>>(),
            "deterministic": self.deterministic,
        })
    }

    /// An input that is no longer what was hashed: what the program makes now does not belong to the key. Large files, such
    /// as weights, are not read again.
    pub fn changed_input(&self) -> Option<&str> {
        let is_changed = |(path, hashed): &&(String, Digest)| {
            let file = open_regular(&self.folder.join(path));
            let now = file.and_then(|file| read_file(file, 16 << 20));
            now.is_ok_and(|now| Digest::hash(now) != *hashed)
        };
        Some(&self.files.iter().find(is_changed)?.0)
    }

    /// The variables that the program sees besides `PATH` and `HOME`: those that keys depend on, then the secrets.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.environment
            .iter()
            .map(|(name, _)| name.as_str())
            .chain(self.secrets.iter().map(String::as_str))
    }
}

impl Strategy {
    /// The strategy's name in a pipeline.
    pub fn name(&self) -> &'static str {
        let kind = match self {
            Strategy::Prompted { style, .. } => StrategyKind::Prompted(*style),
            Strategy::Opaque { .. } => StrategyKind::Opaque,
            Strategy::ProviderCompaction { .. } => StrategyKind::ProviderCompaction,
            Strategy::Command(_) => StrategyKind::Command,
            Strategy::Rule(rule) => StrategyKind::Rule(*rule),
        };
        kind.name()
    }

    /// The model that compresses, where there is one.
    pub fn model(&self) -> Option<&ModelUse> {
        match self {
            Strategy::Prompted { model, .. }
            | Strategy::Opaque { model }
            | Strategy::ProviderCompaction { model, .. } => Some(model),
            Strategy::Command(_) | Strategy::Rule(_) => None,
        }
    }

    /// The prompt, where there is one.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Strategy::Prompted { template, .. } => Some(template),
            Strategy::ProviderCompaction { template, .. } => template.as_ref(),
            Strategy::Opaque { .. } | Strategy::Command(_) | Strategy::Rule(_) => None,
        }
    }

    /// What the strategy keeps verbatim beside its summary, if anything.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            Strategy::Prompted { shape, .. } if !shape.is_empty() => Some(*shape),
            _ => None,
        }
    }

    /// Whether its requests declare the tools of the session.
    pub fn declares_tools(&self) -> bool {
        let Strategy::Prompted {
            placement, model, ..
        } = self
        else {
            return false;
        };
        *placement == PromptPlacement::Last && model.is_asked()
    }

    /// Whether one execution serves all runs: rules, the built-in model, and programs that say so.
    pub fn is_deterministic(&self) -> bool {
        match self {
            Strategy::Rule(_) => true,
            Strategy::Command(command) => command.deterministic,
            _ => self.model().is_some_and(|model| !model.is_asked()),
        }
    }

    /// Whether a point needs the output of the point before.
    pub fn keeps_state(&self) -> bool {
        !matches!(self, Strategy::Rule(_))
    }
}
