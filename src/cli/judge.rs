//! `compeval judge`.

use super::args::{Common, JudgeCommand};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &JudgeCommand, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`judge` is being built"))
}
