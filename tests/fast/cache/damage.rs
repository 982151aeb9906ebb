//! Whatever happens to the files: it is named, nothing panics, nothing wrong is served.

use std::path::Path;

use compeval::entries::{EntryLookup, key_of};
use store::cache::{CacheSnapshot, Lookup, Store};
use tempfile::tempdir;

use super::support::*;

const ENTRIES: u64 = 6;
const LENGTH: usize = 900;

/// Everything that is served is right; answers how many entries are.
fn served(cache: &impl Lookup) -> u64 {
    let right = |n: &u64| {
        let record = cache.find(&key(*n))?;
        let found = cache.body(&record).ok()?;
        assert_eq!(found, body(*n, LENGTH), "nothing wrong is served");
        if let Ok(meta_found) = cache.meta(&record) {
            assert_eq!(meta_found, meta(*n));
        }
        Some(())
    };
    (0..ENTRIES).filter(|n| right(n).is_some()).count() as u64
}

fn flip(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at as usize] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
}

/// Damages a copy of `sound`, and expects the damage to be survived; `named` says whether it must be named too.
fn survive(sound: &Path, damage: impl Fn(&Path), named: bool, case: &str) {
    let dir = tempdir().unwrap();
    let cache = dir.path().join("cache");
    copy(sound, &cache);
    damage(&cache);
    if let Ok(snapshot) = CacheSnapshot::open(&cache) {
        served(&snapshot);
    }
    let store = open(&cache);
    let before = served(&store);
    let mut reported = store.notices();
    reported.extend(store.verify().unwrap().iter().map(ToString::to_string));
    assert!(
        before == ENTRIES || !reported.is_empty(),
        "{case}: lost entries are named"
    );
    assert!(
        !named || !reported.is_empty(),
        "{case}: the damage is named"
    );
    assert_eq!(
        store.verify().unwrap(),
        [],
        "{case}: damage is set aside once"
    );
    let left = served(&store);
    assert_eq!(
        store.records().len() as u64,
        left,
        "{case}: what is listed can be read"
    );
    for n in 0..ENTRIES {
        if store.find(&key(n)).is_none() {
            put(&store, n, body(n, LENGTH));
        }
    }
    store.close().unwrap();
    let store = open(&cache);
    assert_eq!(
        (served(&store), store.notices()),
        (ENTRIES, vec![]),
        "{case}: it is whole again"
    );
    assert_eq!(
        served(&CacheSnapshot::open(&cache).unwrap()),
        ENTRIES,
        "{case}"
    );
}

#[test]
fn any_flipped_byte_of_a_pack_is_named_and_made_again() {
    let sound = tempdir().unwrap();
    filled(sound.path(), ENTRIES, LENGTH);
    let pack = sound.path().join("packs/00000001.pack");
    let length = pack.metadata().unwrap().len();
    for at in (0..24)
        .step_by(3)
        .chain((24..length).step_by(331))
        .chain([length - 1])
    {
        survive(
            sound.path(),
            |cache| flip(&cache.join("packs/00000001.pack"), at),
            true,
            &format!("byte {at}"),
        );
    }
}

#[test]
fn flipped_bytes_of_a_pack_whose_index_is_lost_are_named_too() {
    let sound = tempdir().unwrap();
    filled(sound.path(), ENTRIES, LENGTH);
    std::fs::remove_dir_all(sound.path().join("index")).unwrap();
    let pack = sound.path().join("packs/00000001.pack");
    for at in (0..pack.metadata().unwrap().len()).step_by(701) {
        survive(
            sound.path(),
            |cache| flip(&cache.join("packs/00000001.pack"), at),
            true,
            &format!("byte {at}"),
        );
    }
}

