//! Transcripts: chat messages, fixtures (scrubbed transcript snapshots) with their compression points and spans, token
//! counts, and text folding.
//!
//! A fixture is checked where it is read, so that every module above may rely on its call/result pairs, ids and points.
//! Nothing here knows providers, probes or log formats.

mod characters;
mod conventions;
mod edits;
mod exit_code;
mod fixture;
mod fold;
mod mapped_fold;
mod shell;
mod span;
mod typography;

pub use base::message::{CallKind, Function, Message, Role, ToolCall};
pub use base::tokens::{count_tokens, estimate_tokens};
pub use characters::{is_unspaced, is_word, numeral, value_of_numeral};
pub use exit_code::{recorded_exit_code, stated_exit_code};
pub use fixture::{
    CUT_MARK, Fixture, ParsedFixture, Point, ends_of_spans, is_boundary, points_at_shares,
    tool_schemas,
};
pub use fold::{fold, fold_by, fold_document};
pub use mapped_fold::MappedFold;
pub use shell::{ShellCommand, shell_commands, shell_operations};
pub use span::{FileAction, FileOperation, file_operation, is_file_path_key, render};
pub use typography::TypographyRules;
