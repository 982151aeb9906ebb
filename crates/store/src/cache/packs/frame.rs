//! The format of a pack: a header and frames. The frames of a pack describe it completely, so that everything else can be
//! rebuilt from the packs.
//!
//! ```text
//! magic 4 | kind 1 | codec 1 | zero 2 | note_len 4 | body_len 4 | raw_len 4 | body_crc 4 | key 32 | digest 32 | note | crc 4 | body
//! ```
//! Numbers are little-endian. `crc` covers everything before it, `body_crc` the body as stored, and `digest` is that of the
//! uncompressed body. The note of an entry is its whole header, so that an entry is complete by itself. A scan reads headers
//! only and skips bodies. The tests pin the bytes. A frame may record a step of a batch; no prune removes the steps of an open
//! one.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::cache::entry::{
    Day, EntryHeader, EntryStatus, EntrySummary, FrameLocation, Record, clip, prefix_of,
};
use crate::digest::{ActionKey, Digest, DigestBuilder};
use base::redaction::redact_bytes;

/// Bytes of a header before its note.
pub(crate) const FIXED: usize = 88;
/// The first bytes of every frame; after damage, a scan searches for them.
pub(crate) const MAGIC: [u8; 4] = [0xC5, b'f', b'r', 0x01];
const CRC: usize = 4;
/// A longer note is damage.
const MAX_NOTE: usize = 64 << 20;
/// The largest body, compressed or not.
pub(crate) const MAX_BODY: usize = 512 << 20;

/// The beginning of a pack: its number, and a random nonce that no other pack has.
///
/// ```text
/// magic 8 | number 4 | nonce 8 | crc 4 of everything before it
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackHeader {
    pub id: u32,
    pub nonce: u64,
}

impl PackHeader {
    pub(crate) const LEN: usize = 24;
    /// The last byte is the version of packs and frames.
    const MAGIC: [u8; 8] = *b"CEsPACK\x01";

    /// The header of a new pack.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn new(id: u32) -> std::io::Result<PackHeader> {
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(PackHeader {
            id,
            nonce: u64::from_le_bytes(nonce),
        })
    }

    pub(crate) fn encode(self) -> [u8; PackHeader::LEN] {
        let mut bytes = [0; PackHeader::LEN];
        bytes[..8].copy_from_slice(&PackHeader::MAGIC);
        bytes[8..12].copy_from_slice(&self.id.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.nonce.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; PackHeader::LEN]) -> Result<PackHeader, &'static str> {
        let [id, low, high, crc] = [8, 12, 16, 20].map(|at| u32_at(bytes, at));
        if crc32fast::hash(&bytes[..20]) != crc || bytes[..7] != PackHeader::MAGIC[..7] {
            return Err("the header of the pack does not match its checksum");
        }
        if bytes[7] != PackHeader::MAGIC[7] {
            return Err("the pack has a version that this program does not support");
        }
        Ok(PackHeader {
            id,
            nonce: u64::from(low) | u64::from(high) << 32,
        })
    }
}

/// The number at an offset of a header that is long enough.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// How a body is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Codec {
    #[default]
    Plain = 0,
    Zstd = 1,
}

impl Codec {
    fn decode(byte: u8) -> Result<Codec, FrameHeaderError> {
        match byte {
            0 => Ok(Codec::Plain),
            1 => Ok(Codec::Zstd),
            _ => Err(FrameHeaderError::Damaged("its compression is unknown")),
        }
    }
}

/// A body as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EncodedBody {
    pub codec: Codec,
    pub digest: Digest,
    pub raw_len: u32,
    pub bytes: Vec<u8>,
}

/// The kinds of frame, each with what its note holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FrameContent {
    /// The body is the output of an action.
    Reply(EntrySummary),
    /// The result of parsing the body with the frame's digest.
    ParseResult(EntryStatus),
    /// An action failed permanently; there is no body.
    Failure {
        summary: EntrySummary,
        class: String,
        message: String,
    },
    /// The body is a text; the key is the digest it is stored under.
    Text,
    /// The body can be derived again; the key is its name.
    Memo,
    /// Entries used on a day.
    Touch { day: Day, keys: Vec<KeyPrefix> },
    /// The action of the frame's key is in use again at a place, after another was.
    Latest(Digest),
    /// The body is a record of a batch.
    Journal(BatchNonce, BatchStep),
    /// A kind of frame of a newer version: skipped.
    Unknown,
}

impl FrameContent {
    /// The summary of an entry: a reply or failure.
    pub(crate) fn summary(&self) -> Option<&EntrySummary> {
        match self {
            FrameContent::Reply(summary) | FrameContent::Failure { summary, .. } => Some(summary),
            _ => None,
        }
    }
}

