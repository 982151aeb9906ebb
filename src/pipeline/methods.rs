//! Validates `[[compress]]` tables: each becomes a method whose strategy holds exactly what its kind needs.

use super::file::tables::{Appendix, CompressTable, ModelKeys, ProgramKeys, strategy_place};
use super::file::{Located, value};
use super::problem::{list, suggest};
use super::programs;
use super::validation::{Asking, ValidationContext, inserts};
use crate::action::{BuiltInStrategy, Stage, Template, Variable};
use crate::compress::{
    self, Method, MethodName, PromptPlacement, PromptStyle, Shape, Strategy, StrategyKind,
};
use base::units::Tokens;
use models::{Dialect, ModelUse};

/// The keys that every strategy takes.
const COMMON_KEYS: [&str; 3] = ["name", "strategy", "answerers"];

/// All keys that it takes.
pub(super) fn all_keys(kind: StrategyKind) -> Vec<&'static str> {
    [COMMON_KEYS.to_vec(), keys(kind)].concat()
}

/// The keys that it takes beside those of every method.
fn keys(kind: StrategyKind) -> Vec<&'static str> {
    match kind {
        StrategyKind::Prompted(_) => {
            let own = [
                "placement",
                "keep_head",
                "keep_tail",
                "keep_user",
                "append",
                "extract",
                "target_tokens",
            ];
            [ModelKeys::keys(), own.to_vec()].concat()
        }
        StrategyKind::ProviderCompaction => {
            let keys = ModelKeys::keys().into_iter();
            keys.filter(|key| *key != "lane")
                .chain(["target_tokens"])
                .collect()
        }
        StrategyKind::Opaque => vec!["model"],
        StrategyKind::Command => {
            let own = [
                "model",
                "protocol",
                "workers",
                "start_timeout_s",
                "target_tokens",
            ];
            [ProgramKeys::keys(), own.to_vec()].concat()
        }
        StrategyKind::Rule(rule) => match rule {
            BuiltInStrategy::Truncate | BuiltInStrategy::Mask | BuiltInStrategy::Extract => {
                vec!["target_tokens"]
            }
            BuiltInStrategy::Recorded | BuiltInStrategy::Full | BuiltInStrategy::None => Vec::new(),
        },
    }
}

/// Validates one table.
pub(super) fn method(
    context: &mut ValidationContext<'_>,
    name: MethodName,
    table: &Located<CompressTable>,
) -> Option<Method> {
    let Some(kind) = value(&table.value.strategy) else {
        if !table.value.faulty.contains(&"strategy") {
            let known = list(StrategyKind::ALL.map(StrategyKind::name));
            let help = format!("add strategy = \"…\", one of {known}");
            context.error(
                &table.place,
                format!("the method `{name}` has no strategy"),
                help,
            );
        }
        return None;
    };
    reject_foreign_keys(context, kind, table);
    let target_tokens = value(&table.value.target_tokens);
    let strategy = match kind {
        StrategyKind::Prompted(style) => prompted(context, style, table)?,
        StrategyKind::Opaque => Strategy::Opaque {
            model: vendor_model(context, Dialect::OpenaiResponses, table)?,
        },
        StrategyKind::ProviderCompaction => compaction(context, table)?,
        StrategyKind::Command => Strategy::Command(programs::command(context, table)?),
        StrategyKind::Rule(rule) => {
            require_target(context, rule, table)?;
            Strategy::Rule(rule)
        }
    };
    Some(Method {
        name,
        strategy,
        target_tokens,
    })
}

fn reject_foreign_keys(
    context: &mut ValidationContext<'_>,
    kind: StrategyKind,
    table: &Located<CompressTable>,
) {
    for (key, place) in table.value.written() {
        if !all_keys(kind).contains(&key) {
            let message = format!("the strategy `{}` does not take `{key}`", kind.name());
            context.error(
                &place,
                message,
                format!("it takes {}", list(all_keys(kind))),
            );
        }
    }
}

fn prompted(
    context: &mut ValidationContext<'_>,
    style: PromptStyle,
    table: &Located<CompressTable>,
) -> Option<Strategy> {
    let model = context.model(&asking(table));
    let built_in = Some(compress::built_in(style, context.locale));
    let placement = value(&table.value.placement).unwrap_or_default();
    let required: &[Variable] = if placement == PromptPlacement::Inline {
        &["transcript"]
    } else {
        &[]
    };
    let template = context.prompt(
        table.value.ask.prompt.as_ref(),
        compress::VARIABLES,
        required,
        built_in,
    )?;
    warn_of_lost_focus(context, &template, table);
    let (shape, extract) = (shape(&table.value), extract(context, &table.value));
    Some(Strategy::Prompted {
        style,
        model: model?,
        template,
        placement,
        shape,
        extract,
    })
}

/// Warns of a prompt that does not insert the topic.
fn warn_of_lost_focus(
    context: &mut ValidationContext<'_>,
    template: &Template,
    table: &Located<CompressTable>,
) {
    if context.overrides.topic().is_some() && !inserts(template, compress::VARIABLES, "focus_topic")
    {
        let place = table
            .value
            .ask
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

fn shape(table: &CompressTable) -> Shape {
    const USUAL: Tokens = Tokens(2000);
    // A tenth of the whole.
    let room = Tokens(value(&table.target_tokens).unwrap_or(USUAL).0 / 10);
    Shape {
        head: value(&table.keep_head).unwrap_or(0),
        tail: value(&table.keep_tail).map(|tail| tail.0),
        user: value(&table.keep_user),
        files: value(&table.append).map(|Appendix::Files| room),
    }
}

/// A table of a method as one that asks a model.
fn asking(table: &Located<CompressTable>) -> Asking<'_> {
    Asking {
        header: &table.place,
        stage: Stage::Compress,
        keys: &table.value.ask,
        undeclared: None,
    }
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
) -> Option<Strategy> {
    let model = vendor_model(context, Dialect::Anthropic, table);
    let prompt = table.value.ask.prompt.as_ref();
    let template = match prompt {
        Some(_) => Some(context.prompt(prompt, compress::VARIABLES, &[], None)?),
        None => None,
    };
    Some(Strategy::ProviderCompaction {
        model: model?,
        template,
    })
}

/// The model of a strategy that only one kind of provider has.
fn vendor_model(
    context: &mut ValidationContext<'_>,
    dialect: Dialect,
    table: &Located<CompressTable>,
) -> Option<ModelUse> {
    let model = context.model(&asking(table))?;
    if model.provider.dialect == dialect {
        return Some(model);
    }
    let strategy = value(&table.value.strategy).map_or("", StrategyKind::name);
    let place = table
        .value
        .ask
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

/// `truncate` keeps nothing in particular without a size.
fn require_target(
    context: &mut ValidationContext<'_>,
    rule: BuiltInStrategy,
    table: &Located<CompressTable>,
) -> Option<()> {
    if rule != BuiltInStrategy::Truncate || table.value.target_tokens.is_some() {
        return Some(());
    }
    context.error(
        strategy_place(table),
        "the strategy `truncate` needs `target_tokens`",
        "add target_tokens = 2000, or how many of the newest tokens to keep",
    );
    None
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
