//! The arguments of `run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::args::{BudgetArgs, LIMITS, MODELS, OUTPUT, SHARDS, SelectArgs};
use crate::cli::commands::parse_age;
use crate::cli::remote::RemoteArgs;
use crate::cli::shard::ShardArgs;

/// What is done with complete results beside the reports.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ComparisonArgs {
    /// Compare with this label or results folder
    #[arg(long, value_name = "LABEL", help_heading = OUTPUT)]
    pub(crate) compare_to: Option<String>,
    /// With --compare-to: leave out what the two sides do not share
    #[arg(long, requires = "compare_to", help_heading = OUTPUT)]
    pub(crate) only_common: bool,
    /// With --compare-to: stop as soon as there is a verdict, after 4, 8 or at most 12 fixtures
    #[arg(long, requires = "compare_to", conflicts_with = "refresh", help_heading = LIMITS)]
    pub(crate) until_decided: bool,
    /// Exit with 100 if a score or the reliability of a method regressed
    #[arg(long, requires = "compare_to", help_heading = OUTPUT)]
    pub(crate) fail_on_regression: bool,
    /// Exit with 100 if a method fails on a fixture and run that it did not fail before
    #[arg(long, requires = "compare_to", help_heading = OUTPUT)]
    pub(crate) fail_on_new_failures: bool,
    /// Print every table, not one screen
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) all: bool,
    /// Write the scores to FILE as JUnit XML: a test for each method and dimension
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) junit: Option<PathBuf>,
}

/// What is done about open batches.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct BatchArgs {
    /// Wait until open batches have ended
    #[arg(long, conflicts_with = "offline", help_heading = LIMITS)]
    pub(crate) wait: bool,
    /// With --wait: cancel batches after this long (such as 2h) and request the rest live
    #[arg(long, value_name = "AGE", requires = "wait", value_parser = parse_age, help_heading = LIMITS)]
    pub(crate) batch_deadline: Option<Duration>,
}

// A shard has no results to compare; `merge` takes the same arguments and has no shards.
#[derive(Clone, Debug, Default, Args)]
#[command(mut_args(|arg| match arg.get_id().as_str() {
    "compare_to" | "until_decided" | "junit" => arg.conflicts_with("shard"),
    _ => arg,
}))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Replace results of another design; they become LABEL~1
    #[arg(long, requires = "label", help_heading = OUTPUT)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) comparison: ComparisonArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) shards: ShardArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Read the judges' self-test from FILE, written by `judge selftest --export`
    #[arg(long, value_name = "FILE", help_heading = SHARDS)]
    pub(crate) selftest: Option<PathBuf>,
    /// Send no request and start no program
    #[arg(long, help_heading = LIMITS)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) batches: BatchArgs,
    /// Continue with a judge that fails its self-test
    #[arg(long, help_heading = MODELS)]
    pub(crate) allow_weak_judge: bool,
    /// Run at most this many actions at once
    #[arg(short, long, value_name = "N", help_heading = LIMITS)]
    pub(crate) jobs: Option<usize>,
    /// Keep running: after each edit of a prompt, bank, rubric, pipeline or program, run what became stale;
    /// --max-cost and --max-requests apply to all these runs together
    #[arg(long, conflicts_with_all = ["shard", "dry_run", "live", "until_decided"], help_heading = OUTPUT)]
    pub(crate) watch: bool,
    /// Show the results in the browser during the run: prints a local address that works until the run ends
    #[arg(long, conflicts_with_all = ["shard", "dry_run", "until_decided"], help_heading = OUTPUT)]
    pub(crate) live: bool,
    /// Print the plan and stop (same as `compeval plan`)
    #[arg(short = 'n', long, help_heading = LIMITS)]
    pub(crate) dry_run: bool,
}