#[test]
fn flipped_bytes_of_the_index_lose_nothing() {
    let sound = tempdir().unwrap();
    filled(sound.path(), ENTRIES, LENGTH);
    for path in files(&sound.path().join("index")) {
        let inside = path.strip_prefix(sound.path()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        // most of the log is empty space: the places that hold something are spread over evenly
        let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        for at in used.iter().step_by((used.len() / 15).max(1)) {
            let case = format!("{} byte {at}", inside.display());
            let dir = tempdir().unwrap();
            copy(sound.path(), dir.path());
            flip(&dir.path().join(inside), *at as u64);
            let store = open(dir.path());
            store.find(&key(99));
            assert_eq!(
                served(&store),
                ENTRIES,
                "{case}: the packs are whole, so nothing is lost"
            );
            put(&store, 50, body(50, LENGTH));
            assert_eq!(
                served(&store),
                ENTRIES,
                "{case}: nor where the index is asked"
            );
            store.verify().unwrap();
            assert_eq!(served(&store), ENTRIES, "{case}");
        }
    }
}

#[test]
fn flipped_bytes_of_the_small_files_lose_nothing() {
    let sound = tempdir().unwrap();
    filled(sound.path(), ENTRIES, LENGTH);
    for name in ["FORMAT", "CACHEDIR.TAG", "LOCK"] {
        let length = sound.path().join(name).metadata().unwrap().len();
        for at in 0..length {
            let dir = tempdir().unwrap();
            copy(sound.path(), dir.path());
            flip(&dir.path().join(name), at);
            match Store::open(dir.path(), holder(), key_of) {
                Ok(store) => assert_eq!(served(&store), ENTRIES, "{name} byte {at}"),
                Err(error) => assert!(
                    error.to_string().contains("newer"),
                    "{name} byte {at}: {error}"
                ),
            }
        }
    }
}

#[test]
fn damage_that_comes_after_opening_is_named_when_it_is_met() {
    let dir = tempdir().unwrap();
    filled(dir.path(), ENTRIES, LENGTH);
    let store = open(dir.path());
    let record = store.find(&key(2)).unwrap();
    flip(
        &dir.path().join("packs/00000001.pack"),
        record.location.offset + u64::from(record.location.head),
    );
    assert_eq!(served(&store), ENTRIES - 1);
    assert!(store.notices()[0].contains(&record.key.to_string()[..12]));
    put(&store, 2, body(2, LENGTH));
    assert_eq!((served(&store), store.notices()), (ENTRIES, vec![]));
}

#[test]
fn entries_that_a_pack_has_lost_are_named_when_it_is_opened() {
    let dir = tempdir().unwrap();
    filled(dir.path(), ENTRIES, LENGTH);
    let pack = dir.path().join("packs/00000001.pack");
    let before = std::fs::read(&pack).unwrap();
    let store = open(dir.path());
    put(&store, 50, body(50, LENGTH));
    store.close().unwrap();
    std::fs::write(&pack, before).unwrap();
    let store = open(dir.path());
    assert_eq!((served(&store), store.find(&key(50))), (ENTRIES, None));
    assert!(store.notices()[0].contains("rebuilt"));
}

#[test]
fn missing_packs_are_damage_that_is_reported_once() {
    let dir = tempdir().unwrap();
    filled(dir.path(), ENTRIES, LENGTH);
    std::fs::remove_file(dir.path().join("packs/00000001.pack")).unwrap();
    let snapshot = CacheSnapshot::open(dir.path()).unwrap();
    assert!(snapshot.notices()[0].contains("its packs are missing"));
    let store = open(dir.path());
    let notices = store.notices();
    assert!(
        notices
            .iter()
            .any(|text| text.contains("pack 1 is missing")),
        "{notices:?}"
    );
    assert_eq!(store.verify().unwrap().len(), 1);
    assert_eq!(store.verify().unwrap(), []);
    store.close().unwrap();
    let store = open(dir.path());
    assert!(store.notices().is_empty() && store.verify().unwrap().is_empty());
    assert!(
        CacheSnapshot::open(dir.path())
            .unwrap()
            .verify()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_lost_index_is_made_again() {
    let sound = tempdir().unwrap();
    filled(sound.path(), ENTRIES, LENGTH);
    std::fs::remove_dir_all(sound.path().join("index")).unwrap();
    let store = open(sound.path());
    assert_eq!(served(&store), ENTRIES);
    assert!(store.notices()[0].contains("rebuilt from the packs, 6 entries"));
    drop(store);
    assert_eq!(open(sound.path()).notices(), Vec::<String>::new());
}

#[test]
fn rubbish_in_place_of_the_index_is_replaced() {
    for part in ["db", "conf"] {
        let sound = tempdir().unwrap();
        filled(sound.path(), ENTRIES, LENGTH);
        std::fs::write(sound.path().join("index").join(part), vec![0xAB; 300_000]).unwrap();
        let store = open(sound.path());
        assert_eq!(served(&store), ENTRIES);
        assert!(store.notices()[0].contains("rebuilt"));
    }
}

#[test]
fn a_torn_tail_is_cut_off_and_writing_goes_on() {
    let sound = tempdir().unwrap();
    filled(sound.path(), ENTRIES, LENGTH);
    let pack = std::fs::read(sound.path().join("packs/00000001.pack")).unwrap();
    for torn in [1, 50, 88, 400] {
        let dir = tempdir().unwrap();
        copy(sound.path(), dir.path());
        let half = &pack[24..24 + torn];
        std::fs::write(
            dir.path().join("packs/00000001.pack"),
            [&pack, half].concat(),
        )
        .unwrap();
        let snapshot = CacheSnapshot::open(dir.path()).unwrap();
        assert_eq!((served(&snapshot), snapshot.notices()), (ENTRIES, vec![]));
        let store = open(dir.path());
        assert_eq!((served(&store), store.notices()), (ENTRIES, vec![]));
        put(&store, 50, body(50, LENGTH));
        drop(store);
        let store = open(dir.path());
        assert_eq!(store.verify().unwrap(), []);
        assert_eq!(store.records().len() as u64, ENTRIES + 1);
    }
}

#[test]
fn frames_behind_the_index_are_taken_up() {
    let dir = tempdir().unwrap();
    filled(dir.path(), 3, LENGTH);
    let old_index = tempdir().unwrap();
    copy(&dir.path().join("index"), old_index.path());
    let store = open(dir.path());
    (3..ENTRIES).for_each(|n| drop(put(&store, n, body(n, LENGTH))));
    drop(store);
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    copy(old_index.path(), &dir.path().join("index"));
    let store = open(dir.path());
    assert_eq!((served(&store), store.notices()), (ENTRIES, vec![]));
}

#[test]
fn a_lost_pack_loses_its_entries_only() {
    let dir = tempdir().unwrap();
    filled(dir.path(), ENTRIES, LENGTH);
    std::fs::remove_file(dir.path().join("packs/00000001.pack")).unwrap();
    assert_eq!(served(&CacheSnapshot::open(dir.path()).unwrap()), 0);
    let store = open(dir.path());
    assert_eq!(served(&store), 0);
    assert!(!store.notices().is_empty());
    put(&store, 1, body(1, LENGTH));
    assert_eq!(served(&store), 1);
}

#[test]
fn damage_met_while_reading_is_named_once_and_replaced_by_the_next_put() {
    let dir = tempdir().unwrap();
    filled(dir.path(), ENTRIES, LENGTH);
    let pack = dir.path().join("packs/00000001.pack");
    flip(&pack, pack.metadata().unwrap().len() - 100);
    let store = open(dir.path());
    let record = store.find(&key(ENTRIES - 1)).unwrap();
    assert!(store.body(&record).is_err() && store.body(&record).is_err());
    let notices = store.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains(&record.key.0.short()), "{notices:?}");
    put(&store, ENTRIES - 1, body(ENTRIES - 1, LENGTH));
    assert_eq!(served(&store), ENTRIES);
}

#[test]
fn what_verify_takes_out_is_gone() {
    let dir = tempdir().unwrap();
    filled(dir.path(), ENTRIES, LENGTH);
    let pack = dir.path().join("packs/00000001.pack");
    flip(&pack, pack.metadata().unwrap().len() - 1);
    let store = open(dir.path());
    let reports = store.verify().unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].lost, [key(ENTRIES - 1)]);
    drop(store);
    assert_eq!(open(dir.path()).find(&key(ENTRIES - 1)), None);
}
