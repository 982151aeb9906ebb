//! The shape of one word: whether it is a path, a file name, a version, a hash or an identifier.
//!
//! Programs with their subcommands.

use std::ops::Range;

use super::ReferenceKind;
use super::noise::is_generated;
use base::words::WordList;

/// Extensions that make a word a file name. The list is closed: `obj.method` and `example.com` are not files.
const EXTENSIONS: WordList = WordList(
    "rs py pyi ts tsx js jsx mjs cjs mts cts json jsonl json5 toml yaml yml md mdx rst txt go java kt kts c h cc cpp \
    cxx hpp cs csproj sln rb erb php sh bash zsh fish ps1 bat sql htm html css scss sass less lock cfg conf ini env \
    properties xml csv tsv parquet log proto graphql vue svelte astro swift scala lua pl r jl ex exs erl hs ml dart \
    zig ipynb tf tfvars gradle mod sum snap patch diff pdf png jpg jpeg svg gif webp ico zip tar gz tgz whl db \
    sqlite sqlite3 pem crt service tmpl j2 hbs docx xlsx pptx wasm so dll exe map test example",
);

/// File names without an extension.
const PLAIN_FILES: WordList = WordList(
    "Dockerfile Makefile GNUmakefile Justfile justfile Gemfile Procfile Rakefile Jenkinsfile Vagrantfile LICENSE CHANGELOG CODEOWNERS",
);

/// The kind of a whole word, without spaces and the punctuation of the sentence around it.
pub(super) fn kind_of_word(word: &str) -> Option<ReferenceKind> {
    if is_flag(word) {
        return Some(ReferenceKind::Flag);
    }
    if word.contains('/') {
        return is_path(word).then_some(ReferenceKind::Path);
    }
    if is_version(word) {
        return Some(ReferenceKind::Version);
    }
    if is_file_name(word) {
        return Some(ReferenceKind::FileName);
    }
    is_hash(word).then_some(ReferenceKind::Hash)
}

/// The kind of a part of a word: a run of letters, digits and underscores.
pub(super) fn kind_of_part(part: &str) -> Option<ReferenceKind> {
    if is_hash(part) {
        return Some(ReferenceKind::Hash);
    }
    is_identifier(part).then_some(ReferenceKind::Identifier)
}

/// `--with-words`.
fn is_flag(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return false;
    };
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_path(word: &str) -> bool {
    let anchored = ["/", "~/", "./", "../"]
        .iter()
        .any(|start| word.starts_with(start));
    let inner = word.strip_prefix('/').unwrap_or(word);
    let sound = !inner.is_empty()
        && inner.split('/').all(is_segment)
        && word.bytes().any(|b| b.is_ascii_alphabetic());
    let name = word.rsplit('/').next().unwrap_or(word);
    let deep = word.matches('/').count() >= 2;
    sound && !word.contains("/tmp/tmp") && (is_file_name(name) || anchored && deep)
}

fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.contains("...")
        && segment.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@' | b'+' | b'~')
        })
}

/// Whether a word without slashes names a file.
pub(super) fn is_file_name(word: &str) -> bool {
    if let Some(name) = word.strip_prefix('.') {
        let main = name.split('.').next().unwrap_or(name);
        return main == "env"
            || main.len() > 4 && (main.ends_with("ignore") || main.ends_with("rc"));
    }
    let Some((stem, extension)) = word.rsplit_once('.') else {
        return PLAIN_FILES.has(word);
    };
    let known = EXTENSIONS.has(&extension.to_ascii_lowercase());
    let named = stem.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    known && named && is_segment(stem) && !is_object(stem, extension)
}

/// `self.db` and `request.conf` are attributes.
fn is_object(stem: &str, extension: &str) -> bool {
    const ATTRIBUTES: WordList = WordList("db env log lock map mod sum h c r conf test service");
    const OBJECTS: WordList = WordList(
        "self this cls ctx req res request response app obj event e os sys process window document console math Math \
        config settings args props state",
    );
    OBJECTS.has(stem) && ATTRIBUTES.has(extension)
}

/// Three numbers, or two after a `v`; four without a `v` are an address.
fn is_version(word: &str) -> bool {
    let (marked, rest) = word
        .strip_prefix('v')
        .map_or((false, word), |rest| (true, rest));
    let end = rest
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(rest.len());
    let (numbers, suffix) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let parts: Vec<&str> = numbers.split('.').collect();
    let sound = parts.iter().all(|part| !part.is_empty() && part.len() < 6);
    let few = if marked { 2..=4 } else { 3..=3 };
    sound && few.contains(&parts.len()) && is_release_suffix(suffix)
}

fn is_release_suffix(suffix: &str) -> bool {
    const MARKS: &[&str] = &[
        "alpha", "beta", "rc", "dev", "post", "pre", "canary", "nightly", "snapshot", "a", "b",
    ];
    let inner = suffix.trim_start_matches(['-', '+', '.']);
    let word: String = inner
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    suffix.is_empty() || MARKS.contains(&word.to_ascii_lowercase().as_str())
}

