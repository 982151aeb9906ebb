//! The language of rubric, built-in prompts and reports.

use serde::{Deserialize, Serialize};

/// A language of prompts and reports. Ids, JSON fields and the command line are always English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    #[default]
    /// English.
    En,
    /// Chinese (simplified).
    Zh,
}

impl Locale {
    /// The one of two texts, or of what belongs to them, that is in this language.
    pub fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Locale::En => english,
            Locale::Zh => chinese,
        }
    }
}
