//! The floor plan as a test: which room may import which, where outside crates and printing live, and that nothing
//! runs in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that every room may use: words and tools without a floor of their own.
const GROUND: &[&str] = &["units", "locale", "files", "fault", "transcript", "threads"];

/// Rooms from the ground up, each with the rooms it may import; every one of those stands above it in this list.
///
/// Wider than the first floor plan: `probe` makes work, for it also generates banks; `plan` knows the stages, for it alone makes work of tasks; `results` and `report`
/// word what `measure`, `probe` and `judge` found; `pipeline` builds answerers and their providers.
const ROOMS: &[(&str, &[&str])] = &[
    ("transcript", &[]),
    ("stats", &[]),
    ("provider", &[]),
    ("import", &[]),
    ("action", &["provider"]),
    ("cache", &["action", "provider"]),
    ("probe", &["action", "provider"]),
    ("compress", &["action", "provider"]),
    ("answer", &["compress", "action", "provider"]),
    ("judge", &["probe", "action", "provider"]),
    ("measure", &["probe"]),
    ("lexical", &["action", "compress", "probe", "judge"]),
    ("pipeline", &["probe", "compress", "answer", "judge", "provider", "action"]),
    ("plan", &["pipeline", "probe", "compress", "answer", "judge", "action", "cache", "provider"]),
    ("results", &["pipeline", "compress", "probe", "judge", "measure", "stats", "action", "provider"]),
    ("report", &["results", "judge", "measure", "probe", "stats", "action"]),
    (
        "scheduler",
        &[
            "plan", "pipeline", "lexical", "results", "measure", "answer", "judge", "probe", "compress", "provider",
            "cache", "action",
        ],
    ),
    (
        "cli",
        &[
            "report",
            "scheduler",
            "results",
            "plan",
            "pipeline",
            "lexical",
            "measure",
            "answer",
            "judge",
            "probe",
            "compress",
            "import",
            "provider",
            "cache",
            "action",
            "stats",
        ],
    ),
];

/// Outside crates that live in one place: a file, or a folder with a slash at its end.
const HOMES: &[(&str, &[&str])] = &[
    ("sled::", &["src/cache/index.rs"]),
    ("zstd::", &["src/cache/pack.rs"]),
    (" zip::", &["src/import/archive.rs"]),
    ("governor::", &["src/provider/rates.rs"]),
    ("reqwest::", &["src/provider/http.rs"]),
    ("rustls::", &["src/provider/http.rs"]),
    ("blake3::", &["src/action/digest.rs"]),
    ("minijinja::", &["src/action/template.rs"]),
    ("bpe_openai::", &["src/transcript/tokens.rs", "src/provider/estimate.rs"]),
    // The one data format of users, once for pipelines and once for rubrics.
    ("toml::", &["src/pipeline/file.rs", "src/judge/rubric_file.rs"]),
    ("miette::", &["src/pipeline/problem.rs", "src/pipeline/excerpt.rs", "src/cli/failure.rs"]),
    ("clap::", &["src/cli/"]),
    ("indicatif::", &["src/cli/"]),
    // A crash leaves no half file: `files::write_whole` does it.
    (" fs::write(", &[]),
    ("println!", &[]),
    ("eprintln!", &[]),
    ("print!", &[]),
    ("dbg!", &[]),
    ("io::stdout", &["src/cli/terminal/console.rs", "src/cli/terminal/progress.rs", "src/cli/terminal/pager.rs"]),
    ("io::stderr", &["src/cli/terminal/console.rs", "src/cli/terminal/progress.rs"]),
];

/// Where a file of a room uses one that leads back to it: each holds a part of one thought. None is to be added.
const CIRCLES: &[(&str, &str, &str)] = &[
    ("action", "template", "work"),
    ("cache", "layout", "pack"),
    ("import", "source", "conversation"),
    ("plan", "frontier", "prepare"),
];

/// The most lines of a file.
const LONGEST: usize = 400;

struct SourceFile {
    /// Relative to the repository.
    path: String,
    text: String,
}

impl SourceFile {
    /// The room it is in, unless it is a file on the ground.
    fn room(&self) -> Option<&str> {
        self.path.strip_prefix("src/")?.split_once('/').map(|(room, _)| room)
    }

    /// Code without comments and unit tests.
    fn code(&self) -> String {
        let shipped = self.text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        shipped.lines().filter(is_code).collect::<Vec<_>>().join("\n")
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs") || self.path.ends_with("/fakes.rs")
    }
}

