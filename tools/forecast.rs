//! Measures how close the forecast of `plan` is to the run, if nothing is cached. Five layouts are planned and then run
//! against a server on loopback, which counts tokens like compeval; the first also with short and with long replies.
//!
//! `cargo build && cargo run -p compeval-tools --bin forecast`
//!
//! The server summarizes in about 900 tokens, answers in about 200, and grades in about 350. These lengths are those that
//! a forecast assumes for what models write; it computes what they read.

#![allow(unreachable_pub, reason = "the brain serves several binaries")]
#![allow(clippy::print_stdout, reason = "a measurement prints")]
#![allow(
    clippy::disallowed_methods,
    reason = "scratch files need no atomic write"
)]

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::routing::post;
use base::tokens::count_tokens;
use program::program;
use serde_json::{Value, json};

#[path = "../tests/support/brain.rs"]
mod brain;
#[path = "../tests/support/loopback.rs"]
mod loopback;
mod program;

/// The maximum deviation of the actual number from the forecast, as a share.
const MARGIN: f64 = 0.15;
/// The numbers of tokens of a summary, of an answer and of grades.
const SUMMARY: usize = 900;
const ANSWER: usize = 200;
const GRADES: usize = 350;

/// Lengths of replies, in percent of these.
const LENGTHS: [(&str, usize); 3] = [
    ("half as long", 50),
    ("usual", 100),
    ("three times as long", 300),
];

/// The number of answers so far.
static ANSWERS: AtomicUsize = AtomicUsize::new(0);
/// The length of replies now, in percent.
static LENGTH: AtomicUsize = AtomicUsize::new(100);

/// The flags of a plan and its run, and the text that is added to the shipped pipeline.
struct Layout {
    name: &'static str,
    flags: &'static str,
    added: &'static str,
}

const PRICES: &str = "\n[prices.\"loop/m\"]\ninput = 1.0\noutput = 5.0\n";
const SECOND_JUDGE: &str =
    "\n[[judge]]\nname = \"second\"\nmodel = \"loop/m\"\ntemperature = 0.5\n";
const CONVERSATION: &str = "\n[[compress]]\nname = \"system\"\nstrategy = \"anchored-iterative\"\nmodel = \"loop/m\"\n\
                            prompt = \"prompts/anchored.md\"\nplacement = \"system\"\n";

const LAYOUTS: [Layout; 5] = [
    Layout {
        name: "two sessions, all methods",
        flags: "--fixtures debug-job-queue,zh-log-cleanup --runs 1",
        added: "",
    },
    Layout {
        name: "rules only",
        flags: "--fixtures debug-job-queue,feature-csv-export --methods extract,mask,truncate,none --runs 1",
        added: "",
    },
    Layout {
        name: "chains over all points",
        flags: "--fixtures config-reverse-proxy --methods full,anchored,regenerative,none --runs 1",
        added: "",
    },
    Layout {
        name: "two judges, three runs",
        flags: "--fixtures zh-log-cleanup --methods full,anchored,none --runs 3",
        added: SECOND_JUDGE,
    },
    Layout {
        name: "a prompt in the system message",
        flags: "--fixtures debug-job-queue --methods full,system,none --runs 1",
        added: CONVERSATION,
    },
];

