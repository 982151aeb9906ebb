//! The steps of a batch that the journal records, and where their frames are.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest, DigestBuilder};
use crate::cache::entry::FrameLocation;

/// Identifies a batch before the vendor has named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchNonce([u8; 12]);

impl BatchNonce {
    /// A nonce that no other batch has: of the time, this process and the actions.
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

/// The steps of a batch that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::cache) enum JournalStep {
    Intent,
    Submitted,
    Closed,
}

/// The places of all frames of the journal.
pub(in crate::cache) type JournalPlaces = BTreeMap<(BatchNonce, JournalStep), FrameLocation>;