/// The first bytes of a key: enough to record the last use of an entry.
pub(crate) type KeyPrefix = [u8; 8];

pub(crate) fn key_prefix(key: &ActionKey) -> KeyPrefix {
    prefix_of(&key.0)
}

/// The header of a frame, decoded and verified.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrameHeader {
    pub key: Digest,
    pub digest: Digest,
    pub codec: Codec,
    pub raw_len: u32,
    pub(super) body_crc: u32,
    pub body_len: u32,
    pub head_len: u32,
    pub content: FrameContent,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameHeaderError {
    /// This many bytes are needed in all.
    Short(usize),
    /// They differ from what was written.
    Damaged(&'static str),
}

impl FrameHeader {
    /// The location of the frame if it begins at `offset` of a pack.
    pub(crate) fn location(&self, pack: u32, offset: u64) -> FrameLocation {
        FrameLocation {
            pack,
            offset,
            head: self.head_len,
            body: self.body_len,
        }
    }

    /// Decodes the header at the beginning of `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<FrameHeader, FrameHeaderError> {
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(FrameHeaderError::Short(FIXED))?;
        if fixed[..4] != MAGIC {
            return Err(FrameHeaderError::Damaged("there is no frame"));
        }
        let [note_len, body_len, raw_len, body_crc] = [8, 12, 16, 20].map(|at| u32_at(fixed, at));
        if note_len as usize > MAX_NOTE || body_len.max(raw_len) as usize > MAX_BODY {
            return Err(FrameHeaderError::Damaged(
                "its header has impossible lengths",
            ));
        }
        let head_len = FIXED + note_len as usize + CRC;
        let (covered, crc) = bytes
            .get(..head_len)
            .and_then(|head| head.split_last_chunk::<CRC>())
            .ok_or(FrameHeaderError::Short(head_len))?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(FrameHeaderError::Damaged(
                "its header does not match its checksum",
            ));
        }
        let content = decode_content(fixed[4], &covered[FIXED..]);
        let [key, digest] = [24, 56].map(|at| {
            let mut bytes = [0; 32];
            bytes.copy_from_slice(&fixed[at..at + 32]);
            Digest(bytes)
        });
        Ok(FrameHeader {
            key,
            digest,
            codec: Codec::decode(fixed[5])?,
            raw_len,
            body_crc,
            body_len,
            head_len: head_len as u32,
            content: content.ok_or(FrameHeaderError::Damaged("its header cannot be read"))?,
        })
    }

    /// The whole header of an entry, from the bytes of its frame; `None` if it cannot be read, and for other kinds.
    pub(crate) fn entry(&self, bytes: &[u8]) -> Option<EntryHeader> {
        let note = bytes.get(FIXED..(self.head_len as usize).checked_sub(CRC)?)?;
        let header = match self.content {
            FrameContent::Reply(_) => note,
            FrameContent::Failure { .. } => postcard::take_from_bytes::<(&str, &str)>(note).ok()?.1,
            _ => return None,
        };
        postcard::from_bytes(header).ok()
    }

    /// The record of a reply or failure; `None` for other kinds.
    pub(crate) fn record(&self, location: FrameLocation) -> Option<Record> {
        let summary = self.content.summary()?;
        let status = match &self.content {
            FrameContent::Failure { class, message, .. } => EntryStatus::Failed {
                class: class.as_str().into(),
                message: message.as_str().into(),
            },
            _ => EntryStatus::Unparsed,
        };
        Some(Record {
            key: ActionKey(self.key),
            location,
            raw: self.digest,
            raw_len: self.raw_len,
            status,
            summary: summary.clone(),
        })
    }
}

mod kind {
    pub(super) const REPLY: u8 = 1;
    pub(super) const PARSE_RESULT: u8 = 2;
    pub(super) const FAILURE: u8 = 3;
    pub(super) const TEXT: u8 = 4;
    pub(super) const TOUCH: u8 = 5;
    pub(super) const LATEST: u8 = 6;
    pub(super) const JOURNAL: u8 = 7;
    pub(super) const MEMO: u8 = 8;
}

fn decode_content(kind: u8, bytes: &[u8]) -> Option<FrameContent> {
    Some(match kind {
        kind::REPLY => FrameContent::Reply(postcard::take_from_bytes(bytes).ok()?.0),
        kind::PARSE_RESULT => {
            let status: EntryStatus = postcard::from_bytes(bytes).ok()?;
            FrameContent::ParseResult(Some(status).filter(EntryStatus::is_parsed)?)
        }
        kind::FAILURE => {
            let (class, message, summary) = postcard::take_from_bytes(bytes).ok()?.0;
            FrameContent::Failure {
                summary,
                class,
                message,
            }
        }
        kind::TEXT => FrameContent::Text,
        kind::MEMO => FrameContent::Memo,
        kind::TOUCH => {
            let (day, keys) = postcard::from_bytes(bytes).ok()?;
            FrameContent::Touch { day, keys }
        }
        kind::LATEST => FrameContent::Latest(postcard::from_bytes(bytes).ok()?),
        kind::JOURNAL => {
            let (nonce, step) = postcard::from_bytes(bytes).ok()?;
            FrameContent::Journal(nonce, step)
        }
        _ => FrameContent::Unknown,
    })
}

