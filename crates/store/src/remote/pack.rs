//! The format of a pack: an immutable object of packed entries.
//!
//! ```text
//! magic 8 | packed entries and texts | footer | signature 64 | footer length 4 | version 4 | magic 8
//! ```
//! Numbers are little-endian. The footer (postcard) says who wrote the pack for which remote, and has key, offset and
//! digest of each item. The signature covers a domain tag and the footer, so that it is valid for nothing else, and an
//! item can be verified without the rest of the pack. The object is named by the digest of footer and signature.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::keys::{PublicKey, SIGNATURE, SigningKey};
use super::signed::{RemoteId, sign};
use crate::cache::FORMAT;
use crate::digest::Digest;

const MAGIC: [u8; 8] = *b"CEvPPACK";
const END_MAGIC: [u8; 8] = *b"CEvPPEND";
const VERSION: u32 = FORMAT;
/// Bytes after the signature: length, version, magic.
const END: usize = 16;
const TAG: &[u8] = b"compeval pack v1\0";
/// A longer footer is damage.
const MAX_FOOTER: usize = 64 << 20;

/// The folder of packs in a remote.
pub(super) const FOLDER: &str = "packs";

/// How many bytes of the end of a pack are read first. Few footers are longer: an item takes about 75 bytes, and a pack
/// has at most about 7,000 small entries.
pub(super) const TAIL: u64 = 512 << 10;

/// The name of the object of a pack.
pub(super) fn object_of(name: &Digest) -> String {
    format!("{FOLDER}/{name}")
}

/// The part of a run that made the entries in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOrigin {
    /// Names the division of the work into parts.
    pub assignment: Digest,
    /// From 1.
    pub index: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ItemKind {
    Entry,
    Text,
}

/// A packed entry or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackItem {
    pub(super) kind: ItemKind,
    /// The key of the entry, or the digest of the text.
    pub(super) key: Digest,
    pub(super) offset: u64,
    pub(super) bytes: u32,
    /// The digest of the packed bytes.
    pub(super) digest: Digest,
}

impl PackItem {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.bytes))
    }

    /// The bytes of the item in `known`, which are bytes of its pack from `start` on; `None` if they do not contain all
    /// of it.
    pub(super) fn find_in<'b>(&self, known: &'b [u8], start: u64) -> Option<&'b [u8]> {
        let from = usize::try_from(self.offset.checked_sub(start)?).ok()?;
        known.get(from..from.checked_add(self.bytes as usize)?)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Footer {
    pub(super) remote_id: RemoteId,
    /// `None` if it is unsigned.
    pub(super) writer: Option<PublicKey>,
    pub(super) part: Option<PartOrigin>,
    /// Milliseconds since 1970 by the writer's clock.
    pub(super) created: u64,
    pub(super) items: Vec<PackItem>,
}

/// The beginning of a footer: enough to verify its signature before anything is decoded whose size the footer decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct FooterHead {
    pub(super) remote_id: RemoteId,
    pub(super) writer: Option<PublicKey>,
}

/// The end of a pack as it is stored, also in index objects: footer and signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignedFooter {
    pub(super) footer: Vec<u8>,
    signature: Vec<u8>,
}

/// Why a pack is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackFault {
    Damaged(&'static str),
    /// Written by a newer version of this program.
    Newer,
}

/// What the end of a pack contains.
#[derive(Debug)]
pub(super) enum PackEnd {
    Footer(SignedFooter),
    /// The footer is longer: this many bytes from the end are needed.
    Needs(u64),
}

impl SignedFooter {
    /// Reads the end of a pack.
    pub(super) fn from_tail(tail: &[u8]) -> Result<PackEnd, PackFault> {
        let cut = PackFault::Damaged("it is cut off");
        let (rest, end) = tail.split_last_chunk::<END>().ok_or(cut)?;
        if end[8..] != END_MAGIC {
            return Err(PackFault::Damaged("its end is not that of a pack"));
        }
        let [length, version] =
            [0, 4].map(|at| u32::from_le_bytes([end[at], end[at + 1], end[at + 2], end[at + 3]]));
        let length = length as usize;
        if version > VERSION {
            return Err(PackFault::Newer);
        }
        if version < VERSION {
            return Err(PackFault::Damaged("its version never existed"));
        }
        if length > MAX_FOOTER {
            return Err(PackFault::Damaged("its footer has an impossible length"));
        }
        let needed = length + SIGNATURE;
        let Some(signed) = rest
            .len()
            .checked_sub(needed)
            .and_then(|from| rest.get(from..))
        else {
            return Ok(PackEnd::Needs((needed + END) as u64));
        };
        let (footer, signature) = signed.split_at(length);
        Ok(PackEnd::Footer(SignedFooter {
            footer: footer.to_vec(),
            signature: signature.to_vec(),
        }))
    }

    /// In bytes.
    pub(super) fn len(&self) -> u64 {
        (self.footer.len() + self.signature.len()) as u64
    }

    /// The name of the pack.
    pub(super) fn name(&self) -> Digest {
        Digest::hash([self.footer.as_slice(), &self.signature].concat())
    }

    /// The remote and the writer that the footer names. Not verified.
    pub(super) fn head(&self) -> Result<FooterHead, PackFault> {
        let head = postcard::take_from_bytes(&self.footer);
        head.map(|(head, _)| head)
            .map_err(|_| PackFault::Damaged("its footer cannot be read"))
    }

