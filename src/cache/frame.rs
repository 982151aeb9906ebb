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
//! bytes. Entries and results of parsing are packed since format 3 (`packed`); other kinds have version 1.

use super::entry::{
    Day, EntryMeta, EntryStatus, EntrySummary, FrameLocation, ParseResult, ParsedBody, Record, RemovalReason, clip,
};
use super::journal_steps::{BatchNonce, JournalStep};
use super::lookup::ModelNames;
use super::shared_fields::NewFields;
use crate::action::{ActionKey, Digest};
use crate::redaction::redact_bytes;

/// Bytes of a header of version 1 before its note.
pub(super) const FIXED: usize = 88;
/// The least bytes of a packed frame.
pub(super) const LEAST: usize = 11;
/// The first bytes of every frame of version 1; after damage, a scan searches for them.
pub(super) const MAGIC: [u8; 4] = [0xC5, b'f', b'r', 0x01];
/// The first bytes of every packed frame.
pub(super) const PACKED: [u8; 4] = [0xC5, b'f', b'r', 0x02];
pub(super) const CRC: usize = 4;
/// In place of the codec of a packed frame without key and body.
const BARE: u8 = 0x80;
/// A longer note is damage.
const MAX_NOTE: usize = 64 << 20;
/// The largest body, compressed or not.
pub(super) const MAX_BODY: usize = 512 << 20;

/// The beginning of a pack: its number, and how often it was rewritten.
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
            return Err("the header of the pack does not match its checksum");
        }
        if bytes[7] != PackHeader::VERSION {
            return Err("the pack has a version that this program does not support");
        }
        Ok(PackHeader { id: number(8), generation: number(12) })
    }
}

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Plain = 0,
    Zstd = 1,
}

/// A body as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncodedBody {
    pub(super) codec: Codec,
    pub(super) digest: Digest,
    pub(super) raw_len: u32,
    pub(super) bytes: Vec<u8>,
}

/// The kinds of frame, each with what its note holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FrameContent {
    /// The body is the output of an action.
    Reply(EntrySummary),
    /// The result of parsing the body with the frame's digest.
    ParseResult(ParseResult),
    /// Results of parsing the bodies of several entries.
    ParseResults(Vec<ParsedBody>),
    /// What entries of the pack share.
    Fields(NewFields),
    /// An action failed permanently; there is no body.
    Failure {
        summary: EntrySummary,
        class: String,
        message: String,
    },
    /// The body is a text; the key is the digest it is stored under.
    Text,
    Counts(Vec<(Digest, u64)>),
    /// Entries used on a day.
    Touch {
        day: Day,
        keys: Vec<KeyPrefix>,
    },
    /// Removed entries, each with its coordinate if it was the latest there.
    Remove {
        why: RemovalReason,
        keys: Vec<(ActionKey, Option<Digest>)>,
    },
    /// Actions that are in use again at their coordinates, after others were.
    Latest(Vec<(Digest, ActionKey)>),
    /// The body is a record of a batch.
    Journal(BatchNonce, JournalStep),
    /// A kind of a newer version: skipped.
    Unknown,
}

/// The first bytes of a key: enough to record its last use under.
pub(super) type KeyPrefix = [u8; 8];

pub(super) fn key_prefix(key: &ActionKey) -> KeyPrefix {
    prefix_of(&key.0)
}

/// The first bytes of a digest.
pub(super) fn prefix_of(digest: &Digest) -> KeyPrefix {
    let [a, b, c, d, e, f, g, h, ..] = digest.0;
    [a, b, c, d, e, f, g, h]
}

