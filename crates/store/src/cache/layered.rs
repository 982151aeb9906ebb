//! Two caches read as one: an entry is read from the lower one where the upper one has no usable one.

use super::entry::ModelNames;
use super::entry::{Day, EntryHeader, Record, RemovalReason};
use super::error::Damage;
use super::lookup::{Lookup, StoredReply};
use crate::digest::{ActionKey, Digest};

/// Two caches as one.
#[derive(Debug)]
pub struct Layered<'c, A, B> {
    /// The one that is read first.
    pub upper: &'c A,
    /// The one that has what the other lacks.
    pub lower: &'c B,
}

impl<A: Lookup, B: Lookup> Layered<'_, A, B> {
    /// Whether a record is one of the upper cache. Records of both with one key and place have one content.
    fn is_upper(&self, record: &Record) -> bool {
        self.upper.find(&record.key).is_some_and(|own| (own.location, own.raw) == (record.location, record.raw))
    }
}

impl<A: Lookup, B: Lookup> Lookup for Layered<'_, A, B> {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        let upper = self.upper.find(key);
        if upper.as_ref().is_some_and(Record::is_usable) {
            return upper;
        }
        self.lower.find(key).filter(Record::is_usable).or(upper)
    }

    fn reply(&self, record: &Record) -> Result<StoredReply, Damage> {
        if self.is_upper(record) { self.upper.reply(record) } else { self.lower.reply(record) }
    }

    fn verify_body(&self, record: &Record) -> Result<ModelNames, Damage> {
        if self.is_upper(record) { self.upper.verify_body(record) } else { self.lower.verify_body(record) }
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        if self.is_upper(record) { self.upper.header(record) } else { self.lower.header(record) }
    }

    fn is_remote(&self, record: &Record) -> bool {
        if self.is_upper(record) { self.upper.is_remote(record) } else { self.lower.is_remote(record) }
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.upper.latest(place).or_else(|| self.lower.latest(place))
    }

    fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        self.upper.removed(key).or_else(|| self.lower.removed(key))
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        self.upper.read_text(digest).or_else(|| self.lower.read_text(digest))
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.upper.count(digest).or_else(|| self.lower.count(digest))
    }

    fn last_used(&self, record: &Record) -> Day {
        if self.is_upper(record) { self.upper.last_used(record) } else { self.lower.last_used(record) }
    }

    fn records(&self) -> Vec<Record> {
        let mut records = self.lower.records();
        records.retain(|record| self.upper.find(&record.key).is_none());
        records.extend(self.upper.records());
        records
    }
}
