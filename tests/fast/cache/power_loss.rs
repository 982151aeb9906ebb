//! Power losses: the changes of a process are recorded in their order, and a cache is opened as each of many losses of
//! power would have left it, under several semantics of file systems.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compeval::action::Digest;
use compeval::entries::key_of;
use store::cache::{CacheSnapshot, EntryStatus, Lookup, Store};
use tempfile::tempdir;

use super::crashed_files::{Recording, Semantics};
use super::support::*;

const FOLDER: &str = "COMPEVAL_TEST_POWER";
const SOURCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fast/cache/write_recorder.c"
);
/// States for each of the four semantics.
const STATES: usize = 80;
const ENTRIES: u64 = 24;

fn length(n: u64) -> usize {
    100 + (n as usize * 797) % 9000
}

/// Not a test of its own: what is recorded. It makes a cache, puts entries with readings and texts, prunes some of them,
/// opens the cache again and puts more. It prints what it will never remove, once it is acknowledged.
#[test]
fn helper_writes_while_it_is_recorded() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    println!("\nready");
    for round in 0..3 {
        let store = open(Path::new(&folder));
        for n in (0..ENTRIES).map(|n| round * ENTRIES + n) {
            let record = put(&store, n, body(n, length(n)));
            store.note(
                &record,
                &EntryStatus::Output {
                    out: Digest::hash(n.to_le_bytes()),
                    parser: 1,
                },
            );
            store.text(Digest::hash(source_text(n)), &source_text(n));
            if !is_pruned(n) {
                println!("ack {n}");
            }
        }
        let pruned: Vec<_> = (0..(round + 1) * ENTRIES)
            .filter(|n| is_pruned(*n))
            .map(key)
            .collect();
        store.prune(&pruned, &Default::default()).unwrap();
        store.close().unwrap();
    }
}

fn is_pruned(n: u64) -> bool {
    n % 3 == 1
}

/// The recorder, built; `None` where there is no compiler for C.
fn recorder(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("recorder.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(SOURCE)
        .status();
    built
        .is_ok_and(|status| status.success())
        .then_some(library)
}

fn recorded(folder: &Path, library: &Path) -> Recording {
    let (root, records) = (folder.join("root"), folder.join("records"));
    std::fs::create_dir(&root).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cache::power_loss::helper_writes_while_it_is_recorded",
            "--nocapture",
        ])
        .env(FOLDER, root.join("cache"))
        .env("LD_PRELOAD", library)
        .env("RECORD_ROOT", &root)
        .env("RECORD_TO", &records)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(ended.success());
    let recording = Recording::read(&std::fs::read(records).unwrap(), &root);
    assert_eq!(
        recording.acknowledged(recording.len()).len() as u64,
        ENTRIES * 2,
        "everything was recorded"
    );
    recording
}

/// Opens what is left, and expects all acknowledged entries in it. The error says what is wrong.
fn survives(cache: &Path, acknowledged: &[u64], semantics: Semantics) -> Result<(), String> {
    let snapshot =
        CacheSnapshot::open(cache).map_err(|error| format!("refused to readers: {error}"))?;
    let store =
        Store::open(cache, holder(), key_of).map_err(|error| format!("refused: {error}"))?;
    let notices = store.notices();
    if semantics == Semantics::Killed && !notices.is_empty() {
        return Err(format!("a kill is noticed: {notices:?}"));
    }
    for n in acknowledged {
        let has = |cache: &dyn Fn() -> Option<bytes::Bytes>| cache() == Some(body(*n, length(*n)));
        let by_store = has(&|| store.body(&store.find(&key(*n))?).ok());
        let by_snapshot = has(&|| snapshot.body(&snapshot.find(&key(*n))?).ok());
        if !by_store || !by_snapshot {
            return Err(format!(
                "{n} is lost to the store: {}, to readers: {}; {notices:?}",
                !by_store, !by_snapshot
            ));
        }
    }
    put(&store, 999, body(999, 10));
    store.close().map_err(|error| error.to_string())?;
    let store =
        Store::open(cache, holder(), key_of).map_err(|error| format!("refused later: {error}"))?;
    let found = store
        .find(&key(999))
        .and_then(|record| store.body(&record).ok());
    if found == Some(body(999, 10)) {
        Ok(())
    } else {
        Err("what is put later is lost".into())
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_loss_of_power_loses_what_was_acknowledged_or_makes_a_cache_unusable() {
    let folder = tempdir().unwrap();
    let Some(library) = recorder(folder.path()) else {
        println!("skipped: there is no compiler for C");
        return;
    };
    let recording = recorded(folder.path(), &library);
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    let mut faults = Vec::new();
    for semantics in [
        Semantics::Killed,
        Semantics::Ordered,
        Semantics::Linux,
        Semantics::Posix,
    ] {
        for state in 0..STATES {
            // the first changes, which create the cache, are looked at closely
            let until = if state < STATES / 4 {
                draw(60)
            } else {
                draw(recording.len())
            };
            let left = recording.left(until, semantics, &mut draw);
            let dir = tempdir().unwrap();
            recording.materialize(&left, dir.path());
            let found = survives(
                &dir.path().join("cache"),
                &recording.acknowledged(until),
                semantics,
            );
            faults.extend(
                found
                    .err()
                    .map(|fault| format!("{semantics:?}, after {until} changes: {fault}")),
            );
        }
    }
    assert!(
        faults.is_empty(),
        "{} states:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
