//! A remote over many runs: few requests, nothing lost by a failure, nothing used that was moved, and what a prune keeps.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::ready;
use futures::{FutureExt, TryFutureExt};
use tempfile::TempDir;

use super::backend::{BackendFuture, ListedObject, Remote, RemoteError, WriteOutcome};
use super::folder::FolderRemote;
use super::pack::{PackEnd, SignedFooter};
use super::prune::RemotePruneCounts;
use super::settings::{RemoteMode, RemoteSettings};
use super::shared::SharedCache;
use super::{SigningKey, TrustedWriter};
use crate::cache::{EntryHeader, Field, Lookup, ModelNames, ParseResult, Store, Tag};
use crate::digest::{ActionKey, Digest};
use base::units::Usage;

/// A remote in memory.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Bytes>>>);

impl Memory {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.0.lock().unwrap()
    }
}

impl Remote for Memory {
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>> {
        let is_in = |name: &str| {
            name.strip_prefix(folder)
                .is_some_and(|rest| folder.is_empty() || rest.starts_with('/'))
        };
        let listed = |(name, bytes): (&String, &Bytes)| {
            is_in(name).then(|| ListedObject {
                name: name.clone(),
                bytes: bytes.len() as u64,
                written: None,
            })
        };
        ready(Ok(self.objects().iter().filter_map(listed).collect())).boxed()
    }
    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes> {
        let found = self.objects().get(name).cloned();
        let bytes = found
            .map(|all| range.map_or(all.clone(), |r| all.slice(r.start as usize..r.end as usize)));
        ready(bytes.ok_or_else(|| RemoteError::NotFound(name.to_owned()))).boxed()
    }
    fn write_if_absent<'a>(
        &'a self,
        name: &'a str,
        bytes: Bytes,
    ) -> BackendFuture<'a, WriteOutcome> {
        let before = self.objects().insert(name.to_owned(), bytes);
        ready(Ok(if before.is_some() {
            WriteOutcome::Exists
        } else {
            WriteOutcome::Written
        }))
        .boxed()
    }
    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, ()> {
        self.objects().insert(name.to_owned(), bytes);
        ready(Ok(())).boxed()
    }
    fn delete<'a>(&'a self, name: &'a str) -> BackendFuture<'a, ()> {
        self.objects().remove(name);
        ready(Ok(())).boxed()
    }
    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()> {
        ready(Ok(())).boxed()
    }
}

/// A remote that counts requests, and refuses to write after some.
#[derive(Debug)]
struct Counting {
    inner: Box<dyn Remote>,
    requests: Arc<AtomicUsize>,
    writes: AtomicUsize,
    most_writes: usize,
}

impl Counting {
    fn may_write(&self) -> Result<(), RemoteError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.writes.fetch_add(1, Ordering::Relaxed) < self.most_writes {
            return Ok(());
        }
        Err(RemoteError::Failed {
            operation: "write to",
            url: "fs://x".into(),
            what: "the test refuses".into(),
        })
    }
}

impl Remote for Counting {
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>> {
        let count = |found: Vec<ListedObject>| {
            // A store lists a thousand objects at a time.
            self.requests
                .fetch_add(1 + found.len() / 1000, Ordering::Relaxed);
            found
        };
        self.inner.list(folder).map_ok(count).boxed()
    }
    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.read(name, range)
    }
    fn write_if_absent<'a>(
        &'a self,
        name: &'a str,
        bytes: Bytes,
    ) -> BackendFuture<'a, WriteOutcome> {
        match self.may_write() {
            Ok(()) => self.inner.write_if_absent(name, bytes),
            Err(error) => ready(Err(error)).boxed(),
        }
    }
    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, ()> {
        match self.may_write() {
            Ok(()) => self.inner.replace(name, bytes),
            Err(error) => ready(Err(error)).boxed(),
        }
    }
    fn delete<'a>(&'a self, name: &'a str) -> BackendFuture<'a, ()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.delete(name)
    }
    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()> {
        self.inner.check_private()
    }
}

