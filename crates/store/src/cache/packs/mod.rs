//! Packs, the source of truth: append-only files of self-describing frames, in a locked folder. This file reads single
//! frames, scans frame headers, and compresses bodies.

pub(super) mod folder;
pub(super) mod frame;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zstd::bulk::{Compressor, Decompressor};

use crate::cache::entry::{EntryHeader, FrameLocation, Record};
use crate::cache::error::{CacheError, Damage};
use crate::digest::{ActionKey, Digest};
use base::guarded;
use base::redaction::redact_bytes;
use folder::Layout;
use frame::{
    Codec, EncodedBody, FIXED, FrameContent, FrameHeader, FrameHeaderError, MAGIC, MAX_BODY,
    PackHeader,
};

const LEVEL: i32 = 3;
/// A longer file is no pack: a pack is closed long before, after a frame that may be large.
const LONGEST_PACK: u64 = 2 << 30;

thread_local! {
    // creating a context costs more than compressing a small body
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

/// Redacts keys from a body, hashes it and compresses it, unless that makes it longer.
pub(super) fn compress_body(raw: &[u8]) -> Result<EncodedBody, CacheError> {
    let raw = &*redact_bytes(raw);
    match COMPRESSOR
        .with_borrow_mut(|context| context.as_mut().map(|context| context.compress(raw)))
    {
        Some(Ok(bytes)) if bytes.len() < raw.len() => Ok(EncodedBody {
            codec: Codec::Zstd,
            bytes,
            ..hash_body(raw)?
        }),
        _ => plain_body(raw),
    }
}

/// Hashes a body and stores it uncompressed.
pub(super) fn plain_body(raw: &[u8]) -> Result<EncodedBody, CacheError> {
    Ok(EncodedBody {
        bytes: raw.to_vec(),
        ..hash_body(raw)?
    })
}

fn hash_body(raw: &[u8]) -> Result<EncodedBody, CacheError> {
    if raw.len() > MAX_BODY {
        let bytes = raw.len();
        return Err(CacheError::Refused(format!(
            "an output of {bytes} bytes is too large for the cache (limit: {MAX_BODY} bytes)"
        )));
    }
    Ok(EncodedBody {
        codec: Codec::Plain,
        digest: Digest::hash(raw),
        raw_len: raw.len() as u32,
        bytes: Vec::new(),
    })
}

/// Decompresses a body and verifies its digest; the error says what is wrong.
pub(super) fn decode_body(header: &FrameHeader, stored: Bytes) -> Result<Bytes, &'static str> {
    let raw = decompress(header, stored)?;
    if Digest::hash(&raw) == header.digest {
        Ok(raw)
    } else {
        Err("its body does not match its digest")
    }
}

/// Decompresses a body and verifies only its checksum: enough for texts, which can be derived again.
fn decompress(header: &FrameHeader, stored: Bytes) -> Result<Bytes, &'static str> {
    verify_checksum(header, &stored)?;
    let raw = match header.codec {
        Codec::Plain => stored,
        Codec::Zstd => {
            let raw = DECOMPRESSOR.with_borrow_mut(|context| {
                context
                    .as_mut()
                    .map(|context| context.decompress(&stored, header.raw_len as usize))
            });
            Bytes::from(
                raw.and_then(Result::ok)
                    .ok_or("its body cannot be decompressed")?,
            )
        }
    };
    if raw.len() == header.raw_len as usize {
        Ok(raw)
    } else {
        Err("its body has another length")
    }
}

/// Verifies the checksum of a body as it is stored.
pub(super) fn verify_checksum(header: &FrameHeader, stored: &[u8]) -> Result<(), &'static str> {
    let matches = crc32fast::hash(stored) == header.body_crc;
    if matches {
        Ok(())
    } else {
        Err("its body does not match its checksum")
    }
}

/// Fills `buffer` from an offset of a file without moving the file's position.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < buffer.len() {
            match std::os::windows::fs::FileExt::seek_read(
                file,
                &mut buffer[done..],
                offset + done as u64,
            )? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => done += n,
            }
        }
        Ok(())
    }
}

pub(super) fn read_frame(file: &File, at: FrameLocation) -> io::Result<Vec<u8>> {
    read_bytes(file, at.offset, at.len())
}

fn read_bytes(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    read_at(file, &mut bytes, offset)?;
    Ok(bytes)
}

/// Reads the header of a pack, or says what is wrong with it.
pub(super) fn read_pack_header(
    file: &File,
    len: u64,
) -> io::Result<Result<PackHeader, &'static str>> {
    let mut start = [0; PackHeader::LEN];
    if len < start.len() as u64 {
        return Ok(Err("the pack is cut off"));
    }
    read_at(file, &mut start, 0)?;
    Ok(PackHeader::decode(&start))
}

/// A pack as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackState {
    pub id: u32,
    /// The nonce of the pack's header: no other pack has it.
    pub nonce: u64,
    /// Where its last whole frame ends.
    pub len: u64,
}

