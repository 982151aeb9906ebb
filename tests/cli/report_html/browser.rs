//! The page in a browser: everything opens, the console is empty, no injected script runs.
//!
//! Without Chromium these tests are skipped with a message; on a CI server (`CI=true`) they fail.

use std::path::PathBuf;
use std::process::Command;

use base::files::write_whole;
use base::locale::Locale;
use compeval::report::html::PageInput;

use super::page::LARGE;
use super::sample::{Sample, SampleOptions, render};

const WALK: &str = include_str!("walk.js");
/// Markup that would run as an element, as an event handler and as a link.
pub(crate) const INJECTION: &str = "</script><script>window.planted=1</script><img src=x onerror=\"window.planted=2\"><a href=javascript:1>&amp;\u{2028}'\"";

#[allow(clippy::print_stderr, reason = "a test that did not run must say so")]
fn chromium() -> Option<PathBuf> {
    let folders =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = folders
        .unwrap_or_default()
        .into_iter()
        .flat_map(|folder| names.map(|name| folder.join(name)));
    let found = all.into_iter().find(|path| path.is_file());
    let on_server = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(found.is_some() || !on_server, "CI needs a chromium");
    if found.is_none() {
        eprintln!("no chromium here: the page is not tested in a browser");
    }
    found
}

/// The page with the script of the walk appended under the page's nonce.
fn with_walk(page: &str) -> String {
    let nonce = page
        .split("'nonce-")
        .nth(1)
        .and_then(|rest| rest.split('\'').next())
        .expect("a nonce");
    page.replacen(
        "</body>",
        &format!("<script nonce=\"{nonce}\">{WALK}</script></body>"),
        1,
    )
}

/// Opens a page and returns the result of the walk and the messages of the console.
fn visit(
    name: &str,
    page: &str,
    hash: &str,
    arguments: &[&str],
) -> Option<(serde_json::Value, Vec<String>)> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.html"));
    write_whole(&file, with_walk(page).as_bytes()).expect("the page is written");
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new(chromium()?)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        // The walk opens more cells in a second than a person could.
        .arg("--disable-ipc-flooding-protection")
        .args([
            "--enable-logging=stderr",
            "--window-size=1280,900",
            "--dump-dom",
        ])
        .args(arguments)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}#{hash}", file.display()))
        .output()
        .expect("chromium starts");
    let (dom, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let said = dom
        .split("<pre id=\"walk\">")
        .nth(1)
        .and_then(|rest| rest.split("</pre>").next())
        .unwrap_or_default();
    let said = said
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let console = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    let json = serde_json::from_str(&said)
        .unwrap_or_else(|_| panic!("the walk did not end: {said:?}\n{log}"));
    Some((json, console))
}

fn walk(name: &str, options: &SampleOptions) {
    walk_page(name, &render(&Sample::new(options).input()));
}

fn walk_page(name: &str, page: &str) {
    let Some((found, console)) = visit(name, page, "walk", &["--virtual-time-budget=60000"]) else {
        return;
    };
    assert_eq!(found["problems"], serde_json::json!([]), "{found:#}");
    assert_eq!(console, Vec::<String>::new());
    assert!(
        found["opened"].as_u64().is_some_and(|opened| opened > 15),
        "{found}"
    );
}

#[test]
fn every_mark_opens_its_cells_and_every_cell_opens() {
    walk("walk-en", &SampleOptions::default());
}

#[test]
fn the_page_works_in_chinese_and_with_searches() {
    let options = SampleOptions {
        searched: true,
        fixtures: 2,
        points: 2,
        ..SampleOptions::default()
    };
    let sample = Sample::new(&SampleOptions {
        locale: Locale::Zh,
        ..options
    });
    let mut input = sample.input();
    // Nothing to compare with.
    input
        .sections
        .retain(|section| section.id != "changes-in-detail");
    walk_page("walk-zh", &render(&input));
}

#[test]
fn the_cells_of_a_comparison_stand_beside_each_other() {
    let sample = Sample::new(&SampleOptions {
        fixtures: 3,
        points: 2,
        ..SampleOptions::default()
    });
    let pairs = [
        ("anchored", "truncate-2k"),
        ("anchored+index", "regenerative"),
    ];
    let pairs = pairs
        .map(|(judged, baseline)| (judged.to_owned(), baseline.to_owned()))
        .into();
    walk_page(
        "walk-pairs",
        &render(&PageInput {
            pairs,
            ..sample.input()
        }),
    );
}

#[test]
fn nothing_planted_in_any_text_runs() {
    let options = SampleOptions {
        injection: INJECTION,
        fixtures: 2,
        points: 2,
        ..SampleOptions::default()
    };
    walk(
        "walk-planted",
        &SampleOptions {
            searched: true,
            ..options
        },
    );
}

#[test]
fn twenty_thousand_cells_are_not_all_elements() {
    let Some((found, console)) = visit("large", &LARGE, "count", &[]) else {
        return;
    };
    assert_eq!(console, Vec::<String>::new());
    let elements = found["elements"].as_u64().expect("a count");
    // The list holds what is visible; what grows with the cells would be at least one element for each.
    assert!(elements < 10_000, "{elements} elements");
}
