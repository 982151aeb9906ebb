//! Trust in who signed what was pulled: an entry whose writer is no longer trusted counts as missing, even if it was
//! pulled long ago.

use std::collections::{BTreeSet, HashSet};

use super::entry::Record;
use super::lookup::Lookup;
use crate::action::ActionKey;

/// The entries of writers that are not trusted. Reads no entry if all that ever wrote are.
pub(super) fn untrusted(
    cache: &impl Lookup,
    known: BTreeSet<String>,
    trusted: &BTreeSet<String>,
) -> HashSet<ActionKey> {
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
