//! State shared by all validation of `pipeline.toml`, and the checks that every stage needs: names, numbers, models,
//! prompts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::file::tables::ModelKeys;
use super::file::{Located, value};
use super::model::SourceFile;
use super::problem::{Problem, Problems, list};
use super::providers::{Environment, Providers};
use super::select::Overrides;
use super::sources::SourceReader;
use crate::action::{Stage, Template, Variable};
use base::locale::Locale;
use models::{Dialect, Lane, ModelRef, ModelUse, ProviderSpec, Settings};

/// Inputs and collected problems of validation.
pub(super) struct ValidationContext<'a> {
    pub(super) file: &'a SourceFile,
    pub(super) reader: &'a mut SourceReader,
    pub(super) providers: &'a Providers,
    pub(super) environment: &'a Environment<'a>,
    pub(super) locale: Locale,
    /// The model of all stages that name none.
    pub(super) main_model: Option<&'a Located<String>>,
    pub(super) overrides: &'a Overrides,
    pub(super) problems: Problems,
    /// Keys that providers need and that are not set, by variable.
    pub(super) missing_keys: BTreeMap<String, Problem>,
    /// Folders that a run writes to. Inputs of a program cannot lie in them.
    pub(super) outputs: Vec<PathBuf>,
}

/// A table that asks a model.
pub(super) struct Asking<'a> {
    /// The place of the table.
    pub(super) header: &'a Range<usize>,
    pub(super) stage: Stage,
    pub(super) keys: &'a ModelKeys,
    /// The model in place of all that the file names: its table is not declared.
    pub(super) undeclared: Option<&'static str>,
}

