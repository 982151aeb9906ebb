//! The language of rubric, built-in prompts and reports.

use serde::{Deserialize, Serialize};

/// A language of prompts and reports. Ids, JSON fields and the command line are always English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    #[default]
    En,
    /// Chinese (simplified).
    Zh,
}
