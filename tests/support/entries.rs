//! Entries of a cache, for measurements: each with inputs, prices and a reply of its own.

#![allow(dead_code, reason = "each bench and example uses a part")]

use base::units::{Tokens, Usage};
use bytes::Bytes;
use compeval::action::{
    BuiltInStrategy, Computation, Digest, InputsDocument, Place, Repetition, Stage, Work,
};
use compeval::entries::EntryMeta;
use store::cache::{EntryStatus, EntrySummary, Record, Store};

pub fn inputs(n: u64, messages: &str) -> InputsDocument {
    let messages = messages.into();
    let work = Work::Compute(Computation::Strategy {
        rule: BuiltInStrategy::Truncate,
        messages,
        target_tokens: Some(Tokens(n)),
    });
    InputsDocument::new(
        Stage::Answer,
        Repetition {
            compress: Some(1),
            answer: Some(1),
            judge: None,
        },
        &work,
        Vec::new(),
    )
}

pub fn meta(n: u64) -> EntryMeta {
    let place = Place::Generation {
        fixture: format!("fixture-{n}"),
        point: 1,
        probe: None,
    };
    let mut meta = EntryMeta::new(place, inputs(n, "[]"), Some("model".into()));
    meta.summary = EntrySummary {
        created: n,
        usage: Usage {
            input: Some(Tokens(9000)),
            output: Some(Tokens(300)),
            ..Usage::default()
        },
        latency_ms: 900,
        ..meta.summary
    };
    meta.summary.models.answered = Some("model".into());
    meta
}

pub fn body(n: u64, length: usize) -> Bytes {
    let mut text = String::new();
    let mut digest = Digest::hash(n.to_le_bytes());
    while text.len() < length {
        text.push_str(&digest.hex());
        text.push_str(" the same words as ever, so that something can be saved ");
        digest = Digest::hash(digest.0);
    }
    text.into()
}

/// Stores an entry with a reply of this length, and notes that it parsed to an output.
pub async fn put(store: &Store, n: u64, length: usize) -> Record {
    let meta = meta(n);
    let record = store
        .put_reply(meta.inputs.key(), &meta.header(), body(n, length))
        .await
        .expect("a cache");
    store.note(
        &record,
        &EntryStatus::Output {
            out: record.raw,
            parser: 1,
        },
    );
    record
}
