//! How well the client uses what a provider allows, measured against the loopback simulator.
//!
//! `cargo run --release --example throughput`

#![allow(unreachable_pub, reason = "the simulator serves several binaries")]
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use compeval::provider::{
    ApiKey, Call, Client, Dialect, Limits, NoBudget, Operation, ProviderSpec, RawReply, Settings, Turn, estimate,
};
use compeval::transcript::Role;
use compeval::units::Tokens;
use futures::StreamExt;

#[path = "../tests/support/simulator.rs"]
mod simulator;

use simulator::{Scenario, Simulator, Style};

/// One line of the table.
struct Trial {
    name: &'static str,
    scenario: Scenario,
    limits: Limits,
    calls: usize,
    prompt_bytes: usize,
    /// Wall time that nobody can beat, if the scenario has one.
    ideal: Option<Duration>,
}

fn main() {
    println!(
        "{:<34} {:>6} {:>8} {:>9} {:>7} {:>10} {:>6} {:>6} {:>8}",
        "trial", "calls", "wall s", "of rate", "429s", "cpu s/1000", "fail", "twice", "of ideal"
    );
    let only = std::env::args().nth(1);
    for trial in trials() {
        if only.as_ref().is_none_or(|part| trial.name.contains(part.as_str())) {
            run(trial);
        }
    }
    println!("peak memory, simulator included: {} MB", peak_kb() / 1024);
}

fn trials() -> Vec<Trial> {
    let plain = || Scenario { latency: Duration::from_millis(50), ..Scenario::default() };
    let limited = |style| Scenario { requests_per_minute: Some(6000), style, ..plain() };
    let wide = || Limits { max_in_flight: Some(64), ..Limits::default() };
    let trial = |name, scenario, limits| Trial { name, scenario, limits, calls: 2000, prompt_bytes: 2000, ideal: None };
    let faults = Scenario { server_errors: 0.1, malformed: 0.05, hangs: 0.01, ..plain() };
    vec![
        trial(
            "declared 6000 requests/min",
            limited(Style::Silent),
            Limits { requests_per_minute: Some(6000), ..wide() },
        ),
        trial("learned, OpenAI style", limited(Style::OpenAi), wide()),
        trial("learned, Anthropic style", limited(Style::Anthropic), wide()),
        trial("not told, 429s alone", limited(Style::Silent), wide()),
        trial(
            "declared 3,000,000 tokens/min",
            Scenario { tokens_per_minute: Some(3_000_000), ..plain() },
            Limits { tokens_per_minute: Some(3_000_000), ..wide() },
        ),
        Trial {
            calls: 3200,
            ideal: Some(Duration::from_secs(10)),
            ..trial("200 ms latency, 64 in flight", Scenario { latency: Duration::from_millis(200), ..plain() }, wide())
        },
        Trial { calls: 5000, prompt_bytes: 8192, ..trial("no latency, 8 KB contexts", Scenario::default(), wide()) },
        Trial { calls: 100_000, ..trial("100,000 calls", Scenario::default(), wide()) },
        Trial {
            calls: 3000,
            ..trial("10% 5xx, 5% malformed, 1% hangs", faults, Limits { timeout: Duration::from_secs(2), ..wide() })
        },
    ]
}

fn run(trial: Trial) {
    let simulator = Simulator::start(trial.scenario.clone());
    let spec = ProviderSpec {
        name: "sim".into(),
        dialect: Dialect::OpenaiChat,
        base_url: simulator.url(),
        api_key: None,
        endpoint: "sim".into(),
        limits: trial.limits.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (cpu, start) = (cpu(), Instant::now());
    let failed = runtime.block_on(crowd(Client::with_keys([Arc::new(spec)], |_| None::<ApiKey>), &trial));
    let (cpu, wall) = (self::cpu() - cpu, start.elapsed().as_secs_f64());
    let counts = simulator.counts();
    let prompt_and_reply = (trial.prompt_bytes + 100) as f64 / 4.0;
    let per_second = trial.scenario.requests_per_minute.map(|n| n as f64 / 60.0);
    let allowed = per_second.or(trial.scenario.tokens_per_minute.map(|n| n as f64 / 60.0 / prompt_and_reply));
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    println!(
        "{:<34} {:>6} {:>8.2} {:>9} {:>7} {:>10.3} {:>6} {:>6} {:>8}",
        trial.name,
        trial.calls,
        wall,
        allowed.map_or("-".into(), |rate| percent(counts.answered as f64 / wall / rate)),
        percent(counts.rate_limited as f64 / counts.requests as f64),
        cpu / trial.calls as f64 * 1000.0,
        failed,
        counts.answered_again,
        trial.ideal.map_or("-".into(), |ideal| format!("{:.3}", wall / ideal.as_secs_f64())),
    );
}

/// Asks all questions, up to 2,000 waiting at once; answers how many failed.
async fn crowd(client: Client, trial: &Trial) -> usize {
    let context = "one word after another ".repeat(trial.prompt_bytes / 23 + 1);
    let one = async |index: usize| {
        let text = format!("{index:06} {}", context.get(..trial.prompt_bytes).unwrap_or(&context));
        let call = Call {
            model: "sim-1".into(),
            operation: Operation::Generate,
            turns: vec![Turn::Text { role: Role::User, text: text.into() }],
            instructions: None,
            settings: Settings { max_output_tokens: Some(Tokens(256)), ..Settings::default() },
            schema: None,
        };
        let keep = |_: &RawReply| ready(Ok::<(), Infallible>(()));
        client.ask(&"sim".into(), &call, estimate(&call), &NoBudget, keep).await.is_err()
    };
    let outcomes = futures::stream::iter((0..trial.calls).map(one)).buffer_unordered(2000);
    outcomes.filter(|failed| ready(*failed)).count().await
}

/// Seconds this thread ran; the simulator has a thread of its own.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
