//! Transcripts: chat messages, fixtures (scrubbed transcript snapshots) with their compression points and spans, token
//! counts, and text folding.
//!
//! A fixture is checked where it is read, so that every module above may rely on its call/result pairs, ids and points.
//! Nothing here knows providers, probes or log formats.

mod conventions;
mod exit_code;
mod files;
mod fixture;
mod fold;
mod ledger;
mod operation;
mod shell;
mod typed;
mod typography;

pub use base::message::{CallKind, Function, Message, Role, ToolCall};
pub use base::tokens::{count_tokens, estimate_tokens};
pub use conventions::{numeral, value_of_numeral};
pub use exit_code::{
    CLEARED_RESULT, NO_RESULT, is_failed_result, is_refused_by_user, recorded_exit_code,
    stated_exit_code,
};
pub(crate) use exit_code::{is_failed_read, may_deny};
pub(crate) use files::may_change_any_file;
pub use files::{
    COMMAND_KEYS, command_among, command_in, command_of, file_operation, file_operations,
    is_same_file,
};
pub(crate) use fixture::start_of;
pub use fixture::{
    CUT_MARK, Fixture, ParsedFixture, Point, RecordedContext, ends_of_spans, is_boundary,
    points_at_shares, render, tool_schemas,
};
pub use fold::{MappedFold, fold, fold_by, fold_document};
pub use ledger::{FileLedger, FileRecord, results_by_call, was_done};
pub use operation::{FileAction, FileOperation, without_lines};
pub use shell::{ShellCommand, may_change_unnamed_files, shell_commands};
pub use typed::typed_words;
pub use typography::TypographyRules;
