//! The page in a browser: everything opens, the console is empty, no injected script runs.
//!
//! Without Chromium these tests are skipped with a message; on a CI server (`CI=true`) they fail.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use base::files::write_whole;
use base::locale::Locale;
use compeval::report::html::PageInput;

use super::page::LARGE;
use super::sample::{Sample, SampleOptions, render};

const WALK: &str = include_str!("../browser/walk.js");
/// Markup that would run as an element, as an event handler and as a link.
pub(crate) const INJECTION: &str = "</script><script>window.planted=1</script><img src=x onerror=\"window.planted=2\"><a href=javascript:1>&amp;\u{2028}'\"";

/// Browsers run one at a time, because one test measures a time.
static BROWSER: Mutex<()> = Mutex::new(());

#[allow(clippy::print_stderr, reason = "a test that did not run must say so")]
fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = folders.unwrap_or_default().into_iter().flat_map(|folder| names.map(|name| folder.join(name)));
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
    let nonce = page.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
    page.replacen("</body>", &format!("<script nonce=\"{nonce}\">{WALK}</script></body>"), 1)
}

/// Opens a page and returns the result of the walk and the messages of the console.
fn visit(name: &str, page: &str, hash: &str, arguments: &[&str]) -> Option<(serde_json::Value, Vec<String>)> {
    let _browser = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.html"));
    write_whole(&file, with_walk(page).as_bytes()).expect("the page is written");
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new(chromium()?)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        // The walk opens more cells in a second than a person could.
        .arg("--disable-ipc-flooding-protection")
        .args(["--enable-logging=stderr", "--window-size=1280,900", "--dump-dom"])
        .args(arguments)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}#{hash}", file.display()))
        .output()
        .expect("chromium starts");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said = dom.split("<pre id=\"walk\">").nth(1).and_then(|rest| rest.split("</pre>").next()).unwrap_or_default();
    let said = said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let json = serde_json::from_str(&said).unwrap_or_else(|_| panic!("the walk did not end: {said:?}\n{log}"));
    Some((json, console))
}

fn walk(name: &str, options: &SampleOptions) {
    walk_page(name, &render(&Sample::new(options).input()));
}

fn walk_page(name: &str, page: &str) {
    let Some((found, console)) = visit(name, page, "walk", &["--virtual-time-budget=60000"]) else { return };
    assert_eq!(found["problems"], serde_json::json!([]), "{found:#}");
    assert_eq!(console, Vec::<String>::new());
    assert!(found["opened"].as_u64().is_some_and(|opened| opened > 20), "{found}");
}

#[test]
fn every_mark_opens_its_cells_and_every_cell_opens() {
    walk("walk-en", &SampleOptions::default());
}

#[test]
fn the_page_works_in_chinese() {
    walk("walk-zh", &SampleOptions { locale: Locale::Zh, fixtures: 2, points: 2, ..SampleOptions::default() });
}

#[test]
fn searches_are_shown_with_what_they_found() {
    let searched =
        SampleOptions { searched: true, fixtures: 2, points: 2, injection: INJECTION, ..SampleOptions::default() };
    walk("walk-searched", &searched);
    walk("walk-searched-zh", &SampleOptions { locale: Locale::Zh, injection: "", ..searched });
}

#[test]
fn the_cells_of_a_comparison_stand_beside_each_other() {
    let sample = Sample::new(&SampleOptions { fixtures: 3, points: 2, ..SampleOptions::default() });
    let pairs = [("anchored", "truncate-2k"), ("anchored+index", "regenerative")];
    let pairs = pairs.map(|(judged, baseline)| (judged.to_owned(), baseline.to_owned())).into();
    walk_page("walk-pairs", &render(&PageInput { pairs, ..sample.input() }));
}

#[test]
fn nothing_planted_in_any_text_runs() {
    walk("walk-planted", &SampleOptions { injection: INJECTION, fixtures: 2, points: 2, ..SampleOptions::default() });
}

#[test]
fn twenty_thousand_cells_open_soon() {
    let Some((found, console)) = visit("large", &LARGE, "time", &[]) else { return };
    assert_eq!(console, Vec::<String>::new());
    let ready = found["ready_ms"].as_f64().expect("a time");
    // One to two seconds on two slow cores with nothing else to do; this is to catch what grows faster than the cells.
    assert!(ready < 8000.0, "ready after {ready} ms");
}
