//! `compeval run`: evaluates the matrix, writes results, prints the summary and the next command, and applies the gate.
//! `--sample` runs the sample project, which it writes first.

mod finish;

pub(super) use finish::print_results;

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{BudgetArgs, Common, LIMITS, MODELS, OUTPUT, PARTS, SELECTION, SelectArgs};
use crate::cli::commands::init;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{RemoteArgs, baseline_of, given, locale_of, selecting_request};
use crate::cli::screen::Screen;
use crate::cli::terminal::Console;
use crate::evaluation::{EvaluationOutcome, Request, evaluate};
use crate::parts::PartNumber;
use crate::pipeline::PIPELINE_FILE;
use crate::report::{headline, junit};
use crate::results::{Label, Manifest, Outcome, Summary, first_questions};
use base::files::{FileError, write_whole};
use base::guarded;
use base::text::shell_word;
use models::ErrorClass;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Replace results of another design; they become LABEL~1
    #[arg(long, requires = "label", help_heading = OUTPUT)]
    replace: bool,
    /// Compare with this label, or with the results folder at this path (./FOLDER); `previous`, also without a name, is the
    /// newest complete results
    #[arg(long, conflicts_with = "part", value_name = "LABEL", num_args = 0..=1, default_missing_value = Label::PREVIOUS, help_heading = OUTPUT)]
    compare_to: Option<String>,
    /// With --compare-to: leave out what the two sides do not share
    #[arg(long, requires = "compare_to", help_heading = OUTPUT, hide_short_help = true)]
    only_common: bool,
    /// Exit with 100 if a score or the reliability of a method regressed
    #[arg(long, requires = "compare_to", help_heading = OUTPUT)]
    fail_on_regression: bool,
    /// Exit with 100 if a method fails on a fixture and run that it did not fail before
    #[arg(long, requires = "compare_to", help_heading = OUTPUT, hide_short_help = true)]
    fail_on_new_failures: bool,
    /// Print every table, not one screen
    #[arg(long, help_heading = OUTPUT)]
    all: bool,
    /// Write the scores to FILE as JUnit XML: a test for each method and dimension
    #[arg(long, conflicts_with = "part", value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    junit: Option<PathBuf>,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Run part I of N and put what it makes into the remote; `run --remote URL --offline` makes the results of all parts
    #[arg(long, value_name = "I/N", requires = "label", conflicts_with = "refresh", help_heading = PARTS, hide_short_help = true)]
    part: Option<PartNumber>,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Ask no model and start no program; with --remote, take what is there
    #[arg(long, conflicts_with = "part", help_heading = LIMITS)]
    offline: bool,
    /// Wait until open batches have ended
    #[arg(long, conflicts_with = "offline", help_heading = LIMITS, hide_short_help = true)]
    wait: bool,
    /// Continue with a judge that fails its self-test
    #[arg(long, help_heading = MODELS, hide_short_help = true)]
    allow_weak_judge: bool,
    /// Run at most this many actions at once
    #[arg(short, long, value_name = "N", value_parser = job_count, help_heading = LIMITS)]
    jobs: Option<usize>,
    /// Write the sample project into the folder `compeval-sample`, unless it is there, and run it: offline, without a key
    #[arg(long, conflicts_with_all = ["config", "directory", "part"], help_heading = SELECTION, hide_short_help = true)]
    sample: bool,
}

/// The number in `--jobs N`.
fn job_count(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a number from 1".to_owned())
}

impl RunArgs {
    /// The evaluation that the flags ask for, which `screen` may stop.
    fn request(
        &self,
        common: &Common,
        screen: &Screen,
        console: &Console,
    ) -> Result<Request, Failure> {
        Ok(Request {
            part: self.part,
            label: self.select.label.clone(),
            project: selecting_request(common, &self.select)?,
            replace: self.replace,
            refresh: self.select.refresh.iter().copied().collect(),
            limits: self.budget.limits(),
            jobs: self.jobs,
            offline: self.offline,
            allow_weak_judge: self.allow_weak_judge,
            waits_for_batches: self.wait,
            baseline: baseline_of(
                common,
                self.compare_to.as_deref(),
                &self.select,
                self.only_common,
                console,
            )?,
            locale: common.locale,
            remote: self.remote.given()?,
            reports_access: !console.is_quiet,
            stop: Some(screen.stop()),
        })
    }
}

pub(crate) fn run(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    if args.sample {
        return run_sample(common, args);
    }
    run_once(common, args, console)
}

/// The folder of the sample.
const SAMPLE: &str = "compeval-sample";

/// Writes the sample project unless it is there, and runs it.
fn run_sample(common: &Common, args: &RunArgs) -> Result<Exit, Failure> {
    let place = common.directory.clone().unwrap_or_default().join(SAMPLE);
    guarded::metadata(&place).map_err(|error| FileError::new("use", &place, error))?;
    if !place.join(PIPELINE_FILE).is_file() {
        init::write_starter(&place, false, common.locale.unwrap_or_default())?;
    }
    let common = Common {
        directory: Some(place),
        ..common.clone()
    };
    let args = RunArgs {
        sample: false,
        ..args.clone()
    };
    // Every command that the run suggests leads there.
    let console = Console::new(&common, locale_of(&common));
    run(&common, &args, &console)
}

