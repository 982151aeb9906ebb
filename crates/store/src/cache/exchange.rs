//! Entries that go from cache to cache: as frames that are complete by themselves, verified on their way in. What goes into
//! a remote is compressed one entry at a time, so that each can be read by itself.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;

use super::entry::{EntryHeader, EntryStatus, ImportOrigin, KeyOf, ParseResult, Record};
use super::error::CacheError;
use super::lookup::Lookup;
use super::packs::frame::{self, Codec, FrameContent, FrameHeader, FrameHeaderError};
use super::packs::packed::{EntryOrigin, explained};
use super::packs::shared_fields::SharedFields;
use super::packs::{compress_body, compressor, decode_body, decompressor, plain_body};
use super::snapshot::CacheSnapshot;
use super::writing::StoreInner;
use crate::digest::{ActionKey, Digest};

/// What came from another cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Entries that the cache did not have.
    pub added: u64,
    /// Entries that were in the cache already and were not changed.
    pub present: u64,
}

/// Whether the source texts of entries go with them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceTexts {
    With,
    Without,
}

pub(super) fn write_entries(
    cache: &impl Lookup,
    records: &[Record],
    with: SourceTexts,
    mut write: impl FnMut(&[u8]) -> Result<(), CacheError>,
) -> Result<(), CacheError> {
    let mut texts = BTreeSet::new();
    let mut counts = Vec::new();
    for record in records {
        let header = cache.header(record)?;
        let body = plain_body(&cache.body(record)?)?;
        write(&encoded(frame::reply(record.key, &header, &body))?)?;
        if let Some(reading) = ParseResult::from_status(&record.status) {
            write(&encoded(frame::parse_result(record.key, record.raw, &reading))?)?;
        }
        if let EntryStatus::Output { out, .. } = record.status {
            counts.extend(cache.count(&out).map(|count| (out, count)));
        }
        if with == SourceTexts::With {
            texts.extend(header.texts());
        }
    }
    for digest in texts {
        if let Some(text) = cache.read_text(&digest) {
            write(&frame::text(digest, &plain_body(text.as_bytes())?))?;
        }
    }
    if counts.is_empty() { Ok(()) } else { write(&encoded(frame::counts(&counts))?) }
}

fn encoded(frame: Result<Vec<u8>, postcard::Error>) -> Result<Vec<u8>, CacheError> {
    frame.map_err(|e| CacheError::io("write", Path::new("an entry"))(io::Error::other(e)))
}

/// A verified frame of another cache.
pub(super) struct ImportedFrame {
    pub(super) header: FrameHeader,
    /// Of an entry.
    entry: Option<EntryHeader>,
    body: Bytes,
    frame: Vec<u8>,
}

/// The cache that entries are imported into.
#[derive(Clone, Copy)]
pub(super) struct ImportTarget<'a> {
    /// What it has already.
    pub(super) present: &'a dyn Lookup,
    pub(super) inner: &'a StoreInner,
    pub(super) key_of: KeyOf,
}

/// Adds those of the entries `keys` that another cache has, with their source texts.
pub(super) fn import_from_cache<'k>(
    target: ImportTarget<'_>,
    other: &CacheSnapshot,
    keys: impl IntoIterator<Item = &'k ActionKey>,
) -> Result<ImportCounts, CacheError> {
    let keys: BTreeSet<&ActionKey> = keys.into_iter().collect();
    let is_sound =
        |record: &Record| record.is_usable() && other.is_explained(record) && other.verify_body(record).is_ok();
    let records: Vec<Record> = keys.into_iter().filter_map(|key| other.find(key)).filter(is_sound).collect();
    let mut batch = ImportBatch::new(target, None);
    let root = other.layout.root();
    write_entries(other, &records, SourceTexts::With, |mut frame| {
        match read_item(&mut frame, target.key_of).map_err(|what| bad(root, what))? {
            Some(item) => batch.add(item),
            None => Ok(()),
        }
    })?;
    batch.commit()?;
    Ok(batch.counts())
}

