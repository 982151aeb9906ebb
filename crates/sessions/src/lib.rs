//! Reads the logs of coding agents in many formats ([`import::Format`] lists them) into one shape, removes secrets, and
//! measures what compactions did to the sessions.
//!
//! - [`import`] reads a log of any known format, removes secrets, and proposes where a session can be cut.
//! - [`transcript`] is the common shape: messages, fixtures with their compression points, token counts, text folding.
//! - [`references`] finds the exact details of a session: paths, identifiers, versions.
//! - [`economics`] computes what sessions cost, and what the provider processed again after their compactions.
//! - [`observe`] measures what sessions did after the compactions that their logs record.
//!
//! Nothing here knows probes, runs a compaction method, asks a model, uses the network, or writes a file.
//!
//! ```
//! use std::path::Path;
//!
//! use compeval_sessions::import::{Format, read_bytes};
//! use compeval_sessions::references::references_in;
//!
//! let lines = concat!(
//!     r#"{"role": "user", "content": "Move the service in src/server.rs to port 9090."}"#,
//!     "\n",
//!     r#"{"role": "assistant", "content": "Done."}"#,
//! );
//! let log = read_bytes(Path::new("session.jsonl"), lines.into(), None).expect("a log");
//! assert_eq!(log.format, Format::OpenAi);
//!
//! let messages = &log.conversations[0].messages;
//! let references = references_in(&messages[0].content);
//! let details: Vec<&str> = references.iter().map(|reference| reference.text.as_str()).collect();
//! assert_eq!(details, ["src/server.rs", "9090"]);
//! ```

pub mod economics;
pub mod import;
pub mod observe;
pub mod references;
pub mod transcript;
