//! `compeval probes`: banks of questions.

mod draft;
mod generate;
mod report;

use clap::Subcommand;

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::Console;
use generate::GenerateArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ProbesCommand {
    /// Generate a probe bank for each fixture
    #[command(
        after_help = "Examples:\n  compeval probes generate\n  compeval probes generate my-session --model openai/gpt-5.2 --max-cost 1"
    )]
    Generate(GenerateArgs),
}

pub(crate) fn run(
    common: &Common,
    command: &ProbesCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    match command {
        ProbesCommand::Generate(args) => generate::run(common, args, console),
    }
}
