//! The arguments of `run`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{BudgetArgs, Common, LIMITS, MODELS, OUTPUT, PARTS, SELECTION, SelectArgs};
use crate::cli::failure::Failure;
use crate::cli::project::{
    PREVIOUS, RemoteArgs, baseline_of, label_of, limits_of, selecting_request,
};
use crate::cli::screen::Screen;
use crate::cli::terminal::Console;
use crate::evaluation::Request;
use crate::parts::PartNumber;

/// What few need, by its id: `run --help` has it, `run -h` fits one screen.
const RARE: &[&str] = &[
    "allow_unproven",
    "sample",
    "compressor_model",
    "answer_model",
    "judge_model",
    "focus_topic",
    "lane",
    "allow_weak_judge",
    "only_common",
    "fail_on_new_failures",
    "junit",
    "wait",
    "part",
    "remote",
    "remote_mode",
];

/// What is done with complete results beside the reports.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ComparisonArgs {
    /// Compare with this label, or with the results folder at this path (./FOLDER); `previous`, also without a name, is the
    /// newest complete results
    #[arg(long, value_name = "LABEL", num_args = 0..=1, default_missing_value = PREVIOUS, help_heading = OUTPUT)]
    pub(crate) compare_to: Option<String>,
    /// With --compare-to: leave out what the two sides do not share
    #[arg(long, requires = "compare_to", help_heading = OUTPUT)]
    pub(crate) only_common: bool,
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

// A part has no results to compare.
#[derive(Clone, Debug, Default, Args)]
#[command(mut_args(|arg| {
    let arg = match arg.get_id().as_str() {
        "compare_to" | "junit" => arg.conflicts_with("part"),
        _ => arg,
    };
    let is_rare = RARE.contains(&arg.get_id().as_str());
    arg.hide_short_help(is_rare)
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
    /// Run part I of N and put what it makes into the remote; `run --remote URL --offline` makes the results of all parts
    #[arg(long, value_name = "I/N", requires = "label", conflicts_with = "refresh", help_heading = PARTS)]
    pub(crate) part: Option<PartNumber>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Ask no model and start no program; with --remote, take what is there
    #[arg(long, conflicts_with = "part", help_heading = LIMITS)]
    pub(crate) offline: bool,
    /// Wait until open batches have ended
    #[arg(long, conflicts_with = "offline", help_heading = LIMITS)]
    pub(crate) wait: bool,
    /// Continue with a judge that fails its self-test
    #[arg(long, help_heading = MODELS)]
    pub(crate) allow_weak_judge: bool,
    /// Run at most this many actions at once
    #[arg(short, long, value_name = "N", value_parser = job_count, help_heading = LIMITS)]
    pub(crate) jobs: Option<usize>,
    /// Write the sample project into the folder `compeval-sample`, unless it is there, and run it: offline, without a key
    #[arg(long, conflicts_with_all = ["config", "directory", "part"], help_heading = SELECTION)]
    pub(crate) sample: bool,
}

/// The number in `--jobs N`.
fn job_count(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a number from 1".to_owned())
}

impl RunArgs {
    /// The evaluation that the flags ask for, which `screen` may stop.
    pub(super) fn request(
        &self,
        common: &Common,
        screen: &Screen,
        console: &Console,
    ) -> Result<Request, Failure> {
        let ComparisonArgs {
            compare_to,
            only_common,
            ..
        } = &self.comparison;
        let own = self.select.label.as_deref();
        Ok(Request {
            part: self.part,
            label: Some(label_of(&self.select)?),
            project: selecting_request(common, &self.select)?,
            replace: self.replace,
            refresh: self.select.refresh.iter().copied().collect(),
            limits: limits_of(&self.budget)?,
            jobs: self.jobs,
            offline: self.offline,
            allow_weak_judge: self.allow_weak_judge,
            waits_for_batches: self.wait,
            baseline: baseline_of(common, compare_to.as_deref(), own, *only_common, console)?,
            remote: self.remote.given()?,
            reports_access: !console.is_quiet,
            stop: Some(screen.stop()),
        })
    }
}
