//! Measures the speed of redaction on 100 MB without a key, once of text and once of random bytes, like compressed
//! data.
//!
//! `cargo run --release -p compeval-base --example redaction`

#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::time::Instant;

use compeval_base::redaction::{add_key, redact_bytes};

const MEGABYTES: usize = 100;

fn main() {
    let key: String = (0..164)
        .map(|at| char::from(b"Zk3vQ9xWb7LmT2cRy8NfHs5J"[(at * at + at / 7) % 24]))
        .collect();
    add_key(&key);
    let line =
        br#"{"role":"assistant","content":"The worker in src/queue/worker.py retries 5 times, then parks the job."}"#;
    let text: Vec<u8> = line
        .iter()
        .chain(b"\n")
        .copied()
        .cycle()
        .take(1 << 20)
        .collect();
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let binary: Vec<u8> = (0..1 << 20).map(|_| random()).collect();
    for (name, block) in [("text", &text), ("compressed", &binary)] {
        let start = Instant::now();
        let changed = (0..MEGABYTES)
            .filter(|_| redact_bytes(block).as_ref() != block.as_slice())
            .count();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name}: {:.0} MB/s, {changed} blocks changed",
            MEGABYTES as f64 / seconds
        );
    }
}
