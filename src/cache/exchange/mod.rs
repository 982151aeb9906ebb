//! Entries that leave or enter a cache: exports, imports, segments of a shared cache.

pub(super) mod transfer;
pub(super) mod share;
