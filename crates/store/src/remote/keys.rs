//! Signing keys (ed25519) and the writers that a project trusts. Only this file uses the `ring` crate.

use std::fmt;
use std::str::FromStr;

use base::redaction;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

/// Public and secret keys begin differently, so that one is not taken for the other.
const PUBLIC: &str = "cepub_";
const SECRET: &str = "cesec_";

/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

/// A public key. It is the id of its writer. Signed objects contain its bytes; everything that people read contains its
/// text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PublicKey([u8; 32]);

/// Why a text is not a key.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "this is a secret key; only its public key, which begins with {PUBLIC}, may be written down"
    )]
    Secret,
    #[error("this is a public key; signing needs the secret key, which begins with {SECRET}")]
    Public,
    #[error("expected {PUBLIC} and 43 letters, digits, - or _, as `compeval cache key` prints it")]
    BadPublic,
    #[error("expected {SECRET} and 43 letters, digits, - or _, as `compeval cache key` prints it")]
    BadSecret,
    #[error("expected a name and a public key, as in \"ci {PUBLIC}…\"")]
    NoName,
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl PublicKey {
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(message, signature)
            .is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<PublicKey, KeyError> {
        if text.starts_with(SECRET) {
            redaction::add_key(text);
            return Err(KeyError::Secret);
        }
        text.strip_prefix(PUBLIC)
            .and_then(decode)
            .map(PublicKey)
            .ok_or(KeyError::BadPublic)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn decode(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// A secret key. It cannot be printed or stored; only `generate` returns its text.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Makes a new key. Returns it with its text.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<(SigningKey, String), KeyError> {
        let mut seed = [0; 32];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| KeyError::NoRandomness)?;
        let key = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::BadSecret)?;
        Ok((
            SigningKey(key),
            format!("{SECRET}{}", URL_SAFE_NO_PAD.encode(seed)),
        ))
    }

    /// The key with this text, which is redacted from all output from now on.
    ///
    /// # Errors
    /// If it is not a secret key. The error does not contain the text.
    pub fn parse(text: &str) -> Result<SigningKey, KeyError> {
        let text = text.trim();
        redaction::add_key(text);
        if text.starts_with(PUBLIC) {
            return Err(KeyError::Public);
        }
        let encoded = text.strip_prefix(SECRET).ok_or(KeyError::BadSecret)?;
        redaction::add_key(encoded);
        let seed = decode(encoded).ok_or(KeyError::BadSecret)?;
        Ed25519KeyPair::from_seed_unchecked(&seed)
            .map(SigningKey)
            .map_err(|_| KeyError::BadSecret)
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE] {
        let mut bytes = [0; SIGNATURE];
        bytes.copy_from_slice(self.0.sign(message).as_ref());
        bytes
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secret key of {}", self.public())
    }
}

/// A writer whose packs are used, as the project names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrustedWriter {
    /// As the project calls it.
    pub name: String,
    /// The public key.
    pub key: PublicKey,
}

impl FromStr for TrustedWriter {
    type Err = KeyError;
    /// Reads `NAME PUBKEY`. A name may contain spaces.
    fn from_str(text: &str) -> Result<TrustedWriter, KeyError> {
        let text = text.trim();
        let (name, key) = text.rsplit_once(char::is_whitespace).unwrap_or(("", text));
        let key = key.parse()?;
        let name = name.trim().to_owned();
        if name.is_empty() {
            Err(KeyError::NoName)
        } else {
            Ok(TrustedWriter { name, key })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_text_each_and_are_not_taken_for_each_other() {
        let secret = format!("{SECRET}{}", URL_SAFE_NO_PAD.encode([7; 32]));
        let key = SigningKey::parse(&format!("{secret}\n")).unwrap();
        let public = key.public().to_string();
        assert_eq!(public, "cepub_6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw");
        assert_eq!(public.parse(), Ok(key.public()));
        assert_eq!(secret.parse::<PublicKey>(), Err(KeyError::Secret));
        assert_eq!(SigningKey::parse(&public).unwrap_err(), KeyError::Public);
        assert_eq!(public[..30].parse::<PublicKey>(), Err(KeyError::BadPublic));
        assert!(!format!("{key:?}").contains(&secret[6..]));
        let writer: TrustedWriter = format!("the build farm  {public}").parse().unwrap();
        assert_eq!(
            (writer.name.as_str(), writer.key),
            ("the build farm", key.public())
        );
        assert_eq!(public.parse::<TrustedWriter>(), Err(KeyError::NoName));
    }

    #[test]
    fn a_signature_covers_every_byte() {
        let (key, text) = SigningKey::generate().unwrap();
        let signature = SigningKey::parse(&text).unwrap().sign(b"footer");
        assert!(key.public().verifies(b"footer", &signature));
        assert!(!key.public().verifies(b"Footer", &signature));
        assert!(
            !SigningKey::generate()
                .unwrap()
                .0
                .public()
                .verifies(b"footer", &signature)
        );
    }
}
