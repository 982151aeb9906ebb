//! Putting and finding, by the store and by a snapshot.

use compeval::action::Digest;
use compeval::entries::{EntryLookup, key_of};
use store::cache::{CacheSnapshot, Day, EntryStatus, Lookup, Store};
use tempfile::tempdir;

use super::support::*;

fn expect_entry(cache: &impl Lookup, n: u64, length: usize) {
    let record = cache.find(&key(n)).expect("the entry is there");
    assert_eq!(cache.body(&record).expect("whole"), body(n, length));
    assert_eq!(cache.meta(&record).expect("whole"), meta(n));
    assert_eq!(record.summary, meta(n).summary);
    assert_eq!(cache.latest(&meta(n).header().summary.place), Some(key(n)));
}

#[test]
fn what_was_put_is_found_now_later_and_by_others() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..20 {
        put(&store, n, body(n, 3000));
    }
    (0..20).for_each(|n| expect_entry(&store, n, 3000));
    let beside = CacheSnapshot::open(dir.path()).unwrap();
    (0..20).for_each(|n| expect_entry(&beside, n, 3000));
    assert_eq!((store.find(&key(99)), beside.find(&key(99))), (None, None));
    assert_eq!(store.notices(), Vec::<String>::new());
    store.close().unwrap();
    let store = open(dir.path());
    (0..20).for_each(|n| expect_entry(&store, n, 3000));
    assert_eq!(store.records().len(), 20);
    assert_eq!(store.notices(), Vec::<String>::new());
}

#[test]
fn many_puts_at_once_are_all_kept() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let headers: Vec<_> = (0..300).map(|n| meta(n).header()).collect();
    block(async {
        let puts = (0..300).map(|n| store.put_reply(key(n), &headers[n as usize], body(n, 700)));
        for result in futures::future::join_all(puts).await {
            result.unwrap();
        }
    });
    (0..300).for_each(|n| expect_entry(&store, n, 700));
}

#[test]
fn a_later_value_replaces_an_earlier_one() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for round in 0..5 {
        put(&store, 1, body(100 + round, 2000));
    }
    let check = |cache: &dyn Fn() -> bytes::Bytes| assert_eq!(cache(), body(104, 2000));
    check(&|| store.body(&store.find(&key(1)).unwrap()).unwrap());
    drop(store);
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    check(&|| snapshot.body(&snapshot.find(&key(1)).unwrap()).unwrap());
}

#[test]
fn empty_and_large_bodies_come_back_whole() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for (n, length) in [(1, 0), (2, 1_500_000)] {
        let body = if length == 0 {
            bytes::Bytes::new()
        } else {
            body(n, length)
        };
        let record = put(&store, n, body.clone());
        assert_eq!(store.body(&record).unwrap(), body);
    }
}

#[test]
fn a_verdict_sticks_to_the_body_it_speaks_of() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let first = put(&store, 1, body(1, 500));
    assert_eq!(first.status, EntryStatus::Unparsed);
    let out = Digest::hash("output");
    let reading = EntryStatus::Output { out, parser: 3 };
    store.note(&first, &reading);
    store.sync().unwrap();
    assert_eq!(store.find(&key(1)).unwrap().status, reading);
    let second = put(&store, 1, body(2, 500));
    store.note(&first, &reading);
    store.sync().unwrap();
    assert_eq!(
        store.find(&key(1)).unwrap().status,
        EntryStatus::Unparsed,
        "the verdict was about the earlier body"
    );
    store.note(&second, &EntryStatus::malformed(3, "cut off"));
    drop(store);
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    let record = snapshot.find(&key(1)).unwrap();
    assert_eq!(
        record.status,
        EntryStatus::Malformed {
            parser: 3,
            fault: "cut off".into()
        }
    );
    assert!(!record.is_usable());
}

#[test]
fn a_failure_is_remembered_and_takes_no_output_away() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    block(store.fail(
        key(1),
        &meta(1).header(),
        "overloaded",
        "529 from the provider",
    ))
    .unwrap();
    let failed = EntryStatus::Failed {
        class: "overloaded".into(),
        message: "529 from the provider".into(),
    };
    assert_eq!(store.find(&key(1)).unwrap().status, failed);
    put(&store, 1, body(1, 100));
    block(store.fail(key(1), &meta(1).header(), "overloaded", "again")).unwrap();
    assert_eq!(store.find(&key(1)).unwrap().status, EntryStatus::Unparsed);
    block(store.fail(key(2), &meta(2).header(), "auth", &"é".repeat(5000))).unwrap();
    drop(store);
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    assert_eq!(
        snapshot.find(&key(1)).unwrap().status,
        EntryStatus::Unparsed
    );
    let record = snapshot.find(&key(2)).unwrap();
    assert!(matches!(&record.status, EntryStatus::Failed { message, .. } if message.len() <= 400));
    assert_eq!(snapshot.meta(&record).unwrap(), meta(2));
}

