//! What the other crates of compeval share: messages and their tokens, units, mistakes in users' files, files that a
//! crash leaves whole, locks, and the removal of API keys from texts.
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
pub mod controls;
pub mod fault;
pub mod files;
#[cfg(feature = "http")]
pub mod http;
pub mod locale;
pub mod message;
mod named;
pub mod redaction;
pub mod text;
pub mod threads;
pub mod tokens;
mod tokenizer;
pub mod units;
