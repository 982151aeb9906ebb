//! Trust in who signed what was pulled: an entry whose writer is no longer trusted counts as missing, even if it was
//! pulled long ago.

use std::collections::{BTreeSet, HashSet};

use super::lookup::Lookup;
use super::packs::folder::UNSIGNED;
use crate::digest::ActionKey;

/// Stands in the list of writers for those whom nothing names any more.
const LOST: &str = "lost";

/// What reading a cache for its writers found.
#[derive(Debug, Default)]
pub(super) struct TrustCheck {
    /// The entries of writers that are not trusted.
    pub(super) hidden: HashSet<ActionKey>,
    /// All that wrote, where the entries were read because nobody had listed them.
    pub(super) found: Option<BTreeSet<String>>,
}

impl TrustCheck {
    /// Reads no entry if all that ever wrote are `known` and trusted.
    pub(super) fn new(cache: &impl Lookup, known: Option<&BTreeSet<String>>, trusted: &BTreeSet<String>) -> TrustCheck {
        if known.is_some_and(|known| known.iter().all(|key| key == UNSIGNED || trusted.contains(key))) {
            return TrustCheck::default();
        }
        let (mut hidden, mut found) = (HashSet::new(), BTreeSet::new());
        for record in cache.records() {
            let is_trusted = match cache.header(&record).map(|header| header.origin) {
                Ok(None) => true,
                Ok(Some(origin)) => {
                    let key = origin.writer.map_or_else(|| UNSIGNED.to_owned(), |writer| writer.key);
                    let is_trusted = key == UNSIGNED || trusted.contains(&key);
                    found.insert(key);
                    is_trusted
                }
                // whose entry it is was lost with what it was made from, and its output was not
                Err(_) => {
                    found.insert(LOST.to_owned());
                    false
                }
            };
            if !is_trusted {
                hidden.insert(record.key);
            }
        }
        TrustCheck { hidden, found: Some(found).filter(|_| known.is_none()) }
    }
}
