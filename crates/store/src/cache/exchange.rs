//! Moves entries from cache to cache, as frames that are complete by themselves and are verified when they are
//! imported. Entries for a remote are compressed one by one, so that each can be read alone.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;

use super::entry::{EntryHeader, EntryStatus, KeyOf, ParseResult, Record};
use super::error::CacheError;
use super::lookup::Lookup;
use super::packs::frame::{self, Codec, FrameContent, FrameHeader, FrameHeaderError, MAX_BODY};
use super::packs::packed::{DecodedHeader, decode_header};
use super::packs::shared_fields::SharedFields;
use super::packs::{compress_body, compressor, decode_body, decompressor, plain_body};
use super::snapshot::CacheSnapshot;
use super::writing::StoreInner;
use crate::digest::{ActionKey, Digest};
use base::redaction::redact_bytes;

/// The most bytes that a packed entry is decompressed to: one header and one body.
const LONGEST_ITEM: u64 = MAX_BODY as u64 + (64 << 20);

/// How many entries an import added and found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Entries that the cache did not have.
    pub added: u64,
    /// Entries that were in the cache already and were not changed.
    pub present: u64,
}

/// Writes the frames of entries. Returns the source texts that the entries name; these are not written.
fn write_entries(
    cache: &impl Lookup,
    records: &[Record],
    mut write: impl FnMut(&[u8]) -> Result<(), CacheError>,
) -> Result<BTreeSet<Digest>, CacheError> {
    let mut texts = BTreeSet::new();
    let mut counts = Vec::new();
    for record in records {
        let header = cache.header(record)?;
        let body = plain_body(&cache.body(record)?)?;
        write(&encoded(frame::reply(record.key, &header, &body))?)?;
        if let Some(result) = ParseResult::from_status(&record.status) {
            write(&encoded(frame::parse_result(
                record.key, record.raw, &result,
            ))?)?;
        }
        if let EntryStatus::Output { out, .. } = record.status {
            counts.extend(cache.count(&out).map(|count| (out, count)));
        }
        texts.extend(header.texts());
    }
    if !counts.is_empty() {
        write(&encoded(frame::counts(&counts))?)?;
    }
    Ok(texts)
}

fn encoded(frame: Result<Vec<u8>, postcard::Error>) -> Result<Vec<u8>, CacheError> {
    frame.map_err(|e| CacheError::io("write", Path::new("an entry"))(io::Error::other(e)))
}

/// A verified frame of another cache.
pub(super) struct ImportedFrame {
    pub(super) header: FrameHeader,
    /// `None` if the frame holds no entry.
    entry: Option<EntryHeader>,
    body: Bytes,
    frame: Vec<u8>,
}

/// The cache that entries are imported into.
#[derive(Clone, Copy)]
pub(super) struct ImportTarget<'a> {
    /// Reads what it has already.
    pub(super) present: &'a dyn Lookup,
    pub(super) inner: &'a StoreInner,
    pub(super) key_of: KeyOf,
}

/// Adds the entries with these keys that another cache has, with their source texts.
pub(super) fn import_from_cache<'k>(
    target: ImportTarget<'_>,
    other: &CacheSnapshot,
    keys: impl IntoIterator<Item = &'k ActionKey>,
) -> Result<ImportCounts, CacheError> {
    let keys: BTreeSet<&ActionKey> = keys.into_iter().collect();
    let is_sound = |record: &Record| {
        record.is_usable() && other.has_whole_header(record) && other.verify_body(record).is_ok()
    };
    let records: Vec<Record> = keys
        .into_iter()
        .filter_map(|key| other.find(key))
        .filter(is_sound)
        .collect();
    let mut batch = ImportBatch::new(target, None);
    let mut add = |mut frame: &[u8]| -> Result<(), CacheError> {
        match read_item(&mut frame, target.key_of).map_err(bad)? {
            Some(item) => batch.add(item),
            None => Ok(()),
        }
    };
    for digest in write_entries(other, &records, &mut add)? {
        if let Some(text) = other.read_text(&digest) {
            add(&frame::text(digest, &plain_body(text.as_bytes())?))?;
        }
    }
    batch.commit(true)?;
    Ok(batch.counts())
}