/// A remote in a folder with its writer, and a local cache.
struct Place {
    folder: TempDir,
    secret: String,
    writer: TrustedWriter,
    store: Store,
    requests: Arc<AtomicUsize>,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        base::files::create_private_folder(&folder.path().join("shared")).unwrap();
        let (key, secret) = SigningKey::generate().unwrap();
        let writer = TrustedWriter {
            name: "ci".into(),
            key: key.public(),
        };
        let store = open(&folder.path().join("local"));
        Place {
            folder,
            secret,
            writer,
            store,
            requests: Arc::default(),
        }
    }

    fn shared(&self) -> PathBuf {
        self.folder.path().join("shared")
    }

    /// The remote as a process of its own sees it. It refuses after `most_writes` writes.
    fn process(&self, most_writes: usize) -> SharedCache {
        let key = Some(SigningKey::parse(&self.secret).unwrap());
        self.process_at(Box::new(FolderRemote::new(self.shared())), key, most_writes)
    }

    /// The same with another remote. Without a key, unsigned packs are used.
    fn process_at(
        &self,
        inner: Box<dyn Remote>,
        key: Option<SigningKey>,
        most_writes: usize,
    ) -> SharedCache {
        let url = format!("fs://{}", self.shared().display()).parse().unwrap();
        let settings = RemoteSettings {
            url,
            trust: vec![self.writer.clone()],
            mode: RemoteMode::Write,
            unsigned: key.is_none(),
            key,
            texts: false,
            assignment: None,
            part: None,
        };
        self.requests.store(0, Ordering::Relaxed);
        let remote = Counting {
            inner,
            requests: self.requests.clone(),
            writes: AtomicUsize::new(0),
            most_writes,
        };
        SharedCache::with_remote(Box::new(remote), settings)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn objects(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.shared().join(folder))
            .into_iter()
            .flatten()
            .flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        found.sort();
        found
    }

    async fn put(&self, n: u64) -> ActionKey {
        let field = Field {
            text: None,
            content: n.to_le_bytes().into(),
        };
        let header = EntryHeader {
            kind: Tag(2),
            format: None,
            created: n,
            usage: Usage::default(),
            cost: None,
            latency_ms: 1,
            place: Digest::hash("place"),
            models: ModelNames::default(),
            origin: None,
            fields: vec![field],
        };
        let key = key_of(&header).unwrap();
        let body = format!("reply {n} {}", Digest::hash(n.to_le_bytes()));
        let record = self
            .store
            .put_reply(key, &header, body.into())
            .await
            .unwrap();
        self.store.note(
            &record,
            &ParseResult::Output {
                out: record.raw,
                state: None,
                parser: 1,
            },
        );
        record.key
    }

    /// Uploads one entry as a process of its own.
    async fn push(&self, n: u64) -> ActionKey {
        let key = self.put(n).await;
        let process = self.process(usize::MAX);
        process.load().await.unwrap();
        process.push(&self.store, &[key]).await.unwrap();
        key
    }
}

/// The key of an entry, by what its only field says.
fn key_of(header: &EntryHeader) -> Option<ActionKey> {
    header
        .fields
        .first()
        .map(|field| ActionKey(Digest::hash(&field.content)))
}

/// How many of these entries the remote has.
fn count(reader: &SharedCache, keys: &[ActionKey]) -> u64 {
    keys.iter().filter(|key| reader.has(key)).count() as u64
}

fn open(folder: &Path) -> Store {
    Store::open(folder, "test", key_of).unwrap()
}

#[tokio::test]
async fn a_remote_of_many_runs_is_read_with_few_requests() {
    let place = Place::new();
    let mut keys = Vec::new();
    let mut most = 0;
    for n in 0..200 {
        keys.push(place.push(n).await);
        let reader = place.process(0);
        reader.load().await.unwrap();
        most = most.max(place.requests());
        assert_eq!(count(&reader, &keys), n + 1);
    }
    assert_eq!(place.objects("packs").len(), 200);
    let objects = place.objects("index").len();
    assert!(objects <= 6, "{objects} index objects and the listing");
    assert!(most <= 30, "{most} requests");
}

