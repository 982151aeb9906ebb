//! What entries share in a pack, and packs that are cut off.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use compeval::action::{ActionKey, Digest};
use compeval::entries::{EntryLookup, EntryMeta};
use store::cache::{CacheSnapshot, EntryStatus, Lookup, ParseResult, Store};
use tempfile::tempdir;

use super::support::*;

type Entries = BTreeMap<ActionKey, (Bytes, EntryMeta, EntryStatus)>;

fn entries(cache: &impl Lookup) -> Entries {
    let records = cache.records().into_iter();
    let read = records.map(|record| {
        let (body, meta) = (cache.body(&record).unwrap(), cache.meta(&record).unwrap());
        assert_eq!(
            meta.inputs.key(),
            record.key,
            "an entry is explained by its own inputs"
        );
        assert_eq!(
            cache.latest(&meta.coordinate.digest(meta.stage)),
            Some(record.key)
        );
        (record.key, (body, meta, record.status))
    });
    read.collect()
}

/// Entries of which many fields are the same, with results of parsing.
fn shared(dir: &Path, count: u64) {
    let store = open(dir);
    for n in 0..count {
        let record = put(&store, n, body(n, 200));
        store.note(
            &record,
            &ParseResult::Output {
                out: Digest::hash(n.to_le_bytes()),
                state: None,
                parser: 1,
            },
        );
    }
    store.close().unwrap();
}

/// The places of frames with this kind in packed form, and their lengths.
fn packed_frames(pack: &[u8], kind: u8) -> Vec<(usize, usize)> {
    let starts = [0xC5, b'f', b'r', 2, kind, 0x80];
    let at = |at: &usize| pack[*at..].starts_with(&starts);
    // a note of up to 127 bytes has one byte of length, a longer one two
    let length = |at: usize| match (usize::from(pack[at + 6]), usize::from(pack[at + 7])) {
        (short, _) if short < 128 => 7 + short + 4,
        (low, high) => 8 + (low - 128) + high * 128 + 4,
    };
    (0..pack.len() - 8)
        .filter(at)
        .map(|at| (at, length(at)))
        .collect()
}

const FIELDS: u8 = 10;
const PARSE_RESULTS: u8 = 11;

/// The entries that another cache would take, and those that it would not: nobody could verify their keys.
fn taken(cache: &Path) -> (u64, u64) {
    let snapshot = CacheSnapshot::open(cache).unwrap();
    let records = snapshot.records();
    let folder = tempdir().unwrap();
    let into = open(folder.path());
    let keys: Vec<ActionKey> = records.iter().map(|record| record.key).collect();
    let added = into.import_from_cache(&snapshot, &keys).unwrap().added;
    (added, records.len() as u64 - added)
}

#[test]
fn whatever_happens_to_shared_fields_no_output_is_lost_and_no_explanation_is_wrong() {
    const COUNT: u64 = 5;
    let sound = tempdir().unwrap();
    shared(sound.path(), COUNT);
    let name = "packs/00000001.pack";
    let pack = std::fs::read(sound.path().join(name)).unwrap();
    let check = |cache: &dyn Fn(u64) -> (Bytes, Option<EntryMeta>), case: &str| {
        let found = (0..COUNT).map(cache).enumerate();
        found
            .filter(|(n, (found, explained))| {
                let n = *n as u64;
                assert_eq!(*found, body(n, 200), "{case}");
                explained.as_ref().is_some_and(|explained| {
                    assert_eq!(*explained, meta(n), "{case}");
                    true
                })
            })
            .count() as u64
    };
    let read = |store: &Store, n: u64| {
        let record = store.find(&key(n)).unwrap();
        (store.body(&record).unwrap(), store.meta(&record).ok())
    };
    let frames = packed_frames(&pack, FIELDS);
    assert!(!frames.is_empty());
    for at in frames
        .into_iter()
        .flat_map(|(at, length)| (at..at + length).step_by(7))
    {
        let dir = tempdir().unwrap();
        copy(sound.path(), dir.path());
        let mut flipped = pack.clone();
        flipped[at] ^= 0x20;
        std::fs::write(dir.path().join(name), &flipped).unwrap();
        let case = format!("byte {at}");
        let store = open(dir.path());
        assert!(
            check(&|n| read(&store, n), &case) < COUNT,
            "{case}: what shares it is not explained"
        );
        assert!(!store.verify().unwrap().is_empty(), "{case}: it is named");
        assert_eq!(store.verify().unwrap(), [], "{case}: once");
        put(&store, 50, body(50, 200));
        put(&store, 51, body(51, 200));
        let explained = check(&|n| read(&store, n), &case);
        assert_eq!(
            store.meta(&store.find(&key(51)).unwrap()).unwrap(),
            meta(51),
            "{case}"
        );
        drop(store);
        assert_eq!(
            taken(dir.path()),
            (explained + 2, COUNT - explained),
            "{case}: what is explained is taken"
        );
        let store = open(dir.path());
        assert_eq!(
            check(&|n| read(&store, n), &case),
            explained,
            "{case}: what was lost stays lost, and nothing else"
        );
        assert_eq!(store.notices(), Vec::<String>::new(), "{case}");
        store.prune(&[key(0)], &Default::default()).unwrap();
        assert!(
            store.find(&key(0)).is_none() && read(&store, 1).0 == body(1, 200),
            "{case}"
        );
    }
}