impl PackState {
    /// The pack, if all of it is whole.
    pub(crate) fn of_whole(id: u32, packs: &PackFiles) -> io::Result<PackState> {
        let file = packs.file(id)?;
        let len = file.metadata()?.len();
        let nonce = read_pack_header(&file, len)?.map_or(0, |header| header.nonce);
        Ok(PackState { id, nonce, len })
    }
}

/// The packs of a folder, each opened when it is first read.
#[derive(Debug)]
pub(crate) struct PackFiles {
    layout: Layout,
    files: RwLock<HashMap<u32, Arc<File>>>,
}

impl PackFiles {
    pub(super) fn new(layout: Layout) -> PackFiles {
        PackFiles {
            layout,
            files: RwLock::default(),
        }
    }

    /// Closes a pack that was replaced, so that its next use opens the new file.
    pub(super) fn close(&self, id: u32) {
        self.files
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
    }

    pub(super) fn file(&self, id: u32) -> io::Result<Arc<File>> {
        if let Some(file) = self
            .files
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
        {
            return Ok(file.clone());
        }
        let file = guarded::open(&self.layout.pack(id))?;
        if file.metadata()?.len() > LONGEST_PACK {
            return Err(io::Error::other("it is longer than a pack can be"));
        }
        let file = Arc::new(file);
        self.files
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, file.clone());
        Ok(file)
    }

    pub(super) fn damage(
        &self,
        key: Option<ActionKey>,
        at: FrameLocation,
        what: impl ToString,
    ) -> Damage {
        Damage {
            key,
            path: self.layout.pack(at.pack),
            offset: at.offset,
            what: what.to_string(),
            is_unread: false,
        }
    }

    /// Damage where no frame is known.
    pub(super) fn damage_at(&self, id: u32, offset: u64, what: &str) -> Damage {
        self.damage(None, FrameLocation::without_frame(id, offset), what)
    }

    /// Reports a failed read. A pack that is gone or has become shorter is damaged; otherwise the bytes may be sound.
    fn unread(&self, key: Option<ActionKey>, at: FrameLocation, error: &io::Error) -> Damage {
        let is_unread = !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
        );
        Damage {
            is_unread,
            ..self.damage(key, at, error)
        }
    }

    /// Reads the first `length` bytes of the frame at `at` and checks that it is the expected frame.
    fn frame(
        &self,
        key: Option<ActionKey>,
        at: FrameLocation,
        length: u64,
    ) -> Result<(FrameHeader, Vec<u8>), Damage> {
        let bytes = self
            .file(at.pack)
            .and_then(|file| read_bytes(&file, at.offset, length));
        let bytes = bytes.map_err(|error| self.unread(key, at, &error))?;
        let header = FrameHeader::decode(&bytes).map_err(|error| match error {
            FrameHeaderError::Short(_) => {
                self.damage(key, at, "its header has other lengths than the index says")
            }
            FrameHeaderError::Damaged(what) => self.damage(key, at, what),
        })?;
        let is_same = header.head_len == at.head && header.body_len == at.body;
        if !is_same || key.is_some_and(|key| key.0 != header.key) {
            return Err(self.damage(key, at, "another entry is there"));
        }
        Ok((header, bytes))
    }

    /// The verified body of a record.
    pub(super) fn body(&self, record: &Record) -> Result<Bytes, Damage> {
        let (header, body) = self.stored_body(record)?;
        decode_body(&header, body).map_err(|what| self.damage_of(record, what))
    }

    /// Verifies the body of a record by its checksum, without decompressing it.
    pub(super) fn verify_body(&self, record: &Record) -> Result<(), Damage> {
        let (header, body) = self.stored_body(record)?;
        verify_checksum(&header, &body).map_err(|what| self.damage_of(record, what))
    }

    fn stored_body(&self, record: &Record) -> Result<(FrameHeader, Bytes), Damage> {
        let at = record.location;
        let (header, bytes) = self.frame(Some(record.key), at, at.len())?;
        if header.digest != record.raw {
            return Err(self.damage_of(record, "another body is there"));
        }
        Ok((header, Bytes::from(bytes).slice(at.head as usize..)))
    }

    fn damage_of(&self, record: &Record, what: &str) -> Damage {
        self.damage(Some(record.key), record.location, what)
    }

    /// The header of an entry.
    pub(super) fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        let at = record.location;
        let (header, head) = self.frame(Some(record.key), at, u64::from(at.head))?;
        header
            .entry(&head)
            .ok_or_else(|| self.damage_of(record, "its header cannot be read"))
    }

    /// The frame of an entry, verified by the checksum of its body.
    pub(super) fn whole_frame(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        let at = record.location;
        let (header, bytes) = self.frame(Some(record.key), at, at.len())?;
        let body = bytes.get(at.head as usize..).unwrap_or_default();
        verify_checksum(&header, body).map_err(|what| self.damage_of(record, what))?;
        Ok(bytes)
    }

    /// What a step of a batch recorded, verified and decoded.
    pub(super) fn step<T>(
        &self,
        at: FrameLocation,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Damage> {
        let (header, bytes) = self.frame(None, at, at.len())?;
        let body = Bytes::from(bytes).slice(at.head as usize..);
        let body = decode_body(&header, body).map_err(|what| self.damage(None, at, what))?;
        decode(&body).ok_or_else(|| self.damage(None, at, "the record of a batch cannot be read"))
    }

    /// Whether a memo is stored at a location. One whose header is damaged is no loss.
    pub(super) fn is_memo(&self, at: FrameLocation) -> bool {
        self.frame(None, at, u64::from(at.head))
            .is_ok_and(|(header, _)| header.content == FrameContent::Memo)
    }

    /// The text or memo stored at a location under `digest`.
    pub(super) fn text(&self, digest: &Digest, at: FrameLocation) -> Result<Bytes, Damage> {
        let (header, bytes) = self.frame(Some(ActionKey(*digest)), at, at.len())?;
        let body = Bytes::from(bytes).slice(at.head as usize..);
        decompress(&header, body).map_err(|what| self.damage(None, at, what))
    }
}

