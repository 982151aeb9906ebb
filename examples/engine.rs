//! How well the whole program uses what a provider allows: the binary, its store and its results, against the
//! loopback simulator.
//!
//! `cargo build --release && cargo run --release --example engine [PART OF A TRIAL'S NAME]`

#![allow(unreachable_pub, reason = "the simulator serves several binaries")]
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/support/brain.rs"]
mod brain;
#[path = "../tests/support/bulk.rs"]
mod bulk;
#[path = "../tests/support/simulator.rs"]
mod simulator;

use simulator::{Scenario, Simulator, Style};

/// One line of the table.
struct Trial {
    name: &'static str,
    scenario: Scenario,
    /// Lines of `[providers.sim.limits]`.
    limits: &'static str,
    runs: usize,
    /// Seconds a call takes in flight, and calls in flight: together the wall time that nobody can beat.
    ideal: Option<(f64, f64)>,
    /// Only if asked for by name.
    long: bool,
}

fn main() {
    println!(
        "{:<32} {:>7} {:>8} {:>8} {:>8} {:>7} {:>10} {:>8} {:>6} {:>6} {:>9}",
        "trial", "calls", "wall s", "of ideal", "of rate", "429s", "cpu s/1000", "peak MB", "fail", "twice", "warm s"
    );
    let only = std::env::args().nth(1);
    for trial in trials() {
        if only.as_ref().map_or(!trial.long, |part| trial.name.contains(part.as_str())) {
            run(&trial);
        }
    }
}

fn trials() -> Vec<Trial> {
    let scenario = |latency_ms| Scenario {
        latency: Duration::from_millis(latency_ms),
        answers: Some(bulk::reply),
        ..Scenario::default()
    };
    let limited = |style| Scenario { requests_per_minute: Some(6000), style, ..scenario(50) };
    let faults = Scenario { server_errors: 0.1, malformed: 0.05, hangs: 0.01, ..scenario(20) };
    let trial = |name, scenario, limits| Trial { name, scenario, limits, runs: 20, ideal: None, long: false };
    vec![
        Trial {
            runs: 80,
            ideal: Some((0.2, 64.0)),
            ..trial("200 ms latency, 64 in flight", scenario(200), "max_in_flight = 64")
        },
        Trial { runs: 60, ..trial("no latency, 8 KB contexts", scenario(0), "max_in_flight = 64") },
        trial("declared 6000 requests/min", limited(Style::Silent), "requests_per_minute = 6000"),
        trial("learned, OpenAI style", limited(Style::OpenAi), "max_in_flight = 64"),
        trial("learned, Anthropic style", limited(Style::Anthropic), "max_in_flight = 64"),
        trial("guessed, nothing told", limited(Style::Silent), "max_in_flight = 64"),
        trial("guessed, nothing declared", limited(Style::Silent), ""),
        Trial { runs: 60, ..trial("guessed, nothing told, longer", limited(Style::Silent), "max_in_flight = 64") },
        trial("10% 5xx, 5% malformed, 1% hangs", faults, "max_in_flight = 64\ntimeout_s = 2"),
        Trial { runs: 2500, long: true, ..trial("100,000 cells", scenario(0), "max_in_flight = 64") },
    ]
}

/// What a process took.
struct Took {
    wall: f64,
    cpu: f64,
    peak_mb: f64,
}

fn run(trial: &Trial) {
    let simulator = Simulator::start(trial.scenario.clone());
    let folder = tempfile::tempdir().expect("a folder");
    bulk::write(folder.path(), &simulator.url(), trial.runs, trial.limits);
    let cold = measured(folder.path());
    let counts = simulator.counts();
    let warm = measured(folder.path());
    assert_eq!(simulator.counts().requests, counts.requests, "a second run sends nothing");
    let manifest = bulk::manifest(folder.path(), "a");
    let failed = manifest["failures"].as_array().map_or(0, Vec::len);
    let calls = bulk::calls(trial.runs);
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let rate = trial.scenario.requests_per_minute.map(|n| n as f64 / 60.0);
    println!(
        "{:<32} {:>7} {:>8.2} {:>8} {:>8} {:>7} {:>10.3} {:>8.0} {:>6} {:>6} {:>9.2}",
        trial.name,
        calls,
        cold.wall,
        trial.ideal.map_or("-".into(), |(s, at_once)| format!("{:.3}", cold.wall / (calls as f64 * s / at_once))),
        rate.map_or("-".into(), |rate| percent(counts.answered as f64 / cold.wall / rate)),
        percent(counts.rate_limited as f64 / counts.requests as f64),
        cold.cpu / calls as f64 * 1000.0,
        cold.peak_mb.max(warm.peak_mb),
        failed,
        counts.answered as i64 + failed as i64 - calls as i64,
        warm.wall,
    );
}

/// The program beside this example's folder.
fn binary() -> PathBuf {
    let here = std::env::current_exe().expect("a path of its own");
    let folder = here.parent().and_then(Path::parent).expect("target/release");
    let binary = folder.join("compeval");
    assert!(binary.exists(), "{} is missing: run `cargo build --release` first", binary.display());
    binary
}

fn measured(folder: &Path) -> Took {
    let began = Instant::now();
    let mut command = bulk::compeval(&binary(), folder, &["run", "--label", "a", "--no-progress"]);
    let child = command.stderr(Stdio::null()).spawn().expect("the program");
    watch(child, began)
}

/// Watches a process to its end. What it used is read before it is reaped.
fn watch(mut child: Child, began: Instant) -> Took {
    let place = format!("/proc/{}", child.id());
    let read = |file: &str| std::fs::read_to_string(format!("{place}/{file}")).unwrap_or_default();
    let mut peak_kb = 0.0_f64;
    loop {
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        if fields.first().is_none_or(|state| *state == "Z") {
            let ticks = |nth: usize| fields.get(nth).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
            let wall = began.elapsed().as_secs_f64();
            let cpu = (ticks(11) + ticks(12)) / 100.0;
            let _ = child.wait();
            return Took { wall, cpu, peak_mb: peak_kb / 1024.0 };
        }
        let status = read("status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = peak.and_then(|text| text.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
        peak_kb = peak_kb.max(kb.unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(2));
    }
}
