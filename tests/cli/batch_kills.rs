//! kill -9 while batches are created, polled and collected: nothing is paid twice, and nothing is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use super::batch_server::{BatchServer, Behaviour, Vendor};
use super::batches::{VENDORS, live, project};
use super::project::{Project, Running};

const RUN: &str = "run --label a --runs 1 --lane batch --wait";

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Kills several runs of one project, lets the last one end, and compares it with a live run. Returns the call during
/// or after which each run was killed.
fn survive_kills(vendor: Vendor, kills: u64, random: &mut Random) -> Vec<&'static str> {
    let server = BatchServer::start(vendor);
    let project = project(&server);
    server.book().behaviour = Behaviour {
        latency: Duration::from_millis(10),
        ..Behaviour::default()
    };
    let killed = (0..kills)
        .filter_map(|_| kill(project.start(RUN), &server, random))
        .collect();
    end(&project, &server, vendor);
    killed
}

/// Kills a run shortly after a random one of its calls; `None` if the run ended before.
fn kill(mut running: Running, server: &BatchServer, random: &mut Random) -> Option<&'static str> {
    let last = server.book().calls.len() as u64 + 1 + random.below(6);
    while (server.book().calls.len() as u64) < last && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_micros(random.below(40_000)));
    let was_running = !running.has_ended();
    running.kill();
    let call = server.book().calls.last().copied();
    call.filter(|_| was_running)
}

fn end(project: &Project, server: &BatchServer, vendor: Vendor) {
    project.expect(0, RUN);
    assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
    // As without batches, a live request that was in flight at a kill is lost. Nothing of a batch is lost.
    let book = server.book();
    assert_eq!(
        book.repeated.first(),
        None,
        "{vendor:?}: billed again, in {} batches",
        book.batches.len()
    );
}

#[test]
fn kill_9_at_any_point_pays_nothing_twice() {
    for vendor in VENDORS {
        survive_kills(vendor, 5, &mut Random(0x5eed));
    }
}

/// `just batch-kills COUNT` kills this many runs at each vendor, five in each project.
#[test]
#[ignore = "takes minutes"]
#[allow(clippy::print_stderr, reason = "a test that reports")]
fn kill_9_at_many_points_pays_nothing_twice() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let count = number("COMPEVAL_KILLS").unwrap_or(200);
    let seed = number("COMPEVAL_SEED").unwrap_or_else(|| u64::from(std::process::id()) | 1);
    let mut random = Random(seed);
    for vendor in VENDORS {
        let (mut killed, mut projects): (BTreeMap<&str, u64>, u64) = (BTreeMap::new(), 0);
        while killed.values().sum::<u64>() < count {
            survive_kills(vendor, 5, &mut random)
                .into_iter()
                .for_each(|call| *killed.entry(call).or_default() += 1);
            projects += 1;
        }
        let total: u64 = killed.values().sum();
        eprintln!(
            "{vendor:?}, seed {seed}: {total} kills of runs of {projects} projects, last call {killed:?}"
        );
    }
}