#[tokio::test]
async fn after_two_thousand_pushes_a_reader_sends_sixty_requests_at_most() {
    let (place, memory) = (Place::new(), Memory::default());
    let keys = futures::future::join_all((0..2000).map(|n| place.put(n))).await;
    for of_process in keys.chunks(100) {
        // Unsigned, so that nothing is verified while they are written.
        let writer = place.process_at(Box::new(memory.clone()), None, usize::MAX);
        writer.load().await.unwrap();
        for key in of_process {
            writer.push(&place.store, &[*key]).await.unwrap();
        }
    }
    assert_eq!(
        memory
            .objects()
            .keys()
            .filter(|name| name.starts_with("packs/"))
            .count(),
        2000
    );
    let (reader, local) = (
        place.process_at(Box::new(memory), None, 0),
        open(&place.folder.path().join("second")),
    );
    reader.load().await.unwrap();
    assert_eq!(count(&reader, &keys), 2000);
    reader.pull(&local, keys[777]).await.unwrap();
    assert!(
        local
            .find(&keys[777])
            .is_some_and(|record| record.is_usable())
    );
    assert!(
        place.requests() <= 60,
        "{} requests before the first cell",
        place.requests()
    );
}

#[tokio::test]
async fn junk_forged_cut_and_foreign_packs_are_counted_and_what_is_sound_is_used() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let (sound, forged) = (place.push(1).await, place.push(2).await);
    let other = elsewhere.push(3).await;
    let write = |name: &str, bytes: &[u8]| {
        let path = place.shared().join(name);
        base::files::create_private_folder(path.parent().unwrap()).unwrap();
        fs::remove_file(&path).ok();
        fs::write(path, bytes).unwrap();
    };
    let name = |text: &str| Digest::hash(text).to_string();
    let packs = place.objects("packs");
    let bytes: Vec<Vec<u8>> = packs.iter().map(|path| fs::read(path).unwrap()).collect();
    let second = usize::from(bytes[0].windows(32).any(|found| found == sound.0.0));
    // A stranger's signature in the place of the writer's.
    let mut changed = bytes[second].clone();
    let at = changed.len() - 40;
    changed[at] ^= 1;
    let Ok(PackEnd::Footer(signed)) = SignedFooter::from_tail(&changed) else {
        panic!("a footer")
    };
    fs::remove_file(&packs[second]).unwrap();
    write(&format!("packs/{}", signed.name()), &changed);
    write(
        &format!("packs/{}", name("cut")),
        &bytes[second][..bytes[second].len() / 2],
    );
    write(&format!("packs/{}", name("junk")), &[0x55; 3000]);
    write("packs/readme.txt", b"not a pack");
    let [foreign] = &elsewhere.objects("packs")[..] else {
        panic!("one pack")
    };
    write(
        &format!("packs/{}", foreign.file_name().unwrap().to_str().unwrap()),
        &fs::read(foreign).unwrap(),
    );
    for (object, bytes) in [("index", vec![0xff; 400]), ("index", Vec::new())] {
        write(&format!("{object}/{}", Digest::hash(&bytes)), &bytes);
    }
    write("index/latest", b"<html>");
    write(&format!("index/removed-{}", name("list")), &[0x11; 90]);
    write("parts/nightly.1-of-2-000000000001-junk", &[0x22; 90]);
    let reader = place.process(0);
    reader.load().await.unwrap();
    assert_eq!(count(&reader, &[sound, forged, other]), 1);
    let summary = reader.summary().unwrap();
    assert_eq!(
        (
            summary.packs,
            summary.damaged,
            summary.untrusted.len() as u64 + summary.foreign
        ),
        (1, 3, 1)
    );
    assert!(reader.part_records("nightly", 2).await.unwrap().is_empty());
    let warnings = reader.take_warnings().join("\n");
    for words in [
        "is damaged and is not used",
        "its end is not that of a pack",
        "its signature is not that of ci",
        "lists of removed packs",
        "records of parts",
    ] {
        assert!(
            warnings.contains(words),
            "`{words}` is missing in {warnings}"
        );
    }
    // A pack that vanished after the list was read is a miss.
    fs::remove_file(packs[1 - second].clone()).unwrap();
    let local = open(&place.folder.path().join("second"));
    reader.pull(&local, sound).await.unwrap();
    assert!(local.find(&sound).is_none() && reader.take_warnings().is_empty());
}

