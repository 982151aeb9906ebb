//! Token counts by text digest: kept in the cache, so that a warm run never loads the tokenizer.

use crate::action::Digest;
use crate::cache::{Lookup, Store};
use crate::transcript::count_tokens;
use crate::units::Tokens;

/// MatrixCounts tokens, each text once.
pub(super) struct TokenCounts<'e> {
    store: &'e Store,
}

impl<'e> TokenCounts<'e> {
    pub(super) fn new(store: &'e Store) -> TokenCounts<'e> {
        TokenCounts { store }
    }

    /// The tokens of `text`.
    pub(super) fn text(&self, text: &str) -> Tokens {
        self.named(Digest::of(text), || count_tokens(text))
    }

    /// The tokens of something that has a name already.
    pub(super) fn named(&self, digest: Digest, count: impl FnOnce() -> Tokens) -> Tokens {
        if let Some(known) = self.store.count(&digest) {
            return Tokens(known);
        }
        let counted = count();
        self.store.put_counts(&[(digest, counted.0)]);
        counted
    }
}
