//! Entries: what compeval keeps in the store beside outputs, and reads back.
//!
//! [`EntryMeta`] says what an action was made from and what it cost; the store keeps it as a header whose fields it
//! does not read. [`Journal`] says what was submitted in batches, kept as steps. [`Refresh`] says which outputs are
//! replaced.

mod journal;

pub use journal::{BatchIntent, BatchLine, ClosedBatch, ClosedLine, Journal, OpenBatch, Refresh};

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest, DigestBuilder, InputsDocument, Place, Stage};
use base::units::Tokens;
use models::{Dialect, Lane};
use store::cache::{
    Damage, EntryHeader, EntryStatus, EntrySummary, Lookup, ModelNames, Record, Store, Tag, now_ms,
};

/// Everything about an entry besides its body. The store keeps what it needs itself in fields of its own, and the rest as
/// a JSON document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryMeta {
    /// What the store itself reads of it.
    #[serde(skip)]
    pub summary: EntrySummary,
    /// The URL of the remote that it was pulled from; `None` for an entry made here.
    #[serde(skip)]
    pub imported: Option<String>,
    /// Attempts, including the last one.
    pub attempts: u32,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// How the request was sent, at which price.
    pub lane: Lane,
    /// The place in the matrix for which the action first ran.
    pub place: Place,
    pub inputs: InputsDocument,
}

impl EntryMeta {
    /// The entry of an action that is made now, with the model that it asks.
    pub fn new(place: Place, inputs: InputsDocument, requested: Option<String>) -> EntryMeta {
        let summary = EntrySummary {
            created: now_ms(),
            kind: Tag(inputs.stage as u8),
            place: place.digest(inputs.stage, inputs.repetition),
            models: ModelNames {
                requested,
                answered: None,
            },
            ..EntrySummary::default()
        };
        EntryMeta {
            summary,
            imported: None,
            attempts: 1,
            request_id: None,
            lane: Lane::Live,
            place,
            inputs,
        }
    }

    /// The same entry with a body in this dialect.
    #[must_use]
    pub fn in_dialect(mut self, dialect: Dialect) -> EntryMeta {
        self.summary.format = Some(Tag(dialect as u8));
        self
    }

    /// The header that the store keeps.
    pub fn header(&self) -> EntryHeader {
        // Texts and numbers: encoding them cannot fail.
        let document =
            serde_json::to_vec(self).unwrap_or_else(|error| unreachable!("plain data: {error}"));
        let sources = self.inputs.sources.iter();
        EntryHeader {
            summary: self.summary.clone(),
            origin: self.imported.clone(),
            texts: sources.map(|source| source.digest).collect(),
            document,
        }
    }

    /// Reads a header; `None` if it is not one that this program wrote.
    pub fn from_header(header: EntryHeader) -> Option<EntryMeta> {
        let read: EntryMeta = serde_json::from_slice(&header.document).ok()?;
        Some(EntryMeta {
            summary: header.summary,
            imported: header.origin,
            ..read
        })
    }
}

/// The key of an entry, by the inputs that its header names.
pub fn key_of(header: &EntryHeader) -> Option<ActionKey> {
    EntryMeta::from_header(header.clone()).map(|meta| meta.inputs.key())
}

/// A record of the store, as compeval reads it.
pub trait EntryRecord {
    /// The stage of the action; `None` if this program has no such stage.
    fn stage(&self) -> Option<Stage>;

    /// The format of the body.
    fn body_format(&self) -> BodyFormat;
}

/// The format of a stored body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// The output of a program or of built-in rules.
    Local,
    /// A provider's reply.
    Reply(Dialect),
    /// A format that this program does not know.
    Unknown,
}

impl EntryRecord for Record {
    fn stage(&self) -> Option<Stage> {
        Stage::ALL.get(usize::from(self.summary.kind.0)).copied()
    }

    fn body_format(&self) -> BodyFormat {
        let Some(Tag(format)) = self.summary.format else {
            return BodyFormat::Local;
        };
        let dialect = Dialect::ALL.get(usize::from(format)).copied();
        dialect.map_or(BodyFormat::Unknown, BodyFormat::Reply)
    }
}

/// Keeps the number of tokens of a text, so that it need not be counted again.
pub fn keep_tokens(store: &Store, text: &Digest, tokens: Tokens) {
    store.keep_memo(tokens_name(text), &tokens.0.to_le_bytes());
}

fn tokens_name(text: &Digest) -> Digest {
    DigestBuilder::new("tokens").field("text", text.0).finish()
}

/// A cache of compeval's entries.
pub trait EntryLookup: Lookup {
    /// All that is known of an entry.
    ///
    /// # Errors
    /// `Damage` if the entry differs from what was written.
    fn meta(&self, record: &Record) -> Result<EntryMeta, Damage> {
        EntryMeta::from_header(self.header(record)?)
            .ok_or_else(|| record.unreadable("its header cannot be read"))
    }

    /// The number of tokens of the text with this digest, if [`keep_tokens`] kept it.
    fn tokens_of(&self, text: &Digest) -> Option<Tokens> {
        let kept = self.read_memo(&tokens_name(text))?;
        Some(Tokens(u64::from_le_bytes(*kept.first_chunk()?)))
    }

    /// How many replies to an action a batch has brought that could not be used: none or one. The action is then requested
    /// live, and that reply counts as its first.
    fn unusable_in_batch(&self, key: &ActionKey) -> u32 {
        let record = self.find(key);
        // That a reply could not be used may not be noted yet.
        let unusable = record.filter(|record| {
            matches!(
                record.status,
                EntryStatus::Unparsed | EntryStatus::Malformed { .. }
            )
        });
        let meta = unusable.and_then(|record| self.meta(&record).ok());
        u32::from(meta.is_some_and(|meta| meta.lane == Lane::Batch))
    }
}

impl<L: Lookup> EntryLookup for L {}
