//! Records: what the index holds for a key. Small; inputs and sources stay in the frame.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::meta::{Day, Reading};
use crate::action::{ActionKey, Digest, Stage};
use crate::provider::Dialect;
use crate::units::{Usage, Usd};

/// Where a frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The pack's number.
    pub pack: u32,
    /// First byte of the frame.
    pub offset: u64,
    /// Bytes before the body.
    pub head: u32,
    /// Bytes of the body as stored.
    pub body: u32,
}

impl Location {
    /// Bytes of the whole frame on disk.
    pub fn len(&self) -> u64 {
        u64::from(self.head) + u64::from(self.body)
    }

    /// Whether the frame has no bytes, which no frame has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first byte behind the frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len())
    }
}

/// What an entry is good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// A body that nobody has read yet, or whose reading was lost: read it.
    Unread,
    /// A body that was read.
    Output {
        /// Digest of the output as read: what later actions depend on.
        out: Digest,
        /// Digest of the state that comes with it, if it has one.
        state: Option<Digest>,
        /// Version of the reading rules.
        reader: u16,
    },
    /// A body that says nothing usable; never served.
    Unreadable {
        /// Version of the reading rules.
        reader: u16,
        /// Why, in short.
        fault: Arc<str>,
    },
    /// No body: the call failed for good when it was last tried.
    Failed {
        /// The class of the failure.
        class: Arc<str>,
        /// What was said, in short.
        message: Arc<str>,
    },
}

impl From<&Reading> for Status {
    fn from(reading: &Reading) -> Status {
        match reading {
            Reading::Output { out, state, reader } => Status::Output { out: *out, state: *state, reader: *reader },
            Reading::Unreadable { reader, fault } => Status::Unreadable { reader: *reader, fault: clip(fault).into() },
        }
    }
}

/// The most bytes of a fault or a failure that records and frames keep.
const SHORT: usize = 400;

/// The beginning of a text, cut between characters.
pub(super) fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHORT)]
}

/// What the index knows of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its key.
    pub key: ActionKey,
    /// Where its frame lies.
    pub location: Location,
    /// Digest of the body.
    pub raw: Digest,
    /// Bytes of the body, decompressed.
    pub raw_len: u32,
    /// What it is good for.
    pub status: Status,
    /// When it came, in milliseconds since 1970 (UTC).
    pub created: u64,
    /// The stage it belongs to.
    pub stage: Stage,
    /// What the call used.
    pub usage: Usage,
    /// What it cost.
    pub cost: Option<Usd>,
    /// From start to last byte, in milliseconds.
    pub latency_ms: u64,
    /// The dialect its body is to be read in; `None` for programs and computations.
    pub dialect: Option<Dialect>,
}

type Stored = (Location, Digest, u32, Status, u64, Stage, Usage, Option<Usd>, u64, Option<Dialect>);

impl Record {
    const VERSION: u8 = 1;

    /// Bytes it takes on disk.
    pub fn stored_bytes(&self) -> u64 {
        self.location.len()
    }

    /// The day it came.
    pub fn created_day(&self) -> Day {
        Day::of_ms(self.created)
    }

    /// Whether there is a body that is, or may be, an output.
    pub fn is_usable(&self) -> bool {
        matches!(self.status, Status::Unread | Status::Output { .. })
    }

    /// The value kept in the index: version, fields, checksum.
    pub(super) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let Record { key: _, location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect } = self;
        let fields = (location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect);
        let mut bytes = postcard::to_extend(&fields, vec![Record::VERSION])?;
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        Ok(bytes)
    }

    /// The record of `key`; `None` if the bytes are not what was written.
    pub(super) fn decode(key: ActionKey, bytes: &[u8]) -> Option<Record> {
        let (covered, crc) = bytes.split_last_chunk::<4>()?;
        let fields = covered.strip_prefix(&[Record::VERSION])?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return None;
        }
        let stored: Stored = postcard::from_bytes(fields).ok()?;
        let (location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect) = stored;
        Some(Record { key, location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect })
    }
}
