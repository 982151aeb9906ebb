//! kill -9 at any moment: what was acknowledged stays.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use compeval::action::Digest;
use compeval::entries::key_of;
use store::cache::{CacheSnapshot, EntryStatus, Lookup};
use tempfile::tempdir;

use super::support::*;

const FOLDER: &str = "COMPEVAL_TEST_CACHE";
const PRUNED: &str = "COMPEVAL_TEST_PRUNED";
const FIRST: &str = "COMPEVAL_TEST_FIRST";
const COUNT: &str = "COMPEVAL_TEST_COUNT";

/// Not a test of its own: what the others start and kill. It puts entries, many at once, prints each number once it
/// is acknowledged, and then waits.
#[test]
fn helper_puts_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let count: u64 = std::env::var(COUNT).unwrap().parse().unwrap();
    let store = open(Path::new(&folder));
    println!("\nready");
    block(async {
        let mut in_flight = futures::stream::FuturesUnordered::new();
        let one = async |n: u64| {
            let record = store
                .put_reply(key(n), &meta(n).header(), body(n, 200 + n as usize % 5000))
                .await
                .unwrap();
            println!("ack {n}");
            store.note(
                &record,
                &EntryStatus::Output {
                    out: Digest::hash(n.to_le_bytes()),
                    parser: 1,
                },
            );
        };
        for n in first..first.saturating_add(count) {
            in_flight.push(one(n));
            if in_flight.len() >= 24 {
                futures::StreamExt::next(&mut in_flight).await;
            }
        }
        while futures::StreamExt::next(&mut in_flight).await.is_some() {}
    });
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn start(folder: &Path, first: u64, count: u64) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cache::kill::helper_puts_until_it_is_killed",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .env(FIRST, first.to_string())
        .env(COUNT, count.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

/// Reads acknowledgements and kills the child after `enough` of them. Answers all that came.
fn killed_after(enough: usize, folder: &Path, first: u64) -> Vec<u64> {
    let (mut child, mut lines) = start(folder, first, u64::MAX);
    let mut acked = Vec::new();
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        acked.extend(
            line.trim()
                .strip_prefix("ack ")
                .map(|n| n.parse::<u64>().unwrap()),
        );
        line.clear();
        if acked.len() == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acked
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let dir = tempdir().unwrap();
    let mut acked = Vec::new();
    for (round, enough) in [1, 3, 40, 7, 90, 25, 160, 2].into_iter().enumerate() {
        let came = killed_after(enough, dir.path(), round as u64 * 1_000_000);
        assert!(came.len() >= enough, "the helper works");
        acked.extend(came);
        let snapshot = CacheSnapshot::open(dir.path()).unwrap();
        acked.iter().for_each(|n| expect(&snapshot, *n));
        let store = open(dir.path());
        acked.iter().for_each(|n| expect(&store, *n));
        assert_eq!(store.notices(), Vec::<String>::new());
        if round % 3 == 0 {
            assert_eq!(store.verify().unwrap(), []);
        }
        assert!(
            store.records().len() <= acked.len() + 24 * (round + 1),
            "no more than what was in flight besides"
        );
    }
}

fn expect(cache: &impl Lookup, n: u64) {
    let record = cache
        .find(&key(n))
        .unwrap_or_else(|| panic!("{n} was acknowledged"));
    assert_eq!(
        cache.body(&record).unwrap(),
        body(n, 200 + n as usize % 5000)
    );
}

#[test]
fn a_second_process_sees_who_writes_and_can_read() {
    let dir = tempdir().unwrap();
    let (mut child, mut lines) = start(dir.path(), 0, 5);
    let mut line = String::new();
    while !line.starts_with("ack") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the helper works");
    }
    let error = store::cache::Store::open(dir.path(), holder(), key_of)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("process {} (compeval run, since 20", child.id())),
        "{error}"
    );
    let first: u64 = line.trim().strip_prefix("ack ").unwrap().parse().unwrap();
    expect(&CacheSnapshot::open(dir.path()).unwrap(), first);
    child.kill().unwrap();
    child.wait().unwrap();
    expect(&open(dir.path()), first);
}

/// Not a test of its own: it puts entries and prunes most of them, again and again, until it is killed. What it prints is
/// never pruned.
#[test]
fn helper_prunes_until_it_is_killed() {
    let Ok(folder) = std::env::var(PRUNED) else {
        return;
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let store = open(Path::new(&folder));
    println!("\nready");
    for n in (first..).step_by(10) {
        for n in n..n + 10 {
            put(&store, n, body(n, 200 + n as usize % 5000));
        }
        println!("ack {n}");
        let pruned: Vec<_> = (n + 1..n + 10).map(key).collect();
        store.prune(&pruned, &Default::default()).unwrap();
    }
}

#[test]
fn a_kill_while_packs_are_removed_loses_nothing_and_is_not_noticed() {
    let dir = tempdir().unwrap();
    let mut acked = Vec::new();
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "cache::kill::helper_prunes_until_it_is_killed",
                "--nocapture",
            ])
            .env(PRUNED, dir.path())
            .env(FIRST, (round * 1_000_000).to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acks = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| line.trim().strip_prefix("ack ")?.parse::<u64>().ok());
        let (before, wanted) = (acked.len(), 1 + round as usize % 4);
        acked.extend(acks.take(wanted));
        assert_eq!(acked.len() - before, wanted, "the helper works");
        // somewhere in the prune that follows
        std::thread::sleep(std::time::Duration::from_millis(round * 3));
        child.kill().unwrap();
        child.wait().unwrap();
        let snapshot = CacheSnapshot::open(dir.path()).unwrap();
        acked.iter().for_each(|n| expect(&snapshot, *n));
        let store = open(dir.path());
        acked.iter().for_each(|n| expect(&store, *n));
        assert_eq!(
            (store.notices(), store.verify().unwrap()),
            (Vec::<String>::new(), vec![]),
            "round {round}"
        );
    }
}
