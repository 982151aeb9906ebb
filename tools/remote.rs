//! Measures the cost of a shared cache in a bucket: requests, bytes and seconds, at 20 ms a request. It measures the
//! first run on a machine with an empty cache, until its first cell is done and until everything is pulled;
//! `cache pull` and a dry `cache prune --remote`; and an upload of 6,000 entries. All of this is measured after one
//! upload and after 500. The bucket is a simulator of S3 in this process; each machine is a process of its own.
//!
//! `cargo run --release -p compeval-tools --bin remote`

#![allow(unreachable_pub, reason = "the simulator serves several binaries")]
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/support/bucket.rs"]
mod bucket;
#[path = "../tests/support/entries.rs"]
mod entries;
#[path = "../tests/support/loopback.rs"]
mod loopback;

use bucket::{BUCKET, KEY_ID, ObjectStore};
use compeval::action::ActionKey;
use compeval::entries::key_of;
use futures::StreamExt;
use store::cache::Store;
use store::remote::{RemoteMode, RemoteSettings, SharedCache, SigningKey, TrustedWriter};

const KEYS: u64 = 100_000;
const PUSHED: u64 = 6_000;
const LATENCY: Duration = Duration::from_millis(20);
/// The number of actions that a run has in progress at once.
const IN_FLIGHT: usize = 64;
/// The number of bytes of a reply.
const REPLY: usize = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["fill", folder, from, count, runs] => {
            runtime.block_on(fill(
                Path::new(folder),
                number(from),
                number(count),
                number(runs),
            ));
        }
        ["warm", folder] => runtime.block_on(warm(Path::new(folder))),
        ["pull", folder] => runtime.block_on(pull(Path::new(folder))),
        ["prune"] => runtime.block_on(prune()),
        _ => measure(),
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

fn measure() {
    println!(
        "{KEYS} keys of {REPLY} bytes, {} ms a request, {IN_FLIGHT} actions under way",
        LATENCY.as_millis()
    );
    println!("{:<52} {:>9} {:>9} {:>9}", "", "requests", "MB", "seconds");
    for runs in [1, 500] {
        let folder = tempfile::tempdir().unwrap();
        let store = ObjectStore::start();
        let (_, secret) = SigningKey::generate().unwrap();
        let start = |arguments: &[String]| {
            let mut child = child(&store, &secret, arguments);
            let out = BufReader::new(child.stdout.take().unwrap());
            (child, out.lines())
        };
        let place = |name: &str| folder.path().join(name).display().to_string();
        let writer = place("writer");
        let arguments =
            ["fill", &writer, "0", &KEYS.to_string(), &runs.to_string()].map(str::to_owned);
        start(&arguments).0.wait().unwrap();
        let packs = store.names("team/packs").len();
        let after = format!(
            "after {runs} {} ({packs} packs)",
            if runs == 1 { "run" } else { "runs" }
        );

        store.contents().latency = LATENCY;
        store.take_asked();
        let begun = Instant::now();
        let (mut child, mut lines) = start(&["warm".to_owned(), place("reader")]);
        let mut sum = (0, 0);
        for what in ["list read", "first cell", "all pulled"] {
            assert!(
                lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| line == what)),
                "{what}"
            );
            let asked = store.take_asked();
            sum = (
                sum.0 + asked.len(),
                sum.1 + asked.iter().map(|(_, bytes)| bytes).sum::<u64>(),
            );
            print_line(&format!("{after}: {what}"), sum, begun);
        }
        child.wait().unwrap();

        for (what, arguments) in [
            ("cache pull", vec!["pull".to_owned(), place("second")]),
            ("cache prune --remote", vec!["prune".to_owned()]),
        ] {
            let begun = Instant::now();
            start(&arguments).0.wait().unwrap();
            let asked = store.take_asked();
            let bytes = asked.iter().map(|(_, bytes)| bytes).sum();
            print_line(&format!("{after}: {what}"), (asked.len(), bytes), begun);
        }

        let arguments =
            ["fill", &writer, &KEYS.to_string(), &PUSHED.to_string(), "1"].map(str::to_owned);
        let (mut child, mut lines) = start(&arguments);
        assert!(lines.next().is_some());
        let loaded = Instant::now();
        store.take_asked();
        child.wait().unwrap();
        let asked = store.take_asked();
        let uploaded: u64 = asked.iter().map(|(_, bytes)| bytes).sum();
        print_line(
            &format!("{after}: {PUSHED} more pushed (without the list)"),
            (asked.len(), uploaded),
            loaded,
        );
    }
}

