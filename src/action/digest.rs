//! Digests: BLAKE3 of bytes, and of framed fields in a fixed order.

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// BLAKE3 of some bytes. Written as 64 hexadecimal digits where people read, and as bare bytes elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
            deserializer.deserialize_str(Digits)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Digest)
        }
    }
}

/// Reads hexadecimal digits without keeping their text.
struct Digits;

impl Visitor<'_> for Digits {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("64 hexadecimal digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
        text.parse().map_err(E::custom)
    }
}

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Digest {
        Digest(*blake3::hash(bytes.as_ref()).as_bytes())
    }

    /// All 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// The first twelve digits, for people.
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

/// The name of an action: the hash of everything that determines its output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ActionKey(pub Digest);

impl fmt::Display for ActionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Hashes named fields. Every name and value is framed by its length, so no two lists of fields collide by
/// moving bytes from one field to the next.
pub struct DigestBuilder(Vec<u8>);

impl DigestBuilder {
    /// A builder for one kind of value; `context` keeps kinds apart.
    pub fn new(context: &str) -> DigestBuilder {
        // gathered and hashed at once: for many short fields that is several times as fast
        let mut builder = DigestBuilder(Vec::with_capacity(1024));
        builder.frame(context.as_bytes());
        builder
    }

    fn frame(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }

    /// Adds a named field.
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut DigestBuilder {
        self.frame(name.as_bytes());
        self.frame(value.as_ref());
        self
    }

    /// The digest of all fields so far.
    pub fn finish(&self) -> Digest {
        Digest::of(&self.0)
    }
}

/// BLAKE3 of bytes as they come: the same as `Digest::of` all of them.
#[derive(Clone, Debug, Default)]
pub struct RunningDigest(blake3::Hasher);

impl RunningDigest {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_encoding_is_pinned() {
        let digest = DigestBuilder::new("test").field("a", "b").finish();
        assert_eq!(digest.hex(), "528895021722fdc843f9c15c053d288d3b7eee2128b18ae0de4adc488be1a14a");
    }

    #[test]
    fn people_read_digits_and_the_index_holds_bytes() {
        let digest = Digest::of("x");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, format!("\"{}\"", digest.hex()));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"abc\"").is_err());
        let bytes = postcard::to_stdvec(&digest).unwrap();
        assert_eq!((bytes.len(), postcard::from_bytes::<Digest>(&bytes).unwrap()), (32, digest));
    }

    proptest! {
        #[test]
        fn fields_do_not_run_into_each_other(a in ".{0,8}", b in ".{0,8}", c in ".{0,8}", d in ".{0,8}") {
            let of = |x: &str, y: &str| DigestBuilder::new("t").field(x, y).finish();
            prop_assert_eq!(of(&a, &b) == of(&c, &d), (a, b) == (c, d));
        }
    }
}
