//! Prune, verify, entries of other caches.

use std::collections::HashSet;

use compeval::action::Digest;
use compeval::entries::{EntryLookup, EntryMeta};
use store::cache::{CacheError, CacheSnapshot, EntryStatus, Lookup, Store};
use tempfile::tempdir;

use super::support::*;

#[test]
fn prune_gives_the_space_back_and_keeps_the_rest() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 200, 20_000);
    let before = disk(&dir.path().join("packs"));
    let store = open(dir.path());
    let gone: Vec<_> = (0..150).map(key).collect();
    let pruned = store.prune(&gone, &HashSet::new()).unwrap();
    let after = disk(&dir.path().join("packs"));
    assert_eq!(pruned.entries, 150);
    assert!(pruned.bytes > before / 2, "{pruned:?} of {before}");
    assert!(after < before * 3 / 10, "{after} of {before}");
    let check = |cache: &dyn Fn(u64) -> bool| {
        assert!((0..150).all(|n| !cache(n)), "what was pruned is gone");
        assert!((150..200).all(cache), "what was not is whole");
    };
    let whole = |cache: &dyn Fn(u64) -> Option<bytes::Bytes>, n| {
        cache(n).is_some_and(|found| found == body(n, 20_000))
    };
    check(&|n| whole(&|n| store.find(&key(n)).map(|r| store.body(&r).unwrap()), n));
    put(&store, 3, body(3, 100));
    store.prune(&[key(3)], &HashSet::new()).unwrap();
    store.close().unwrap();
    let store = open(dir.path());
    check(&|n| whole(&|n| store.find(&key(n)).map(|r| store.body(&r).unwrap()), n));
    assert_eq!(store.notices(), Vec::<String>::new());
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    check(&|n| {
        whole(
            &|n| snapshot.find(&key(n)).map(|r| snapshot.body(&r).unwrap()),
            n,
        )
    });
}

#[test]
fn a_pruned_entry_does_not_come_back_with_a_new_index() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 10, 2000);
    let store = open(dir.path());
    let pruned = store.prune(&[key(1)], &HashSet::new()).unwrap();
    assert_eq!(pruned.entries, 1);
    store.close().unwrap();
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    let store = open(dir.path());
    assert_eq!(store.find(&key(1)), None);
    assert_eq!(store.records().len(), 9);
}

#[test]
fn verdicts_texts_and_last_use_survive_a_prune() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let reading = EntryStatus::Output {
        out: Digest::hash("out"),
        parser: 1,
    };
    for n in 0..10 {
        let record = put(&store, n, body(n, 3000));
        store.note(&record, &reading);
        store.text(Digest::hash(source_text(n)), &source_text(n));
        store.touch(&record);
    }
    store
        .prune(&(0..8).map(key).collect::<Vec<_>>(), &HashSet::new())
        .unwrap();
    drop(store);
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    let store = open(dir.path());
    let record = store.find(&key(9)).unwrap();
    assert_eq!(record.status, reading);
    assert_eq!(
        store.read_text(&Digest::hash(source_text(9))),
        Some(source_text(9))
    );
    assert_eq!(
        store.read_text(&Digest::hash(source_text(0))),
        None,
        "a text that nothing was made from goes too"
    );
    assert_eq!(store.last_used(&record), store::cache::Day::today());
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn what_was_replaced_gives_its_space_back_too() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for round in 0..10 {
        put(&store, 1, body(round, 50_000));
    }
    let before = disk(&dir.path().join("packs"));
    let pruned = store.prune(&[], &HashSet::new()).unwrap();
    assert_eq!(pruned.entries, 0);
    assert!(disk(&dir.path().join("packs")) < before / 5);
    assert_eq!(
        store.body(&store.find(&key(1)).unwrap()).unwrap(),
        body(9, 50_000)
    );
}

