//! Uploads entries that were made here, a few megabytes to a pack.

use std::collections::BTreeMap;

use super::backend::{ListedObject, Remote, RemoteError, WriteOutcome};
use super::index::read_footer;
use super::keys::SigningKey;
use super::pack::{ItemKind, PackBuilder, PartOrigin, SignedFooter, object_of};
use super::signed::RemoteId;
use crate::cache::{Lookup, now_ms, pack_entry, pack_text};
use crate::digest::{ActionKey, Digest};

/// A pack of this size is complete.
pub(super) const PACK_BYTES: usize = 4 << 20;

/// What an upload did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushCounts {
    /// Entries.
    pub entries: u64,
    /// Source texts.
    pub texts: u64,
    /// Packs that hold them.
    pub packs: u64,
    /// The size of these packs.
    pub bytes: u64,
    /// Entries that the remote had already.
    pub present: u64,
    /// Entries that others made: they are not signed again.
    pub of_others: u64,
    /// Entries that the cache does not have any more, or that are damaged.
    pub lost: u64,
}

impl PushCounts {
    /// Adds two counts.
    pub(super) fn plus(&self, other: &PushCounts) -> PushCounts {
        PushCounts {
            entries: self.entries + other.entries,
            texts: self.texts + other.texts,
            packs: self.packs + other.packs,
            bytes: self.bytes + other.bytes,
            present: self.present + other.present,
            of_others: self.of_others + other.of_others,
            lost: self.lost + other.lost,
        }
    }
}

/// An upload to one remote.
pub(super) struct Upload<'u> {
    pub(super) remote: &'u dyn Remote,
    pub(super) url: &'u str,
    pub(super) remote_id: RemoteId,
    pub(super) key: Option<&'u SigningKey>,
    /// The part of a run that uploads.
    pub(super) part: Option<PartOrigin>,
    /// Whether source texts are uploaded, too.
    pub(super) texts: bool,
    /// Whether the remote has an entry or text already.
    pub(super) has: &'u (dyn Fn(&Digest) -> bool + 'u),
    pub(super) counts: PushCounts,
    /// The keys and digests that were uploaded, and the footers of the new packs.
    pub(super) uploaded: Vec<Digest>,
    pub(super) footers: BTreeMap<Digest, SignedFooter>,
}

impl Upload<'_> {
    /// Uploads the entries that were made here and that the remote does not have. Entries that are damaged or gone are left
    /// out, and counted.
    pub(super) async fn push<C: Lookup>(
        &mut self,
        cache: &C,
        keys: &[ActionKey],
    ) -> Result<(), RemoteError> {
        let mut pack = PackBuilder::default();
        let mut texts = Vec::new();
        for key in keys {
            if (self.has)(&key.0) {
                self.counts.present += 1;
                continue;
            }
            let found = cache.find(key);
            if found.as_ref().is_some_and(|record| !record.is_usable()) {
                continue;
            }
            let Some((header, record)) =
                found.and_then(|record| Some((cache.header(&record).ok()?, record)))
            else {
                self.counts.lost += 1;
                continue;
            };
            if header.origin.is_some() {
                self.counts.of_others += 1;
                continue;
            }
            let Ok(packed) = pack_entry(cache, &record) else {
                self.counts.lost += 1;
                continue;
            };
            pack.add(ItemKind::Entry, key.0, &packed);
            if self.texts {
                texts.extend(header.texts());
            }
            if pack.len() >= PACK_BYTES {
                self.write(std::mem::take(&mut pack)).await?;
            }
        }
        texts.sort_unstable();
        texts.dedup();
        for digest in texts.into_iter().filter(|digest| !(self.has)(digest)) {
            let Some(text) = cache.read_text(&digest) else {
                continue;
            };
            let Ok(packed) = pack_text(digest, &text) else {
                continue;
            };
            pack.add(ItemKind::Text, digest, &packed);
            if pack.len() >= PACK_BYTES {
                self.write(std::mem::take(&mut pack)).await?;
            }
        }
        if pack.len() > 0 {
            self.write(pack).await
        } else {
            Ok(())
        }
    }

    async fn write(&mut self, pack: PackBuilder) -> Result<(), RemoteError> {
        let items = pack.items().to_vec();
        let (signed, bytes) = pack
            .finish(self.remote_id, self.key, self.part, now_ms())
            .map_err(|error| {
                RemoteError::failed(
                    "write to",
                    self.url,
                    format!("a footer cannot be encoded: {error}"),
                )
            })?;
        let (name, length) = (signed.name(), bytes.len() as u64);
        let object = ListedObject {
            name: object_of(&name),
            bytes: length,
            written: None,
        };
        if self.remote.write_if_absent(&object.name, bytes).await? == WriteOutcome::Exists {
            let there = read_footer(self.remote, &object).await?;
            if !there.is_ok_and(|there| there.name() == name) {
                let what = format!(
                    "the content of the object {} does not match its name",
                    object.name
                );
                return Err(RemoteError::failed("write to", self.url, what));
            }
        }
        self.counts.packs += 1;
        self.counts.bytes += length;
        for item in items {
            match item.kind {
                ItemKind::Entry => self.counts.entries += 1,
                ItemKind::Text => self.counts.texts += 1,
            }
            self.uploaded.push(item.key);
        }
        self.footers.insert(name, signed);
        Ok(())
    }
}
