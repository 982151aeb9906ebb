//! `compeval report`.

use super::args::{Common, ReportArgs};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &ReportArgs, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`report` is being built"))
}
