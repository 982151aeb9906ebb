//! Validates `[[compress]]` tables: each becomes a method whose strategy holds exactly what its kind needs.

use super::file::Located;
use super::file::tables::CompressTable;
use super::presets;
use super::problem::{list, suggest};
use super::programs;
use super::validation::{ValidationContext, inserts, model_declaration};
use crate::action::{BuiltInStrategy, Template, Variable};
use crate::compress::{self, Method, MethodName, PromptPlacement, PromptStyle, Shape, Strategy};
use base::units::Tokens;
use models::{Dialect, ModelUse};
use sessions::references::PATTERNS;

/// Tool results that `mask` keeps by default.
const KEPT_RESULTS: u32 = 10;

/// The strategies as a file names them.
#[derive(Clone, Copy)]
enum StrategyKind {
    Prompted(PromptStyle),
    Opaque,
    ProviderCompaction,
    Command,
    Rule(BuiltInStrategy),
}

const STRATEGIES: [(&str, StrategyKind); 13] = [
    (
        "anchored-iterative",
        StrategyKind::Prompted(PromptStyle::Anchored),
    ),
    (
        "regenerative",
        StrategyKind::Prompted(PromptStyle::Regenerative),
    ),
    ("opaque", StrategyKind::Opaque),
    ("provider-compaction", StrategyKind::ProviderCompaction),
    ("command", StrategyKind::Command),
    ("truncate", StrategyKind::Rule(BuiltInStrategy::Truncate)),
    ("prune", StrategyKind::Rule(BuiltInStrategy::Prune)),
    (
        "mask",
        StrategyKind::Rule(BuiltInStrategy::Mask {
            keep_results: KEPT_RESULTS,
        }),
    ),
    ("extract", StrategyKind::Rule(BuiltInStrategy::Extract)),
    (
        "reference-list",
        StrategyKind::Rule(BuiltInStrategy::ReferenceList { patterns: PATTERNS }),
    ),
    ("recorded", StrategyKind::Rule(BuiltInStrategy::Recorded)),
    ("full", StrategyKind::Rule(BuiltInStrategy::Full)),
    ("none", StrategyKind::Rule(BuiltInStrategy::None)),
];

/// The names of all strategies, as a pipeline writes them.
pub(super) fn strategies() -> impl Iterator<Item = &'static str> {
    STRATEGIES.into_iter().map(|(name, _)| name)
}

/// The keys that every strategy takes.
const COMMON_KEYS: [&str; 3] = ["name", "strategy", "answerers"];

/// All keys that each strategy takes.
pub(super) fn keys_by_strategy() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    STRATEGIES
        .into_iter()
        .map(|(name, kind)| (name, [&COMMON_KEYS, kind.keys()].concat()))
}

impl StrategyKind {
    /// The keys this kind takes besides [`COMMON_KEYS`].
    fn keys(self) -> &'static [&'static str] {
        match self {
            StrategyKind::Prompted(_) => &[
                "model",
                "prompt",
                "placement",
                "preset",
                "keep_head",
                "keep_tail",
                "keep_user",
                "append",
                "extract",
                "max_output_tokens",
                "target_tokens",
                "temperature",
                "effort",
                "lane",
            ],
            StrategyKind::ProviderCompaction => &[
                "model",
                "prompt",
                "max_output_tokens",
                "target_tokens",
                "temperature",
                "effort",
            ],
            StrategyKind::Opaque => &["model"],
            StrategyKind::Command => &[
                "command",
                "model",
                "inputs",
                "env",
                "secrets",
                "identity",
                "deterministic",
                "protocol",
                "workers",
                "start_timeout_s",
                "timeout_s",
                "target_tokens",
            ],
            StrategyKind::Rule(BuiltInStrategy::Mask { .. }) => &["keep_results", "target_tokens"],
            StrategyKind::Rule(
                BuiltInStrategy::Truncate
                | BuiltInStrategy::Prune
                | BuiltInStrategy::Extract
                | BuiltInStrategy::ReferenceList { .. },
            ) => &["target_tokens"],
            StrategyKind::Rule(
                BuiltInStrategy::Recorded | BuiltInStrategy::Full | BuiltInStrategy::None,
            ) => &[],
        }
    }
}

