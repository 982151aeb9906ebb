//! Measures how much of a provider's limits the program uses. The binary runs with its cache and results against a
//! provider on loopback that limits requests in many ways. For comparison, the pacing law alone is run in virtual time.
//!
//! `cargo build --release && cargo run --release -p compeval-tools --bin engine -- [--law] [--seconds 60] [PART OF A TRIAL'S NAME]`
//!
//! `--law` measures only the pacing law, which takes seconds.

#![allow(unreachable_pub, reason = "the simulator serves several binaries")]
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/support/brain.rs"]
mod brain;
#[path = "../tests/support/bulk.rs"]
mod bulk;
mod program;
#[path = "../tests/support/simulator.rs"]
mod simulator;
#[path = "../tests/support/virtual_time.rs"]
mod virtual_time;

use program::program;
use simulator::limited::{self, Asks, Limit, ProviderLimit, Rule, Unit};
use simulator::{Scenario, Simulator, Style};
use virtual_time::World;

/// The seconds that a call takes, and the number of requests in flight. They limit a run that has no rate limit.
const LATENCY: f64 = 0.2;
const IN_FLIGHT: f64 = 64.0;
/// The approximate number of input tokens of a call: a quarter of its bytes.
const INPUT: f64 = 2600.0;

/// One line of the table.
struct Trial {
    name: &'static str,
    scenario: Scenario,
    /// Lines of `[providers.sim.limits]`.
    declared: &'static str,
    processes: usize,
    /// The model of the judge; answers come from `sim-1`.
    judge: &'static str,
    /// The number of runs; `None` is as many as the limits allow in the time of a trial.
    runs: Option<usize>,
    /// Whether the trial only runs if it is named.
    is_long: bool,
}

impl Trial {
    fn limit(&self) -> Option<ProviderLimit> {
        self.scenario.limits.first().copied()
    }

    /// The maximum that the provider accepts in this time, in the unit of the limit.
    fn allowed(&self, seconds: f64) -> f64 {
        let latency = self.scenario.latency.as_secs_f64().max(0.001);
        let fastest =
            IN_FLIGHT * self.processes as f64 / latency * (1.0 - self.scenario.random_refusals);
        let groups = if self.judge == "sim-1" { 1.0 } else { 2.0 };
        match self.limit() {
            Some(ProviderLimit {
                unit: Unit::InputTokens,
                limit,
                ..
            }) => limit.allowed(seconds, fastest * INPUT),
            Some(ProviderLimit {
                is_per_model: true,
                limit,
                ..
            }) => groups * limit.allowed(seconds, fastest),
            Some(ProviderLimit { limit, .. }) => limit.allowed(seconds, fastest),
            None => fastest * seconds,
        }
    }

    fn unit(&self) -> Unit {
        self.limit().map_or(Unit::Requests, |limit| limit.unit)
    }

    /// The number of runs that keep one process busy for this time.
    fn runs(&self, seconds: f64) -> usize {
        let amount = if self.unit() == Unit::InputTokens {
            INPUT
        } else {
            1.0
        };
        let calls = self.allowed(seconds) / amount * 1.08 / self.processes as f64;
        self.runs.unwrap_or(
            ((calls - bulk::SELFTEST as f64) / (2 * bulk::CELLS) as f64)
                .ceil()
                .max(1.0) as usize,
        )
    }

    /// The share of the allowed amount that was used in this time, and the share of refusals. A run that ends earlier
    /// is measured until its end.
    fn used(&self, arrivals: &limited::Arrivals, seconds: f64) -> (f64, f64) {
        let end = seconds.min(arrivals.accepted.iter().copied().fold(0.0, f64::max));
        let (amount, refused) = arrivals.until(end, self.unit());
        (amount / self.allowed(end), refused)
    }

