//! The objects in `index/`: the signed footers of many packs, so that a reader of a remote with many packs sends few
//! requests. They contain no entries and need no signature: every footer in them has its own.
//!
//! A new one merges those that are at most twice as large as itself, the smallest first, and deletes them. So the
//! sizes of the remaining ones grow threefold from one to the next: there are few, and a footer is rarely copied.
//!
//! `index/latest` names all packs, index objects and records of parts, for readers that cannot list objects: web
//! servers list nothing. Writers replace it after an upload. It only says where to look: what it names is verified as
//! usual.
//!
//! ```text
//! compeval listing 1
//! packs/<digest> 4194304
//! index/<digest> 81920
//! parts/<label>.3-of-8-<time>-<digest> 5120
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use bytes::Bytes;
use futures::StreamExt;

use super::backend::{ListedObject, Remote, RemoteError};
use super::pack::{self, SignedFooter};
use super::removals::{self, ListObject};
use crate::cache::FORMAT;
use crate::digest::Digest;

pub(super) const FOLDER: &str = "index";
/// The folder of the records of parts.
pub(super) const PARTS: &str = "parts";
/// If more packs than this are outside of all index objects, another one is written.
pub(super) const MOST_LOOSE: usize = 16;
/// An index object does not grow beyond this.
const MOST_BYTES: u64 = 64 << 20;

/// The number of requests under way at once.
pub(super) const CONCURRENT_REQUESTS: usize = 16;

pub(super) const LATEST: &str = "index/latest";
const HEADING: &str = "compeval listing";
const VERSION: u64 = FORMAT as u64;

/// Footers by the names of their packs.
type Footers = BTreeMap<Digest, SignedFooter>;

/// The footers in all index objects, and the lists of removed packs. An object that cannot be read is left out: its packs
/// are read one by one.
pub(super) async fn read(remote: &dyn Remote) -> Result<(Footers, Vec<ListObject>), RemoteError> {
    // A writer may have replaced some between the list and the reading.
    match read_listed(remote).await? {
        (footers, lists, true) => Ok((footers, lists)),
        (.., false) => read_listed(remote)
            .await
            .map(|(footers, lists, _)| (footers, lists)),
    }
}

/// Also returns whether all listed objects were there.
async fn read_listed(remote: &dyn Remote) -> Result<(Footers, Vec<ListObject>, bool), RemoteError> {
    let mut objects = remote.list(FOLDER).await?;
    // Larger objects are not ours; if they are, their packs are read one by one.
    objects.retain(|object| {
        object.bytes <= 2 * MOST_BYTES && (is_index(object) || removals::is_list(&object.name))
    });
    let requests = objects
        .into_iter()
        .map(|object| async move { (read_object(remote, &object.name).await, object) });
    let mut replies = futures::stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
    let (mut footers, mut lists, mut is_whole) = (Footers::new(), Vec::new(), true);
    while let Some((reply, object)) = replies.next().await {
        match reply? {
            Some(bytes) if is_index(&object) => footers.extend(decode(&bytes)),
            Some(bytes) => lists.push((object.name, bytes)),
            None => is_whole = false,
        }
    }
    Ok((footers, lists, is_whole))
}

fn is_index(object: &ListedObject) -> bool {
    object
        .name
        .rsplit('/')
        .next()
        .is_some_and(|name| name.parse::<Digest>().is_ok())
}