/// The header of a frame, decoded and verified.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FrameHeader {
    pub(super) key: Digest,
    pub(super) digest: Digest,
    pub(super) codec: Codec,
    pub(super) raw_len: u32,
    pub(super) body_crc: u32,
    pub(super) body_len: u32,
    pub(super) head_len: u32,
    pub(super) content: FrameContent,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameHeaderError {
    /// This many bytes are needed in all.
    Short(usize),
    /// They differ from what was written.
    Damaged(&'static str),
}

impl FrameHeader {
    /// The location of the frame if it begins at `offset` of a pack.
    pub(super) fn location(&self, pack: u32, offset: u64) -> FrameLocation {
        FrameLocation { pack, offset, head: self.head_len, body: self.body_len }
    }

    /// Decodes the header at the beginning of `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Result<FrameHeader, FrameHeaderError> {
        if bytes.starts_with(&PACKED) { FrameHeader::decode_packed(bytes) } else { FrameHeader::decode_fixed(bytes) }
    }

    fn decode_packed(bytes: &[u8]) -> Result<FrameHeader, FrameHeaderError> {
        let PackedStart { note_at, note_len, body_len, raw_len, body_crc, codec, key, digest } =
            PackedStart::decode(bytes)?;
        let head_len = note_at + note_len + CRC;
        let head = bytes.get(..head_len).ok_or(FrameHeaderError::Short(head_len))?;
        let (covered, crc) = head.split_last_chunk::<CRC>().ok_or(FrameHeaderError::Short(head_len))?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(FrameHeaderError::Damaged("its header does not match its checksum"));
        }
        let content = covered.get(4).and_then(|kind| decode_content(*kind, covered.get(note_at..)?));
        let content = content.ok_or(FrameHeaderError::Damaged("its header cannot be read"))?;
        let head_len = u32::try_from(head_len).map_err(|_| IMPOSSIBLE)?;
        Ok(FrameHeader { key, digest, codec, raw_len, body_crc, body_len, head_len, content })
    }

    fn decode_fixed(bytes: &[u8]) -> Result<FrameHeader, FrameHeaderError> {
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(FrameHeaderError::Short(FIXED))?;
        let field = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let digest = |at: usize| {
            let mut bytes = [0; 32];
            bytes.copy_from_slice(&fixed[at..at + 32]);
            Digest(bytes)
        };
        if fixed[..4] != MAGIC {
            return Err(FrameHeaderError::Damaged("there is no frame"));
        }
        let (kind, codec) = (fixed[4], fixed[5]);
        let [note_len, body_len, raw_len, body_crc] = [8, 12, 16, 20].map(field);
        let (key, digest) = (digest(24), digest(56));
        let note_len = note_len as usize;
        if note_len > MAX_NOTE || body_len as usize > MAX_BODY || raw_len as usize > MAX_BODY {
            return Err(IMPOSSIBLE);
        }
        let head_len = FIXED + note_len + CRC;
        let head = bytes.get(..head_len).ok_or(FrameHeaderError::Short(head_len))?;
        let (covered, crc) = head.split_last_chunk::<CRC>().ok_or(FrameHeaderError::Short(head_len))?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(FrameHeaderError::Damaged("its header does not match its checksum"));
        }
        let codec = match codec {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            _ => return Err(FrameHeaderError::Damaged("its compression is unknown")),
        };
        let content =
            decode_content(kind, &covered[FIXED..]).ok_or(FrameHeaderError::Damaged("its header cannot be read"))?;
        let head_len = u32::try_from(head_len).map_err(|_| IMPOSSIBLE)?;
        Ok(FrameHeader { key, digest, codec, raw_len, body_crc, body_len, head_len, content })
    }

    /// Decodes the meta of a reply or failure of version 1 from the bytes of its header; `None` for other kinds.
    pub(super) fn meta(head: &[u8]) -> Option<EntryMeta> {
        if !head.starts_with(&MAGIC) {
            return None;
        }
        let note = head.get(FIXED..head.len().checked_sub(CRC)?)?;
        match *head.get(4)? {
            kind::REPLY => {
                let (summary, details) = postcard::take_from_bytes(note).ok()?;
                EntryMeta::decode(summary, details).ok()
            }
            kind::FAILURE => {
                let ((summary, _, _), details): ((EntrySummary, String, String), _) =
                    postcard::take_from_bytes(note).ok()?;
                EntryMeta::decode(summary, details).ok()
            }
            _ => None,
        }
    }

    /// Decodes the models of a reply from the bytes of its header; empty for other kinds.
    pub(super) fn models(&self, head: &[u8]) -> Option<ModelNames> {
        let FrameContent::Reply(_) = self.content else { return Some(ModelNames::default()) };
        let (_, details): (EntrySummary, _) = postcard::take_from_bytes(note(head)?).ok()?;
        let (answered, requested) = EntryMeta::decode_models(details)?;
        Some(ModelNames { requested, answered })
    }

    /// The record of a reply or failure; `None` for other kinds.
    pub(super) fn record(&self, location: FrameLocation) -> Option<Record> {
        let (summary, status) = match &self.content {
            FrameContent::Reply(summary) => (summary, EntryStatus::Unparsed),
            FrameContent::Failure { summary, class, message } => {
                let (class, message) = (class.as_str().into(), message.as_str().into());
                (summary, EntryStatus::Failed { class, message })
            }
            _ => return None,
        };
        Some(Record {
            key: ActionKey(self.key),
            location,
            raw: self.digest,
            raw_len: self.raw_len,
            status,
            created: summary.created,
            stage: summary.stage,
            usage: summary.usage,
            cost: summary.cost,
            latency_ms: summary.latency_ms,
            dialect: summary.dialect,
        })
    }
}