/// Runs the matrix, or a part of it, and prints the results.
fn run_once(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let mut screen = Screen::new(console);
    let request = args.request(common, &screen, console)?;
    let outcome = evaluate(request, &mut |event| screen.on_event(event))?;
    let exit = outcome.ending.into();
    if let Some(summary) = outcome
        .summary
        .as_ref()
        .filter(|_| console.is_quiet && !console.is_json)
    {
        console.print(&headline(summary, &outcome.manifest).text);
    }
    conclude(outcome, exit, common, args, console)
}

/// Prints the results and the verdict of the gate. `exit` is how the run itself ended.
fn conclude(
    outcome: EvaluationOutcome,
    exit: Exit,
    common: &Common,
    args: &RunArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let EvaluationOutcome {
        manifest,
        summary,
        refused,
        folder,
        unpushed,
        unsynced,
        is_beside,
        ..
    } = outcome;
    if is_beside {
        let (label, path) = (&manifest.label, folder.path().display());
        let text = format!(
            "`{label}` keeps its earlier results: this run is incomplete, and its results are in {path}"
        );
        console.warn("not replaced:", text);
    }
    let Some(summary) = summary else {
        finish::print_part(&manifest, &folder, console);
        if let Some(error) = unpushed {
            let why = format!("not all that this part made is in the remote: {error}");
            return Err(Failure::error(why)
                .hinted("run it again: nothing is asked twice")
                .exiting(Exit::Incomplete));
        }
        return unsynced.map_or(Ok(exit), |error| Err(error.into()));
    };
    if let Some(file) = &args.junit {
        write_whole(&given(common, file), junit(&summary, manifest.wall_s))?;
    }
    let next = next_command(exit, args, &summary, &manifest);
    finish::print_summary(
        &summary,
        &manifest,
        &folder,
        next.as_deref(),
        args.all,
        console,
    );
    if let Some(error) = unsynced {
        return Err(error.into());
    }
    if let Some(refusal) = refused {
        let refused = Failure::from(refusal).report(console);
        // After a run that ended early, a refusal is no surprise, and not why it ended.
        return Ok(if matches!(exit, Exit::Done | Exit::Incomplete) {
            refused
        } else {
            exit
        });
    }
    let gate = finish::gate(
        &summary,
        args.fail_on_regression,
        args.fail_on_new_failures,
        console,
    );
    // An early end is graver than a regression, and a gate that cannot judge is graver than an early end.
    Ok(match (exit, gate) {
        (Exit::Done, gate) | (_, gate @ Exit::Error) => gate,
        (exit, _) => exit,
    })
}

/// The command to type next: one that continues the work, or one that shows it when all is done. `None` where the same
/// command would fail the same way, because a provider knows no such model.
fn next_command(
    exit: Exit,
    args: &RunArgs,
    summary: &Summary,
    manifest: &Manifest,
) -> Option<String> {
    let mut classes = manifest
        .failures
        .iter()
        .filter_map(|failure| failure.class)
        .peekable();
    let is_refused = classes.peek().is_some() && classes.all(|class| class == ErrorClass::NotFound);
    if is_refused && matches!(exit, Exit::Error | Exit::Incomplete) {
        return None;
    }
    let is_judged = summary
        .methods
        .iter()
        .any(|(_, method)| method.cells.judged > 0);
    let label = shell_word(&manifest.label);
    let again = || finish::same_command(args.select.label.is_none().then_some(&*label));
    Some(match (exit, summary.fixtures.first()) {
        (Exit::Error, _) if !args.allow_weak_judge && !manifest.caveats.weak_judges.is_empty() => {
            "compeval judge selftest".to_owned()
        }
        // Only checks of the judges are left, and a refresh would begin anew.
        (Exit::Interrupted, _) if manifest.outcome != Outcome::Interrupted => {
            format!("compeval run --label {label}")
        }
        // After failures, too, a refresh would begin anew.
        (Exit::Incomplete, _) if !args.select.refresh.is_empty() => "compeval plan".to_owned(),
        // The same budget again gets further, but not if it is too small to begin.
        (Exit::Budget, _) if manifest.requests_sent == 0 => "compeval plan".to_owned(),
        (Exit::Pending | Exit::Error | Exit::Interrupted | Exit::Incomplete | Exit::Budget, _) => {
            again()
        }
        (_, Some(fixture)) if !is_judged && manifest.design.planted.is_some() => {
            format!(
                "compeval show {} --planted --label {label}",
                shell_word(fixture)
            )
        }
        (_, Some(fixture)) if is_judged => {
            let shown = first_to_show(summary, manifest).unwrap_or_else(|| shell_word(fixture));
            format!("compeval show {shown} --label {label}")
        }
        _ if manifest.design.answerers.is_empty() => format!("compeval report {label} --open"),
        _ => "compeval plan".to_owned(),
    })
}

/// What `show` shows of the question to look at first: its fixture, or, in a comparison, the cell itself.
fn first_to_show(summary: &Summary, manifest: &Manifest) -> Option<String> {
    let question = first_questions(summary).into_iter().next()?;
    let [fixture, method, probe] =
        [&question.at.fixture, &question.method, &question.at.probe].map(|name| shell_word(name));
    // With several answerers, the name of the method says whose cells are meant, and `show` takes the two apart.
    let is_cell = summary.comparison.is_some() && manifest.design.answerers.len() == 1;
    Some(if is_cell {
        format!("{fixture} --method {method} --probe {probe}")
    } else {
        fixture
    })
}