/// Collects imported frames and writes them in groups.
pub(super) struct ImportBatch<'a> {
    target: ImportTarget<'a>,
    /// The remote that the entries come from, which replace other outputs of their keys; with `None`, entries keep the
    /// origin that they have, and outputs that are here stay.
    remote: Option<&'a str>,
    frames: Vec<Vec<u8>>,
    bytes: usize,
    added: BTreeSet<ActionKey>,
    present: u64,
}

impl<'a> ImportBatch<'a> {
    pub(super) fn new(target: ImportTarget<'a>, remote: Option<&'a str>) -> ImportBatch<'a> {
        ImportBatch {
            target,
            remote,
            frames: Vec::new(),
            bytes: 0,
            added: BTreeSet::new(),
            present: 0,
        }
    }

    pub(super) fn counts(&self) -> ImportCounts {
        ImportCounts {
            added: self.added.len() as u64,
            present: self.present,
        }
    }

    pub(super) fn add(&mut self, item: ImportedFrame) -> Result<(), CacheError> {
        const GROUP: usize = 4 << 20;
        let key = ActionKey(item.header.key);
        let frame = match (&item.header.content, &item.entry) {
            (FrameContent::Reply(_), Some(entry)) => {
                let present = self.target.present.find_usable(&key);
                if present
                    .is_some_and(|record| self.remote.is_none() || record.raw == item.header.digest)
                {
                    self.present += 1;
                    return Ok(());
                }
                self.added.insert(key);
                let origin = self.remote.map(str::to_owned);
                let entry = EntryHeader {
                    origin: origin.or_else(|| entry.origin.clone()),
                    ..entry.clone()
                };
                encoded(frame::reply(key, &entry, &compress_body(&item.body)?))?
            }
            (FrameContent::ParseResult(_), _) if self.added.contains(&key) => item.frame,
            (FrameContent::Text, _) if self.target.present.read_text(&key.0).is_none() => {
                frame::text(key.0, &compress_body(&item.body)?)
            }
            (FrameContent::Counts(_), _) => item.frame,
            _ => return Ok(()),
        };
        self.bytes += frame.len();
        self.frames.push(frame);
        if self.bytes >= GROUP {
            self.commit(true)
        } else {
            Ok(())
        }
    }

    /// Writes what was collected. If `durable`, it is on disk when this returns.
    fn commit(&mut self, durable: bool) -> Result<(), CacheError> {
        self.bytes = 0;
        let frames = std::mem::take(&mut self.frames);
        if frames.is_empty() {
            Ok(())
        } else {
            self.target.inner.commit(&frames, durable).map(drop)
        }
    }
}

fn bad(what: impl Into<String>) -> CacheError {
    CacheError::BadImport { what: what.into() }
}

/// Reads and verifies the next frame; `None` at the end.
pub(super) fn read_item(
    stream: &mut impl Read,
    key_of: KeyOf,
) -> Result<Option<ImportedFrame>, String> {
    let mut bytes = Vec::new();
    let header = loop {
        let needed = match FrameHeader::decode(&bytes) {
            Ok(header) => break header,
            Err(FrameHeaderError::Short(needed)) => needed,
            Err(FrameHeaderError::Damaged(what)) => {
                return Err(format!("an entry in it is damaged: {what}"));
            }
        };
        read_up_to(stream, &mut bytes, needed)?;
        match bytes.len() {
            0 => return Ok(None),
            n if n < needed => {
                return Err("its last entry is cut off".into());
            }
            _ => {}
        }
    };
    let head = bytes.len();
    let entry = match decode_header(&header, &bytes[..head], &SharedFields::default()) {
        Some(DecodedHeader::Whole(entry)) => Some(*entry),
        Some(DecodedHeader::FieldLost) | None => None,
    };
    let whole = head + header.body_len as usize;
    read_up_to(stream, &mut bytes, whole)?;
    if bytes.len() < whole {
        return Err("its last entry is cut off".into());
    }
    let body = Bytes::copy_from_slice(&bytes[head..]);
    check_item(&header, entry.as_ref(), &body, key_of)?;
    Ok(Some(ImportedFrame {
        header,
        entry,
        body,
        frame: bytes,
    }))
}

fn read_up_to(stream: &mut impl Read, bytes: &mut Vec<u8>, needed: usize) -> Result<(), String> {
    let missing = needed.saturating_sub(bytes.len()) as u64;
    stream
        .by_ref()
        .take(missing)
        .read_to_end(bytes)
        .map(drop)
        .map_err(|e| format!("it cannot be decompressed: {e}"))
}

