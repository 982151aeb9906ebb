//! Methods: each `[[compress]]` table becomes a strategy with what that way needs, and nothing else.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::desk::{Asked, Desk};
use super::file::{CompressTable, Items, Placed};
use super::problem::{Problem, list, suggest};
use super::providers::duration;
use super::sources::{Pattern, word};
use crate::action::{Digest, Rule};
use crate::compress::{self, CommandSpec, Method, MethodName, PromptStyle, Strategy};
use crate::provider::{Dialect, ModelUse};
use crate::units::Tokens;

/// Time for one execution of a program that declares none.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);

/// The strategies as a file names them.
#[derive(Clone, Copy)]
enum Way {
    Prompted(PromptStyle),
    Opaque,
    ProviderCompaction,
    Command,
    Rule(Rule),
}

const WAYS: [(&str, Way); 9] = [
    ("anchored-iterative", Way::Prompted(PromptStyle::Anchored)),
    ("regenerative", Way::Prompted(PromptStyle::Regenerative)),
    ("opaque", Way::Opaque),
    ("provider-compaction", Way::ProviderCompaction),
    ("command", Way::Command),
    ("truncate", Way::Rule(Rule::Truncate)),
    ("extract", Way::Rule(Rule::Extract)),
    ("full", Way::Rule(Rule::Full)),
    ("none", Way::Rule(Rule::None)),
];

impl Way {
    /// The keys this way takes besides `name`, `strategy` and `answerers`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Way::Prompted(_) => {
                &["model", "prompt", "max_output_tokens", "target_tokens", "temperature", "effort", "artifact_index"]
            }
            // The block goes back as it came; nothing can be appended to it.
            Way::ProviderCompaction => {
                &["model", "prompt", "max_output_tokens", "target_tokens", "temperature", "effort"]
            }
            Way::Opaque => &["model"],
            Way::Command => {
                &["command", "inputs", "env", "deterministic", "timeout_s", "target_tokens", "artifact_index"]
            }
            Way::Rule(Rule::Truncate | Rule::Extract) => &["target_tokens", "artifact_index"],
            Way::Rule(Rule::Full | Rule::None) => &["artifact_index"],
        }
    }
}

/// Makes a method of a table; `instead` is the model the command line puts in the place of the table's.
pub(super) fn method(
    desk: &mut Desk<'_>,
    name: MethodName,
    table: &Placed<CompressTable>,
    instead: Option<&str>,
) -> Option<Method> {
    let Some(strategy) = &table.value.strategy else {
        let help = format!("add strategy = \"…\", one of {}", list(Strategy::NAMES));
        desk.error(&table.place, format!("the method `{name}` has no strategy"), help);
        return None;
    };
    let way = desk.choice("strategy", Some(strategy), &WAYS)?;
    refuse_foreign_keys(desk, &strategy.value, way, table);
    let target_tokens = desk.at_least_one("target_tokens", table.value.target_tokens.as_ref()).map(Tokens);
    let strategy = match way {
        Way::Prompted(style) => prompted(desk, style, table, instead)?,
        Way::Opaque => Strategy::Opaque { model: vendor(desk, Dialect::OpenaiResponses, table, instead)? },
        Way::ProviderCompaction => compaction(desk, table, instead)?,
        Way::Command => Strategy::Command(command(desk, table)?),
        Way::Rule(rule) => Strategy::Rule(self::rule(desk, rule, table)?),
    };
    let artifact_index = table.value.artifact_index.as_ref().is_some_and(|index| index.value);
    Some(Method { name, strategy, artifact_index, target_tokens })
}

fn refuse_foreign_keys(desk: &mut Desk<'_>, strategy: &str, way: Way, table: &Placed<CompressTable>) {
    for (key, place) in table.value.written() {
        if !matches!(key, "name" | "strategy" | "answerers") && !way.keys().contains(&key) {
            let message = format!("the strategy `{strategy}` does not take `{key}`");
            desk.error(&place, message, format!("it takes {}", list(way.keys().iter().copied())));
        }
    }
}

