//! Validates `[[compress]]` tables: each becomes a method whose strategy holds exactly what its kind needs.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::file::tables::CompressTable;
use super::file::{Located, StringList};
use super::problem::{Problem, list, suggest};
use super::providers::duration;
use super::sources::{OUT_OF_BOUNDS, Pattern, word};
use super::validation::{ValidationContext, model_declaration};
use crate::action::{BuiltInStrategy, Digest, Variable};
use crate::compress::{self, CommandSpec, Method, MethodName, PromptPlacement, PromptStyle, Strategy};
use base::units::Tokens;
use models::{Dialect, Lane, ModelUse};
use sessions::references::PATTERNS;

/// Time for one execution of a program that declares none.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);

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

const WAYS: [(&str, StrategyKind); 11] = [
    ("anchored-iterative", StrategyKind::Prompted(PromptStyle::Anchored)),
    ("regenerative", StrategyKind::Prompted(PromptStyle::Regenerative)),
    ("opaque", StrategyKind::Opaque),
    ("provider-compaction", StrategyKind::ProviderCompaction),
    ("command", StrategyKind::Command),
    ("truncate", StrategyKind::Rule(BuiltInStrategy::Truncate)),
    ("mask", StrategyKind::Rule(BuiltInStrategy::Mask { keep_results: KEPT_RESULTS })),
    ("extract", StrategyKind::Rule(BuiltInStrategy::Extract)),
    ("reference-list", StrategyKind::Rule(BuiltInStrategy::ReferenceList { patterns: PATTERNS })),
    ("full", StrategyKind::Rule(BuiltInStrategy::Full)),
    ("none", StrategyKind::Rule(BuiltInStrategy::None)),
];

/// All strategies, as a pipeline writes them.
pub(super) fn strategies() -> impl Iterator<Item = &'static str> {
    WAYS.into_iter().map(|(name, _)| name)
}

/// The keys that every strategy takes.
const COMMON_KEYS: [&str; 3] = ["name", "strategy", "answerers"];

/// All keys that each strategy takes.
pub(super) fn keys_by_strategy() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    WAYS.into_iter().map(|(name, kind)| (name, [&COMMON_KEYS, kind.keys()].concat()))
}

impl StrategyKind {
    /// The keys this kind takes besides [`COMMON_KEYS`].
    fn keys(self) -> &'static [&'static str] {
        match self {
            StrategyKind::Prompted(_) => &[
                "model", "prompt", "placement", "max_output_tokens", "target_tokens", "temperature", "effort", "lane",
                "artifact_index",
            ],
            // The block goes back as it came; nothing can be appended to it.
            StrategyKind::ProviderCompaction => {
                &["model", "prompt", "max_output_tokens", "target_tokens", "temperature", "effort"]
            }
            StrategyKind::Opaque => &["model"],
            StrategyKind::Command => {
                &["command", "model", "inputs", "env", "deterministic", "timeout_s", "target_tokens", "artifact_index"]
            }
            StrategyKind::Rule(BuiltInStrategy::Mask { .. }) => &["keep_results", "target_tokens", "artifact_index"],
            StrategyKind::Rule(
                BuiltInStrategy::Truncate | BuiltInStrategy::Extract | BuiltInStrategy::ReferenceList { .. },
            ) => &["target_tokens", "artifact_index"],
            StrategyKind::Rule(BuiltInStrategy::Full | BuiltInStrategy::None) => &["artifact_index"],
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
    let Some(strategy) = &table.value.strategy else {
        let help = format!("add strategy = \"…\", one of {}", list(strategies()));
        context.error(&table.place, format!("the method `{name}` has no strategy"), help);
        return None;
    };
    let kind = context.choice("strategy", Some(strategy), &WAYS)?;
    reject_foreign_keys(context, &strategy.value, kind, table);
    let target_tokens = context.at_least_one("target_tokens", table.value.target_tokens.as_ref()).map(Tokens);
    let strategy = match kind {
        StrategyKind::Prompted(style) => prompted(context, style, table, override_model)?,
        StrategyKind::Opaque => {
            Strategy::Opaque { model: vendor(context, Dialect::OpenaiResponses, table, override_model)? }
        }
        StrategyKind::ProviderCompaction => compaction(context, table, override_model)?,
        StrategyKind::Command => Strategy::Command(command(context, table, override_model)?),
        StrategyKind::Rule(rule) => Strategy::Rule(self::rule(context, rule, table)?),
    };
    let artifact_index = table.value.artifact_index.as_ref().is_some_and(|index| index.value);
    Some(Method { name, strategy, artifact_index, target_tokens })
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
            context.error(&place, message, format!("it takes {}", list(kind.keys().iter().copied())));
        }
    }
}

