//! Roll-ups: objects with the footers of many segments, so that a reader of a remote with many segments sends few
//! requests. They move no entries and need no signature: every footer in them has its own.
//!
//! A new roll-up takes in those that are at most twice as large as itself, the smallest first, and they are deleted. So the
//! sizes of what remains grow threefold from one to the next: there are few, and a footer is copied seldom.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;

use super::backend::{ListedObject, Remote};
use super::error::RemoteError;
use super::segment::SignedFooter;
use crate::action::Digest;

pub(super) const FOLDER: &str = "index";
/// Segments outside of all roll-ups at which another one is written.
pub(super) const MOST_LOOSE: usize = 16;
/// A roll-up does not grow beyond this.
const MOST_BYTES: u64 = 64 << 20;

/// Requests under way at once.
pub(super) const SIDE_BY_SIDE: usize = 16;

type Footers = BTreeMap<Digest, SignedFooter>;

/// The footers in all roll-ups by the names of their segments. A roll-up that cannot be read is left out: its segments
/// are read one by one.
pub(super) async fn read(remote: &dyn Remote) -> Result<Footers, RemoteError> {
    // A writer may have replaced some between the list and the reading.
    match read_listed(remote).await? {
        (footers, true) => Ok(footers),
        (_, false) => Ok(read_listed(remote).await?.0),
    }
}

/// Returns also whether everything that was listed was there.
async fn read_listed(remote: &dyn Remote) -> Result<(Footers, bool), RemoteError> {
    let read = |object: ListedObject| async move { read_one(remote, &object.name).await };
    let mut replies = futures::stream::iter(list(remote).await?).map(read).buffer_unordered(SIDE_BY_SIDE);
    let (mut footers, mut is_whole) = (Footers::new(), true);
    while let Some(reply) = replies.next().await {
        match reply? {
            Some(some) => footers.extend(some),
            None => is_whole = false,
        }
    }
    Ok((footers, is_whole))
}

async fn list(remote: &dyn Remote) -> Result<Vec<ListedObject>, RemoteError> {
    let mut objects = remote.list(FOLDER).await?;
    let is_rollup =
        |object: &ListedObject| object.name.rsplit('/').next().is_some_and(|name| name.parse::<Digest>().is_ok());
    objects.retain(is_rollup);
    Ok(objects)
}

async fn read_one(remote: &dyn Remote, name: &str) -> Result<Option<Footers>, RemoteError> {
    match remote.read(name, None).await {
        Ok(bytes) => {
            let signed: Vec<SignedFooter> = postcard::from_bytes(&bytes).unwrap_or_default();
            Ok(Some(signed.into_iter().map(|signed| (signed.name(), signed)).collect()))
        }
        Err(RemoteError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a roll-up of these footers.
pub(super) async fn write(remote: &dyn Remote, footers: &Footers) -> Result<(), RemoteError> {
    let mut older = list(remote).await?;
    older.sort_unstable_by_key(|object| object.bytes);
    let mut all = footers.clone();
    let mut bytes: u64 = footers.values().map(SignedFooter::len).sum();
    let mut replaced = Vec::new();
    for object in older {
        if object.bytes > 2 * bytes || object.bytes + bytes > MOST_BYTES {
            break;
        }
        all.extend(read_one(remote, &object.name).await?.unwrap_or_default());
        bytes += object.bytes;
        replaced.push(object.name);
    }
    let Ok(encoded) = postcard::to_stdvec(&all.values().collect::<Vec<_>>()) else { return Ok(()) };
    let name = format!("{FOLDER}/{}", Digest::of(&encoded));
    remote.write_if_absent(&name, Bytes::from(encoded)).await?;
    for old in replaced.iter().filter(|old| **old != name) {
        match remote.delete(old).await {
            // A writer that may not delete leaves it: what is in it stands in the new one, too.
            Ok(()) | Err(RemoteError::Denied { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
