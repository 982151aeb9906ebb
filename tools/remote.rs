//! Measures a shared cache in a bucket: how long a machine with an empty cache takes to pull 12,000 objects at 20 ms a
//! request, and to put them. The bucket is a simulator of S3 in this process.
//!
//! `cargo run --release -p compeval-tools --bin remote`

#![allow(unreachable_pub, reason = "the simulator serves several binaries")]
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[path = "../tests/support/bucket.rs"]
mod bucket;
#[path = "../tests/support/entries.rs"]
mod entries;
#[path = "../tests/support/loopback.rs"]
mod loopback;

use bucket::{BUCKET, KEY_ID, ObjectStore};
use compeval::entries::key_of;
use futures::StreamExt;
use store::cache::Store;
use store::remote::{Found, RemoteMode, RemoteSettings, SharedCache};

const OBJECTS: u64 = 12_000;
const LATENCY: Duration = Duration::from_millis(20);
/// The number of bytes of a reply.
const REPLY: usize = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["put", folder] => runtime.block_on(put(Path::new(folder))),
        ["pull", folder] => runtime.block_on(pull(Path::new(folder))),
        _ => measure(),
    }
}

/// Does both in processes of their own, as on two machines.
fn measure() {
    let (folder, store) = (tempfile::tempdir().unwrap(), ObjectStore::start());
    store.contents().latency = LATENCY;
    for what in ["put", "pull"] {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args([what, &folder.path().join(what).display().to_string()])
            .env("AWS_ENDPOINT_URL", store.endpoint())
            .env("AWS_ACCESS_KEY_ID", KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", "none")
            .status()
            .unwrap();
        assert!(ended.success());
        println!("{} requests", store.take_asked().len());
    }
}

fn shared() -> SharedCache {
    let settings = RemoteSettings {
        url: format!("s3://{BUCKET}/team").parse().unwrap(),
        mode: RemoteMode::Write,
        key: None,
    };
    SharedCache::new(settings, key_of).unwrap()
}

async fn put(folder: &Path) {
    let (store, shared) = (
        Store::open(folder, "measurement", key_of).unwrap(),
        shared(),
    );
    let made = futures::stream::iter(0..OBJECTS)
        .map(|n| entries::put(&store, n, REPLY))
        .buffer_unordered(256);
    let keys: Vec<_> = made.map(|record| record.key).collect().await;
    let begun = Instant::now();
    let puts = keys.iter().map(|key| shared.put(&store, key, false));
    let mut puts = futures::stream::iter(puts).buffer_unordered(SharedCache::AT_ONCE);
    while let Some(put) = puts.next().await {
        put.unwrap();
    }
    println!("{OBJECTS} put in {:.2} s", begun.elapsed().as_secs_f64());
}

async fn pull(folder: &Path) {
    let (store, shared) = (
        Store::open(folder, "measurement", key_of).unwrap(),
        shared(),
    );
    let keys: Vec<_> = (0..OBJECTS)
        .map(|n| entries::inputs(n, "[]").key())
        .collect();
    let begun = Instant::now();
    let pulls = keys.iter().map(|key| shared.pull(&store, key));
    let mut pulls = futures::stream::iter(pulls).buffer_unordered(SharedCache::AT_ONCE);
    while let Some(pulled) = pulls.next().await {
        assert_eq!(pulled.unwrap(), Found::Output);
    }
    println!("{OBJECTS} pulled in {:.2} s", begun.elapsed().as_secs_f64());
}