/// Encodes the output of an action.
pub(crate) fn reply(
    key: ActionKey,
    header: &EntryHeader,
    body: &EncodedBody,
) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_stdvec(header)?;
    Ok(assemble(kind::REPLY, key.0, body, &note))
}

/// Encodes a failure. Its body is empty, or says what failed, for another cache.
pub(crate) fn failure(
    key: ActionKey,
    header: &EntryHeader,
    (class, message): (&str, &str),
    body: &EncodedBody,
) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_stdvec(&(clip(class), clip(message), header))?;
    Ok(assemble(kind::FAILURE, key.0, body, &note))
}

/// Encodes the result of parsing the body `raw` of `key`.
pub(crate) fn parse_result(
    key: ActionKey,
    raw: Digest,
    result: &EntryStatus,
) -> Result<Vec<u8>, postcard::Error> {
    let body = EncodedBody {
        digest: raw,
        ..EncodedBody::default()
    };
    let note = postcard::to_stdvec(result)?;
    Ok(assemble(kind::PARSE_RESULT, key.0, &body, &note))
}

pub(crate) fn text(digest: Digest, body: &EncodedBody) -> Vec<u8> {
    assemble(kind::TEXT, digest, body, &[])
}

pub(crate) fn memo(name: Digest, body: &EncodedBody) -> Vec<u8> {
    assemble(kind::MEMO, name, body, &[])
}

pub(crate) fn touch(day: Day, keys: &[KeyPrefix]) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_stdvec(&(day, keys))?;
    let (key, body) = (Digest::default(), EncodedBody::default());
    Ok(assemble(kind::TOUCH, key, &body, &note))
}

pub(crate) fn latest(place: &Digest, key: ActionKey) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_stdvec(place)?;
    Ok(assemble(
        kind::LATEST,
        key.0,
        &EncodedBody::default(),
        &note,
    ))
}

pub(crate) fn journal(
    place: &(BatchNonce, BatchStep),
    body: &EncodedBody,
) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(
        kind::JOURNAL,
        Digest::default(),
        body,
        &postcard::to_stdvec(place)?,
    ))
}

fn assemble(kind: u8, key: Digest, body: &EncodedBody, note: &[u8]) -> Vec<u8> {
    let note = &*redact_bytes(note);
    let mut frame = Vec::with_capacity(FIXED + note.len() + CRC + body.bytes.len());
    frame.extend(MAGIC);
    frame.extend([kind, body.codec as u8, 0, 0]);
    for number in [
        note.len() as u32,
        body.bytes.len() as u32,
        body.raw_len,
        crc32fast::hash(&body.bytes),
    ] {
        frame.extend(number.to_le_bytes());
    }
    frame.extend(key.0);
    frame.extend(body.digest.0);
    frame.extend(note);
    frame.extend(crc32fast::hash(&frame).to_le_bytes());
    frame.extend(&body.bytes);
    frame
}

/// Identifies a batch before the vendor has named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchNonce([u8; 12]);

impl BatchNonce {
    /// A nonce that no other batch has, made from the time, this process and the actions.
    pub fn new(created: u64, keys: impl Iterator<Item = ActionKey>) -> BatchNonce {
        let mut builder = DigestBuilder::new("compeval batch v1");
        builder.field("created", created.to_le_bytes());
        builder.field("process", std::process::id().to_le_bytes());
        builder.field("time", base::clock::now().as_nanosecond().to_le_bytes());
        for key in keys {
            builder.field("key", key.0.0);
        }
        let Digest([a, b, c, d, e, f, g, h, i, j, k, l, ..]) = builder.finish();
        BatchNonce([a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

impl fmt::Display for BatchNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for BatchNonce {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<BatchNonce, &'static str> {
        const EXPECTED: &str = "expected the 16 letters and digits that `batch ls` shows";
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| EXPECTED)?;
        bytes.try_into().map(BatchNonce).map_err(|_| EXPECTED)
    }
}

/// A step of a batch that is recorded. The content of the record is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BatchStep {
    /// Before the call that creates a batch.
    Intent,
    /// The vendor has confirmed it.
    Submitted,
    /// All of its results are stored. Without this step, a batch is open.
    Closed,
}
