//! Validates the keys of `strategy = "command"`: the program, the files and variables that its output depends on, and
//! the secrets that it sees.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::file::tables::{CompressTable, ProgramKeys, ProtocolName, strategy_place};
use super::file::{Located, StringList, items, value};
use super::problem::Problem;
use super::providers::is_variable;
use super::secrets::is_key;
use super::sources::{Pattern, describe_error, out_of_bounds};
use super::validation::ValidationContext;
use crate::action::{Digest, Stage};
use crate::compress::{CommandSpec, Protocol};
use base::files::open_regular;

/// Time for one execution of a program that declares none.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);
/// Time in which a worker that declares none must be ready.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The program of a method, its declared files and variables hashed.
pub(super) fn command(
    context: &mut ValidationContext<'_>,
    table: &Located<CompressTable>,
) -> Option<CommandSpec> {
    let (keys, place) = (&table.value.program, strategy_place(table));
    let argv = argv(context, &keys.command, place)?;
    reject_keys(context, items(&keys.command));
    warn_of_missing_program(context, items(&keys.command));
    if keys.inputs.is_none() {
        warn_of_missing_inputs(context, place);
    }
    let overriding = context.overrides.model_of(Stage::Compress);
    let model = table.value.ask.model.as_ref();
    Some(CommandSpec {
        argv,
        // The program resolves it: it need not be a model that compeval knows.
        model: overriding
            .or(model.map(|model| model.value.as_str()))
            .map(str::to_owned),
        folder: context.reader.folder().to_path_buf(),
        environment: environment(context, items(&keys.env)),
        secrets: secrets(context, keys),
        files: input_files(context, items(&keys.inputs)),
        identity: value(&keys.identity),
        deterministic: value(&keys.deterministic).unwrap_or(false),
        protocol: protocol(context, table),
        timeout: value(&keys.timeout_s).unwrap_or(COMMAND_TIMEOUT),
    })
}

/// The program and its arguments. `place` is where a table without them says that it needs some.
fn argv(
    context: &mut ValidationContext<'_>,
    written: &Option<Located<StringList>>,
    place: &Range<usize>,
) -> Option<Vec<String>> {
    let argv = items(written);
    if argv
        .first()
        .is_some_and(|program| !program.value.trim().is_empty())
    {
        return Some(argv.iter().map(|word| word.value.clone()).collect());
    }
    let help =
        "add command = [\"python3\", \"tools/compress.py\"]: program and arguments, no shell";
    context.error(
        written.as_ref().map_or(place, |argv| &argv.place),
        "the strategy `command` needs a program to run",
        help,
    );
    None
}

fn warn_of_missing_inputs(context: &mut ValidationContext<'_>, place: &Range<usize>) {
    let help = "list the program's files, inputs = [\"tools/**/*.py\"]: a change in them makes old outputs stale";
    context.warn(
        place,
        "this command declares no `inputs`: a change of the program will not be seen",
        help,
    );
}

/// How compeval talks to the program.
fn protocol(context: &mut ValidationContext<'_>, table: &Located<CompressTable>) -> Protocol {
    let CompressTable {
        protocol,
        workers,
        start_timeout_s,
        ..
    } = &table.value;
    if let Some(ProtocolName::Lines) = value(protocol) {
        let number = value(workers).and_then(NonZeroU32::new);
        return Protocol::Lines {
            workers: number.unwrap_or_else(usual_workers),
            start_timeout: value(start_timeout_s).unwrap_or(START_TIMEOUT),
        };
    }
    for (key, place) in [
        ("workers", workers.as_ref().map(|n| &n.key)),
        ("start_timeout_s", start_timeout_s.as_ref().map(|n| &n.key)),
    ] {
        if let Some(place) = place {
            let message = format!("`{key}` is for programs that answer more than one request");
            context.error(place, message, "add protocol = \"lines\", or leave it out");
        }
    }
    Protocol::Process
}

/// As many workers as there are processors, and at most four.
fn usual_workers() -> NonZeroU32 {
    const MOST: NonZeroU32 = NonZeroU32::new(4).unwrap();
    let processors = std::thread::available_parallelism()
        .ok()
        .and_then(|n| NonZeroU32::try_from(n).ok());
    processors.map_or(NonZeroU32::MIN, |processors| processors.min(MOST))
}

/// A missing program is only a warning, since cached outputs do not need it.
fn warn_of_missing_program(context: &mut ValidationContext<'_>, argv: &[Located<String>]) {
    let Some(program) = argv.first() else {
        return;
    };
    let is_here = match (program.value.contains('/'), (context.environment)("PATH")) {
        (true, _) => context.reader.folder().join(&program.value).is_file(),
        (false, Some(path)) => {
            std::env::split_paths(&path).any(|folder| folder.join(&program.value).is_file())
        }
        (false, None) => true,
    };
    if !is_here {
        let help =
            "a program is found on PATH, or by a path relative to the folder of the pipeline";
        context.warn(
            &program.place,
            format!("there is no program `{}` here", program.value),
            help,
        );
    }
}

