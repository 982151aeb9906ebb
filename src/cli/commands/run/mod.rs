//! `compeval run`: evaluates the matrix, writes results, prints the summary and the next command, and applies the gate.
//! `--sample` runs the sample project, which it writes first.

mod args;
mod finish;

pub(super) use args::RunArgs;
pub(super) use finish::print_results;

use std::path::PathBuf;

use crate::cli::args::Common;
use crate::cli::commands::init;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::given;
use crate::cli::screen::Screen;
use crate::cli::terminal::Console;
use crate::evaluation::{EvaluationOutcome, evaluate};
use crate::pipeline::PIPELINE_FILE;
use crate::report::{headline, junit};
use crate::results::{Manifest, Outcome, Summary, first_questions};
use base::files::{FileError, write_whole};
use base::guarded;
use base::text::shell_word;
use models::ErrorClass;

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
    let place = PathBuf::from(SAMPLE);
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
    let console = Console::new(&common);
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
    print_publication(&outcome, console);
    let EvaluationOutcome {
        manifest,
        summary,
        refused,
        folder,
        unpushed,
        unsynced,
        ..
    } = outcome;
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
    if let Some(file) = &args.comparison.junit {
        write_whole(&given(common, file), junit(&summary, manifest.wall_s))?;
    }
    let next = next_command(exit, args, &summary, &manifest);
    finish::print_summary(
        &summary,
        &manifest,
        &folder,
        next.as_deref(),
        args.comparison.all,
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
    Ok(exit.and(finish::gate(args, &summary, console)))
}

/// Warns if the results were not published under the label.
fn print_publication(
    EvaluationOutcome {
        folder,
        is_beside,
        manifest,
        ..
    }: &EvaluationOutcome,
    console: &Console,
) {
    if *is_beside {
        let text = format!(
            "`{}` keeps its earlier results: this run is incomplete, and its results are in {}",
            manifest.label,
            folder.path().display()
        );
        console.warn("not replaced:", text);
    }
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
    let again = || same_command(args.select.label.is_none().then_some(&*label));
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

/// This command as it was typed, with the label that was made up for it, without what kept it from asking, and without the
/// flag of the sample, whose place is named.
fn same_command(label: Option<&str>) -> String {
    let typed = std::env::args().skip(1);
    let typed = typed.filter(|word| word != "--offline" && word != "--sample");
    let typed = typed.map(|word| shell_word(&word));
    let named = label.into_iter().map(|label| format!("--label {label}"));
    let words: Vec<String> = typed.chain(named).collect();
    format!("compeval {}", words.join(" "))
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