fn is_hash(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    (7..=64).contains(&word.len())
        && word
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && digits > 0
        && digits < word.len()
}

fn is_identifier(part: &str) -> bool {
    let name = part.trim_matches('_');
    let letters = name.bytes().filter(u8::is_ascii_alphabetic).count();
    name.len() >= 5
        && letters > 2
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !is_generated(name)
        && (name.contains('_') || is_camel(name))
}

/// Two humps or more: `loadConfig`, `LoadConfig`, `HTTPServer`.
fn is_camel(name: &str) -> bool {
    let bytes = name.as_bytes();
    let humps = bytes.windows(2).filter(
        |pair| matches!(pair, [a, b] if (a.is_ascii_lowercase() || a.is_ascii_digit()) && b.is_ascii_uppercase()),
    );
    let has_lower = bytes.iter().any(u8::is_ascii_lowercase);
    let acronym = bytes.windows(3).any(|three| {
        matches!(three, [a, b, c] if a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_lowercase())
    });
    // `APIs` and `URLs` are words.
    let plural = name
        .strip_suffix('s')
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_uppercase()));
    has_lower && !plural && (humps.count() > 0 || acronym)
}

/// `with-hyphens`, which counts only in code marks.
pub(super) fn is_kebab(word: &str) -> bool {
    word.len() >= 5
        && word.contains('-')
        && word.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && !is_generated(word)
}

/// `8-4-4-4-12` hexadecimal digits.
pub(super) fn is_uuid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Programs whose first argument says what they do.
const PROGRAMS: WordList = WordList(
    "cargo git npm pnpm yarn bun deno docker podman docker-compose kubectl helm go pip pip3 uv poetry pipenv conda \
    rustup make just cmake bazel gradle mvn terraform aws gcloud az gh glab brew apt apt-get systemctl rails bundle \
    mix dotnet composer php flutter dart npx python python3 alembic prisma redis-cli",
);

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
    if !begins_command(text.get(..program.start)?, kind) || !PROGRAMS.has(name) {
        return None;
    }
    let first = next_word(text, program.end)?;
    let word = text.get(first.clone())?;
    let second = match (name, word) {
        ("python" | "python3", "-m") | (_, "run" | "exec" | "compose") => {
            next_word(text, first.end)
        }
        _ => None,
    };
    let mut words = [second, Some(first)].into_iter().flatten();
    let last = words.find(|word| text.get(word.clone()).is_some_and(is_subcommand))?;
    Some(program.start..last.end)
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

    #[test]
    fn the_kind_of_a_word_shows_in_its_shape() {
        use ReferenceKind::{FileName, Flag, Hash, Path, Version};
        let cases = [
            ("src/store/mod.rs", Some(Path)),
            ("/var/lib/app", Some(Path)),
            ("~/notes/plan", Some(Path)),
            ("../a.py", Some(Path)),
            ("and/or", None),
            ("a/b/c", None),
            ("/v1", None),
            ("//comment/x.rs", None),
            ("main.rs", Some(FileName)),
            (".gitignore", Some(FileName)),
            (".env", Some(FileName)),
            ("Dockerfile", Some(FileName)),
            ("obj.method", None),
            ("self.db", None),
            ("example.com", None),
            ("1.2.3", Some(Version)),
            ("v0.4", Some(Version)),
            ("1.4.0-beta.2", Some(Version)),
            ("1.2", None),
            ("10.0.0.1", None),
            ("1.2.3-foo", None),
            ("--dry-run", Some(Flag)),
            ("--", None),
            ("3f2a9bc", Some(Hash)),
            ("deadbeef", None),
            ("1234567", None),
        ];
        for (word, kind) in cases {
            assert_eq!(kind_of_word(word), kind, "{word}");
        }
    }

    #[test]
    fn identifiers_have_two_parts() {
        for name in [
            "load_config",
            "MAX_RETRIES",
            "loadConfig",
            "LoadConfig",
            "HTTPServer",
            "_private_name",
        ] {
            assert_eq!(
                kind_of_part(name),
                Some(ReferenceKind::Identifier),
                "{name}"
            );
        }
        for name in [
            "config",
            "Config",
            "APIs",
            "__init__",
            "a_b",
            "toolu_01Abc",
            "CONFIG",
            "x9q2m4k7w1z",
        ] {
            assert_eq!(kind_of_part(name), None, "{name}");
        }
        assert!(is_kebab("job-queue") && !is_kebab("Job-queue") && !is_kebab("plain"));
        assert!(is_uuid("123e4567-e89b-12d3-a456-426614174000") && !is_uuid("job-queue"));
    }
}

#[cfg(test)]
mod commands_tests {
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
