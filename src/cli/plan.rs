//! `compeval plan`.

use super::args::{Common, PlanArgs};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &PlanArgs, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`plan` is being built"))
}
