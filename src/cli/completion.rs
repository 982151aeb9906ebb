//! Shell completion of flags, and of the labels, fixtures, probes, methods and models of the project.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::evaluation::variable;
use crate::pipeline::{OpenRequest, Pipeline, find_pipeline, open};
use crate::results::labels;
use models::known_models;

/// Set by the script that `compeval completions` prints, when a shell asks for candidates.
const VARIABLE: &str = "COMPLETE";

/// bash inserts candidates as they are, so one with a blank would become two words. Inside quotes it closes them.
const BASH_QUOTES: &str = r#"
_compeval_quoted() {
    _clap_complete_compeval "$@"
    local i
    if [[ "${COMP_WORDS[COMP_CWORD]}" != [\'\"]* ]]; then
        for i in "${!COMPREPLY[@]}"; do
            if [[ "${COMPREPLY[i]}" == *[[:space:]\'\"\\\$\`\&\|\;\<\>\(\)\*\?\[\]\{\}\!\#]* ]]; then
                COMPREPLY[i]=$(printf %q "${COMPREPLY[i]}")
            fi
        done
    fi
}
"#;

/// The words to complete, without the quotes of the shell. It is static because the functions that find candidates take
/// no arguments.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Prints candidates and ends the process if a shell asks for them.
pub(super) fn complete_if_asked(program: fn() -> Command) {
    let Some(shell) = std::env::var_os(VARIABLE) else {
        return;
    };
    let shell = Path::new(&shell).file_stem().and_then(|name| name.to_str());
    let words = WORDS.get_or_init(|| without_quotes(std::env::args_os().collect(), shell));
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| with_candidates(program())).var(VARIABLE);
    if asked
        .try_complete(words, folder.as_deref())
        .unwrap_or_else(|error| error.exit())
    {
        std::process::exit(0);
    }
}

/// Words as a shell passes them, some shells with the quotes and backslashes that were typed.
fn without_quotes(mut words: Vec<OsString>, shell: Option<&str>) -> Vec<OsString> {
    let typed = match shell {
        Some("bash" | "zsh") => words.get_mut(1..),
        // The words before the last have no quotes any more.
        Some("fish") => words
            .split_last_mut()
            .map(|(last, _)| std::slice::from_mut(last)),
        _ => None,
    };
    for word in typed.into_iter().flatten() {
        if let Some(text) = word.to_str() {
            *word = unquoted(text).into();
        }
    }
    words
}

/// A word without its quotes, of which the last may be open.
fn unquoted(word: &str) -> String {
    let (mut text, mut open) = (String::new(), None);
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (open, c) {
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), _) if c == quote => open = None,
            (None | Some('"'), '\\') => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

/// The script that makes a shell ask; empty for one that cannot.
pub(super) fn registration(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // Writing to memory cannot fail.
        let _ =
            completer.write_registration(VARIABLE, "compeval", "compeval", "compeval", &mut script);
    }
    if shell != Shell::Bash {
        return script;
    }
    let script = String::from_utf8_lossy(&script)
        .replace("-F _clap_complete_compeval", "-F _compeval_quoted");
    (script + BASH_QUOTES).into_bytes()
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
            "model" | "compressor_model" | "answer_model" | "judge_model" => {
                ArgValueCandidates::new(model_names)
            }
            _ => return arg,
        };
        arg.add(candidates)
    });
    command.mut_subcommands(with_candidates)
}

/// Candidates from the project that the command line selects; none if the project cannot be opened.
fn candidates_of_project<I: IntoIterator<Item = String>>(
    names: impl FnMut(Pipeline) -> I,
) -> Vec<CompletionCandidate> {
    open_project(true)
        .into_iter()
        .flat_map(names)
        .map(CompletionCandidate::new)
        .collect()
}

fn open_project(without_banks: bool) -> Option<Pipeline> {
    let words = WORDS.get()?;
    let folder =
        argument(words, "-C", "--directory").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let config = argument(words, "-c", "--config").map(|file| folder.join(file));
    let file = find_pipeline(&folder, config.as_deref()).ok()?;
    let request = OpenRequest {
        file,
        without_banks,
        allow_unproven: true,
        ..OpenRequest::default()
    };
    Some(open(&request, &variable).ok()?.pipeline)
}

/// The value of an option among words: the rest of its word, or the next word.
fn argument(words: &[OsString], short: &str, long: &str) -> Option<OsString> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == short || word == long {
            // bash passes `--config=F` as three words.
            return words.find(|word| *word != "=").cloned();
        }
        let Some(word) = word.to_str() else { continue };
        let after_short = word
            .strip_prefix(short)
            .map(|rest| rest.strip_prefix('=').unwrap_or(rest));
        if let Some(value) = word
            .strip_prefix(long)
            .and_then(|rest| rest.strip_prefix('='))
            .or(after_short)
        {
            return Some(value.into());
        }
    }
    None
}

