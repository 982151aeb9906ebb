//! What the cache has of an action that is executed again: an output, which stays if the new replies cannot be used, or a
//! reply of a batch that could not be used.

use bytes::Bytes;

use crate::action::ActionKey;
use crate::entries::EntryLookup;
use models::Lane;
use store::cache::{CacheError, EntryHeader, EntryStatus, Lookup, Record, Store};

/// An output that was stored before its action is executed again.
pub(super) struct EarlierOutput {
    record: Record,
    header: EntryHeader,
    body: Bytes,
}

impl EarlierOutput {
    /// The stored output of this key, if there is one that can be used.
    pub(super) fn find(store: &Store, key: &ActionKey) -> Option<EarlierOutput> {
        let record = store.find_usable(key)?;
        Some(EarlierOutput { header: store.header(&record).ok()?, body: store.body(&record).ok()?, record })
    }

    /// Stores the output again if a reply that cannot be used has taken its place: it was paid for.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub(super) async fn restore(self, store: &Store) -> Result<(), CacheError> {
        let key = self.record.key;
        if store.find(&key).is_none_or(|record| record.location != self.record.location) {
            store.put_reply(key, &self.header, self.body).await?;
        }
        Ok(())
    }
}

/// How many replies to an action a batch has brought that could not be used: none or one. The action is then requested
/// live, and that reply counts as its first.
pub(super) fn unusable_in_batch(store: &Store, key: &ActionKey) -> u32 {
    let record = store.find(key);
    // That a reply could not be used may not be noted yet.
    let unusable =
        record.filter(|record| matches!(record.status, EntryStatus::Unparsed | EntryStatus::Malformed { .. }));
    let meta = unusable.and_then(|record| store.meta(&record).ok());
    u32::from(meta.is_some_and(|meta| meta.lane == Lane::Batch))
}