/// Verifies what checksums do not: an entry's key must be that of its inputs, and a text's name its digest.
fn check_item(
    header: &FrameHeader,
    entry: Option<&EntryHeader>,
    body: &Bytes,
    key_of: KeyOf,
) -> Result<(), String> {
    match find_fault(header, entry, body, key_of) {
        Some(what) => Err(format!(
            "the entry {} in it is wrong: {what}",
            header.key.short()
        )),
        None => Ok(()),
    }
}

fn find_fault(
    header: &FrameHeader,
    entry: Option<&EntryHeader>,
    body: &Bytes,
    key_of: KeyOf,
) -> Option<&'static str> {
    match (&header.content, entry) {
        (FrameContent::Reply(_) | FrameContent::Failure { .. }, None) => {
            Some("its header cannot be read")
        }
        (FrameContent::Reply(_) | FrameContent::Failure { .. }, Some(entry))
            if key_of(entry) != Some(ActionKey(header.key)) =>
        {
            Some("its key does not match its inputs")
        }
        (FrameContent::Text, _) if Digest::hash(body) != header.key => {
            Some("its text does not match its name")
        }
        (FrameContent::Reply(_) | FrameContent::Failure { .. } | FrameContent::Text, _)
            if header.codec != Codec::Plain =>
        {
            Some("its body is compressed")
        }
        (FrameContent::Reply(_) | FrameContent::Failure { .. } | FrameContent::Text, _) => {
            decode_body(header, body.clone()).err()
        }
        _ => None,
    }
}

/// Packs one entry for a remote, without its source texts.
///
/// # Errors
/// If the entry is damaged.
pub fn pack_entry(cache: &impl Lookup, record: &Record) -> Result<Vec<u8>, CacheError> {
    let (header, body) = (cache.header(record)?, plain_body(&cache.body(record)?)?);
    compressed(&encoded(frame::reply(record.key, &header, &body))?)
}

fn compressed(frames: &[u8]) -> Result<Vec<u8>, CacheError> {
    let compressed = compressor(Vec::new()).and_then(|mut stream| {
        stream.write_all(frames)?;
        stream.finish()
    });
    compressed.map_err(CacheError::io("compress", Path::new("an entry")))
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
    let body = plain_body(&redact_bytes(content))?;
    compressed(&encoded(frame::packed_failure(key, header, &body))?)
}

/// Reads what [`pack_failure`] packed under `key`.
///
/// # Errors
/// If these bytes are not the failure `key`.
pub fn read_failure(key: &ActionKey, bytes: &[u8], key_of: KeyOf) -> Result<Bytes, CacheError> {
    let item = read_packed(key, bytes, key_of)?;
    if item.header.content.is_failure() {
        Ok(item.body)
    } else {
        Err(bad("it is no failure"))
    }
}

/// Adds what another cache packed under `key`. It is verified, and not synced: after a crash it is pulled again.
pub(super) fn add_packed(
    target: ImportTarget<'_>,
    key: &ActionKey,
    bytes: &[u8],
    remote: &str,
) -> Result<bool, CacheError> {
    let item = read_packed(key, bytes, target.key_of)?;
    if !matches!(item.header.content, FrameContent::Reply(_)) {
        return Err(bad("it is no output"));
    }
    let mut batch = ImportBatch::new(target, Some(remote));
    batch.add(item)?;
    batch.commit(false)?;
    Ok(batch.counts().added > 0)
}

/// Reads and verifies the frame that was packed under `key`.
fn read_packed(key: &ActionKey, bytes: &[u8], key_of: KeyOf) -> Result<ImportedFrame, CacheError> {
    let stream =
        decompressor(bytes).map_err(|error| bad(format!("it cannot be decompressed: {error}")))?;
    let mut stream = stream.take(LONGEST_ITEM);
    let item = read_item(&mut stream, key_of)
        .map_err(bad)?
        .ok_or_else(|| bad("it is empty"))?;
    if item.header.key != key.0 {
        return Err(bad(format!("it is the entry {}", item.header.key.short())));
    }
    let mut more = [0];
    match stream.read(&mut more) {
        Ok(0) => Ok(item),
        Ok(_) => Err(bad("it holds more than one entry")),
        Err(error) => Err(bad(format!("it cannot be decompressed: {error}"))),
    }
}
