//! The numbers of tries that a comparison was corrected for, as a manifest keeps them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The numbers of tries that the verdicts of a comparison are corrected for. A manifest keeps them: what is tried later
/// changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// When the run of the baseline began: a later run under its label has a ledger of its own.
    pub baseline: String,
    /// Of the mean over the methods tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<usize>,
    /// By method of the judged side.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<String, usize>,
    /// Whether a winner was tested on fixtures that no try had used: then nothing is corrected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
}

impl Tried {
    /// Whether nothing was compared.
    pub fn is_empty(&self) -> bool {
        self.baseline.is_empty()
    }
}
