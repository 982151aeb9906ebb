//! The memo of the rows of a context.

use serde::{Deserialize, Serialize};

use crate::action::Digest;
use store::cache::Store;

/// The rows of one context, in the order of the matrix.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContextRows {
    /// What is unusual about the context.
    pub(super) warnings: Vec<String>,
    /// The line of the context itself.
    pub(super) context: String,
    pub(super) lines: String,
}

impl ContextRows {
    /// Reads the memo with its digest; `None` where there is none, or it is damaged.
    pub(super) fn read(store: &Store, key: &Digest) -> Option<(ContextRows, Digest)> {
        let bytes = store.read_memo(key)?;
        Some((postcard::from_bytes(&bytes).ok()?, Digest::hash(&bytes)))
    }

    /// Stores the memo and returns its digest.
    pub(super) fn keep(&self, store: &Store, key: Digest) -> Option<Digest> {
        let bytes = postcard::to_stdvec(self).ok()?;
        store.keep_memo(key, &bytes);
        Some(Digest::hash(&bytes))
    }
}
