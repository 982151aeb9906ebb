//! Trust in the writers of pulled entries: an entry whose writer is no longer trusted counts as missing, even if it was
//! pulled long ago.

use std::collections::{BTreeSet, HashSet};

use super::lookup::Lookup;
use super::packs::folder::UNSIGNED;
use crate::digest::ActionKey;

/// Stands in the list of writers for writers whose key was lost.
const LOST: &str = "lost";

/// What was found out about the writers of a cache.
#[derive(Debug, Default)]
pub(super) struct TrustCheck {
    /// The entries of writers that are not trusted.
    pub(super) hidden: HashSet<ActionKey>,
    /// All writers, if the entries were read because there was no list of writers.
    pub(super) writers: Option<BTreeSet<String>>,
}

impl TrustCheck {
    /// Reads no entry if all writers are `known` and trusted.
    pub(super) fn new(
        cache: &impl Lookup,
        known: Option<&BTreeSet<String>>,
        trusted: &BTreeSet<String>,
    ) -> TrustCheck {
        if known.is_some_and(|known| {
            known
                .iter()
                .all(|key| key == UNSIGNED || trusted.contains(key))
        }) {
            return TrustCheck::default();
        }
        let (mut hidden, mut writers) = (HashSet::new(), BTreeSet::new());
        for record in cache.records() {
            let is_trusted = match cache.header(&record).map(|header| header.origin) {
                Ok(None) => true,
                Ok(Some(origin)) => {
                    let key = origin
                        .writer
                        .map_or_else(|| UNSIGNED.to_owned(), |writer| writer.key);
                    let is_trusted = key == UNSIGNED || trusted.contains(&key);
                    writers.insert(key);
                    is_trusted
                }
                // the writer was lost with a shared field; the output was not
                Err(_) => {
                    writers.insert(LOST.to_owned());
                    false
                }
            };
            if !is_trusted {
                hidden.insert(record.key);
            }
        }
        TrustCheck {
            hidden,
            writers: known.is_none().then_some(writers),
        }
    }
}
