//! Programs with their subcommands.

use std::ops::Range;

/// Programs whose first argument says what they do.
const PROGRAMS: &[&str] = &[
    "cargo",
    "git",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "docker",
    "podman",
    "docker-compose",
    "kubectl",
    "helm",
    "go",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "pipenv",
    "conda",
    "rustup",
    "make",
    "just",
    "cmake",
    "bazel",
    "gradle",
    "mvn",
    "terraform",
    "aws",
    "gcloud",
    "az",
    "gh",
    "glab",
    "brew",
    "apt",
    "apt-get",
    "systemctl",
    "rails",
    "bundle",
    "mix",
    "dotnet",
    "composer",
    "php",
    "flutter",
    "dart",
    "npx",
    "python",
    "python3",
    "alembic",
    "prisma",
    "redis-cli",
];

/// The kind of a text, which decides where a command can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Prose: a command occurs in code marks or after a prompt.
    Prose,
    /// The argument of a shell tool: a command begins at each line too.
    Shell,
}

/// The program and subcommand that begin with the word `program`.
pub(super) fn command_at(
    text: &str,
    program: &Range<usize>,
    kind: TextKind,
) -> Option<Range<usize>> {
    let name = text.get(program.clone())?;
    if !PROGRAMS.contains(&name) || !begins_command(text.get(..program.start)?, kind) {
        return None;
    }
    let first = next_word(text, program.end)?;
    let word = text.get(first.clone())?;
    match (name, word) {
        ("python" | "python3", "-m") | (_, "run" | "exec" | "compose") => {
            let second = next_word(text, first.end)
                .filter(|range| is_subcommand(text.get(range.clone()).unwrap_or("")));
            match second {
                Some(second) => Some(program.start..second.end),
                None => is_subcommand(word).then_some(program.start..first.end),
            }
        }
        _ => is_subcommand(word).then_some(program.start..first.end),
    }
}

fn begins_command(before: &str, kind: TextKind) -> bool {
    let near = before.trim_end_matches(' ');
    let is_joined = ["$", "&&", "||"].iter().any(|sign| near.ends_with(sign));
    match kind {
        TextKind::Prose => before.ends_with('`') || is_joined,
        TextKind::Shell => {
            near.is_empty() || is_joined || near.ends_with(['`', ';', '|', '(', '\n', '"', '\''])
        }
    }
}

/// The word after exactly one space.
fn next_word(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?.strip_prefix(' ')?;
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')))
        .unwrap_or(rest.len());
    (end > 0).then_some(at + 1..at + 1 + end)
}

fn is_subcommand(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && !word.ends_with([':', '.', '-'])
        && word.bytes().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b':')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, kind: TextKind) -> Option<&str> {
        let word = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        let end = text[word..].find(' ').map_or(text.len(), |end| word + end);
        command_at(text, &(word..end), kind).map(|range| &text[range])
    }

    #[test]
    fn a_command_has_a_subcommand_and_a_place_where_commands_begin() {
        assert_eq!(
            found("cargo test --lib", TextKind::Shell),
            Some("cargo test")
        );
        assert_eq!(found("cargo test --lib", TextKind::Prose), None);
        assert_eq!(
            found("`npm run build`", TextKind::Prose),
            Some("npm run build")
        );
        assert_eq!(
            found("$ python -m pytest -q", TextKind::Prose),
            Some("python -m pytest")
        );
        assert_eq!(found("`make sure.`", TextKind::Prose), None);
        assert_eq!(found("`ls foo`", TextKind::Prose), None);
        assert_eq!(found("go ./...", TextKind::Shell), None);
    }
}
