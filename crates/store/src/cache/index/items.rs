//! The items of the index, byte by byte. A record is stored under the key of its action and nothing else. The other items
//! are in the same tree, under keys of other lengths, because sled can change one tree atomically, but not several.
//!
//! ```text
//! 32: action key          record, or why it was removed
//! 'p' place 8             key of the latest action there
//! 't' digest 32           where a text is
//! 'c' digest 32           tokens of a text
//! 'u' beginning of key 8  day of the last use
//! 'j' nonce 12, step      where a step of a batch is
//! 'w' pack 4              how far the pack is in the tree (`Watermark`)
//! 'n'                     number of the items above that describe entries, texts and steps
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cache::entry::{Record, RemovalReason};
use crate::cache::error::{IndexFault, IndexResult};
use crate::cache::packs::frame::KeyPrefix;
use crate::cache::packs::frame::{BatchNonce, BatchStep};
use crate::digest::{ActionKey, Digest};

/// The first bytes of the digest of a place. Explanations depend on what is stored under it, outputs do not.
pub(super) type PlacePrefix = [u8; 8];

/// The first byte of the value of an action that was removed; a record begins with its version.
const REMOVED: u8 = 0;

/// The name of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemKey {
    Action(ActionKey),
    Place(PlacePrefix),
    Text(Digest),
    Count(Digest),
    Use(KeyPrefix),
    Step(BatchNonce, BatchStep),
    Pack(u32),
    Total,
}

/// How much of a pack the tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watermark {
    /// The nonce of the pack's header: no other pack has it.
    pub nonce: u64,
    /// The end of the frames that the tree has.
    pub good: u64,
    /// The checksum of the last bytes before `good`. It differs in another pack that begins alike.
    pub tail: u32,
}

impl ItemKey {
    pub(super) fn encode(self) -> IndexResult<Vec<u8>> {
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

    pub(super) fn decode(bytes: &[u8]) -> IndexResult<ItemKey> {
        let decode = || {
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
        };
        decode().ok_or_else(|| IndexFault::broken("a key in it is unknown"))
    }
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag], bytes].concat()
}

/// What the index has of an action.
#[expect(clippy::large_enum_variant, reason = "one at a time, never stored")]
pub(super) enum ActionItem {
    Entry(Record),
    Removed(RemovalReason),
}

impl ActionItem {
    pub(super) fn encode(&self) -> IndexResult<Vec<u8>> {
        let encoded = match self {
            ActionItem::Entry(record) => record.encode(),
            ActionItem::Removed(why) => postcard::to_extend(why, vec![REMOVED]),
        };
        encoded.map_err(IndexFault::broken)
    }

    pub(super) fn decode(key: ActionKey, bytes: &[u8]) -> IndexResult<ActionItem> {
        match bytes.strip_prefix(&[REMOVED]) {
            Some(why) => decoded(why).map(ActionItem::Removed),
            None => Record::decode(key, bytes)
                .map(ActionItem::Entry)
                .ok_or_else(|| IndexFault::broken("a record in it cannot be read")),
        }
    }
}

pub(super) fn encoded<T: Serialize>(value: &T) -> IndexResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(IndexFault::broken)
}

pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> IndexResult<T> {
    postcard::from_bytes(bytes).map_err(IndexFault::broken)
}
