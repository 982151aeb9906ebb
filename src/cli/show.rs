//! `compeval show`.

use super::args::{Common, ShowArgs};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &ShowArgs, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`show` is being built"))
}