#[test]
fn a_prune_that_removes_nothing_changes_nothing_and_memos_of_what_stays_are_kept() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    (0..4).for_each(|n| drop(put(&store, n, body(n, 50_000))));
    store.keep_memo(Digest::hash("rows"), b"rows of a context");
    // rows of small entries are longer than these
    let page = body(9, 1_000_000);
    store.keep_memo(Digest::hash("page"), &page);
    store.sync().unwrap();
    let packs = || {
        let entries = std::fs::read_dir(dir.path().join("packs")).unwrap();
        let read = |path: std::path::PathBuf| (std::fs::read(&path).unwrap(), path);
        entries
            .map(|entry| read(entry.unwrap().path()))
            .collect::<Vec<_>>()
    };
    let before = packs();
    store.prune(&[], &HashSet::new()).unwrap();
    assert!(packs() == before);
    store.prune(&[key(0)], &HashSet::new()).unwrap();
    assert!(packs() != before);
    let rows = |store: &Store| store.read_memo(&Digest::hash("rows"));
    assert_eq!(rows(&store).unwrap(), "rows of a context");
    assert_eq!(store.read_memo(&Digest::hash("page")).unwrap(), page);
    let many: Vec<_> = (1..4).map(key).collect();
    store.prune(&many, &HashSet::new()).unwrap();
    assert_eq!(rows(&store), None, "nothing is left that it is made from");
}

#[test]
fn what_no_entry_names_goes_with_any_prune() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let record = put(&store, 1, body(1, 50_000));
    store.text(Digest::hash(source_text(1)), &source_text(1));
    let derived: String = (0u64..500)
        .map(|n| Digest::hash(n.to_le_bytes()).hex())
        .collect();
    store.text(Digest::hash("derived"), &derived);
    store.sync().unwrap();
    let before = disk(&dir.path().join("packs"));
    let pruned = store.prune(&[], &HashSet::new()).unwrap();
    assert!(
        disk(&dir.path().join("packs")) + 1000 < before,
        "{pruned:?}"
    );
    assert_eq!(store.read_text(&Digest::hash("derived")), None);
    assert_eq!(
        store.read_text(&Digest::hash(source_text(1))),
        Some(source_text(1)),
        "an entry was made from it"
    );
    assert_eq!(
        store.body(&store.find(&record.key).unwrap()).unwrap(),
        body(1, 50_000)
    );
    store.text(Digest::hash("derived"), &derived);
    store.sync().unwrap();
    assert_eq!(
        store.read_text(&Digest::hash("derived")),
        Some(derived),
        "and is kept again"
    );
}

#[test]
fn a_reader_keeps_what_it_saw_while_a_prune_goes_on() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 20, 5000);
    let reader = CacheSnapshot::open(dir.path()).unwrap();
    let store = open(dir.path());
    store
        .prune(&(0..15).map(key).collect::<Vec<_>>(), &HashSet::new())
        .unwrap();
    (0..40).for_each(|n| drop(put(&store, 100 + n, body(n, 5000))));
    for n in 0..20 {
        assert_eq!(
            reader.body(&reader.find(&key(n)).unwrap()).unwrap(),
            body(n, 5000)
        );
    }
    assert_eq!(CacheSnapshot::open(dir.path()).unwrap().len(), 45);
}

#[test]
fn a_crash_between_the_steps_of_a_prune_loses_nothing() {
    for is_old_pack_left in [true, false] {
        let dir = tempdir().unwrap();
        filled(dir.path(), 20, 3000);
        let old = tempdir().unwrap();
        copy(dir.path(), old.path());
        let store = open(dir.path());
        store
            .prune(&(0..15).map(key).collect::<Vec<_>>(), &HashSet::new())
            .unwrap();
        drop(store);
        // what is live is in a new pack, and the index has not learned it
        std::fs::remove_dir_all(dir.path().join("index")).unwrap();
        copy(&old.path().join("index"), &dir.path().join("index"));
        if is_old_pack_left {
            copy(&old.path().join("packs"), &dir.path().join("packs"));
        }
        let store = open(dir.path());
        assert_eq!(
            store.notices().is_empty(),
            is_old_pack_left,
            "an index of a pack that is gone is made again"
        );
        (15..20).for_each(|n| {
            assert_eq!(
                store.body(&store.find(&key(n)).unwrap()).unwrap(),
                body(n, 3000)
            )
        });
        // a prune removes the tree first, so only a restored tree names a pack that is gone
        assert_eq!(
            store.verify().unwrap().len(),
            usize::from(!is_old_pack_left)
        );
        assert_eq!(store.verify().unwrap(), []);
        assert_eq!(
            CacheSnapshot::open(dir.path()).unwrap().len(),
            store.records().len()
        );
    }
}