fn sources(folder: &str) -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut folders, mut files): (Vec<PathBuf>, Vec<SourceFile>) = (vec![root.join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                let path = path.strip_prefix(root).expect("a path below the root").to_string_lossy().replace('\\', "/");
                files.push(SourceFile { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The names that follow `prefix` in `code`, as in `crate::NAME`.
fn names_after<'c>(code: &'c str, prefix: &'c str) -> impl Iterator<Item = &'c str> {
    code.split(prefix).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    })
}

fn rooms() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    ROOMS.iter().map(|(room, imports)| (*room, imports.iter().copied().collect())).collect()
}

#[test]
fn the_table_itself_has_one_direction() {
    let order: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for (at, (room, imports)) in ROOMS.iter().enumerate() {
        for import in *imports {
            let below = order.iter().position(|name| name == import);
            assert!(below.is_some_and(|below| below < at), "{room} imports {import}, which does not stand below it");
        }
    }
}

#[test]
fn no_room_imports_what_stands_above_it() {
    let rooms = rooms();
    let mut climbs = Vec::new();
    for file in sources("src").iter().filter(|file| !file.is_test()) {
        let Some(room) = file.room() else {
            let is_top = ["src/main.rs", "src/lib.rs"].contains(&file.path.as_str());
            let code = file.code();
            let above = names_after(&code, "crate::").filter(|name| !GROUND.contains(name));
            climbs.extend(above.filter(|_| !is_top).map(|name| format!("{} imports {name}", file.path)));
            continue;
        };
        let Some(allowed) = rooms.get(room) else { panic!("the room {room} is not in the table") };
        let code = file.code();
        for name in names_after(&code, "crate::") {
            if name != room && !GROUND.contains(&name) && !allowed.contains(name) {
                climbs.push(format!("{} imports {name}", file.path));
            }
        }
    }
    assert!(climbs.is_empty(), "{climbs:#?}");
}

#[test]
fn outside_crates_and_printing_stay_at_home() {
    let mut strays = Vec::new();
    for file in sources("src").iter().filter(|file| !file.is_test()) {
        let code = file.code();
        for (what, homes) in HOMES {
            let is_home =
                homes.iter().any(|home| file.path == *home || (home.ends_with('/') && file.path.starts_with(home)));
            let is_used = code.match_indices(what).any(|(at, _)| {
                let before = code.get(..at).and_then(|text| text.chars().next_back());
                !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
            });
            if is_used && !is_home {
                strays.push(format!("{what} in {}", file.path));
            }
        }
    }
    assert!(strays.is_empty(), "{strays:#?}");
}

/// For each file of a room, the files of that room it uses.
fn uses_within(room: &str, files: &[SourceFile]) -> BTreeMap<String, BTreeSet<String>> {
    let prefix = format!("src/{room}/");
    let own: Vec<(&str, &SourceFile)> = files
        .iter()
        .filter(|file| !file.is_test())
        .filter_map(|file| Some((file.path.strip_prefix(&prefix)?.strip_suffix(".rs")?, file)))
        .filter(|(name, _)| !name.contains('/') && *name != "mod")
        .collect();
    let names: BTreeSet<&str> = own.iter().map(|(name, _)| *name).collect();
    let uses = |file: &SourceFile| {
        let code = file.code();
        names_after(&code, "super::").filter(|name| names.contains(name)).map(str::to_owned).collect()
    };
    own.iter().map(|(name, file)| ((*name).to_owned(), uses(file))).collect()
}

fn reaches(graph: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
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

#[test]
fn no_file_uses_what_leads_back_to_it_but_for_the_circles_on_record() {
    let files = sources("src");
    let mut found = Vec::new();
    for (room, _) in ROOMS {
        let mut graph = uses_within(room, &files);
        for (_, user, used) in CIRCLES.iter().filter(|(of, _, _)| of == room) {
            let leads_back = reaches(&graph, used, user);
            let uses = graph.get_mut(*user).is_some_and(|uses| uses.remove(*used));
            assert!(
                uses && leads_back,
                "{room}: {user} and {used} are in no circle any more: take them off the record"
            );
        }
        let circles = graph.keys().filter(|name| reaches(&graph, name, name));
        found.extend(circles.map(|name| format!("src/{room}/{name}.rs")));
    }
    assert!(found.is_empty(), "in circles: {found:#?}");
}

#[test]
fn no_file_is_too_long_to_read() {
    let folders = ["src", "tests", "benches", "examples"];
    let files = folders.iter().flat_map(|folder| sources(folder));
    let long: Vec<String> = files
        .filter(|file| file.text.lines().count() > LONGEST)
        .map(|file| format!("{}: {} lines", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_room_of_the_table_that_stands_says_what_it_is_for() {
    for file in sources("src").iter().filter(|file| file.path.ends_with("/mod.rs") && !file.is_test()) {
        assert!(file.text.starts_with("//! "), "{} has no doc comment", file.path);
    }
}