/// Reads an object; `None` if it is gone or refused.
async fn read_object(remote: &dyn Remote, name: &str) -> Result<Option<Bytes>, RemoteError> {
    match remote.read(name, None).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(RemoteError::NotFound(_) | RemoteError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn decode(bytes: &[u8]) -> Footers {
    let signed: Vec<SignedFooter> = postcard::from_bytes(bytes).unwrap_or_default();
    signed
        .into_iter()
        .map(|signed| (signed.name(), signed))
        .collect()
}

/// Writes an index object with these footers.
pub(super) async fn write(remote: &dyn Remote, footers: &Footers) -> Result<(), RemoteError> {
    let mut older = remote.list(FOLDER).await?;
    older.retain(is_index);
    older.sort_unstable_by_key(|object| object.bytes);
    let mut all = footers.clone();
    let mut bytes: u64 = footers.values().map(SignedFooter::len).sum();
    let mut replaced = Vec::new();
    for object in older {
        if object.bytes > 2 * bytes || object.bytes + bytes > MOST_BYTES {
            break;
        }
        all.extend(
            read_object(remote, &object.name)
                .await?
                .map(|bytes| decode(&bytes))
                .unwrap_or_default(),
        );
        bytes += object.bytes;
        replaced.push(object.name);
    }
    let Ok(encoded) = postcard::to_stdvec(&all.values().collect::<Vec<_>>()) else {
        return Ok(());
    };
    let name = format!("{FOLDER}/{}", Digest::hash(&encoded));
    remote.write_if_absent(&name, Bytes::from(encoded)).await?;
    for old in replaced.iter().filter(|old| **old != name) {
        match remote.delete(old).await {
            // A writer without the right to delete leaves it: the new object has the same footers.
            Ok(()) | Err(RemoteError::Denied { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Replaces `index/latest` by a list of the current objects.
pub(super) async fn write_latest(remote: &dyn Remote) -> Result<(), RemoteError> {
    let (packs, indexes, parts) = futures::try_join!(
        remote.list(pack::FOLDER),
        remote.list(FOLDER),
        remote.list(PARTS)
    )?;
    let mut text = format!("{HEADING} {VERSION}\n");
    let mut listed: Vec<ListedObject> = packs.into_iter().chain(indexes).chain(parts).collect();
    listed.sort_unstable();
    for ListedObject { name, bytes, .. } in listed.iter().filter(|object| object.name != LATEST) {
        let _ = writeln!(text, "{name} {bytes}");
    }
    remote.replace(LATEST, Bytes::from(text)).await
}

/// The objects of a folder in `index/latest`. Lines that cannot be read are skipped.
#[cfg_attr(
    not(feature = "object-stores"),
    allow(dead_code, reason = "web servers alone are read by it")
)]
pub(super) fn decode_latest(
    bytes: &[u8],
    folder: &str,
    url: &str,
) -> Result<Vec<ListedObject>, RemoteError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix(HEADING)?.trim().parse::<u64>().ok());
    match version {
        Some(found) if found > VERSION => {
            return Err(RemoteError::NewerFormat {
                url: url.to_owned(),
                found,
                known: VERSION,
            });
        }
        Some(_) => {}
        None => return Err(RemoteError::foreign(url, LATEST)),
    }
    let listed = lines.filter_map(|line| {
        // The name of a record has a label in it, which may have blanks.
        let (name, bytes) = line.rsplit_once(' ')?;
        let is_below = name
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'));
        let object = ListedObject {
            name: name.to_owned(),
            bytes: bytes.parse().ok()?,
            written: None,
        };
        is_below.then_some(object)
    });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_by_folder() {
        let text = b"compeval listing 1\nindex/aa 12\npacks/bb 34\npacks/cc\npacksdd 5\nparts/my run.1 6\n";
        let names = |folder: &str| {
            let found = decode_latest(text, folder, "https://host/x").unwrap();
            found
                .into_iter()
                .map(|object| (object.name, object.bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(names("packs"), [("packs/bb".to_owned(), 34)]);
        assert_eq!(names("index"), [("index/aa".to_owned(), 12)]);
        assert_eq!(names("parts"), [("parts/my run.1".to_owned(), 6)]);
        let refused = |text: &[u8]| decode_latest(text, "index", "https://host/x").unwrap_err();
        assert!(matches!(
            refused(b"compeval listing 2\n"),
            RemoteError::NewerFormat { found: 2, .. }
        ));
        assert!(matches!(refused(b"<html>"), RemoteError::Foreign { .. }));
    }
}
