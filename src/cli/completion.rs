//! Shell completion of flags, and of the labels, fixtures, probes, methods and models of the project.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;

use crate::evaluation::variable;
use crate::pipeline::{OpenRequest, Pipeline, find_pipeline, open};
use crate::results::labels;
use models::known_models;

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
        // Writing to memory cannot fail.
        let _ = completer.write_registration(VARIABLE, "compeval", "compeval", "compeval", &mut script);
    }
    script
}

/// Adds candidates to arguments by their names, which mean the same in every command except `judge agreement`.
fn with_candidates(command: Command) -> Command {
    if command.get_name() == "agreement" {
        return command;
    }
    let command = command.mut_args(|arg| {
        let candidates = match arg.get_id().as_str() {
            "label" | "labels" | "compare_to" | "a" | "b" => ArgValueCandidates::new(label_names),
            "fixture" | "fixtures" => ArgValueCandidates::new(fixture_names),
            "probe" | "probes" => ArgValueCandidates::new(probe_names),
            "method" | "methods" => ArgValueCandidates::new(method_names),
            "model" | "compressor_model" | "answer_model" | "judge_model" => ArgValueCandidates::new(model_names),
            _ => return arg,
        };
        arg.add(candidates)
    });
    command.mut_subcommands(with_candidates)
}

/// Candidates from the project that the command line selects; none if the project cannot be opened.
fn candidates_of_project<I: IntoIterator<Item = String>>(names: impl FnMut(Pipeline) -> I) -> Vec<CompletionCandidate> {
    open_project(true).into_iter().flat_map(names).map(CompletionCandidate::new).collect()
}

fn open_project(without_banks: bool) -> Option<Pipeline> {
    let folder = argument(&["-C", "--directory"]).unwrap_or_else(|| PathBuf::from("."));
    let config = argument(&["-c", "--config"]).map(|file| folder.join(file));
    let file = find_pipeline(&folder, config.as_deref()).ok()?;
    let request = OpenRequest { file, without_banks, allow_unproven: true, ..OpenRequest::default() };
    Some(open(&request, &variable).ok()?.pipeline)
}

/// The word after one of these names on the command line that is completed.
fn argument(names: &[&str]) -> Option<PathBuf> {
    let mut words = std::env::args_os().skip_while(|word| !names.iter().any(|name| word == name));
    words.nth(1).map(PathBuf::from)
}

fn label_names() -> Vec<CompletionCandidate> {
    candidates_of_project(|project| {
        let found = labels(&project.results).unwrap_or_default();
        found.into_iter().map(|label| label.to_string())
    })
}

fn fixture_names() -> Vec<CompletionCandidate> {
    candidates_of_project(|project| project.fixtures.into_iter().map(|loaded| loaded.fixture.name.clone()))
}

fn probe_names() -> Vec<CompletionCandidate> {
    let fixtures = open_project(false).map(|project| project.fixtures).unwrap_or_default();
    let probes = fixtures.iter().flat_map(|loaded| &loaded.bank.probes);
    let ids: BTreeSet<String> = probes.map(|probe| probe.id.to_string()).collect();
    ids.into_iter().map(CompletionCandidate::new).collect()
}

fn method_names() -> Vec<CompletionCandidate> {
    candidates_of_project(|project| project.methods.into_iter().map(|method| method.name.to_string()))
}

fn model_names() -> Vec<CompletionCandidate> {
    let declared = candidates_of_project(|project| project.prices.into_keys().map(|model| model.to_string()));
    let known = known_models().chain(["lexical".to_owned()]).map(CompletionCandidate::new);
    declared.into_iter().chain(known).collect()
}
