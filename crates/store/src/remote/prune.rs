//! Pruning a remote: a pack that no label needs is marked, and deleted by a later prune when its mark is 30 days old
//! by the clock of the remote. Every run that began before the mark has ended by then. Records of parts are deleted at the
//! same age.
//!
//! Labels that were pushed to the remote protect the entries that they need: `labels/NAME` lists keys, one per line. It
//! needs no signature: a forged one only keeps more, and whoever can delete a label can also delete packs.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::StreamExt;

use super::backend::{Remote, RemoteError};
use super::index::{FoundPack, read_footers};
use super::index_objects::CONCURRENT_REQUESTS;
use super::keys::SigningKey;
use super::pack::PackFault;
use super::removals::{RemovedPacks, trusted_lists};
use super::signed::{RemoteId, Trust};
use super::{index_objects, part_records, removals};
use crate::digest::Digest;

const LABELS: &str = "labels";
const MARKS: &str = "marks";
/// The object that is written to learn the time of the remote's clock.
const CLOCK: &str = "marks/clock";
const HEADING: &str = "compeval label 1";

/// How long a pack stays after it was marked.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a prune did, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemotePruneCounts {
    /// Labels whose entries stay.
    pub labels: u64,
    /// Packs that labels need, and those of newer versions, which are left alone.
    pub kept: u64,
    /// Marked now.
    pub marked: u64,
    /// Marked earlier, and not yet due.
    pub waiting: u64,
    /// Packs that were deleted.
    pub deleted: u64,
    /// Their size.
    pub deleted_bytes: u64,
    /// Records of parts that are deleted.
    pub records: u64,
}

/// Lists the entries that a label needs.
pub(super) async fn write_label(
    remote: &dyn Remote,
    label: &str,
    keys: &[Digest],
) -> Result<(), RemoteError> {
    let lines: Vec<String> = std::iter::once(HEADING.to_owned())
        .chain(keys.iter().map(Digest::to_string))
        .collect();
    remote
        .replace(&format!("{LABELS}/{label}"), Bytes::from(lines.join("\n")))
        .await
}

/// The keys that labels need, and how many labels there are.
async fn protected(remote: &dyn Remote, url: &str) -> Result<(HashSet<Digest>, u64), RemoteError> {
    let (mut keys, mut labels) = (HashSet::new(), 0);
    let listed = remote.list(LABELS).await?.into_iter();
    let requests =
        listed.map(|object| async move { (remote.read(&object.name, None).await, object.name) });
    let mut replies = futures::stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
    while let Some((reply, name)) = replies.next().await {
        let bytes = reply?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        if lines.next() != Some(HEADING) {
            return Err(RemoteError::foreign(url, &name));
        }
        keys.extend(lines.filter_map(|line| line.parse::<Digest>().ok()));
        labels += 1;
    }
    Ok((keys, labels))
}

/// When packs were marked.
async fn read_marks(remote: &dyn Remote) -> Result<BTreeMap<Digest, SystemTime>, RemoteError> {
    let listed = remote.list(MARKS).await?.into_iter();
    Ok(listed
        .filter_map(|mark| Some((mark.name.rsplit('/').next()?.parse().ok()?, mark.written?)))
        .collect())
}

/// The time by the remote's clock; in a dry run, by the local one.
async fn remote_time(remote: &dyn Remote, is_dry: bool) -> Result<SystemTime, RemoteError> {
    if !is_dry {
        remote
            .replace(CLOCK, Bytes::from_static(b"compeval clock\n"))
            .await?;
        let listed = remote.list(MARKS).await?;
        if let Some(written) = listed
            .into_iter()
            .find(|object| object.name == CLOCK)
            .and_then(|object| object.written)
        {
            return Ok(written);
        }
    }
    Ok(SystemTime::now())
}

fn mark_of(name: &Digest) -> String {
    format!("{MARKS}/{name}")
}

/// What happens to a pack.
enum PackFate {
    Kept,
    Marked,
    Waiting,
    Deleted,
}

/// What a prune does with the objects of a remote.
#[derive(Default)]
struct RemotePrunePlan {
    counts: RemotePruneCounts,
    /// The objects of the packs to delete, by the names of the packs.
    deleted: BTreeMap<Digest, String>,
    /// The marks to write.
    marked: Vec<String>,
    /// The marks to delete.
    unmarked: Vec<String>,
}