#[test]
fn writing_goes_on_after_everything_was_pruned() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 5, 1000);
    let store = open(dir.path());
    store
        .prune(&(0..5).map(key).collect::<Vec<_>>(), &HashSet::new())
        .unwrap();
    assert!(store.records().is_empty());
    put(&store, 7, body(7, 1000));
    drop(store);
    let store = open(dir.path());
    assert_eq!(
        store.body(&store.find(&key(7)).unwrap()).unwrap(),
        body(7, 1000)
    );
    assert_eq!(store.notices(), Vec::<String>::new());
}

#[test]
fn of_a_cache_that_was_emptied_nothing_is_left() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let headers: Vec<_> = (0..2000).map(|n| meta(n).header()).collect();
    block(async {
        let puts = (0..2000).map(|n| store.put_reply(key(n), &headers[n as usize], body(n, 100)));
        futures::future::join_all(puts)
            .await
            .into_iter()
            .for_each(|put| drop(put.unwrap()));
    });
    let full = disk(&dir.path().join("index"));
    store
        .prune(&(0..2000).map(key).collect::<Vec<_>>(), &HashSet::new())
        .unwrap();
    store.close().unwrap();
    assert_eq!(
        disk(&dir.path().join("packs")),
        24,
        "the beginning of a pack"
    );
    // sled never takes less than some 650 KB, and when it writes decides about the rest.
    let emptied = disk(&dir.path().join("index"));
    assert!(emptied < full, "{emptied} of {full}");
    let store = open(dir.path());
    assert_eq!((store.records().len(), store.notices()), (0, vec![]));
    put(&store, 1, body(1, 100));
    assert_eq!(
        store.body(&store.find(&key(1)).unwrap()).unwrap(),
        body(1, 100)
    );
}

#[test]
fn a_sound_cache_verifies_clean() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 30, 2000);
    assert_eq!(open(dir.path()).verify().unwrap(), []);
}

/// A cache with source texts and readings, and its entries as they are pushed.
fn pushed(dir: &std::path::Path, count: u64) -> Vec<Vec<u8>> {
    let cache = dir.join("from");
    let store = open(&cache);
    for n in 0..count {
        let record = put(&store, n, body(n, 4000));
        let out = Digest::hash(n.to_le_bytes());
        store.note(&record, &EntryStatus::Output { out, parser: 1 });
        store.text(Digest::hash(source_text(n)), &source_text(n));
    }
    store.close().unwrap();
    let snapshot = CacheSnapshot::open(&cache).unwrap();
    let record = |n| snapshot.find(&key(n)).unwrap();
    (0..count)
        .map(|n| snapshot.packed(&record(n)).unwrap())
        .collect()
}

const REMOTE: &str = "fs:///shared";

#[test]
fn an_entry_added_elsewhere_is_the_same() {
    let dir = tempdir().unwrap();
    let pushed = pushed(dir.path(), 12);
    let store = open(&dir.path().join("to"));
    put(&store, 5, body(500, 300));
    let mut added = 0;
    for _ in 0..2 {
        for (n, bytes) in pushed.iter().enumerate() {
            added += u64::from(store.add_packed(&key(n as u64), bytes, REMOTE).unwrap());
        }
    }
    assert_eq!(
        added, 12,
        "what is there is replaced, and nothing added twice"
    );
    let from = CacheSnapshot::open(&dir.path().join("from")).unwrap();
    for n in 0..12 {
        let (there, here) = (from.find(&key(n)).unwrap(), store.find(&key(n)).unwrap());
        assert_eq!(store.body(&here).unwrap(), from.body(&there).unwrap());
        let meta = store.meta(&here).unwrap();
        assert_eq!(meta.imported.as_deref(), Some(REMOTE));
        assert_eq!(
            EntryMeta {
                imported: None,
                ..meta
            },
            from.meta(&there).unwrap()
        );
    }
}

#[test]
fn a_bad_entry_adds_nothing_and_says_why() {
    let dir = tempdir().unwrap();
    let pushed = pushed(dir.path(), 2);
    let store = open(&dir.path().join("to"));
    let refuse = |bytes: &[u8]| {
        let error = store.add_packed(&key(0), bytes, REMOTE).unwrap_err();
        assert!(matches!(error, CacheError::BadImport { .. }), "{error}");
        assert!(store.records().is_empty());
    };
    refuse(&pushed[1]);
    // A second entry.
    refuse(&pushed.concat());
    refuse(b"PK\x03\x04 some zip file or other");
    for length in [0, 7, pushed[0].len() / 2, pushed[0].len() - 1] {
        refuse(&pushed[0][..length]);
    }
}
