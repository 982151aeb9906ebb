//! Frames: what packs are made of. Each says whole what it is, so that packs alone suffice to rebuild everything.
//!
//! ```text
//! magic 4 | kind 1 | codec 1 | zero 2 | note_len 4 | body_len 4 | raw_len 4 | body_crc 4 | key 32 | digest 32 | note | crc 4 | body
//! ```
//! Numbers are little-endian. `crc` covers everything before it, `body_crc` the body as stored, `digest` the body as
//! it was given. A reader of headers needs no body.

use super::meta::{Brief, Day, Meta, Reading, Removal};
use super::record::{Location, Record, Status, clip};
use crate::action::{ActionKey, Digest};

/// Bytes of a header before its note.
pub(super) const FIXED: usize = 88;
/// Begins every frame; also what a scan looks for behind a damaged stretch.
pub(super) const MAGIC: [u8; 4] = [0xC5, b'f', b'r', 0x01];
const CRC: usize = 4;
/// No frame has a longer note: a larger number is damage.
const MAX_NOTE: usize = 64 << 20;
/// No body is larger, compressed or not.
pub(super) const MAX_BODY: usize = 512 << 20;

/// How a body is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As it is.
    Plain = 0,
    /// Compressed by zstd.
    Zstd = 1,
}

/// A body ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) codec: Codec,
    pub(super) digest: Digest,
    pub(super) raw_len: u32,
    pub(super) bytes: Vec<u8>,
}

/// What a frame says about its body, or all it says if it has none.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Note {
    /// The body is what came of an action.
    Reply(Brief),
    /// What reading the body of that digest gave.
    Verdict(Reading),
    /// A call failed for good.
    Failure { brief: Brief, class: String, message: String },
    /// The body is a text; the key is the digest it is kept by.
    Text,
    /// Token counts of texts.
    Counts(Vec<(Digest, u64)>),
    /// Entries used on a day, by the heads of their keys.
    Touch { day: Day, keys: Vec<KeyHead> },
    /// Entries that are gone, each with its coordinate if it was the latest there.
    Remove { why: Removal, keys: Vec<(ActionKey, Option<Digest>)> },
    /// Actions that are in use again at their coordinates, where others were made since.
    Latest(Vec<(Digest, ActionKey)>),
    /// A kind this version does not know: passed over.
    Unknown,
}

/// The first bytes of a key: enough to note its last use by.
pub(super) type KeyHead = [u8; 8];

/// The head of a key.
pub(super) fn key_head(key: &ActionKey) -> KeyHead {
    let [a, b, c, d, e, f, g, h, ..] = key.0.0;
    [a, b, c, d, e, f, g, h]
}

/// A frame's header, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) key: Digest,
    pub(super) digest: Digest,
    pub(super) codec: Codec,
    pub(super) raw_len: u32,
    pub(super) body_crc: u32,
    pub(super) body_len: u32,
    pub(super) head_len: u32,
    pub(super) note: Note,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// More bytes are needed, this many in all.
    Short(usize),
    /// They were never written like this.
    Damaged(&'static str),
}

impl Header {
    /// Where the frame lies if it begins at `offset` of a pack.
    pub(super) fn location(&self, pack: u32, offset: u64) -> Location {
        Location { pack, offset, head: self.head_len, body: self.body_len }
    }

    /// Reads the header at the beginning of `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Result<Header, Fault> {
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(Fault::Short(FIXED))?;
        let mut fields = Fields(fixed);
        if fields.take::<4>() != MAGIC {
            return Err(Fault::Damaged("no frame begins here"));
        }
        let [kind, codec, _, _] = fields.take();
        let [note_len, body_len, raw_len, body_crc] = [(); 4].map(|()| u32::from_le_bytes(fields.take()));
        let (key, digest) = (Digest(fields.take()), Digest(fields.take()));
        let note_len = note_len as usize;
        if note_len > MAX_NOTE || body_len as usize > MAX_BODY || raw_len as usize > MAX_BODY {
            return Err(Fault::Damaged("its header has impossible lengths"));
        }
        let head_len = FIXED + note_len + CRC;
        let head = bytes.get(..head_len).ok_or(Fault::Short(head_len))?;
        let (covered, crc) = head.split_last_chunk::<CRC>().ok_or(Fault::Short(head_len))?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(Fault::Damaged("its header does not match its checksum"));
        }
        let codec = match codec {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            _ => return Err(Fault::Damaged("its compression is unknown")),
        };
        let note = decode_note(kind, &covered[FIXED..]).ok_or(Fault::Damaged("its header cannot be read"))?;
        let head_len = u32::try_from(head_len).map_err(|_| Fault::Damaged("its header has impossible lengths"))?;
        Ok(Header { key, digest, codec, raw_len, body_crc, body_len, head_len, note })
    }

    /// The whole meta of a reply or failure, from the bytes of its header; `None` for other kinds.
    pub(super) fn meta(head: &[u8]) -> Option<Meta> {
        let note = head.get(FIXED..head.len().checked_sub(CRC)?)?;
        match *head.get(4)? {
            kind::REPLY => {
                let (brief, details) = postcard::take_from_bytes(note).ok()?;
                Meta::from_parts(brief, details).ok()
            }
            kind::FAILURE => {
                let ((brief, _, _), details): ((Brief, String, String), _) = postcard::take_from_bytes(note).ok()?;
                Meta::from_parts(brief, details).ok()
            }
            _ => None,
        }
    }

    /// The models that answered and were asked, from the bytes of its header.
    pub(super) fn models(&self, head: &[u8]) -> Option<(Option<String>, Option<String>)> {
        let Note::Reply(_) = self.note else { return Some((None, None)) };
        let (_, details): (Brief, _) = postcard::take_from_bytes(head.get(FIXED..)?).ok()?;
        Meta::models(details)
    }

    /// The record of a reply or failure; `None` for other kinds.
    pub(super) fn record(&self, location: Location) -> Option<Record> {
        let (brief, status) = match &self.note {
            Note::Reply(brief) => (brief, Status::Unread),
            Note::Failure { brief, class, message } => {
                let (class, message) = (class.as_str().into(), message.as_str().into());
                (brief, Status::Failed { class, message })
            }
            _ => return None,
        };
        Some(Record {
            key: ActionKey(self.key),
            location,
            raw: self.digest,
            raw_len: self.raw_len,
            status,
            created: brief.created,
            stage: brief.stage,
            usage: brief.usage,
            cost: brief.cost,
            latency_ms: brief.latency_ms,
            dialect: brief.dialect,
        })
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// The next `N` bytes; zeros past the end, which the fixed size rules out.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.0 = rest;
                *taken
            }
            None => [0; N],
        }
    }
}

