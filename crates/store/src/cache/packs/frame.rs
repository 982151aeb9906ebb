//! The format of a pack: a header and frames. The frames of a pack describe it completely, so that everything else can be
//! rebuilt from the packs.
//!
//! ```text
//! version 1:  magic 4 | kind 1 | codec 1 | zero 2 | note_len 4 | body_len 4 | raw_len 4 | body_crc 4 | key 32 | digest 32 | note | crc 4 | body
//! packed:     magic 4 | kind 1 | codec 1 | note_len | body_len | raw_len | body_crc 4 | key 32 | digest 32 | note | crc 4 | body
//!             magic 4 | kind 1 | 0x80 | note_len | note | crc 4
//! ```
//! Numbers are little-endian, those without a length varints. `crc` covers everything before it, `body_crc` the body as
//! stored, and `digest` is that of the uncompressed body. A scan reads headers only and skips bodies. The tests pin the
//! bytes. In a pack, entries and parse results are packed (`packed`); other kinds have version 1.

use super::journal_steps::{BatchNonce, BatchStep};
use super::provenance::EncodedProvenance;
use super::shared_fields::NewFields;
use crate::cache::entry::{
    Day, EntryHeader, EntryStatus, EntrySummary, FrameLocation, ModelNames, ParseResult,
    ParsedBody, Record, RemovalReason, clip, prefix_of,
};
use crate::digest::{ActionKey, Digest};
use base::redaction::redact_bytes;

/// Bytes of a header of version 1 before its note.
pub(crate) const FIXED: usize = 88;
/// The least bytes of a packed frame.
pub(super) const LEAST: usize = 11;
/// The first bytes of every frame of version 1; after damage, a scan searches for them.
pub(crate) const MAGIC: [u8; 4] = [0xC5, b'f', b'r', 0x01];
/// The first bytes of every packed frame.
pub(crate) const PACKED: [u8; 4] = [0xC5, b'f', b'r', 0x02];
const CRC: usize = 4;
/// Stands in place of the codec in a packed frame without key and body.
const BARE: u8 = 0x80;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedBody {
    pub codec: Codec,
    pub digest: Digest,
    pub raw_len: u32,
    pub bytes: Vec<u8>,
}

impl EncodedBody {
    pub(crate) fn empty() -> EncodedBody {
        EncodedBody {
            codec: Codec::Plain,
            digest: Digest([0; 32]),
            raw_len: 0,
            bytes: Vec::new(),
        }
    }
}

/// The kinds of frame, each with what its note holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FrameContent {
    /// The body is the output of an action.
    Reply(EntrySummary),
    /// The result of parsing the body with the frame's digest.
    ParseResult(ParseResult),
    /// The results of parsing the bodies of several entries.
    ParseResults(Vec<ParsedBody>),
    /// Fields that entries of the pack share.
    Fields(NewFields),
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
    /// Token counts, by the digests of their texts.
    Counts(Vec<(Digest, u64)>),
    /// Entries used on a day.
    Touch { day: Day, keys: Vec<KeyPrefix> },
    /// Removed entries, each with its place if it was the latest there.
    Remove {
        why: RemovalReason,
        keys: Vec<(ActionKey, Option<Digest>)>,
    },
    /// Actions that are in use again at their places, after others were.
    Latest(Vec<(Digest, ActionKey)>),
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

    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, FrameContent::Failure { .. })
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
    note_at: usize,
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
        let FrameStart {
            note_at,
            note_len,
            body_len,
            raw_len,
            body_crc,
            codec,
            key,
            digest,
        } = FrameStart::decode(bytes)?;
        let head_len = note_at + note_len + CRC;
        let head = bytes
            .get(..head_len)
            .ok_or(FrameHeaderError::Short(head_len))?;
        let (covered, crc) = head
            .split_last_chunk::<CRC>()
            .ok_or(FrameHeaderError::Short(head_len))?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(FrameHeaderError::Damaged(
                "its header does not match its checksum",
            ));
        }
        let codec = codec?;
        let content = covered
            .get(4)
            .and_then(|kind| decode_content(*kind, covered.get(note_at..)?));
        let content = content.ok_or(FrameHeaderError::Damaged("its header cannot be read"))?;
        let head_len = u32::try_from(head_len).map_err(|_| impossible())?;
        Ok(FrameHeader {
            key,
            digest,
            codec,
            raw_len,
            body_crc,
            body_len,
            head_len,
            note_at,
            content,
        })
    }

    /// What follows the summary and the failure in the note of an entry; `None` for other kinds. `bytes` begins with
    /// the header.
    pub(crate) fn details<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let note = bytes.get(self.note_at..(self.head_len as usize).checked_sub(CRC)?)?;
        match self.content {
            FrameContent::Reply(_) => Some(postcard::take_from_bytes::<EntrySummary>(note).ok()?.1),
            FrameContent::Failure { .. } => Some(
                postcard::take_from_bytes::<(EntrySummary, &str, &str)>(note)
                    .ok()?
                    .1,
            ),
            _ => None,
        }
    }

    /// Decodes the models of a reply from the bytes of its header; empty for other kinds.
    pub(crate) fn models(&self, head: &[u8]) -> Option<ModelNames> {
        let FrameContent::Reply(_) = self.content else {
            return Some(ModelNames::default());
        };
        Some(postcard::take_from_bytes(self.details(head)?).ok()?.0)
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
            created: summary.created,
            kind: summary.kind,
            usage: summary.usage,
            cost: summary.cost,
            latency_ms: summary.latency_ms,
            format: summary.format,
        })
    }
}

