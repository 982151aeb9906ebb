//! The object that marks a prefix as a remote of this program and identifies it. A pack that was copied from another
//! remote is signed for that remote and is not used.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::backend::{Remote, RemoteError, WriteOutcome};
use super::signed::RemoteId;
use crate::cache::FORMAT;
use crate::digest::Digest;

pub(super) const OBJECT: &str = "compeval-cache.json";
const VERSION: u64 = FORMAT as u64;

#[derive(Serialize, Deserialize)]
struct Marker {
    format: u64,
    #[serde(default)]
    id: String,
}

/// The id of a remote; `None` if nothing was ever written to it.
///
/// # Errors
/// If the prefix belongs to another program, has a newer format, or cannot be read.
pub(super) async fn read(remote: &dyn Remote, url: &str) -> Result<Option<RemoteId>, RemoteError> {
    let bytes = match remote.read(OBJECT, None).await {
        Ok(bytes) => bytes,
        Err(RemoteError::NotFound(_)) => {
            let objects = remote.list("").await?;
            // marked by another process in the meantime
            if objects.iter().any(|object| object.name == OBJECT) {
                remote.read(OBJECT, None).await?
            } else {
                return match objects.into_iter().min() {
                    None => Ok(None),
                    Some(object) => Err(RemoteError::foreign(url, &object.name)),
                };
            }
        }
        Err(error) => return Err(error),
    };
    decode(&bytes, url).map(Some)
}

fn decode(bytes: &[u8], url: &str) -> Result<RemoteId, RemoteError> {
    let Marker { format, id } =
        serde_json::from_slice(bytes).map_err(|_| RemoteError::foreign(url, OBJECT))?;
    if format > VERSION {
        return Err(RemoteError::NewerFormat {
            url: url.to_owned(),
            found: format,
            known: VERSION,
        });
    }
    let id = u128::from_str_radix(&id, 16).map_err(|_| RemoteError::foreign(url, OBJECT))?;
    Ok(RemoteId(id.to_be_bytes()))
}

/// The id of a remote. Marks the remote if nothing was ever written to it. If several processes do so at once, the
/// first wins.
///
/// # Errors
/// As `read`.
pub(super) async fn ensure(
    remote: &dyn Remote,
    url: &str,
    seed: &[u8],
) -> Result<RemoteId, RemoteError> {
    if let Some(known) = read(remote, url).await? {
        return Ok(known);
    }
    // unique, not secret
    let mut id = [0; 16];
    id.copy_from_slice(&Digest::hash(seed).0[..16]);
    let marker = Marker {
        format: VERSION,
        id: format!("{:032x}", u128::from_be_bytes(id)),
    };
    let text = serde_json::to_vec(&marker).unwrap_or_default();
    match remote.write_if_absent(OBJECT, Bytes::from(text)).await? {
        WriteOutcome::Written => Ok(RemoteId(id)),
        WriteOutcome::Exists => {
            let bytes = remote.read(OBJECT, None).await?;
            decode(&bytes, url)
        }
    }
}