fn asked<'a>(table: &'a Placed<CompressTable>, instead: Option<&'a str>) -> Asked<'a> {
    Asked {
        header: table.place.clone(),
        stage: "compress",
        model: table.value.model.as_ref(),
        instead,
        max_output_tokens: table.value.max_output_tokens.as_ref(),
        temperature: table.value.temperature.as_ref(),
        effort: table.value.effort.as_ref(),
    }
}

fn prompted(
    desk: &mut Desk<'_>,
    style: PromptStyle,
    table: &Placed<CompressTable>,
    instead: Option<&str>,
) -> Option<Strategy> {
    let model = desk.model(&asked(table, instead));
    let built_in = Some(compress::built_in(style, desk.locale));
    let (template, prompt_path) = desk.prompt(table.value.prompt.as_ref(), compress::VARIABLES, built_in)?;
    Some(Strategy::Prompted { style, model: model?, template, prompt_path })
}

fn compaction(desk: &mut Desk<'_>, table: &Placed<CompressTable>, instead: Option<&str>) -> Option<Strategy> {
    let model = vendor(desk, Dialect::Anthropic, table, instead);
    let prompt = table.value.prompt.as_ref();
    let (template, prompt_path) = match prompt {
        Some(_) => desk.prompt(prompt, compress::VARIABLES, None).map(|(template, path)| (Some(template), path))?,
        None => (None, None),
    };
    Some(Strategy::ProviderCompaction { model: model?, template, prompt_path })
}

/// The model of a strategy that only one kind of provider has.
fn vendor(
    desk: &mut Desk<'_>,
    dialect: Dialect,
    table: &Placed<CompressTable>,
    instead: Option<&str>,
) -> Option<ModelUse> {
    let model = desk.model(&asked(table, instead))?;
    if model.provider.dialect == dialect {
        return Some(model);
    }
    let strategy = table.value.strategy.as_ref().map_or("", |strategy| &strategy.value);
    let place = table.value.model.as_ref().map_or(&table.place, |model| &model.place);
    let kind = model.provider.dialect.name();
    let message = format!("the strategy `{strategy}` cannot use `{}`, whose provider is {kind}", model.reference);
    desk.error(place, message, format!("it needs a provider of kind \"{}\"", dialect.name()));
    None
}

fn rule(desk: &mut Desk<'_>, rule: Rule, table: &Placed<CompressTable>) -> Option<Rule> {
    if rule == Rule::Truncate && table.value.target_tokens.is_none() {
        let place = table.value.strategy.as_ref().map_or(&table.place, |strategy| &strategy.place);
        let help = "add target_tokens = 2000, or how many of the newest tokens it shall keep";
        desk.error(place, "the strategy `truncate` needs `target_tokens`", help);
        return None;
    }
    Some(rule)
}

fn command(desk: &mut Desk<'_>, table: &Placed<CompressTable>) -> Option<CommandSpec> {
    let table_place = table.value.strategy.as_ref().map_or(&table.place, |strategy| &strategy.place).clone();
    let argv: Vec<String> = match &table.value.command {
        Some(argv) if argv.value.first().is_some_and(|program| !program.value.trim().is_empty()) => {
            argv.value.iter().map(|word| word.value.clone()).collect()
        }
        written => {
            let place = written.as_ref().map_or(&table_place, |argv| &argv.place);
            let help = "add command = [\"python3\", \"tools/compress.py\"]: program and arguments, no shell";
            desk.error(place, "the strategy `command` needs a program to run", help);
            return None;
        }
    };
    warn_of_missing_program(desk, table.value.command.as_ref());
    if table.value.inputs.is_none() {
        let help = "list the program's files, inputs = [\"tools/**/*.py\"]: a change in them makes old outputs stale";
        desk.warn(&table_place, "this command declares no `inputs`: a change of the program will not be seen", help);
    }
    Some(CommandSpec {
        argv,
        folder: desk.library.folder().to_path_buf(),
        files: input_files(desk, table.value.inputs.as_ref()),
        environment: environment(desk, table.value.env.as_ref()),
        deterministic: table.value.deterministic.as_ref().is_some_and(|yes| yes.value),
        timeout: duration(table.value.timeout_s.as_ref(), COMMAND_TIMEOUT, desk.file, &mut desk.problems),
    })
}

