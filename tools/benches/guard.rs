//! The time of `guard` for a history of 200,000 tokens: at most 20 ms.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use base::message::{Message, Role, ToolCall};
use base::tokens::count_tokens;
use criterion::{Criterion, criterion_group, criterion_main};
use guard::{Options, guard};

const SUMMARY: &str = "1. Request:\n   The user asked to make the retry limit in `src/pool.rs` configurable by RETRY_LIMIT.\n\n2. Next Step:\n   \
    Add RETRY_LIMIT and run the tests of src/mod_7.rs";

fn history() -> Vec<Message> {
    let mut messages = vec![Message::text(
        Role::User,
        "Do not touch legacy_config.toml.",
    )];
    let mut tokens = 0;
    for step in 0.. {
        let mut call = Message::text(
            Role::Assistant,
            format!("Step {step}: I look at how the pool drains in src/pool.rs."),
        );
        call.tool_calls.push(ToolCall::new(
            format!("c{step}"),
            "read",
            format!("{{\"path\":\"src/mod_{step}.rs\"}}"),
        ));
        let lines = (0..40).map(|line| {
            format!("    let retry_{step}_{line} = pool.take(socket, cache)?; // drained\n")
        });
        let result = Message::result(format!("c{step}"), lines.collect::<String>());
        tokens += count_tokens(&result.content).0;
        messages.extend([call, result]);
        if tokens > 200_000 {
            break;
        }
    }
    messages.push(Message::text(
        Role::User,
        "Make the retry limit in src/pool.rs configurable by RETRY_LIMIT.",
    ));
    messages
}

fn guards(criterion: &mut Criterion) {
    let before = history();
    let after = [
        Message::text(Role::User, SUMMARY),
        before.last().unwrap().clone(),
    ];
    criterion.bench_function("guard, 200,000 tokens", |bencher| {
        bencher.iter(|| guard(black_box(&before), black_box(&after), &Options::default()).unwrap());
    });
}

criterion_group!(benches, guards);
criterion_main!(benches);
