//! Checks what the documents say: commands parse, TOML opens, links and paths exist, all modules are listed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/CONTRIBUTING.md",
    "docs/SECURITY.md",
    "docs/pipeline.md",
    "docs/method.md",
    "docs/data.md",
    "docs/results.md",
    "docs/running.md",
    "docs/tutorial.md",
    "docs/which-model.md",
    "docs/zh/README.md",
    "docs/zh/tutorial.md",
    "docs/limits.md",
    "docs/batch.md",
    "docs/shared-cache.md",
    "docs/grading.md",
    "docs/guard.md",
    "docs/interface.md",
    "docs/python.md",
    "docs/planted.md",
    "docs/notes/figures.md",
    "docs/notes/gate.md",
    "docs/notes/judges.md",
];
/// Pages whose inline paths are those of the repository. Other pages in `docs` name files of sample sessions.
const CONTRIBUTOR_PAGES: &[&str] = &[
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/CONTRIBUTING.md",
    "docs/SECURITY.md",
];
/// Other pages whose links are checked.
const LINKED_PAGES: &[&str] = &[
    "examples/adapters/README.md",
    "examples/compressors/README.md",
    "examples/research/README.md",
];
/// How commands start: with the installed program, and inside the repository.
const PROGRAMS: [&str; 2] = ["compeval ", "cargo run -- "];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn compeval(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compeval"))
        .args(args)
        .output()
        .expect("the program starts")
}

/// The fenced code blocks in a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let (text, fence) = (text(document), format!("```{language}\n"));
    let inner = |rest: &str| rest.split("\n```").next().unwrap_or_default().to_owned();
    text.split(&fence).skip(1).map(inner).collect()
}

/// The arguments of every command line, without comments.
fn commands(document: &str) -> Vec<Vec<String>> {
    let blocks = blocks(document, "sh");
    let lines = blocks.iter().flat_map(|block| block.lines());
    let arguments = |line: &str| {
        let line = line
            .split(" #")
            .next()
            .and_then(|line| line.split(" > ").next())
            .unwrap_or_default();
        let rest = PROGRAMS
            .iter()
            .find_map(|program| line.strip_prefix(program))?;
        Some(
            rest.split_whitespace()
                .map(|word| word.trim_matches('"').to_owned())
                .collect(),
        )
    };
    lines.filter_map(arguments).collect()
}

#[test]
fn every_command_parses() {
    let all: Vec<Vec<String>> = DOCUMENTS
        .iter()
        .flat_map(|document| commands(document))
        .collect();
    assert!(all.len() > 15, "only {} commands were found", all.len());
    for command in all {
        // `--help` at the end: the arguments are parsed, and nothing is run.
        let words: Vec<&str> = command
            .iter()
            .map(String::as_str)
            .chain(["--help"])
            .collect();
        let output = compeval(&words);
        assert!(
            output.status.success(),
            "compeval {}\n{}",
            command.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The long flags in a text, each up to its value.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let starts = text
        .match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-'));
    let flags = starts.map(|(at, dashes)| {
        let name = &text[at + dashes.len()..];
        &text[at..at
            + dashes.len()
            + name
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(name.len())]
    });
    flags.filter(|flag| flag.len() > 2)
}

#[test]
fn every_flag_in_the_text_is_one_of_the_programs() {
    let pages: &[&[&str]] = &[
        &["init"],
        &["run"],
        &["plan"],
        &["labels", "ls"],
        &["compare"],
        &["report"],
        &["show"],
        &["why"],
        &["observe"],
        &["fixture", "import"],
        &["judge", "agreement"],
        &["judge", "grade"],
        &["judge", "selftest"],
        &["probes", "generate"],
        &["check"],
        &["batch", "cancel"],
        &["cache", "show"],
        &["cache", "ls"],
        &["cache", "prune"],
        &["guard"],
    ];
    let help = |page: &&[&str]| {
        String::from_utf8(compeval(&[page, &["--help"][..]].concat()).stdout).expect("help")
    };
    let help: String = pages.iter().map(help).collect();
    let known: BTreeSet<&str> = flags(&help).collect();
    for document in DOCUMENTS {
        let text = text(document);
        // Code blocks are commands and checked above; here every second part between back-ticks is inline code.
        let prose: String = text.split("```").step_by(2).collect();
        let spans = prose.split('`').skip(1).step_by(2).filter(|span| {
            !["cargo", "sbatch"]
                .iter()
                .any(|other| span.starts_with(other))
        });
        for flag in spans
            .flat_map(str::split_whitespace)
            .filter(|word| word.starts_with("--"))
        {
            let flag = flags(flag).next().unwrap_or_default();
            assert!(
                known.contains(flag),
                "{document} names {flag}, which no command takes"
            );
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target);
        } else {
            fs::copy(&source, &target).expect("a copy");
        }
    }
}

/// The shipped project, with `more` at the end of `pipeline.toml`, instead of its settings, or instead of all of it.
fn project(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["fixtures", "probes", "prompts", "examples/compressors"] {
        copy(&root().join(name), &folder.path().join(name));
    }
    let shipped = text("pipeline.toml");
    let pipeline = match shipped.split_once("[[compress]]") {
        _ if more.contains("[[judge]]") => more.to_owned(),
        Some((_, stages)) if more.starts_with("[pipeline]") => {
            format!("{more}\n[[compress]]{stages}")
        }
        _ => format!("{shipped}\n{more}\n"),
    };
    base::files::write_whole(&folder.path().join("pipeline.toml"), &pipeline).expect("a pipeline");
    folder
}

#[test]
fn every_toml_block_opens_in_the_shipped_pipeline() {
    for document in DOCUMENTS {
        for block in blocks(document, "toml") {
            let project = project(&block);
            let folder = project.path().to_str().expect("a path in UTF-8");
            let output = compeval(&[
                "-C",
                folder,
                "plan",
                "--fixtures",
                "feature-csv-export",
                "--methods",
                "none",
            ]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{document}:\n{block}\n{errors}");
        }
    }
}

/// The name of a heading in links.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}

/// The names of the headings of a page in links.
fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(anchor)
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    for document in DOCUMENTS.iter().chain(LINKED_PAGES) {
        let (text, page) = (text(document), root().join(document));
        let folder = page.parent().expect("a folder");
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, heading) = link
                .split_once('#')
                .map_or((link, None), |(file, heading)| (file, Some(heading)));
            let target = if file.is_empty() {
                page.clone()
            } else {
                folder.join(file)
            };
            let is_found = target.exists()
                && heading
                    .is_none_or(|heading| anchors(&target).iter().any(|known| known == heading));
            assert!(is_found, "{document} links to {link}");
        }
    }
}

