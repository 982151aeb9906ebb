//! `compeval compare`: two labels, or methods of them, with a verdict per dimension.

use clap::Args;

use crate::cli::args::{Common, SelectArgs};
use crate::cli::commands::run::{changed_lines_in, compare_sides};
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{Opening, open_snapshot, read_project};
use crate::cli::terminal::Console;
use crate::report::comparison_table;
use crate::results::ComparisonScope;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// LABEL, LABEL:METHOD or a results folder
    pub(crate) a: String,
    /// LABEL, LABEL:METHOD or a results folder
    pub(crate) b: String,
    /// Compare only the cells that both have
    #[arg(long)]
    pub(crate) only_common: bool,
}

pub(crate) fn run(common: &Common, args: &CompareArgs, console: &Console) -> Result<Exit, Failure> {
    let pipeline = read_project(common, &SelectArgs::default(), Opening::default())?.pipeline;
    let scope = if args.only_common { ComparisonScope::Common } else { ComparisonScope::All };
    // Without a readable cache the comparison still says which files changed, not in which lines.
    let cache = open_snapshot(&pipeline.cache).ok();
    let lines = changed_lines_in(cache.as_ref());
    let (judged, comparison) = compare_sides(&pipeline.results, (&args.a, &args.b), scope, &lines)?;
    console.json(&comparison);
    console.print(&console.styled(&comparison_table(&comparison, judged.design().locale, console.width())));
    Ok(Exit::Done)
}
