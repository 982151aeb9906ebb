//! The cost of a search for open-book answers in a session of 2 MB: the index, which is built once for a session, and a
//! query with its four excerpts.
//!
//! `cargo bench -p compeval-tools --bench search`; the target is 20 ms a query.

#![allow(missing_docs)]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lexical::search::{SearchIndex, excerpt};
use sessions::transcript::estimate_tokens;

/// The numbers of bytes of a session, and of a message, which is as long as results of tools.
const SESSION: usize = 2 << 20;
const MESSAGE: usize = 6_000;
/// The defaults of `[answer.recovery]`.
const RESULTS: usize = 4;
const EXCERPT_TOKENS: u64 = 600;

/// Messages like files that were read, with no two lines the same; every fifth message is Chinese.
fn messages() -> Vec<String> {
    let message = |number: usize| {
        let mut text = String::with_capacity(MESSAGE + 100);
        for line in 0.. {
            if text.len() >= MESSAGE {
                break;
            }
            // Writing to a string cannot fail.
            let _ = match number % 5 {
                0 => writeln!(
                    text,
                    "{line} 在 src/part{number}/store.rs 中把端口改为 {}，重试上限为 {line}",
                    8000 + number
                ),
                _ => {
                    writeln!(
                        text,
                        "{line:>4}  let entry_{number}_{line} = parse_ledger(&input[{}..])?;",
                        line * 7 % 97
                    )
                }
            };
        }
        text
    };
    (0..SESSION / MESSAGE).map(message).collect()
}

/// Searches like `compeval::plan`: ranks all messages, skips those that are in the context, and makes excerpts.
fn search(index: &SearchIndex, messages: &[String], context: &str, query: &str) -> Vec<String> {
    let ranking = index.rank(query, 0..messages.len());
    let found = ranking.positions.iter().filter_map(|at| messages.get(*at));
    let hidden = found
        .filter(|message| !context.contains(message.trim()))
        .take(RESULTS);
    hidden
        .map(|message| {
            excerpt(message, &ranking, EXCERPT_TOKENS, |part| {
                estimate_tokens(part).0
            })
        })
        .collect()
}

fn benches(criterion: &mut Criterion) {
    let messages = messages();
    let bytes: usize = messages.iter().map(String::len).sum();
    let index = SearchIndex::new(&messages);
    let context = messages
        .iter()
        .rev()
        .take(2)
        .cloned()
        .collect::<Vec<_>>()
        .concat();
    let queries = [
        (
            "a rare name",
            "Where is entry_217_33 parsed, and from which part of the input?",
        ),
        (
            "words of every message",
            "which entry of the ledger does parse_ledger read from the input?",
        ),
        ("Chinese", "端口改为 8040 之后，重试上限是多少？"),
    ];
    let mut group = criterion.benchmark_group(format!("search in {} KB", bytes >> 10));
    group.sample_size(20);
    for (name, query) in queries {
        group.bench_function(name, |bench| {
            bench.iter(|| search(&index, &messages, &context, black_box(query)))
        });
    }
    group.sample_size(10);
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("index", |bench| {
        bench.iter(|| SearchIndex::new(black_box(&messages)))
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
