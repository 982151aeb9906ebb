//! Sessions of coding agents: their logs in many formats ([`import::Format`] has them all), one shape for all of them,
//! secrets removed, and what their compactions did.
//!
//! - [`import`] reads a log of any known format, removes secrets, and proposes where a session can be cut.
//! - [`transcript`] is the common shape: messages, fixtures with their compression points, token counts, text folding.
//! - [`references`] finds the exact details of a session: paths, identifiers, versions.
//! - [`economics`] computes what sessions cost, and what they would cost under another policy of compaction.
//! - [`observe`] measures what sessions did after the compactions that their logs record.
//!
//! Nothing here knows probes, compaction methods or models, asks a network, or writes a file.

pub mod economics;
pub mod import;
pub mod observe;
pub mod references;
pub mod transcript;
