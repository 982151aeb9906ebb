//! Two caches read as one: an entry is read from the lower cache if the upper one has no usable entry.

use super::entry::{Day, EntryHeader, ModelNames, Record, RemovalReason};
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
    /// The cache that a record is from. Records of both with the same key, location and digest have the same content.
    fn cache_of(&self, record: &Record) -> &dyn Lookup {
        let is_upper = self
            .upper
            .find(&record.key)
            .is_some_and(|known| (known.location, known.raw) == (record.location, record.raw));
        if is_upper { self.upper } else { self.lower }
    }
}

impl<A: Lookup, B: Lookup> Lookup for Layered<'_, A, B> {
    fn find(&self, key: &ActionKey) -> Option<Record> {
        let upper = self.upper.find(key);
        if upper.as_ref().is_some_and(Record::is_usable) {
            return upper;
        }
        self.lower.find_usable(key).or(upper)
    }

    fn reply(&self, record: &Record) -> Result<StoredReply, Damage> {
        self.cache_of(record).reply(record)
    }

    fn verify_body(&self, record: &Record) -> Result<ModelNames, Damage> {
        self.cache_of(record).verify_body(record)
    }

    fn header(&self, record: &Record) -> Result<EntryHeader, Damage> {
        self.cache_of(record).header(record)
    }

    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage> {
        self.cache_of(record).packed(record)
    }

    fn is_remote(&self, record: &Record) -> bool {
        self.cache_of(record).is_remote(record)
    }

    fn latest(&self, place: &Digest) -> Option<ActionKey> {
        self.upper
            .latest(place)
            .or_else(|| self.lower.latest(place))
    }

    fn removed(&self, key: &ActionKey) -> Option<RemovalReason> {
        self.upper.removed(key).or_else(|| self.lower.removed(key))
    }

    fn read_text(&self, digest: &Digest) -> Option<String> {
        self.upper
            .read_text(digest)
            .or_else(|| self.lower.read_text(digest))
    }

    fn count(&self, digest: &Digest) -> Option<u64> {
        self.upper
            .count(digest)
            .or_else(|| self.lower.count(digest))
    }

    fn last_used(&self, record: &Record) -> Day {
        self.cache_of(record).last_used(record)
    }

    fn records(&self) -> Vec<Record> {
        let mut records = self.lower.records();
        records.retain(|record| self.upper.find(&record.key).is_none());
        records.extend(self.upper.records());
        records
    }
}