/// The declared files with the digests of their contents, sorted by path, each once.
fn input_files(
    context: &mut ValidationContext<'_>,
    inputs: &[Located<String>],
) -> Vec<(String, Digest)> {
    let help = "patterns are relative to the folder of the pipeline";
    let mut paths: Vec<(String, Range<usize>)> = Vec::new();
    for item in inputs {
        let folder = context.reader.folder();
        match Pattern::new(&item.value) {
            Err(why) => context.error(&item.place, why, help),
            Ok(pattern) if context.reader.is_out_of_bounds(&pattern.base()) => {
                let message = format!("`{}` cannot be used: {}", item.value, out_of_bounds());
                context.error(&item.place, message, help);
            }
            Ok(pattern) => {
                let files = pattern.files(folder, |path| {
                    context.outputs.iter().any(|output| output == path)
                });
                if files.is_empty() {
                    let help = missing_help(folder, &item.value);
                    let message = format!("no file matches `{}`", item.value);
                    context.error(&item.place, message, help);
                }
                paths.extend(files.into_iter().map(|path| (path, item.place.clone())));
            }
        }
    }
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    paths.dedup_by(|a, b| a.0 == b.0);
    paths
        .into_iter()
        .filter_map(|(path, place)| digest_file(context, path, &place))
        .collect()
}

fn missing_help(folder: &Path, pattern: &str) -> String {
    if folder.join(pattern).is_dir() {
        return format!(
            "it is a folder: write `{}/**` for all that lies in it",
            pattern.trim_end_matches('/')
        );
    }
    "patterns are relative to the folder of the pipeline; `**` stands for any folders".to_owned()
}

fn digest_file(
    context: &mut ValidationContext<'_>,
    path: String,
    place: &Range<usize>,
) -> Option<(String, Digest)> {
    let read = match context.reader.is_out_of_bounds(Path::new(&path)) {
        true => Err(out_of_bounds().to_owned()),
        false => open_regular(&context.reader.folder().join(&path))
            .and_then(Digest::of_stream)
            .map_err(|e| describe_error(&e)),
    };
    match read {
        Ok(digest) => Some((path, digest)),
        Err(why) => {
            let problem = Problem::error(format!("cannot read the input {path}: {why}"));
            context
                .problems
                .push(problem.at(context.file, place.clone()));
            None
        }
    }
}

/// The variables that `names` lists. A word that cannot name one is reported.
fn variables(
    context: &mut ValidationContext<'_>,
    names: &[Located<String>],
) -> Vec<Located<String>> {
    let (good, bad): (Vec<_>, Vec<_>) = names
        .iter()
        .cloned()
        .partition(|name| is_variable(&name.value));
    for name in bad {
        let help = "write the NAME of a variable; its value comes from the environment";
        context.error(&name.place, "this is not the name of a variable", help);
    }
    good
}

/// The declared variables with the digests of their values, sorted by name, each once.
fn environment(
    context: &mut ValidationContext<'_>,
    names: &[Located<String>],
) -> Vec<(String, Option<Digest>)> {
    let read = context.environment;
    let named = variables(context, names).into_iter();
    let mut variables: Vec<_> = named
        .map(|name| (name.value.clone(), read(&name.value).map(Digest::hash)))
        .collect();
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    variables.dedup_by(|a, b| a.0 == b.0);
    variables
}

/// The variables whose values no cache key may depend on, sorted, each once. One that is not set is reported like the
/// missing key of a provider.
fn secrets(context: &mut ValidationContext<'_>, keys: &ProgramKeys) -> Vec<String> {
    let hashed = items(&keys.env);
    let mut names = Vec::new();
    for name in variables(context, items(&keys.secrets)) {
        if hashed.iter().any(|other| other.value == name.value) {
            let help = "a value in `env` is hashed into the cache key, one in `secrets` is not: keep one of the two";
            let message = format!("`{}` is in `env` and in `secrets`", name.value);
            context.error(&name.place, message, help);
        }
        if (context.environment)(&name.value).is_none_or(|value| value.trim().is_empty()) {
            let problem = Problem::error(format!(
                "{} is not set, and this method's program needs it",
                name.value
            ))
            .help(format!(
                "export {}=…, or take it out of `secrets`",
                name.value
            ))
            .at(context.file, name.place.clone());
            context
                .missing_keys
                .entry(name.value.clone())
                .or_insert(problem);
        }
        names.push(name.value);
    }
    names.sort();
    names.dedup();
    names
}

/// Rejects a key among the arguments: it would be in the cache key, the manifest and the list of processes.
fn reject_keys(context: &mut ValidationContext<'_>, words: &[Located<String>]) {
    for (at, argument) in words.iter().enumerate() {
        let before = at
            .checked_sub(1)
            .and_then(|at| words.get(at))
            .map_or("", |word| word.value.as_str());
        // A key has already been masked when the file was read.
        let is_masked = argument.value.len() > 5 && argument.value.chars().all(|c| c == '*');
        if is_masked || is_key(before, &argument.value) {
            let help = "put it into a variable, list the variable in `secrets`, and let the program read it from there";
            context.error(
                &argument.place,
                "this argument looks like a key; `command` is stored and shown",
                help,
            );
        }
    }
}
