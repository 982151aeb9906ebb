//! `compeval probes`.

use super::args::{Common, ProbesCommand};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(_common: &Common, _args: &ProbesCommand, _console: &Console) -> Result<Exit, Failure> {
    Err(Failure::error("`probes` is being built"))
}
