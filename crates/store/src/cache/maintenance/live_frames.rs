//! Which frames of a pack are live, and what is written in their place to another pack.

use std::collections::BTreeSet;
use std::io;

use crate::cache::entry::{EntryStatus, FrameLocation, ParseResult, RemovalReason};
use crate::cache::index::Index;
use crate::cache::packs::frame::{self, FrameContent, FrameHeader};
use crate::digest::{ActionKey, Digest};

/// Decides which frames of a pack are live, by an index that was read from the packs.
pub(super) struct LiveFrames<'a> {
    pub(super) index: &'a Index,
    /// The packs that go.
    pub(super) gone: &'a BTreeSet<u32>,
    /// Whether all older packs go too, so that no dead frame is left for a tombstone to cover.
    pub(super) older_go: bool,
    /// Removals from here on are remembered.
    pub(super) remember_from: Option<FrameLocation>,
}

/// What happens to a frame when its pack is removed.
enum FrameAction {
    Copy,
    Replace(Vec<u8>),
    Drop,
}

impl LiveFrames<'_> {
    /// Whether a frame, or a part of it, is dead.
    pub(super) fn is_dead(&self, at: FrameLocation, header: &FrameHeader) -> bool {
        !matches!(self.fate(at, header), FrameAction::Copy)
    }

    /// The frames that take over what is live in the frame at `at`. `read` returns its bytes.
    ///
    /// A reply is followed by its parse result, which would otherwise come before it, and by the latest action of its
    /// place, because the reply would otherwise become the latest.
    pub(super) fn take_over(
        &self,
        at: FrameLocation,
        header: &FrameHeader,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<Vec<u8>>> {
        let mut frames = match self.fate(at, header) {
            FrameAction::Drop => return Ok(Vec::new()),
            FrameAction::Replace(bytes) => vec![bytes],
            FrameAction::Copy => vec![read()?],
        };
        let record = self.index.find(&ActionKey(header.key));
        if let (FrameContent::Reply(summary), Some(record)) = (&header.content, record) {
            if let Some(result) = ParseResult::from_status(&record.status) {
                let parsed = frame::parse_result(record.key, record.raw, &result);
                frames.push(parsed.map_err(io::Error::other)?);
            }
            let latest = self.index.latest_at(&summary.place);
            if let Some(latest) = latest.filter(|latest| *latest != record.key) {
                let latest = frame::latest(&[(summary.place, latest)]);
                frames.push(latest.map_err(io::Error::other)?);
            }
        }
        Ok(frames)
    }

    fn fate(&self, at: FrameLocation, header: &FrameHeader) -> FrameAction {
        let index = self.index;
        let record = || index.find(&ActionKey(header.key));
        let alive = match &header.content {
            FrameContent::Reply(_) | FrameContent::Failure { .. } => {
                record().is_some_and(|record| record.location == at)
            }
            // written again with the entry, if that goes too
            FrameContent::ParseResult(result) => record().is_some_and(|record| {
                record.raw == header.digest
                    && record.status == EntryStatus::from(result)
                    && !self.gone.contains(&record.location.pack)
            }),
            FrameContent::Text | FrameContent::Memo => index.text(&header.key) == Some(at),
            FrameContent::Journal(nonce, step) => index.step(*nonce, *step) == Some(at),
            FrameContent::Counts(_) | FrameContent::Unknown => true,
            FrameContent::Touch { day, keys } => {
                let is_last = |key: &_| index.day(key) == Some(*day);
                return shortened(keys, is_last, |last| frame::touch(*day, last));
            }
            FrameContent::Remove { why, keys } => return self.tombstones(at, *why, keys),
            FrameContent::Latest(places) => {
                let is_current = |(place, key): &(Digest, ActionKey)| {
                    index.latest_at(place) == Some(*key) && index.find(key).is_some()
                };
                return shortened(places, is_current, frame::latest);
            }
        };
        if alive {
            FrameAction::Copy
        } else {
            FrameAction::Drop
        }
    }

    /// Keeps a tombstone while an older pack may contain its entry, or while it is remembered and was the latest of its
    /// place.
    fn tombstones(
        &self,
        at: FrameLocation,
        why: RemovalReason,
        keys: &[(ActionKey, Option<Digest>)],
    ) -> FrameAction {
        let is_remembered = self.remember_from.is_some_and(|from| at >= from);
        let is_kept = |(key, place): &(ActionKey, Option<Digest>)| {
            let is_latest = || place.is_some_and(|at| self.index.latest_at(&at) == Some(*key));
            self.index.find(key).is_none() && (!self.older_go || (is_remembered && is_latest()))
        };
        shortened(keys, is_kept, |kept| frame::remove(why, kept))
    }
}

/// What happens to a frame that lists `items`, some of which are kept.
fn shortened<T: Clone>(
    items: &[T],
    is_kept: impl Fn(&T) -> bool,
    frame: impl FnOnce(&[T]) -> Result<Vec<u8>, postcard::Error>,
) -> FrameAction {
    let kept: Vec<T> = items.iter().filter(|item| is_kept(item)).cloned().collect();
    match kept.len() {
        0 => FrameAction::Drop,
        len if len == items.len() => FrameAction::Copy,
        // if the shorter list cannot be encoded, the longer one does no harm
        _ => frame(&kept).map_or(FrameAction::Copy, FrameAction::Replace),
    }
}