    /// The whole footer. The caller has verified its signature.
    pub(super) fn decode(&self) -> Result<Footer, PackFault> {
        postcard::from_bytes(&self.footer)
            .map_err(|_| PackFault::Damaged("its footer cannot be read"))
    }

    /// Whether the writer that the footer names has signed it.
    pub(super) fn is_signed_by(&self, writer: &PublicKey) -> bool {
        writer.verifies(&signed_bytes(&self.footer), &self.signature)
    }
}

fn signed_bytes(footer: &[u8]) -> Vec<u8> {
    [TAG, &VERSION.to_le_bytes(), footer].concat()
}

/// A pack under construction.
#[derive(Debug, Default)]
pub(super) struct PackBuilder {
    bytes: Vec<u8>,
    items: Vec<PackItem>,
}

impl PackBuilder {
    pub(super) fn add(&mut self, kind: ItemKind, key: Digest, packed: &[u8]) {
        if self.bytes.is_empty() {
            self.bytes.extend(MAGIC);
        }
        let (offset, bytes) = (self.bytes.len() as u64, packed.len() as u32);
        self.items.push(PackItem {
            kind,
            key,
            offset,
            bytes,
            digest: Digest::hash(packed),
        });
        self.bytes.extend(packed);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn items(&self) -> &[PackItem] {
        &self.items
    }

    /// Signs the pack. Returns its footer and all of its bytes.
    pub(super) fn finish(
        self,
        remote_id: RemoteId,
        key: Option<&SigningKey>,
        part: Option<PartOrigin>,
        created: u64,
    ) -> Result<(SignedFooter, Bytes), postcard::Error> {
        let footer = Footer {
            remote_id,
            writer: key.map(SigningKey::public),
            part,
            created,
            items: self.items,
        };
        let footer = postcard::to_stdvec(&footer)?;
        let signature = sign(key, &signed_bytes(&footer)).to_vec();
        let signed = SignedFooter { footer, signature };
        let mut bytes = self.bytes;
        bytes.extend(&signed.footer);
        bytes.extend(&signed.signature);
        bytes.extend((signed.footer.len() as u32).to_le_bytes());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(END_MAGIC);
        Ok((signed, bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack() -> (SigningKey, SignedFooter, Bytes) {
        let key = SigningKey::generate().unwrap().0;
        let mut builder = PackBuilder::default();
        builder.add(ItemKind::Entry, Digest::hash("a"), b"first");
        builder.add(ItemKind::Text, Digest::hash("b"), b"second");
        let (signed, bytes) = builder
            .finish(RemoteId([3; 16]), Some(&key), None, 42)
            .unwrap();
        (key, signed, bytes)
    }

    #[test]
    fn a_pack_is_read_from_its_end() {
        let (key, signed, bytes) = pack();
        let Ok(PackEnd::Footer(read)) = SignedFooter::from_tail(&bytes) else {
            panic!()
        };
        assert_eq!((&read, read.name()), (&signed, signed.name()));
        assert!(read.is_signed_by(&key.public()));
        let footer = read.decode().unwrap();
        assert_eq!(
            read.head().unwrap(),
            FooterHead {
                remote_id: footer.remote_id,
                writer: footer.writer
            }
        );
        assert_eq!(
            (footer.writer, footer.created, footer.remote_id),
            (Some(key.public()), 42, RemoteId([3; 16]))
        );
        let item = footer.items[1];
        let packed = &bytes[item.offset as usize..item.offset as usize + item.bytes as usize];
        assert_eq!(
            (packed, Digest::hash(packed)),
            (b"second".as_slice(), item.digest)
        );
        let tail = &bytes[bytes.len() - 40..];
        assert!(
            matches!(SignedFooter::from_tail(tail), Ok(PackEnd::Needs(n)) if n < bytes.len() as u64)
        );
    }

    #[test]
    fn the_bytes_of_a_footer_are_pinned() {
        let writer = "cepub_6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw"
            .parse()
            .unwrap();
        let item = PackItem {
            kind: ItemKind::Text,
            key: Digest([1; 32]),
            offset: 300,
            bytes: 5,
            digest: Digest([2; 32]),
        };
        let footer = Footer {
            remote_id: RemoteId([3; 16]),
            writer: Some(writer),
            part: None,
            created: 42,
            items: vec![item],
        };
        let bytes = postcard::to_stdvec(&footer).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (remote_id, key, digest) = ("03".repeat(16), "01".repeat(32), "02".repeat(32));
        let writer = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
        assert_eq!(
            hex,
            format!("{remote_id}01{writer}002a0101{key}ac0205{digest}")
        );
    }

    #[test]
    fn any_changed_byte_of_the_end_is_noticed() {
        let (key, signed, bytes) = pack();
        let from = bytes.len() - signed.footer.len() - SIGNATURE - END;
        for at in from..bytes.len() {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1;
            if let Ok(PackEnd::Footer(read)) = SignedFooter::from_tail(&bytes) {
                assert!(
                    read.name() != signed.name() && !read.is_signed_by(&key.public()),
                    "byte {at}"
                );
            }
        }
    }

    #[test]
    fn a_newer_version_is_not_damage() {
        let (.., bytes) = pack();
        let mut bytes = bytes.to_vec();
        let at = bytes.len() - 12;
        bytes[at] = 9;
        assert_eq!(
            SignedFooter::from_tail(&bytes).unwrap_err(),
            PackFault::Newer
        );
        assert!(matches!(
            SignedFooter::from_tail(&bytes[..20]),
            Err(PackFault::Damaged(_))
        ));
    }
}