impl ValidationContext<'_> {
    pub(super) fn error(
        &mut self,
        place: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(
            Problem::error(message)
                .at(self.file, place.clone())
                .help(help),
        );
    }

    pub(super) fn warn(
        &mut self,
        place: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(
            Problem::warning(message)
                .at(self.file, place.clone())
                .help(help),
        );
    }

    /// The name of a table, if it has one that is new and serves as a JSON key, a file name and a word on the command
    /// line.
    pub(super) fn name(
        &mut self,
        name: Option<&Located<String>>,
        header: &Range<usize>,
        stage: &str,
        taken: &mut BTreeMap<String, Range<usize>>,
    ) -> Option<Arc<str>> {
        let Some(name) = name else {
            let message = format!("this {stage} table has no name");
            let help = "add name = \"…\": results are shown by it";
            self.error(header, message, help);
            return None;
        };
        if let Err(message) = check_name(&name.value) {
            self.error(&name.place, message, name_help());
            return None;
        }
        if let Some(first) = taken.insert(name.value.clone(), name.place.clone()) {
            let problem = Problem::error(format!("two {stage} tables are named `{}`", name.value));
            let problem = problem
                .label(self.file, name.place.clone(), "again here")
                .label(self.file, first, "first here");
            let help = "names identify results: use a different one";
            self.problems.push(problem.help(help));
            return None;
        }
        Some(name.value.as_str().into())
    }

    /// Resolves the model of a table, or the override from the command line.
    pub(super) fn model(&mut self, asking: &Asking<'_>) -> Option<ModelUse> {
        let settings = self.check_settings(asking.keys);
        let own = asking.keys.model.as_ref();
        let declared = own.or(self.main_model);
        let overriding = self.overrides.model_of(asking.stage).or(asking.undeclared);
        let written = overriding.or(declared.map(|model| model.value.as_str()));
        let Some(written) = written else {
            let help = "add model = \"PROVIDER/MODEL\" here or under [pipeline], or model = \"lexical\" for the built-in rules";
            let message = format!("this {} table has no model", asking.stage);
            self.error(asking.header, message, help);
            return None;
        };
        // What replaces a declared model has no place in the file.
        let declared = declared.filter(|_| overriding.is_none());
        let (reference, provider) = self.find_model(written, declared)?;
        self.require_key(&provider, declared.filter(|_| own.is_some()));
        let lane = self.resolve_lane(asking, &provider);
        Some(ModelUse {
            reference,
            provider,
            settings,
            lane,
        })
    }

    /// Reports a model of all stages that cannot be used, also where each stage names its own.
    pub(super) fn check_main_model(&mut self) {
        if let Some(model) = self.main_model {
            self.find_model(&model.value, Some(model));
        }
    }

    /// The model of this name and its provider. A fault is reported at `declared`.
    fn find_model(
        &mut self,
        written: &str,
        declared: Option<&Located<String>>,
    ) -> Option<(ModelRef, Arc<ProviderSpec>)> {
        let (message, help) = match ModelRef::parse(written) {
            None => {
                let names = self.providers.known.keys().map(|name| &*name.0);
                (
                    format!("the model `{written}` has no provider"),
                    format!("write PROVIDER/MODEL; providers: {}", list(names)),
                )
            }
            Some(reference) => match self.providers.find(&reference.provider) {
                Ok(provider) => return Some((reference, provider)),
                Err(None) => return None,
                Err(Some(help)) => {
                    let provider = &reference.provider;
                    let end = if help.ends_with('?') { "" } else { "." };
                    (
                        format!("unknown provider `{provider}` in `{written}`"),
                        format!(
                            "{help}{end} A provider of your own is declared by [providers.{provider}]"
                        ),
                    )
                }
            },
        };
        let problem = Problem::error(message).help(help);
        let place = declared.map(|model| model.place.clone());
        self.problems.push(problem.at_known(self.file, place));
        None
    }

    fn check_settings(&mut self, keys: &ModelKeys) -> Settings {
        let effort = keys.effort.as_ref().filter(|effort| {
            let is_sound = !effort.value.trim().is_empty();
            if !is_sound {
                let help = "write the provider's own word, or leave it out";
                self.error(&effort.place, "effort is empty", help);
            }
            is_sound
        });
        Settings {
            max_output_tokens: value(&keys.max_output_tokens),
            temperature: value(&keys.temperature),
            effort: effort.map(|effort| effort.value.clone()),
        }
    }

    /// How requests are sent: as the command line says, else the table, else the provider. Compressions and probes go
    /// into a batch only where their own table says so: the next point of a session waits for the one before.
    fn resolve_lane(&self, asking: &Asking<'_>, provider: &ProviderSpec) -> Lane {
        let declared = value(&asking.keys.lane);
        let lane = self.overrides.lane.or(declared).unwrap_or(provider.lane);
        let takes_batch = match asking.stage {
            _ if provider.dialect == Dialect::Lexical => false,
            Stage::Answer | Stage::Judge => true,
            Stage::Compress => declared == Some(lane),
            Stage::Probes => false,
        };
        if takes_batch { lane } else { Lane::Live }
    }

    fn require_key(&mut self, provider: &ProviderSpec, model: Option<&Located<String>>) {
        let missing = missing_key(provider, self.environment);
        if let Some((variable, problem)) = provider.api_key.as_ref().zip(missing) {
            let problem = problem.at_known(self.file, model.map(|model| model.place.clone()));
            self.missing_keys
                .entry(variable.0.to_string())
                .or_insert(problem);
        }
    }

    /// The validated prompt of a table; the built-in one if the table names none. A prompt must insert each of `required`:
    /// without it a model would work on nothing, and no score would show why.
    pub(super) fn prompt(
        &mut self,
        path: Option<&Located<String>>,
        variables: &'static [Variable],
        required: &[Variable],
        built_in: Option<Template>,
    ) -> Option<Template> {
        let Some(path) = path else {
            return built_in;
        };
        let source = self.text_file("prompt", path)?;
        // Line ends do not matter: nothing may become stale by a checkout on another system.
        match Template::new(&source.text.replace("\r\n", "\n"), variables) {
            Ok(mut template) => {
                let missing = required
                    .iter()
                    .filter(|variable| !inserts(&template, variables, variable));
                let problems: Vec<Problem> = missing
                    .map(|variable| missing_variable(&source, variable))
                    .collect();
                let is_complete = problems.is_empty();
                self.problems.0.extend(problems);
                template.path = Some(source.path);
                is_complete.then_some(template)
            }
            Err(fault) => {
                let place = place_in_line(&source.text, fault.line, &fault.message);
                self.problems.push(Problem::error(fault.message).at(&source, place).help("a prompt inserts variables, {{ name }}, and tests them for emptiness, {% if name %}; nothing else"));
                None
            }
        }
    }

    /// A text file that the pipeline names, read once.
    pub(super) fn text_file(&mut self, what: &str, path: &Located<String>) -> Option<SourceFile> {
        match self.reader.read(&path.value) {
            Ok(source) => Some(source),
            Err(why) => {
                let message = format!("cannot read the {what} {}: {why}", path.value);
                let help = "paths are relative to the folder of the pipeline";
                self.error(&path.place, message, help);
                None
            }
        }
    }
}

