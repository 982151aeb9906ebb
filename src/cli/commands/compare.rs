//! `compeval compare`: two labels, or methods of them, with a verdict per dimension.

use clap::Args;

use crate::cli::args::{Common, SelectArgs};
use crate::cli::commands::run::compare_sides;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{Opening, read_project};
use crate::cli::terminal::Console;
use crate::report::comparison_table;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// LABEL, LABEL:METHOD or a results folder
    pub(crate) a: String,
    /// LABEL, LABEL:METHOD or a results folder
    pub(crate) b: String,
    /// Compare only the cells that match
    #[arg(long)]
    pub(crate) only_common: bool,
}

pub(crate) fn run(common: &Common, args: &CompareArgs, console: &Console) -> Result<Exit, Failure> {
    let pipeline = read_project(common, &SelectArgs::default(), Opening::default())?.pipeline;
    let (judged, comparison) = compare_sides(&pipeline.results, &args.a, &args.b, args.only_common)?;
    console.json(&comparison);
    console.print(&console.styled(&comparison_table(&comparison, judged.design().locale, console.width())));
    Ok(Exit::Done)
}
