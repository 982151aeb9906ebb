//! Entries as they travel between caches that share a remote: frames as in an export, compressed one entry at a time so
//! that each can be read by itself.

use std::io::{self, Write};
use std::path::Path;

use super::transfer::{ImportBatch, ImportCounts, ImportTarget, SourceTexts, read_item, write_entries};
use crate::action::Digest;
use crate::cache::entry::{ImportOrigin, Record};
use crate::cache::error::CacheError;
use crate::cache::lookup::Lookup;
use crate::cache::packs::frame;
use crate::cache::packs::pack::{compressor, decompressor, plain_body};

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
    stream.write_all(frames).map_err(failed())?;
    stream.finish().map_err(failed())
}

/// Adds what another cache packed under `key`. Existing outputs are not changed. Every frame is verified as one of an
/// exported file is. Not synced: after a crash it is pulled again.
pub(in crate::cache) fn add_packed(
    target: ImportTarget<'_>,
    key: &Digest,
    bytes: &[u8],
    origin: &ImportOrigin,
) -> Result<ImportCounts, CacheError> {
    let bad = |what: String| CacheError::BadImport { path: origin.file.clone().into(), what };
    let failed = |error: io::Error| bad(format!("an entry cannot be decompressed: {error}"));
    let mut stream = decompressor(bytes).map_err(failed)?;
    let mut items = Vec::new();
    while let Some(item) = read_item(&mut stream).map_err(bad)? {
        items.push(item);
    }
    if items.first().is_none_or(|first| first.header.key != *key) {
        return Err(bad(format!("there is another entry in the place of {}", key.short())));
    }
    target.inner.layout.note_import()?;
    let mut batch = ImportBatch::new(target, Some(origin.clone()));
    items.into_iter().try_for_each(|item| batch.add(item))?;
    batch.commit_unsynced()?;
    Ok(batch.counts())
}
