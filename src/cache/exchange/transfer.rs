//! Export and import: moves entries between machines in one compressed file that ends with its own digest.
//!
//! ```text
//! magic 8 | version 4 | entries 8 | zstd( frames, bodies plain ) | digest 32 of everything before it
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::action::{ActionKey, Digest, StreamDigest};
use crate::cache::entry::{EntryMeta, EntryStatus, ImportOrigin, ParseResult, Record};
use crate::cache::error::CacheError;
use crate::cache::lookup::Lookup;
use crate::cache::packs::frame::{self, Codec, FrameContent, FrameHeader, FrameHeaderError};
use crate::cache::packs::pack::{compress_body, compressor, decode_body, decompressor, plain_body};
use crate::cache::snapshot::CacheSnapshot;
use crate::cache::writing::inner::StoreInner;
use base::files;

const MAGIC: [u8; 8] = *b"CEvXPORT";
const VERSION: u32 = 1;
const START: u64 = 20;
const DIGEST: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportCounts {
    pub entries: u64,
    /// Entries left out, because what they were made from was lost to damage: their keys could not be verified
    /// elsewhere.
    pub unexplained: u64,
    pub bytes: u64,
    /// The digest at its end, which covers all of it.
    pub digest: Digest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    pub added: u64,
    /// Entries that were in the cache already and were not changed.
    pub present: u64,
}

/// Writes the entries of `keys`, with their source texts, into one file. Failures are skipped: they have no output to
/// reuse. Entries whose inputs were lost to damage are left out and counted. The file is written completely or not at all, and it replaces nothing but an earlier export.
///
/// # Errors
/// If `path` is another kind of file or inside the cache, if an entry is missing or damaged, or if the file cannot be
/// written.
pub fn export(cache: &CacheSnapshot, keys: &[ActionKey], path: &Path) -> Result<ExportCounts, CacheError> {
    let failed = || CacheError::io("write", path);
    let folder = files::folder_of(path);
    if cache.contains(&folder.canonicalize().map_err(failed())?) {
        return Err(refused(path, "it is inside the cache folder"));
    }
    check_target(path)?;
    let mut records = Vec::new();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        let record = cache.find(key).ok_or(CacheError::Missing { key: *key })?;
        records.extend(Some(record).filter(|record| !record.is_failed()));
    }
    let named = records.len();
    records.retain(|record| cache.is_explained(record));
    let unexplained = (named - records.len()) as u64;
    let unfinished = Unfinished::create(path)?;
    let mut hashed = HashingWriter { target: BufWriter::new(&unfinished.file), digest: StreamDigest::default() };
    let start = [&MAGIC[..], &VERSION.to_le_bytes(), &(records.len() as u64).to_le_bytes()].concat();
    hashed.write_all(&start).map_err(failed())?;
    let mut stream = compressor(hashed).map_err(failed())?;
    write_entries(cache, &records, SourceTexts::With, |bytes| stream.write_all(bytes).map_err(failed()))?;
    let HashingWriter { mut target, digest } = stream.finish().map_err(failed())?;
    let digest = digest.finish();
    target.write_all(&digest.0).map_err(failed())?;
    target.into_inner().map_err(|e| failed()(e.into_error()))?;
    let bytes = unfinished.file.metadata().map_err(failed())?.len();
    unfinished.keep(path)?;
    Ok(ExportCounts { entries: records.len() as u64, unexplained, bytes, digest })
}

/// An export under construction. Its name follows from that of the export, so the next export to the same file replaces
/// what a killed one left behind. It is locked, so that two exports cannot mix.
struct Unfinished {
    file: File,
    path: PathBuf,
    is_kept: bool,
}

impl Unfinished {
    fn create(target: &Path) -> Result<Unfinished, CacheError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.unfinished"));
        let open = files::private_options().write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(CacheError::io("create", &path))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => refused(target, "another process is exporting to it"),
            TryLockError::Error(error) => CacheError::io("lock", &path)(error),
        })?;
        file.set_len(0).map_err(CacheError::io("write", &path))?;
        Ok(Unfinished { file, path, is_kept: false })
    }

    fn keep(mut self, target: &Path) -> Result<(), CacheError> {
        let failed = || CacheError::io("write", target);
        self.file.sync_all().map_err(failed())?;
        fs::rename(&self.path, target).map_err(failed())?;
        self.is_kept = true;
        Ok(files::sync_folder(files::folder_of(target))?)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn refused(path: &Path, what: &'static str) -> CacheError {
    CacheError::BadTarget { path: path.to_owned(), what }
}

/// Refuses to replace a file that is not an export and not empty.
fn check_target(path: &Path) -> Result<(), CacheError> {
    let failed = || CacheError::io("read", path);
    let found = match path.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed())?,
    };
    // reading a pipe would block
    if !found.is_file() {
        return Err(refused(path, "it is not a regular file"));
    }
    let mut start = Vec::new();
    let file = File::open(path).map_err(failed())?;
    file.take(MAGIC.len() as u64).read_to_end(&mut start).map_err(failed())?;
    let is_replaceable = start.is_empty() || start == MAGIC;
    if is_replaceable { Ok(()) } else { Err(refused(path, "it exists and is not an export")) }
}

