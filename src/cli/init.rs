//! `compeval init`.

use super::args::{Common, InitArgs};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &InitArgs, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`init` is being built"))
}
