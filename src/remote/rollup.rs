//! Roll-ups: objects with the footers of many segments, so that a reader of a remote with many segments sends few
//! requests. They move no entries and need no signature: every footer in them has its own.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;

use super::backend::{ListedObject, Remote};
use super::error::RemoteError;
use super::segment::SignedFooter;
use crate::action::Digest;

pub(super) const FOLDER: &str = "index";
/// Segments outside of all roll-ups at which another one is written.
pub(super) const MOST_LOOSE: usize = 24;

/// Requests under way at once.
pub(super) const SIDE_BY_SIDE: usize = 16;

/// The footers in all roll-ups by the names of their segments. A roll-up that cannot be read is left out: its segments
/// are read one by one.
pub(super) async fn read(remote: &dyn Remote) -> Result<BTreeMap<Digest, SignedFooter>, RemoteError> {
    let objects = remote.list(FOLDER).await?;
    let read = |object: ListedObject| async move { remote.read(&object.name, None).await };
    let mut replies = futures::stream::iter(objects).map(read).buffer_unordered(SIDE_BY_SIDE);
    let mut footers = BTreeMap::new();
    while let Some(reply) = replies.next().await {
        let bytes = match reply {
            Ok(bytes) => bytes,
            Err(RemoteError::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
        let signed: Vec<SignedFooter> = postcard::from_bytes(&bytes).unwrap_or_default();
        footers.extend(signed.into_iter().map(|signed| (signed.name(), signed)));
    }
    Ok(footers)
}

/// Writes a roll-up of these footers.
pub(super) async fn write(remote: &dyn Remote, footers: &BTreeMap<Digest, SignedFooter>) -> Result<(), RemoteError> {
    let footers: Vec<&SignedFooter> = footers.values().collect();
    let Ok(bytes) = postcard::to_stdvec(&footers) else { return Ok(()) };
    let name = format!("{FOLDER}/{}", Digest::of(&bytes));
    remote.write_if_absent(&name, Bytes::from(bytes)).await.map(drop)
}
