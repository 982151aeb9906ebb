//! Entries as they travel between caches that share a remote: frames as in an export, compressed one entry at a time so
//! that each can be read by itself. Also the trust in their writers: an entry whose writer is no longer trusted counts
//! as missing, even if it was pulled long ago.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::PoisonError;

use super::entry::{ImportOrigin, Record};
use super::error::CacheError;
use super::frame;
use super::lookup::Lookup;
use super::pack::{compressor, decompressor, plain_body};
use super::snapshot::CacheSnapshot;
use super::store::Store;
use super::transfer::{ImportBatch, ImportCounts, SourceTexts, read_item, write_entries};
use crate::action::{ActionKey, Digest};

/// One entry, without its source texts.
///
/// # Errors
/// If the entry is damaged.
pub fn pack_entry(cache: &impl Lookup, record: &Record) -> Result<Vec<u8>, CacheError> {
    let mut frames = Vec::new();
    write_entries(cache, std::slice::from_ref(record), SourceTexts::Without, |bytes| {
        frames.extend_from_slice(bytes);
        Ok(())
    })?;
    compressed(&frames)
}

/// One source text.
///
/// # Errors
/// If it is larger than the cache stores.
pub fn pack_text(digest: Digest, text: &str) -> Result<Vec<u8>, CacheError> {
    compressed(&frame::text(digest, &plain_body(text.as_bytes())?))
}

fn compressed(frames: &[u8]) -> Result<Vec<u8>, CacheError> {
    let failed = || CacheError::io("compress", Path::new("an entry"));
    let mut stream = compressor(Vec::new()).map_err(failed())?;
    std::io::Write::write_all(&mut stream, frames).map_err(failed())?;
    stream.finish().map_err(failed())
}

impl Store {
    /// Adds what another cache packed under `key`. Existing outputs are not changed. Every frame is verified as one of an
    /// exported file is. Not synced: after a crash it is pulled again.
    ///
    /// # Errors
    /// `BadImport` if these bytes are not the entry or text `key`; else if this cache cannot be written.
    pub fn add_packed(&self, key: &Digest, bytes: &[u8], origin: &ImportOrigin) -> Result<ImportCounts, CacheError> {
        let bad = |what: String| CacheError::BadImport { path: origin.file.clone().into(), what };
        let failed = |error: std::io::Error| bad(format!("an entry cannot be decompressed: {error}"));
        let mut stream = decompressor(bytes).map_err(failed)?;
        let mut items = Vec::new();
        while let Some(item) = read_item(&mut stream).map_err(bad)? {
            items.push(item);
        }
        if items.first().is_none_or(|first| first.header.key != *key) {
            return Err(bad(format!("there is another entry in the place of {}", key.short())));
        }
        self.note_import()?;
        let mut batch = ImportBatch::new(self, Some(origin.clone()));
        items.into_iter().try_for_each(|item| batch.add(item))?;
        batch.commit_unsynced()?;
        self.unhide(&ActionKey(*key));
        Ok(batch.counts())
    }

    /// From now on, entries of writers other than those with the public keys `trusted` count as missing. Returns how
    /// many there are.
    ///
    /// # Errors
    /// If the list of writers cannot be read.
    pub fn trust_only(&self, trusted: &BTreeSet<String>) -> Result<usize, CacheError> {
        let hidden = untrusted(self, self.inner.layout.known_writers()?, trusted);
        let count = hidden.len();
        *self.hidden.write().unwrap_or_else(PoisonError::into_inner) = hidden;
        Ok(count)
    }
}

impl CacheSnapshot {
    /// As [`Store::trust_only`].
    ///
    /// # Errors
    /// If the list of writers cannot be read.
    pub fn trust_only(&mut self, trusted: &BTreeSet<String>) -> Result<usize, CacheError> {
        self.hidden = untrusted(self, self.layout.known_writers()?, trusted);
        Ok(self.hidden.len())
    }
}

/// The entries of writers that are not trusted. Reads no entry if all that ever wrote are.
fn untrusted(cache: &impl Lookup, known: BTreeSet<String>, trusted: &BTreeSet<String>) -> HashSet<ActionKey> {
    if known.is_subset(trusted) {
        return HashSet::new();
    }
    let is_untrusted = |record: &Record| match cache.meta(record) {
        Ok(meta) => meta.imported.and_then(|origin| origin.writer).is_some_and(|writer| !trusted.contains(&writer.key)),
        // whose entry it is was lost with what it was made from, and its output was not
        Err(_) => true,
    };
    cache.records().into_iter().filter(is_untrusted).map(|record| record.key).collect()
}
