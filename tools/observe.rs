//! Simulates sessions with and without an effect of compactions, and shows in how many of them `compeval observe` finds
//! one.
//!
//! `cargo run --release -p compeval-tools --bin observe [STUDIES]`
//!
//! Every study has 16 sessions with two compactions each. A session reads a known file in six of ten turns, and each
//! such read is a re-read with a probability that depends on the turn. The random numbers have a fixed seed, so the
//! same number of studies always gives the same output.

#![allow(clippy::print_stdout)]

use base::random::Random;
use sessions::observe::{SurroundedWindow, WINDOW_TURNS, WindowFigures, local_difference};

const STUDIES: usize = 2_000;
const SESSIONS: usize = 16;
/// The number of turns of a session, and about where it is compacted.
const TURNS: usize = 340;
const COMPACTIONS: [usize; 2] = [90, 220];
/// The number of turns between a window and its controls.
const DISTANCE: usize = 20;
const READS_PER_TURN: f64 = 0.6;

/// The plan of a session: its base share of re-reads, its compactions, and where its phase changes.
struct Plan {
    base: f64,
    compactions: [usize; 2],
    phase: usize,
}

impl Plan {
    fn draw(random: &mut Random) -> Plan {
        let mut jitter = |turn: usize| turn + (random.uniform() * 30.0) as usize;
        let compactions = COMPACTIONS.map(&mut jitter);
        // Half of all changes of phase are at a compaction.
        let elsewhere = jitter(60);
        let phase = if random.uniform() < 0.5 {
            compactions[0]
        } else {
            elsewhere + (random.uniform() * 200.0) as usize
        };
        Plan {
            base: 0.1 + 0.1 * random.uniform(),
            compactions,
            phase,
        }
    }

    fn is_in_window(&self, turn: usize) -> bool {
        self.compactions
            .iter()
            .any(|at| (*at..at + WINDOW_TURNS).contains(&turn))
    }
}

/// The probability that a read in this turn is a re-read.
type Share = fn(&Plan, usize) -> f64;

/// A kind of sessions, and the effect that is to be found in them, if any.
struct Kind {
    name: &'static str,
    share: Share,
    effect: Option<f64>,
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "healthy: the share stays the same",
        share: |plan, _| plan.base,
        effect: None,
    },
    Kind {
        name: "healthy: it grows with what was read before",
        share: |plan, turn| plan.base + 0.5 * turn as f64 / (turn as f64 + 80.0),
        effect: None,
    },
    Kind {
        name: "healthy: it rises evenly",
        share: |plan, turn| plan.base + 0.6 * turn as f64 / TURNS as f64,
        effect: None,
    },
    Kind {
        name: "healthy: it changes once and stays",
        share: |plan, turn| plan.base + if turn >= plan.phase { 0.3 } else { 0.0 },
        effect: None,
    },
    Kind {
        name: "planted: +.35 for 20 turns",
        share: |plan, turn| plan.base + if plan.is_in_window(turn) { 0.35 } else { 0.0 },
        effect: Some(0.35),
    },
    Kind {
        name: "planted: +.10 for 20 turns",
        share: |plan, turn| plan.base + if plan.is_in_window(turn) { 0.10 } else { 0.0 },
        effect: Some(0.10),
    },
];

fn window(random: &mut Random, plan: &Plan, share: Share, from: usize) -> WindowFigures {
    let (mut reads, mut again) = (0, 0);
    for turn in from..from + WINDOW_TURNS {
        let is_read = random.uniform() < READS_PER_TURN;
        reads += usize::from(is_read);
        again += usize::from(is_read && random.uniform() < share(plan, turn));
    }
    WindowFigures {
        turns: WINDOW_TURNS,
        reads: Some(reads),
        reads_of_known_files: Some(reads),
        re_read_tokens: None,
        re_reads: Some(again),
        repeated_failures: None,
        turns_to_edit: None,
    }
}

/// In how many studies re-reads are found to differ, and in how many a comparison with only one control would find it;
/// both in percent.
fn findings(kind: &Kind, studies: usize) -> [f64; 2] {
    let mut random = Random::seeded(17);
    let (mut found, mut naive) = (0, 0);
    for _ in 0..studies {
        let mut session = |_| -> Vec<SurroundedWindow> {
            let plan = Plan::draw(&mut random);
            let mut at = |from: usize| window(&mut random, &plan, kind.share, from);
            let mut surrounded = |from: usize| SurroundedWindow {
                window: at(from),
                before: at(from - DISTANCE - WINDOW_TURNS),
                after: at(from + WINDOW_TURNS + DISTANCE),
            };
            plan.compactions
                .iter()
                .map(|from| surrounded(*from))
                .collect()
        };
        let sessions: Vec<_> = (0..SESSIONS).map(&mut session).collect();
        let Some(rate) =
            local_difference(&sessions).and_then(|found| found.re_reads_per_known_read)
        else {
            continue;
        };
        found += usize::from(rate.finding.is_some());
        naive += usize::from(rate.before.ci95.is_some_and(|ci| !ci.contains(0.0)));
    }
    [found, naive].map(|count| 100.0 * count as f64 / studies as f64)
}

fn main() {
    let studies = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .filter(|n| *n > 0)
        .unwrap_or(STUDIES);
    println!(
        "{studies} studies of {SESSIONS} sessions; percent in which re-reads are found to differ:\n"
    );
    println!("| {:<45} | both controls | one before |", "sessions");
    println!("| {:-<45} | ------------: | ---------: |", "");
    let mut held = true;
    for kind in &KINDS {
        let [found, naive] = findings(kind, studies);
        println!("| {:<45} | {found:13.1} | {naive:10.1} |", kind.name);
        held &= match kind.effect {
            None => found <= 3.0,
            Some(effect) => effect < 0.35 || found >= 95.0,
        };
    }
    println!(
        "\nAt most 3% in healthy sessions, at least 95% where .35 is planted: {}.",
        if held { "yes" } else { "NO" }
    );
}
