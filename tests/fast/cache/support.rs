//! Small entries to put, and folders to put them in.

use std::path::Path;

use base::units::{Tokens, Usage, Usd};
use bytes::Bytes;
use compeval::action::{
    ActionKey, BuiltInStrategy, Computation, Digest, InputsDocument, Place, Repetition, Source,
    Stage, Work,
};
use compeval::entries::{EntryMeta, key_of};
use models::Dialect;
use store::cache::{EntrySummary, Record, Store};

/// Inputs that differ with `n`.
pub(crate) fn inputs(n: u64) -> InputsDocument {
    let source = Source {
        name: "prompt".into(),
        digest: Digest::hash(source_text(n)),
        path: Some("prompts/anchored.md".into()),
    };
    let messages = format!("[\"message {n}\"]").into();
    let work = Work::Compute(Computation::Strategy {
        rule: BuiltInStrategy::Truncate,
        messages,
        target_tokens: Some(Tokens(n)),
    });
    InputsDocument::new(
        Stage::Compress,
        Repetition {
            compress: Some(1),
            ..Repetition::NONE
        },
        &work,
        vec![source],
    )
}

pub(crate) fn key(n: u64) -> ActionKey {
    inputs(n).key()
}

pub(crate) fn place(n: u64) -> Place {
    Place::Generation {
        fixture: format!("fixture-{n}"),
        point: 1,
        probe: None,
    }
}

pub(crate) fn meta(n: u64) -> EntryMeta {
    let mut meta = EntryMeta {
        attempts: 2,
        request_id: Some(format!("req-{n}")),
        ..EntryMeta::new(place(n), inputs(n), Some("small".into()))
    };
    meta.summary = EntrySummary {
        created: 1_700_000_000_000 + n,
        usage: Usage {
            input: Some(Tokens(1000 + n)),
            output: Some(Tokens(50)),
            ..Usage::default()
        },
        cost: Some(Usd(0.25)),
        latency_ms: 1200,
        ..meta.summary
    };
    meta.summary.models.answered = Some("small-1".into());
    meta.in_dialect(Dialect::OpenaiChat)
}

pub(crate) fn source_text(n: u64) -> String {
    format!("Summarize what happened.\nNumber {n}.\n")
}

/// A body of about `length` bytes that does not compress to nothing, and differs with `n`.
pub(crate) fn body(n: u64, length: usize) -> Bytes {
    let mut text = format!("reply {n}: ");
    let mut digest = Digest::hash(n.to_le_bytes());
    while text.len() < length {
        text.push_str(&digest.hex());
        digest = Digest::hash(digest.0);
    }
    text.into()
}

pub(crate) fn holder() -> &'static str {
    "run"
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(dir, holder(), key_of).expect("the cache opens")
}

pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

pub(crate) fn put(store: &Store, n: u64, body: Bytes) -> Record {
    block(store.put_reply(key(n), &meta(n).header(), body)).expect("it is kept")
}

/// A cache with the entries `0..count`, closed.
pub(crate) fn filled(dir: &Path, count: u64, length: usize) {
    let store = open(dir);
    for n in 0..count {
        put(&store, n, body(n, length));
    }
    store.close().expect("it closes");
}

/// All files below a folder.
pub(crate) fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let found = walkdir::WalkDir::new(dir)
        .sort_by_file_name()
        .into_iter()
        .map(|e| e.expect("a file"));
    found
        .filter(|e| e.file_type().is_file())
        .map(|e| e.into_path())
        .collect()
}

/// Bytes on disk below a folder.
pub(crate) fn disk(dir: &Path) -> u64 {
    files(dir)
        .iter()
        .map(|path| path.metadata().expect("a file").len())
        .sum()
}

/// Copies a whole folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).expect("below"));
        std::fs::create_dir_all(target.parent().expect("a parent")).expect("a folder");
        std::fs::copy(path, target).expect("a copy");
    }
}
