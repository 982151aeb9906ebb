//! `compeval check`.

use super::args::Common;
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`check` is being built"))
}
