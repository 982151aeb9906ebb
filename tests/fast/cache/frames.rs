//! Frames that are damaged or cut off, and what they take.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use compeval::action::{ActionKey, Digest};
use compeval::entries::{EntryLookup, EntryMeta};
use store::cache::{CacheSnapshot, EntryStatus, Lookup};
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
        assert_eq!(cache.latest(&meta.header().summary.place), Some(record.key));
        (record.key, (body, meta, record.status))
    });
    read.collect()
}

/// Entries with results of parsing.
fn parsed(dir: &Path, count: u64) {
    let store = open(dir);
    for n in 0..count {
        let record = put(&store, n, body(n, 200));
        store.note(
            &record,
            &EntryStatus::Output {
                out: Digest::hash(n.to_le_bytes()),
                parser: 1,
            },
        );
    }
    store.close().unwrap();
}

/// The places of frames of this kind, and the lengths of their headers.
fn frames_of(pack: &[u8], kind: u8) -> Vec<(usize, usize)> {
    let starts = [0xC5, b'f', b'r', 1, kind];
    (0..pack.len() - 92)
        .filter(|at| pack[*at..].starts_with(&starts))
        .map(|at| (at, 88 + usize::from(pack[at + 8]) + 4))
        .collect()
}

const PARSE_RESULT: u8 = 2;

#[test]
fn damaged_results_of_parsing_are_made_again() {
    let sound = tempdir().unwrap();
    parsed(sound.path(), 3);
    let name = "packs/00000001.pack";
    let pack = std::fs::read(sound.path().join(name)).unwrap();
    let frames = frames_of(&pack, PARSE_RESULT);
    assert!(!frames.is_empty());
    for at in frames
        .into_iter()
        .flat_map(|(at, length)| (at..at + length).step_by(11))
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
            let known = EntryStatus::Output { out, parser: 1 };
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
    parsed(sound.path(), 3);
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
fn entries_take_little() {
    let dir = tempdir().unwrap();
    parsed(dir.path(), 200);
    let overhead = disk(&dir.path().join("packs")) / 200 - 200;
    assert!(overhead < 1200, "{overhead} bytes beside a body");
    let index = disk(&dir.path().join("index")) / 200;
    assert!(
        index < 2000,
        "{index} bytes in the index, most of them what even an empty one takes"
    );
}
