//! Transcripts: chat messages, fixtures (scrubbed transcript snapshots) with their compression points and spans, token
//! counts, and text folding.
//!
//! A fixture is checked where it is read, so that every module above may rely on its call/result pairs, ids and points.
//! Nothing here knows providers, probes or log formats.

mod message;
mod fixture;
mod fold;
mod points;
mod shell;
mod span;
mod tokenizer;
mod tokens;

pub use fixture::{Fixture, ParsedFixture};
pub use fold::fold;
pub use message::{CallKind, Function, Message, Role, ToolCall};
pub use points::{Point, is_boundary};
pub use shell::shell_operations;
pub use span::{FileAction, FileOperation, file_operation, is_file_path_key, render};
pub use tokens::{count_tokens, estimate_tokens};
