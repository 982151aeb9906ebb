//! The language of rubric, built-in prompts and reports.

use serde::{Deserialize, Serialize};

/// A language compeval speaks. Ids, JSON fields and the command line stay English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// Chinese (simplified).
    Zh,
}