pub(super) struct ImportBatch<'a> {
    target: ImportTarget<'a>,
    /// Where they come from; `None` of entries that keep the origin that they have.
    origin: Option<ImportOrigin>,
    frames: Vec<Vec<u8>>,
    bytes: usize,
    taken: BTreeSet<ActionKey>,
    present: u64,
}

impl<'a> ImportBatch<'a> {
    pub(super) fn new(target: ImportTarget<'a>, origin: Option<ImportOrigin>) -> ImportBatch<'a> {
        ImportBatch { target, origin, frames: Vec::new(), bytes: 0, taken: BTreeSet::new(), present: 0 }
    }

    pub(super) fn counts(&self) -> ImportCounts {
        ImportCounts { added: self.taken.len() as u64, present: self.present }
    }

    pub(super) fn add(&mut self, item: ImportedFrame) -> Result<(), CacheError> {
        const GROUP: usize = 4 << 20;
        let key = ActionKey(item.header.key);
        let frame = match (&item.header.content, &item.entry) {
            (FrameContent::Reply(_), Some(entry)) => {
                if self.target.present.find(&key).is_some_and(|record| record.is_usable()) {
                    self.present += 1;
                    return Ok(());
                }
                self.taken.insert(key);
                let entry = EntryHeader { origin: self.origin_of(entry)?, ..entry.clone() };
                encoded(frame::reply(key, &entry, &compress_body(&item.body)?))?
            }
            (FrameContent::ParseResult(_), _) if self.taken.contains(&key) => item.frame,
            (FrameContent::Text, _) if self.target.present.read_text(&key.0).is_none() => {
                frame::text(key.0, &compress_body(&item.body)?)
            }
            (FrameContent::Counts(_), _) => item.frame,
            _ => return Ok(()),
        };
        self.bytes += frame.len();
        self.frames.push(frame);
        if self.bytes >= GROUP { self.commit() } else { Ok(()) }
    }

    /// Where an entry comes from. Its writer stays known, whatever brought it here.
    fn origin_of(&self, entry: &EntryHeader) -> Result<Option<ImportOrigin>, CacheError> {
        let before = entry.origin.as_ref();
        let own = self.origin.clone().map(|origin| ImportOrigin {
            writer: origin.writer.clone().or_else(|| before.and_then(|before| before.writer.clone())),
            ..origin
        });
        let origin = own.or_else(|| before.cloned());
        if let Some(origin) = &origin {
            self.target.inner.layout.note_writer(origin.writer.as_ref().map(|writer| &*writer.key))?;
        }
        Ok(origin)
    }

    fn commit(&mut self) -> Result<(), CacheError> {
        self.write(true)
    }

    /// Writes without waiting for the disk.
    fn commit_unsynced(&mut self) -> Result<(), CacheError> {
        self.write(false)
    }

    fn write(&mut self, durable: bool) -> Result<(), CacheError> {
        self.bytes = 0;
        let frames = std::mem::take(&mut self.frames);
        if frames.is_empty() { Ok(()) } else { self.target.inner.commit(&frames, durable).map(drop) }
    }
}

fn bad(path: &Path, what: impl Into<String>) -> CacheError {
    CacheError::BadImport { path: path.to_owned(), what: what.into() }
}

/// The next frame; `None` at the end.
pub(super) fn read_item(stream: &mut impl Read, key_of: KeyOf) -> Result<Option<ImportedFrame>, String> {
    let mut bytes = Vec::new();
    let header = loop {
        let needed = match FrameHeader::decode(&bytes) {
            Ok(header) => break header,
            Err(FrameHeaderError::Short(needed)) => needed,
            Err(FrameHeaderError::Damaged(what)) => return Err(format!("an entry in it is damaged: {what}")),
        };
        read_up_to(stream, &mut bytes, needed)?;
        match bytes.len() {
            0 => return Ok(None),
            n if n < needed => return Err("its last entry is cut off".into()),
            _ => {}
        }
    };
    let head = bytes.len();
    let entry = match explained(&header, &bytes[..head], &SharedFields::default()) {
        Some(EntryOrigin::Known(entry)) => Some(*entry),
        Some(EntryOrigin::Lost) | None => None,
    };
    let whole = head + header.body_len as usize;
    read_up_to(stream, &mut bytes, whole)?;
    if bytes.len() < whole {
        return Err("its last entry is cut off".into());
    }
    let body = Bytes::copy_from_slice(&bytes[head..]);
    check_item(&header, entry.as_ref(), &body, key_of)?;
    Ok(Some(ImportedFrame { header, entry, body, frame: bytes }))
}

fn read_up_to(stream: &mut impl Read, bytes: &mut Vec<u8>, needed: usize) -> Result<(), String> {
    let missing = needed.saturating_sub(bytes.len()) as u64;
    stream.by_ref().take(missing).read_to_end(bytes).map(drop).map_err(|e| format!("it cannot be decompressed: {e}"))
}

/// Verifies what checksums do not: an entry's key must be that of its inputs, and a text's name its digest.
fn check_item(header: &FrameHeader, entry: Option<&EntryHeader>, body: &Bytes, key_of: KeyOf) -> Result<(), String> {
    match find_fault(header, entry, body, key_of) {
        Some(what) => Err(format!("the entry {} in it is wrong: {what}", header.key.short())),
        None => Ok(()),
    }
}

fn find_fault(header: &FrameHeader, entry: Option<&EntryHeader>, body: &Bytes, key_of: KeyOf) -> Option<&'static str> {
    match (&header.content, entry) {
        (FrameContent::Reply(_), None) => Some("its header cannot be read"),
        (FrameContent::Reply(_), Some(entry)) if key_of(entry) != Some(ActionKey(header.key)) => {
            Some("its key does not match its inputs")
        }
        (FrameContent::Text, _) if Digest::hash(body) != header.key => Some("its text does not match its name"),
        (FrameContent::Reply(_) | FrameContent::Text, _) if header.codec != Codec::Plain => {
            Some("its body is compressed")
        }
        (FrameContent::Reply(_) | FrameContent::Text, _) => decode_body(header, body.clone()).err(),
        _ => None,
    }
}

