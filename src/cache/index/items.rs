//! What the sled tree holds, byte by byte. The key of an action's record is the action's key and nothing else; the other
//! tables have keys of other lengths in the same tree, because sled changes one tree at once and not several.
//!
//! ```text
//! 32: action key          record, or why it was removed
//! 'p' place 8             key of the latest action there
//! 't' digest 32           where a text is
//! 'c' digest 32           tokens of a text
//! 'u' beginning of key 8  day of the last use
//! 'j' nonce 12, step      where a step of a batch is
//! 'w' pack 4              how far the pack is in the tree (`Watermark`)
//! 'n'                     number of items of the tables
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::tables::{PlacePrefix, Tables};
use crate::action::{ActionKey, Digest};
use crate::cache::entry::{EntryStatus, Record, clip_to};
use crate::cache::error::{IndexFault, IndexResult};
use crate::cache::packs::frame::KeyPrefix;
use crate::cache::packs::journal_steps::{BatchNonce, JournalStep};

/// The name of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cache) enum ItemKey {
    Action(ActionKey),
    Place(PlacePrefix),
    Text(Digest),
    Count(Digest),
    Use(KeyPrefix),
    Step(BatchNonce, JournalStep),
    Pack(u32),
    Total,
}

/// How much of a pack the tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::cache) struct Watermark {
    /// That of the pack's header: no other pack has it.
    pub(in crate::cache) nonce: u64,
    /// The offset that the frames before it end at.
    pub(in crate::cache) good: u64,
    /// The checksum of the last bytes before it: another pack that begins alike is told from this one.
    pub(in crate::cache) tail: u32,
}

/// The first byte of the value of an action that was removed; a record begins with its version.
const REMOVED: u8 = 0;

/// An item as the tree has it. Without a value, the tree does not have it.
pub(in crate::cache) struct Item {
    pub(super) key: Vec<u8>,
    pub(in crate::cache) value: Option<Vec<u8>>,
}

impl ItemKey {
    pub(super) fn encode(self) -> IndexResult<Vec<u8>> {
        let tagged = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
        Ok(match self {
            ItemKey::Action(key) => key.0.0.to_vec(),
            ItemKey::Place(place) => tagged(b'p', &place),
            ItemKey::Text(digest) => tagged(b't', &digest.0),
            ItemKey::Count(digest) => tagged(b'c', &digest.0),
            ItemKey::Use(key) => tagged(b'u', &key),
            ItemKey::Step(nonce, step) => tagged(b'j', &encoded(&(nonce, step))?),
            ItemKey::Pack(id) => tagged(b'w', &id.to_be_bytes()),
            ItemKey::Total => vec![b'n'],
        })
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<ItemKey> {
        if let Ok(key) = bytes.try_into() {
            return Some(ItemKey::Action(ActionKey(Digest(key))));
        }
        let (tag, rest) = bytes.split_first()?;
        Some(match tag {
            b'p' => ItemKey::Place(rest.try_into().ok()?),
            b't' => ItemKey::Text(Digest(rest.try_into().ok()?)),
            b'c' => ItemKey::Count(Digest(rest.try_into().ok()?)),
            b'u' => ItemKey::Use(rest.try_into().ok()?),
            b'j' => {
                let (nonce, step) = postcard::from_bytes(rest).ok()?;
                ItemKey::Step(nonce, step)
            }
            b'w' => ItemKey::Pack(u32::from_be_bytes(rest.try_into().ok()?)),
            b'n' if rest.is_empty() => ItemKey::Total,
            _ => return None,
        })
    }
}

/// An item as the tree should have it now.
pub(in crate::cache) fn item(tables: &Tables, key: ItemKey) -> IndexResult<Item> {
    let value = match key {
        ItemKey::Action(action) => match (tables.records.get(&action), tables.removed.get(&action)) {
            (Some(record), _) => Some(encode_record(record)?),
            (None, Some(why)) => Some(postcard::to_extend(why, vec![REMOVED]).map_err(IndexFault::broken)?),
            (None, None) => None,
        },
        ItemKey::Place(place) => tables.latest_of(&place).map(|key| key.0.0.to_vec()),
        ItemKey::Text(digest) => tables.texts.get(&digest).map(encoded).transpose()?,
        ItemKey::Count(digest) => tables.counts.get(&digest).map(encoded).transpose()?,
        ItemKey::Use(key) => tables.days.get(&key).map(encoded).transpose()?,
        ItemKey::Step(nonce, step) => tables.journal.get(&(nonce, step)).map(encoded).transpose()?,
        ItemKey::Total => Some(encoded(&tables.items())?),
        ItemKey::Pack(_) => None,
    };
    Ok(Item { key: key.encode()?, value })
}

/// Takes an item of the tree into the tables.
pub(super) fn take_item(tables: &mut Tables, key: ItemKey, value: &[u8]) -> IndexResult<()> {
    match key {
        ItemKey::Action(action) => match value.strip_prefix(&[REMOVED]) {
            Some(why) => tables.remove(&action, decoded(why)?),
            None => tables.set_record(
                Record::decode(action, value).ok_or_else(|| IndexFault::broken("a record cannot be read"))?,
            ),
        },
        ItemKey::Place(place) => {
            let key = value.try_into().map_err(|_| IndexFault::broken("a key has the wrong length"))?;
            tables.set_latest(place, ActionKey(Digest(key)));
        }
        ItemKey::Text(digest) => tables.set_text(digest, decoded(value)?),
        ItemKey::Count(digest) => tables.set_count(digest, decoded(value)?),
        ItemKey::Use(key) => tables.set_day(key, decoded(value)?),
        ItemKey::Step(nonce, step) => tables.set_step((nonce, step), decoded(value)?),
        ItemKey::Pack(_) | ItemKey::Total => {}
    }
    Ok(())
}

/// Encodes a record. It has the beginning of what an unusable reply or a failure says; all of it is in the pack.
fn encode_record(record: &Record) -> IndexResult<Vec<u8>> {
    let short = |text: &str| clip_to(text, 32).into();
    let encoded = match &record.status {
        EntryStatus::Unparsed | EntryStatus::Output { .. } => record.encode(),
        EntryStatus::Malformed { parser, fault } => {
            let status = EntryStatus::Malformed { parser: *parser, fault: short(fault) };
            Record { status, ..record.clone() }.encode()
        }
        EntryStatus::Failed { class, message } => {
            let status = EntryStatus::Failed { class: short(class), message: short(message) };
            Record { status, ..record.clone() }.encode()
        }
    };
    encoded.map_err(IndexFault::broken)
}

pub(super) fn encoded<T: Serialize>(value: &T) -> IndexResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(IndexFault::broken)
}

pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> IndexResult<T> {
    postcard::from_bytes(bytes).map_err(IndexFault::broken)
}
