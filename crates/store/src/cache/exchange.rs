//! Moves entries from cache to cache, as frames that are complete by themselves and are verified when they are
//! imported. Entries for a remote are compressed one by one, so that each can be read alone.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;

use super::entry::{EntryHeader, EntryStatus, ImportOrigin, KeyOf, ParseResult, Record};
use super::error::CacheError;
use super::lookup::Lookup;
use super::packs::frame::{self, Codec, FrameContent, FrameHeader, FrameHeaderError, MAX_BODY};
use super::packs::packed::{DecodedHeader, decode_header};
use super::packs::shared_fields::SharedFields;
use super::packs::{compress_body, compressor, decode_body, decompressor, plain_body};
use super::snapshot::CacheSnapshot;
use super::writing::StoreInner;
use crate::digest::{ActionKey, Digest};

/// The most bytes that a packed entry is decompressed to: one body, and what is known of it.
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

impl ImportedFrame {
    /// Whether the frame is an entry or a text, and not a note on one.
    fn has_own_body(&self) -> bool {
        matches!(
            self.header.content,
            FrameContent::Reply(_) | FrameContent::Text
        )
    }
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
    let root = other.layout.root();
    let mut add = |mut frame: &[u8]| -> Result<(), CacheError> {
        match read_item(&mut frame, target.key_of).map_err(|what| bad(root, what))? {
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
    /// The origin to store with the entries; with `None`, they keep the one that they have.
    origin: Option<ImportOrigin>,
    frames: Vec<Vec<u8>>,
    bytes: usize,
    added: BTreeSet<ActionKey>,
    present: u64,
}

impl<'a> ImportBatch<'a> {
    pub(super) fn new(target: ImportTarget<'a>, origin: Option<ImportOrigin>) -> ImportBatch<'a> {
        ImportBatch {
            target,
            origin,
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
                if self.target.present.find_usable(&key).is_some() {
                    self.present += 1;
                    return Ok(());
                }
                self.added.insert(key);
                let entry = EntryHeader {
                    origin: self.resolve_origin(entry)?,
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

    /// The origin to store with an entry, whose writer is noted. If the new origin names no writer, the earlier writer
    /// is kept.
    fn resolve_origin(&self, entry: &EntryHeader) -> Result<Option<ImportOrigin>, CacheError> {
        let before = entry.origin.as_ref();
        let new = self.origin.clone().map(|origin| ImportOrigin {
            writer: origin
                .writer
                .clone()
                .or_else(|| before.and_then(|before| before.writer.clone())),
            ..origin
        });
        let origin = new.or_else(|| before.cloned());
        if let Some(origin) = &origin {
            self.target
                .inner
                .layout
                .note_writer(origin.writer.as_ref().map(|writer| &*writer.key))?;
        }
        Ok(origin)
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

fn bad(path: &Path, what: impl Into<String>) -> CacheError {
    CacheError::BadImport {
        path: path.to_owned(),
        what: what.into(),
    }
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
        (FrameContent::Reply(_), None) => Some("its header cannot be read"),
        (FrameContent::Reply(_), Some(entry)) if key_of(entry) != Some(ActionKey(header.key)) => {
            Some("its key does not match its inputs")
        }
        (FrameContent::Text, _) if Digest::hash(body) != header.key => {
            Some("its text does not match its name")
        }
        (FrameContent::Reply(_) | FrameContent::Text, _) if header.codec != Codec::Plain => {
            Some("its body is compressed")
        }
        (FrameContent::Reply(_) | FrameContent::Text, _) => decode_body(header, body.clone()).err(),
        _ => None,
    }
}

/// Packs one entry for a remote, without its source texts.
///
/// # Errors
/// If the entry is damaged.
pub fn pack_entry(cache: &impl Lookup, record: &Record) -> Result<Vec<u8>, CacheError> {
    let mut frames = Vec::new();
    write_entries(cache, std::slice::from_ref(record), |bytes| {
        frames.extend_from_slice(bytes);
        Ok(())
    })?;
    compressed(&frames)
}

/// Packs one source text for a remote.
///
/// # Errors
/// If it is larger than the cache stores.
pub fn pack_text(digest: Digest, text: &str) -> Result<Vec<u8>, CacheError> {
    compressed(&frame::text(digest, &plain_body(text.as_bytes())?))
}

fn compressed(frames: &[u8]) -> Result<Vec<u8>, CacheError> {
    let compressed = compressor(Vec::new()).and_then(|mut stream| {
        stream.write_all(frames)?;
        stream.finish()
    });
    compressed.map_err(CacheError::io("compress", Path::new("an entry")))
}

/// Adds what another cache packed under `key`: one entry, with what is known of it, or one text. Existing outputs are not
/// changed. Every frame is verified. It is not synced: after a crash it is pulled again.
pub(super) fn add_packed(
    target: ImportTarget<'_>,
    key: &Digest,
    bytes: &[u8],
    origin: &ImportOrigin,
) -> Result<ImportCounts, CacheError> {
    let from = Path::new(&origin.remote);
    let stream = decompressor(bytes)
        .map_err(|error| bad(from, format!("an entry cannot be decompressed: {error}")))?;
    let mut stream = stream.take(LONGEST_ITEM);
    let mut items = Vec::new();
    while let Some(item) = read_item(&mut stream, target.key_of).map_err(|what| bad(from, what))? {
        items.push(item);
    }
    let is_alone = items.iter().skip(1).all(|item| !item.has_own_body());
    if !is_alone
        || items
            .first()
            .is_none_or(|first| first.header.key != *key || !first.has_own_body())
    {
        return Err(bad(
            from,
            format!("there is another entry in the place of {}", key.short()),
        ));
    }
    let mut batch = ImportBatch::new(target, Some(origin.clone()));
    items.into_iter().try_for_each(|item| batch.add(item))?;
    batch.commit(false)?;
    Ok(batch.counts())
}