#[test]
fn texts_and_last_use_are_kept() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let record = put(&store, 1, body(1, 100));
    let text = source_text(1);
    store.text(Digest::hash(&text), &text);
    store.text(Digest::hash(&text), &text);
    store.touch(&record);
    store.sync().unwrap();
    let packed = disk(&dir.path().join("packs"));
    store.text(Digest::hash(&text), &text);
    store.touch(&record);
    store.sync().unwrap();
    assert_eq!(
        disk(&dir.path().join("packs")),
        packed,
        "what is known is not written again"
    );
    expect_text(&store);
    assert_eq!(store.last_used(&store.find(&key(1)).unwrap()), Day::today());
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    expect_text(&snapshot);
    assert_eq!(
        snapshot.last_used(&snapshot.find(&key(1)).unwrap()),
        Day::today()
    );
}

#[test]
fn the_use_of_what_was_made_today_is_not_written_down() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let mut made = meta(1);
    made.summary.created = u64::from(Day::today().0) * 86_400_000;
    let record = block(store.put_reply(key(1), &made.header(), body(1, 100))).unwrap();
    store.sync().unwrap();
    let packed = disk(&dir.path().join("packs"));
    store.touch(&record);
    store.sync().unwrap();
    assert_eq!(disk(&dir.path().join("packs")), packed);
    assert_eq!(store.last_used(&record), Day::today());
}

fn expect_text(cache: &impl Lookup) {
    let text = source_text(1);
    assert_eq!(cache.read_text(&Digest::hash(&text)), Some(text));
    assert_eq!(cache.read_text(&Digest::hash("c")), None);
}

#[test]
fn a_prefix_names_one_entry_or_the_candidates() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 40, 50);
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    let hex = key(7).0.hex();
    assert_eq!(snapshot.resolve(&hex[..12].to_uppercase()).unwrap(), key(7));
    let refused = |prefix: &str| snapshot.resolve(prefix).unwrap_err().to_string();
    let shared = (0..16)
        .map(|digit| format!("{digit:x}"))
        .find(|digit| {
            (0..40)
                .filter(|n| key(*n).0.hex().starts_with(digit))
                .count()
                > 1
        })
        .expect("forty keys share a first digit somewhere");
    let candidates: Vec<String> = (0..40).map(|n| key(n).0.short()).collect();
    let message = refused(&shared);
    assert!(message.contains("several keys"), "{message}");
    assert!(
        candidates
            .iter()
            .filter(|key| message.contains(*key))
            .count()
            > 1
    );
    assert!(refused(&"0".repeat(64)).contains("no key"));
    for bad in ["", "xyz", "-", &"a".repeat(65)] {
        assert!(refused(bad).contains("is not a key"), "{bad}");
    }
}

#[test]
fn a_second_writer_sees_who_holds_the_cache() {
    let dir = tempdir().unwrap();
    let _held = open(dir.path());
    let error = Store::open(dir.path(), holder(), key_of)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!(
            "process {} (compeval run, since 20",
            std::process::id()
        )),
        "{error}"
    );
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "precious").unwrap();
    for error in [
        Store::open(dir.path(), holder(), key_of).unwrap_err(),
        CacheSnapshot::open(dir.path()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("thesis.txt"), "{error}");
    }
    assert_eq!(files(dir.path()), [dir.path().join("thesis.txt")]);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 1, 10);
    std::fs::write(dir.path().join("FORMAT"), "compeval store format 7\n").unwrap();
    let error = Store::open(dir.path(), holder(), key_of).unwrap_err();
    assert!(error.to_string().contains("has cache format 7"), "{error}");
    assert!(CacheSnapshot::open(dir.path()).is_err());
}

#[test]
fn a_folder_of_packs_that_this_version_does_not_know_is_named_and_left_alone() {
    let with = |name: &str, bytes: &[u8]| {
        let dir = tempdir().unwrap();
        std::fs::create_dir(dir.path().join("packs")).unwrap();
        std::fs::write(dir.path().join(name), bytes).unwrap();
        dir
    };
    let labelled = with("FORMAT", b"another format 3\n");
    let unlabelled = with("packs/00000001.pack", b"another pack of 24 bytes");
    for dir in [labelled, unlabelled] {
        let before = files(dir.path());
        for error in [
            Store::open(dir.path(), holder(), key_of).unwrap_err(),
            CacheSnapshot::open(dir.path()).unwrap_err(),
        ] {
            assert!(
                error
                    .to_string()
                    .contains("not a cache of this version of compeval"),
                "{error}"
            );
        }
        assert_eq!(files(dir.path()), before);
    }
}

#[test]
fn an_absent_cache_is_an_empty_snapshot_and_stays_absent() {
    let dir = tempdir().unwrap();
    let absent = dir.path().join("cache");
    assert!(CacheSnapshot::open(&absent).unwrap().is_empty());
    assert!(!absent.exists());
    std::fs::create_dir(&absent).unwrap();
    std::fs::write(absent.join(".gitkeep"), "").unwrap();
    assert!(CacheSnapshot::open(&absent).unwrap().is_empty());
    put(&open(&absent), 1, body(1, 10));
    assert_eq!(CacheSnapshot::open(&absent).unwrap().len(), 1);
}
