//! Packs: the files that hold frames, how bodies are stored in them, and how one frame is read back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use super::error::{CacheError, Damage};
use super::frame::{Codec, Header, MAX_BODY, Note, Packed};
use super::layout::Layout;
use super::lookup::{Reply, Speaker};
use super::meta::Meta;
use super::record::{Location, Record};
use crate::action::{ActionKey, Digest};

/// The beginning of a pack: which it is, and how often it was written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackHeader {
    pub(super) id: u32,
    pub(super) generation: u32,
}

impl PackHeader {
    pub(super) const LEN: usize = 24;
    const MAGIC: [u8; 7] = *b"CEvPACK";
    const VERSION: u8 = 1;

    pub(super) fn encode(self) -> [u8; PackHeader::LEN] {
        let mut bytes = [0; PackHeader::LEN];
        bytes[..7].copy_from_slice(&PackHeader::MAGIC);
        bytes[7] = PackHeader::VERSION;
        bytes[8..12].copy_from_slice(&self.id.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.generation.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; PackHeader::LEN]) -> Result<PackHeader, &'static str> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..7] != PackHeader::MAGIC || crc32fast::hash(&bytes[..20]) != number(20) {
            return Err("the beginning of the pack does not match its checksum");
        }
        if bytes[7] != PackHeader::VERSION {
            return Err("the pack has a version this program does not know");
        }
        Ok(PackHeader { id: number(8), generation: number(12) })
    }
}

const LEVEL: i32 = 3;

thread_local! {
    // making them costs more than a small body does
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

/// Prepares a body for a frame: digest, and compression where it saves anything.
pub(super) fn pack_body(raw: &[u8]) -> Result<Packed, CacheError> {
    match COMPRESSOR.with_borrow_mut(|context| context.as_mut().map(|context| context.compress(raw))) {
        Some(Ok(bytes)) if bytes.len() < raw.len() => Ok(Packed { codec: Codec::Zstd, bytes, ..describe(raw)? }),
        _ => plain_body(raw),
    }
}

/// Prepares a body for a frame as it is.
pub(super) fn plain_body(raw: &[u8]) -> Result<Packed, CacheError> {
    Ok(Packed { bytes: raw.to_vec(), ..describe(raw)? })
}

fn describe(raw: &[u8]) -> Result<Packed, CacheError> {
    if raw.len() > MAX_BODY {
        return Err(CacheError::TooLarge { bytes: raw.len() as u64, limit: MAX_BODY as u64 });
    }
    Ok(Packed { codec: Codec::Plain, digest: Digest::of(raw), raw_len: raw.len() as u32, bytes: Vec::new() })
}

/// The body as it was given; an error says what is wrong with it.
pub(super) fn unpack_body(header: &Header, stored: Bytes) -> Result<Bytes, &'static str> {
    let raw = unpack_text(header, stored)?;
    if Digest::of(&raw) == header.digest { Ok(raw) } else { Err("its body does not match its digest") }
}

/// The same of a text that can be made again: its checksum is enough.
fn unpack_text(header: &Header, stored: Bytes) -> Result<Bytes, &'static str> {
    checked(header, &stored)?;
    let raw = match header.codec {
        Codec::Plain => stored,
        Codec::Zstd => {
            let raw = DECOMPRESSOR.with_borrow_mut(|context| {
                context.as_mut().map(|context| context.decompress(&stored, header.raw_len as usize))
            });
            Bytes::from(raw.and_then(Result::ok).ok_or("its body cannot be decompressed")?)
        }
    };
    if raw.len() == header.raw_len as usize { Ok(raw) } else { Err("its body has another length") }
}

fn checked(header: &Header, stored: &[u8]) -> Result<(), &'static str> {
    let is_whole = crc32fast::hash(stored) == header.body_crc;
    if is_whole { Ok(()) } else { Err("its body does not match its checksum") }
}

/// Whether the body in a frame matches its checksum.
pub(super) fn is_whole(header: &Header, frame: &[u8]) -> bool {
    frame.get(header.head_len as usize..).is_some_and(|stored| checked(header, stored).is_ok())
}

/// A zstd stream to write to, for files that are compressed as a whole.
pub(super) fn compressor<W: io::Write>(target: W) -> io::Result<zstd::Encoder<'static, W>> {
    const LEVEL: i32 = 6;
    zstd::Encoder::new(target, LEVEL)
}

/// A zstd stream to read from.
pub(super) fn decompressor<R: io::Read>(source: R) -> io::Result<impl io::Read> {
    zstd::Decoder::new(source)
}

/// Reads at a place of a file without moving anything.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < buffer.len() {
            match std::os::windows::fs::FileExt::seek_read(file, &mut buffer[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => done += n,
            }
        }
        Ok(())
    }
}

/// Open packs, to read frames from.
#[derive(Debug)]
pub(super) struct Packs {
    layout: Layout,
    files: RwLock<HashMap<u32, Arc<File>>>,
}

impl Packs {
    pub(super) fn new(layout: Layout) -> Packs {
        Packs { layout, files: RwLock::default() }
    }

