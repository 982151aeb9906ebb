//! What can be asked of a cache, open for writing or not.

use bytes::Bytes;

use super::error::{CacheError, Damage};
use super::meta::{Day, Meta, Removal};
use super::record::Record;
use crate::action::{ActionKey, Digest};

/// An entry with all that is known about it but its body.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is and what it is good for.
    pub record: Record,
    /// The rest; the damage where it cannot be read.
    pub meta: Result<Meta, Damage>,
    /// The day it was last used.
    pub last_used: Day,
}

/// A body, and who said it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What was stored.
    pub body: Bytes,
    /// Who said it.
    pub speaker: Speaker,
}

/// Who said what was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speaker {
    /// The model that was asked, as `provider/model`; none of programs and rules.
    pub asked: Option<String>,
    /// The model that answered, as the provider names it.
    pub answered: Option<String>,
}

/// What can be asked of a cache, so that one walk serves a store and a snapshot.
pub trait Lookup {
    /// The current entry of a key: an output, a reply that does not read, or a failure.
    fn find(&self, key: &ActionKey) -> Option<Record>;

    /// The body of an entry, checked against its digest, and who said it.
    ///
    /// # Errors
    /// `Damage` if it is not what was written: treat the entry as missing.
    fn reply(&self, record: &Record) -> Result<Reply, Damage>;

    /// Makes sure that an entry's body is as it was written, without unpacking it; says who said it.
    ///
    /// # Errors
    /// As `reply`.
    fn vouch(&self, record: &Record) -> Result<Speaker, Damage>;

    /// The body alone.
    ///
    /// # Errors
    /// As `reply`.
    fn body(&self, record: &Record) -> Result<Bytes, Damage> {
        Ok(self.reply(record)?.body)
    }

    /// All that is known about an entry but its body.
    ///
    /// # Errors
    /// As `reply`.
    fn meta(&self, record: &Record) -> Result<Meta, Damage>;

    /// The last action made for a coordinate (`Coordinate::digest`), also if it has been removed since.
    fn latest(&self, coordinate: &Digest) -> Option<ActionKey>;

    /// Why an entry that was there is no longer.
    fn removed(&self, key: &ActionKey) -> Option<Removal>;

    /// A text, kept by a digest.
    fn read_text(&self, digest: &Digest) -> Option<String>;

    /// The tokens of a text, if they were ever counted.
    fn count(&self, digest: &Digest) -> Option<u64>;

    /// The day an entry was last used.
    fn last_used(&self, record: &Record) -> Day;

    /// All records, in the order in which they lie on disk.
    fn records(&self) -> Vec<Record>;

    /// All entries with their metas, read one by one as they are asked for.
    fn scan(&self) -> impl Iterator<Item = Entry>
    where
        Self: Sized,
    {
        self.records().into_iter().map(|record| Entry {
            meta: self.meta(&record),
            last_used: self.last_used(&record),
            record,
        })
    }

    /// The one entry whose key begins with `prefix` (hexadecimal digits).
    ///
    /// # Errors
    /// If that is no key, of no entry, or of several.
    fn resolve(&self, prefix: &str) -> Result<ActionKey, CacheError> {
        let lower = prefix.to_ascii_lowercase();
        let digits = (1..=64).contains(&lower.len()) && lower.bytes().all(|b| b.is_ascii_hexdigit());
        if !digits {
            return Err(CacheError::BadPrefix { prefix: prefix.to_owned() });
        }
        let keys = self.records().into_iter().map(|record| record.key);
        let mut candidates: Vec<ActionKey> = keys.filter(|key| key.0.hex().starts_with(&lower)).collect();
        match candidates.as_slice() {
            [] => Err(CacheError::UnknownPrefix { prefix: prefix.to_owned() }),
            [key] => Ok(*key),
            _ => {
                candidates.sort_unstable();
                Err(CacheError::AmbiguousPrefix { prefix: prefix.to_owned(), candidates })
            }
        }
    }
}
