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
    /// The one of two texts, or of what belongs to them, that is in this language.
    pub fn pick<T>(self, english: T, chinese: T) -> T {
        match self {
            Locale::En => english,
            Locale::Zh => chinese,
        }
    }
}

/// The language that a user chose for all that is printed, and that of the project; 0 where there is none.
static CHOSEN: AtomicU8 = AtomicU8::new(0);
static OF_PROJECT: AtomicU8 = AtomicU8::new(0);

fn stored(place: &AtomicU8) -> Option<Locale> {
    match place.load(Ordering::Relaxed) {
        1 => Some(Locale::En),
        2 => Some(Locale::Zh),
        _ => None,
    }
}

impl Locale {
    /// The language of messages: the chosen one, else that of the project, else English. It belongs to the process, as
    /// its terminal does: errors and warnings are worded far from the command line.
    pub fn printed() -> Locale {
        stored(&CHOSEN).or(stored(&OF_PROJECT)).unwrap_or_default()
    }

    /// The language of a report on results in this language: another one only if the user chose it.
    pub fn of_report(self) -> Locale {
        stored(&CHOSEN).unwrap_or(self)
    }

    /// Prints everything in this language, whatever the project's is.
    pub fn choose(self) {
        CHOSEN.store(self.pick(1, 2), Ordering::Relaxed);
    }

    /// Prints messages in the language of the project.
    pub fn set_of_project(self) {
        OF_PROJECT.store(self.pick(1, 2), Ordering::Relaxed);
    }
}

/// A message in the language that is printed, as `format!` makes it: the English text, the Chinese one, and the
/// arguments of both. Only one of them is formatted.
#[macro_export]
macro_rules! say {
    ($english:literal, $chinese:literal $(, $($arguments:tt)*)?) => {
        match $crate::locale::Locale::printed() {
            $crate::locale::Locale::En => format!($english $(, $($arguments)*)?),
            $crate::locale::Locale::Zh => format!($chinese $(, $($arguments)*)?),
        }
    };
}

/// Of two texts the one in the language that is printed.
pub fn word(english: &'static str, chinese: &'static str) -> &'static str {
    Locale::printed().pick(english, chinese)
}
