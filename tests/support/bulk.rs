//! A project of any size, for measurements: four fixtures of some 8 KB, ten probes each, one method that keeps all.

#![allow(dead_code, reason = "each bench uses a part")]
#![allow(
    clippy::disallowed_methods,
    reason = "scratch files need no atomic write"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::brain;

/// Cells of one run: four fixtures, ten probes, one method.
pub const CELLS: usize = 40;
/// Cases of one judge's self-test.
pub const SELFTEST: usize = compeval::judge::SELFTEST_CASES;

const FIXTURES: usize = 4;
const PROBES: usize = 10;
const LINES: usize = 100;

/// Requests that `runs` runs take: an answer and its grade for each cell, and the self-test.
pub fn calls(runs: usize) -> usize {
    2 * CELLS * runs + SELFTEST
}

/// A sensible reply to a chat request.
pub fn reply(body: &[u8]) -> String {
    serde_json::from_slice(body)
        .map_or_else(|_| String::new(), |request: Value| brain::reply(&request))
}

/// Writes a project whose provider is at `url`; `limits` are lines of TOML.
pub fn write(folder: &Path, url: &str, runs: usize, limits: &str) {
    write_with(folder, url, runs, limits, "sim-1");
}

/// Like [`write`], with another model as the judge.
pub fn write_with(folder: &Path, url: &str, runs: usize, limits: &str, judge: &str) {
    for part in ["fixtures", "probes"] {
        std::fs::create_dir_all(folder.join(part)).expect("folders");
    }
    for nth in 0..FIXTURES {
        let name = format!("session-{nth}");
        std::fs::write(
            folder.join(format!("fixtures/{name}.json")),
            fixture(nth, &name).to_string(),
        )
        .expect("a fixture");
        std::fs::write(
            folder.join(format!("probes/{name}.probes.json")),
            bank(nth, &name).to_string(),
        )
        .expect("a bank");
    }
    let pipeline = format!(
        "[pipeline]\nruns = {runs}\nregrade = false\n\n[providers.sim]\nkind = \"openai-chat\"\nbase_url = \"{url}\"\nidentity = \"sim\"\n\
         [providers.sim.limits]\n{limits}\n\n[[compress]]\nname = \"full\"\nstrategy = \"full\"\n\n\
         [[answer]]\nname = \"agent\"\nmodel = \"sim/sim-1\"\n\n[[judge]]\nname = \"judge\"\nmodel = \"sim/{judge}\"\n"
    );
    std::fs::write(folder.join("pipeline.toml"), pipeline).expect("a pipeline");
}

fn line(fixture: usize, line: usize) -> String {
    let value = (fixture + 1) * 7919 + line * 104_729;
    format!(
        "Option number{line:03}of{fixture} was settled: its value is {value}, agreed on with the others."
    )
}

fn fixture(nth: usize, name: &str) -> Value {
    let lines: Vec<String> = (0..LINES).map(|at| line(nth, at)).collect();
    let mut messages = Vec::new();
    for (turn, chunk) in lines.chunks(10).enumerate() {
        messages.push(json!({"role": "user", "content": format!("Go on with part {turn}.")}));
        messages.push(json!({"role": "assistant", "content": chunk.join("\n")}));
    }
    json!({"name": name, "description": "Generated.", "messages": messages})
}

fn bank(nth: usize, name: &str) -> Value {
    let kinds = ["recall", "artifact", "continuation", "decision"];
    let probe = |at: usize| {
        let (asked, value) = (at * 9, (nth + 1) * 7919 + at * 9 * 104_729);
        json!({"id": format!("p{at}"), "type": kinds[at % 4], "expected_facts": [value.to_string()],
            "question": format!("What is the value of option number{asked:03}of{nth}?")})
    };
    json!({"fixture": name, "probes": (0..PROBES).map(probe).collect::<Vec<_>>()})
}

/// A command that runs the program in that project.
pub fn compeval(binary: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(arguments).current_dir(folder).env_clear();
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    command
}

/// The manifest of a result set.
pub fn manifest(folder: &Path, label: &str) -> Value {
    let path: PathBuf = folder.join("results").join(label).join("manifest.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a manifest")).expect("JSON")
}