fn impossible() -> FrameHeaderError {
    FrameHeaderError::Damaged("its header has impossible lengths")
}

/// The part of a frame's header before the note.
struct FrameStart {
    note_at: usize,
    note_len: usize,
    body_len: u32,
    raw_len: u32,
    body_crc: u32,
    /// Its fault is reported only if the checksum matches; otherwise the whole header is damaged.
    codec: Result<Codec, FrameHeaderError>,
    key: Digest,
    digest: Digest,
}

impl FrameStart {
    fn decode(bytes: &[u8]) -> Result<FrameStart, FrameHeaderError> {
        let start = if bytes.starts_with(&PACKED) {
            FrameStart::packed(bytes)
        } else {
            FrameStart::fixed(bytes)
        }?;
        let is_possible =
            start.note_len <= MAX_NOTE && start.body_len.max(start.raw_len) as usize <= MAX_BODY;
        if is_possible {
            Ok(start)
        } else {
            Err(impossible())
        }
    }

    fn packed(bytes: &[u8]) -> Result<FrameStart, FrameHeaderError> {
        let short = || FrameHeaderError::Short((bytes.len() + 1).max(LEAST));
        let codec = *bytes.get(5).ok_or_else(short)?;
        let mut rest = bytes.get(6..).unwrap_or_default();
        let note_len = take_number(&mut rest, short)? as usize;
        let none = Digest([0; 32]);
        let mut start = FrameStart {
            note_at: 0,
            note_len,
            body_len: 0,
            raw_len: 0,
            body_crc: 0,
            codec: Ok(Codec::Plain),
            key: none,
            digest: none,
        };
        if codec != BARE {
            start.codec = Ok(Codec::decode(codec)?);
            start.body_len = take_number(&mut rest, short)?;
            start.raw_len = take_number(&mut rest, short)?;
            start.body_crc = u32::from_le_bytes(take_array(&mut rest, short)?);
            start.key = Digest(take_array(&mut rest, short)?);
            start.digest = Digest(take_array(&mut rest, short)?);
        }
        start.note_at = bytes.len() - rest.len();
        Ok(start)
    }

    fn fixed(bytes: &[u8]) -> Result<FrameStart, FrameHeaderError> {
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(FrameHeaderError::Short(FIXED))?;
        if fixed[..4] != MAGIC {
            return Err(FrameHeaderError::Damaged("there is no frame"));
        }
        let [note_len, body_len, raw_len, body_crc] = [8, 12, 16, 20].map(|at| u32_at(fixed, at));
        let [key, digest] = [24, 56].map(|at| {
            let mut bytes = [0; 32];
            bytes.copy_from_slice(&fixed[at..at + 32]);
            Digest(bytes)
        });
        let (note_len, codec) = (note_len as usize, Codec::decode(fixed[5]));
        Ok(FrameStart {
            note_at: FIXED,
            note_len,
            body_len,
            raw_len,
            body_crc,
            codec,
            key,
            digest,
        })
    }
}

