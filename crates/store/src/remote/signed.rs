//! Signed notes, which writers put into a remote beside packs, and which writers are trusted.

use serde::{Deserialize, Serialize};

use super::keys::{PublicKey, SIGNATURE, SigningKey, TrustedWriter};
use crate::cache::now_ms;

/// Identifies a remote. What was signed for one remote is not valid for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemoteId(pub(super) [u8; 16]);

/// Whose signatures are accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    pub(super) writers: Vec<TrustedWriter>,
    /// The own key, whether or not it is trusted.
    pub(super) own: Option<PublicKey>,
    /// Whether unsigned packs and notes are accepted, too: the user named the folder.
    pub(super) unsigned: bool,
}

impl Trust {
    pub(super) fn writer(&self, key: &PublicKey) -> Option<&TrustedWriter> {
        self.writers.iter().find(|writer| writer.key == *key)
    }

    /// The name of a writer, or the key of one who is not trusted.
    pub(super) fn name_of(&self, key: &PublicKey) -> String {
        self.writer(key)
            .map_or_else(|| key.to_string(), |writer| writer.name.clone())
    }

    /// Whether a writer is accepted, the own key included; `None` if there is no signature.
    fn accepts(&self, writer: Option<&PublicKey>) -> bool {
        writer.map_or(self.unsigned, |key| {
            self.own == Some(*key) || self.writer(key).is_some()
        })
    }
}

/// The signature of a message; zeros where there is no key.
pub(super) fn sign(key: Option<&SigningKey>, message: &[u8]) -> [u8; SIGNATURE] {
    key.map_or([0; SIGNATURE], |key| key.sign(message))
}

/// A note before it is signed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    remote: RemoteId,
    /// `None` if it is unsigned.
    pub(super) writer: Option<PublicKey>,
    /// Milliseconds since 1970 by the writer's clock.
    pub(super) created: u64,
    pub(super) content: Vec<u8>,
}

/// A note as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct SignedNote {
    note: Vec<u8>,
    signature: Vec<u8>,
}

/// Signs a note. `tag` names its kind, so that it is valid for no other.
pub(super) fn seal(
    tag: &[u8],
    remote: RemoteId,
    key: Option<&SigningKey>,
    content: Vec<u8>,
) -> Result<Vec<u8>, postcard::Error> {
    let note = Note {
        remote,
        writer: key.map(SigningKey::public),
        created: now_ms(),
        content,
    };
    let note = postcard::to_stdvec(&note)?;
    let signature = sign(key, &[tag, &note].concat()).to_vec();
    postcard::to_stdvec(&SignedNote { note, signature })
}

/// The note in these bytes, if it is of this kind and for this remote and its writer is accepted.
pub(super) fn open(tag: &[u8], bytes: &[u8], remote: RemoteId, trust: &Trust) -> Option<Note> {
    let SignedNote {
        note: signed,
        signature,
    } = postcard::from_bytes(bytes).ok()?;
    let note: Note = postcard::from_bytes(&signed).ok()?;
    let is_accepted = note.remote == remote
        && trust.accepts(note.writer.as_ref())
        && note
            .writer
            .is_none_or(|key| key.verifies(&[tag, &signed].concat(), &signature));
    is_accepted.then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &[u8] = b"a test\0";

    #[test]
    fn a_note_counts_for_its_remote_alone_and_only_if_a_trusted_writer_signed_it() {
        let (key, stranger) = (
            SigningKey::generate().unwrap().0,
            SigningKey::generate().unwrap().0,
        );
        let remote = RemoteId([3; 16]);
        let trusting = |key: &SigningKey| Trust {
            own: Some(key.public()),
            ..Trust::default()
        };
        let bytes = seal(TAG, remote, Some(&key), b"content".to_vec()).unwrap();
        let read = |bytes: &[u8], remote, trust: &Trust| {
            open(TAG, bytes, remote, trust).map(|note| note.content)
        };
        assert_eq!(
            read(&bytes, remote, &trusting(&key)),
            Some(b"content".to_vec())
        );
        assert_eq!(
            read(&bytes, remote, &trusting(&stranger)),
            None,
            "its writer is not trusted"
        );
        assert_eq!(
            read(&bytes, RemoteId([4; 16]), &trusting(&key)),
            None,
            "it is of another remote"
        );
        assert!(
            open(b"another\0", &bytes, remote, &trusting(&key)).is_none(),
            "it is of another kind"
        );
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(read(&changed, remote, &trusting(&key)), None, "byte {at}");
        }
        let unsigned = seal(TAG, remote, None, b"content".to_vec()).unwrap();
        assert_eq!(read(&unsigned, remote, &trusting(&key)), None);
        let named = Trust {
            unsigned: true,
            ..Trust::default()
        };
        assert_eq!(read(&unsigned, remote, &named), Some(b"content".to_vec()));
        assert_eq!(
            read(&bytes, remote, &named),
            None,
            "a stranger's stays a stranger's"
        );
    }
}