/// Inline code that is a path from the root of the repository.
fn paths(document: &str) -> Vec<String> {
    let text = text(document);
    let spans = text
        .split("```")
        .step_by(2)
        .flat_map(|prose| prose.split('`').skip(1).step_by(2));
    let roots = [
        "src/",
        "tests/",
        "assets/",
        "examples/",
        "docs/",
        "crates/",
        "tools/",
    ];
    spans
        .filter(|span| roots.iter().any(|root| span.starts_with(root)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_path_in_the_text_exists() {
    let all: Vec<(&str, String)> = DOCUMENTS
        .iter()
        .filter(|document| CONTRIBUTOR_PAGES.contains(document))
        .flat_map(|document| {
            paths(document)
                .into_iter()
                .map(move |path| (*document, path))
        })
        .collect();
    assert!(all.len() > 15, "only {} paths were found", all.len());
    for (document, path) in all {
        assert!(
            root().join(&path).exists(),
            "{document} names {path}, which does not exist"
        );
    }
}

#[test]
fn the_architecture_page_is_short_and_lists_every_module() {
    let page = text("docs/ARCHITECTURE.md");
    assert!(
        page.lines().count() <= 180,
        "{} lines",
        page.lines().count()
    );
    for entry in fs::read_dir(root().join("src"))
        .expect("the source")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let row = format!("| `{name}` |");
        assert!(
            !entry.path().is_dir() || page.contains(&row),
            "ARCHITECTURE.md has no row for {name}"
        );
    }
}

#[test]
fn the_oldest_rust_is_the_same_everywhere() {
    let declared = env!("CARGO_PKG_RUST_VERSION");
    assert!(
        text("README.md").contains(&format!("You need Rust {declared} or newer")),
        "README.md does not say {declared}"
    );
}

/// The paths of the pictures of a document.
fn pictures(document: &str) -> Vec<String> {
    let text = text(document);
    let paths = text
        .split("![")
        .skip(1)
        .filter_map(|rest| rest.split("](").nth(1)?.split(')').next());
    paths
        .filter_map(|path| Some(path.rsplit('/').next()?.to_owned()))
        .collect()
}

/// The figures in the text of a document: every number of two digits or more, or with a point.
fn figures(document: &str) -> Vec<String> {
    let text: String = text(document).split("```").step_by(2).collect();
    let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    let numbers = numbers.map(|number| number.trim_matches(['.', ',']).to_owned());
    let mut numbers: Vec<String> = numbers.filter(|number| number.len() > 1).collect();
    numbers.sort();
    numbers
}

#[test]
fn both_languages_name_the_same_commands_and_figures() {
    for [english, chinese] in [
        ["README.md", "docs/zh/README.md"],
        ["docs/tutorial.md", "docs/zh/tutorial.md"],
    ] {
        assert_eq!(
            commands(english),
            commands(chinese),
            "the commands of {english} and {chinese}"
        );
        assert_eq!(
            pictures(english),
            pictures(chinese),
            "the pictures of {english} and {chinese}"
        );
        assert_eq!(
            blocks(english, "text"),
            blocks(chinese, "text"),
            "the outputs of {english} and {chinese}"
        );
    }
    assert_eq!(figures("README.md"), figures("docs/zh/README.md"));
}

#[test]
fn both_readmes_say_how_to_run_the_sample_and_all_tests() {
    for document in ["README.md", "docs/zh/README.md"] {
        let lines: Vec<String> = text(document).lines().take(40).map(str::to_owned).collect();
        let has = |command: &str| lines.iter().any(|line| line.starts_with(command));
        assert!(
            has("cargo run -- run --label first") && has("cargo test"),
            "{document}"
        );
    }
}