/// Whether the source texts of entries go with them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cache) enum SourceTexts {
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
        let meta = cache.meta(record)?;
        let body = plain_body(&cache.body(record)?)?;
        write(&encoded(frame::reply(record.key, &meta, &body))?)?;
        if let Some(reading) = ParseResult::of(&record.status) {
            write(&encoded(frame::parse_result(record.key, record.raw, &reading))?)?;
        }
        if let EntryStatus::Output { out, .. } = record.status {
            counts.extend(cache.count(&out).map(|count| (out, count)));
        }
        if with == SourceTexts::With {
            texts.extend(meta.texts());
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

struct HashingWriter<W> {
    target: W,
    digest: StreamDigest,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

/// A verified frame of an exported file.
pub(in crate::cache) struct ImportedFrame {
    pub(in crate::cache) header: FrameHeader,
    meta: Option<EntryMeta>,
    body: Bytes,
    frame: Vec<u8>,
}

/// The cache that entries are imported into.
#[derive(Clone, Copy)]
pub(in crate::cache) struct ImportTarget<'a> {
    /// What it has already.
    pub(in crate::cache) present: &'a dyn Lookup,
    pub(in crate::cache) inner: &'a StoreInner,
}

/// Adds the entries of an exported file, after the whole file was verified, and marks them with their origin.
pub(in crate::cache) fn import(
    target: ImportTarget<'_>,
    path: &Path,
    expected_digest: Option<&Digest>,
) -> Result<ImportCounts, CacheError> {
    let (expected, digest) = check_whole(path)?;
    if let Some(wanted) = expected_digest.filter(|wanted| **wanted != digest) {
        return Err(bad(path, format!("its digest is {digest}, and {wanted} was expected")));
    }
    let mut entries = 0;
    read_items(path, |item| {
        entries += u64::from(item.meta.is_some());
        Ok(())
    })?;
    if entries != expected {
        return Err(bad(path, format!("it should contain {expected} entries and contains {entries}")));
    }
    let origin = ImportOrigin { file: path.display().to_string(), digest, writer: None };
    let mut batch = ImportBatch::new(target, Some(origin));
    target.inner.layout.note_import()?;
    read_items(path, |item| batch.add(item))?;
    batch.commit()?;
    Ok(batch.counts())
}

/// Adds those of the entries `keys` that another cache has, with their source texts.
pub(in crate::cache) fn import_from_cache<'k>(
    target: ImportTarget<'_>,
    other: &CacheSnapshot,
    keys: impl IntoIterator<Item = &'k ActionKey>,
) -> Result<ImportCounts, CacheError> {
    let keys: BTreeSet<&ActionKey> = keys.into_iter().collect();
    let is_sound =
        |record: &Record| record.is_usable() && other.is_explained(record) && other.verify_body(record).is_ok();
    let records: Vec<Record> = keys.into_iter().filter_map(|key| other.find(key)).filter(is_sound).collect();
    if other.layout.has_imports() {
        target.inner.layout.note_import()?;
    }
    let mut batch = ImportBatch::new(target, None);
    let root = other.layout.root();
    write_entries(other, &records, SourceTexts::With, |mut frame| {
        match read_item(&mut frame).map_err(|what| bad(root, what))? {
            Some(item) => batch.add(item),
            None => Ok(()),
        }
    })?;
    batch.commit()?;
    Ok(batch.counts())
}

pub(in crate::cache) struct ImportBatch<'a> {
    target: ImportTarget<'a>,
    /// The exported file; `None` of entries that keep the origin that they have.
    origin: Option<ImportOrigin>,
    frames: Vec<Vec<u8>>,
    bytes: usize,
    taken: BTreeSet<ActionKey>,
    present: u64,
}

