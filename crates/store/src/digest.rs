//! Digests: BLAKE3 of bytes, and of framed fields in a fixed order.

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use base::redaction;

/// A BLAKE3 hash. Serialised as 64 hexadecimal digits in text formats and as 32 bytes in binary ones.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(HexVisitor)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Digest)
        }
    }
}

/// Parses hexadecimal digits without allocating.
struct HexVisitor;

impl Visitor<'_> for HexVisitor {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 hexadecimal digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
        text.parse().map_err(E::custom)
    }
}

impl Digest {
    /// The digest of these bytes.
    pub fn hash(bytes: impl AsRef<[u8]>) -> Digest {
        Digest(*blake3::hash(bytes.as_ref()).as_bytes())
    }

    /// The digest of all that a stream has, of which little is in memory at a time.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_stream(stream: impl std::io::Read) -> std::io::Result<Digest> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(stream)?;
        Ok(Digest(*hasher.finalize().as_bytes()))
    }

    /// The digest of plain data as compact JSON.
    pub fn of_json(data: &impl Serialize) -> Digest {
        // Text keys, numbers and lists: serializing them cannot fail.
        Digest::hash(
            serde_json::to_vec(data).unwrap_or_else(|error| unreachable!("plain data: {error}")),
        )
    }

    /// All 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// The first twelve digits, for display.
    pub fn short(&self) -> String {
        self.hex().chars().take(12).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.short())
    }
}

impl FromStr for Digest {
    type Err = blake3::HexError;
    fn from_str(text: &str) -> Result<Digest, Self::Err> {
        Ok(Digest(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

/// Identifies an action: the hash of everything that determines its output.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize,
)]
pub struct ActionKey(pub Digest);

impl fmt::Display for ActionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Hashes named fields. Every name and value is preceded by its length, so that moving bytes from one field to the next
/// changes the digest.
pub struct DigestBuilder(Vec<u8>);

impl DigestBuilder {
    /// `context` separates kinds of values: the same fields give different digests in different contexts.
    pub fn new(context: &str) -> DigestBuilder {
        // collected and hashed in one call: several times faster than updating the hasher with many short fields
        let mut builder = DigestBuilder(Vec::with_capacity(1024));
        builder.push(context.as_bytes());
        builder
    }

    fn push(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }

    /// Adds a field. Order counts.
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut DigestBuilder {
        self.push(name.as_bytes());
        self.push(value.as_ref());
        self
    }

    /// The digest of all fields.
    pub fn finish(&self) -> Digest {
        Digest::hash(&self.0)
    }
}

/// The key of the codes in objects of a remote.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteKey([u8; 32]);

impl RemoteKey {
    /// The least characters of the secret that a key is derived from.
    pub const LEAST: usize = 16;

    /// The key that belongs to a secret, which is never shown from now on; `None` if it is too short to be one.
    pub fn from_secret(secret: &str) -> Option<RemoteKey> {
        let secret = secret.trim();
        if secret.chars().count() < RemoteKey::LEAST {
            return None;
        }
        redaction::add_key(secret);
        let context = "compeval 2026 code of a remote object";
        Some(RemoteKey(blake3::derive_key(context, secret.as_bytes())))
    }

    /// The code of a message and its name, which proves that a holder of the key wrote it.
    pub(crate) fn code(&self, name: &str, message: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(message);
        hasher.finalize()
    }
}

impl fmt::Debug for RemoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_encoding_is_pinned() {
        let digest = DigestBuilder::new("test").field("a", "b").finish();
        assert_eq!(
            digest.hex(),
            "528895021722fdc843f9c15c053d288d3b7eee2128b18ae0de4adc488be1a14a"
        );
    }

    #[test]
    fn text_formats_have_digits_and_binary_ones_bytes() {
        let digest = Digest::hash("x");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, format!("\"{}\"", digest.hex()));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"abc\"").is_err());
        let bytes = postcard::to_stdvec(&digest).unwrap();
        assert_eq!(
            (bytes.len(), postcard::from_bytes::<Digest>(&bytes).unwrap()),
            (32, digest)
        );
    }

    proptest! {
        #[test]
        fn no_two_lists_of_fields_collide(a in ".{0,8}", b in ".{0,8}", c in ".{0,8}", d in ".{0,8}") {
            let one = DigestBuilder::new("t").field(&a, &b).finish();
            let other = DigestBuilder::new("t").field(&c, &d).finish();
            prop_assert_eq!(one == other, (a, b) == (c, d));
        }
    }
}