fn print_line(what: &str, (requests, bytes): (usize, u64), begun: Instant) {
    println!(
        "{what:<52} {requests:>9} {:>9.1} {:>9.2}",
        bytes as f64 / 1e6,
        begun.elapsed().as_secs_f64()
    );
}

fn child(store: &ObjectStore, secret: &str, arguments: &[String]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(arguments)
        .env("AWS_ENDPOINT_URL", store.endpoint());
    command
        .env("AWS_ACCESS_KEY_ID", KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", "none")
        .env("COMPEVAL_SIGNING_KEY", secret);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn shared() -> SharedCache {
    let key = SigningKey::parse(&std::env::var("COMPEVAL_SIGNING_KEY").unwrap()).unwrap();
    let writer = TrustedWriter {
        name: "ci".into(),
        key: key.public(),
    };
    let url = format!("s3://{BUCKET}/team").parse().unwrap();
    let settings = RemoteSettings {
        url,
        trust: vec![writer],
        mode: RemoteMode::Write,
        key: Some(key),
        unsigned: false,
        texts: false,
        assignment: None,
        part: None,
    };
    SharedCache::new(settings).unwrap()
}

fn open(folder: &Path) -> Store {
    Store::open(folder, "measurement", key_of).unwrap()
}

/// Makes entries, and uploads them in `runs` uploads.
async fn fill(folder: &Path, from: u64, count: u64, runs: u64) {
    let store = open(folder);
    for run in 0..runs {
        let shared = shared();
        shared.load().await.unwrap();
        println!("list read");
        let (first, next) = (from + run * count / runs, from + (run + 1) * count / runs);
        let made = futures::stream::iter(first..next)
            .map(|n| entries::put(&store, n, REPLY))
            .buffer_unordered(256);
        let mut keys: Vec<ActionKey> = made.map(|record| record.key).collect().await;
        keys.sort_unstable();
        shared.push(&store, &keys).await.unwrap();
    }
    store.close().unwrap();
}

/// Pulls everything like a run: in cells of three actions, where the next action is known only after the previous one
/// was pulled.
async fn warm(folder: &Path) {
    let store = open(folder);
    let shared = shared();
    shared.load().await.unwrap();
    println!("list read");
    let cell = |first: u64| {
        let (store, shared) = (&store, &shared);
        async move {
            for n in first..(first + 3).min(KEYS) {
                shared
                    .pull(store, entries::inputs(n, "[]").key())
                    .await
                    .unwrap();
            }
        }
    };
    let mut cells = futures::stream::iter((0..KEYS).step_by(3))
        .map(cell)
        .buffer_unordered(IN_FLIGHT);
    cells.next().await;
    println!("first cell");
    while cells.next().await.is_some() {}
    println!("all pulled");
    assert_eq!(shared.summary().unwrap().pulled.entries, KEYS);
    drop(cells);
    store.close().unwrap();
}

/// Does the same as `cache pull`.
async fn pull(folder: &Path) {
    let store = open(folder);
    let shared = shared();
    shared.load().await.unwrap();
    assert_eq!(
        shared.pull_all(&store).await.unwrap().unwrap().entries,
        KEYS
    );
    store.close().unwrap();
}

/// Does the same as a dry `cache prune --remote`, with one label that protects half of the keys.
async fn prune() {
    let shared = shared();
    shared
        .push_label(
            "baseline",
            &(0..KEYS / 2)
                .map(|n| entries::inputs(n, "[]").key())
                .collect::<Vec<_>>(),
        )
        .await
        .unwrap();
    shared.prune(true).await.unwrap();
}