impl<'a> ImportBatch<'a> {
    pub(in crate::cache) fn new(target: ImportTarget<'a>, origin: Option<ImportOrigin>) -> ImportBatch<'a> {
        ImportBatch { target, origin, frames: Vec::new(), bytes: 0, taken: BTreeSet::new(), present: 0 }
    }

    pub(in crate::cache) fn counts(&self) -> ImportCounts {
        ImportCounts { added: self.taken.len() as u64, present: self.present }
    }

    pub(in crate::cache) fn add(&mut self, item: ImportedFrame) -> Result<(), CacheError> {
        const GROUP: usize = 4 << 20;
        let key = ActionKey(item.header.key);
        let frame = match (&item.header.content, &item.meta) {
            (FrameContent::Reply(_), Some(meta)) => {
                if self.target.present.find(&key).is_some_and(|record| record.is_usable()) {
                    self.present += 1;
                    return Ok(());
                }
                self.taken.insert(key);
                let imported = self.origin_of(meta)?;
                let meta = EntryMeta { imported, ..meta.clone() };
                encoded(frame::reply(key, &meta, &compress_body(&item.body)?))?
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
    fn origin_of(&self, meta: &EntryMeta) -> Result<Option<ImportOrigin>, CacheError> {
        let before = meta.imported.as_ref();
        let writer = || before.and_then(|origin| origin.writer.clone());
        let own = self.origin.clone();
        let own = own.map(|origin| ImportOrigin { writer: origin.writer.clone().or_else(writer), ..origin });
        let origin = own.or_else(|| before.cloned());
        if let Some(writer) = origin.as_ref().and_then(|origin| origin.writer.as_ref()) {
            self.target.inner.layout.note_writer(&writer.key)?;
        }
        Ok(origin)
    }

    fn commit(&mut self) -> Result<(), CacheError> {
        self.write(true)
    }

    /// Writes without waiting for the disk.
    pub(super) fn commit_unsynced(&mut self) -> Result<(), CacheError> {
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

/// Verifies magic, version and the digest of the whole file. Returns the number of entries it should contain, and the
/// digest.
fn check_whole(path: &Path) -> Result<(u64, Digest), CacheError> {
    let failed = || CacheError::io("read", path);
    let mut file = File::open(path).map_err(failed())?;
    let len = file.metadata().map_err(failed())?.len();
    let cut = || bad(path, "it is cut off; copy or export it again");
    let mut start = Vec::new();
    (&file).take(START).read_to_end(&mut start).map_err(failed())?;
    let Some((magic, rest)) = start.split_first_chunk::<8>() else { return Err(cut()) };
    if *magic != MAGIC {
        return Err(bad(path, "it was not written by `compeval cache export`"));
    }
    let Some((version, rest)) = rest.split_first_chunk::<4>() else { return Err(cut()) };
    let Ok(entries) = <[u8; 8]>::try_from(rest) else { return Err(cut()) };
    let version = u32::from_le_bytes(*version);
    if version > VERSION {
        let what = format!(
            "it has version {version}, and this program supports versions up to {VERSION}; use a newer compeval"
        );
        return Err(bad(path, what));
    }
    let Some(covered) = len.checked_sub(DIGEST).filter(|covered| *covered > START) else { return Err(cut()) };
    file.seek(SeekFrom::Start(0)).map_err(failed())?;
    let mut hashed = HashingWriter { target: io::sink(), digest: StreamDigest::default() };
    io::copy(&mut (&file).take(covered), &mut hashed).map_err(failed())?;
    let mut digest = [0; DIGEST as usize];
    file.read_exact(&mut digest).map_err(failed())?;
    if hashed.digest.finish() != Digest(digest) {
        return Err(bad(path, "it is cut off or damaged: its digest does not match; copy or export it again"));
    }
    Ok((u64::from_le_bytes(entries), Digest(digest)))
}

/// Reads and verifies every frame of the file.
fn read_items(path: &Path, mut each: impl FnMut(ImportedFrame) -> Result<(), CacheError>) -> Result<(), CacheError> {
    let failed = || CacheError::io("read", path);
    let mut file = File::open(path).map_err(failed())?;
    let len = file.metadata().map_err(failed())?.len();
    file.seek(SeekFrom::Start(START)).map_err(failed())?;
    let frames = file.take(len.saturating_sub(START + DIGEST));
    let mut stream = BufReader::new(decompressor(frames).map_err(failed())?);
    while let Some(item) = read_item(&mut stream).map_err(|what| bad(path, what))? {
        each(item)?;
    }
    Ok(())
}

/// The next frame; `None` at the end.
pub(in crate::cache) fn read_item(stream: &mut impl Read) -> Result<Option<ImportedFrame>, String> {
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
    let meta = header.meta(&bytes);
    let whole = head + header.body_len as usize;
    read_up_to(stream, &mut bytes, whole)?;
    if bytes.len() < whole {
        return Err("its last entry is cut off".into());
    }
    let body = Bytes::copy_from_slice(&bytes[head..]);
    check_item(&header, meta.as_ref(), &body)?;
    Ok(Some(ImportedFrame { header, meta, body, frame: bytes }))
}

fn read_up_to(stream: &mut impl Read, bytes: &mut Vec<u8>, needed: usize) -> Result<(), String> {
    let missing = needed.saturating_sub(bytes.len()) as u64;
    stream.by_ref().take(missing).read_to_end(bytes).map(drop).map_err(|e| format!("it cannot be decompressed: {e}"))
}

/// Verifies what checksums do not: an entry's key must be that of its inputs, and a text's name its digest.
fn check_item(header: &FrameHeader, meta: Option<&EntryMeta>, body: &Bytes) -> Result<(), String> {
    let fault = |what: &str| Err(format!("the entry {} in it is wrong: {what}", header.key.short()));
    let is_plain = match (&header.content, meta) {
        (FrameContent::Reply(_), None) => return fault("its header cannot be read"),
        (FrameContent::Reply(_), Some(meta)) if meta.inputs.key() != ActionKey(header.key) => {
            return fault("its key does not match its inputs");
        }
        (FrameContent::Text, _) if Digest::of(body) != header.key => return fault("its text does not match its name"),
        (FrameContent::Reply(_) | FrameContent::Text, _) => header.codec == Codec::Plain,
        _ => return Ok(()),
    };
    if !is_plain {
        return fault("its body is compressed");
    }
    decode_body(header, body.clone()).map(drop).or_else(fault)
}
