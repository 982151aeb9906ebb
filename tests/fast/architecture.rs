//! The architecture as a test: which module may import which, that no files depend on each other in a cycle, where the
//! methods of a type are, and which files may use an outside crate or print.

#[path = "../support/module_graph.rs"]
mod module_graph;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use module_graph::{CrateModules, ModuleGraph};

/// The library crates, in `crates`. Cargo checks what they may import.
const LIBRARIES: &[&str] = &[
    "base", "guard", "lexical", "models", "sessions", "stats", "store",
];

/// The modules of the root package, lowest first, each with the modules it may import. All of these stand above it.
const MODULES: &[(&str, &[&str])] = &[
    ("action", &[]),
    ("entries", &["action"]),
    ("probe", &["action"]),
    ("compress", &["action"]),
    ("planted", &["action"]),
    ("answer", &["compress", "action"]),
    ("judge", &["probe", "action"]),
    ("measure", &["probe"]),
    ("stand_in", &["action", "probe", "judge"]),
    (
        "pipeline",
        &[
            "measure", "planted", "probe", "compress", "answer", "judge", "action",
        ],
    ),
    (
        "plan",
        &[
            "planted", "pipeline", "measure", "probe", "compress", "answer", "judge", "action",
            "entries",
        ],
    ),
    (
        "parts",
        &["plan", "pipeline", "compress", "judge", "action"],
    ),
    (
        "results",
        &[
            "planted", "parts", "plan", "pipeline", "compress", "answer", "probe", "judge",
            "measure", "entries", "action",
        ],
    ),
    (
        "report",
        &[
            "planted", "results", "plan", "pipeline", "judge", "measure", "probe", "action",
        ],
    ),
    (
        "scheduler",
        &[
            "plan", "pipeline", "stand_in", "answer", "judge", "compress", "entries", "action",
        ],
    ),
    (
        "evaluation",
        &[
            "planted",
            "scheduler",
            "report",
            "results",
            "parts",
            "plan",
            "pipeline",
            "measure",
            "answer",
            "judge",
            "probe",
            "compress",
            "entries",
            "action",
        ],
    ),
    (
        "cli",
        &[
            "planted",
            "evaluation",
            "report",
            "scheduler",
            "results",
            "parts",
            "plan",
            "pipeline",
            "stand_in",
            "measure",
            "answer",
            "judge",
            "probe",
            "compress",
            "entries",
            "action",
        ],
    ),
];