impl RemotePrunePlan {
    /// `lists` has the packs that were deleted before, `keys` what labels need, and `marks` when packs were marked.
    fn new(
        packs: &[FoundPack],
        lists: &[RemovedPacks],
        keys: &HashSet<Digest>,
        mut marks: BTreeMap<Digest, SystemTime>,
        now: SystemTime,
    ) -> RemotePrunePlan {
        let mut plan = RemotePrunePlan::default();
        for pack in packs {
            let mark = marks.remove(&pack.name);
            let is_back = lists.iter().any(|list| list.packs.contains(&pack.name));
            let fate = if is_back {
                PackFate::Deleted
            } else {
                fate(pack, keys, mark, now)
            };
            plan.add(pack, fate, mark.is_some());
        }
        // also the marks of packs that are gone
        plan.unmarked.extend(marks.keys().map(mark_of));
        plan
    }

    fn add(&mut self, pack: &FoundPack, fate: PackFate, is_marked: bool) {
        let mark = mark_of(&pack.name);
        match fate {
            PackFate::Kept => {
                self.counts.kept += 1;
                self.unmarked.extend(is_marked.then_some(mark));
            }
            PackFate::Marked => {
                self.counts.marked += 1;
                self.marked.push(mark);
            }
            PackFate::Waiting => self.counts.waiting += 1,
            PackFate::Deleted => {
                self.counts.deleted += 1;
                self.counts.deleted_bytes += pack.object.bytes;
                self.unmarked.extend(is_marked.then_some(mark));
                self.deleted.insert(pack.name, pack.object.name.clone());
            }
        }
    }
}

/// Marks what no label needs, and deletes what was marked long ago, or deleted before and put back. `writer` signs
/// the list of what is deleted; without it the prune only counts.
pub(super) async fn run(
    remote: &dyn Remote,
    url: &str,
    remote_id: RemoteId,
    trust: &Trust,
    writer: Option<&SigningKey>,
) -> Result<RemotePruneCounts, RemoteError> {
    let (packs, lists) = read_footers(remote).await?;
    let lists = trusted_lists(&lists, remote_id, trust);
    let (keys, labels) = protected(remote, url).await?;
    let marks = read_marks(remote).await?;
    let now = remote_time(remote, writer.is_none()).await?;
    let RemotePrunePlan {
        counts,
        deleted,
        marked,
        unmarked,
    } = RemotePrunePlan::new(&packs, &lists, &keys, marks, now);
    let records = part_records::outdated(remote, now, KEPT).await?;
    let counts = RemotePruneCounts {
        labels,
        records: records.len() as u64,
        ..counts
    };
    let Some(key) = writer else { return Ok(counts) };
    request_each(
        records,
        |record| async move { remote.delete(&record).await },
    )
    .await?;
    request_each(marked, |mark| async move {
        remote
            .replace(&mark, Bytes::from_static(b"compeval mark\n"))
            .await
    })
    .await?;
    if !deleted.is_empty() {
        // Listed first: a prune that is killed here leaves packs that are not used, and the next one deletes them.
        removals::write(
            remote,
            remote_id,
            key,
            &lists,
            deleted.keys().copied().collect(),
        )
        .await?;
        request_each(deleted.into_values(), |object| async move {
            remote.delete(&object).await
        })
        .await?;
    }
    request_each(unmarked, |mark| async move { remote.delete(&mark).await }).await?;
    remote.delete(CLOCK).await?;
    if counts.deleted + counts.records > 0 {
        index_objects::write_latest(remote).await?;
    }
    Ok(counts)
}

fn fate(
    pack: &FoundPack,
    keys: &HashSet<Digest>,
    mark: Option<SystemTime>,
    now: SystemTime,
) -> PackFate {
    match mark.map(|mark| now.duration_since(mark).unwrap_or_default()) {
        _ if is_kept(pack, keys) => PackFate::Kept,
        None => PackFate::Marked,
        Some(age) if age < KEPT => PackFate::Waiting,
        Some(_) => PackFate::Deleted,
    }
}

/// Sends a request for each of these objects, several at once.
async fn request_each<F: Future<Output = Result<(), RemoteError>>>(
    objects: impl IntoIterator<Item = String>,
    request: impl FnMut(String) -> F,
) -> Result<(), RemoteError> {
    let mut replies = futures::stream::iter(objects)
        .map(request)
        .buffer_unordered(CONCURRENT_REQUESTS);
    while let Some(reply) = replies.next().await {
        reply?;
    }
    Ok(())
}

fn is_kept(pack: &FoundPack, keys: &HashSet<Digest>) -> bool {
    match pack
        .footer
        .as_ref()
        .map_err(|fault| *fault)
        .and_then(|signed| signed.decode())
    {
        Ok(footer) => footer.items.iter().any(|item| keys.contains(&item.key)),
        Err(PackFault::Newer) => true,
        Err(PackFault::Damaged(_)) => false,
    }
}
