//! Which frames of a pack are live, and what is written in their place to another pack.

use std::io;

use crate::cache::entry::{
    Day, EntryStatus, FrameLocation, ParseResult, ParsedBody, Record, RemovalReason,
};
use crate::cache::index::Tables;
use crate::cache::packs::frame::{self, FrameContent, FrameHeader, KeyPrefix};
use crate::cache::packs::packed::PortableFrame;
use crate::cache::packs::shared_fields::SharedFields;
use crate::digest::{ActionKey, Digest};

/// Decides which frames of a pack are live, by the tables.
pub(super) struct LiveFrames<'a> {
    pub(super) tables: &'a Tables,
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
        let is_remade = matches!(header.content, FrameContent::Fields(_));
        !is_remade && !matches!(self.fate(at, header), FrameAction::Copy)
    }

    /// The frames that take over what is live in the frame at `at`. `read` returns its bytes, and `shared` has the
    /// fields of its pack.
    ///
    /// A reply is followed by its parse result, which would otherwise come before it, and by the latest action of its
    /// place, because the reply would otherwise become the latest.
    pub(super) fn take_over(
        &self,
        at: FrameLocation,
        header: &FrameHeader,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
        shared: &SharedFields,
    ) -> io::Result<Vec<PortableFrame>> {
        let bytes = match self.fate(at, header) {
            FrameAction::Drop => return Ok(Vec::new()),
            FrameAction::Replace(bytes) => bytes,
            FrameAction::Copy => read()?,
        };
        let mut frames = vec![PortableFrame::read(bytes, shared)];
        if let (FrameContent::Reply(summary), Some(record)) =
            (&header.content, self.tables.find(&ActionKey(header.key)))
        {
            if let Some(result) = ParseResult::from_status(&record.status) {
                frames.push(PortableFrame::Parsed(vec![ParsedBody::new(
                    record.key, record.raw, result,
                )]));
            }
            if let Some(latest) = self
                .tables
                .latest_at(&summary.place)
                .filter(|latest| *latest != record.key)
            {
                let latest = frame::latest(&[(summary.place, latest)]).map_err(io::Error::other)?;
                frames.push(PortableFrame::Other(latest));
            }
        }
        Ok(frames)
    }

    fn fate(&self, at: FrameLocation, header: &FrameHeader) -> FrameAction {
        let key = ActionKey(header.key);
        let alive = match &header.content {
            FrameContent::Reply(_) | FrameContent::Failure { .. } => self
                .tables
                .find(&key)
                .is_some_and(|record| record.location == at),
            FrameContent::ParseResult(result) => {
                let record = self
                    .tables
                    .find(&key)
                    .filter(|record| record.raw == header.digest);
                record.is_some_and(|record| has_result(&record, result))
            }
            FrameContent::Text | FrameContent::Memo => self.tables.text(&header.key) == Some(at),
            FrameContent::Journal(nonce, step) => {
                self.tables.journal.get(&(*nonce, *step)) == Some(&at)
            }
            FrameContent::Counts(_) | FrameContent::Unknown => true,
            // written anew for the entries that are copied
            FrameContent::Fields(_) => false,
            FrameContent::ParseResults(results) => return self.results(results),
            FrameContent::Touch { day, keys } => return self.touches(*day, keys),
            FrameContent::Remove { why, keys } => return self.tombstones(at, *why, keys),
            FrameContent::Latest(places) => return self.latest(places),
        };
        if alive {
            FrameAction::Copy
        } else {
            FrameAction::Drop
        }
    }

    /// Keeps the parse results that entries have.
    fn results(&self, results: &[ParsedBody]) -> FrameAction {
        shortened(
            results,
            |parsed| self.is_current(parsed),
            frame::parse_results,
        )
    }

    fn is_current(&self, parsed: &ParsedBody) -> bool {
        let record = self
            .tables
            .find(&parsed.key)
            .filter(|record| parsed.is_result_for(record));
        record.is_some_and(|record| has_result(&record, &parsed.result))
    }

    /// Keeps only the last use of each entry.
    fn touches(&self, day: Day, keys: &[KeyPrefix]) -> FrameAction {
        shortened(
            keys,
            |key| self.tables.day(key) == Some(day),
            |last| frame::touch(day, last),
        )
    }

    /// Keeps the actions that are the latest of their places and exist.
    fn latest(&self, places: &[(Digest, ActionKey)]) -> FrameAction {
        shortened(
            places,
            |(place, key)| {
                self.tables.latest_at(place) == Some(*key) && self.tables.find(key).is_some()
            },
            frame::latest,
        )
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
        let mut kept = Vec::new();
        for (key, place) in keys
            .iter()
            .filter(|(key, _)| self.tables.find(key).is_none())
        {
            let latest = place.filter(|place| self.tables.latest_at(place) == Some(*key));
            if !self.older_go || (is_remembered && latest.is_some()) {
                kept.push((*key, latest));
            }
        }
        match kept.is_empty() {
            true => FrameAction::Drop,
            false if kept == keys => FrameAction::Copy,
            // if the shorter list cannot be encoded, the longer one does no harm
            false => frame::remove(why, &kept).map_or(FrameAction::Copy, FrameAction::Replace),
        }
    }
}

/// Whether a record has this parse result. What was wrong with an unusable reply is not compared: the tree has only the
/// beginning of it.
fn has_result(record: &Record, result: &ParseResult) -> bool {
    match (&record.status, result) {
        (EntryStatus::Malformed { parser: known, .. }, ParseResult::Malformed { parser, .. }) => {
            known == parser
        }
        (status, result) => *status == EntryStatus::from(result),
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