/// Validates one table. `override_model` is the model from the command line; it replaces the table's.
pub(super) fn method(
    context: &mut ValidationContext<'_>,
    name: MethodName,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<Method> {
    let completed = presets::with_preset(context, table);
    let table = completed.as_ref().unwrap_or(table);
    let Some(strategy) = &table.value.strategy else {
        let help = format!("add strategy = \"…\", one of {}", list(strategies()));
        context.error(
            &table.place,
            format!("the method `{name}` has no strategy"),
            help,
        );
        return None;
    };
    let kind = context.choice("strategy", Some(strategy), &STRATEGIES)?;
    reject_foreign_keys(context, &strategy.value, kind, table);
    let target_tokens = context
        .at_least_one("target_tokens", table.value.target_tokens.as_ref())
        .map(Tokens);
    let strategy = match kind {
        StrategyKind::Prompted(style) => prompted(context, style, table, override_model)?,
        StrategyKind::Opaque => Strategy::Opaque {
            model: vendor_model(context, Dialect::OpenaiResponses, table, override_model)?,
        },
        StrategyKind::ProviderCompaction => compaction(context, table, override_model)?,
        StrategyKind::Command => {
            Strategy::Command(programs::command(context, table, override_model)?)
        }
        StrategyKind::Rule(rule) => Strategy::Rule(self::rule(context, rule, table)?),
    };
    Some(Method {
        name,
        strategy,
        target_tokens,
    })
}

fn reject_foreign_keys(
    context: &mut ValidationContext<'_>,
    strategy: &str,
    kind: StrategyKind,
    table: &Located<CompressTable>,
) {
    for (key, place) in table.value.written() {
        if !COMMON_KEYS.contains(&key) && !kind.keys().contains(&key) {
            let message = format!("the strategy `{strategy}` does not take `{key}`");
            context.error(
                &place,
                message,
                format!("it takes {}", list(kind.keys().iter().copied())),
            );
        }
    }
}

fn prompted(
    context: &mut ValidationContext<'_>,
    style: PromptStyle,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<Strategy> {
    let model = context.model(&model_declaration!(table, Compress, override_model));
    let built_in = Some(compress::built_in(style, context.locale));
    let words = PromptPlacement::ALL.map(|placement| (placement.name(), placement));
    let placement = context
        .choice("placement", table.value.placement.as_ref(), &words)
        .unwrap_or_default();
    let required: &[Variable] = if placement == PromptPlacement::Inline {
        &["transcript"]
    } else {
        &[]
    };
    let (template, prompt_path) = context.prompt(
        table.value.prompt.as_ref(),
        compress::VARIABLES,
        required,
        built_in,
    )?;
    warn_of_lost_focus(context, &template, table);
    let (shape, extract) = (shape(context, &table.value), extract(context, &table.value));
    Some(Strategy::Prompted {
        style,
        model: model?,
        template,
        placement,
        shape,
        extract,
        prompt_path,
    })
}

/// Warns of a prompt that does not insert the topic.
fn warn_of_lost_focus(
    context: &mut ValidationContext<'_>,
    template: &Template,
    table: &Located<CompressTable>,
) {
    if context.has_focus_topic && !inserts(template, compress::VARIABLES, "focus_topic") {
        let place = table
            .value
            .prompt
            .as_ref()
            .map_or(&table.place, |prompt| &prompt.place)
            .clone();
        let help =
            "add {{ focus_topic }} where it belongs, inside {% if focus_topic %} … {% endif %}";
        context.warn(
            &place,
            "this prompt does not insert the --focus-topic: the method works without it",
            help,
        );
    }
}

fn shape(context: &mut ValidationContext<'_>, table: &CompressTable) -> Shape {
    Shape {
        head: context
            .at_least_one("keep_head", table.keep_head.as_ref())
            .unwrap_or(0),
        tail: table.keep_tail.as_ref().map(|tail| tail.value.0),
        user: context
            .at_least_one("keep_user", table.keep_user.as_ref())
            .map(Tokens),
        files: files(context, table),
    }
}

/// The room for the list of files that `append = "files"` adds: a tenth of the whole.
fn files(context: &mut ValidationContext<'_>, table: &CompressTable) -> Option<Tokens> {
    const USUAL: u64 = 2000;
    let words = [("files", ())];
    context.choice("append", table.append.as_ref(), &words)?;
    let target = table
        .target_tokens
        .as_ref()
        .map_or(USUAL, |target| target.value);
    Some(Tokens(target / 10))
}

/// The name of the tag around the summary in a reply.
fn extract(context: &mut ValidationContext<'_>, table: &CompressTable) -> Option<String> {
    let tag = table.extract.as_ref()?;
    let is_name = tag
        .value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if tag.value.is_empty() || !is_name {
        context.error(
            &tag.place,
            "this is not the name of a tag",
            "write extract = \"summary\" for <summary>…</summary>",
        );
        return None;
    }
    Some(tag.value.clone())
}

fn compaction(
    context: &mut ValidationContext<'_>,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<Strategy> {
    let model = vendor_model(context, Dialect::Anthropic, table, override_model);
    let prompt = table.value.prompt.as_ref();
    let (template, prompt_path) = match prompt {
        Some(_) => context
            .prompt(prompt, compress::VARIABLES, &[], None)
            .map(|(template, path)| (Some(template), path))?,
        None => (None, None),
    };
    Some(Strategy::ProviderCompaction {
        model: model?,
        template,
        prompt_path,
    })
}

/// The model of a strategy that only one kind of provider has.
fn vendor_model(
    context: &mut ValidationContext<'_>,
    dialect: Dialect,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<ModelUse> {
    let model = context.model(&model_declaration!(table, Compress, override_model))?;
    if model.provider.dialect == dialect {
        return Some(model);
    }
    let strategy = table
        .value
        .strategy
        .as_ref()
        .map_or("", |strategy| &strategy.value);
    let place = table
        .value
        .model
        .as_ref()
        .map_or(&table.place, |model| &model.place);
    let kind = model.provider.dialect.name();
    let message = format!(
        "the strategy `{strategy}` cannot use `{}`, whose provider is {kind}",
        model.reference
    );
    context.error(
        place,
        message,
        format!("it needs a provider of kind \"{}\"", dialect.name()),
    );
    None
}

fn rule(
    context: &mut ValidationContext<'_>,
    rule: BuiltInStrategy,
    table: &Located<CompressTable>,
) -> Option<BuiltInStrategy> {
    if matches!(rule, BuiltInStrategy::Truncate | BuiltInStrategy::Prune)
        && table.value.target_tokens.is_none()
    {
        let place = table
            .value
            .strategy
            .as_ref()
            .map_or(&table.place, |strategy| &strategy.place);
        let help = "add target_tokens = 2000, or how many of the newest tokens to keep";
        context.error(
            place,
            format!("the strategy `{}` needs `target_tokens`", rule.name()),
            help,
        );
        return None;
    }
    Some(match (rule, &table.value.keep_results) {
        (BuiltInStrategy::Mask { .. }, Some(keep)) => BuiltInStrategy::Mask {
            keep_results: keep.value,
        },
        _ => rule,
    })
}

/// The names of the answerers that read a method's contexts; all of them if the table names none.
pub(super) fn declared_answerers<'a>(
    context: &mut ValidationContext<'_>,
    table: &CompressTable,
    answerers: &[&'a str],
) -> Vec<&'a str> {
    let Some(named) = &table.answerers else {
        return answerers.to_vec();
    };
    if named.value.is_empty() {
        context.error(
            &named.place,
            "a method needs an answerer",
            "leave `answerers` out to let all answer",
        );
    }
    for item in &named.value {
        if !answerers.contains(&item.value.as_str()) {
            let help = suggest(&item.value, answerers.iter().copied());
            context.error(
                &item.place,
                format!("there is no answerer `{}`", item.value),
                help,
            );
        }
    }
    answerers
        .iter()
        .filter(|name| named.value.iter().any(|item| item.value == **name))
        .copied()
        .collect()
}
