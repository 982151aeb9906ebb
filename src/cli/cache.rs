//! `compeval cache`.

use super::args::{CacheCommand, Common};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &CacheCommand, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`cache` is being built"))
}