    /// Opens a pack anew at its next use: it was rewritten.
    pub(super) fn forget(&self, id: u32) {
        self.files.write().unwrap_or_else(|e| e.into_inner()).remove(&id);
    }

    pub(super) fn file(&self, id: u32) -> io::Result<Arc<File>> {
        if let Some(file) = self.files.read().unwrap_or_else(|e| e.into_inner()).get(&id) {
            return Ok(file.clone());
        }
        let file = Arc::new(File::open(self.layout.pack(id))?);
        self.files.write().unwrap_or_else(|e| e.into_inner()).insert(id, file.clone());
        Ok(file)
    }

    /// Damage at a place.
    pub(super) fn damage(&self, key: Option<ActionKey>, at: Location, what: impl Into<String>) -> Damage {
        Damage { key, path: self.layout.pack(at.pack), offset: at.offset, what: what.into() }
    }

    /// Some bytes of the frame at `at`, from its beginning.
    fn read(&self, key: Option<ActionKey>, at: Location, length: u64) -> Result<Vec<u8>, Damage> {
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| self.damage(key, at, "it is too long"))?];
        let file = self.file(at.pack).map_err(|e| self.damage(key, at, e.to_string()))?;
        read_at(&file, &mut bytes, at.offset).map_err(|e| self.damage(key, at, e.to_string()))?;
        Ok(bytes)
    }

    /// The frame at `at`: its header and its bytes.
    fn frame(&self, key: Option<ActionKey>, at: Location, length: u64) -> Result<(Header, Vec<u8>), Damage> {
        let bytes = self.read(key, at, length)?;
        let header = Header::decode(&bytes).map_err(|fault| {
            self.damage(
                key,
                at,
                match fault {
                    super::frame::Fault::Short(_) => "its header has other lengths than the index says",
                    super::frame::Fault::Damaged(what) => what,
                },
            )
        })?;
        let same = header.head_len == at.head && header.body_len == at.body;
        if !same || key.is_some_and(|key| key.0 != header.key) {
            return Err(self.damage(key, at, "another entry lies there"));
        }
        Ok((header, bytes))
    }

    /// The whole frame of a record, as it is stored.
    pub(super) fn whole_frame(&self, record: &Record) -> Result<(Header, Vec<u8>), Damage> {
        self.frame(Some(record.key), record.location, record.location.len())
    }

    /// The body of a record, checked, and who said it.
    pub(super) fn reply(&self, record: &Record) -> Result<Reply, Damage> {
        let (header, bytes, speaker) = self.spoken(record)?;
        let body = Bytes::from(bytes).slice(record.location.head as usize..);
        let body = unpack_body(&header, body).map_err(|what| self.damage_of(record, what))?;
        Ok(Reply { body, speaker })
    }

    /// Who said the body of a record, which is as it was written.
    pub(super) fn vouch(&self, record: &Record) -> Result<Speaker, Damage> {
        let (header, bytes, speaker) = self.spoken(record)?;
        let stored = bytes.get(record.location.head as usize..).unwrap_or_default();
        checked(&header, stored).map_err(|what| self.damage_of(record, what))?;
        Ok(speaker)
    }

    /// The frame of a reply, as it is stored, and who said it.
    fn spoken(&self, record: &Record) -> Result<(Header, Vec<u8>, Speaker), Damage> {
        let (header, bytes) = self.whole_frame(record)?;
        if header.digest != record.raw {
            return Err(self.damage_of(record, "another body lies there"));
        }
        let models = header.models(&bytes);
        let (answered, asked) = models.ok_or_else(|| self.damage_of(record, "its header cannot be read"))?;
        Ok((header, bytes, Speaker { asked, answered }))
    }

    fn damage_of(&self, record: &Record, what: &str) -> Damage {
        self.damage(Some(record.key), record.location, what)
    }

    /// The meta of a record, checked.
    pub(super) fn meta(&self, record: &Record) -> Result<Meta, Damage> {
        let (_, head) = self.frame(Some(record.key), record.location, u64::from(record.location.head))?;
        Header::meta(&head).ok_or_else(|| self.damage(Some(record.key), record.location, "its header cannot be read"))
    }

    /// The coordinate of a record, as the index names it.
    pub(super) fn coordinate(&self, record: &Record) -> Result<Digest, Damage> {
        let (header, _) = self.frame(Some(record.key), record.location, u64::from(record.location.head))?;
        match header.note {
            Note::Reply(brief) | Note::Failure { brief, .. } => Ok(brief.coordinate),
            _ => Err(self.damage(Some(record.key), record.location, "another entry lies there")),
        }
    }

    /// The text that lies at a place.
    pub(super) fn text(&self, digest: &Digest, at: Location) -> Result<Bytes, Damage> {
        let (header, bytes) = self.frame(Some(ActionKey(*digest)), at, at.len())?;
        let failed = |what: &str| self.damage(None, at, what);
        let body = Bytes::from(bytes).slice(at.head as usize..);
        unpack_text(&header, body).map_err(failed)
    }
}