const IMPOSSIBLE: FrameHeaderError = FrameHeaderError::Damaged("its header has impossible lengths");

/// What is before the note of a packed frame.
struct PackedStart {
    note_at: usize,
    note_len: usize,
    body_len: u32,
    raw_len: u32,
    body_crc: u32,
    codec: Codec,
    key: Digest,
    digest: Digest,
}

impl PackedStart {
    fn decode(bytes: &[u8]) -> Result<PackedStart, FrameHeaderError> {
        let short = || FrameHeaderError::Short((bytes.len() + 1).max(LEAST));
        let codec = *bytes.get(5).ok_or_else(short)?;
        let mut rest = bytes.get(6..).unwrap_or_default();
        let note_len = take_number(&mut rest, short)? as usize;
        let none = Digest([0; 32]);
        let (mut lengths, mut body_crc, mut key, mut digest) = ((0, 0), 0, none, none);
        let codec = match codec {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            BARE => Codec::Plain,
            _ => return Err(FrameHeaderError::Damaged("its compression is unknown")),
        };
        if bytes.get(5) != Some(&BARE) {
            lengths = (take_number(&mut rest, short)?, take_number(&mut rest, short)?);
            body_crc = u32::from_le_bytes(take_array(&mut rest, short)?);
            (key, digest) = (Digest(take_array(&mut rest, short)?), Digest(take_array(&mut rest, short)?));
        }
        let (body_len, raw_len) = lengths;
        if note_len > MAX_NOTE || body_len as usize > MAX_BODY || raw_len as usize > MAX_BODY {
            return Err(IMPOSSIBLE);
        }
        let note_at = bytes.len() - rest.len();
        Ok(PackedStart { note_at, note_len, body_len, raw_len, body_crc, codec, key, digest })
    }
}

fn take_number(rest: &mut &[u8], short: impl Fn() -> FrameHeaderError) -> Result<u32, FrameHeaderError> {
    match postcard::take_from_bytes(rest) {
        Ok((number, after)) => {
            *rest = after;
            Ok(number)
        }
        Err(postcard::Error::DeserializeUnexpectedEnd) => Err(short()),
        Err(_) => Err(IMPOSSIBLE),
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

/// What follows the start of a header of either version.
pub(super) fn note(head: &[u8]) -> Option<&[u8]> {
    if head.starts_with(&PACKED) { head.get(PackedStart::decode(head).ok()?.note_at..) } else { head.get(FIXED..) }
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
}

fn decode_content(kind: u8, bytes: &[u8]) -> Option<FrameContent> {
    Some(match kind {
        kind::REPLY => FrameContent::Reply(postcard::take_from_bytes(bytes).ok()?.0),
        kind::PARSE_RESULT => FrameContent::ParseResult(postcard::from_bytes(bytes).ok()?),
        kind::FAILURE => {
            let (summary, class, message) = postcard::take_from_bytes(bytes).ok()?.0;
            FrameContent::Failure { summary, class, message }
        }
        kind::TEXT => FrameContent::Text,
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
pub(super) fn reply(key: ActionKey, meta: &EntryMeta, body: &EncodedBody) -> Result<Vec<u8>, postcard::Error> {
    let mut note = postcard::to_stdvec(&meta.summary())?;
    note.extend(meta.encode_details()?);
    Ok(assemble(kind::REPLY, key.0, body, &note))
}

pub(super) fn failure(
    key: ActionKey,
    meta: &EntryMeta,
    class: &str,
    message: &str,
) -> Result<Vec<u8>, postcard::Error> {
    let mut note = postcard::to_stdvec(&(meta.summary(), clip(class), clip(message)))?;
    note.extend(meta.encode_details()?);
    Ok(assemble(kind::FAILURE, key.0, &EncodedBody::empty(), &note))
}

/// Encodes the result of parsing the body `raw` of `key`.
pub(super) fn parse_result(key: ActionKey, raw: Digest, reading: &ParseResult) -> Result<Vec<u8>, postcard::Error> {
    let note = match reading {
        ParseResult::Output { .. } => postcard::to_stdvec(reading)?,
        ParseResult::Malformed { parser, fault } => {
            postcard::to_stdvec(&ParseResult::Malformed { parser: *parser, fault: clip(fault).to_owned() })?
        }
    };
    Ok(assemble(kind::PARSE_RESULT, key.0, &EncodedBody { digest: raw, ..EncodedBody::empty() }, &note))
}

pub(super) fn text(digest: Digest, body: &EncodedBody) -> Vec<u8> {
    assemble(kind::TEXT, digest, body, &[])
}

pub(super) fn counts(counts: &[(Digest, u64)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::COUNTS, Digest([0; 32]), &EncodedBody::empty(), &postcard::to_stdvec(counts)?))
}

pub(super) fn touch(day: Day, keys: &[KeyPrefix]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::TOUCH, Digest([0; 32]), &EncodedBody::empty(), &postcard::to_stdvec(&(day, keys))?))
}

pub(super) fn remove(why: RemovalReason, keys: &[(ActionKey, Option<Digest>)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::REMOVE, Digest([0; 32]), &EncodedBody::empty(), &postcard::to_stdvec(&(why, keys))?))
}

pub(super) fn latest(places: &[(Digest, ActionKey)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::LATEST, Digest([0; 32]), &EncodedBody::empty(), &postcard::to_stdvec(places)?))
}