/// One entry, without its source texts.
///
/// # Errors
/// If the entry is damaged.
pub fn pack_entry(cache: &impl Lookup, record: &Record) -> Result<Vec<u8>, CacheError> {
    let mut frames = Vec::new();
    write_entries(cache, std::slice::from_ref(record), SourceTexts::Without, |bytes| {
        frames.extend_from_slice(bytes);
        Ok(())
    })?;
    compressed(&frames)
}

/// One source text.
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

/// Adds what another cache packed under `key`. Existing outputs are not changed. Every frame is verified. Not synced: after a crash it is pulled again.
pub(super) fn add_packed(
    target: ImportTarget<'_>,
    key: &Digest,
    bytes: &[u8],
    origin: &ImportOrigin,
) -> Result<ImportCounts, CacheError> {
    let from = Path::new(&origin.file);
    let mut stream =
        decompressor(bytes).map_err(|error| bad(from, format!("an entry cannot be decompressed: {error}")))?;
    let mut items = Vec::new();
    while let Some(item) = read_item(&mut stream, target.key_of).map_err(|what| bad(from, what))? {
        items.push(item);
    }
    if items.first().is_none_or(|first| first.header.key != *key) {
        return Err(bad(from, format!("there is another entry in the place of {}", key.short())));
    }
    let mut batch = ImportBatch::new(target, Some(origin.clone()));
    items.into_iter().try_for_each(|item| batch.add(item))?;
    batch.commit_unsynced()?;
    Ok(batch.counts())
}
