//! The parts that the other crates of compeval share: messages and token counts, units, mistakes in users' files,
//! atomic file writes, locks, and redaction of API keys.
//!
//! Nothing here knows a log format, a provider, a cache or an evaluation. An item stays here only while two crates need it.
//!
//! ```
//! use compeval_base::message::{Message, Role};
//! use compeval_base::tokens::count_tokens;
//!
//! let message = Message::text(Role::User, "Move the service to port 9090.");
//! assert!(count_tokens(&message.countable_text()).0 > 5);
//! ```

pub mod clock;
pub mod fault;
pub mod files;
pub mod guarded;
#[cfg(feature = "http")]
pub mod http;
pub mod locale;
pub mod lock;
pub mod message;
pub mod random;
pub mod redaction;
pub mod text;
pub mod threads;
pub mod tokens;
pub mod units;
pub mod words;

/// Declares an enum with a name for each variant, which is used in JSON, in tables and on the command line. Adds `ALL`,
/// `name` and `Display`.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        $vis enum $type { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl $type {
            /// All variants, in the order in which tables show them.
            #[allow(dead_code, reason = "a private enum may not need it")]
            $vis const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// The name of the variant.
            $vis const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Declares a type for a name that a user or a provider chose. It may be any text, and is a plain string in JSON.
#[macro_export]
macro_rules! text_name {
    ($(#[$meta:meta])* $vis:vis struct $type:ident;) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        $vis struct $type(pub std::sync::Arc<str>);

        impl From<&str> for $type {
            fn from(text: &str) -> $type {
                $type(text.into())
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