/// Outside crates and ways to print, with the only files (or, ending in `/`, folders) that may use them.
const HOMES: &[(&str, &[&str])] = &[
    ("sled::", &["crates/store/src/cache/index/tree.rs"]),
    (
        "zstd::",
        &[
            "crates/base/src/tokens.rs",
            "crates/store/src/cache/packs/mod.rs",
        ],
    ),
    ("zip::", &["crates/sessions/src/import/formats/inspect.rs"]),
    (
        "reqwest::",
        &["crates/base/src/http.rs", "crates/models/src/http.rs"],
    ),
    ("rustls::", &["crates/base/src/http.rs"]),
    ("blake3::", &["crates/store/src/digest.rs"]),
    ("opendal::", &["crates/store/src/remote/object_store.rs"]),
    (
        "opendal_http_transport_reqwest::",
        &["crates/store/src/remote/object_store.rs"],
    ),
    ("minijinja::", &["src/action/template.rs"]),
    ("regex_automata::", &["crates/base/src/tokens.rs"]),
    // Pipelines and rubrics are the files that users write.
    (
        "toml::",
        &[
            "src/judge/rubric.rs",
            "src/judge/selftest/draw.rs",
            "src/pipeline/file.rs",
            "src/planted/set.rs",
        ],
    ),
    ("miette::", &["src/pipeline/problem.rs"]),
    ("clap::", &["src/cli/"]),
    ("indicatif::", &["src/cli/"]),
    // It panics where the clock is wrong; `clock::now` does not.
    ("Timestamp::now", &[]),
    // `files::write_whole` writes files, so that a crash leaves no half file.
    (" fs::write(", &[]),
    ("println!", &[]),
    ("eprintln!", &[]),
    ("print!", &[]),
    ("dbg!", &[]),
    (
        "io::stdout",
        &["src/cli/terminal/console.rs", "src/cli/terminal/mod.rs"],
    ),
    // A supervisor is a process of its own, whose standard error compeval reads.
    (
        "io::stderr",
        &[
            "src/cli/terminal/console.rs",
            "src/cli/terminal/progress.rs",
            "src/scheduler/supervisor.rs",
        ],
    ),
    // What comes with a project goes through `guarded` or `files`. The others read what the user names on the command
    // line, or the system; the finder of fixtures only looks.
    (
        "fs::metadata(",
        &["crates/base/src/files.rs", "crates/store/src/remote/"],
    ),
    (
        "fs::read_dir(",
        &[
            "crates/base/src/files.rs",
            "crates/base/src/guarded.rs",
            "src/pipeline/fixtures.rs",
            "src/scheduler/supervisor.rs",
        ],
    ),
    ("fs::read(", &[]),
    ("fs::read_to_string(", &["src/scheduler/supervisor.rs"]),
    (
        "fs::remove_",
        &[
            "crates/base/src/files.rs",
            "crates/base/src/guarded.rs",
            "src/cli/commands/fixture/import.rs",
            "src/cli/commands/init.rs",
        ],
    ),
    ("fs::rename(", &["crates/base/src/guarded.rs"]),
    (
        "File::open(",
        &[
            "crates/base/src/files.rs",
            "crates/sessions/src/import/",
            "crates/store/src/remote/",
        ],
    ),
    ("File::create(", &[]),
    ("OpenOptions::new", &[]),
    (
        "WalkDir::new(",
        &[
            "crates/base/src/guarded.rs",
            "crates/sessions/src/import/folder.rs",
            "src/pipeline/sources.rs",
        ],
    ),
    // `files::create_private_folder` keeps transcripts from other users.
    (
        "create_dir_all(",
        &["crates/base/src/files.rs", "src/cli/commands/init.rs"],
    ),
];

/// The most lines of a file.
const LONGEST: usize = 840;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The crates, each with its folder as a prefix of paths.
fn crates() -> &'static [(String, CrateModules)] {
    static CRATES: OnceLock<Vec<(String, CrateModules)>> = OnceLock::new();
    CRATES.get_or_init(|| {
        let libraries = LIBRARIES.iter().map(|name| format!("crates/{name}/"));
        let prefixes = std::iter::once(String::new()).chain(libraries);
        prefixes
            .map(|prefix| (prefix.clone(), CrateModules::read(&root().join(prefix))))
            .collect()
    })
}

fn graph() -> &'static ModuleGraph {
    static GRAPH: OnceLock<ModuleGraph> = OnceLock::new();
    GRAPH.get_or_init(|| {
        let mut all = ModuleGraph::new();
        for (prefix, modules) in crates() {
            for (file, uses) in modules.graph() {
                all.insert(
                    format!("{prefix}{file}"),
                    uses.iter().map(|used| format!("{prefix}{used}")).collect(),
                );
            }
        }
        all
    })
}

/// The module of a file directly below `src`; nothing for `lib.rs`, which declares them all.
fn module_of(file: &str) -> Option<&str> {
    let path = file.strip_prefix("src/")?;
    let name = path
        .split_once('/')
        .map_or(path.trim_end_matches(".rs"), |(module, _)| module);
    (name != "lib").then_some(name)
}