pub(super) fn journal(place: &(BatchNonce, JournalStep), body: &EncodedBody) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::JOURNAL, Digest([0; 32]), body, &postcard::to_stdvec(place)?))
}

/// Encodes what entries of a pack share.
pub(super) fn fields(new: &NewFields) -> Result<Vec<u8>, postcard::Error> {
    bare(kind::FIELDS, &postcard::to_stdvec(new)?)
}

/// Encodes results of parsing.
pub(super) fn parse_results(results: &[ParsedBody]) -> Result<Vec<u8>, postcard::Error> {
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

/// A body as it is in a frame that is packed again. Its checksum stays, so that damage is still found.
pub(super) struct StoredBody<'b> {
    pub(super) digest: Digest,
    pub(super) codec: Codec,
    pub(super) raw_len: u32,
    pub(super) crc: u32,
    pub(super) bytes: &'b [u8],
}

/// Encodes a packed entry. What is in its note was redacted when it was first encoded.
pub(super) fn packed_entry(
    key: Digest,
    is_failure: bool,
    body: StoredBody<'_>,
    note: &[u8],
) -> Result<Vec<u8>, postcard::Error> {
    let mut frame = PACKED.to_vec();
    frame.extend([if is_failure { kind::FAILURE } else { kind::REPLY }, body.codec as u8]);
    frame = postcard::to_extend(&(note.len() as u32, body.bytes.len() as u32, body.raw_len), frame)?;
    frame.extend(body.crc.to_le_bytes());
    frame.extend(key.0);
    frame.extend(body.digest.0);
    frame.extend(note);
    frame.extend(crc32fast::hash(&frame).to_le_bytes());
    frame.extend(body.bytes);
    Ok(frame)
}

impl EncodedBody {
    pub(super) fn empty() -> EncodedBody {
        EncodedBody { codec: Codec::Plain, digest: Digest([0; 32]), raw_len: 0, bytes: Vec::new() }
    }
}

fn assemble(kind: u8, key: Digest, body: &EncodedBody, note: &[u8]) -> Vec<u8> {
    let note = &*redact_bytes(note);
    let mut frame = Vec::with_capacity(FIXED + note.len() + CRC + body.bytes.len());
    frame.extend(MAGIC);
    frame.extend([kind, body.codec as u8, 0, 0]);
    for number in [note.len() as u32, body.bytes.len() as u32, body.raw_len, crc32fast::hash(&body.bytes)] {
        frame.extend(number.to_le_bytes());
    }
    frame.extend(key.0);
    frame.extend(body.digest.0);
    frame.extend(note);
    frame.extend(crc32fast::hash(&frame).to_le_bytes());
    frame.extend(&body.bytes);
    frame
}
