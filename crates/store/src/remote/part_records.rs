//! Records of the parts of a run: `parts/LABEL.3-of-8-TIME-DIGEST`, one signed note for each time that a part ran to
//! its end. A merge adds them up. Their content is the caller's. They are in one folder, so that one request lists all
//! of them; a prune deletes old ones.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::StreamExt;

use super::backend::{ListedObject, Remote, RemoteError};
use super::index_objects::{self, CONCURRENT_REQUESTS, PARTS};
use super::keys::SigningKey;
use super::signed::{self, RemoteId, Trust};
use crate::cache::now_ms;
use crate::digest::Digest;

const TAG: &[u8] = b"compeval part v1\0";
/// A larger object is not a record.
const LONGEST: u64 = 4 << 20;
/// The number of records that are read of each part: the newest.
const MOST_ATTEMPTS: usize = 4;

/// Which part of which run an object is about.
#[derive(Clone, Copy, Debug)]
pub struct PartName<'n> {
    /// The label of the run.
    pub label: &'n str,
    /// From 1.
    pub index: u32,
    /// The number of parts.
    pub of: u32,
}

impl<'n> PartName<'n> {
    /// The part that a record of this name is about; `None` if it is not the name of a record.
    fn from_object(name: &'n str) -> Option<PartName<'n>> {
        let (label, record) = name
            .strip_prefix(PARTS)?
            .strip_prefix('/')?
            .rsplit_once('.')?;
        let (index, rest) = record.split_once("-of-")?;
        let of = rest.split_once('-')?.0.parse().ok()?;
        Some(PartName {
            label,
            index: index.parse().ok()?,
            of,
        })
    }
}

/// The record of a part.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    /// Who signed it; `None` if nobody did.
    pub writer: Option<String>,
    /// What the part wrote.
    pub content: Vec<u8>,
}

/// Writes a record, and lists it.
pub(super) async fn write(
    remote: &dyn Remote,
    remote_id: RemoteId,
    key: Option<&SigningKey>,
    PartName { label, index, of }: PartName<'_>,
    content: Vec<u8>,
) -> Result<(), RemoteError> {
    let bytes = signed::seal(TAG, remote_id, key, content)
        .map_err(|error| RemoteError::unencoded(PARTS, &error))?;
    let object = format!(
        "{PARTS}/{label}.{index}-of-{of}-{:012x}-{}",
        now_ms(),
        Digest::hash(&bytes)
    );
    remote.write_if_absent(&object, Bytes::from(bytes)).await?;
    index_objects::write_latest(remote).await
}

/// The records of a run in `of` parts, the oldest first, and the number of objects that were refused.
pub(super) async fn read(
    remote: &dyn Remote,
    remote_id: RemoteId,
    trust: &Trust,
    label: &str,
    of: u32,
) -> Result<(Vec<FoundRecord>, u64), RemoteError> {
    let mut by_part: BTreeMap<u32, Vec<ListedObject>> = BTreeMap::new();
    for object in remote.list(PARTS).await? {
        let part =
            PartName::from_object(&object.name).filter(|part| part.label == label && part.of == of);
        if let Some(index) = part
            .map(|part| part.index)
            .filter(|_| object.bytes <= LONGEST)
        {
            by_part.entry(index).or_default().push(object);
        }
    }
    let newest = by_part.into_values().flat_map(|mut objects| {
        objects.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        objects.truncate(MOST_ATTEMPTS);
        objects
    });
    let requests = newest.map(|object| async move { remote.read(&object.name, None).await });
    let mut replies = futures::stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
    let (mut found, mut refused) = (Vec::new(), 0);
    while let Some(reply) = replies.next().await {
        let note = match reply {
            Ok(bytes) => signed::open(TAG, &bytes, remote_id, trust),
            Err(RemoteError::NotFound(_)) => continue,
            Err(RemoteError::Refused { .. }) => None,
            Err(error) => return Err(error),
        };
        match note {
            Some(note) => found.push(note),
            None => refused += 1,
        }
    }
    found.sort_by_key(|note| note.created);
    let records = found.into_iter().map(|note| FoundRecord {
        writer: note.writer.map(|key| trust.name_of(&key)),
        content: note.content,
    });
    Ok((records.collect(), refused))
}

/// The names of the records that were written longer than `kept` before `now`, by the clock of the remote: their merge
/// took place, or what the parts pushed is as old.
pub(super) async fn outdated(
    remote: &dyn Remote,
    now: SystemTime,
    kept: Duration,
) -> Result<Vec<String>, RemoteError> {
    let records = remote
        .list(PARTS)
        .await?
        .into_iter()
        .filter(|object| PartName::from_object(&object.name).is_some());
    let old = records.filter(|record| {
        let age = record
            .written
            .and_then(|written| now.duration_since(written).ok());
        age.is_some_and(|age| age >= kept)
    });
    Ok(old.map(|record| record.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_part_of_which_label_it_is() {
        let part = |name| {
            PartName::from_object(name)
                .map(|PartName { label, index, of }| (label.to_owned(), index, of))
        };
        assert_eq!(
            part("parts/v1.2-of-3.3-of-8-0123456789ab-00"),
            Some(("v1.2-of-3".to_owned(), 3, 8))
        );
        for other in [
            "parts/nightly",
            "parts/a.3-of-8",
            "parts/a.x-of-8-0-0",
            "packs/a.3-of-8-0-0",
        ] {
            assert_eq!(part(other), None, "{other}");
        }
    }
}