mod kind {
    pub(super) const REPLY: u8 = 1;
    pub(super) const VERDICT: u8 = 2;
    pub(super) const FAILURE: u8 = 3;
    pub(super) const TEXT: u8 = 4;
    pub(super) const COUNTS: u8 = 5;
    pub(super) const TOUCH: u8 = 6;
    pub(super) const REMOVE: u8 = 7;
    pub(super) const LATEST: u8 = 8;
}

fn decode_note(kind: u8, bytes: &[u8]) -> Option<Note> {
    Some(match kind {
        kind::REPLY => Note::Reply(postcard::take_from_bytes(bytes).ok()?.0),
        kind::VERDICT => Note::Verdict(postcard::from_bytes(bytes).ok()?),
        kind::FAILURE => {
            let (brief, class, message) = postcard::take_from_bytes(bytes).ok()?.0;
            Note::Failure { brief, class, message }
        }
        kind::TEXT => Note::Text,
        kind::COUNTS => Note::Counts(postcard::from_bytes(bytes).ok()?),
        kind::TOUCH => {
            let (day, keys) = postcard::from_bytes(bytes).ok()?;
            Note::Touch { day, keys }
        }
        kind::REMOVE => {
            let (why, keys) = postcard::from_bytes(bytes).ok()?;
            Note::Remove { why, keys }
        }
        kind::LATEST => Note::Latest(postcard::from_bytes(bytes).ok()?),
        _ => Note::Unknown,
    })
}

/// The frame of what came of an action.
pub(super) fn reply(key: ActionKey, meta: &Meta, body: &Packed) -> Result<Vec<u8>, postcard::Error> {
    let mut note = postcard::to_stdvec(&meta.brief())?;
    note.extend(meta.details()?);
    Ok(assemble(kind::REPLY, key.0, body, &note))
}

/// The frame of a call that failed for good. It has no body.
pub(super) fn failure(key: ActionKey, meta: &Meta, class: &str, message: &str) -> Result<Vec<u8>, postcard::Error> {
    let mut note = postcard::to_stdvec(&(meta.brief(), clip(class), clip(message)))?;
    note.extend(meta.details()?);
    Ok(assemble(kind::FAILURE, key.0, &Packed::empty(), &note))
}

/// The frame of what reading the body `raw` of `key` gave.
pub(super) fn verdict(key: ActionKey, raw: Digest, reading: &Reading) -> Result<Vec<u8>, postcard::Error> {
    let note = match reading {
        Reading::Output { .. } => postcard::to_stdvec(reading)?,
        Reading::Unreadable { reader, fault } => {
            postcard::to_stdvec(&Reading::Unreadable { reader: *reader, fault: clip(fault).to_owned() })?
        }
    };
    Ok(assemble(kind::VERDICT, key.0, &Packed { digest: raw, ..Packed::empty() }, &note))
}

/// The frame of a source text.
pub(super) fn text(digest: Digest, body: &Packed) -> Vec<u8> {
    assemble(kind::TEXT, digest, body, &[])
}

/// A frame of token counts.
pub(super) fn counts(counts: &[(Digest, u64)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::COUNTS, Digest([0; 32]), &Packed::empty(), &postcard::to_stdvec(counts)?))
}

/// A frame of entries used on a day.
pub(super) fn touch(day: Day, keys: &[KeyHead]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::TOUCH, Digest([0; 32]), &Packed::empty(), &postcard::to_stdvec(&(day, keys))?))
}

/// A frame of entries that are gone.
pub(super) fn remove(why: Removal, keys: &[(ActionKey, Option<Digest>)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::REMOVE, Digest([0; 32]), &Packed::empty(), &postcard::to_stdvec(&(why, keys))?))
}

/// The frame of actions that are in use again.
pub(super) fn latest(places: &[(Digest, ActionKey)]) -> Result<Vec<u8>, postcard::Error> {
    Ok(assemble(kind::LATEST, Digest([0; 32]), &Packed::empty(), &postcard::to_stdvec(places)?))
}

impl Packed {
    /// No body.
    pub(super) fn empty() -> Packed {
        Packed { codec: Codec::Plain, digest: Digest([0; 32]), raw_len: 0, bytes: Vec::new() }
    }
}

fn assemble(kind: u8, key: Digest, body: &Packed, note: &[u8]) -> Vec<u8> {
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