fn label_names() -> Vec<CompletionCandidate> {
    candidates_of_project(|project| {
        let found = labels(&project.results).unwrap_or_default();
        found.into_iter().map(|label| label.to_string())
    })
}

fn fixture_names() -> Vec<CompletionCandidate> {
    candidates_of_project(|project| {
        project
            .fixtures
            .into_iter()
            .map(|loaded| loaded.fixture.name.clone())
    })
}

fn probe_names() -> Vec<CompletionCandidate> {
    let fixtures = open_project(false)
        .map(|project| project.fixtures)
        .unwrap_or_default();
    let probes = fixtures.iter().flat_map(|loaded| &loaded.bank.probes);
    let ids: BTreeSet<String> = probes.map(|probe| probe.id.to_string()).collect();
    ids.into_iter().map(CompletionCandidate::new).collect()
}

fn method_names() -> Vec<CompletionCandidate> {
    candidates_of_project(|project| {
        project
            .methods
            .into_iter()
            .map(|method| method.name.to_string())
    })
}

fn model_names() -> Vec<CompletionCandidate> {
    let declared =
        candidates_of_project(|project| project.prices.into_keys().map(|model| model.to_string()));
    let known = known_models()
        .chain(["lexical".to_owned()])
        .map(CompletionCandidate::new);
    declared.into_iter().chain(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_were_typed_are_no_part_of_a_word() {
        for typed in [r"my\ r", "'my r", "\"my r", "'my r'", "my' 'r"] {
            assert_eq!(unquoted(typed), "my r", "{typed}");
        }
        assert_eq!(
            [unquoted("a~1"), unquoted(r#""a\"b""#), unquoted("a\\")],
            ["a~1", "a\"b", "a"]
        );
        let words = ["compeval", "--", r"a\ b", "'c d"]
            .map(OsString::from)
            .to_vec();
        let read = |shell| {
            without_quotes(words.clone(), shell)
                .into_iter()
                .skip(2)
                .collect::<Vec<_>>()
        };
        assert_eq!(read(Some("zsh")), ["a b", "c d"]);
        assert_eq!(read(Some("fish")), [r"a\ b", "c d"]);
        assert_eq!(read(Some("powershell")), [r"a\ b", "'c d"]);
    }

    #[test]
    fn an_option_that_selects_the_project_is_read_in_every_form() {
        for typed in [
            "--config x.toml",
            "--config=x.toml",
            "--config = x.toml",
            "-c x.toml",
            "-cx.toml",
            "-c=x.toml",
        ] {
            let words: Vec<OsString> = format!("compeval run {typed} --label")
                .split(' ')
                .map(OsString::from)
                .collect();
            assert_eq!(
                argument(&words, "-c", "--config"),
                Some("x.toml".into()),
                "{typed}"
            );
            assert_eq!(argument(&words, "-C", "--directory"), None, "{typed}");
        }
        let twice = ["--configured", "x", "--config"].map(OsString::from);
        assert_eq!(argument(&twice, "-c", "--config"), None);
    }

    #[test]
    fn bash_gets_candidates_as_it_would_need_them_typed() {
        let script = String::from_utf8(registration(Shell::Bash)).unwrap();
        assert!(
            script.contains("-F _compeval_quoted compeval")
                && script.contains("_clap_complete_compeval() {")
        );
        assert!(!script.contains("-F _clap_complete_compeval"));
    }
}