fn prompted(
    context: &mut ValidationContext<'_>,
    style: PromptStyle,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<Strategy> {
    let model = context.model(&model_declaration!(table, "compress", override_model));
    let built_in = Some(compress::built_in(style, context.locale));
    let words = [PromptPlacement::Inline, PromptPlacement::System].map(|placement| (placement.name(), placement));
    let placement = context.choice("placement", table.value.placement.as_ref(), &words).unwrap_or_default();
    let required: &[Variable] = if placement == PromptPlacement::Inline { &["transcript"] } else { &[] };
    let (template, prompt_path) =
        context.prompt(table.value.prompt.as_ref(), compress::VARIABLES, required, built_in)?;
    Some(Strategy::Prompted { style, model: model?, template, placement, prompt_path })
}

fn compaction(
    context: &mut ValidationContext<'_>,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<Strategy> {
    let model = vendor(context, Dialect::Anthropic, table, override_model);
    let prompt = table.value.prompt.as_ref();
    let (template, prompt_path) = match prompt {
        Some(_) => {
            context.prompt(prompt, compress::VARIABLES, &[], None).map(|(template, path)| (Some(template), path))?
        }
        None => (None, None),
    };
    Some(Strategy::ProviderCompaction { model: model?, template, prompt_path })
}

/// The model of a strategy that only one kind of provider has.
fn vendor(
    context: &mut ValidationContext<'_>,
    dialect: Dialect,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<ModelUse> {
    let model = context.model(&model_declaration!(table, "compress", override_model))?;
    if model.provider.dialect == dialect {
        if let Some(lane) = table.value.lane.as_ref().filter(|_| model.lane == Lane::Batch) {
            context.error(&lane.place, "a vendor's own compaction cannot be batched", "leave `lane` out here");
        }
        return Some(model);
    }
    let strategy = table.value.strategy.as_ref().map_or("", |strategy| &strategy.value);
    let place = table.value.model.as_ref().map_or(&table.place, |model| &model.place);
    let kind = model.provider.dialect.name();
    let message = format!("the strategy `{strategy}` cannot use `{}`, whose provider is {kind}", model.reference);
    context.error(place, message, format!("it needs a provider of kind \"{}\"", dialect.name()));
    None
}

fn rule(
    context: &mut ValidationContext<'_>,
    rule: BuiltInStrategy,
    table: &Located<CompressTable>,
) -> Option<BuiltInStrategy> {
    if rule == BuiltInStrategy::Truncate && table.value.target_tokens.is_none() {
        let place = table.value.strategy.as_ref().map_or(&table.place, |strategy| &strategy.place);
        let help = "add target_tokens = 2000, or how many of the newest tokens to keep";
        context.error(place, "the strategy `truncate` needs `target_tokens`", help);
        return None;
    }
    Some(match (rule, &table.value.keep_results) {
        (BuiltInStrategy::Mask { .. }, Some(keep)) => BuiltInStrategy::Mask { keep_results: keep.value },
        _ => rule,
    })
}

fn command(
    context: &mut ValidationContext<'_>,
    table: &Located<CompressTable>,
    override_model: Option<&str>,
) -> Option<CommandSpec> {
    let table_place = table.value.strategy.as_ref().map_or(&table.place, |strategy| &strategy.place).clone();
    let argv: Vec<String> = match &table.value.command {
        Some(argv) if argv.value.first().is_some_and(|program| !program.value.trim().is_empty()) => {
            argv.value.iter().map(|word| word.value.clone()).collect()
        }
        written => {
            let place = written.as_ref().map_or(&table_place, |argv| &argv.place);
            let help = "add command = [\"python3\", \"tools/compress.py\"]: program and arguments, no shell";
            context.error(place, "the strategy `command` needs a program to run", help);
            return None;
        }
    };
    warn_of_missing_program(context, table.value.command.as_ref());
    if table.value.inputs.is_none() {
        let help = "list the program's files, inputs = [\"tools/**/*.py\"]: a change in them makes old outputs stale";
        context.warn(&table_place, "this command declares no `inputs`: a change of the program will not be seen", help);
    }
    Some(CommandSpec {
        argv,
        // The program resolves it: it need not be a model that compeval knows.
        model: override_model.or(table.value.model.as_ref().map(|model| model.value.as_str())).map(str::to_owned),
        folder: context.reader.folder().to_path_buf(),
        files: input_files(context, table.value.inputs.as_ref()),
        environment: environment(context, table.value.env.as_ref()),
        deterministic: table.value.deterministic.as_ref().is_some_and(|yes| yes.value),
        timeout: duration(table.value.timeout_s.as_ref(), COMMAND_TIMEOUT, context.file, &mut context.problems),
    })
}

/// A missing program is only a warning, since cached outputs do not need it.
fn warn_of_missing_program(context: &mut ValidationContext<'_>, argv: Option<&Located<StringList>>) {
    let Some(program) = argv.and_then(|argv| argv.value.first()) else {
        return;
    };
    let is_here = match (program.value.contains('/'), (context.environment)("PATH")) {
        (true, _) => context.reader.folder().join(&program.value).is_file(),
        (false, Some(path)) => std::env::split_paths(&path).any(|folder| folder.join(&program.value).is_file()),
        (false, None) => true,
    };
    if !is_here {
        let help = "a program is found on PATH, or by a path relative to the folder of the pipeline";
        context.warn(&program.place, format!("there is no program `{}` here", program.value), help);
    }
}

/// The declared files with the digests of their contents, sorted by path, each once.
fn input_files(context: &mut ValidationContext<'_>, inputs: Option<&Located<StringList>>) -> Vec<(String, Digest)> {
    let mut paths: Vec<(String, Range<usize>)> = Vec::new();
    for item in inputs.map(|inputs| inputs.value.as_slice()).unwrap_or_default() {
        let folder = context.reader.folder();
        match Pattern::new(&item.value) {
            Err(why) => context.error(&item.place, why, "patterns are relative to the folder of the pipeline"),
            Ok(pattern) if context.reader.is_out_of_bounds(&pattern.base()) => {
                let message = format!("`{}` cannot be used: {OUT_OF_BOUNDS}", item.value);
                context.error(&item.place, message, "patterns are relative to the folder of the pipeline");
            }
            Ok(pattern) => {
                let files = pattern.files(folder, |path| context.outputs.iter().any(|output| output == path));
                if files.is_empty() {
                    let help = missing_help(folder, &item.value);
                    context.error(&item.place, format!("no file matches `{}`", item.value), help);
                }
                paths.extend(files.into_iter().map(|path| (path, item.place.clone())));
            }
        }
    }
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    paths.dedup_by(|a, b| a.0 == b.0);
    paths.into_iter().filter_map(|(path, place)| digest_file(context, path, &place)).collect()
}

fn missing_help(folder: &Path, pattern: &str) -> String {
    if folder.join(pattern).is_dir() {
        return format!("it is a folder: write `{}/**` for all that lies in it", pattern.trim_end_matches('/'));
    }
    "patterns are relative to the folder of the pipeline; `**` stands for any folders".to_owned()
}

fn digest_file(context: &mut ValidationContext<'_>, path: String, place: &Range<usize>) -> Option<(String, Digest)> {
    let read = match context.reader.is_out_of_bounds(Path::new(&path)) {
        true => Err(OUT_OF_BOUNDS.to_owned()),
        false => std::fs::read(context.reader.folder().join(&path)).map_err(|e| word(&e)),
    };
    match read {
        Ok(bytes) => Some((path, Digest::of(bytes))),
        Err(why) => {
            let problem = Problem::error(format!("cannot read the input {path}: {why}"));
            context.problems.push(problem.at(context.file, place.clone()));
            None
        }
    }
}

/// The declared variables with the digests of their values, sorted by name, each once.
fn environment(
    context: &mut ValidationContext<'_>,
    names: Option<&Located<StringList>>,
) -> Vec<(String, Option<Digest>)> {
    let mut variables: Vec<(String, Option<Digest>)> = Vec::new();
    for item in names.map(|names| names.value.as_slice()).unwrap_or_default() {
        if item.value.is_empty() || item.value.contains(['=', '\0']) {
            let help = "write the NAME of a variable; its value comes from the environment";
            context.error(&item.place, "this is not the name of a variable", help);
            continue;
        }
        variables.push((item.value.clone(), (context.environment)(&item.value).map(Digest::of)));
    }
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    variables.dedup_by(|a, b| a.0 == b.0);
    variables
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
        context.error(&named.place, "a method needs an answerer", "leave `answerers` out to let all answer");
    }
    for item in &named.value {
        if !answerers.contains(&item.value.as_str()) {
            let help = suggest(&item.value, answerers.iter().copied());
            context.error(&item.place, format!("there is no answerer `{}`", item.value), help);
        }
    }
    answerers.iter().filter(|name| named.value.iter().any(|item| item.value == **name)).copied().collect()
}