#[tokio::test]
async fn entries_that_are_wanted_together_come_together() {
    let place = Place::new();
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(place.put(n).await);
    }
    let writer = place.process(usize::MAX);
    writer.load().await.unwrap();
    writer.push(&place.store, &keys).await.unwrap();
    for wanted in [&keys[..1], &keys[..5], &keys[..60]] {
        let local = open(&place.folder.path().join(format!("second-{}", wanted.len())));
        let reader = place.process(0);
        reader.load().await.unwrap();
        let before = place.requests();
        futures::future::try_join_all(wanted.iter().map(|key| reader.pull(&local, *key)))
            .await
            .unwrap();
        assert_eq!(place.requests() - before, 1);
        assert!(
            wanted
                .iter()
                .all(|key| local.find(key).is_some_and(|record| record.is_usable()))
        );
        let all = keys.iter().filter(|key| local.find(key).is_some()).count();
        assert_eq!(
            all,
            if wanted.len() > 8 { 100 } else { wanted.len() },
            "the rest comes when much is wanted"
        );
    }
}

#[tokio::test]
async fn an_upload_that_fails_at_any_point_loses_nothing() {
    for writes in 0..4 {
        let place = Place::new();
        let mut keys = vec![place.put(1).await];
        let broken = place.process(writes);
        broken.load().await.unwrap();
        let result = broken.push(&place.store, &keys).await;
        assert_eq!(
            result.is_ok(),
            writes == 3,
            "marker, pack, listing: {result:?}"
        );
        let reader = place.process(0);
        reader.load().await.unwrap();
        assert_eq!(
            count(&reader, &keys),
            u64::from(writes >= 2),
            "whole or not at all"
        );
        assert!(reader.take_warnings().is_empty());
        keys.push(place.push(2).await);
        let later = place.process(usize::MAX);
        later.load().await.unwrap();
        later.push(&place.store, &keys).await.unwrap();
        let reader = place.process(0);
        reader.load().await.unwrap();
        assert_eq!(count(&reader, &keys), 2);
    }
}

#[tokio::test]
async fn a_pack_under_another_name_is_not_used() {
    let place = Place::new();
    let key = place.push(1).await;
    let [pack] = &place.objects("packs")[..] else {
        panic!("one pack")
    };
    let moved = pack.with_file_name(Digest::hash("another").to_string());
    fs::copy(pack, &moved).unwrap();
    fs::remove_file(pack).unwrap();
    let reader = place.process(0);
    reader.load().await.unwrap();
    assert_eq!(count(&reader, &[key]), 0);
    assert_eq!(reader.summary().unwrap().damaged, 1);
    // back in its place it says what its writer signed, and nothing else
    fs::copy(&moved, pack).unwrap();
    let reader = place.process(0);
    reader.load().await.unwrap();
    assert_eq!(
        (count(&reader, &[key]), reader.summary().unwrap().damaged),
        (1, 1)
    );
}

#[tokio::test]
async fn a_pack_that_is_no_file_any_more_is_damaged_and_the_others_are_pulled() {
    let place = Place::new();
    let (broken, sound) = (place.push(1).await, place.push(2).await);
    let reader = place.process(0);
    reader.load().await.unwrap();
    let packs = place.objects("packs");
    let pack = packs
        .iter()
        .find(|pack| {
            fs::read(pack)
                .unwrap()
                .windows(32)
                .any(|found| found == broken.0.0)
        })
        .unwrap();
    fs::remove_file(pack).unwrap();
    fs::create_dir(pack).unwrap();
    let local = open(&place.folder.path().join("second"));
    reader.pull(&local, broken).await.unwrap();
    reader.pull(&local, sound).await.unwrap();
    assert!(
        local.find(&broken).is_none()
            && local.find(&sound).is_some_and(|record| record.is_usable())
    );
    let warnings = reader.take_warnings().join("\n");
    assert!(
        warnings.contains("is damaged and is not used") && warnings.contains("no regular file"),
        "{warnings}"
    );
    let local = open(&place.folder.path().join("third"));
    assert_eq!(
        reader.pull_all(&local).await.unwrap().unwrap().entries,
        2,
        "with the one that was pulled before"
    );
    assert!(local.find(&sound).is_some());
}

