//! The list of the packs that a prune deleted, signed by its writer. A pack that somebody puts back later has a valid
//! signature, but the list says not to use it. The list is among the index objects, so that readers need no further
//! listing; each writer has one, and a prune replaces it. A name stays on it permanently and takes 32 bytes.
//!
//! Whoever can delete objects can also delete the list, so it does not protect against them.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::backend::{Remote, RemoteError};
use super::keys::{PublicKey, SigningKey};
use super::signed::{self, RemoteId, Trust};
use crate::digest::Digest;

const TAG: &[u8] = b"compeval removed packs v1\0";
const NAME: &str = "index/removed-";

/// The name and the content of an object that may be a list.
pub(super) type ListObject = (String, Bytes);

/// A list of a trusted writer.
#[derive(Debug)]
pub(super) struct RemovedPacks {
    object: String,
    writer: PublicKey,
    pub(super) packs: BTreeSet<Digest>,
}

/// Whether an object is a list of removed packs.
pub(super) fn is_list(object: &str) -> bool {
    object
        .strip_prefix(NAME)
        .is_some_and(|name| name.parse::<Digest>().is_ok())
}

/// The lists that a trusted writer, or the own key, signed for this remote. An unsigned list removes nothing.
pub(super) fn trusted_lists(
    lists: &[ListObject],
    remote_id: RemoteId,
    trust: &Trust,
) -> Vec<RemovedPacks> {
    let trusted = lists.iter().filter_map(|(object, bytes)| {
        let note = signed::open(TAG, bytes, remote_id, trust)?;
        let (writer, packs) = (note.writer?, postcard::from_bytes(&note.content).ok()?);
        Some(RemovedPacks {
            object: object.clone(),
            writer,
            packs,
        })
    });
    trusted.collect()
}

/// Writes a list of these packs and of those in the writer's `earlier` lists, which it replaces.
pub(super) async fn write(
    remote: &dyn Remote,
    remote_id: RemoteId,
    key: &SigningKey,
    earlier: &[RemovedPacks],
    removed: BTreeSet<Digest>,
) -> Result<(), RemoteError> {
    let replaced: Vec<&RemovedPacks> = earlier
        .iter()
        .filter(|list| list.writer == key.public())
        .collect();
    let mut packs = removed;
    packs.extend(replaced.iter().flat_map(|list| &list.packs));
    let sealed = postcard::to_stdvec(&packs)
        .and_then(|content| signed::seal(TAG, remote_id, Some(key), content));
    let bytes = sealed.map_err(|error| RemoteError::unencoded(NAME, &error))?;
    let object = format!("{NAME}{}", Digest::hash(&bytes));
    remote.write_if_absent(&object, Bytes::from(bytes)).await?;
    for old in replaced.into_iter().filter(|list| list.object != object) {
        remote.delete(&old.object).await?;
    }
    Ok(())
}
