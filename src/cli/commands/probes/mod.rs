//! `compeval probes`: banks of questions, generated and reviewed.

mod draft;
mod generate;
mod report;
mod review;

use clap::Subcommand;

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::Console;
use generate::GenerateArgs;
use review::ReviewArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ProbesCommand {
    /// Generate a probe bank for each fixture
    #[command(
        after_help = "Examples:\n  compeval probes generate\n  compeval probes generate my-session --model openai/gpt-5.2 --max-cost 1"
    )]
    Generate(GenerateArgs),
    /// Review probes one by one: accept, edit or reject each next to its place in the transcript
    #[command(
        after_help = "Examples:\n  compeval probes review\n  compeval probes review my-session\n  compeval probes review --open    on a local page\n\n\
                      Each decision is written at once; a second call continues where the first stopped"
    )]
    Review(ReviewArgs),
}

pub(crate) fn run(
    common: &Common,
    command: &ProbesCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    match command {
        ProbesCommand::Generate(args) => generate::run(common, args, console),
        ProbesCommand::Review(args) => review::run(common, args, console),
    }
}