/// One range of a pack.
#[expect(clippy::large_enum_variant, reason = "one at a time, never stored")]
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PackItem {
    Frame(FrameLocation, FrameHeader),
    /// Bytes that are not a frame, followed by a valid one at `to`.
    Damaged {
        from: u64,
        to: u64,
        what: &'static str,
    },
    /// Bytes at the end that are not a whole frame: in the newest pack, an interrupted write.
    Torn {
        from: u64,
        what: &'static str,
    },
}

/// Reads the frame headers of a pack one after another and skips the bodies. After damage it searches for the next
/// valid header.
pub(super) struct PackScanner<'a> {
    pack: u32,
    file: &'a File,
    len: u64,
    position: u64,
    window: Vec<u8>,
    window_at: u64,
    step: usize,
}

/// Limits of one read: small where large bodies are skipped, large where frames are small.
const MIN_READ: usize = 4 << 10;
const MAX_READ: usize = 256 << 10;

impl<'a> PackScanner<'a> {
    /// Scans `file` from `position` to `len`.
    pub(super) fn new(pack: u32, file: &'a File, position: u64, len: u64) -> PackScanner<'a> {
        let position = position.max(PackHeader::LEN as u64);
        PackScanner {
            pack,
            file,
            len,
            position,
            window: Vec::new(),
            window_at: 0,
            step: MAX_READ,
        }
    }

    /// The next range; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<PackItem>> {
        if self.position >= self.len {
            return Ok(None);
        }
        let from = self.position;
        let item = match self.header(from)? {
            Ok(header) => {
                let location = header.location(self.pack, from);
                self.position = location.end();
                PackItem::Frame(location, header)
            }
            Err(what) => self.find_next(from, what)?,
        };
        Ok(Some(item))
    }

    /// The header at `at`, if its frame ends within the pack.
    fn header(&mut self, at: u64) -> io::Result<Result<FrameHeader, &'static str>> {
        let mut needed = FIXED;
        loop {
            let available = self.bytes(at, needed)?;
            match FrameHeader::decode(available) {
                Err(FrameHeaderError::Short(more))
                    if more > needed && at + more as u64 <= self.len =>
                {
                    needed = more
                }
                Err(FrameHeaderError::Short(_)) => {
                    return Ok(Err("the frame is cut off"));
                }
                Err(FrameHeaderError::Damaged(what)) => return Ok(Err(what)),
                Ok(header) if header.location(0, at).end() > self.len => {
                    return Ok(Err("the frame is cut off"));
                }
                Ok(header) => return Ok(Ok(header)),
            }
        }
    }

    /// At least `needed` bytes from `at`, or fewer at the end.
    fn bytes(&mut self, at: u64, needed: usize) -> io::Result<&[u8]> {
        let window_end = self.window_at + self.window.len() as u64;
        let end = self.len.min(at + needed as u64);
        if at < self.window_at || end > window_end {
            let skipped = at > window_end;
            self.step = if skipped {
                MIN_READ
            } else {
                (self.step * 2).min(MAX_READ)
            };
            let length = (self.len - at.min(self.len)).min(self.step.max(needed) as u64) as usize;
            self.window.resize(length, 0);
            read_at(self.file, &mut self.window, at)?;
            self.window_at = at;
        }
        Ok(&self.window[(at - self.window_at) as usize..])
    }

    /// Searches for the next frame after damage that begins at `from`.
    fn find_next(&mut self, from: u64, what: &'static str) -> io::Result<PackItem> {
        let mut at = from + 1;
        while at + FIXED as u64 <= self.len {
            let window = self.bytes(at, MIN_READ)?;
            let mut starts = window.windows(MAGIC.len());
            let Some(next) = starts.position(|bytes| bytes == MAGIC) else {
                at += (window.len() - MAGIC.len() + 1) as u64;
                continue;
            };
            at += next as u64;
            if self.header(at)?.is_ok() {
                self.position = at;
                return Ok(PackItem::Damaged { from, to: at, what });
            }
            at += 1;
        }
        self.position = self.len;
        Ok(PackItem::Torn { from, what })
    }
}
