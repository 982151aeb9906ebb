//! The language of rubric, built-in prompts and reports, and of what a reader of results sees.

use crate::text::{count, grouped};

crate::named_enum! {
    /// A language of prompts and reports. Ids, JSON fields and the command line are always English.
    #[derive(Default)]
    pub enum Locale {
        /// English.
        #[default]
        En = "en",
        /// Chinese (simplified).
        Zh = "zh",
    }
}

impl Locale {
    /// The value for this language, of one for English and one for Chinese.
    pub fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Locale::En => english,
            Locale::Zh => chinese,
        }
    }

    /// A number with its noun, in Chinese with a measure word: `3 sessions`, `3 个会话`.
    pub fn count<N: TryInto<u64>>(self, number: N, noun: &str, chinese: &str) -> String {
        match self {
            Locale::En => count(number, noun),
            Locale::Zh => format!(
                "{} {chinese}",
                grouped(number.try_into().unwrap_or(u64::MAX))
            ),
        }
    }
}

/// Formats a text in a language. Takes the language, the English text, the Chinese one, and the arguments of both; only
/// one text is formatted.
#[macro_export]
macro_rules! say {
    ($locale:expr, $english:literal, $chinese:literal $(, $($arguments:tt)*)?) => {
        match $locale {
            $crate::locale::Locale::En => format!($english $(, $($arguments)*)?),
            $crate::locale::Locale::Zh => format!($chinese $(, $($arguments)*)?),
        }
    };
}
