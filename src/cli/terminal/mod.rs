//! What the user sees while and after a command runs: lines, tables, progress, a pager.

mod progress_model;
mod failures;
mod controls;
mod console;
mod table;
mod run_log;
mod pager;
mod progress;
mod request_log;

pub(super) use crate::report::TextStyle;
pub(super) use console::{Console, LogWriter};
pub(super) use controls::{escape_json, own_color};
pub(super) use failures::print_failures;
pub(super) use pager::{Pages, page};
pub(super) use progress::{Progress, selftest_cases};
pub(super) use progress_model::ProgressSnapshot;
pub(super) use request_log::RequestLog;
pub(super) use run_log::RunLog;
pub(super) use table::{Column, number, render_table};
