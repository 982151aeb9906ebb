//! An object: one entry, named by its key.
//!
//! ```text
//! magic 8 | code 32 | an entry in the frame of packs
//! ```
//! The code is a keyed hash of name and entry, or zero where there is no key. What it proves is that somebody with the
//! key wrote the object; that the entry belongs to its name is known by the inputs that the entry lists.

use std::fmt;

use bytes::Bytes;

use crate::digest::{ActionKey, CodeKey};
use base::redaction;

/// The most bytes of an object. A larger output stays on this machine.
pub(super) const MAX_OBJECT: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"ceval 1\n";
const CODE: usize = 32;

/// The name of the object with the output of an action.
pub(super) fn output_name(key: &ActionKey) -> String {
    let hex = key.0.hex();
    let (folder, name) = hex.split_at(2);
    format!("{folder}/{name}")
}

/// The name of the object that says why an action has no output.
pub(super) fn failure_name(key: &ActionKey) -> String {
    output_name(key) + "-failed"
}

/// The key of the codes in objects.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteKey(CodeKey);

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
        Some(RemoteKey(CodeKey::derive(context, secret)))
    }
}

impl fmt::Debug for RemoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteKey")
    }
}

/// The object `name` with an entry.
pub(super) fn seal(key: Option<&RemoteKey>, name: &str, entry: &[u8]) -> Bytes {
    let code = key.map_or([0; CODE], |key| key.0.code(name, entry));
    [&MAGIC[..], &code, entry].concat().into()
}

/// The entry in the object `name`. With a key, its code must be right; without one it is not looked at. The error says
/// what is wrong.
pub(super) fn unseal<'o>(
    key: Option<&RemoteKey>,
    name: &str,
    object: &'o [u8],
) -> Result<&'o [u8], &'static str> {
    let rest = object
        .strip_prefix(&MAGIC)
        .ok_or("it is no object of this version of compeval")?;
    let (code, entry) = rest.split_first_chunk::<CODE>().ok_or("it is cut off")?;
    match key {
        Some(key) if !key.0.verifies(name, entry, code) => {
            Err("its code is not that of COMPEVAL_REMOTE_KEY")
        }
        _ => Ok(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_holds_for_one_name_one_entry_and_one_key() {
        let [ours, theirs] = ["a secret of the team", "another team's secret"]
            .map(|s| RemoteKey::from_secret(s).unwrap());
        let object = seal(Some(&ours), "ab/c", b"entry");
        assert_eq!(unseal(Some(&ours), "ab/c", &object), Ok(&b"entry"[..]));
        assert_eq!(unseal(None, "ab/c", &object), Ok(&b"entry"[..]));
        for (key, name) in [(&theirs, "ab/c"), (&ours, "ab/d")] {
            assert!(unseal(Some(key), name, &object).is_err());
        }
        let plain = seal(None, "ab/c", b"entry");
        assert!(unseal(Some(&ours), "ab/c", &plain).is_err());
        assert_eq!(unseal(None, "ab/c", &plain), Ok(&b"entry"[..]));
        for odd in [&b""[..], b"<html>", &plain[..20]] {
            assert!(unseal(None, "ab/c", odd).is_err());
        }
        assert!(RemoteKey::from_secret("too short").is_none());
    }
}
