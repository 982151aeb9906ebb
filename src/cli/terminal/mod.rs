//! What the user sees while and after a command runs: lines, tables, progress, a pager.

mod console;
mod controls;
mod pager;
mod progress;
mod progress_model;

pub(super) use crate::report::TextStyle;
pub(super) use console::{Console, LogWriter};
pub(super) use controls::own_color;
pub(super) use pager::page;
pub(super) use progress::Progress;
