//! Records of batches: an open batch outlives prunes, rebuilds and verification, and a closed one stays closed.

use std::collections::HashSet;
use std::path::Path;

use base::units::Usd;
use compeval::entries::{BatchIntent, BatchLine, ClosedBatch, EntryLookup, EntryMeta, Journal};
use models::{Dialect, Lane, Limits, ModelRef, Operation, ProviderSpec};
use store::cache::{BatchNonce, CacheSnapshot, Lookup, Store};
use tempfile::tempdir;

use super::support::*;

fn intent(n: u64) -> BatchIntent {
    BatchIntent {
        nonce: BatchNonce::new(n, [key(n)].into_iter()),
        created: n,
        account: ProviderSpec {
            name: "openai".into(),
            dialect: Dialect::OpenaiChat,
            base_url: "https://api.openai.com/v1".into(),
            api_key: None,
            endpoint: "openai".into(),
            limits: Limits::default(),
            lane: Lane::Batch,
            key_place: None,
        },
        fingerprint: 7,
        model: ModelRef::parse("openai/gpt-5.2").unwrap(),
        operation: Operation::Generate,
        price: None,
        ratio: 0.5,
        newest: None,
        refresh: None,
        lines: vec![BatchLine {
            key: key(n),
            attempt: 1,
            place: place(n),
            inputs: inputs(n),
            reserved: Some(Usd(0.25)),
        }],
    }
}

/// The journal by the store, which must be that of a snapshot and of a rebuilt index.
fn journal(dir: &Path) -> Journal {
    let found = Journal::read(&open(dir)).unwrap();
    assert_eq!(
        Journal::read(&CacheSnapshot::open(dir).unwrap()).unwrap(),
        found
    );
    std::fs::remove_dir_all(dir.join("index")).unwrap();
    let store = open(dir);
    assert_eq!(Journal::read(&store).unwrap(), found, "by the packs");
    assert_eq!(store.verify().unwrap(), []);
    assert_eq!(Journal::read(&store).unwrap(), found, "after verification");
    found
}

/// Removes an entry, so that packs are rewritten.
fn prune(store: &Store, n: u64) {
    put(store, n, body(n, 2000));
    store.prune(&[key(n)], &HashSet::new()).unwrap();
}

#[test]
fn an_open_batch_outlives_everything_and_a_closed_one_stays_closed() {
    let dir = tempdir().unwrap();
    let (first, second) = (intent(1), intent(2));
    let store = open(dir.path());
    put(&store, 1, body(1, 100));
    block(first.write(&store)).unwrap();
    block(first.write_submitted(&store, "batch_1")).unwrap();
    prune(&store, 8);
    block(second.write(&store)).unwrap();
    prune(&store, 9);
    drop(store);
    let found = journal(dir.path());
    let ids: Vec<Option<&str>> = found.open.iter().map(|batch| batch.id.as_deref()).collect();
    assert_eq!(ids, [Some("batch_1"), None]);
    assert_eq!(
        [&found.open[0].intent, &found.open[1].intent],
        [&first, &second]
    );
    assert_eq!(found.held(), HashSet::from([key(1), key(2)]));

    let store = open(dir.path());
    let closed = ClosedBatch::new(first.nonce, Vec::new());
    block(closed.write(&store)).unwrap();
    assert_eq!(Journal::read(&store).unwrap().closed, [closed]);
    // The first prune drops what opened it, a later one its closing.
    for n in 10..13 {
        prune(&store, n);
        let open: Vec<BatchNonce> = Journal::read(&store)
            .unwrap()
            .open
            .iter()
            .map(|batch| batch.intent.nonce)
            .collect();
        assert_eq!(open, [second.nonce]);
    }
    assert!(Journal::read(&store).unwrap().closed.is_empty());
    drop(store);
    assert_eq!(journal(dir.path()).open.len(), 1);
    assert!(open(dir.path()).find(&key(1)).is_some());
}

#[test]
fn a_cache_without_its_format_gets_the_newest() {
    let dir = tempdir().unwrap();
    let format = || std::fs::read_to_string(dir.path().join("FORMAT")).unwrap();
    put(&open(dir.path()), 1, body(1, 100));
    assert_eq!(format(), "compeval store format 2\n");
    std::fs::remove_file(dir.path().join("FORMAT")).unwrap();
    drop(open(dir.path()));
    assert_eq!(
        format(),
        "compeval store format 2\n",
        "what packs hold is unknown without it"
    );
}

#[test]
fn an_entry_has_its_lane_with_and_without_an_origin() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let own = EntryMeta {
        lane: Lane::Batch,
        ..meta(1)
    };
    let record = block(store.put_reply(key(1), &own.header(), body(1, 100))).unwrap();
    assert_eq!(store.meta(&record).unwrap(), own);
    let live = block(store.put_reply(key(2), &meta(2).header(), body(2, 100))).unwrap();
    assert_eq!(store.meta(&live).unwrap(), meta(2));
}
