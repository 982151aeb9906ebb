//! Roll-ups: objects with the footers of many segments, so that a reader of a remote with many segments sends few
//! requests. They move no entries and need no signature: every footer in them has its own.
//!
//! A new roll-up merges those that are at most twice as large as itself, the smallest first, and deletes them. So the
//! sizes of the remaining ones grow threefold from one to the next: there are few, and a footer is rarely copied.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;

use super::backend::{ListedObject, Remote};
use super::error::RemoteError;
use super::pruned::{self, ListObject};
use super::segment::SignedFooter;
use crate::action::Digest;

pub(super) const FOLDER: &str = "index";
/// Segments outside of all roll-ups at which another one is written.
pub(super) const MOST_LOOSE: usize = 16;
/// A roll-up does not grow beyond this.
const MOST_BYTES: u64 = 64 << 20;

/// Requests under way at once.
pub(super) const SIDE_BY_SIDE: usize = 16;

/// By the names of their segments.
type Footers = BTreeMap<Digest, SignedFooter>;

/// The footers in all roll-ups, and the lists of pruned segments. A roll-up that cannot be read is left out: its segments
/// are read one by one.
pub(super) async fn read(remote: &dyn Remote) -> Result<(Footers, Vec<ListObject>), RemoteError> {
    // A writer may have replaced some between the list and the reading.
    match read_listed(remote).await? {
        (footers, lists, true) => Ok((footers, lists)),
        (.., false) => read_listed(remote).await.map(|(footers, lists, _)| (footers, lists)),
    }
}

/// Returns also whether everything that was listed was there.
async fn read_listed(remote: &dyn Remote) -> Result<(Footers, Vec<ListObject>, bool), RemoteError> {
    let mut objects = remote.list(FOLDER).await?;
    // A larger one is no roll-up: its segments are read one by one.
    objects.retain(|object| object.bytes <= 2 * MOST_BYTES && (is_rollup(object) || pruned::is_list(&object.name)));
    let read = |object: ListedObject| async move { (read_object(remote, &object.name).await, object) };
    let mut replies = futures::stream::iter(objects).map(read).buffer_unordered(SIDE_BY_SIDE);
    let (mut footers, mut lists, mut is_whole) = (Footers::new(), Vec::new(), true);
    while let Some((reply, object)) = replies.next().await {
        match reply? {
            Some(bytes) if is_rollup(&object) => footers.extend(decode(&bytes)),
            Some(bytes) => lists.push((object.name, bytes)),
            None => is_whole = false,
        }
    }
    Ok((footers, lists, is_whole))
}

fn is_rollup(object: &ListedObject) -> bool {
    object.name.rsplit('/').next().is_some_and(|name| name.parse::<Digest>().is_ok())
}

/// `None` if it is not there any more.
async fn read_object(remote: &dyn Remote, name: &str) -> Result<Option<Bytes>, RemoteError> {
    match remote.read(name, None).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(RemoteError::NotFound(_) | RemoteError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn decode(rollup: &[u8]) -> Footers {
    let signed: Vec<SignedFooter> = postcard::from_bytes(rollup).unwrap_or_default();
    signed.into_iter().map(|signed| (signed.name(), signed)).collect()
}

/// Writes a roll-up of these footers.
pub(super) async fn write(remote: &dyn Remote, footers: &Footers) -> Result<(), RemoteError> {
    let mut older = remote.list(FOLDER).await?;
    older.retain(is_rollup);
    older.sort_unstable_by_key(|object| object.bytes);
    let mut all = footers.clone();
    let mut bytes: u64 = footers.values().map(SignedFooter::len).sum();
    let mut replaced = Vec::new();
    for object in older {
        if object.bytes > 2 * bytes || object.bytes + bytes > MOST_BYTES {
            break;
        }
        all.extend(read_object(remote, &object.name).await?.map(|bytes| decode(&bytes)).unwrap_or_default());
        bytes += object.bytes;
        replaced.push(object.name);
    }
    let Ok(encoded) = postcard::to_stdvec(&all.values().collect::<Vec<_>>()) else { return Ok(()) };
    let name = format!("{FOLDER}/{}", Digest::of(&encoded));
    remote.write_if_absent(&name, Bytes::from(encoded)).await?;
    for old in replaced.iter().filter(|old| **old != name) {
        match remote.delete(old).await {
            // A writer that may not delete leaves it: what is in it is in the new one, too.
            Ok(()) | Err(RemoteError::Denied { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
