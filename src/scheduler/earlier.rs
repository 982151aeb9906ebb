//! What the cache has of an action that is executed again: a reply of a batch that could not be used.

use crate::action::ActionKey;
use crate::entries::EntryLookup;
use models::Lane;
use store::cache::{EntryStatus, Lookup, Store};

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
