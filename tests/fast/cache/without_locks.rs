//! File systems that have no locks: one process writes at a time all the same, and everything is stored.

use std::path::Path;
use std::process::{Command, Output};

use compeval::entries::key_of;
use store::cache::{CacheSnapshot, Lookup, Store};
use tempfile::tempdir;

use super::support::*;

const FOLDER: &str = "COMPEVAL_TEST_LOCKS";
const SOURCE: &str =
    "#include <errno.h>\nint flock(int fd, int how) { errno = ENOTSUP; return -1; }\n";

/// Not a test of its own: what runs where locks are refused.
#[test]
fn helper_uses_a_cache_without_locks() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    for round in 0..3 {
        let store = open(folder);
        let error = Store::open(folder, holder(), key_of)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("LOCK.held") && error.contains("remove it if the process is gone"),
            "{error}"
        );
        let notices = store.notices();
        assert!(
            notices
                .iter()
                .any(|notice| notice.contains("works without an index")),
            "{notices:?}"
        );
        put(&store, round, body(round, 100));
        (0..=round).for_each(|n| {
            assert_eq!(
                store.body(&store.find(&key(n)).unwrap()).unwrap(),
                body(n, 100)
            )
        });
    }
    assert!(!folder.join("LOCK.held").exists());
    std::fs::write(
        folder.join("LOCK.held"),
        "process 4194305 (compeval run, since 2026-01-01)",
    )
    .unwrap();
    let error = Store::open(folder, holder(), key_of)
        .unwrap_err()
        .to_string();
    assert!(error.contains("process 4194305"), "{error}");
    assert_eq!(
        CacheSnapshot::open(folder).unwrap().len(),
        3,
        "readers need no lock"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_cache_works_where_the_file_system_has_no_locks() {
    let folder = tempdir().unwrap();
    let (source, library) = (
        folder.path().join("locks.c"),
        folder.path().join("locks.so"),
    );
    std::fs::write(&source, SOURCE).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: there is no compiler for C");
        return;
    }
    let cache = folder.path().join("cache");
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cache::without_locks::helper_uses_a_cache_without_locks",
            "--nocapture",
        ])
        .env(FOLDER, &cache)
        .env("LD_PRELOAD", &library)
        .output()
        .unwrap();
    let text = [stdout, stderr].concat();
    assert!(status.success(), "{}", String::from_utf8_lossy(&text));
    std::fs::remove_file(cache.join("LOCK.held")).unwrap();
    let store = open(&cache);
    assert!(
        (0..3).all(|n| store.find(&key(n)).is_some()),
        "and where there are locks again"
    );
}
