//! Reading a cache: one trait for an open store and for a snapshot, so that `run`, `plan` and `why` use the same code, and two
//! caches read as one.

use bytes::Bytes;

use super::entry::{Day, EntryHeader, ModelNames, Record};
use super::error::{CacheError, Damage};
use crate::digest::{ActionKey, Digest};

/// A body and the models of the call that gave it.
#[derive(Clone, Debug)]
pub struct StoredReply {
    /// The body, verified.
    pub body: Bytes,
    /// The models of the call.
    pub models: ModelNames,
}

/// A cache that can be read.
pub trait Lookup {
    /// The current entry of a key: an output, an unusable reply or a failure.
    fn find(&self, key: &ActionKey) -> Option<Record>;

    /// The current entry of a key, if it has a body that can be used as an output.
    fn find_usable(&self, key: &ActionKey) -> Option<Record> {
        self.find(key).filter(Record::is_usable)
    }

    /// The body of an entry, verified by its digest, and the models of its call.
    ///
    /// # Errors
    /// `Damage` if the entry differs from what was written: treat it as missing.
    fn reply(&self, record: &Record) -> Result<StoredReply, Damage>;

    /// Verifies the body of an entry without decompressing it.
    ///
    /// # Errors
    /// As `reply`.
    fn verify_body(&self, record: &Record) -> Result<ModelNames, Damage>;

    /// The body of an entry, verified by its digest.
    ///
    /// # Errors
    /// As `reply`.
    fn body(&self, record: &Record) -> Result<Bytes, Damage> {
        Ok(self.reply(record)?.body)
    }

    /// All that is known of an entry.
    ///
    /// # Errors
    /// As `reply`.
    fn header(&self, record: &Record) -> Result<EntryHeader, Damage>;

    /// An entry as another cache takes it: its frame, verified.
    ///
    /// # Errors
    /// As `reply`.
    fn packed(&self, record: &Record) -> Result<Vec<u8>, Damage>;

    /// Whether an entry is only in a remote, from which a run pulls it.
    fn is_remote(&self, _: &Record) -> bool {
        false
    }

    /// The latest action of a place, even if its entry was removed.
    fn latest(&self, place: &Digest) -> Option<ActionKey>;

    /// The text stored under a digest.
    fn read_text(&self, digest: &Digest) -> Option<String>;

    /// The token count of a text, if one is stored.
    fn count(&self, digest: &Digest) -> Option<u64>;

    /// The day of its last use.
    fn last_used(&self, record: &Record) -> Day;

    /// All records, in their order on disk.
    fn records(&self) -> Vec<Record>;

    /// The key that begins with `prefix` (hexadecimal digits).
    fn resolve(&self, prefix: &str) -> Result<ActionKey, CacheError> {
        let lower = prefix.to_ascii_lowercase();
        let is_hex =
            (1..=64).contains(&lower.len()) && lower.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex {
            return Err(CacheError::BadPrefix {
                prefix: prefix.to_owned(),
            });
        }
        let keys = self.records().into_iter().map(|record| record.key);
        let mut candidates: Vec<ActionKey> =
            keys.filter(|key| key.0.hex().starts_with(&lower)).collect();
        match candidates.as_slice() {
            [] => Err(CacheError::UnknownPrefix {
                prefix: prefix.to_owned(),
            }),
            [key] => Ok(*key),
            _ => {
                candidates.sort_unstable();
                Err(CacheError::AmbiguousPrefix {
                    prefix: prefix.to_owned(),
                    candidates,
                })
            }
        }
    }
}

/// Two caches as one: an entry is read from the lower one if the upper one has no usable entry.
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
