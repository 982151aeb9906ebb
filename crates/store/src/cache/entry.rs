//! Entries: what is stored about an action besides its body.
//!
//! `EntryHeader` is everything, and is stored in the header of the entry's frame. `Record` is the part that plans and
//! runs read for every action. The sled tree holds it, so it is small (about 1 KB) and has no document.
//!
//! The cache stores a `Tag` and the document of a header and never interprets them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::Damage;
use crate::digest::{ActionKey, Digest};
use base::text::first_bytes;
use base::units::{Usage, Usd};

/// A number whose meaning the caller defines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tag(pub u8);

/// The version of everything that a cache and its remotes store: packs, records, lists. It is raised when one of these
/// formats changes.
pub const FORMAT: u32 = 2;

/// Everything about an entry besides its body, in the order in which it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryHeader {
    /// What plans and runs read of every entry.
    pub summary: EntrySummary,
    /// The URL of the remote that it was pulled from; `None` for an entry made here. Pulling means to trust whoever made
    /// it, so a pulled entry stays recognizable.
    pub origin: Option<String>,
    /// The digests under which texts may be stored for it. A prune keeps such a text while an entry names it.
    pub texts: Vec<Digest>,
    /// What it was made from, in the caller's encoding.
    pub document: Vec<u8>,
}

/// What plans and runs read of every entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntrySummary {
    /// Milliseconds since 1970 (UTC).
    pub created: u64,
    /// The kind of action.
    pub kind: Tag,
    /// The tokens that the call used.
    pub usage: Usage,
    /// `None` if the price is unknown.
    pub cost: Option<Usd>,
    /// Milliseconds from the start to the last byte.
    pub latency_ms: u64,
    /// Identifies what the action was made for. The latest action of a place is found by it, whatever its key.
    pub place: Digest,
    /// The format of the body, where there are several.
    pub format: Option<Tag>,
    /// The models of the call.
    pub models: ModelNames,
}

/// The models of a call; both are `None` for programs and built-in rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelNames {
    /// As `provider/model`.
    pub requested: Option<String>,
    /// As the provider names it.
    pub answered: Option<String>,
}

/// Computes the key of an entry from its header; `None` if the document cannot be read. An entry of another cache is
/// accepted only under this key.
pub type KeyOf = fn(&EntryHeader) -> Option<ActionKey>;

/// The first bytes of a digest.
pub(super) fn prefix_of(digest: &Digest) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = digest.0;
    [a, b, c, d, e, f, g, h]
}

/// A day in UTC, counted from 1970-01-01: the resolution of the time of last use.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Day(pub u32);

impl Day {
    const MILLISECONDS: u64 = 86_400_000;

    /// The day of a time in milliseconds since 1970.
    pub fn from_ms(ms: u64) -> Day {
        Day(u32::try_from(ms / Day::MILLISECONDS).unwrap_or(u32::MAX))
    }

    /// The current day.
    pub fn today() -> Day {
        Day::from_ms(now_ms())
    }
}

/// The time in milliseconds since 1970 (UTC). A clock before 1970 counts as 1970.
pub fn now_ms() -> u64 {
    u64::try_from(base::clock::now().as_millisecond()).unwrap_or(0)
}

/// Where a frame is: the pack's number and the range in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FrameLocation {
    /// The number of the pack.
    pub pack: u32,
    /// Where the frame begins.
    pub offset: u64,
    /// Bytes before the body.
    pub head: u32,
    /// Bytes of the body as stored.
    pub body: u32,
}

impl FrameLocation {
    /// A place in a pack where no frame may be.
    pub(super) fn without_frame(pack: u32, offset: u64) -> FrameLocation {
        FrameLocation {
            pack,
            offset,
            head: 0,
            body: 0,
        }
    }

    /// Bytes of the whole frame.
    #[expect(clippy::len_without_is_empty, reason = "no frame is empty")]
    pub fn len(&self) -> u64 {
        u64::from(self.head) + u64::from(self.body)
    }

    /// The offset of the first byte after the frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len())
    }
}

/// The name of a pack's file.
pub(super) fn pack_name(id: u32) -> String {
    format!("{id:08}.pack")
}

/// What an entry can be used for. `out` is the digest of the parsed output, on which later actions depend; `parser` is the
/// version of the parser.
#[allow(missing_docs, reason = "the description above says it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryStatus {
    /// The body has not been parsed, or the result was lost.
    Unparsed,
    /// There is an output.
    Output { out: Digest, parser: u16 },
    /// The body has no usable output: it is stored for inspection and never used.
    Malformed { parser: u16, fault: Arc<str> },
    /// There is no body: the last attempt failed permanently.
    Failed { class: Arc<str>, message: Arc<str> },
}

impl EntryStatus {
    /// The status of a body without a usable output.
    pub fn malformed(parser: u16, fault: &str) -> EntryStatus {
        EntryStatus::Malformed {
            parser,
            fault: clip(fault).into(),
        }
    }

    /// Whether it says how a body was parsed.
    pub(super) fn is_parsed(&self) -> bool {
        matches!(
            self,
            EntryStatus::Output { .. } | EntryStatus::Malformed { .. }
        )
    }
}

/// Cuts a fault or a failure message to the bytes that are stored.
pub(super) fn clip(text: &str) -> &str {
    const STORED: usize = 400;
    first_bytes(text, STORED)
}

/// What the sled tree stores about an entry, under its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The key of the action.
    #[serde(skip)]
    pub key: ActionKey,
    /// Where the frame is.
    pub location: FrameLocation,
    /// The digest of the body.
    pub raw: Digest,
    /// Bytes of the body, decompressed.
    pub raw_len: u32,
    /// What it can be used for.
    pub status: EntryStatus,
    /// The head of its header.
    pub summary: EntrySummary,
}

impl Record {
    /// The first byte of each record in the tree. A record of another version is read from the packs again.
    const VERSION: u8 = FORMAT as u8;

    /// Reports this entry as damaged, for a caller who cannot decode its header.
    pub fn unreadable(&self, what: &str) -> Damage {
        let FrameLocation { pack, offset, .. } = self.location;
        let path = pack_name(pack).into();
        Damage {
            key: Some(self.key),
            path,
            offset,
            what: what.to_owned(),
            is_unread: false,
        }
    }

    /// Bytes of the entry on disk.
    pub fn stored_bytes(&self) -> u64 {
        self.location.len()
    }

    /// The day it was made.
    pub fn created_day(&self) -> Day {
        Day::from_ms(self.summary.created)
    }

    /// Whether there is a body that has, or may have, an output.
    pub fn is_usable(&self) -> bool {
        matches!(
            self.status,
            EntryStatus::Unparsed | EntryStatus::Output { .. }
        )
    }

    /// Whether the last attempt failed permanently.
    pub fn is_failed(&self) -> bool {
        matches!(self.status, EntryStatus::Failed { .. })
    }

    /// Encodes the value for the sled tree: version and fields.
    pub(super) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_extend(self, vec![Record::VERSION])
    }

    /// Decodes a value of the tree; `None` if it is of another version.
    pub(super) fn decode(key: ActionKey, bytes: &[u8]) -> Option<Record> {
        let record = postcard::from_bytes(bytes.strip_prefix(&[Record::VERSION])?).ok()?;
        Some(Record { key, ..record })
    }
}
