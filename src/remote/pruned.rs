//! The list of the segments that a prune deleted, signed by its writer. A segment that somebody puts back later has a
//! valid signature, but the list says not to use it. The list is next to the roll-ups, so that readers need no further
//! listing; each writer has one, and a prune replaces it. A name stays on it permanently and takes 32 bytes.
//!
//! Whoever can delete objects can also delete the list, so it does not protect against them.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::backend::Remote;
use super::error::RemoteError;
use super::keys::{PublicKey, SigningKey};
use super::segment::Namespace;
use crate::action::Digest;

const TAG: &[u8] = b"compeval pruned segments v1\0";
const NAME: &str = "index/pruned-";

#[derive(Debug, Serialize, Deserialize)]
struct List {
    namespace: Namespace,
    writer: PublicKey,
    segments: BTreeSet<Digest>,
}

/// A list as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct SignedList {
    list: Vec<u8>,
    signature: Vec<u8>,
}

/// An object that may be a list, and what is in it.
pub(super) type ListObject = (String, Bytes);

/// A list of a trusted writer.
#[derive(Debug)]
pub(super) struct PrunedSegments {
    pub(super) object: String,
    pub(super) writer: PublicKey,
    pub(super) segments: BTreeSet<Digest>,
}

/// Whether an object is a list of pruned segments.
pub(super) fn is_list(object: &str) -> bool {
    object.strip_prefix(NAME).is_some_and(|name| name.parse::<Digest>().is_ok())
}

/// The list in an object, if one of `writers` signed it for this remote.
pub(super) fn decode(
    object: &str,
    bytes: &[u8],
    namespace: Namespace,
    writers: &BTreeSet<PublicKey>,
) -> Option<PrunedSegments> {
    let SignedList { list: signed, signature } = postcard::from_bytes(bytes).ok()?;
    let List { namespace: of, writer, segments } = postcard::from_bytes(&signed).ok()?;
    let is_trusted = of == namespace && writers.contains(&writer);
    let is_signed = || writer.verifies(&[TAG, &signed].concat(), &signature);
    (is_trusted && is_signed()).then(|| PrunedSegments { object: object.to_owned(), writer, segments })
}

/// Writes down that these segments are pruned, in the place of the lists `earlier` of the same writer.
pub(super) async fn write(
    remote: &dyn Remote,
    namespace: Namespace,
    key: &SigningKey,
    earlier: &[PrunedSegments],
    pruned: BTreeSet<Digest>,
) -> Result<(), RemoteError> {
    let own = || earlier.iter().filter(|list| list.writer == key.public());
    let mut segments = pruned;
    segments.extend(own().flat_map(|list| &list.segments));
    let list = List { namespace, writer: key.public(), segments };
    let encode = |error| RemoteError::Failed {
        operation: "write to",
        url: NAME.to_owned(),
        what: format!("a list of segments cannot be encoded: {error}"),
    };
    let list = postcard::to_stdvec(&list).map_err(encode)?;
    let signature = key.sign(&[TAG, &list].concat()).to_vec();
    let bytes = postcard::to_stdvec(&SignedList { list, signature }).map_err(encode)?;
    let object = format!("{NAME}{}", Digest::of(&bytes));
    remote.write_if_absent(&object, Bytes::from(bytes)).await?;
    for old in own().filter(|list| list.object != object) {
        remote.delete(&old.object).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_counts_for_its_remote_alone_and_only_if_a_trusted_writer_signed_it() {
        let (key, stranger) = (SigningKey::generate().unwrap().0, SigningKey::generate().unwrap().0);
        let namespace = Namespace([3; 16]);
        let list = List { namespace, writer: key.public(), segments: [Digest::of("a")].into() };
        let list = postcard::to_stdvec(&list).unwrap();
        let signed = |by: &SigningKey| {
            let signature = by.sign(&[TAG, list.as_slice()].concat()).to_vec();
            postcard::to_stdvec(&SignedList { list: list.clone(), signature }).unwrap()
        };
        let read = |bytes: &[u8], namespace, by: &SigningKey| {
            decode("index/pruned-x", bytes, namespace, &[by.public()].into()).map(|list| list.segments)
        };
        assert_eq!(read(&signed(&key), namespace, &key), Some([Digest::of("a")].into()));
        assert_eq!(read(&signed(&stranger), namespace, &key), None, "another has signed it");
        assert_eq!(read(&signed(&key), namespace, &stranger), None, "its writer is not trusted");
        assert_eq!(read(&signed(&key), Namespace([4; 16]), &key), None, "it is of another remote");
        let bytes = signed(&key);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(read(&changed, namespace, &key), None, "byte {at}");
        }
    }
}
