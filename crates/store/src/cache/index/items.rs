//! Converts tables to items of the sled tree, and back.

use super::Tables;
use super::item_key::{Item, ItemKey, decoded, encoded};
use crate::cache::entry::{EntryStatus, Record, clip_to};
use crate::cache::error::{IndexFault, IndexResult};
use crate::digest::{ActionKey, Digest};

/// The first byte of the value of an action that was removed; a record begins with its version.
const REMOVED: u8 = 0;

/// An item as the tree should have it now.
pub(crate) fn item(tables: &Tables, key: ItemKey) -> IndexResult<Item> {
    let value = match key {
        ItemKey::Action(action) => match (tables.find(&action), tables.removed.get(&action)) {
            (Some(record), _) => Some(encode_record(&record)?),
            (None, Some(why)) => {
                Some(postcard::to_extend(why, vec![REMOVED]).map_err(IndexFault::broken)?)
            }
            (None, None) => None,
        },
        ItemKey::Place(place) => tables.latest_of(&place).map(|key| key.0.0.to_vec()),
        ItemKey::Text(digest) => tables.texts.get(&digest).map(encoded).transpose()?,
        ItemKey::Count(digest) => tables.counts.get(&digest).map(encoded).transpose()?,
        ItemKey::Use(key) => tables.days.get(&key).map(encoded).transpose()?,
        ItemKey::Step(nonce, step) => tables
            .journal
            .get(&(nonce, step))
            .map(encoded)
            .transpose()?,
        ItemKey::Total => Some(encoded(&tables.item_count())?),
        ItemKey::Pack(_) => None,
    };
    Ok(Item {
        key: key.encode()?,
        value,
    })
}

/// Adds an item of the tree to the tables.
pub(super) fn add_item(tables: &mut Tables, key: ItemKey, value: &[u8]) -> IndexResult<()> {
    match key {
        ItemKey::Action(action) => match value.strip_prefix(&[REMOVED]) {
            Some(why) => tables.remove(&action, decoded(why)?),
            None => tables.set_record(
                Record::decode(action, value)
                    .ok_or_else(|| IndexFault::broken("a record cannot be read"))?,
            ),
        },
        ItemKey::Place(place) => {
            let key = value
                .try_into()
                .map_err(|_| IndexFault::broken("a key has the wrong length"))?;
            tables.set_latest(place, ActionKey(Digest(key)));
        }
        ItemKey::Text(digest) => tables.set_text(digest, decoded(value)?),
        ItemKey::Count(digest) => tables.set_count(digest, decoded(value)?),
        ItemKey::Use(key) => tables.set_day(key, decoded(value)?),
        ItemKey::Step(nonce, step) => tables.set_step(nonce, step, decoded(value)?),
        ItemKey::Pack(_) | ItemKey::Total => {}
    }
    Ok(())
}

/// Encodes a record. The messages of unusable replies and failures are cut; the pack has them in full.
fn encode_record(record: &Record) -> IndexResult<Vec<u8>> {
    const SHORT: usize = 32;
    let encoded = match &record.status {
        EntryStatus::Unparsed | EntryStatus::Output { .. } => record.encode(),
        EntryStatus::Malformed { parser, fault } => {
            let status = EntryStatus::Malformed {
                parser: *parser,
                fault: clip_to(fault, SHORT).into(),
            };
            Record {
                status,
                ..record.clone()
            }
            .encode()
        }
        EntryStatus::Failed { class, message } => {
            let status = EntryStatus::Failed {
                class: clip_to(class, SHORT).into(),
                message: clip_to(message, SHORT).into(),
            };
            Record {
                status,
                ..record.clone()
            }
            .encode()
        }
    };
    encoded.map_err(IndexFault::broken)
}