#[test]
fn damaged_results_of_parsing_are_made_again() {
    let sound = tempdir().unwrap();
    shared(sound.path(), 3);
    let name = "packs/00000001.pack";
    let pack = std::fs::read(sound.path().join(name)).unwrap();
    let frames = packed_frames(&pack, PARSE_RESULTS);
    assert!(!frames.is_empty());
    for at in frames
        .into_iter()
        .flat_map(|(at, length)| (at..at + length).step_by(3))
    {
        let dir = tempdir().unwrap();
        copy(sound.path(), dir.path());
        let mut flipped = pack.clone();
        flipped[at] ^= 0x20;
        std::fs::write(dir.path().join(name), &flipped).unwrap();
        let store = open(dir.path());
        // what is damaged at the end of a pack is cut off when it is opened
        assert!(
            !store.notices().is_empty() || !store.verify().unwrap().is_empty(),
            "byte {at}"
        );
        for n in 0..3 {
            let record = store.find(&key(n)).unwrap();
            let out = Digest::hash(n.to_le_bytes());
            let known = EntryStatus::Output {
                out,
                state: None,
                parser: 1,
            };
            assert!(
                record.status == EntryStatus::Unparsed || record.status == known,
                "byte {at}"
            );
            assert_eq!(store.body(&record).unwrap(), body(n, 200), "byte {at}");
        }
    }
}

#[test]
fn a_pack_that_is_cut_off_anywhere_has_what_is_whole() {
    let sound = tempdir().unwrap();
    shared(sound.path(), 3);
    let pack = std::fs::read(sound.path().join("packs/00000001.pack")).unwrap();
    let mut most = 0;
    for length in (24..pack.len()).step_by(5) {
        let dir = tempdir().unwrap();
        std::fs::create_dir(dir.path().join("packs")).unwrap();
        std::fs::write(dir.path().join("packs/00000001.pack"), &pack[..length]).unwrap();
        let snapshot = CacheSnapshot::open(dir.path()).unwrap();
        let found = entries(&snapshot);
        assert!(
            found
                .iter()
                .all(|(_, (body, ..))| body.starts_with(b"reply ")),
            "{length} bytes"
        );
        assert!(found.len() >= most, "{length} bytes");
        most = found.len();
    }
    assert_eq!(most, 3);
}

#[test]
fn entries_that_share_what_they_were_made_from_take_little() {
    let dir = tempdir().unwrap();
    shared(dir.path(), 200);
    let overhead = disk(&dir.path().join("packs")) / 200 - 200;
    assert!(overhead < 420, "{overhead} bytes beside a body");
    let index = disk(&dir.path().join("index")) / 200;
    assert!(
        index < 2000,
        "{index} bytes in the index, most of them what even an empty one takes"
    );
}
