//! Completion in the shell: besides flags, the labels, fixtures, methods and models of the project in the current folder.

use std::path::Path;

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;

use super::environment::variable;
use crate::pipeline::{OpenRequest, Pipeline, find_pipeline, open};
use crate::provider::known_models;
use crate::results::labels;

/// Set by the script that `compeval completions` prints, when a shell asks for candidates.
const VARIABLE: &str = "COMPLETE";

/// Prints candidates and ends the process if a shell asks for them.
pub(super) fn complete_if_asked(program: fn() -> Command) {
    CompleteEnv::with_factory(|| with_candidates(program())).var(VARIABLE).complete();
}

/// The script that makes a shell ask; empty for one that cannot.
pub(super) fn registration(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // Memory accepts all that is written.
        let _ = completer.write_registration(VARIABLE, "compeval", "compeval", "compeval", &mut script);
    }
    script
}

/// The arguments are known by their names, which mean the same in every command.
fn with_candidates(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let candidates = match arg.get_id().as_str() {
            "label" | "labels" | "compare_to" | "a" | "b" => ArgValueCandidates::new(label_names),
            "fixture" | "fixtures" => ArgValueCandidates::new(fixture_names),
            "method" | "methods" => ArgValueCandidates::new(method_names),
            "model" | "compressor_model" | "answer_model" | "judge_model" => ArgValueCandidates::new(model_names),
            _ => return arg,
        };
        arg.add(candidates)
    });
    command.mut_subcommands(with_candidates)
}

fn candidates(names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The project of the current folder; a project with mistakes has no candidates.
fn project() -> Option<Pipeline> {
    let file = find_pipeline(Path::new("."), None).ok()?;
    let request = OpenRequest { file, without_banks: true, ..OpenRequest::default() };
    Some(open(&request, &variable).ok()?.pipeline)
}

fn label_names() -> Vec<CompletionCandidate> {
    let found = project().and_then(|project| labels(&project.results).ok());
    candidates(found.into_iter().flatten().map(|label| label.to_string()))
}

fn fixture_names() -> Vec<CompletionCandidate> {
    let fixtures = project().map(|project| project.fixtures).unwrap_or_default();
    candidates(fixtures.into_iter().map(|loaded| loaded.fixture.name.clone()))
}

fn method_names() -> Vec<CompletionCandidate> {
    let methods = project().map(|project| project.methods).unwrap_or_default();
    candidates(methods.into_iter().map(|method| method.name.to_string()))
}

fn model_names() -> Vec<CompletionCandidate> {
    let declared = project().map(|project| project.prices).unwrap_or_default();
    let declared = declared.keys().map(ToString::to_string);
    candidates(declared.chain(known_models()).chain(["lexical".to_owned()]))
}