fn take_number(
    rest: &mut &[u8],
    short: impl Fn() -> FrameHeaderError,
) -> Result<u32, FrameHeaderError> {
    match postcard::take_from_bytes(rest) {
        Ok((number, after)) => {
            *rest = after;
            Ok(number)
        }
        Err(postcard::Error::DeserializeUnexpectedEnd) => Err(short()),
        Err(_) => Err(impossible()),
    }
}

fn take_array<const N: usize>(
    rest: &mut &[u8],
    short: impl Fn() -> FrameHeaderError,
) -> Result<[u8; N], FrameHeaderError> {
    let (array, after) = rest.split_first_chunk().ok_or_else(short)?;
    *rest = after;
    Ok(*array)
}

mod kind {
    pub(super) const REPLY: u8 = 1;
    pub(super) const PARSE_RESULT: u8 = 2;
    pub(super) const FAILURE: u8 = 3;
    pub(super) const TEXT: u8 = 4;
    pub(super) const COUNTS: u8 = 5;
    pub(super) const TOUCH: u8 = 6;
    pub(super) const REMOVE: u8 = 7;
    pub(super) const LATEST: u8 = 8;
    pub(super) const JOURNAL: u8 = 9;
    pub(super) const FIELDS: u8 = 10;
    pub(super) const PARSE_RESULTS: u8 = 11;
    pub(super) const MEMO: u8 = 12;
}

fn decode_content(kind: u8, bytes: &[u8]) -> Option<FrameContent> {
    Some(match kind {
        kind::REPLY => FrameContent::Reply(postcard::take_from_bytes(bytes).ok()?.0),
        kind::PARSE_RESULT => FrameContent::ParseResult(postcard::from_bytes(bytes).ok()?),
        kind::FAILURE => {
            let (summary, class, message) = postcard::take_from_bytes(bytes).ok()?.0;
            FrameContent::Failure {
                summary,
                class,
                message,
            }
        }
        kind::TEXT => FrameContent::Text,
        kind::MEMO => FrameContent::Memo,
        kind::COUNTS => FrameContent::Counts(postcard::from_bytes(bytes).ok()?),
        kind::TOUCH => {
            let (day, keys) = postcard::from_bytes(bytes).ok()?;
            FrameContent::Touch { day, keys }
        }
        kind::REMOVE => {
            let (why, keys) = postcard::from_bytes(bytes).ok()?;
            FrameContent::Remove { why, keys }
        }
        kind::LATEST => FrameContent::Latest(postcard::from_bytes(bytes).ok()?),
        kind::FIELDS => FrameContent::Fields(postcard::from_bytes(bytes).ok()?),
        kind::PARSE_RESULTS => FrameContent::ParseResults(postcard::from_bytes(bytes).ok()?),
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
    let note = postcard::to_stdvec(&header.summary())?;
    Ok(assemble(
        kind::REPLY,
        key.0,
        body,
        &append_details(note, header)?,
    ))
}

pub(crate) fn failure(
    key: ActionKey,
    header: &EntryHeader,
    class: &str,
    message: &str,
) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_stdvec(&(header.summary(), clip(class), clip(message)))?;
    Ok(assemble(
        kind::FAILURE,
        key.0,
        &EncodedBody::empty(),
        &append_details(note, header)?,
    ))
}

/// Encodes a failure for another cache; the body says what failed.
pub(crate) fn packed_failure(
    key: ActionKey,
    header: &EntryHeader,
    body: &EncodedBody,
) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_stdvec(&(header.summary(), "", ""))?;
    Ok(assemble(
        kind::FAILURE,
        key.0,
        body,
        &append_details(note, header)?,
    ))
}

/// Appends the models of an entry and all that it was made from.
fn append_details(note: Vec<u8>, header: &EntryHeader) -> Result<Vec<u8>, postcard::Error> {
    let note = postcard::to_extend(&header.models, note)?;
    EncodedProvenance::new(header)?.encode(note, |_| None)
}

