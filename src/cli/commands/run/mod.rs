//! `compeval run`: runs the matrix, writes results, prints the summary.

mod args;
mod finish;
mod offer;
mod once;
mod watch;

pub(super) use args::RunArgs;
pub(super) use finish::print_results;

use crate::cli::args::Common;
use crate::cli::commands::plan;
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::Console;

pub(crate) fn run(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    if args.sample {
        return offer::run_sample(common);
    }
    if let Some(exit) = offer::offer_project(common, console)? {
        return Ok(exit);
    }
    if args.dry_run {
        let baseline = args.baseline(common, console)?;
        let planned = plan::PlanArgs {
            select: args.select.clone(),
            part: args.part.clone(),
            remote: args.remote.clone(),
            offline: args.offline,
            ..plan::PlanArgs::default()
        };
        let plan = plan::plan_project(common, &planned, baseline.as_ref(), console)?;
        plan::print(&plan, false, console);
        return Ok(Exit::Done);
    }
    if args.watch {
        return watch::watch(common, args, console);
    }
    once::run_once(common, args, console)
}