    /// The same shares of the law in virtual time; each process makes `calls` calls.
    fn law(&self, seconds: f64, calls: usize) -> Option<(f64, f64)> {
        const SEEDS: u64 = 16;
        if !self.declared.contains("max_in_flight")
            || self.scenario.latency != Duration::from_secs_f64(LATENCY)
        {
            return None;
        }
        let Scenario {
            limits,
            random_refusals: noise,
            style,
            ..
        } = self.scenario.clone();
        let models = if self.judge == "sim-1" { 1 } else { 2 };
        let announces = style != Style::Silent;
        let world = World {
            noise,
            announces,
            processes: self.processes,
            models,
            calls,
            ..World::new(limits)
        };
        let shares = (0..SEEDS)
            .map(|seed| self.used(&virtual_time::run(&world, f64::INFINITY, seed), seconds));
        let (share, refused) =
            shares.fold((0.0, 0.0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        Some((share / SEEDS as f64, refused / SEEDS as f64))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let law_alone = arguments.next_if(|argument| argument == "--law").is_some();
    let seconds = arguments
        .next_if(|argument| argument == "--seconds")
        .and_then(|_| arguments.next());
    let seconds: f64 = seconds.map_or(10.0, |text| text.parse().expect("a number of seconds"));
    let named = arguments.next();
    println!(
        "Share of the allowed that was accepted, and share of requests refused: in the first 10 s, and in {seconds} s."
    );
    let trials = trials().into_iter();
    let is_wanted = |trial: &Trial| {
        named
            .as_ref()
            .map_or(!trial.is_long, |part| trial.name.contains(part.as_str()))
    };
    if law_alone {
        trials.filter(is_wanted).for_each(|trial| {
            let calls = bulk::calls(trial.runs(seconds));
            if let Some((ten, all)) = trial.law(10.0, calls).zip(trial.law(seconds, calls)) {
                println!("{:<36} {:>12} {:>12}", trial.name, show(ten), show(all));
            }
        });
        return by_calls();
    }
    println!(
        "{:<36} {:>6} {:>12} {:>12} {:>12} {:>12} {:>8} {:>8} {:>10} {:>7} {:>4} {:>5} {:>6}",
        "trial",
        "calls",
        "10 s",
        format!("{seconds} s"),
        "law 10 s",
        format!("law {seconds} s"),
        "wall s",
        "of ideal",
        "cpu s/1000",
        "peak MB",
        "fail",
        "twice",
        "warm s"
    );
    trials
        .filter(is_wanted)
        .for_each(|trial| run(&trial, seconds));
}

/// The law on servers whose limit shows in the time of some calls.
fn by_calls() {
    println!("\nSeconds that 100 and 600 calls take, and refusals in percent of the calls.");
    let limited =
        |rule, asks| World::new(vec![ProviderLimit::requests(Limit::new(rule).asking(asks))]);
    let mut counting = limited(Rule::Sliding(60.0, 60.0), Asks::Seconds(2.0));
    counting.limits[0].limit.counts_refused = true;
    let announced = World {
        announces: true,
        ..limited(Rule::Bucket(10.0, 60.0), Asks::Seconds(1.0))
    };
    let servers = [
        (
            "4 at once",
            World {
                at_once: 4,
                ..World::new(Vec::new())
            },
        ),
        (
            "bucket of 50 a second, 10 at once",
            limited(Rule::Bucket(50.0, 10.0), Asks::Seconds(1.0)),
        ),
        (
            "60 in a fixed minute",
            limited(Rule::Fixed(60.0, 60.0, 20.0), Asks::Nothing),
        ),
        (
            "60 in a sliding minute",
            limited(Rule::Sliding(60.0, 60.0), Asks::Nothing),
        ),
        ("the same, refused calls count", counting),
        (
            "eight processes, bucket of 50",
            World {
                processes: 8,
                ..limited(Rule::Bucket(50.0, 50.0), Asks::Seconds(1.0))
            },
        ),
        ("bucket of 10 announced, 60 at once", announced.clone()),
        (
            "the same, headers a second late",
            World {
                announced_late: 1.0,
                ..announced.clone()
            },
        ),
        (
            "the same, headers of five times it",
            World {
                announced_times: 5.0,
                ..announced
            },
        ),
    ];
    for (name, world) in servers {
        let figures = [100, 600].map(|calls| {
            let (seconds, refused) = virtual_time::takes(&world, calls, 16);
            format!("{seconds:.1} {:>4.0}%", 100.0 * refused)
        });
        println!("{name:<36} {:>12} {:>12}", figures[0], figures[1]);
    }
}

/// The share of the allowed amount, and the share of refusals.
fn show((share, refused): (f64, f64)) -> String {
    format!("{share:.3} {:>5.1}%", refused * 100.0)
}

fn trials() -> Vec<Trial> {
    let scenario = |latency_ms| Scenario {
        latency: Duration::from_millis(latency_ms),
        answers: Some(bulk::reply),
        ..Scenario::default()
    };
    let trial = |name, scenario, declared| Trial {
        name,
        scenario,
        declared,
        processes: 1,
        judge: "sim-1",
        runs: None,
        is_long: false,
    };
    let busy = "max_in_flight = 64";
    let of = |limit: Limit| Scenario {
        limits: vec![ProviderLimit::requests(limit)],
        ..scenario(200)
    };
    let asks = |rule| of(Limit::new(rule).asking(Asks::Seconds(1.0)));
    let exact = |rule| of(Limit::new(rule).asking(Asks::Exactly));
    let second = || asks(Rule::Sliding(56.0, 1.0));
    let announced = |style| Scenario {
        style,
        ..asks(Rule::Sliding(50.0, 1.0))
    };
    let counting = Limit {
        counts_refused: true,
        ..Limit::new(Rule::Sliding(56.0, 1.0))
    };
    let changing = |most, factor| {
        let limit = Limit {
            change: Some((5.0, factor)),
            ..Limit::new(Rule::Sliding(most, 1.0))
        };
        of(limit.asking(Asks::Seconds(1.0)))
    };
    let outage = Limit {
        change: Some((3.0, 56e6)),
        ..Limit::new(Rule::Sliding(1e-6, 1.0))
    };
    let nothing_at_first = of(outage.asking(Asks::Seconds(1.0)));
    let per_model = ProviderLimit {
        is_per_model: true,
        ..ProviderLimit::requests(Limit::new(Rule::Sliding(28.0, 1.0)))
    };
    let tokens = Limit::new(Rule::Bucket(100_000.0, 100_000.0)).asking(Asks::Exactly);
    let tokens = ProviderLimit {
        unit: Unit::InputTokens,
        is_per_model: false,
        limit: tokens,
    };
    let tokens = Scenario {
        limits: vec![tokens],
        ..scenario(200)
    };
    let faults = Scenario {
        server_errors: 0.1,
        malformed: 0.05,
        hangs: 0.01,
        ..scenario(20)
    };
    vec![
        trial("56 in a sliding second", second(), busy),
        trial(
            "the same, no Retry-After",
            of(Limit::new(Rule::Sliding(56.0, 1.0))),
            busy,
        ),
        trial("the same, nothing declared", second(), ""),
        trial(
            "111 in a sliding second",
            asks(Rule::Sliding(111.0, 1.0)),
            busy,
        ),
        trial(
            "12 in a sliding second",
            asks(Rule::Sliding(12.0, 1.0)),
            busy,
        ),
        trial("3 in a sliding second", asks(Rule::Sliding(3.0, 1.0)), busy),
        trial(
            "3000 in a fixed minute",
            exact(Rule::Fixed(3000.0, 60.0, 50.0)),
            busy,
        ),
        trial(
            "600 in a fixed minute",
            exact(Rule::Fixed(600.0, 60.0, 55.0)),
            busy,
        ),
        trial(
            "bucket of 50 a second, 50 at once",
            asks(Rule::Bucket(50.0, 50.0)),
            busy,
        ),
        trial(
            "bucket of 50 a second, 500 at once",
            exact(Rule::Bucket(50.0, 500.0)),
            busy,
        ),
        trial(
            "bucket of 10 a second, 10 at once",
            exact(Rule::Bucket(10.0, 10.0)),
            busy,
        ),
        trial(
            "bucket of 50 a second, 10 at once",
            exact(Rule::Bucket(50.0, 10.0)),
            busy,
        ),
        trial(
            "5% at random, no limit",
            Scenario {
                random_refusals: 0.05,
                ..scenario(200)
            },
            busy,
        ),
        trial(
            "5% at random, 56 a second",
            Scenario {
                random_refusals: 0.05,
                ..second()
            },
            busy,
        ),
        trial(
            "refused calls count, 56 a second",
            of(counting.asking(Asks::Seconds(1.0))),
            busy,
        ),
        trial("56 a second, 28 after 5 s", changing(56.0, 0.5), busy),
        trial("28 a second, 56 after 5 s", changing(28.0, 2.0), busy),
        trial("none for 3 s, then 56 a second", nothing_at_first, busy),
        Trial {
            processes: 8,
            ..trial("eight processes, 56 a second", second(), busy)
        },
        Trial {
            processes: 8,
            ..trial(
                "eight processes, bucket of 50",
                asks(Rule::Bucket(50.0, 50.0)),
                busy,
            )
        },
        Trial {
            judge: "sim-2",
            ..trial("two models with one limit", second(), busy)
        },
        Trial {
            judge: "sim-2",
            ..trial(
                "two models with two limits",
                Scenario {
                    limits: vec![per_model],
                    ..scenario(200)
                },
                "max_in_flight = 64\nlimit_groups = [\"sim-1\", \"sim-2\"]",
            )
        },
        trial("100,000 input tokens a second", tokens.clone(), busy),
        trial(
            "the same, Anthropic headers",
            Scenario {
                style: Style::Anthropic,
                ..tokens
            },
            busy,
        ),
        trial(
            "50 a second, OpenAI headers",
            announced(Style::OpenAi),
            busy,
        ),
        trial(
            "50 a second, Anthropic headers",
            announced(Style::Anthropic),
            busy,
        ),
        trial(
            "50 a second, declared",
            announced(Style::Silent),
            "requests_per_minute = 3000",
        ),
        trial("no limit, 64 in flight", scenario(200), busy),
        Trial {
            runs: Some(60),
            ..trial("no limit, no latency", scenario(0), busy)
        },
        Trial {
            runs: Some(20),
            ..trial(
                "10% 5xx, 5% malformed, 1% hangs",
                faults,
                "max_in_flight = 64\ntimeout_s = 2",
            )
        },
        Trial {
            runs: Some(2500),
            is_long: true,
            ..trial("100,000 cells", scenario(0), busy)
        },
    ]
}

/// The time and memory that a process used.
struct Resources {
    wall: f64,
    cpu: f64,
    peak_mb: f64,
}

fn run(trial: &Trial, seconds: f64) {
    let simulator = Simulator::start(trial.scenario.clone());
    let runs = trial.runs(seconds);
    let folders: Vec<tempfile::TempDir> = (0..trial.processes)
        .map(|nth| {
            let folder = tempfile::tempdir().expect("a folder");
            bulk::write_with(
                folder.path(),
                &simulator.url(),
                runs,
                trial.declared,
                trial.judge,
            );
            let file = folder.path().join("pipeline.toml");
            let pipeline = std::fs::read_to_string(&file).expect("a pipeline");
            // Each process sends other requests, so that the provider can count requests that were sent twice.
            let prompt = format!("max_output_tokens = {}\n\n[[judge]]", 4000 + nth);
            std::fs::write(&file, pipeline.replace("\n[[judge]]", &prompt)).expect("a pipeline");
            folder
        })
        .collect();
    let run_all = || -> Vec<Resources> {
        std::thread::scope(|scope| {
            let running: Vec<_> = folders
                .iter()
                .map(|folder| scope.spawn(|| run_program(folder.path())))
                .collect();
            running
                .into_iter()
                .map(|process| process.join().expect("a process"))
                .collect()
        })
    };
    let cold = run_all();
    let (counts, arrivals) = (simulator.counts(), simulator.arrivals());
    let warm = run_all();
    assert_eq!(
        simulator.counts().requests,
        counts.requests,
        "a second run sends nothing"
    );
    let failed: usize = folders
        .iter()
        .map(|folder| {
            bulk::manifest(folder.path(), "a")["failures"]
                .as_array()
                .map_or(0, Vec::len)
        })
        .sum();
    let calls = bulk::calls(runs) * trial.processes;
    let peak_mb = cold
        .iter()
        .chain(&warm)
        .map(|used| used.peak_mb)
        .fold(0.0, f64::max);
    let wall = cold.iter().map(|used| used.wall).fold(0.0, f64::max);
    let until = |end: f64| show(trial.used(&arrivals, end));
    let law = |end: f64| trial.law(end, bulk::calls(runs)).map_or("-".into(), show);
    println!(
        "{:<36} {:>6} {:>12} {:>12} {:>12} {:>12} {:>8.2} {:>8.3} {:>10.3} {:>7.0} {:>4} {:>5} {:>6.2}",
        trial.name,
        calls,
        until(10.0),
        until(seconds),
        law(10.0),
        law(seconds),
        wall,
        wall / ideal(trial, calls, &arrivals),
        cold.iter().map(|used| used.cpu).sum::<f64>() / calls as f64 * 1000.0,
        peak_mb,
        failed,
        counts.answered as i64 + failed as i64 - calls as i64,
        warm.iter().map(|used| used.wall).fold(0.0, f64::max),
    );
}

/// The shortest possible wall time: until the limit allows the last call, plus the time of its reply.
fn ideal(trial: &Trial, calls: usize, arrivals: &limited::Arrivals) -> f64 {
    let amount = match trial.unit() {
        Unit::Requests => calls as f64,
        Unit::InputTokens => arrivals.input.iter().sum(),
    };
    let (mut low, mut high) = (0.0, 1e5);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if trial.allowed(middle) < amount {
            low = middle
        } else {
            high = middle
        }
    }
    low + trial.scenario.latency.as_secs_f64()
}

fn run_program(folder: &Path) -> Resources {
    let began = Instant::now();
    let mut command = bulk::compeval(
        &program(),
        folder,
        &["run", "--label", "a", "--no-progress"],
    );
    let child = command.stderr(Stdio::null()).spawn().expect("the program");
    watch(child, began)
}

/// Watches a process until it ends. Its resources are read before the system forgets it.
fn watch(mut child: Child, began: Instant) -> Resources {
    let place = format!("/proc/{}", child.id());
    let read = |file: &str| std::fs::read_to_string(format!("{place}/{file}")).unwrap_or_default();
    let mut peak_kb = 0.0_f64;
    loop {
        let stat = read("stat");
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .collect();
        if fields.first().is_none_or(|state| *state == "Z") {
            let ticks = |nth: usize| {
                fields
                    .get(nth)
                    .and_then(|field| field.parse::<f64>().ok())
                    .unwrap_or(f64::NAN)
            };
            let wall = began.elapsed().as_secs_f64();
            let cpu = (ticks(11) + ticks(12)) / 100.0;
            let _ = child.wait();
            return Resources {
                wall,
                cpu,
                peak_mb: peak_kb / 1024.0,
            };
        }
        let status = read("status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = peak.and_then(|text| {
            text.trim()
                .trim_end_matches(" kB")
                .trim()
                .parse::<f64>()
                .ok()
        });
        peak_kb = peak_kb.max(kb.unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(2));
    }
}
