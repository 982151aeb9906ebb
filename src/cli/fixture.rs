//! `compeval fixture`.

use super::args::{Common, FixtureCommand};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &FixtureCommand, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`fixture` is being built"))
}