/// Code without comments and unit tests. The module with the tests is the last one of a file; `#[cfg(test)]` alone is no
/// end, because it also stands above single items and above modules of tests in files of their own.
fn shipped_code(file: &str) -> String {
    let text = fs::read_to_string(root().join(file)).expect("a source file");
    let shipped = text.lines().take_while(|line| *line != "mod tests {");
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    shipped.filter(is_code).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_of_modules_is_in_order() {
    for (at, (module, imports)) in MODULES.iter().enumerate() {
        let above: Vec<&str> = MODULES.iter().take(at).map(|(name, _)| *name).collect();
        let unordered: Vec<_> = imports
            .iter()
            .filter(|import| !above.contains(import))
            .collect();
        assert!(
            unordered.is_empty(),
            "{module} imports {unordered:?}, which the table does not list above it"
        );
    }
}

#[test]
fn every_library_is_listed() {
    let folders = fs::read_dir(root().join("crates"))
        .expect("a folder")
        .flatten();
    let present: BTreeSet<String> = folders
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        present,
        LIBRARIES.iter().map(|name| (*name).to_owned()).collect()
    );
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let table: BTreeMap<&str, &[&str]> = MODULES.iter().copied().collect();
    let mut violations = Vec::new();
    for (file, uses) in graph() {
        let Some(module) = module_of(file) else {
            continue;
        };
        let allowed = match table.get(module) {
            Some(allowed) => *allowed,
            None => panic!("{file}: the module {module} is not in the table"),
        };
        let is_allowed = |used: &str| used == module || allowed.contains(&used);
        let forbidden = uses
            .iter()
            .filter(|used| module_of(used).is_some_and(|used| !is_allowed(used)));
        violations.extend(forbidden.map(|used| format!("{file} uses {used}")));
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn every_module_is_in_the_table_once() {
    let listed: Vec<&str> = MODULES.iter().map(|(module, _)| *module).collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    let present: BTreeSet<&str> = graph().keys().filter_map(|file| module_of(file)).collect();
    assert_eq!(distinct, present, "the table and the source differ");
    assert_eq!(distinct.len(), listed.len(), "a module is listed twice");
}

fn reaches(graph: &ModuleGraph, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(name) = open.pop() {
        for next in graph.get(name).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    false
}

/// The uses that are part of a cycle.
fn cycles(graph: &ModuleGraph) -> Vec<String> {
    let uses = graph
        .iter()
        .flat_map(|(file, uses)| uses.iter().map(move |used| (file, used)));
    uses.filter(|(file, used)| reaches(graph, used, file))
        .map(|(file, used)| format!("{file} uses {used}"))
        .collect()
}

#[test]
fn the_graph_sees_every_way_to_use_a_file() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod one; mod two; mod three; pub use one::{One, Trait, first as renamed}; fn here() {}"),
        ("a/one.rs", "pub struct One; pub trait Trait<T> {} pub fn first() {}"),
        ("a/two.rs", "use super::{one::One as Other}; impl Other { pub fn second(&self) {} }"),
        ("a/three.rs", "fn f() { super::super::b::inner::f(); println!(\"{}\", crate::a::renamed()) }"),
        (
            "b/mod.rs",
            "mod inner; #[cfg(test)] mod tests; use crate::a::{self, One, Trait}; use other::Foreign; struct Own;
             impl<F: Fn() -> Own> Trait<F> for Own {} impl Trait<Own> for &One {} impl Trait<u8> for One {}
             impl Foreign for One {}",
        ),
        (
            "b/inner.rs",
            "use super::a; pub(in super::super) fn f() { a::here() } #[cfg(test)] mod tests { use super::super::f; }",
        ),
    ];
    let root = tempfile::tempdir().expect("a folder");
    for (file, text) in files {
        let path = root.path().join("src").join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::File::create(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("a file");
    }
    let modules = CrateModules::read(root.path());
    let graph = modules.graph();
    let uses = |file: &str| {
        graph
            .get(&format!("src/{file}"))
            .expect(file)
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        uses("a/two.rs"),
        ["src/a/one.rs"],
        "a nested and renamed import"
    );
    assert_eq!(
        uses("a/three.rs"),
        ["src/a/one.rs", "src/b/inner.rs"],
        "paths in code and in a macro"
    );
    assert_eq!(uses("a/mod.rs"), [""; 0], "a re-export is no use");
    assert_eq!(
        uses("b/mod.rs"),
        ["src/a/mod.rs", "src/a/one.rs"],
        "a module and a type of it"
    );
    assert_eq!(
        uses("b/inner.rs"),
        ["src/a/mod.rs"],
        "a name that the parent imports; no visibility, no test"
    );
    let misplaced = [
        "src/a/two.rs: impl Other belongs into src/a/one.rs",
        "src/b/mod.rs: impl Trait < u8 > for One belongs into src/a/one.rs",
    ];
    assert_eq!(modules.misplaced_impls(), misplaced);
}

/// Otherwise nobody finds all that a type can do, and its private fields are open to other files.
#[test]
fn impls_are_in_the_file_of_their_type_or_trait() {
    let found: Vec<String> = crates()
        .iter()
        .flat_map(|(_, modules)| modules.misplaced_impls())
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_files_depend_on_each_other() {
    let found = cycles(graph());
    assert!(found.is_empty(), "cycles: {found:#?}");
}

#[test]
fn no_folders_depend_on_each_other() {
    let graph = graph();
    let parents = |file: &String| {
        Path::new(file)
            .ancestors()
            .skip(1)
            .map(Path::to_owned)
            .collect::<Vec<PathBuf>>()
    };
    let folders: BTreeSet<PathBuf> = graph
        .keys()
        .flat_map(parents)
        .filter(|folder| folder != Path::new(""))
        .collect();
    for folder in folders {
        // A file or folder directly in `folder`; its own `mod.rs` declares and uses the rest.
        let entry = |file: &str| {
            let inside = Path::new(file).strip_prefix(&folder).ok()?;
            let name = Path::new(inside.iter().next()?)
                .with_extension("")
                .to_string_lossy()
                .into_owned();
            (!["mod", "lib", "main"].contains(&name.as_str())).then_some(name)
        };
        let mut entries = ModuleGraph::new();
        for (file, uses) in graph {
            let Some(user) = entry(file) else { continue };
            let used: Vec<String> = uses
                .iter()
                .filter_map(|used| entry(used))
                .filter(|used| *used != user)
                .collect();
            entries.entry(user).or_default().extend(used);
        }
        let found = cycles(&entries);
        assert!(
            found.is_empty(),
            "cycles in {}: {found:#?}",
            folder.display()
        );
    }
}

#[test]
fn outside_crates_and_printing_are_used_only_in_their_files() {
    let mut violations = Vec::new();
    let mut unused: BTreeSet<(&str, &str)> = HOMES
        .iter()
        .flat_map(|(what, homes)| homes.iter().map(|home| (*what, *home)))
        .collect();
    for file in graph().keys() {
        let code = shipped_code(file);
        for (what, homes) in HOMES {
            let is_used = code.match_indices(what).any(|(at, _)| {
                let before = code.get(..at).and_then(|text| text.chars().next_back());
                !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            let home = homes
                .iter()
                .find(|home| file == *home || (home.ends_with('/') && file.starts_with(*home)));
            match home.filter(|_| is_used) {
                Some(home) => drop(unused.remove(&(*what, *home))),
                None if is_used => violations.push(format!("{file} uses {what}")),
                None => {}
            }
        }
    }
    assert!(unused.is_empty(), "allowed and not used: {unused:#?}");
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn no_file_is_too_long() {
    let mut folders: Vec<PathBuf> = ["src", "crates", "tests", "tools"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    let mut long = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let lines = fs::read_to_string(&path)
                    .expect("a source file")
                    .lines()
                    .count();
                long.extend(
                    (lines > LONGEST).then(|| format!("{}: {lines} lines", path.display())),
                );
            }
        }
    }
    assert!(long.is_empty(), "longer than {LONGEST} lines: {long:#?}");
}

/// Shipped sources below the root, by their paths from it.
fn sources() -> BTreeMap<String, String> {
    let libraries = LIBRARIES
        .iter()
        .map(|name| root().join("crates").join(name).join("src"));
    let mut folders: Vec<PathBuf> = libraries.chain([root().join("src")]).collect();
    let mut sources = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(root())
                    .expect("below the root")
                    .to_string_lossy()
                    .replace('\\', "/");
                sources.insert(name, fs::read_to_string(&path).expect("a source file"));
            }
        }
    }
    sources
}

/// The name of a constant that is a number or a text, or of a function.
fn version_name(item: &str) -> Option<&str> {
    let item = item
        .trim()
        .trim_start_matches("pub")
        .trim_start_matches("(super)")
        .trim_start();
    let name = match item
        .strip_prefix("const ")
        .map(|rest| rest.split_once(": "))
    {
        Some(Some((name, value))) => {
            let value = value.split_once(" = ")?.1.trim_end_matches(';');
            let is_raised =
                value.starts_with('"') || value.bytes().all(|byte| byte.is_ascii_digit());
            is_raised.then_some(name)
        }
        _ => item
            .strip_prefix("fn ")
            .and_then(|rest| rest.split('(').next()),
    };
    name.filter(|name| !name.is_empty())
}

#[test]
fn versions_that_are_raised_by_hand_are_few_and_listed() {
    const MOST: usize = 8;
    let page = fs::read_to_string(root().join("docs/CONTRIBUTING.md")).expect("the page");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `") && line.contains("` in `"));
    let listed: BTreeSet<(String, String)> = rows
        .map(|row| {
            let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
            (quoted[1].to_owned(), quoted[0].to_owned())
        })
        .collect();
    let mut found = BTreeSet::new();
    for (file, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let is_documented = line.trim().starts_with("/// The version of");
            let named = version_name(line).filter(|_| line.contains("const "));
            let is_named = named.is_some_and(|name| {
                ["VERSION", "FORMAT", "SCHEMA"]
                    .iter()
                    .any(|end| name.ends_with(end))
            });
            let item = lines[at..]
                .iter()
                .find(|line| !line.trim().starts_with(['/', '#']));
            let name = item
                .and_then(|item| version_name(item))
                .filter(|_| is_documented || is_named);
            found.extend(name.map(|name| (file.clone(), name.to_owned())));
        }
    }
    assert_eq!(found, listed, "found, and listed in CONTRIBUTING.md");
    assert!(found.len() <= MOST, "{found:#?}");
}

#[test]
fn every_module_says_what_it_is_for() {
    for file in graph().keys() {
        let text = fs::read_to_string(root().join(file)).expect("a source file");
        assert!(
            !file.ends_with("/mod.rs") || text.starts_with("//! "),
            "{file} has no doc comment"
        );
    }
}

#[test]
fn the_values_on_the_way_of_a_judgement_are_where_the_page_says() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the page");
    let section = page
        .split("## The way of one judgement")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next());
    let rows = section
        .expect("the section")
        .lines()
        .filter(|line| line.starts_with("| `"));
    let values: Vec<(&str, &str)> = rows
        .map(|row| {
            let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
            (
                *quoted.first().expect("a value"),
                *quoted.last().expect("a file"),
            )
        })
        .collect();
    assert!((10..=12).contains(&values.len()), "{values:?}");
    for (value, file) in values {
        let code = shipped_code(file);
        let declares = |kind: &&str| {
            let declaration = format!("pub {kind} {value}");
            code.split(&declaration)
                .skip(1)
                .any(|end| end.starts_with([' ', '<', '(']))
        };
        let is_declared = ["struct", "enum"].iter().any(declares);
        assert!(is_declared, "{value} is not declared in {file}");
    }
}

#[test]
fn the_product_opens_no_port() {
    let listening = [
        "TcpListener",
        "TcpSocket",
        "UdpSocket",
        "UnixListener",
        "axum",
    ];
    let found: Vec<String> = sources()
        .keys()
        .filter(|file| !file.contains("test"))
        .filter(|file| {
            listening
                .iter()
                .any(|name| shipped_code(file).contains(name))
        })
        .cloned()
        .collect();
    assert_eq!(found, Vec::<String>::new());
}
