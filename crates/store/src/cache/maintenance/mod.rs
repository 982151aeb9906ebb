//! What keeps a cache small and sound: prune, also without room, and verify.

mod live_frames;
pub(super) mod prune;
pub(super) mod verify;
pub(super) mod without_room;
