//! Pruning a remote: a segment that no label stands on is marked, and deleted by a later prune when its mark is 30 days
//! old by the clock of the place. A run that began before has long ended then.
//!
//! Labels protect what they stand on if they were pushed to the remote: `labels/NAME` lists keys, a line each. It needs no
//! signature: a false one keeps something, and who can delete a label can delete segments.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::backend::{ListedObject, Remote};
use super::error::RemoteError;
use super::index::{FoundSegment, read_footers};
use super::listing;
use super::segment::SegmentFault;
use crate::action::Digest;

const LABELS: &str = "labels";
const MARKS: &str = "marks";
/// Written to learn what time it is there.
const CLOCK: &str = "marks/clock";
const HEADING: &str = "compeval label 1";

/// How long a segment stays after it was marked.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a prune did, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneCounts {
    pub labels: u64,
    /// Segments that labels stand on, and those of newer versions, which are left alone.
    pub kept: u64,
    /// Marked now.
    pub marked: u64,
    /// Marked earlier, and not yet due.
    pub waiting: u64,
    pub deleted: u64,
    pub deleted_bytes: u64,
}

/// Writes down what a label stands on.
pub(super) async fn write_label(remote: &dyn Remote, label: &str, keys: &[Digest]) -> Result<(), RemoteError> {
    let lines: Vec<String> = std::iter::once(HEADING.to_owned()).chain(keys.iter().map(Digest::to_string)).collect();
    remote.replace(&format!("{LABELS}/{label}"), Bytes::from(lines.join("\n"))).await
}

/// The keys that labels stand on, and how many labels there are.
async fn protected(remote: &dyn Remote, url: &str) -> Result<(HashSet<Digest>, u64), RemoteError> {
    let (mut keys, mut labels) = (HashSet::new(), 0);
    for object in remote.list(LABELS).await? {
        let bytes = remote.read(&object.name, None).await?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        if lines.next() != Some(HEADING) {
            return Err(RemoteError::Foreign { url: url.to_owned(), found: object.name });
        }
        keys.extend(lines.filter_map(|line| line.parse::<Digest>().ok()));
        labels += 1;
    }
    Ok((keys, labels))
}

/// When segments were marked.
async fn read_marks(remote: &dyn Remote) -> Result<BTreeMap<Digest, SystemTime>, RemoteError> {
    let marks = remote.list(MARKS).await?;
    let read = |mark: ListedObject| Some((mark.name.rsplit('/').next()?.parse().ok()?, mark.written?));
    Ok(marks.into_iter().filter_map(read).collect())
}

/// What time it is there; here, if nothing may be written.
async fn time_there(remote: &dyn Remote, is_dry: bool) -> Result<SystemTime, RemoteError> {
    if !is_dry {
        remote.replace(CLOCK, Bytes::from_static(b"compeval clock\n")).await?;
        let listed = remote.list(MARKS).await?;
        if let Some(written) = listed.into_iter().find(|object| object.name == CLOCK).and_then(|object| object.written)
        {
            return Ok(written);
        }
    }
    Ok(SystemTime::now())
}

fn mark_of(name: &Digest) -> String {
    format!("{MARKS}/{name}")
}

/// Marks what no label stands on, and deletes what was marked long ago.
pub(super) async fn prune(remote: &dyn Remote, url: &str, is_dry: bool) -> Result<PruneCounts, RemoteError> {
    let segments = read_footers(remote).await?;
    let (keys, labels) = protected(remote, url).await?;
    let mut marks = read_marks(remote).await?;
    let now = time_there(remote, is_dry).await?;
    let mut counts = PruneCounts { labels, ..PruneCounts::default() };
    for segment in &segments {
        let mark = marks.remove(&segment.name);
        if is_kept(segment, &keys) {
            counts.kept += 1;
            if mark.is_some() && !is_dry {
                remote.delete(&mark_of(&segment.name)).await?;
            }
            continue;
        }
        let age = mark.map(|mark| now.duration_since(mark).unwrap_or_default());
        match age {
            None => {
                counts.marked += 1;
                if !is_dry {
                    remote.replace(&mark_of(&segment.name), Bytes::from_static(b"compeval mark\n")).await?;
                }
            }
            Some(age) if age < KEPT => counts.waiting += 1,
            Some(_) => {
                counts.deleted += 1;
                counts.deleted_bytes += segment.object.bytes;
                if !is_dry {
                    remote.delete(&segment.object.name).await?;
                    remote.delete(&mark_of(&segment.name)).await?;
                }
            }
        }
    }
    if !is_dry {
        // marks of segments that are gone
        for name in marks.keys() {
            remote.delete(&mark_of(name)).await?;
        }
        remote.delete(CLOCK).await?;
        if counts.deleted > 0 {
            listing::write(remote).await?;
        }
    }
    Ok(counts)
}

fn is_kept(segment: &FoundSegment, keys: &HashSet<Digest>) -> bool {
    match segment.footer.as_ref().map_err(|fault| *fault).and_then(|signed| signed.decode()) {
        Ok(footer) => footer.items.iter().any(|item| keys.contains(&item.key)),
        Err(SegmentFault::Newer) => true,
        Err(SegmentFault::Damaged(_)) => false,
    }
}
