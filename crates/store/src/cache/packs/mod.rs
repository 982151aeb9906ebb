//! Packs, the source of truth: append-only files of frames that describe themselves, in a folder that is locked.

pub(super) mod shared_fields;
pub(super) mod explanation;
pub(super) mod frame;
pub(super) mod packed;
pub(super) mod folder;
pub(super) mod pack;
pub(super) mod journal_steps;
