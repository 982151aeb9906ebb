//! Moves entries from cache to cache, as the frames that packs have. Each is verified before it is added.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use bytes::Bytes;

use super::entry::{EntryHeader, EntryStatus, KeyOf, ParseResult};
use super::error::CacheError;
use super::lookup::Lookup;
use super::packs::frame::{self, FrameContent, FrameHeader};
use super::packs::{compress_body, decode_body};
use super::snapshot::CacheSnapshot;
use super::writing::StoreInner;
use crate::digest::ActionKey;

/// The largest body that is taken from another machine, decompressed.
const LONGEST: u32 = 64 << 20;

fn encoded(frame: Result<Vec<u8>, postcard::Error>) -> Result<Vec<u8>, CacheError> {
    frame.map_err(|e| CacheError::io("write", Path::new("an entry"))(io::Error::other(e)))
}

fn bad(what: impl Into<String>) -> CacheError {
    CacheError::BadImport { what: what.into() }
}

/// The cache that entries are imported into.
#[derive(Clone, Copy)]
pub(super) struct ImportTarget<'a> {
    /// Reads what it has already.
    pub(super) present: &'a dyn Lookup,
    pub(super) inner: &'a StoreInner,
    pub(super) key_of: KeyOf,
}

/// Adds the entries with these keys that another cache on this machine has, with their source texts.
pub(super) fn import_from_cache<'k>(
    target: ImportTarget<'_>,
    other: &CacheSnapshot,
    keys: impl IntoIterator<Item = &'k ActionKey>,
) -> Result<(), CacheError> {
    const GROUP: usize = 4 << 20;
    let (mut texts, mut tokens) = (BTreeSet::new(), Vec::new());
    let (mut frames, mut bytes) = (Vec::new(), 0);
    let mut add = |frame: Vec<u8>| {
        bytes += frame.len();
        frames.push(frame);
        if bytes < GROUP {
            return Ok(());
        }
        bytes = 0;
        let group = std::mem::take(&mut frames);
        target.inner.commit(&group, true).map(drop)
    };
    for key in keys.into_iter().collect::<BTreeSet<_>>() {
        if target.present.find_usable(key).is_some() {
            continue;
        }
        // a damaged entry counts as missing
        let Some(record) = other.find_usable(key) else {
            continue;
        };
        let Ok(frame) = other.packed(&record) else {
            continue;
        };
        let (_, entry, _) = verified(key, &frame, target.key_of)?;
        add(frame)?;
        if let Some(result) = ParseResult::from_status(&record.status) {
            add(encoded(frame::parse_result(*key, record.raw, &result))?)?;
        }
        if let EntryStatus::Output { out, .. } = record.status {
            tokens.extend(other.count(&out).map(|count| (out, count)));
        }
        texts.extend(entry.texts);
    }
    for digest in texts {
        let known = target.present.read_text(&digest);
        if let Some(text) = other.read_text(&digest).filter(|_| known.is_none()) {
            add(frame::text(digest, &compress_body(text.as_bytes())?))?;
        }
    }
    if !tokens.is_empty() {
        add(encoded(frame::counts(&tokens))?)?;
    }
    if !frames.is_empty() {
        target.inner.commit(&frames, true)?;
    }
    Ok(())
}

/// Verifies an entry of another cache: its checksums, its digest, and that its key is that of its inputs. Returns its
/// headers and its body.
fn verified(
    key: &ActionKey,
    frame: &[u8],
    key_of: KeyOf,
) -> Result<(FrameHeader, EntryHeader, Bytes), CacheError> {
    let header = FrameHeader::decode(frame).map_err(|_| bad("it is no entry"))?;
    if header.location(0, 0).len() != frame.len() as u64 {
        return Err(bad("it has another length than it says"));
    }
    if header.key != key.0 {
        return Err(bad(format!("it is the entry {}", header.key.short())));
    }
    if header.raw_len > LONGEST {
        return Err(bad("its body is too large"));
    }
    let entry = header.entry(frame).ok_or_else(|| bad("it is no entry"))?;
    if key_of(&entry) != Some(*key) {
        return Err(bad("its key does not match its inputs"));
    }
    let stored = Bytes::copy_from_slice(frame.get(header.head_len as usize..).unwrap_or_default());
    let body = decode_body(&header, stored).map_err(bad)?;
    Ok((header, entry, body))
}

/// Packs a failure for a remote: an entry whose body, `content`, says what failed. It is never an output.
///
/// # Errors
/// If it is larger than the cache stores.
pub fn pack_failure(
    key: ActionKey,
    header: &EntryHeader,
    content: &[u8],
) -> Result<Vec<u8>, CacheError> {
    let body = compress_body(content)?;
    encoded(frame::failure(key, header, ("", ""), &body))
}

/// Reads what [`pack_failure`] packed under `key`.
///
/// # Errors
/// If these bytes are not the failure `key`.
pub fn read_failure(key: &ActionKey, frame: &[u8], key_of: KeyOf) -> Result<Bytes, CacheError> {
    let (header, _, body) = verified(key, frame, key_of)?;
    match header.content {
        FrameContent::Failure { .. } => Ok(body),
        _ => Err(bad("it is no failure")),
    }
}

/// Adds what another cache packed under `key`, in place of another output of that key. It is verified, and not synced:
/// after a crash it is pulled again. Returns whether it is new.
pub(super) fn add_packed(
    target: ImportTarget<'_>,
    key: &ActionKey,
    frame: &[u8],
    remote: &str,
) -> Result<bool, CacheError> {
    let (header, entry, body) = verified(key, frame, target.key_of)?;
    if !matches!(header.content, FrameContent::Reply(_)) {
        return Err(bad("it is no output"));
    }
    let present = target.present.find_usable(key);
    if present.is_some_and(|record| record.raw == header.digest) {
        return Ok(false);
    }
    let entry = EntryHeader {
        origin: Some(remote.to_owned()),
        ..entry
    };
    let frame = encoded(frame::reply(*key, &entry, &compress_body(&body)?))?;
    target.inner.commit(&[frame], false)?;
    Ok(true)
}
