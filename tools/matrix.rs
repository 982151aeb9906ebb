//! Makes a project of any size with which the program can be measured, and serves a provider for it on loopback.
//!
//! ```text
//! cargo build --release -p compeval-tools --bin matrix && M=target/release/matrix
//! $M write /tmp/m 10 5 20 3            # 10 fixtures, 5 methods, 20 probes, 3 runs: 6,150 actions
//! $M serve &                           # answers at 127.0.0.1:8399 until it is stopped
//! compeval -C /tmp/m run --label a --allow-weak-judge
//! /usr/bin/time -v compeval -C /tmp/m run --label a --allow-weak-judge   # from the cache
//! ```

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool of the command line prints"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use serde_json::{Value, json};

const ADDRESS: &str = "127.0.0.1:8399";
/// The numbers of characters of a transcript, and of a context that the provider makes from it.
const TRANSCRIPT: usize = 40_000;
const CONTEXT: usize = 8192;
const MESSAGES: usize = 40;
static REPLIES: AtomicUsize = AtomicUsize::new(0);
const WORDS: [&str; 16] = [
    "the", "cache", "of", "parser", "reads", "each", "block", "again", "when", "index", "and",
    "writer", "disagree", "about", "a", "length",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["write", folder, fixtures, methods, probes, runs] => write(
            Path::new(folder),
            fixtures.parse()?,
            methods.parse()?,
            probes.parse()?,
            runs.parse()?,
        ),
        ["serve"] => Ok(serve()?),
        _ => {
            Err("usage: matrix write FOLDER FIXTURES METHODS PROBES RUNS, or: matrix serve".into())
        }
    }
}

fn write(
    folder: &Path,
    fixtures: usize,
    methods: usize,
    probes: usize,
    runs: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    for part in ["fixtures", "probes"] {
        std::fs::create_dir_all(folder.join(part))?;
    }
    for number in 0..fixtures {
        let name = format!("session-{number:03}");
        std::fs::write(
            folder.join(format!("fixtures/{name}.json")),
            fixture(&name, number, probes).to_string(),
        )?;
        std::fs::write(
            folder.join(format!("probes/{name}.probes.json")),
            bank(&name, number, probes).to_string(),
        )?;
    }
    Ok(std::fs::write(
        folder.join("pipeline.toml"),
        pipeline(methods, runs),
    )?)
}

fn pipeline(methods: usize, runs: usize) -> String {
    let mut text = format!(
        "[pipeline]\nregrade = false\nfixtures = \"fixtures\"\nprobes = \"probes\"\nruns = {runs}\n\
         [providers.stub]\nkind = \"openai-chat\"\nbase_url = \"http://{ADDRESS}/v1\"\n\
         [providers.stub.limits]\nmax_in_flight = 64\n\
         [[answer]]\nname = \"agent\"\nmodel = \"stub/reader\"\n\
         [[judge]]\nname = \"judge\"\nmodel = \"stub/grader\"\n"
    );
    for number in 0..methods {
        let _ = write!(
            text,
            "[[compress]]\nname = \"m{number}\"\nstrategy = \"regenerative\"\nmodel = \"stub/compressor-{number}\"\n"
        );
    }
    text
}

fn fact(fixture: usize, probe: usize) -> String {
    format!("port-{}", 10_000 + fixture * 131 + probe * 7)
}

/// Text of about `length` characters; the order of its words depends on the seed.
fn prose(seed: usize, length: usize) -> String {
    let (mut text, mut state) = (String::with_capacity(length + 16), seed as u64 + 1);
    while text.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        text.push(' ');
    }
    text
}

fn fixture(name: &str, number: usize, probes: usize) -> Value {
    let message = |index: usize| {
        let facts: Vec<String> = (0..probes)
            .filter(|p| p % MESSAGES == index)
            .map(|p| format!("It is {}.", fact(number, p)))
            .collect();
        let text = format!(
            "{} {}",
            prose(number * MESSAGES + index, TRANSCRIPT / MESSAGES),
            facts.join(" ")
        );
        json!({"role": if index.is_multiple_of(2) { "user" } else { "assistant" }, "content": text})
    };
    json!({"name": name, "description": "made up", "model": "none", "messages": (0..MESSAGES).map(message).collect::<Vec<_>>()})
}

fn bank(name: &str, number: usize, probes: usize) -> Value {
    let kinds = ["recall", "artifact", "continuation", "decision"];
    let probe = |index: usize| {
        json!({"id": format!("p{index:03}"), "type": kinds[index % kinds.len()],
            "question": format!("Which port was settled on in step {index}, and who asked for it?"),
            "expected_facts": [fact(number, index)]})
    };
    json!({"fixture": name, "probes": (0..probes).map(probe).collect::<Vec<_>>()})
}

fn serve() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(ADDRESS).await?;
        let router =
            axum::Router::new().fallback(async |body: Bytes| reply(&body).unwrap_or_default());
        axum::serve(listener, router).await
    })
}

/// The reply of a model; the name of the model decides whether it is a context, an answer or grades.
fn reply(body: &[u8]) -> Option<String> {
    let request: Value = serde_json::from_slice(body).ok()?;
    let model = request.get("model")?.as_str()?;
    let prompt = request
        .get("messages")?
        .as_array()?
        .last()?
        .get("content")?
        .as_str()?;
    // No two replies are the same, like those of a model that samples.
    let seed = REPLIES.fetch_add(1, Ordering::Relaxed);
    let text = match model {
        "reader" => format!(
            "It is {} in src/{}.rs. {}",
            fact(seed % 9, seed % 20),
            seed % 7,
            prose(seed, 300)
        ),
        "grader" => grades(prompt, seed)?,
        _ => prose(seed, CONTEXT),
    };
    let usage = json!({"prompt_tokens": body.len() / 4, "completion_tokens": text.len() / 4});
    let message = json!({"role": "assistant", "content": text});
    Some(
        json!({"id": "r", "object": "chat.completion", "model": model, "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        .to_string(),
    )
}

fn grades(prompt: &str, seed: usize) -> Option<String> {
    let ids = prompt
        .split("\"rubric_criteria\":")
        .nth(1)?
        .split_inclusive(']')
        .next()?;
    let ids: Vec<String> = serde_json::from_str(ids).ok()?;
    let grade = |(index, id): (usize, &String)| json!({"criterionId": id, "score": (seed >> index) % 6, "reasoning": prose(seed + index, 80)});
    Some(
        json!({"criterionResults": ids.iter().enumerate().map(grade).collect::<Vec<_>>()})
            .to_string(),
    )
}
