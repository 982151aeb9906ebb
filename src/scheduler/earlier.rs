//! An output that is asked for again. It stays if the new replies cannot be used.

use bytes::Bytes;

use crate::action::ActionKey;
use store::cache::{CacheError, EntryHeader, Lookup, Record, Store};

/// An output that was stored before its action is executed again.
pub(super) struct EarlierOutput {
    record: Record,
    header: EntryHeader,
    body: Bytes,
}

impl EarlierOutput {
    /// The stored output of this key, if there is one that can be used.
    pub(super) fn find(store: &Store, key: &ActionKey) -> Option<EarlierOutput> {
        let record = store.find(key).filter(Record::is_usable)?;
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