fn main() -> ExitCode {
    let server = loopback::LoopbackServer::start(
        axum::Router::new().route("/v1/chat/completions", post(reply)),
    );
    let is_near = by_layout(&server.url());
    by_length(&server.url());
    if is_near {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints the numbers expected and counted for each layout. Returns whether all are near enough.
fn by_layout(url: &str) -> bool {
    println!(
        "{:<32}{:>10}{:>10}{:>8}{:>10}{:>10}{:>8}",
        "layout", "input", "actual", "", "USD", "actual", ""
    );
    let mut is_near = true;
    for layout in &LAYOUTS {
        let (estimate, manifest) = plan_and_run(layout, url);
        let [input, usd] = [&estimate["input_tokens"], &estimate["usd"]].map(number);
        let [actual_input, actual_usd] =
            [&manifest["usage"]["input"], &manifest["usd"]].map(number);
        let off = [(input, actual_input), (usd, actual_usd)]
            .map(|(expected, actual)| actual / expected - 1.0);
        is_near &= off.iter().all(|off| off.abs() <= MARGIN);
        println!(
            "{:<32}{input:>10.0}{actual_input:>10.0}{:>8}{usd:>10.4}{actual_usd:>10.4}{:>8}",
            layout.name,
            percent(off[0]),
            percent(off[1])
        );
    }
    is_near
}

/// Prints, for each length of replies, the tokens expected and counted, and the range of dollars with what it cost.
fn by_length(url: &str) {
    println!(
        "\n{:<20}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "replies", "input", "actual", "output", "actual", "USD from", "to", "actual"
    );
    for (name, length) in LENGTHS {
        LENGTH.store(length, Ordering::Relaxed);
        let (estimate, manifest) = plan_and_run(&LAYOUTS[0], url);
        let usage = &manifest["usage"];
        let [input, actual_input, output, actual_output] = [
            &estimate["input_tokens"],
            &usage["input"],
            &estimate["output_tokens"],
            &usage["output"],
        ]
        .map(number);
        let [low, high, usd] = [
            &estimate["usd_low"],
            &estimate["usd_high"],
            &manifest["usd"],
        ]
        .map(number);
        println!(
            "{name:<20}{input:>10.0}{actual_input:>10.0}{output:>10.0}{actual_output:>10.0}{low:>10.2}{high:>10.2}{usd:>10.2}"
        );
    }
}

/// The estimate of a plan, and the manifest of its run.
fn plan_and_run(layout: &Layout, url: &str) -> (Value, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    write_project(folder.path(), url, layout.added);
    let flags = layout.flags;
    let mut plan = compeval(
        folder.path(),
        &format!("plan --json --model loop/m {flags}"),
    );
    let run = format!("run --label a --quiet --allow-weak-judge --model loop/m {flags}");
    compeval(folder.path(), &run);
    let manifest = std::fs::read(folder.path().join("results/a/manifest.json"));
    let manifest = serde_json::from_slice(&manifest.expect("a manifest")).expect("JSON");
    (plan["estimate"].take(), manifest)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn percent(off: f64) -> String {
    format!("{:+.0}%", off * 100.0)
}

/// The shipped project with a provider on loopback.
fn write_project(folder: &Path, url: &str, added: &str) {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for part in ["fixtures", "probes", "prompts"] {
        std::fs::create_dir_all(folder.join(part)).expect("a folder");
        for entry in std::fs::read_dir(root.join(part))
            .expect("a folder")
            .flatten()
        {
            std::fs::copy(entry.path(), folder.join(part).join(entry.file_name())).expect("a copy");
        }
    }
    let pipeline = std::fs::read_to_string(root.join("pipeline.toml")).expect("the pipeline");
    let provider = format!(
        "\n[providers.loop]\nkind = \"openai-chat\"\nbase_url = \"{url}/v1\"\nidentity = \"loop\"\n"
    );
    std::fs::write(
        folder.join("pipeline.toml"),
        format!("{pipeline}{added}{provider}{PRICES}"),
    )
    .expect("a pipeline");
}

/// Runs the program and returns its output if this is JSON, otherwise null.
fn compeval(folder: &Path, arguments: &str) -> Value {
    let output = Command::new(program())
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("the program");
    // A weak judge and failed cells do not matter here: the requests were sent.
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "compeval {arguments}\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(&text).unwrap_or_default()
}

async fn reply(Json(request): Json<Value>) -> Json<Value> {
    let text = brain::text_of(&request);
    let length = |usual: usize| usual * LENGTH.load(Ordering::Relaxed) / 100;
    let content = match brain::wanted(&text) {
        brain::Wanted::Compression => of_length(&text, length(SUMMARY)),
        // A model does not repeat itself word for word, and equal answers would be graded only once.
        brain::Wanted::Answer => {
            let nth = ANSWERS.fetch_add(1, Ordering::Relaxed);
            let answer = of_length(&brain::reply(&request), length(ANSWER));
            format!("{nth}. {answer}")
        }
        brain::Wanted::Grades => explained(&brain::reply(&request), length(GRADES)),
    };
    let (prompt, completion) = (count_tokens(&text).0, count_tokens(&content).0);
    Json(json!({
        "model": request["model"],
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
    }))
}

/// Grades whose reasons are so long that all have about this many tokens, unless they have more.
fn explained(grades: &str, tokens: usize) -> String {
    const REASON: &str = "\"reasoning\":\"";
    let missing = tokens.saturating_sub(count_tokens(grades).0 as usize);
    let each = missing / grades.matches(REASON).count().max(1);
    grades.replace(REASON, &format!("{REASON}{}", "so ".repeat(each)))
}

/// The beginning of a text with about this many tokens; a short text is repeated.
fn of_length(text: &str, tokens: usize) -> String {
    let mut repeated = String::new();
    while repeated.len() < tokens * 16 {
        repeated.push_str(if text.is_empty() { "nothing " } else { text });
        repeated.push('\n');
    }
    let counted = count_tokens(&repeated).0 as usize;
    let share = tokens as f64 / counted.max(1) as f64;
    repeated
        .chars()
        .take((repeated.chars().count() as f64 * share) as usize)
        .collect()
}
