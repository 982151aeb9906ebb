//! The recorded steps of batches, and where their frames are. No prune removes the steps of an open batch.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::cache::error::Damage;
use crate::digest::{ActionKey, Digest, DigestBuilder};

/// Identifies a batch before the vendor has named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchNonce([u8; 12]);

impl BatchNonce {
    /// A nonce that no other batch has, made from the time, this process and the actions.
    pub fn new(created: u64, keys: impl Iterator<Item = ActionKey>) -> BatchNonce {
        let mut builder = DigestBuilder::new("compeval batch v1");
        builder.field("created", created.to_le_bytes());
        builder.field("process", std::process::id().to_le_bytes());
        builder.field("time", base::clock::now().as_nanosecond().to_le_bytes());
        for key in keys {
            builder.field("key", key.0.0);
        }
        let Digest([a, b, c, d, e, f, g, h, i, j, k, l, ..]) = builder.finish();
        BatchNonce([a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

impl fmt::Display for BatchNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for BatchNonce {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<BatchNonce, &'static str> {
        const EXPECTED: &str = "expected the 16 letters and digits that `batch ls` shows";
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| EXPECTED)?;
        bytes.try_into().map(BatchNonce).map_err(|_| EXPECTED)
    }
}

/// A step of a batch that is recorded. The content of the record is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BatchStep {
    /// Before the call that creates a batch.
    Intent,
    /// The vendor has confirmed it.
    Submitted,
    /// All of its results are stored. Without this step, a batch is open.
    Closed,
}

/// A cache that has steps of batches.
pub trait StepLog {
    /// All steps that are recorded.
    fn steps(&self) -> Vec<(BatchNonce, BatchStep)>;

    /// What a step recorded, decoded; `None` if there is no such step.
    ///
    /// # Errors
    /// A record that is damaged or cannot be decoded.
    fn read_step<T>(
        &self,
        nonce: BatchNonce,
        step: BatchStep,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Damage>;
}
