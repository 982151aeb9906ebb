//! The cost of the cache: making a key, finding an entry, storing an entry durably, and opening a snapshot.

#![allow(missing_docs, clippy::unwrap_used)]
#![allow(unreachable_pub, reason = "the entries serve several binaries")]

use std::hint::black_box;
use std::path::Path;

use compeval::action::{ActionKey, Digest};
use compeval::entries::key_of;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use store::cache::{CacheSnapshot, Lookup, Store};

#[path = "../../tests/support/entries.rs"]
mod entries;

use entries::{body, inputs};

fn open(dir: &Path) -> Store {
    Store::open(dir, "bench", key_of).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

async fn put_all(store: &Store, numbers: std::ops::Range<u64>, length: usize) -> Vec<ActionKey> {
    let put = async |n: u64| entries::put(store, n, length).await.key;
    futures::future::join_all(numbers.map(put)).await
}

fn filled(dir: &Path, count: u64, length: usize) -> Vec<ActionKey> {
    let store = open(dir);
    let runtime = runtime();
    let starts = (0..count).step_by(500);
    let keys = starts
        .flat_map(|n| runtime.block_on(put_all(&store, n..(n + 500).min(count), length)))
        .collect();
    store.close().unwrap();
    keys
}

fn key_of_a_request(c: &mut Criterion) {
    let text = String::from_utf8(body(1, 100_000).to_vec()).unwrap();
    let mut group = c.benchmark_group("cache");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("key of a 100 KB request", |b| {
        b.iter(|| inputs(1, black_box(&text)).key())
    });
    group.finish();
}

fn get(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let keys = filled(dir.path(), 2000, 8000);
    let store = open(dir.path());
    let mut next = keys.iter().cycle();
    c.bench_function("cache/find", |b| {
        b.iter(|| store.find(black_box(next.next().unwrap())).unwrap())
    });
    c.bench_function("cache/find and read 8 KB", |b| {
        b.iter(|| {
            store
                .body(&store.find(next.next().unwrap()).unwrap())
                .unwrap()
        });
    });
    let absent = ActionKey(Digest::hash("absent"));
    c.bench_function("cache/miss", |b| b.iter(|| store.find(black_box(&absent))));
}

fn put(c: &mut Criterion) {
    let runtime = runtime();
    let mut group = c.benchmark_group("cache");
    group.sample_size(20);
    for together in [1, 256] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let mut from = 0;
        group.throughput(Throughput::Elements(together));
        group.bench_function(format!("durable put of 8 KB, {together} at once"), |b| {
            b.iter_batched(
                || {
                    from += together;
                    from
                },
                |from| runtime.block_on(put_all(&store, from..from + together, 8000)),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn snapshot(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 20_000, 2000);
    let mut group = c.benchmark_group("cache");
    group.sample_size(20);
    group.bench_function("snapshot of 20,000 entries", |b| {
        b.iter(|| CacheSnapshot::open(dir.path()).unwrap().len())
    });
    group.bench_function("open and close with 20,000 entries", |b| {
        b.iter(|| open(dir.path()).close().unwrap())
    });
    group.finish();
}

criterion_group!(benches, key_of_a_request, get, put, snapshot);
criterion_main!(benches);
