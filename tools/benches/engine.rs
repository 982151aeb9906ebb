//! The cost of planning and of running again a matrix of 10,000 cells whose actions are all cached.

#![allow(missing_docs, clippy::unwrap_used, unreachable_pub)]

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};

#[path = "../../tests/support/brain.rs"]
mod brain;
#[path = "../../tests/support/bulk.rs"]
mod bulk;
#[path = "../program.rs"]
mod program;
#[path = "../../tests/support/simulator.rs"]
mod simulator;

use program::program;
use simulator::{Scenario, Simulator};

fn compeval(folder: &Path, arguments: &[&str]) {
    let ended = bulk::compeval(&program(), folder, arguments)
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

fn warm(criterion: &mut Criterion) {
    let simulator = Simulator::start(Scenario {
        answers: Some(bulk::reply),
        ..Scenario::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let runs = 10_000 / bulk::CELLS;
    bulk::write(folder.path(), &simulator.url(), runs, "max_in_flight = 64");
    compeval(folder.path(), &["run", "--label", "a", "--no-progress"]);
    let mut group = criterion.benchmark_group("10,000 cells, all cached");
    group.sample_size(10);
    group.bench_function("plan", |bench| {
        bench.iter(|| compeval(folder.path(), &["plan", "--json"]))
    });
    group.bench_function("run", |bench| {
        bench.iter(|| compeval(folder.path(), &["run", "--label", "a", "--no-progress"]))
    });
    group.finish();
    let mut group = criterion.benchmark_group("start");
    group.bench_function("--version", |bench| {
        bench.iter(|| compeval(folder.path(), &["--version"]))
    });
}

criterion_group!(benches, warm);
criterion_main!(benches);