/// Encodes the result of parsing the body `raw` of `key`.
pub(crate) fn parse_result(
    key: ActionKey,
    raw: Digest,
    result: &ParseResult,
) -> Result<Vec<u8>, postcard::Error> {
    let note = match result {
        ParseResult::Output { .. } => postcard::to_stdvec(result)?,
        ParseResult::Malformed { parser, fault } => postcard::to_stdvec(&ParseResult::Malformed {
            parser: *parser,
            fault: clip(fault).to_owned(),
        })?,
    };
    Ok(assemble(
        kind::PARSE_RESULT,
        key.0,
        &EncodedBody {
            digest: raw,
            ..EncodedBody::empty()
        },
        &note,
    ))
}

pub(crate) fn text(digest: Digest, body: &EncodedBody) -> Vec<u8> {
    assemble(kind::TEXT, digest, body, &[])
}

pub(crate) fn memo(name: Digest, body: &EncodedBody) -> Vec<u8> {
    assemble(kind::MEMO, name, body, &[])
}

pub(crate) fn counts(counts: &[(Digest, u64)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(
        kind::COUNTS,
        Digest([0; 32]),
        &EncodedBody::empty(),
        &postcard::to_stdvec(counts)?,
    ))
}

pub(crate) fn touch(day: Day, keys: &[KeyPrefix]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(
        kind::TOUCH,
        Digest([0; 32]),
        &EncodedBody::empty(),
        &postcard::to_stdvec(&(day, keys))?,
    ))
}

pub(crate) fn remove(
    why: RemovalReason,
    keys: &[(ActionKey, Option<Digest>)],
) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(
        kind::REMOVE,
        Digest([0; 32]),
        &EncodedBody::empty(),
        &postcard::to_stdvec(&(why, keys))?,
    ))
}

pub(crate) fn latest(places: &[(Digest, ActionKey)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(
        kind::LATEST,
        Digest([0; 32]),
        &EncodedBody::empty(),
        &postcard::to_stdvec(places)?,
    ))
}

pub(crate) fn journal(
    place: &(BatchNonce, BatchStep),
    body: &EncodedBody,
) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(
        kind::JOURNAL,
        Digest([0; 32]),
        body,
        &postcard::to_stdvec(place)?,
    ))
}

/// Encodes fields that entries of a pack share.
pub(crate) fn fields(new: &NewFields) -> Result<Vec<u8>, postcard::Error> {
    bare(kind::FIELDS, &postcard::to_stdvec(new)?)
}

/// Encodes the parse results of several entries.
pub(crate) fn parse_results(results: &[ParsedBody]) -> Result<Vec<u8>, postcard::Error> {
    bare(kind::PARSE_RESULTS, &postcard::to_stdvec(results)?)
}

/// A packed frame without key and body.
fn bare(kind: u8, note: &[u8]) -> Result<Vec<u8>, postcard::Error> {
    let mut frame = PACKED.to_vec();
    frame.extend([kind, BARE]);
    frame = postcard::to_extend(&(note.len() as u32), frame)?;
    frame.extend(note);
    frame.extend(crc32fast::hash(&frame).to_le_bytes());
    Ok(frame)
}

/// Encodes a packed entry with the header of the frame that it is from. The checksum of the body is kept, so that a
/// damaged body stays recognizable. The note was redacted when it was first encoded.
pub(super) fn packed_entry(
    header: &FrameHeader,
    body: &[u8],
    note: &[u8],
) -> Result<Vec<u8>, postcard::Error> {
    let kind = if header.content.is_failure() {
        kind::FAILURE
    } else {
        kind::REPLY
    };
    let mut frame = PACKED.to_vec();
    frame.extend([kind, header.codec as u8]);
    frame = postcard::to_extend(
        &(note.len() as u32, body.len() as u32, header.raw_len),
        frame,
    )?;
    frame.extend(header.body_crc.to_le_bytes());
    frame.extend(header.key.0);
    frame.extend(header.digest.0);
    frame.extend(note);
    frame.extend(crc32fast::hash(&frame).to_le_bytes());
    frame.extend(body);
    Ok(frame)
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
