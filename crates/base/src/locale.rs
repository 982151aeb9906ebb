//! The language of rubric, built-in prompts and reports, and of what this process prints.

use std::sync::atomic::{AtomicU8, Ordering};

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
    /// The value for this language, of one for English and one for Chinese.
    pub fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Locale::En => english,
            Locale::Zh => chinese,
        }
    }
}

/// The language that the user chose for all output, in the form that [`load`] reads.
static CHOSEN: AtomicU8 = AtomicU8::new(0);
/// The language of the project.
static OF_PROJECT: AtomicU8 = AtomicU8::new(0);

fn load(locale: &AtomicU8) -> Option<Locale> {
    match locale.load(Ordering::Relaxed) {
        1 => Some(Locale::En),
        2 => Some(Locale::Zh),
        _ => None,
    }
}

impl Locale {
    /// The language of messages: the user's choice, else the project's, else English. It is process-wide, like the
    /// terminal, because errors and warnings are worded far from the command line.
    pub fn printed() -> Locale {
        load(&CHOSEN).or(load(&OF_PROJECT)).unwrap_or_default()
    }

    /// The language of a report on results in this language: the user's choice, else this one.
    pub fn of_report(self) -> Locale {
        load(&CHOSEN).unwrap_or(self)
    }

    /// Makes this the user's choice: everything is printed in it, whatever the project's language is.
    pub fn choose(self) {
        CHOSEN.store(self.pick(1, 2), Ordering::Relaxed);
    }

    /// Makes this the language of the project: messages are printed in it unless the user chose another.
    pub fn set_of_project(self) {
        OF_PROJECT.store(self.pick(1, 2), Ordering::Relaxed);
    }
}

/// Formats a message in the language of messages, see `Locale::printed`. Takes the English text, the Chinese one,
/// and the arguments of both; only one text is formatted.
#[macro_export]
macro_rules! say {
    ($english:literal, $chinese:literal $(, $($arguments:tt)*)?) => {
        match $crate::locale::Locale::printed() {
            $crate::locale::Locale::En => format!($english $(, $($arguments)*)?),
            $crate::locale::Locale::Zh => format!($chinese $(, $($arguments)*)?),
        }
    };
}

/// The text in the language of messages.
pub fn localized(english: &'static str, chinese: &'static str) -> &'static str {
    Locale::printed().pick(english, chinese)
}