/// A program that is not here is only told: cached outputs serve without it.
fn warn_of_missing_program(desk: &mut Desk<'_>, argv: Option<&Placed<Items>>) {
    let Some(program) = argv.and_then(|argv| argv.value.first()) else {
        return;
    };
    let is_here = match (program.value.contains('/'), desk.environment.var("PATH")) {
        (true, _) => desk.library.folder().join(&program.value).is_file(),
        (false, Some(path)) => std::env::split_paths(&path).any(|folder| folder.join(&program.value).is_file()),
        (false, None) => true,
    };
    if !is_here {
        let help = "a program is found on PATH, or by a path relative to the folder of the pipeline";
        desk.warn(&program.place, format!("there is no program `{}` here", program.value), help);
    }
}

/// The declared files with the digests of their contents, sorted by path, each once.
fn input_files(desk: &mut Desk<'_>, inputs: Option<&Placed<Items>>) -> Vec<(String, Digest)> {
    let mut paths: Vec<(String, Range<usize>)> = Vec::new();
    for item in inputs.map(|inputs| inputs.value.as_slice()).unwrap_or_default() {
        let folder = desk.library.folder();
        match Pattern::new(&item.value) {
            Err(why) => desk.error(&item.place, why, "patterns are relative to the folder of the pipeline"),
            Ok(pattern) => {
                let files = pattern.files(folder, |path| desk.outputs.iter().any(|output| output == path));
                if files.is_empty() {
                    let help = missing_help(folder, &item.value);
                    desk.error(&item.place, format!("no file matches `{}`", item.value), help);
                }
                paths.extend(files.into_iter().map(|path| (path, item.place.clone())));
            }
        }
    }
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    paths.dedup_by(|a, b| a.0 == b.0);
    paths.into_iter().filter_map(|(path, place)| digest_file(desk, path, &place)).collect()
}

fn missing_help(folder: &Path, pattern: &str) -> String {
    if folder.join(pattern).is_dir() {
        return format!("it is a folder: write `{}/**` for all that lies in it", pattern.trim_end_matches('/'));
    }
    "patterns are relative to the folder of the pipeline; `**` stands for any folders".to_owned()
}

fn digest_file(desk: &mut Desk<'_>, path: String, place: &Range<usize>) -> Option<(String, Digest)> {
    match std::fs::read(desk.library.folder().join(&path)) {
        Ok(bytes) => Some((path, Digest::of(bytes))),
        Err(e) => {
            let problem = Problem::error(format!("cannot read the input {path}: {}", word(&e)));
            desk.problems.push(problem.at(desk.file, place.clone()));
            None
        }
    }
}

/// The declared variables with the digests of their values, sorted by name, each once.
fn environment(desk: &mut Desk<'_>, names: Option<&Placed<Items>>) -> Vec<(String, Option<Digest>)> {
    let mut variables: Vec<(String, Option<Digest>)> = Vec::new();
    for item in names.map(|names| names.value.as_slice()).unwrap_or_default() {
        if item.value.is_empty() || item.value.contains(['=', '\0']) {
            let help = "write the NAME of a variable; its value comes from the environment";
            desk.error(&item.place, "this is not the name of a variable", help);
            continue;
        }
        variables.push((item.value.clone(), desk.environment.var(&item.value).map(Digest::of)));
    }
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    variables.dedup_by(|a, b| a.0 == b.0);
    variables
}

/// The names of the answerers that read a method's contexts; all of them if the table names none.
pub(super) fn named_readers<'a>(desk: &mut Desk<'_>, table: &CompressTable, answerers: &[&'a str]) -> Vec<&'a str> {
    let Some(named) = &table.answerers else {
        return answerers.to_vec();
    };
    if named.value.is_empty() {
        desk.error(&named.place, "a method needs an answerer", "leave `answerers` out to let all answer");
    }
    for item in &named.value {
        if !answerers.contains(&item.value.as_str()) {
            let help = suggest(&item.value, answerers.iter().copied());
            desk.error(&item.place, format!("there is no answerer `{}`", item.value), help);
        }
    }
    answerers.iter().filter(|name| named.value.iter().any(|item| item.value == **name)).copied().collect()
}