#[tokio::test]
async fn a_prune_deletes_what_no_label_needs_thirty_days_after_it_was_marked() {
    let place = Place::new();
    let (kept, spare) = (place.push(1).await, place.push(2).await);
    let process = place.process(usize::MAX);
    process.push_label("baseline", &[kept]).await.unwrap();
    let counts = RemotePruneCounts {
        labels: 1,
        kept: 1,
        ..RemotePruneCounts::default()
    };
    let marked = RemotePruneCounts {
        marked: 1,
        ..counts
    };
    assert_eq!(process.prune(true).await.unwrap(), marked);
    assert!(
        place.objects("marks").is_empty(),
        "a dry run writes nothing"
    );
    assert_eq!(process.prune(false).await.unwrap(), marked);
    assert_eq!(
        process.prune(false).await.unwrap(),
        RemotePruneCounts {
            waiting: 1,
            ..counts
        }
    );

    let age = |days: u64| {
        let [mark] = &place.objects("marks")[..] else {
            panic!("one mark")
        };
        fs::set_permissions(mark, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        File::options()
            .write(true)
            .open(mark)
            .unwrap()
            .set_modified(then)
            .unwrap();
    };
    age(29);
    assert_eq!(
        process.prune(false).await.unwrap(),
        RemotePruneCounts {
            waiting: 1,
            ..counts
        }
    );
    // a label that is pushed in time saves it, and its mark is gone
    process.push_label("late", &[spare]).await.unwrap();
    assert_eq!(
        process.prune(false).await.unwrap(),
        RemotePruneCounts {
            labels: 2,
            kept: 2,
            ..RemotePruneCounts::default()
        }
    );
    assert!(place.objects("marks").is_empty());
    fs::remove_file(place.shared().join("labels/late")).unwrap();
    process.prune(false).await.unwrap();
    age(31);
    let old = place.objects("packs");
    let copies: Vec<(PathBuf, Vec<u8>)> = old
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    let deleted = process.prune(false).await.unwrap();
    assert_eq!(
        (deleted.kept, deleted.deleted, place.objects("packs").len()),
        (1, 1, 1)
    );
    assert!(deleted.deleted_bytes > 0 && place.objects("marks").is_empty());
    let reader = place.process(0);
    reader.load().await.unwrap();
    assert_eq!((count(&reader, &[kept]), count(&reader, &[spare])), (1, 0));

    // Somebody puts back what was deleted: it is validly signed, and not used.
    for (path, bytes) in copies.iter().filter(|(path, _)| !path.exists()) {
        fs::write(path, bytes).unwrap();
    }
    let reader = place.process(0);
    reader.load().await.unwrap();
    assert_eq!((count(&reader, &[kept]), count(&reader, &[spare])), (1, 0));
    assert_eq!(reader.summary().unwrap().removed, 1);
    assert!(
        reader
            .take_warnings()
            .iter()
            .any(|text| text.contains("are there again"))
    );
    // the entry can be uploaded again, and the next prune deletes what was put back, without another month
    assert_eq!(place.push(2).await, spare);
    let again = process.prune(false).await.unwrap();
    assert_eq!((again.kept, again.deleted, again.marked), (1, 1, 1));
    assert_eq!(
        place.objects("index").len(),
        2,
        "the listing and one list of what was pruned"
    );
    let reader = place.process(0);
    reader.load().await.unwrap();
    assert_eq!(
        (
            count(&reader, &[kept, spare]),
            reader.summary().unwrap().removed
        ),
        (2, 0)
    );
    assert!(reader.take_warnings().is_empty());
}
