//! The state of an open store: appending to the newest pack, the index beside it, recovery after a crash.

pub(super) mod active_pack;
pub(super) mod recovery;
pub(super) mod inner;
pub(super) mod writer;