/// The problem of a provider that needs a key, if the key is not set. It has the name of the variable, never its value.
pub fn missing_key(provider: &ProviderSpec, environment: &Environment<'_>) -> Option<Problem> {
    let (variable, name) = (&provider.api_key.as_ref()?.0, &provider.name);
    let why = match environment(variable) {
        Some(key) if key.contains(char::REPLACEMENT_CHARACTER) => "is not UTF-8",
        Some(key) if !key.trim().is_empty() => return None,
        _ => "is not set",
    };
    let message = format!("{variable} {why}, and provider `{name}` needs the key in it");
    let help =
        format!("export {variable}=…, or name another variable: api_key_env in [providers.{name}]");
    Some(Problem::error(message).help(help))
}

/// Whether a prompt inserts a variable when all of them have a value.
pub(super) fn inserts(template: &Template, variables: &'static [Variable], wanted: &str) -> bool {
    let values = variables
        .iter()
        .map(|variable| (*variable, "value".into()))
        .collect();
    // A prompt that does not render is reported where it is compiled or filled.
    template
        .fill("prompt", values)
        .is_ok_and(|prompt| prompt.used().any(|(variable, _)| variable == wanted))
}

/// The error about a prompt that does not insert `variable`.
pub(super) fn missing_variable(prompt: &SourceFile, variable: &str) -> Problem {
    let first_line = prompt.text.lines().next().map_or(0, str::len);
    let mut help = format!("add a line with {{{{ {variable} }}}} where its text belongs");
    if variable == "transcript" {
        help.push_str(
            "; for a prompt that expects the conversation before it, set placement = \"system\"",
        );
    }
    let message = format!("this prompt does not insert {{{{ {variable} }}}}");
    Problem::error(message).at(prompt, 0..first_line).help(help)
}

/// What a name may be.
pub(super) fn name_help() -> &'static str {
    "letters, digits, `-`, `_`, `.`, `+` and single blanks, 64 characters at most, beginning with a letter or digit: \
         names become file names, JSON keys and words on the command line"
}

/// Whether a name serves everywhere names are used.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    match name
        .chars()
        .find(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | '+' | ' '))
    {
        _ if name.is_empty() => Err("a name is empty".to_owned()),
        Some(c) => Err(format!("the name `{name}` holds {c:?}")),
        None if !name.starts_with(char::is_alphanumeric) => {
            Err(format!("the name `{name}` begins with a sign"))
        }
        None if name.ends_with(' ') || name.contains("  ") => Err(format!(
            "the name `{name}` ends with a blank, or holds two in a row"
        )),
        None if name.chars().count() > 64 => Err(format!("the name `{name}` is too long")),
        None => Ok(()),
    }
}

/// The bytes of a line (from 1), narrowed to the word the message quotes, if the line holds it.
fn place_in_line(text: &str, line: usize, message: &str) -> Range<usize> {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let line = text
        .get(start..)
        .and_then(|rest| rest.lines().next())
        .unwrap_or("");
    let quoted = message.split('`').nth(1).filter(|word| !word.is_empty());
    match quoted.and_then(|word| Some((line.find(word)?, word.len()))) {
        Some((at, len)) => start + at..start + at + len,
        None => start..start + line.trim_end().len(),
    }
}
