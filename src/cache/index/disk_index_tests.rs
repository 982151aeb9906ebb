//! The index against the tables in memory, and what a crash leaves of it.

use proptest::prelude::*;

use super::*;
use crate::action::Stage;
use crate::cache::entry::EntryStatus;

#[derive(Clone, Debug)]
enum IndexChange {
    Entry(u8, u8),
    Remove(u8),
    Latest(u8, u8),
    Flush,
    Open,
}

fn step() -> impl Strategy<Value = IndexChange> {
    prop_oneof![
        4 => (0..40u8, 0..20u8).prop_map(|(key, place)| IndexChange::Entry(key, place)),
        1 => (0..40u8).prop_map(IndexChange::Remove),
        2 => (0..20u8, 0..60u8).prop_map(|(place, key)| IndexChange::Latest(place, key)),
        1 => Just(IndexChange::Flush),
        1 => Just(IndexChange::Open),
    ]
}

fn key(n: u8) -> ActionKey {
    ActionKey(Digest::of([n]))
}

fn place(n: u8) -> Digest {
    Digest::of([n, 0])
}

fn record(n: u8, offset: u64) -> Record {
    Record {
        key: key(n),
        location: FrameLocation { pack: 1, offset, head: 200, body: 300 },
        raw: Digest::of([n, 1]),
        raw_len: 900,
        status: EntryStatus::Output { out: Digest::of([n, 2]), state: None, parser: 1 },
        created: 1,
        stage: Stage::Answer,
        usage: Default::default(),
        cost: None,
        latency_ms: 1,
        dialect: None,
    }
}

fn apply<T: IndexUpdates>(tables: &mut T, step: &IndexChange, at: u64) -> Result<(), T::Error> {
    match step {
        IndexChange::Entry(n, p) => {
            tables.set_record(record(*n, at))?;
            tables.set_latest(place(*p), key(*n))
        }
        IndexChange::Remove(n) => tables.remove(&key(*n), RemovalReason::Pruned),
        IndexChange::Latest(p, n) => tables.set_latest(place(*p), key(*n)),
        IndexChange::Flush | IndexChange::Open => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_index_says_what_the_tables_in_memory_say(steps in prop::collection::vec(step(), 0..60)) {
        let (dir, mut tables) = (tempfile::tempdir().unwrap(), PackIndex::default());
        let mut index = DiskIndex::open(dir.path()).unwrap();
        for (at, step) in steps.iter().chain([&IndexChange::Flush, &IndexChange::Open]).enumerate() {
            let Ok(()) = apply(&mut tables, step, at as u64);
            apply(&mut &index, step, at as u64).unwrap();
            if matches!(step, IndexChange::Flush | IndexChange::Open) {
                index.flush().unwrap();
            }
            if matches!(step, IndexChange::Open) {
                drop(index);
                index = DiskIndex::open(dir.path()).unwrap();
            }
        }
        let filled = DiskIndex::open(&dir.path().join("filled")).unwrap();
        filled.fill(&tables).unwrap();
        for index in [&index, &filled] {
            for n in 0..60 {
                prop_assert_eq!(index.find(&key(n)).unwrap(), IndexQueries::find(&tables, &key(n)).unwrap());
                prop_assert_eq!(index.removed(&key(n)).unwrap(), tables.removed(&key(n)).unwrap());
                prop_assert_eq!(index.latest_at(&place(n)).unwrap(), tables.latest_at(&place(n)).unwrap());
            }
        }
    }
}

#[test]
fn a_run_that_a_crash_left_is_removed_and_the_listed_ones_stay() {
    let dir = folder_with_a_record();
    let index = DiskIndex::open(dir.path()).unwrap();
    (&index).set_record(record(2, 24)).unwrap();
    let merged = index.merge(&index.state()).unwrap();
    drop(merged);
    drop(index);
    assert_eq!(run_files(dir.path()), ["00000001.run", "00000002.run"]);
    let index = DiskIndex::open(dir.path()).unwrap();
    assert_eq!(index.find(&key(1)).unwrap(), Some(record(1, 24)));
    assert_eq!(index.find(&key(2)).unwrap(), None);
    assert_eq!(run_files(dir.path()), ["00000001.run"]);
}

#[test]
fn a_run_that_is_cut_off_or_missing_is_refused_when_the_index_is_opened() {
    let dir = folder_with_a_record();
    let (path, whole) = (run_file(dir.path(), 1), std::fs::read(run_file(dir.path(), 1)).unwrap());
    std::fs::write(&path, &whole[1..]).unwrap();
    assert!(DiskIndex::open(dir.path()).is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(DiskIndex::open(dir.path()).is_err());
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(DiskIndex::open(dir.path()).unwrap().find(&key(1)).unwrap(), Some(record(1, 24)));
}

#[test]
fn everything_in_the_catalog_is_in_the_file_that_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let index = DiskIndex::open(dir.path()).unwrap();
    let key = |n: u32| Table::SourceTexts.key(&Digest::of(n.to_le_bytes()).0);
    for from in (0..2400).step_by(200) {
        (from..from + 200).for_each(|n| index.set(key(n), Some(vec![0; 3900])).unwrap());
        index.flush().unwrap();
        assert_eq!(std::fs::read_dir(catalog_folder(dir.path()).join("blobs")).unwrap().count(), 0);
    }
    drop(index);
    assert!(DiskIndex::open(dir.path()).unwrap().get(&key(2399)).unwrap().is_some());
}

/// An index that has the record of key 1, in its first run.
fn folder_with_a_record() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let index = DiskIndex::open(dir.path()).unwrap();
    (&index).set_record(record(1, 24)).unwrap();
    index.flush().unwrap();
    dir
}

fn run_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".run")).collect();
    names.sort_unstable();
    names
}
