//! Token counts by text digest: kept in the cache, so that a warm run never loads the tokenizer.

use crate::action::Digest;
use crate::cache::{Lookup, Store};
use crate::fixture::count_tokens;
use crate::units::Tokens;

/// Counts tokens, each text once.
pub(super) struct TokenCounts<'e> {
    store: &'e Store,
}

impl<'e> TokenCounts<'e> {
    pub(super) fn new(store: &'e Store) -> TokenCounts<'e> {
        TokenCounts { store }
    }

    /// The tokens of `text`.
    pub(super) fn text(&self, text: &str) -> Tokens {
        self.named(Digest::of(text), text)
    }

    /// The tokens of a text that has a name already.
    pub(super) fn named(&self, digest: Digest, text: &str) -> Tokens {
        if let Some(known) = self.store.count(&digest) {
            return Tokens(known);
        }
        let counted = count_tokens(text);
        self.store.put_counts(&[(digest, counted.0)]);
        counted
    }
}
