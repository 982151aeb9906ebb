//! `compeval compare`.

use super::args::{Common, CompareArgs};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &CompareArgs, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`compare` is being built"))
}
