//! What a frame does to the tables, and what can be asked of them. Written once, so that the index on disk and tables
//! made by a scan cannot differ.

use super::error::IndexFault;
use super::frame::{Header, KeyHead, Note, key_head};
use super::meta::{Day, Removal};
use super::record::{Location, Record, Status};
use crate::action::{ActionKey, Digest};

/// The tables that all frames together make.
pub(super) trait Tables {
    /// Why a table could not be used.
    type Error;
    fn record(&mut self, key: &ActionKey) -> Result<Option<Record>, Self::Error>;
    fn set_record(&mut self, record: Record) -> Result<(), Self::Error>;
    /// Changes the record of a key, if there is one.
    fn change(&mut self, key: &ActionKey, change: impl FnOnce(&mut Record)) -> Result<(), Self::Error>;
    fn remove(&mut self, key: &ActionKey, why: Removal) -> Result<(), Self::Error>;
    fn latest(&mut self, coordinate: &Digest) -> Result<Option<ActionKey>, Self::Error>;
    fn set_latest(&mut self, coordinate: Digest, key: ActionKey) -> Result<(), Self::Error>;
    fn set_text(&mut self, digest: Digest, at: Location) -> Result<(), Self::Error>;
    fn set_count(&mut self, digest: Digest, count: u64) -> Result<(), Self::Error>;
    fn set_day(&mut self, key: KeyHead, day: Day) -> Result<(), Self::Error>;
}

/// What can be asked of the tables, on disk or in memory.
pub(super) trait Questions {
    fn find(&self, key: &ActionKey) -> Result<Option<Record>, IndexFault>;
    /// All records.
    fn records(&self) -> Result<Vec<Record>, IndexFault>;
    fn removed(&self, key: &ActionKey) -> Result<Option<Removal>, IndexFault>;
    fn latest_at(&self, coordinate: &Digest) -> Result<Option<ActionKey>, IndexFault>;
    fn text(&self, digest: &Digest) -> Result<Option<Location>, IndexFault>;
    fn count(&self, digest: &Digest) -> Result<Option<u64>, IndexFault>;
    fn day(&self, key: &KeyHead) -> Result<Option<Day>, IndexFault>;
}

/// Applies the frame at `at`. Applied in the order of the packs, later frames win.
pub(super) fn apply<T: Tables>(tables: &mut T, at: Location, header: &Header) -> Result<(), T::Error> {
    let key = ActionKey(header.key);
    match &header.note {
        Note::Reply(brief) => {
            tables.set_latest(brief.coordinate, key)?;
            header.record(at).map_or(Ok(()), |record| tables.set_record(record))
        }
        Note::Failure { brief, .. } => {
            // a failed attempt to replace an output does not take the output away
            if tables.record(&key)?.is_some_and(|record| record.is_usable()) {
                return Ok(());
            }
            if tables.latest(&brief.coordinate)?.is_none() {
                tables.set_latest(brief.coordinate, key)?;
            }
            header.record(at).map_or(Ok(()), |record| tables.set_record(record))
        }
        Note::Verdict(reading) => tables.change(&key, |record| {
            if record.raw == header.digest && !matches!(record.status, Status::Failed { .. }) {
                record.status = reading.into();
            }
        }),
        Note::Text => tables.set_text(header.key, at),
        Note::Counts(counts) => counts.iter().try_for_each(|(digest, count)| tables.set_count(*digest, *count)),
        Note::Touch { day, keys } => keys.iter().try_for_each(|key| tables.set_day(*key, *day)),
        Note::Remove { why, keys } => keys.iter().try_for_each(|(key, coordinate)| {
            tables.remove(key, *why)?;
            // where an entry was swept away, its tombstone still tells what was last at its place
            coordinate.map_or(Ok(()), |coordinate| tables.set_latest(coordinate, *key))
        }),
        Note::Latest(places) => places.iter().try_for_each(|(place, key)| tables.set_latest(*place, *key)),
        Note::Unknown => Ok(()),
    }
}

/// The day of an entry's last use: the noted one, or the day it came.
pub(super) fn last_used(record: &Record, noted: Option<Day>) -> Day {
    noted.unwrap_or_default().max(record.created_day())
}

/// The head by which a record's last use is noted.
pub(super) fn head_of(record: &Record) -> KeyHead {
    key_head(&record.key)
}
